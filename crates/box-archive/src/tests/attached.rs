//! Attachments of boxes in files.

use box_cache::{Attachment, AttachmentInfo, MAX_ATTACHMENT, MAX_ATTACHMENTS};
use box_contract::Descriptor;
use box_contract::manifest::{OCI_MANIFEST_TYPE, blob_name};
use box_registry::{EMPTY, Referrer};
use serde_json::{Value, json};

use super::*;
use crate::attached;

const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

fn signature(text: &str) -> Attachment {
    let annotations = [("dev.sigstore.bundle.content".to_owned(), "dsse-envelope".to_owned())];
    let annotations = annotations.into();
    Attachment { annotations, ..Attachment::new(BUNDLE, text.as_bytes().to_vec()) }
}

/// Returns an archive of the boxes `one` and `two`, and the digest of `one`, which has attachments.
fn signed(attachments: &[Attachment]) -> (Vec<u8>, Digest) {
    let boxes = boxes(&["one", "two"]);
    let documents = documents(&boxes);
    let mut bundle = Bundle::of(documents.iter().zip([Some("one"), Some("two")])).unwrap();
    bundle.attach(&documents[0].digest, attachments.to_vec()).unwrap();
    let mut bytes = Vec::new();
    let saved = bundle.write_archive(&mut bytes).unwrap();
    assert_eq!((saved.attachments, saved.blobs), (attachments.len(), members(&bytes).len() - 2));
    let sizes: u64 = members(&bytes)[2..].iter().map(|(_, data)| data.len() as u64).sum();
    assert_eq!(saved.bytes, sizes);
    (bytes, documents[0].digest)
}

impl Stage {
    fn attached(&self, digest: &Digest) -> Vec<Attachment> {
        let store = self.store();
        let listed = store.attachments(digest).unwrap();
        listed.iter().map(|it| store.read_attachment(it).unwrap()).collect()
    }
}

#[test]
fn attachments_travel_with_their_box() {
    let attachments = [signature("one"), Attachment::new("text/spdx", b"two".to_vec())];
    let (bytes, digest) = signed(&attachments);
    for is_stream in [false, true] {
        let stage = Stage::new();
        for _ in 0..2 {
            let load = if is_stream { stage.load_stream(&bytes) } else { stage.load_file(&bytes) };
            let mut counts: Vec<_> = load.unwrap().iter().map(|it| it.attachments).collect();
            counts.sort_unstable();
            assert_eq!(counts, [0, 2]);
        }
        let mut kept = stage.attached(&digest);
        kept.sort_by_key(|it| it.bytes.clone());
        assert_eq!(kept, attachments);
        assert_eq!(stage.found().len(), 2);
    }
}

#[test]
fn a_directory_with_a_box_and_its_signature_is_a_box() {
    let stage = Stage::new();
    let boxes = boxes(&["one"]);
    let documents = documents(&boxes);
    let mut bundle = Bundle::of([(&documents[0], None)]).unwrap();
    bundle.attach(&documents[0].digest, vec![signature("one")]).unwrap();
    bundle.write_directory(&stage.path("directory")).unwrap();
    assert_eq!(OpenBox::open(&stage.path("directory")).unwrap().digest, documents[0].digest);
    let archive = Archive::open(&stage.path("directory")).unwrap();
    assert_eq!(archive.one_box(None).unwrap().attachments, [signature("one")]);
    stage.load(&archive).unwrap();
    assert_eq!(stage.attached(&documents[0].digest), [signature("one")]);
}

