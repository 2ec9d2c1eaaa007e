//! Attacks on the virtio queue: malformed descriptor chains and rings, and floods of requests.

use crate::fs::opcode::{COPY_FILE_RANGE, FORGET, LOOKUP, READ};
use crate::fs::{Fs, REQUESTS, ROOT};
use crate::ground::{Ground, SIDES, Side};
use crate::virtio::{NEXT, Piece, WRITE};

const W: Side = Side::Writable;
/// The number of look-ups offered at once. Each uses two descriptors.
const BATCH: u16 = 512;
/// The number of files that the flood tries to open: more than the host's limit for one VM.
const MOST: u32 = 100_000;
/// The end of the VM's memory.
const END: u64 = 256 << 20;

/// Sends `ground.flood` look-ups, 512 at a time, and then opens as many files as the host allows.
pub(super) fn flood(ground: &mut Ground) {
    let wanted = ground.flood;
    let fs = ground.fs(W);
    let length = fs.ask(LOOKUP, ROOT).name(b"file").prepare();
    describe_batch(fs, length);
    let mut answered = 0;
    while answered < wanted {
        let more = batch(fs);
        answered += more;
        if more == 0 {
            break;
        }
    }
    ground.say(format_args!("  answered {answered}"));
    let Some(node) = ground.lookup(W, ROOT, b"file") else { return };
    ground.send(W, FORGET, node, |it| it.longs(&[u64::from(answered)]));
    let mut open = 0_u32;
    while open < MOST
        && ground.fs(W).ask(crate::fs::opcode::OPEN, node).words(&[0, 0]).send().is_done()
    {
        open += 1;
    }
    ground.say(format_args!("  opened {open}"));
    ground.look(W, ROOT, b"file");
}

/// Describes `BATCH` chains that share one request and one buffer for the answers.
fn describe_batch(fs: &mut Fs, length: usize) {
    for at in (0..BATCH).map(|it| it * 2) {
        let length = u32::try_from(length).unwrap_or(0);
        let (request, answer) = (fs.request.address(), fs.answer.address());
        fs.queue.describe(at, Piece { address: request, length, flags: NEXT, next: at + 1 });
        fs.queue.describe(at + 1, Piece { address: answer, length: 4096, flags: WRITE, next: 0 });
    }
}

/// Offers `BATCH` chains, and returns how many the device used.
fn batch(fs: &mut Fs) -> u32 {
    (0..BATCH).for_each(|it| fs.queue.offer(it * 2));
    fs.device.notify(REQUESTS);
    let mut answered = 0;
    while answered < u32::from(BATCH) && fs.wait().is_some() {
        answered += 1;
    }
    answered
}

/// Sends chains that loop, that have an empty descriptor, and whose answer comes before the request.
pub(super) fn loops(ground: &mut Ground) {
    for side in SIDES {
        let [read, write] = pieces(ground, side);
        for (one, two) in [
            (Piece { next: 0, ..read }, write),
            (read, Piece { flags: NEXT | WRITE, next: 0, ..write }),
            (read, Piece { flags: NEXT | WRITE, next: 1, ..write }),
            (Piece { flags: NEXT | WRITE, ..write }, Piece { flags: 0, ..read }),
            (Piece { length: 0, ..read }, write),
            (Piece { flags: u16::MAX, ..read }, Piece { flags: u16::MAX, next: 1, ..write }),
        ] {
            chain(ground, side, [one, two]);
        }
    }
}

/// Returns the descriptors of a look-up and of its answer.
fn pieces(ground: &mut Ground, side: Side) -> [Piece; 2] {
    let fs = ground.fs(side);
    let length = fs.ask(LOOKUP, ROOT).name(b"..").prepare();
    let length = u32::try_from(length).unwrap_or(0);
    let (request, answer) = (fs.request.address(), fs.answer.address());
    let read = Piece { address: request, length, flags: NEXT, next: 1 };
    [read, Piece { address: answer, length: 4096, flags: WRITE, next: 1 }]
}

fn chain(ground: &mut Ground, side: Side, [one, two]: [Piece; 2]) {
    let fs = ground.fs(side);
    fs.queue.describe(0, one);
    fs.queue.describe(1, two);
    let answer = fs.exchange(0);
    ground.note(answer);
}

/// Sends chains whose next descriptor does not exist. libkrun never takes them from the ring.
pub(super) fn nowhere(ground: &mut Ground) {
    let [read, write] = pieces(ground, W);
    chain(ground, W, [read, Piece { flags: NEXT | WRITE, next: u16::MAX, ..write }]);
    chain(ground, W, [Piece { next: u16::MAX, ..read }, write]);
}

/// Sends chains with descriptors outside the VM's memory.
pub(super) fn outside(ground: &mut Ground) {
    let [read, write] = pieces(ground, W);
    for (address, length) in [(END - 8, 4096), (END, 4096), (u64::MAX - 8, 4096), (0, u32::MAX)] {
        chain(ground, W, [read, Piece { address, length, ..write }]);
    }
}

/// Sends requests whose answer has no room for even its header.
pub(super) fn no_room(ground: &mut Ground) {
    for room in [0, 8, 15] {
        ground.send(W, LOOKUP, ROOT, |it| it.name(b"file").room(room));
        ground.send(W, READ, ROOT, |it| it.longs(&[0; 5]).room(room));
    }
}

/// Sends COPY_FILE_RANGE with 64-bit flags. The host's system call takes 32 bits.
pub(super) fn large_flags(ground: &mut Ground) {
    let Some((node, handle)) = ground.create(W, ROOT, b"copied", 0o644) else { return };
    for flags in [1, u64::from(u32::MAX), 1 << 40] {
        let longs = [handle, 0, node, handle, 0, 1, flags];
        ground.send(W, COPY_FILE_RANGE, node, |it| it.longs(&longs));
    }
}

/// Announces more chains than the ring has, and then sets rings outside the VM's memory.
pub(super) fn no_rings(ground: &mut Ground) {
    let fs = ground.fs(W);
    fs.queue.set_offered(u16::MAX);
    fs.device.notify(REQUESTS);
    fs.device.begin(0);
    fs.queue.clear();
    fs.device.set_places(REQUESTS, 1024, [END; 3]);
    fs.device.go();
    let answer = fs.exchange(0);
    ground.note(answer);
}
