//! Watches a directory with inotify(7), as programs do that rebuild changed files, and counts the events.
//!
//! ```text
//! watcher DIR     prints "watching", and once a file `end` was created in DIR, the number of events of each type
//! ```
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a program for tests")]

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

fn main() -> nix::Result<()> {
    let directory = env::args_os().nth(1).map(PathBuf::from).ok_or(nix::Error::EINVAL)?;
    let kinds = [
        ("made", AddWatchFlags::IN_CREATE),
        ("written", AddWatchFlags::IN_CLOSE_WRITE),
        ("moved away", AddWatchFlags::IN_MOVED_FROM),
        ("moved here", AddWatchFlags::IN_MOVED_TO),
        ("removed", AddWatchFlags::IN_DELETE),
        ("lost", AddWatchFlags::IN_Q_OVERFLOW),
    ];
    let inotify = Inotify::init(InitFlags::empty())?;
    let all = kinds.iter().map(|(_, flag)| *flag).collect::<AddWatchFlags>();
    inotify.add_watch(&directory, all)?;
    println!("watching");
    let mut heard: BTreeMap<&str, u32> = BTreeMap::new();
    loop {
        for event in inotify.read_events()? {
            if event.name.as_deref().is_some_and(|name| name == "end") {
                heard.iter().for_each(|(kind, count)| println!("{count} {kind}"));
                return Ok(());
            }
            for (kind, _) in kinds.iter().filter(|(_, flag)| event.mask.contains(*flag)) {
                *heard.entry(kind).or_default() += 1;
            }
        }
    }
}
