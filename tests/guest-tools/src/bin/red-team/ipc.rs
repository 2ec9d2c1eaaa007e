//! Objects of System V IPC, and POSIX message queues. Processes find them by a key or a name, not by a path.

use box_init::sys::zeros::{SystemV, get};
use nix::errno::Errno;
use nix::mqueue::{MQ_OFlag, mq_close, mq_open};
use nix::sys::stat::Mode;

/// The key of the System V objects.
const KEY: i32 = 0x5EED;
const QUEUE: &str = "/seed";
const KINDS: [(&str, SystemV); 3] = [
    ("memory", SystemV::Memory),
    ("semaphores", SystemV::Semaphores),
    ("messages", SystemV::Messages),
];

/// Creates one object of each type, which all users may access.
pub(crate) fn make() {
    let create = MQ_OFlag::O_CREAT | MQ_OFlag::O_RDWR;
    for (name, kind) in KINDS {
        say(name, get(kind, KEY, true));
    }
    let mode = Mode::from_bits_truncate(0o666);
    say("queue", mq_open(QUEUE, create, mode, None).and_then(mq_close));
}

/// Looks for the objects that [`make`] creates.
pub(crate) fn seek() {
    for (name, kind) in KINDS {
        say(name, get(kind, KEY, false));
    }
    say("queue", mq_open(QUEUE, MQ_OFlag::O_RDWR, Mode::empty(), None).and_then(mq_close));
}

fn say(name: &str, result: Result<(), Errno>) {
    match result {
        Ok(()) => println!("{name} there"),
        Err(error) => println!("{name} {error:?}"),
    }
}
