//! Attacks with requests that no client of FUSE sends, and with wrong lengths, offsets and versions in them.

use crate::fs::opcode::{
    COPY_FILE_RANGE, CREATE, FALLOCATE, GETATTR, INIT, IOCTL, LOOKUP, MKDIR, READ, READDIR,
    READDIRPLUS, REMOVEMAPPING, RENAME, SETUPMAPPING, SYMLINK, WRITE,
};
use crate::fs::{Fs, ROOT};
use crate::ground::{Ground, SIDES, Side};

const W: Side = Side::Writable;
const MOST: u64 = u64::MAX;

pub(super) fn unknown(ground: &mut Ground) {
    for side in SIDES {
        for opcode in (0..64).filter(|it| !is_made(*it)).chain([1000, 4096, 1 << 24, u32::MAX]) {
            ground.send(side, opcode, ground.base(side), |it| it.longs(&[0; 8]));
        }
    }
}

/// Returns whether another attack sends `opcode`, or `opcode` only ends the session.
const fn is_made(opcode: u32) -> bool {
    matches!(opcode, 1..=6 | 8..=18 | 20..=30 | 34 | 35 | 38 | 39 | 42..=49)
}

/// Commands of IOCTL: `VIRTIO_IOC_EXPORT_FD`, which libkrun implements, `FS_IOC_GETFLAGS`, `FS_IOC_SETFLAGS`, `TIOCSTI`,
/// `KVM_RUN`, `FICLONE`, and 0, which is no command.
const COMMANDS: [u32; 7] = [0x8010_7601, 0x8008_6601, 0x4008_6602, 0x5412, 0xae80, 0x4004_9409, 0];

pub(super) fn mappings(ground: &mut Ground) {
    for side in SIDES {
        let node = ground.lookup(side, ground.base(side), b"file").unwrap_or(0);
        let handle = ground.open(side, node, 0).map_or(0, |(_, handle)| handle);
        for longs in [[handle, 0, 4096, 3, 0], [handle, MOST, MOST, MOST, MOST]] {
            ground.send(side, SETUPMAPPING, node, |it| it.longs(&longs));
        }
        for count in [1, u32::MAX] {
            ground.send(side, REMOVEMAPPING, node, |it| it.words(&[count]).longs(&[0, MOST]));
        }
        for command in COMMANDS {
            for size in [0, 16, u32::MAX] {
                ground.send(side, IOCTL, node, |it| {
                    it.longs(&[handle]).words(&[0, command]).longs(&[MOST]).words(&[size, size])
                });
            }
        }
    }
}

pub(super) fn sizes(ground: &mut Ground) {
    for side in SIDES {
        let node = ground.lookup(side, ground.base(side), b"file").unwrap_or(0);
        let handle = ground.open(side, node, 0).map_or(0, |(_, handle)| handle);
        for (size, offset) in [(u32::MAX, 0), (1 << 20, 0), (4096, MOST), (4096, MOST >> 1), (0, 0)]
        {
            for opcode in [READ, WRITE] {
                ground.send(side, opcode, node, |it| sized(it, handle, offset, size));
            }
        }
        list(ground, side);
        ground.send(side, FALLOCATE, node, |it| {
            it.longs(&[handle, MOST, MOST]).words(&[u32::MAX, 0])
        });
        ground.send(side, COPY_FILE_RANGE, node, |it| {
            it.longs(&[handle, MOST, node, handle, MOST, MOST, 0])
        });
    }
}

fn sized(
    it: crate::fs::Request<'_>,
    handle: u64,
    offset: u64,
    size: u32,
) -> crate::fs::Request<'_> {
    it.longs(&[handle, offset]).words(&[size, 0]).longs(&[0]).words(&[0, 0])
}

fn list(ground: &mut Ground, side: Side) {
    let answer = ground.send(side, crate::fs::opcode::OPENDIR, ROOT, |it| it.words(&[0, 0]));
    if !answer.is_done() {
        return;
    }
    let handle = ground.fs(side).number(0);
    for (size, offset) in [(u32::MAX, 0), (1, 0), (4096, MOST), (4096, 1 << 40), (4096, 0)] {
        for opcode in [READDIR, READDIRPLUS] {
            ground.send(side, opcode, ground.base(side), |it| sized(it, handle, offset, size));
        }
    }
}

pub(super) fn lengths(ground: &mut Ground) {
    let claims = [0, 1, 39, 40, 41, 48, 4096, 1 << 20, (1 << 20) + 4097, 1 << 31, u32::MAX];
    for side in SIDES {
        for claim in claims {
            for opcode in [LOOKUP, SYMLINK, MKDIR, RENAME, CREATE, GETATTR, WRITE, INIT] {
                ground.send(side, opcode, ground.base(side), |it| {
                    it.words(&[0, 0]).name(b"../canary").name(b"new").claim(claim)
                });
            }
        }
        // The answer's buffer has room for the header only.
        for opcode in [LOOKUP, GETATTR] {
            ground
                .send(side, opcode, ground.base(side), |it| it.name(b"file").longs(&[0]).room(16));
        }
    }
}

pub(super) fn again(ground: &mut Ground) {
    for side in SIDES {
        for version in [[7, 0], [6, 0], [8, 0], [0, 0], [u32::MAX, u32::MAX]] {
            let answer = ground.fs(side).init(version, 0);
            ground.note(answer);
        }
        for flags in [0, u32::MAX] {
            let answer = ground.fs(side).init(Fs::VERSION, flags);
            ground.note(answer);
            ground.look(side, ground.base(side), b"..");
        }
    }
    // The request's header has another user's ID.
    for user in [1, 1000, 0x7000_0001, u32::MAX] {
        let create = [0o2, 0o644, 0, 0];
        let made = ground.fs(W).ask(CREATE, ROOT).words(&create).name(b"of-another").user(user);
        let answer = made.send();
        ground.note(answer);
    }
}
