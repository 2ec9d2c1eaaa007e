//! Records, and the blobs to which they refer.

use super::*;

#[test]
fn a_record_keeps_its_blobs_and_is_as_young_as_who_refers_to_it() {
    let place = TestStore::new();
    let [layer, made, other] = ["layer", "made", "other"].map(|it| place.blob(it, 3));
    let decoded = place.record(1, &[layer], &[]);
    place.open().data_writer().unwrap().commit(&decoded).unwrap();
    let built = place.record(2, &[made], &[decoded]);
    place.age(DAY);
    let between = place.record(3, &[other], &[]);
    place.age(DAY);
    // A build that takes its result from the store reads only this record.
    place.open().action(&built).unwrap();
    place.age(DAY);
    let size = 3 * (3 * UNIT + RECORD);
    let report = place.collect_to(size - 1);
    assert_eq!((report.before, report.removed_records, report.removed_blobs), (size, 1, 1));
    assert!(!place.has(other) && !place.has_record(between));
    assert!(place.has(layer) && place.has(made) && place.has_record(decoded));
    assert_eq!(place.collect_to(0).after, 0);
    assert_eq!(list(&place.root().join("data")), [""; 0]);
}

#[test]
fn a_blob_stays_until_the_last_that_refers_to_it_goes() {
    let place = TestStore::new();
    let blob = place.blob("a", 3);
    let record = place.record(1, &[blob], &[]);
    place.age(DAY);
    let made = place.make_box(&[blob]);
    place.age(DAY);
    let report = place.collect_to(8 * UNIT);
    assert_eq!((report.removed_records, report.removed_blobs, report.after), (1, 0, 8 * UNIT));
    assert!(!place.has_record(record) && place.has(blob) && place.has_box(made));
}

#[test]
fn a_store_without_anything_that_refers_to_its_blobs_is_left_alone() {
    let place = TestStore::new();
    let blob = place.blob("a", 1);
    place.age(DAY);
    let collect = || place.collector().collect(&Lines, &Rules { cap: Some(0), ..Rules::default() });
    assert!(matches!(collect(), Err(StoreError::NoRoots(_))));
    assert!(place.has(blob));
    // A record of another version has no references either.
    let record = place.root().join("actions").join(Digest::of(b"key").hex());
    fs::write(&record, [Digest::of(b"v").as_bytes().as_slice(), b"v"].concat()).unwrap();
    place.age(DAY);
    assert!(matches!(collect(), Err(StoreError::NoRoots(_))));
    place.record(1, &[], &[]);
    place.age(DAY);
    collect().unwrap();
    assert!(!place.has(blob) && !record.exists());
    // The last collection removed everything, so blobs of a build that was killed afterwards do not
    // indicate damage.
    let blob = place.blob("a", 1);
    place.age(DAY);
    collect().unwrap();
    assert!(!place.has(blob));
}
