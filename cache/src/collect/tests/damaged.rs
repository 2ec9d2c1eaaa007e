//! Stores that were left incomplete, damaged or changed by other programs.

use super::*;

#[test]
fn a_collection_that_was_killed_is_finished_by_the_next_one() {
    let place = TestStore::new();
    let blob = place.blob("a", 1);
    place.make_box(&[blob]);
    place.age(DAY);
    // The state after a kill: the box was moved, its blobs were not, and no moved file was deleted.
    File::options().write(true).open(place.root().join("gate")).unwrap().set_len(1).unwrap();
    let taken = place.root().join("boxes");
    let [name] = &list(&taken)[..] else { panic!() };
    let gone = place.root().join("tmp").join(format!("gone-boxes-{name}"));
    fs::rename(taken.join(name), &gone).unwrap();
    fs::write(place.root().join("tmp/gone-blobs-00"), "bytes").unwrap();
    place.collect_to(0);
    assert_eq!(list(&place.root().join("tmp")), [""; 0]);
    assert_eq!(list(&place.root().join("blobs")), [""; 0]);
}

#[test]
fn a_long_collection_lets_others_in_between() {
    let place = TestStore::new();
    let blobs: Vec<_> = (0..400).map(|it| place.blob(&it.to_string(), 1)).collect();
    place.records(&blobs);
    let made = place.make_box(&blobs[..3]);
    place.name("hello", made);
    place.age(DAY);
    let collector = place.collector();
    let rules = Rules { cap: Some(0), ..Rules::default() };
    let report = collector.collect_in(&Lines, &rules, Duration::ZERO).unwrap();
    assert_eq!((report.removed_records, report.removed_blobs), (400, 401));
    assert_eq!((report.removed.len(), &report.removed_names[..]), (1, &["hello".to_owned()][..]));
    assert_eq!((report.before, report.after), (401 * UNIT + 400 * RECORD + BOX, 0));
    assert_eq!(list(&place.root().join("blobs")), [""; 0]);
}

#[test]
fn what_is_not_the_stores_is_left_where_it_is() {
    let place = TestStore::new();
    let made = place.make_box(&[place.blob("a", 1)]);
    // The store's own note that it was built here keeps no box.
    let store = Store::open(&place.root()).unwrap();
    store.note_built(&store.publish(&[]).unwrap(), &made).unwrap();
    drop(store);
    let precious = place.directory.path().join("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("file"), "precious").unwrap();
    let hex = |number: u8| Digest::from_bytes([number; 32]).hex();
    for part in ["blobs", "actions", "data", "names", "roots", "boxes"] {
        let at = |name: &str| place.root().join(part).join(name);
        fs::create_dir(at("directory")).unwrap();
        fs::write(at("file.txt"), "x").unwrap();
        symlink(&precious, at(&hex(1))).unwrap();
        symlink(precious.join("file"), at(&hex(2))).unwrap();
    }
    fs::create_dir(place.root().join("blobs").join(hex(3))).unwrap();
    let foreign = place.make_box(&[place.blob("b", 1)]);
    symlink(&precious, place.root().join("boxes").join(foreign.hex()).join("link")).unwrap();
    place.age(DAY);
    let report = place.collect_to(0);
    assert_eq!(reason(&report), [Some(Why::Foreign)]);
    assert_eq!(report.foreign, 6 * 4 + 1 + 1);
    assert!(!place.has_box(made) && place.has_box(foreign));
    assert_eq!(fs::read_to_string(precious.join("file")).unwrap(), "precious");
    for part in ["blobs", "actions", "data", "names", "roots", "boxes"] {
        let names = list(&place.root().join(part));
        for name in ["directory", "file.txt", &hex(1), &hex(2)] {
            assert!(names.iter().any(|it| it == name), "{part}/{name}");
        }
    }
}

#[test]
fn a_store_that_another_user_can_change_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = TestStore::new();
    for part in ["", "blobs", "actions", "data", "names", "boxes", "roots", "tmp", "sessions"] {
        let path = place.root().join(part);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let error = Collector::open(&place.root()).unwrap_err();
        assert!(matches!(error, StoreError::Shared(_)), "{part}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    }
    fs::rename(place.root().join("data"), place.root().join("moved")).unwrap();
    symlink("moved", place.root().join("data")).unwrap();
    assert!(matches!(Collector::open(&place.root()), Err(StoreError::File(_))));
    assert!(Collector::open(&place.directory.path().join("none")).unwrap().is_none());
}

#[test]
fn a_box_whose_manifest_is_damaged_keeps_nothing_and_stops_nothing() {
    let place = TestStore::new();
    let blob = place.blob("a", 1);
    let made = place.make_box(&[blob]);
    let path = place.root().join("blobs").join(made.hex());
    fs::remove_file(&path).unwrap();
    fs::write(&path, "damaged").unwrap();
    place.collect(&Rules::default());
    assert!(place.has_box(made));
    place.age(DAY);
    assert_eq!(place.collect_to(0).after, 0);
}
