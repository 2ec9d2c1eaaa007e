//! The differences between two locks.

use super::*;
use crate::project::lock::Change;

#[test]
fn equal_locks_have_no_changes() {
    assert_eq!(example().changes(&example()), []);
}

#[test]
fn additions_removals_and_changes_come_in_the_order_of_the_lock() {
    let old = example();
    let added = entry("caddy", PinKind::Binary, "bin/caddy", Some(Platform::LinuxAmd64));
    let skill = old.get("skill:greet", None).unwrap();
    let changed =
        LockEntry { digest: Blake3Digest::from_bytes([1; 32]).into(), size: 1, ..skill.clone() };
    let removed = old.get("agent-tool", Some(Platform::LinuxAmd64)).unwrap();
    let mut new = lock(old.entries().filter(|entry| *entry != removed).cloned());
    new.set(added.clone());
    new.set(changed.clone());
    assert_eq!(
        old.changes(&new),
        [
            Change::Removed(removed),
            Change::Added(&added),
            Change::Changed { old: skill, new: &changed },
        ]
    );
    let back = new.changes(&old);
    assert_eq!(back[..2], [Change::Added(removed), Change::Removed(&added)]);
}
