//! Attacks that create, rename and remove files under names that resolve outside the shared directory.

use crate::fs::ROOT;
use crate::fs::opcode::{CREATE, MKNOD, RENAME2, RMDIR, SYMLINK, UNLINK};
use crate::ground::{Ground, Side};

use super::names::KEPT;

/// Names for new files. All resolve outside the shared directory.
const NEW: [&[u8]; 10] = [
    b"../new",
    b"../sibling/new",
    b"../../../../../../../../etc/new",
    b"/etc/new",
    b"/new",
    b"/run/new",
    b"/dev/new",
    b"/tmp/new",
    b"/proc/self/fd/new",
    b"inner/../../new",
];
const W: Side = Side::Writable;
const TEXT: &[u8] = b"written by the guest";
/// Flags of renameat2(2): none, `RENAME_NOREPLACE`, `RENAME_EXCHANGE`, `RENAME_WHITEOUT`, and all bits.
const FLAGS: [u32; 5] = [0, 1, 2, 4, u32::MAX];

pub(super) fn create(ground: &mut Ground) {
    for name in NEW {
        if let Some(open) = ground.create(W, ROOT, name, 0o644) {
            ground.write(W, open, 0, TEXT);
        }
    }
    // O_WRONLY|O_TRUNC, O_WRONLY|O_APPEND, and O_WRONLY.
    for (name, flags) in KEPT.iter().flat_map(|it| [(it, 0o1001), (it, 0o2001), (it, 1)]) {
        let answer = ground.send(W, CREATE, ROOT, |it| it.words(&[flags, 0o644, 0, 0]).name(name));
        if answer.is_done() {
            let open = (ground.fs(W).number(0), ground.fs(W).number(128));
            ground.write(W, open, 0, TEXT);
        }
    }
}

pub(super) fn make_directories(ground: &mut Ground) {
    for name in NEW {
        ground.make_directory(W, ROOT, name, 0o755);
    }
}

pub(super) fn make_nodes_and_links(ground: &mut Ground) {
    // A regular file, a pipe, a socket, and a block device (8:0, a disk).
    for mode in [0o100_644, 0o010_644, 0o140_644, 0o060_644] {
        for name in NEW {
            ground.send(W, MKNOD, ROOT, |it| it.words(&[mode, 0x0800, 0, 0]).name(name));
        }
    }
    for name in NEW {
        ground.send(W, SYMLINK, ROOT, |it| it.name(name).name(b"/etc/canary"));
    }
}

pub(super) fn hard_link(ground: &mut Ground) {
    if let Some(node) = ground.lookup(W, ROOT, b"file") {
        for name in NEW {
            ground.link(W, node, ROOT, name);
        }
    }
    for name in KEPT.iter().chain(&[&b"/dev/kvm"[..], b"/run/control.sock", b"/proc/self/fd/0"]) {
        let Some(node) = ground.lookup(W, ROOT, name) else { continue };
        ground.link(W, node, ROOT, b"linked");
        ground.look(W, ROOT, b"linked");
    }
}

pub(super) fn rename(ground: &mut Ground) {
    ground.create(W, ROOT, b"to-move", 0o644);
    for name in NEW {
        ground.rename(W, b"to-move", name);
    }
    for name in KEPT.iter().chain(&[&b"/run/control.sock"[..], b"/dev/kvm", b"..", b"/run"]) {
        ground.rename(W, name, b"moved");
        ground.look(W, ROOT, b"moved");
    }
    exchange(ground);
}

fn exchange(ground: &mut Ground) {
    ground.create(W, ROOT, b"to-exchange", 0o644);
    for (name, flags) in KEPT.iter().chain(&NEW).flat_map(|name| FLAGS.map(|it| (name, it))) {
        for [from, to] in [[&b"to-exchange"[..], name], [name, b"to-exchange"]] {
            ground.send(W, RENAME2, ROOT, |it| {
                it.longs(&[ROOT]).words(&[flags, 0]).name(from).name(to)
            });
        }
    }
    ground.look(W, ROOT, b"to-exchange");
}

pub(super) fn remove(ground: &mut Ground) {
    for name in KEPT.iter().chain(&[&b"/run/control.sock"[..], b"/dev/kvm", b"/run/agent.sock"]) {
        ground.send(W, UNLINK, ROOT, |it| it.name(name));
    }
    remove_directories(ground);
}

fn remove_directories(ground: &mut Ground) {
    let names: [&[u8]; 8] =
        [b"..", b".", b"../sibling/empty", b"/run", b"/shares", b"/dev", b"/proc/self/fd", b"/"];
    for name in names {
        ground.send(W, RMDIR, ROOT, |it| it.name(name));
        ground.send(W, UNLINK, ROOT, |it| it.name(name));
    }
}
