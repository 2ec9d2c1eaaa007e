//! What is removed, in which order and how much.

use super::*;

#[test]
fn the_least_recently_used_goes_first_and_no_more_than_has_to() {
    let place = TestStore::new();
    let shared = place.blob("shared", 10);
    let boxes: Vec<_> = (0..4)
        .map(|at| {
            let own = place.blob(&at.to_string(), 5);
            let made = place.make_box(&[shared, own]);
            place.name(&format!("box{at}"), made);
            place.age(DAY);
            made
        })
        .collect();
    // Each box has a blob of 5 units, a manifest of 1 unit, and a directory of 4 units.
    let size = 10 * UNIT + 4 * (6 * UNIT + BOX);
    assert_eq!(place.collector().size().unwrap(), size - 4 * BOX);
    drop(hold(&place.root(), &boxes[0]));
    place.age(DAY);
    let report = place.collect_to(size - 1);
    assert_eq!((report.before, report.after), (size, size - 10 * UNIT));
    let gone: Vec<_> = report.removed.iter().map(|it| it.digest).collect();
    assert_eq!(gone, [boxes[1]], "the first one was used since");
    assert_eq!(report.removed_names, ["box1"]);
    assert_eq!(place.names(), ["box0", "box2", "box3"]);
    let report = place.collect_to(0);
    assert_eq!((report.after, report.removed.len(), report.removed_blobs), (0, 3, 7));
    assert!(!report.is_over() && place.names().is_empty());
    assert_eq!(list(&place.root().join("blobs")), [""; 0]);
    assert_eq!(list(&place.root().join("boxes")), [""; 0]);
    assert_eq!(list(&place.root().join("tmp")), [""; 0]);
}

#[test]
fn a_store_that_is_small_enough_loses_only_what_nothing_refers_to() {
    let place = TestStore::new();
    let (used, unused) = (place.blob("used", 1), place.blob("unused", 1));
    let made = place.make_box(&[used]);
    place.age(30 * DAY);
    let report = place.collect_to(1 << 30);
    assert_eq!((report.removed_blobs, report.removed.len()), (1, 0));
    assert!(place.has(used) && place.has_box(made) && !place.has(unused));
}

#[test]
fn what_was_not_used_for_long_goes_if_that_is_asked_for() {
    let place = TestStore::new();
    let old = place.make_box(&[place.blob("old", 1)]);
    place.age(2 * DAY);
    let new = place.make_box(&[place.blob("new", 1)]);
    place.age(2 * HOUR);
    place.collect(&Rules { older_than: Some(DAY), ..Rules::default() });
    assert!(place.has_box(new) && !place.has_box(old));
    let young = place.make_box(&[place.blob("young", 1)]);
    place.collect(&Rules { older_than: Some(HOUR), ..Rules::default() });
    assert!(place.has_box(young) && !place.has_box(new));
    // An `older_than` of less than an hour also applies to young boxes. Here, a box is removed if its age is more than zero.
    place.age(Duration::from_secs(1));
    place.collect(&Rules { older_than: Some(Duration::ZERO), ..Rules::default() });
    assert!(!place.has_box(young));
}

#[test]
fn what_a_start_fetched_goes_by_age() {
    let place = TestStore::new();
    let digest = place.make_box(&[place.blob("a", 1)]);
    let reference = "ghcr.io/acme/agent:v1".to_owned();
    let pulled =
        Pulled { reference, digest, registry_digest: digest, is_asked: false, is_loaded: false };
    place.open().note_pulled(&pulled).unwrap();
    assert_eq!(place.open().pulled(&pulled.reference).unwrap(), Some(pulled.clone()));
    place.age(30 * DAY);
    assert_eq!(place.collect_to(0).removed_names, [pulled.reference]);
    assert!(!place.has_box(digest));
}

#[test]
fn a_dry_run_removes_nothing_and_says_what_would_go() {
    let place = TestStore::new();
    let blob = place.blob("a", 1);
    let made = place.make_box(&[blob]);
    place.age(DAY);
    let rules = Rules { cap: Some(0), dry_run: true, ..Rules::default() };
    let dry = place.collect(&rules);
    assert!(place.has(blob) && place.has_box(made));
    assert_eq!(dry, place.collect(&Rules { dry_run: false, ..rules }));
    assert!(!place.has(blob));
}

#[test]
fn a_time_in_the_future_is_no_use() {
    let place = TestStore::new();
    let made = place.make_box(&[place.blob("a", 1)]);
    let directory = File::open(place.root().join("boxes").join(made.hex())).unwrap();
    directory.set_modified(SystemTime::now() + 30 * DAY).unwrap();
    assert_eq!(reason(&place.collect_to(0)), []);
}

#[test]
fn own_and_shared_bytes_of_a_box() {
    let place = TestStore::new();
    let [shared, own] = [place.blob("shared", 3), place.blob("own", 5)];
    let one = place.make_box(&[shared, own]);
    let other = place.make_box(&[shared]);
    let sizes = place.collector().box_sizes(&Lines).unwrap();
    assert_eq!(sizes[&one], BoxSize { own: 6 * UNIT, shared: 3 * UNIT });
    assert_eq!(sizes[&other], BoxSize { own: UNIT, shared: 3 * UNIT });
}
