//! Attacks that write to the read-only share.

use crate::fs::ROOT;
use crate::fs::opcode::{
    COPY_FILE_RANGE, CREATE, FALLOCATE, IOCTL, MKDIR, MKNOD, OPENDIR, RENAME2, RMDIR, SETXATTR,
    SYMLINK, UNLINK,
};
use crate::ground::{Ground, Side};

const R: Side = Side::ReadOnly;
const W: Side = Side::Writable;
/// Flags of open(2) that write, truncate or create a file.
const FLAGS: [u32; 8] = [1, 2, 3, 0o1000, 0o1001, 0o101, 0o100, 0o2020_0002];

pub(super) fn write(ground: &mut Ground) {
    let Some(node) = ground.lookup(R, ground.base(R), b"file") else { return };
    for flags in FLAGS {
        for node in [node, ground.base(R)] {
            let Some(open) = ground.open(R, node, flags) else { continue };
            ground.write(R, open, 0, b"written");
            ground.release(R, open);
        }
        ground.send(R, OPENDIR, node, |it| it.words(&[flags, 0]));
    }
    names(ground);
    ground.link(R, node, ground.base(R), b"new");
    for valid in [1, 6, 8, 48, 0x1b0] {
        ground.set(R, node, valid, 0, [0o777, 1234, 1234]);
    }
    ground.send(R, SETXATTR, node, |it| it.words(&[1, 0]).name(b"user.a").bytes(b"x"));
    by_handle(ground, node);
}

fn names(ground: &mut Ground) {
    let words = |mode: u32| [mode, 0, 0, 0];
    ground.send(R, CREATE, ground.base(R), |it| it.words(&[0o1, 0o644, 0, 0]).name(b"new"));
    ground.send(R, CREATE, ground.base(R), |it| it.words(&[0o1001, 0o644, 0, 0]).name(b"file"));
    ground.send(R, MKDIR, ground.base(R), |it| it.words(&[0o755, 0]).name(b"new"));
    ground.send(R, MKNOD, ground.base(R), |it| it.words(&words(0o100_644)).name(b"new"));
    ground.send(R, SYMLINK, ground.base(R), |it| it.name(b"new").name(b"file"));
    ground.rename(R, b"0/file", b"0/new");
    let base = ground.base(R);
    ground.send(R, RENAME2, ground.base(R), |it| {
        it.longs(&[base]).words(&[2, 0]).name(b"file").name(b"inner")
    });
    ground.send(R, UNLINK, ground.base(R), |it| it.name(b"file"));
    ground.send(R, RMDIR, ground.base(R), |it| it.name(b"inner"));
}

/// Tries to write with a handle that was opened for reading.
fn by_handle(ground: &mut Ground, node: u64) {
    let Some((_, handle)) = ground.open(R, node, 0) else { return };
    ground.write(R, (node, handle), 0, b"written");
    ground.set(R, node, 8 | 64, handle, [0; 3]);
    ground.set(R, node, 1 | 64, handle, [0o777, 0, 0]);
    ground.send(R, FALLOCATE, node, |it| it.longs(&[handle, 0, 1 << 20]).words(&[0, 0]));
    ground.send(R, COPY_FILE_RANGE, node, |it| it.longs(&[handle, 0, node, handle, 0, 4, 0]));
    // The command is FS_IOC_SETFLAGS.
    ground.send(R, IOCTL, node, |it| it.longs(&[handle]).words(&[0, 0x4008_6602]).longs(&[0, 0]));
}

/// Tries to change the read-only share's files through the writable share's device, on which libkrun allows writes.
pub(super) fn through_the_other(ground: &mut Ground) {
    let places: [&[u8]; 4] =
        [b"../ro/0/file", b"../../ro/0/file", b"/shares/ro/0/file", b"/srv/shares/ro/0/file"];
    for name in places {
        let Some(node) = ground.lookup(W, ROOT, name) else { continue };
        for flags in [1, 2, 0o1001] {
            let Some(open) = ground.open(W, node, flags) else { continue };
            ground.write(W, open, 0, b"written through the other");
        }
        ground.set(W, node, 8, 0, [0; 3]);
        ground.set(W, node, 1, 0, [0o777, 0, 0]);
        ground.link(W, node, ROOT, b"of-the-other");
        ground.send(W, CREATE, ROOT, |it| it.words(&[0o1001, 0o644, 0, 0]).name(name));
        ground.rename(W, name, b"of-the-other");
        ground.send(W, UNLINK, ROOT, |it| it.name(name));
    }
}

pub(super) fn hard_link(ground: &mut Ground) {
    let Some(node) = ground.lookup(R, ground.base(R), b"file") else { return };
    ground.link(R, node, ground.base(R), b"linked");
    // The number is a node of the read-only device. It must not name the same file on the writable device.
    ground.link(W, node, ROOT, b"linked");
    for parent in [0, ground.base(R), node, u64::MAX] {
        ground.link(R, node, parent, b"../../rw/0/linked");
        ground.link(R, node, parent, b"/srv/shares/rw/linked");
    }
}