#[test]
fn the_attachments_come_after_the_manifests_and_before_the_other_blobs() {
    let (bytes, digest) = signed(&[signature("a"), signature("b")]);
    let names: Vec<_> = members(&bytes).into_iter().map(|(name, _)| name).collect();
    let mut content = [&b"a"[..], b"b", EMPTY].map(|it| blob_name(&Digest::of(it)));
    content.sort();
    assert_eq!(names[6..9], content);
    assert!(names[4..6].is_sorted() && names[9..].is_sorted());
    let index: Value = serde_json::from_slice(&members(&bytes)[1].1).unwrap();
    let index = index["manifests"].as_array().unwrap();
    assert_eq!(index.len(), 4);
    for entry in &index[2..] {
        assert_eq!((&entry["artifactType"], &entry["annotations"]), (&json!(BUNDLE), &json!(null)));
        let name = blob_name(&entry["digest"].as_str().unwrap().parse().unwrap());
        let manifest = &members(&bytes).into_iter().find(|it| it.0 == name).unwrap().1;
        assert_eq!(Referrer::of(manifest).unwrap().subject, digest);
    }
    // Without attachments, the bytes are those of an archive that knows none.
    assert!(signed(&[]).0 == archive(&["one", "two"]));
}

/// A document about a box may be a document of the box.
#[test]
fn an_attachment_with_the_bytes_of_a_manifest_or_another_blob_of_the_box() {
    let (plain, _) = signed(&[]);
    let all = members(&plain).split_off(2);
    let attachments: Vec<_> = all
        .into_iter()
        .filter(|(_, data)| data.len() < 100_000)
        .map(|(_, data)| Attachment::new("a/b", data))
        .collect();
    assert!(attachments.len() > 4);
    let (bytes, digest) = signed(&attachments);
    for is_stream in [false, true] {
        let stage = Stage::new();
        let load = if is_stream { stage.load_stream(&bytes) } else { stage.load_file(&bytes) };
        load.unwrap();
        assert_eq!(stage.attached(&digest).len(), attachments.len());
        assert_eq!(stage.found().len(), 2);
    }
}

/// Returns the archive of a signed box with changed members: the layout, the index, the manifests of the two boxes and of the
/// attachment, and then its content.
fn changed(change: impl FnOnce(&mut Vec<(String, Vec<u8>)>)) -> Vec<u8> {
    let mut all = members(&signed(&[signature("signature")]).0);
    change(&mut all);
    tar_of(&all)
}

/// Returns the archive of a signed box with a changed manifest of the attachment.
fn with_manifest(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    changed(|all| {
        let mut manifest: Value = serde_json::from_slice(&all[4].1).unwrap();
        change(&mut manifest);
        let before = all[4].0.clone();
        all[4].1 = manifest.to_string().into_bytes();
        let digest = Digest::of(&all[4].1);
        all[4].0 = blob_name(&digest);
        let mut index: Value = serde_json::from_slice(&all[1].1).unwrap();
        let hex = before.rsplit_once('/').unwrap().1;
        let entries = index["manifests"].as_array_mut().unwrap();
        let entry = entries.iter_mut().find(|it| it["digest"] == format!("sha256:{hex}")).unwrap();
        (entry["digest"], entry["size"]) = (json!(digest), json!(all[4].1.len()));
        all[1].1 = index.to_string().into_bytes();
    })
}

fn content(all: &mut [(String, Vec<u8>)]) -> &mut (String, Vec<u8>) {
    all.iter_mut().find(|it| it.1 == b"signature").unwrap()
}

/// Loads an archive as a file and as a stream. Each must fail for its reason.
fn refused(what: &str, bytes: &[u8], reasons: [&str; 2]) {
    for (is_stream, reason) in [false, true].into_iter().zip(reasons) {
        let stage = Stage::new();
        let loaded = if is_stream { stage.load_stream(bytes) } else { stage.load_file(bytes) };
        let text = safe_text::with_causes(&loaded.expect_err(what));
        assert!(text.contains(reason), "{what}, stream {is_stream}: {text}");
        assert!(stage.found().is_empty(), "{what}");
    }
}

#[test]
fn a_damaged_attachment_is_refused() {
    let flipped = changed(|all| content(all).1[0] ^= 1);
    refused("flipped", &flipped, ["it has the digest"; 2]);
    let longer = changed(|all| content(all).1.push(0));
    refused("longer", &longer, ["it has 10 bytes"; 2]);
    let name = changed(|all| {
        let name = content(all).0.clone();
        all.retain(|it| it.0 != name);
    });
    refused("absent", &name, ["lacks the blob", "comes before its attachments"]);
    let late = changed(|all| {
        let name = content(all).0.clone();
        let at = all.iter().position(|it| it.0 == name).unwrap();
        let member = all.remove(at);
        all.push(member);
    });
    let stage = Stage::new();
    assert_eq!(stage.load_file(&late).unwrap().len(), 2, "a file has no order");
    let error = stage.load_stream(&late).unwrap_err().to_string();
    assert!(error.contains("comes before its attachments"), "{error}");
}

