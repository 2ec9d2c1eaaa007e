//! What differs between two locks.

use super::*;
use crate::lock::{Change, Field};

#[test]
fn equal_locks_have_no_changes() {
    assert_eq!(example().changes(&example()), []);
}

#[test]
fn additions_removals_and_changes_come_in_the_order_of_the_lock() {
    let old = example();
    let mut new = example();
    let added = entry("caddy", Kind::Binary, "bin/caddy", Some(Platform::LinuxAmd64));
    new.set(added.clone());
    let removed = new.remove("agent-tool", Some(Platform::LinuxAmd64)).unwrap();
    let skill = Entry { digest: Digest::Blake3([1; 32]), size: 1, ..skill(&old) };
    new.set(skill.clone());
    assert_eq!(
        old.changes(&new),
        [
            Change::Removed(&removed),
            Change::Added(&added),
            Change::Changed {
                old: old.get("skill:greet", None).unwrap(),
                new: &skill,
                fields: vec![Field::Digest, Field::Size],
                layers_added: vec![],
                layers_removed: vec![],
            },
        ]
    );
    assert_eq!(old.changes(&new)[2].entry(), &skill);
    let back: Vec<_> = new.changes(&old);
    assert_eq!((&back[0], &back[1]), (&Change::Added(&removed), &Change::Removed(&added)));
}

fn skill(lock: &Lock) -> Entry {
    lock.get("skill:greet", None).unwrap().clone()
}

/// Returns the fields, the layers added and the layers removed between two lists of layers.
fn between(old: &[u8], new: &[u8]) -> (Vec<Field>, Vec<u8>, Vec<u8>) {
    let lock = |layers: &[u8]| {
        let mut lock = Lock::new(1);
        let layers = layers.iter().map(|byte| Digest::Sha256([*byte; 32])).collect();
        lock.set(Entry { layers, ..entry("agent", Kind::Image, "a", None) });
        lock
    };
    let (old, new) = (lock(old), lock(new));
    match &old.changes(&new)[..] {
        [Change::Changed { fields, layers_added, layers_removed, .. }] => {
            let bytes = |layers: &[Digest]| layers.iter().map(|one| one.as_bytes()[0]).collect();
            (fields.clone(), bytes(layers_added), bytes(layers_removed))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn layers_are_compared_as_lists_in_which_one_may_occur_twice() {
    let layers = || vec![Field::Layers];
    assert_eq!(between(&[1, 2, 3], &[1, 4, 5]), (layers(), vec![4, 5], vec![2, 3]));
    assert_eq!(between(&[1, 2], &[2, 1]), (layers(), vec![], vec![]));
    assert_eq!(between(&[1, 1], &[1]), (layers(), vec![], vec![1]));
    assert_eq!(between(&[], &[1, 1]), (layers(), vec![1, 1], vec![]));
}

#[test]
fn every_field_can_change_and_has_its_name() {
    let old = example();
    let entry = Entry {
        kind: Kind::Binary,
        source: "x".to_owned(),
        digest: Digest::Sha256([0; 32]),
        size: 0,
        layers: vec![Digest::Sha256([0; 32])],
        ..skill(&old)
    };
    let mut new = example();
    new.set(entry);
    match &old.changes(&new)[..] {
        [Change::Changed { fields, .. }] => assert_eq!(fields, &Field::ALL),
        other => panic!("{other:?}"),
    }
    let text = old.write();
    assert!(Field::ALL.iter().all(|field| text.contains(&format!("\n{field} = "))));
}
