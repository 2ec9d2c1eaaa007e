//! Attacks with nodes and handles that do not exist, are released already, or are forgotten more often than looked up.

use crate::fs::opcode::{
    ACCESS, BATCH_FORGET, DESTROY, FLUSH, FORGET, FSYNC, FSYNCDIR, GETATTR, LISTXATTR, LOOKUP,
    LSEEK, MKDIR, OPEN, OPENDIR, READDIR, READDIRPLUS, READLINK, RELEASEDIR, RMDIR, STATFS, UNLINK,
};
use crate::fs::{Fs, ROOT};
use crate::ground::{Ground, SIDES, Side};

const W: Side = Side::Writable;

pub(super) fn none(ground: &mut Ground) {
    for side in SIDES {
        let freed = ground.lookup(side, ground.base(side), b"file").unwrap_or(0);
        ground.send(side, FORGET, freed, |it| it.longs(&[1]));
        for node in [0, freed, 2, 1 << 32, u64::MAX >> 1, u64::MAX] {
            on(ground, side, node);
        }
    }
}

fn on(ground: &mut Ground, side: Side, node: u64) {
    ground.look(side, node, b"..");
    for opcode in [GETATTR, OPEN, OPENDIR, ACCESS, LISTXATTR, STATFS, READLINK] {
        ground.send(side, opcode, node, |it| it.words(&[0, 0]).longs(&[0]));
    }
    for opcode in [UNLINK, RMDIR] {
        ground.send(side, opcode, node, |it| it.name(b"../canary"));
    }
    ground.send(side, MKDIR, node, |it| it.words(&[0o755, 0]).name(b"../new"));
    ground.create(side, node, b"../new", 0o644);
    ground.set(side, node, 1, 0, [0o777, 0, 0]);
    ground.link(side, node, ground.base(side), b"linked");
    ground.link(side, ground.base(side), node, b"linked");
}

pub(super) fn handles(ground: &mut Ground) {
    for side in SIDES {
        let Some(node) = ground.lookup(side, ground.base(side), b"file") else { continue };
        let Some(open) = ground.open(side, node, 0) else { continue };
        ground.release(side, open);
        ground.release(side, open);
        // A handle of another node, a released handle, the handle of a virtual file (0), and two that do not exist.
        let Some((_, other)) = ground.open(side, node, 0) else { continue };
        for (node, handle) in [(ROOT, other), open, (node, 0), (node, 1 << 40), (node, u64::MAX)] {
            by(ground, side, node, handle);
        }
    }
}

fn by(ground: &mut Ground, side: Side, node: u64, handle: u64) {
    ground.read(side, (node, handle), 0);
    ground.write(side, (node, handle), 0, b"x");
    for opcode in [FLUSH, FSYNC, FSYNCDIR, LSEEK, RELEASEDIR] {
        ground.send(side, opcode, node, |it| it.longs(&[handle, 0, 0]));
    }
    for opcode in [READDIR, READDIRPLUS] {
        let words = [4096, 0];
        ground.send(side, opcode, node, |it| {
            it.longs(&[handle, 0]).words(&words).longs(&[0]).words(&[0, 0])
        });
    }
    ground.set(side, node, 8 | 64, handle, [0; 3]);
}

pub(super) fn forget(ground: &mut Ground) {
    for side in SIDES {
        let node = ground.lookup(side, ground.base(side), b"file").unwrap_or(0);
        for (node, times) in [(node, u64::MAX), (node, 1), (u64::MAX, u64::MAX), (0, 0)] {
            ground.send(side, FORGET, node, |it| it.longs(&[times]));
        }
        for count in [0, 1, 2, 1 << 16, u32::MAX] {
            let words = [count, 0];
            ground.send(side, BATCH_FORGET, 0, |it| it.words(&words).longs(&[node, u64::MAX]));
        }
        // Forgets the shared directory itself.
        ground.send(side, FORGET, ground.base(side), |it| it.longs(&[u64::MAX]));
        ground.look(side, ground.base(side), b"..");
        ground.send(side, LOOKUP, ground.base(side), |it| it.name(b"file"));
    }
    ground.send(W, DESTROY, 0, |it| it);
    ground.look(W, ROOT, b"file");
    let answer = ground.fs(W).init(Fs::VERSION, 0);
    ground.note(answer);
    ground.lookup(W, ROOT, b"file");
}