#[test]
fn a_manifest_that_is_no_attachment_is_ignored_as_before() {
    for change in [
        |it: &mut Value| it["subject"]["digest"] = json!(Digest::of(b"another box")),
        |it: &mut Value| it["artifactType"] = json!("application/vnd.other"),
        |it: &mut Value| it["layers"][0]["size"] = json!(MAX_ATTACHMENT + 1),
        |it: &mut Value| it["subject"] = json!(null),
    ] {
        let bytes = with_manifest(change);
        let stage = Stage::new();
        let loaded = stage.load_file(&bytes).unwrap();
        assert_eq!((loaded.len(), loaded[0].attachments + loaded[1].attachments), (2, 0));
    }
}

/// Each box of a file gets the bytes of its attachments, so a file must not make them many by sharing.
#[test]
fn an_attachment_that_boxes_share_counts_for_each() {
    let subject = |it: u8| Descriptor::new(OCI_MANIFEST_TYPE, Digest::of(&[it]), 1);
    let large = signature("").info();
    let large = |it: u8| AttachmentInfo {
        digest: Digest::of(&[it]),
        size: MAX_ATTACHMENT,
        ..large.clone()
    };
    let of = |subject: u8, info| Referrer { subject: Digest::of(&[subject]), info };
    let mut referrers = vec![of(1, large(1)), of(1, large(2)), of(2, large(1)), of(2, large(2))];
    let of_boxes = |referrers: &[Referrer]| {
        let found =
            attached::of_boxes(referrers, [1, 2, 3].map(|it| Digest::of(&[it])).into_iter());
        found.map(|it| it.iter().map(Vec::len).collect::<Vec<_>>())
    };
    assert_eq!(of_boxes(&referrers), Ok(vec![2, 2, 0]));
    referrers.push(of(3, large(2)));
    let reason = of_boxes(&referrers).unwrap_err();
    assert!(reason.ends_with("at most 67108864 are allowed"), "{reason}");
    // Nor does this program write such a file.
    let bytes = vec![0; usize::try_from(MAX_ATTACHMENT).unwrap()];
    let mut attached = attached::Attached::default();
    for it in 0..4 {
        attached.add(&subject(it), vec![Attachment::new(BUNDLE, bytes.clone())]).unwrap();
    }
    attached.add(&subject(0), vec![Attachment::new(BUNDLE, bytes.clone())]).unwrap();
    assert!(attached.add(&subject(4), vec![Attachment::new(BUNDLE, bytes)]).is_err());
}

#[test]
fn too_many_attachments_are_refused() {
    let subject = Descriptor::new(OCI_MANIFEST_TYPE, Digest::of(b"none"), 1);
    let mut attached = attached::Attached::default();
    let large =
        |it: u8| Attachment::new(BUNDLE, vec![it; usize::try_from(MAX_ATTACHMENT).unwrap()]);
    attached.add(&subject, (0..4).map(large).collect()).unwrap();
    let error = attached.add(&subject, vec![signature("one more")]).unwrap_err().to_string();
    assert!(error.ends_with("at most 67108864 are allowed in a file"), "{error}");
    // An archive that claims as much.
    let many: Vec<_> = (0..=MAX_ATTACHMENTS).map(|it| signature(&it.to_string())).collect();
    refused("many", &signed(&many).0, ["a box has at most 64 attachments"; 2]);
    let mut bundle_of_many = Bundle::of([]).unwrap();
    bundle_of_many.attach(&subject.digest, many).unwrap();
    assert_eq!(bundle_of_many.saved().attachments, 0, "the file does not have the box");
}
