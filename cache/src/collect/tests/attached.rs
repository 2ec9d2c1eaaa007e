//! Attachments live and die with their box.

use super::*;
use crate::{Attachment, Label};

impl TestStore {
    /// Attaches a document of `units` units to a box, and returns its digest.
    fn attach(&self, digest: Digest, name: &str, units: u64) -> Digest {
        let mut bytes = name.as_bytes().to_vec();
        bytes.resize(usize::try_from(units * UNIT).unwrap(), b' ');
        let attachment = Attachment::new("application/x", bytes);
        assert!(self.open().attach(&digest, &attachment).unwrap());
        attachment.info().digest
    }

    fn has_list(&self, digest: Digest) -> bool {
        self.root().join("attached").join(digest.hex()).exists()
    }
}

#[test]
fn a_kept_box_keeps_its_attachments_and_a_removed_one_loses_them() {
    let place = TestStore::new();
    let [kept, removed] = ["kept", "removed"].map(|it| place.make_box(&[place.blob(it, 1)]));
    let owner = Owner::Archive;
    place.open().name_box("kept", &Named { digest: kept, owner }).unwrap();
    let of_kept = place.attach(kept, "signature", 2);
    let of_removed = [1, 2].map(|it| place.attach(removed, "other", it));
    let sizes = place.collector().box_sizes(&Lines).unwrap();
    assert_eq!((sizes[&kept].own, sizes[&removed].own), (4 * UNIT, 5 * UNIT));
    place.age(DAY);
    // The attachments do not make the box of yesterday a kept one.
    let report = place.collect_to(0);
    assert_eq!(reason(&report), [Some(Why::Tagged)]);
    assert_eq!((report.removed[0].digest, report.removed[0].bytes), (removed, 5 * UNIT));
    // The box with its list, and its three blobs.
    assert_eq!(report.after, BOX + UNIT + 4 * UNIT);
    assert!(place.has(of_kept) && place.has_list(kept));
    assert!(of_removed.iter().all(|it| !place.has(*it)) && !place.has_list(removed));
    assert_eq!(place.open().attachments(&kept).unwrap().len(), 1);
}

#[test]
fn the_last_name_of_a_box_takes_its_attachments_along() {
    let place = TestStore::new();
    let digest = place.make_box(&[place.blob("a", 1)]);
    for name in ["one", "two"] {
        place.name(name, digest);
    }
    let signature = place.attach(digest, "signature", 1);
    let without = |name: &str| Rules {
        names: [(Label::Name(name.to_owned()), digest)].into(),
        ..Rules::default()
    };
    place.collect(&without("one"));
    assert!(place.has(signature) && place.has_list(digest));
    place.collect(&without("two"));
    assert!(!place.has(signature) && !place.has_list(digest) && !place.has_box(digest));
}

#[test]
fn an_attachment_of_no_box_is_kept_for_an_hour_and_one_of_a_thin_directory_as_long_as_that() {
    let place = TestStore::new();
    let (absent, thin) = (Digest::of(b"absent"), place.make_box(&[place.blob("a", 1)]));
    let directory = place.thin("thin", thin);
    place.open().forget_box(&thin).unwrap();
    let [orphan, signature] = [absent, thin].map(|it| place.attach(it, &it.hex(), 1));
    place.collect_to(0);
    assert!(place.has(orphan) && place.has_list(absent));
    place.age(2 * HOUR);
    place.collect_to(0);
    assert!(!place.has(orphan) && !place.has_list(absent));
    assert!(place.has(signature) && place.has_list(thin));
    fs::remove_dir_all(directory).unwrap();
    place.age(2 * HOUR);
    place.collect_to(0);
    assert!(!place.has(signature));
    place.collect_to(0);
    assert!(!place.has_list(thin));
}

#[test]
fn a_damaged_list_goes_with_its_box_and_a_foreign_file_stays() {
    let place = TestStore::new();
    let digest = place.make_box(&[place.blob("a", 1)]);
    let signature = place.attach(digest, "signature", 1);
    fs::write(place.root().join("attached").join(digest.hex()), "damaged").unwrap();
    fs::write(place.root().join("attached/foreign"), "").unwrap();
    let report = place.collect(&Rules::default());
    assert_eq!((report.foreign, reason(&report)), (1, vec![Some(Why::Young)]));
    assert!(!place.has(signature), "nothing refers to it");
    place.age(DAY);
    place.collect_to(0);
    assert!(!place.has_list(digest) && place.root().join("attached/foreign").exists());
}
