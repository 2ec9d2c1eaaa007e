//! Attacks that look up names outside the shared directory, and malformed names.

use core::fmt::Write as _;

use crate::fs::ROOT;
use crate::fs::opcode::{LOOKUP, OPEN};
use crate::ground::{Ground, SIDES, Side};
use crate::text::Line;

/// Names of the host's files that no guest may reach.
pub(super) const KEPT: [&[u8]; 6] = [
    b"../canary",
    b"../sibling/canary",
    b"../../../../../../../../../../../../../../../../etc/canary",
    b"/etc/canary",
    b"inner/../../canary",
    b"/srv/state/canary",
];
/// The number of the VMM's file descriptors to try. libkrun's come first, the shared directories' are among the last.
const DESCRIPTORS: u32 = 160;

fn look_at(ground: &mut Ground, names: &[&[u8]]) {
    for side in SIDES {
        for name in names {
            ground.look(side, ground.base(side), name);
        }
    }
}

pub(super) fn parents(ground: &mut Ground) {
    look_at(
        ground,
        &[b"..", b"../..", b"../../../../../../../..", KEPT[0], KEPT[1], KEPT[2], b"."],
    );
}

pub(super) fn absolute(ground: &mut Ground) {
    look_at(ground, &[b"/", b"/etc", b"/etc/passwd", b"/srv", b"/tmp", KEPT[3], KEPT[5]]);
}

pub(super) fn through_a_directory(ground: &mut Ground) {
    let names: [&[u8]; 4] =
        [b"inner/..", b"inner/../..", KEPT[4], b"inner/../../../../../../../etc/canary"];
    look_at(ground, &names);
    for side in SIDES {
        // Also looks up `..` one component at a time.
        let inner = ground.lookup(side, ground.base(side), b"inner");
        let mut node = inner.unwrap_or(0);
        for _ in 0..8 {
            node = ground.lookup(side, node, b"..").unwrap_or(node);
        }
        ground.look(side, node, b"etc/canary");
        ground.look(side, node, b"canary");
    }
}

/// Looks up `/proc/self/fd/N` followed by `rest` for each file descriptor N of the VMM.
fn of_descriptors(ground: &mut Ground, rest: &str) {
    for descriptor in 0..DESCRIPTORS {
        let mut name = Line::new();
        write!(name, "/proc/self/fd/{descriptor}{rest}").ok();
        ground.look(Side::Writable, ROOT, name.bytes());
    }
}

pub(super) fn open_files(ground: &mut Ground) {
    look_at(ground, &[b"/proc/self/fd"]);
    of_descriptors(ground, "");
}

pub(super) fn through_open_files(ground: &mut Ground) {
    for rest in ["/.", "/..", "/../canary", "/../../../../../../../../etc/canary"] {
        of_descriptors(ground, rest);
    }
}

pub(super) fn processes(ground: &mut Ground) {
    look_at(
        ground,
        &[
            b"/proc",
            b"/proc/self",
            b"/proc/self/root/etc/canary",
            b"/proc/self/cwd/etc/canary",
            b"/proc/self/exe",
            b"/proc/self/maps",
            b"/proc/self/environ",
            b"/proc/self/mem",
            b"/proc/1/root/etc/canary",
            b"/proc/self/fd/../root/etc/canary",
            b"/proc/self/fd/../../1/environ",
            b"/proc/thread-self/root/etc/canary",
            b"/proc/sysrq-trigger",
            b"/sys",
        ],
    );
}

pub(super) fn devices_and_sockets(ground: &mut Ground) {
    look_at(ground, &[b"/dev", b"/dev/null", b"/dev/mem", b"/dev/vda", b"/dev/kvm"]);
    look_at(
        ground,
        &[b"/run", b"/run/control.sock", b"/run/agent.sock", b"/run/../supervisor.sock"],
    );
    // The VMM has `/dev/kvm` open. Its ioctl(2) commands cannot be sent with FUSE, so only reading and writing remain.
    if let Some(node) = ground.lookup(Side::Writable, ROOT, b"/dev/kvm")
        && let Some(open) = ground.open(Side::Writable, node, 2)
    {
        ground.read(Side::Writable, open, 0);
        ground.write(Side::Writable, open, 0, b"x");
    }
}

pub(super) fn other_shares(ground: &mut Ground) {
    for side in SIDES {
        for number in 0..4 {
            for prefix in ["../", "../../ro/", "../../rw/", "/shares/ro/", "/shares/rw/"] {
                let mut name = Line::new();
                write!(name, "{prefix}{number}").ok();
                ground.look(side, ground.base(side), name.bytes());
            }
        }
    }
}

pub(super) fn odd(ground: &mut Ground) {
    look_at(
        ground,
        &[b"", b"file\0/../..", b"\0", b"file/", b"file/.", b"file/..", b"//", b"\xff\xfe"],
    );
    for side in SIDES {
        for length in [255, 256, 4095, 4096, 65_536, 200_000] {
            long(ground, side, length);
        }
        // A name with no NUL at its end, and no name at all.
        ground.send(side, LOOKUP, ground.base(side), |it| it.bytes(b"file"));
        ground.send(side, LOOKUP, ground.base(side), |it| it);
        ground.send(side, OPEN, ground.base(side), |it| it);
    }
}

/// Looks up two names of `length` bytes: one of repeated `/.././/.`, and one of `x`.
fn long(ground: &mut Ground, side: Side, length: usize) {
    let piece = [b'/', b'.', b'.', b'/', b'.', b'/', b'/', b'.'];
    ground.send(side, LOOKUP, ground.base(side), |it| {
        let it = (0..length / piece.len()).fold(it, |it, _| it.bytes(&piece));
        (0..length % piece.len()).fold(it, |it, _| it.bytes(b"x")).bytes(&[0])
    });
    ground.send(side, LOOKUP, ground.base(side), |it| {
        (0..length).fold(it, |it, _| it.bytes(b"x")).bytes(&[0])
    });
}
