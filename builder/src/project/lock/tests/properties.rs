//! Properties of every lock.

use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;
use crate::project::lock::Change;

fn any_digest() -> impl Strategy<Value = AnyDigest> {
    any::<(bool, [u8; 32])>().prop_map(|(blake3, bytes)| match blake3 {
        true => Blake3Digest::from_bytes(bytes).into(),
        false => Digest::from_bytes(bytes).into(),
    })
}

const KINDS: [PinKind; 7] = [
    PinKind::Image,
    PinKind::Binary,
    PinKind::Url,
    PinKind::Skill,
    PinKind::EnvFile,
    PinKind::Kernel,
    PinKind::Init,
];

/// Any text without invisible characters.
fn any_text() -> impl Strategy<Value = String> {
    any::<String>().prop_map(|text| safe_text::shown(&text))
}

fn any_entry() -> impl Strategy<Value = LockEntry> {
    let names = select(&["agent", "business", "kernel", "init", "skill:a", "env:.env"][..]);
    (
        prop_oneof![names.prop_map(str::to_owned), any_text()],
        select(&KINDS[..]),
        prop_oneof!["[a-z./:]{0,20}".prop_map_into(), any_text()],
        option::of(select(&Platform::ALL[..])),
        any_digest(),
        any::<u64>(),
        proptest::collection::vec(any::<[u8; 32]>().prop_map(Digest::from_bytes), 0..4),
    )
        .prop_map(|(name, kind, source, platform, digest, size, layers)| LockEntry {
            name,
            kind,
            source,
            platform,
            digest,
            size,
            layers,
        })
}

fn any_lock(entries: std::ops::Range<usize>) -> impl Strategy<Value = Lock> {
    let lock = |(epoch, entries)| {
        let mut lock = Lock::new(epoch);
        for entry in Vec::into_iter(entries) {
            lock.set(entry);
        }
        lock
    };
    (any::<u32>(), proptest::collection::vec(any_entry(), entries)).prop_map(lock)
}

proptest! {
    #[test]
    fn written_locks_round_trip(lock in any_lock(0..8)) {
        let text = lock.write();
        let read = Lock::parse(&text);
        prop_assert_eq!(read.as_ref(), Ok(&lock));
        prop_assert_eq!(read.unwrap().write(), text);
    }

    #[test]
    fn a_name_or_source_with_an_invisible_character_is_refused(
        entry in any_entry(),
        hostile in select(&['\n', '\t', '\u{0}', '\u{1b}', '\u{7f}', '\u{85}', '\u{202e}', '\u{feff}'][..]),
        at in any::<Index>(),
        source: bool,
    ) {
        let mut entry = entry;
        let text = if source { &mut entry.source } else { &mut entry.name };
        text.insert(text.floor_char_boundary(at.index(text.len() + 1)), hostile);
        let mut lock = Lock::new(1);
        lock.set(entry);
        prop_assert!(Lock::parse(&lock.write()).is_err());
    }

    #[test]
    fn the_order_of_setting_leaves_no_trace(lock in any_lock(0..8)) {
        let mut reversed = Lock::new(lock.epoch());
        for entry in lock.entries().rev() {
            reversed.set(entry.clone());
        }
        prop_assert_eq!(reversed, lock);
    }

    /// A line of an entry that is written twice or not at all.
    #[test]
    fn a_line_lost_or_doubled_is_found(entry in any_entry(), at in any::<Index>(), doubled: bool) {
        let entry = LockEntry { platform: None, layers: Vec::new(), ..entry };
        let text = lock([entry]).write();
        let mut lines: Vec<&str> = text.lines().collect();
        let fields = lines.iter().position(|line| *line == "[[entry]]").unwrap() + 1;
        let chosen = fields + at.index(lines.len() - fields);
        match doubled {
            true => lines.insert(chosen, lines[chosen]),
            false => drop(lines.remove(chosen)),
        }
        let changed = lines.join("\n");
        prop_assert!(Lock::parse(&changed).is_err(), "{}", changed);
    }

    #[test]
    fn changes_lead_from_one_lock_to_the_other(old in any_lock(0..6), new in any_lock(0..6)) {
        let mut patched = Lock::new(1);
        let changes = old.changes(&new);
        let removed = |entry: &&LockEntry| changes.contains(&Change::Removed(entry));
        for entry in old.entries().filter(|entry| !removed(entry)) {
            patched.set(entry.clone());
        }
        for change in &changes {
            if let Change::Added(entry) | Change::Changed { new: entry, .. } = change {
                patched.set((*entry).clone());
            }
        }
        prop_assert_eq!(patched.entries().as_slice(), new.entries().as_slice());
    }
}
