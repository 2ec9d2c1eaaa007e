//! Content that is kept although it is old.

use super::*;

#[test]
fn a_box_that_was_made_within_the_hour_is_kept() {
    let place = TestStore::new();
    let made = place.make_box(&[place.blob("a", 1)]);
    let report = place.collect_to(0);
    assert_eq!(reason(&report), [Some(Why::Young)]);
    assert!(report.is_over() && report.kept_bytes == report.after);
    place.age(2 * HOUR);
    place.name("young", made);
    assert_eq!(reason(&place.collect_to(0)), [Some(Why::Young)], "a name is young, too");
    place.age(2 * HOUR);
    assert_eq!(reason(&place.collect_to(0)), []);
}

#[test]
fn a_box_that_runs_is_kept_as_long_as_it_does() {
    let place = TestStore::new();
    let blob = place.blob("a", 1);
    let made = place.make_box(&[blob]);
    place.name("hello", made);
    let held: [Held; 2] = [(); 2].map(|()| hold(&place.root(), &made).unwrap());
    place.age(2 * DAY);
    assert_eq!(reason(&place.collect_to(0)), [Some(Why::Running)]);
    let [one, other] = held;
    drop(one);
    assert_eq!(reason(&place.collect_to(0)), [Some(Why::Running)]);
    assert!(place.has(blob) && place.names() == ["hello"]);
    drop(other);
    assert_eq!(place.collect_to(0).after, 0);
    assert!(hold(&place.root(), &made).is_none(), "it is gone");
}

#[test]
fn a_thin_directory_keeps_its_box_until_it_is_gone() {
    let place = TestStore::new();
    let blob = place.blob("a", 1);
    let made = place.make_box(&[blob]);
    let thin = place.thin("hello.box", made);
    place.age(2 * DAY);
    let report = place.collect_to(0);
    assert_eq!(
        (reason(&report), &report.kept[0].directories),
        (vec![Some(Why::Thin)], &vec![thin.clone()])
    );
    // The box is kept even if the store has lost the directory of the box.
    fs::remove_dir_all(place.root().join("boxes").join(made.hex())).unwrap();
    assert_eq!(reason(&place.collect_to(0)), [Some(Why::Thin)]);
    assert!(place.has(blob));
    fs::remove_dir_all(&thin).unwrap();
    assert_eq!(place.collect_to(0).after, 0);
    assert_eq!(list(&place.root().join("roots")), [""; 0]);
}

#[test]
fn a_note_stands_for_all_thin_directories_in_one() {
    let place = TestStore::new();
    let made = ["a", "b"].map(|it| place.make_box(&[place.blob(it, 1)]));
    let all = place.root().with_file_name("all");
    place.open().add_root(&all).unwrap();
    for (name, digest) in ["one", "other"].iter().zip(made) {
        fs::create_dir_all(all.join(name)).unwrap();
        fs::write(all.join(name).join("box"), digest.hex()).unwrap();
    }
    place.age(2 * DAY);
    assert_eq!(reason(&place.collect_to(0)), [Some(Why::Thin); 2]);
    let rules = Rules { boxes: [made[0]].into(), ..Rules::default() };
    place.collect(&rules);
    assert!(!place.has_box(made[0]));
    assert_eq!(reason(&place.collect_to(0)), [Some(Why::Thin)], "the note is still there");
    fs::remove_dir_all(all.join("other")).unwrap();
    assert_eq!(place.collect_to(0).after, 0);
    assert_eq!(list(&place.root().join("roots")), [""; 0]);
}

#[test]
fn a_build_may_note_a_directory_that_it_has_not_made_yet() {
    let place = TestStore::new();
    let made = place.make_box(&[place.blob("a", 1)]);
    place.open().add_root(Path::new("/none/hello.box")).unwrap();
    place.collect_to(0);
    assert_eq!(list(&place.root().join("roots")).len(), 1);
    place.age(2 * HOUR);
    // The next build notes the directory again.
    place.open().add_root(Path::new("/none/hello.box")).unwrap();
    place.collect_to(0);
    assert_eq!(list(&place.root().join("roots")).len(), 1);
    assert!(!place.has_box(made));
}

