//! Attacks with set-user-ID files, device nodes, very large files, and files whose open blocks.

use crate::fs::ROOT;
use crate::fs::opcode::{CREATE, FALLOCATE};
use crate::ground::{Ground, Side};

const W: Side = Side::Writable;
const MODE: u32 = 1;
const BY_HANDLE: u32 = 64;

/// Creates set-user-ID files, device nodes, sockets and pipes.
pub(super) fn privileged(ground: &mut Ground) {
    for mode in [0o4755, 0o2755, 0o6777, 0o1777] {
        if let Some((node, handle)) = ground.create(W, ROOT, b"privileged", mode) {
            ground.write(W, (node, handle), 0, b"#!/bin/sh\n");
            ground.set(W, node, MODE, 0, [mode, 0, 0]);
            ground.set(W, node, MODE | BY_HANDLE, handle, [mode, 0, 0]);
            ground.describe(W, node);
        }
        ground.make_directory(W, ROOT, b"privileged-directory", mode);
        ground.make_node(W, b"privileged-node", 0o100_000 | mode, 0);
    }
    // Block and character devices, sockets and pipes, the last two also with set-user-ID, and an invalid type.
    // The devices are a disk, KVM and null.
    for mode in [0o060_666, 0o020_666, 0o140_666, 0o010_666, 0o144_755, 0o014_755, 0o170_666] {
        for device in [0x0800, 0x0ae8, 0x0103] {
            let Some(node) = ground.make_node(W, b"special", mode, device) else { continue };
            ground.set(W, node, MODE, 0, [0o6777, 0, 0]);
            ground.read_node(W, node);
        }
    }
    ground.send(W, CREATE, ROOT, |it| it.words(&[0o2, 0o060_666, 0, 0]).name(b"special-by-create"));
}

/// Writes and allocates at offsets of 1 TiB and more.
pub(super) fn without_end(ground: &mut Ground) {
    let Some((node, handle)) = ground.create(W, ROOT, b"large", 0o644) else { return };
    for offset in [1 << 40, u64::MAX >> 1, u64::MAX] {
        ground.write(W, (node, handle), offset, b"x");
        ground.send(W, FALLOCATE, node, |it| it.longs(&[handle, offset, 1]).words(&[0, 0]));
    }
}

/// Opens a socket, a device and a pipe of the host, where open(2) can block.
pub(super) fn waiting(ground: &mut Ground) {
    for name in [&b"socket"[..], b"device"] {
        let Some(node) = ground.lookup(W, ROOT, name) else { continue };
        for flags in [0, 1, 2] {
            let Some(open) = ground.open(W, node, flags) else { continue };
            ground.read(W, open, 0);
            ground.write(W, open, 0, b"x");
        }
    }
    let Some(node) = ground.lookup(W, ROOT, b"pipe") else { return };
    // With O_NONBLOCK, and then without it.
    for flags in [0o4000, 0o4001, 0o4002, 0] {
        if let Some(open) = ground.open(W, node, flags) {
            ground.release(W, open);
        }
    }
}
