//! Attacks that change the attributes of files outside the shared directory, and extended attributes.

use crate::fs::opcode::{GETXATTR, LISTXATTR, REMOVEXATTR, SETXATTR};
use crate::fs::{ROOT, Request};
use crate::ground::{Ground, SIDES, Side};

use super::names::KEPT;

const W: Side = Side::Writable;
/// Masks of the attributes that SETATTR sets (`FATTR_*` in `linux/fuse.h`).
const MODE: u32 = 1;
const OWNER: u32 = 2 | 4;
const SIZE: u32 = 8;
const NOW: u32 = 16 | 32 | 128 | 256;

pub(super) fn outside(ground: &mut Ground) {
    let others: [&[u8]; 7] =
        [b"..", b"/", b"/run", b"/run/control.sock", b"/dev/kvm", b"/proc/self/fd", b"/shares"];
    for name in KEPT.iter().chain(&others) {
        let Some(node) = ground.lookup(W, ROOT, name) else { continue };
        for valid in [MODE, OWNER, SIZE, NOW] {
            ground.set(W, node, valid, 0, [0o777, 1234, 1234]);
        }
        ground.describe(W, node);
    }
    // The directory of the VM's sockets, which the host must still be able to remove after the run.
    if let Some(node) = ground.lookup(W, ROOT, b"/run") {
        ground.set(W, node, MODE, 0, [0; 3]);
    }
}

/// A value of `security.capability` that grants `CAP_DAC_OVERRIDE` (capabilities(7)).
const CAPABILITY: [u8; 20] = [1, 0, 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const NAMES: [&[u8]; 10] = [
    b"security.capability",
    b"security.selinux",
    b"trusted.overlay.opaque",
    b"system.posix_acl_access",
    b"user.overlay.opaque",
    b"user./../..",
    b"/etc/canary",
    b"..",
    b"",
    b"user.a\0b",
];

fn put<'a>(it: Request<'a>, name: &[u8], size: u32) -> Request<'a> {
    it.words(&[size, 0]).name(name).bytes(&CAPABILITY)
}

pub(super) fn extended(ground: &mut Ground) {
    for side in SIDES {
        let Some(node) = ground.lookup(side, ground.base(side), b"file") else { continue };
        for name in NAMES {
            ground.send(side, SETXATTR, node, |it| put(it, name, 20));
            ground.send(side, GETXATTR, node, |it| it.words(&[64, 0]).name(name));
            ground.send(side, REMOVEXATTR, node, |it| it.name(name));
        }
        // The declared size of the value is larger than the request or the answer.
        ground.send(side, SETXATTR, node, |it| put(it, b"user.a", u32::MAX));
        ground.send(side, GETXATTR, node, |it| it.words(&[u32::MAX, 0]).name(b"user.a"));
        ground.send(side, LISTXATTR, node, |it| it.words(&[u32::MAX, 0]));
        ground.send(side, LISTXATTR, node, |it| it.words(&[4096, 0]));
    }
    for name in [&b"/etc/canary"[..], b"/run/control.sock", b"/dev/kvm", b"/", b"/proc/self/fd/0"] {
        let Some(node) = ground.lookup(W, ROOT, name) else { continue };
        ground.send(W, SETXATTR, node, |it| put(it, b"user.a", 20));
        ground.send(W, LISTXATTR, node, |it| it.words(&[4096, 0]));
    }
}