#[test]
fn what_a_process_uses_that_has_the_store_open_is_kept() {
    let place = TestStore::new();
    let [found, old] = ["found", "old"].map(|it| place.blob(it, 1));
    let kept = place.record(1, &[place.blob("recorded", 1)], &[]);
    let gone = place.record(2, &[old], &[]);
    place.age(DAY);
    let store = place.open();
    assert!(store.size(&found).is_some() && store.action(&kept).unwrap().is_some());
    let new = store.put(b"new").unwrap();
    let mut data = store.data_writer().unwrap();
    std::io::Write::write_all(&mut data, b"data").unwrap();
    data.commit(&KeyHasher::new("test", 9).finish()).unwrap();
    let report = place.collect_to(0);
    assert_eq!((report.removed_records, report.removed_blobs), (1, 1));
    assert!(place.has(found) && place.has(new) && place.has_record(kept));
    assert!(!place.has_record(gone) && !place.has(old));
    assert_eq!((report.used_bytes, report.kept_bytes), (report.after, report.after));
    assert_eq!(store.action(&gone).unwrap(), None);
    drop(store);
    place.age(Duration::from_secs(5));
    assert_eq!(place.collect_to(0).after, 0);
}

#[test]
fn a_box_that_is_being_published_is_waited_for() {
    let place = TestStore::new();
    let [blob, old] = ["a", "old"].map(|it| place.blob(it, 1));
    place.record(1, &[old], &[]);
    place.age(DAY);
    let store = place.open();
    let publishing = store.publish(&[(blob, UNIT)]).unwrap();
    let collected = thread::scope(|scope| {
        let collecting = scope.spawn(|| place.collect_to(0));
        thread::sleep(Duration::from_millis(200));
        assert!(place.has(blob) && place.has(old), "nothing is removed meanwhile");
        // The publishing process can check for more blobs while the collection waits.
        assert!(store.size(&blob).is_some() && store.size(&Digest::of(b"none")).is_none());
        drop(publishing);
        collecting.join().unwrap()
    });
    assert!(place.has(blob) && !place.has(old), "{collected:?}");
    let missing = store.publish(&[(blob, UNIT + 1)]).unwrap_err();
    assert!(StoreError::is_missing(&missing));
}

#[test]
fn what_a_person_tagged_pulled_or_loaded_is_kept() {
    let place = TestStore::new();
    let boxes =
        ["tagged", "loaded", "pulled", "built"].map(|it| place.make_box(&[place.blob(it, 1)]));
    let file = place.root().join("version");
    let owners = [Owner::Tagged(file.clone()), Owner::Archive, Owner::Boxfile(file)];
    for (owner, at) in owners.into_iter().zip([0, 1, 3]) {
        let digest = boxes[at];
        place.open().name_box(&format!("name{at}"), &Named { digest, owner }).unwrap();
    }
    let reference = "ghcr.io/acme/agent:v1".to_owned();
    let pulled = Pulled {
        reference,
        digest: boxes[2],
        registry_digest: boxes[0],
        is_asked: true,
        is_loaded: false,
    };
    place.open().note_pulled(&pulled).unwrap();
    // A later fetch by a start does not change that the user pulled the box.
    place.open().note_pulled(&Pulled { is_asked: false, ..pulled.clone() }).unwrap();
    place.age(30 * DAY);
    let rules = Rules { older_than: Some(DAY), cap: Some(0), ..Rules::default() };
    let report = place.collect(&rules);
    assert_eq!(report.removed.iter().map(|it| it.digest).collect::<Vec<_>>(), [boxes[3]]);
    assert_eq!(reason(&report), [Some(Why::Tagged); 3]);
    assert!(report.is_over());
    // A pulled box is removed by its reference.
    let label = Label::Pulled(pulled.reference.clone());
    let names = [(label, boxes[2])].into();
    let report = place.collect(&Rules { names, ..Rules::default() });
    assert_eq!(report.removed_names, [pulled.reference]);
    assert!(list(&place.root().join("pulled")).is_empty());
    assert!(!place.has_box(boxes[2]) && place.has_box(boxes[0]) && place.has_box(boxes[1]));
}
