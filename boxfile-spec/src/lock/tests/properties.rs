//! What holds for every lock.

use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;
use crate::lock::Change;

fn any_digest() -> impl Strategy<Value = Digest> {
    let digest =
        |(blake3, bytes)| if blake3 { Digest::Blake3(bytes) } else { Digest::Sha256(bytes) };
    any::<(bool, [u8; 32])>().prop_map(digest)
}

/// Any text that is what it looks like.
fn any_text() -> impl Strategy<Value = String> {
    any::<String>().prop_map(|text| crate::shown(&text))
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let names = select(&["agent", "business", "kernel", "init", "skill:a", "env:.env"][..]);
    (
        prop_oneof![names.prop_map(str::to_owned), any_text()],
        select(&Kind::ALL[..]),
        prop_oneof!["[a-z./:]{0,20}".prop_map_into(), any_text()],
        option::of(select(&Platform::ALL[..])),
        any_digest(),
        any::<u64>(),
        proptest::collection::vec(any_digest(), 0..4),
    )
        .prop_map(|(name, kind, source, platform, digest, size, layers)| Entry {
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

/// Tells whether a line of the text holds a value of an entry; the lines of the head do not.
fn holds_value(number: usize, line: &str) -> bool {
    number > HEAD && (line.starts_with("    \"") || line.contains(" = ")) && !line.ends_with('[')
}

/// The number of the last line in front of the entries.
const HEAD: usize = 4;

/// Replaces one line of a text; what an index names is chosen among the lines with a value.
fn with_line(text: &str, line: Index, change: impl Fn(&str) -> String) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let values: Vec<usize> = (0..lines.len()).filter(|at| holds_value(*at, lines[*at])).collect();
    let chosen = *line.get(&values);
    let changed = |(at, line): (usize, &&str)| match at == chosen {
        true => change(line),
        false => format!("{line}\n"),
    };
    lines.iter().enumerate().map(changed).collect()
}

/// Changes one character of a line's value into another.
fn with_character(line: &str, at: Index, to: char) -> String {
    let start = line.find(['"']).or_else(|| line.find("= ").map(|at| at + 1)).unwrap() + 1;
    let end = line.trim_end_matches(['"', ',']).len().max(start);
    let value: Vec<char> = line[start..end].chars().collect();
    let mut changed = value.clone();
    match value.len() {
        0 => changed.push(to),
        length => changed[at.index(length)] = to,
    }
    let changed: String = changed.into_iter().collect();
    format!("{}{changed}{}\n", &line[..start], &line[end..])
}

proptest! {
    #[test]
    fn what_is_written_reads_back(lock in any_lock(0..8)) {
        let text = lock.write();
        let read = Lock::parse(&text);
        prop_assert_eq!(read.as_ref(), Ok(&lock));
        prop_assert_eq!(read.unwrap().write(), text);
    }

    #[test]
    fn a_name_or_source_that_is_not_what_it_looks_like_is_refused(
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
        prop_assert_eq!(Lock::salvage(&lock.write()).lock, Some(Lock::new(1)));
    }

    #[test]
    fn the_order_of_setting_leaves_no_trace(lock in any_lock(0..8)) {
        let mut reversed = Lock::new(lock.epoch());
        for entry in lock.entries().rev() {
            reversed.set(entry.clone());
        }
        prop_assert_eq!(reversed, lock);
    }

    #[test]
    fn a_value_changed_by_hand_is_found(
        lock in any_lock(1..5),
        line in any::<Index>(),
        at in any::<Index>(),
        to in select(&['0', '1', '9', 'a', 'f', 'z', '-', ' '][..]),
    ) {
        let text = lock.write();
        let changed = with_line(&text, line, |line| with_character(line, at, to));
        prop_assume!(changed != text);
        prop_assert!(Lock::parse(&changed).is_err(), "{}", changed);
    }

    #[test]
    fn a_line_lost_or_doubled_is_found(
        lock in any_lock(1..5),
        line in any::<Index>(),
        doubled: bool,
    ) {
        let text = lock.write();
        let copies = if doubled { 2 } else { 0 };
        let changed = with_line(&text, line, |line| format!("{line}\n").repeat(copies));
        prop_assert!(Lock::parse(&changed).is_err(), "{}", changed);
    }

    #[test]
    fn a_field_of_another_entry_is_found(lock in any_lock(1..5), other in any_entry(), field in 0..7) {
        let mut entry = lock.entries().next().unwrap().clone();
        let text = lock.write();
        let check = text.lines().find(|line| line.starts_with("check")).unwrap();
        match field {
            0 => entry.name = other.name,
            1 => entry.kind = other.kind,
            2 => entry.source = other.source,
            3 => entry.platform = other.platform,
            4 => entry.digest = other.digest,
            5 => entry.size = other.size,
            _ => entry.layers = other.layers,
        }
        prop_assume!(&entry != lock.entries().next().unwrap());
        let mut mixed = Lock::new(lock.epoch());
        mixed.set(entry);
        let mixed = mixed.write();
        let own = mixed.lines().find(|line| line.starts_with("check")).unwrap();
        prop_assert!(Lock::parse(&mixed).is_ok());
        prop_assert!(Lock::parse(&mixed.replace(own, check)).is_err());
    }

    #[test]
    fn another_epoch_is_found(lock in any_lock(1..4), epoch: u32) {
        prop_assume!(epoch != lock.epoch());
        let (from, to) = (format!("epoch = {}\n", lock.epoch()), format!("epoch = {epoch}\n"));
        prop_assert!(Lock::parse(&lock.write().replacen(&from, &to, 1)).is_err());
    }

    #[test]
    fn changes_lead_from_one_lock_to_the_other(old in any_lock(0..6), new in any_lock(0..6)) {
        let mut patched = old.clone();
        for change in old.changes(&new) {
            let (name, platform) = change.entry().key();
            match change {
                Change::Removed(_) => patched.remove(name, platform),
                Change::Added(entry) | Change::Changed { new: entry, .. } => patched.set(entry.clone()),
            };
        }
        prop_assert_eq!(patched.entries().as_slice(), new.entries().as_slice());
    }
}
