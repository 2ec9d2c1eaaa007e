//! Boxes and names that the user asks to remove.

use super::*;

#[test]
fn what_is_asked_for_goes_with_all_that_keeps_it() {
    let place = TestStore::new();
    let [shared, own] = ["shared", "own"].map(|it| place.blob(it, 1));
    let made = place.make_box(&[shared, own]);
    let decoded = place.record(1, &[shared], &[]);
    let built = place.record(2, &[made, own], &[decoded]);
    let thin = place.thin("hello.box", made);
    ["a", "b"].iter().for_each(|name| place.name(name, made));
    let held = hold(&place.root(), &made);
    place.age(Duration::from_secs(5));
    let named = |name: &str, means| {
        let names = [(Label::Name(name.to_owned()), means)].into();
        Rules { names, ..Rules::default() }
    };
    // The name is kept, because the request is for another box than the one that has the name.
    assert_eq!(place.collect(&named("a", shared)).removed_names, [""; 0]);
    let report = place.collect(&named("a", made));
    assert_eq!((report.removed_names, place.names()), (vec!["a".to_owned()], vec!["b".to_owned()]));
    assert_eq!(report.kept[0].names, ["b"]);
    assert!(place.has_box(made) && place.has_record(built));
    // A running box and its last name are kept.
    for rules in [named("b", made), Rules { boxes: [made].into(), ..Rules::default() }] {
        let report = place.collect(&rules);
        assert_eq!(
            (reason(&report), place.names()),
            (vec![Some(Why::Running)], vec!["b".to_owned()])
        );
    }
    let report = place.collect(&Rules { is_forced: true, ..named("b", made) });
    assert_eq!(report.removed[0].directories, [thin]);
    assert!(!place.has_box(made) && !place.has_record(built) && !place.has(own));
    assert!(place.has_record(decoded) && place.has(shared), "the next build uses it");
    assert!(place.names().is_empty() && list(&place.root().join("roots")).is_empty());
    drop(held);
}

#[test]
fn a_box_of_several_names_goes_as_a_whole_only_if_all_are_asked_for() {
    let place = TestStore::new();
    let made = place.make_box(&[place.blob("a", 1)]);
    ["a", "b"].iter().for_each(|name| place.name(name, made));
    place.age(DAY);
    let by_digest = Rules { boxes: [made].into(), ..Rules::default() };
    place.collect(&by_digest);
    assert!(place.has_box(made) && place.names().len() == 2);
    let names = ["a", "b"].map(|it| (Label::Name(it.to_owned()), made)).into();
    let report = place.collect(&Rules { names, dry_run: true, ..Rules::default() });
    assert_eq!((report.removed.len(), report.removed_names.len()), (1, 2));
    place.collect(&Rules { is_forced: true, ..by_digest });
    assert!(!place.has_box(made) && place.names().is_empty());
}

#[test]
fn what_was_asked_for_once_does_not_go_again_when_it_comes_back() {
    let place = TestStore::new();
    let blobs: Vec<_> = (0..300).map(|at| place.blob(&at.to_string(), 1)).collect();
    let made = place.make_box(&blobs);
    for at in 0..200 {
        place.record(at, &[made, blobs[0]], &[]);
    }
    place.name("a", made);
    let names = [(Label::Name("a".to_owned()), made)].into();
    // The deadline of each round has already passed, so the collection takes several rounds.
    let report =
        place.collector().collect_in(&Lines, &Rules { names, ..Rules::default() }, Duration::ZERO);
    let report = report.unwrap();
    assert_eq!((report.removed.len(), report.removed_records), (1, 200));
    assert_eq!(
        (list(&place.root().join("blobs")), list(&place.root().join("actions"))),
        (vec![], vec![])
    );
}

#[test]
fn a_name_of_a_box_that_is_gone_goes_when_it_is_old() {
    let place = TestStore::new();
    place.name("lost", Digest::of(b"none"));
    place.record(1, &[], &[]);
    place.collect(&Rules::default());
    assert_eq!(place.names(), ["lost"]);
    place.age(2 * HOUR);
    place.collect(&Rules::default());
    assert_eq!(place.names(), [""; 0]);
}
