//! Attachments in a registry.

use std::collections::BTreeMap;

use box_cache::{Attachment, AttachmentInfo, MAX_ATTACHMENT, MAX_ATTACHMENTS};
use box_contract::Descriptor;
use box_contract::manifest::{OCI_INDEX_TYPE, OCI_MANIFEST_TYPE};
use box_digest::Digest;
use box_trust::{Algorithm, Kind, PrivateKey, Provenance, PublicKey, Statement, verify};
use serde_json::{Value, json};
use test_server::registry::{Held, Referrers, Rules, error};
use test_server::{Early, Request};

use super::stage::{NAME, Stage, TAG, open, test_box};
use crate::*;

const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// Returns an attachment with the annotations of a sigstore bundle.
fn signature(text: &str) -> Attachment {
    let annotations = [
        ("dev.sigstore.bundle.content", "dsse-envelope"),
        ("dev.sigstore.bundle.predicateType", "https://sigstore.dev/cosign/sign/v1"),
    ];
    let annotations = annotations.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    Attachment { annotations, ..Attachment::new(BUNDLE, text.as_bytes().to_vec()) }
}

impl Stage {
    fn fetched(&self) -> Result<Vec<Attachment>, BoxRegistryError> {
        Ok(self.found(&[])?.all)
    }

    fn found(&self, trusted: &[PublicKey]) -> Result<FoundAttachments, BoxRegistryError> {
        let plan = self.plan()?;
        attachments(&self.client, &plan.repository, &plan.remote, trusted)
    }

    fn send(&self, some: &[Attachment]) -> SentAttachments {
        let repository = self.repository(NAME);
        send_attachments(&self.client, &repository, &self.digest(), some).unwrap()
    }

    /// Adds a manifest about the box, with this one layer, and returns the descriptor that lists it.
    fn add(&self, bytes: &[u8], change: impl FnOnce(&mut Value)) -> Descriptor {
        let subject = Descriptor::new(OCI_MANIFEST_TYPE, self.digest(), 7);
        let attachment = Attachment::new(BUNDLE, bytes.to_vec());
        let (listed, manifest) = Referrer::manifest(&subject, &attachment.info());
        let mut document: Value = serde_json::from_slice(&manifest).unwrap();
        change(&mut document);
        let manifest = document.to_string().into_bytes();
        self.registry.with(|held| {
            held.put_blob(NAME, bytes);
            held.put_blob(NAME, EMPTY);
            held.put_manifest(NAME, "other", OCI_MANIFEST_TYPE, &manifest);
        });
        Descriptor { digest: Digest::of(&manifest), size: manifest.len() as u64, ..listed }
    }

    /// Writes the index under the fallback tag.
    fn list(&self, listed: &[Descriptor]) {
        let index = json!({ "schemaVersion": 2, "manifests": listed }).to_string();
        let tag = format!("sha256-{}", self.digest().hex());
        let index = index.as_bytes();
        self.registry.with(|held| held.put_manifest(NAME, &tag, OCI_INDEX_TYPE, index));
    }

    /// Returns the digest of the registry's manifest.
    fn digest(&self) -> Digest {
        let key = (NAME.to_owned(), TAG.to_owned());
        self.registry.with(|held| Digest::of(&held.manifests[&key].1))
    }
}

/// Returns the signature of a box.
fn signed(digest: Digest, key: &PrivateKey) -> Attachment {
    Attachment::new(BUNDLE, Statement::signature(None, digest).sign(key).unwrap())
}

fn infos(all: &[Attachment]) -> Vec<AttachmentInfo> {
    all.iter().map(Attachment::info).collect()
}

fn with_api() -> Rules {
    Rules { referrers: Referrers::Paged(100), ..Rules::default() }
}

#[test]
fn attachments_travel_with_the_box_to_a_registry_with_or_without_the_api() {
    for rules in [with_api(), Rules::default()] {
        let has_api = rules.referrers != Referrers::Unknown;
        let (stage, files) = (Stage::new(rules), test_box());
        let digest = open(&files).digest;
        let (one, two) = (signature("one"), Attachment::new("text/spdx", b"two".to_vec()));
        stage.store.attach(&digest, &one).unwrap();
        let pushed = stage.push_from(&files).unwrap();
        assert_eq!((pushed.attachments.all, pushed.attachments.sent), (1, 1));
        assert_eq!(stage.fetched().unwrap(), std::slice::from_ref(&one));
        // A new attachment of a box that is there already is sent, and nothing else.
        stage.store.attach(&digest, &two).unwrap();
        let before = stage.registry.lines().len();
        let again = stage.push_from(&files).unwrap();
        assert_eq!((again.bytes, again.attachments.all, again.attachments.sent), (0, 2, 1));
        assert_eq!(stage.count(before, "POST"), 1, "the new attachment");
        let before = stage.registry.lines().len();
        let same = stage.push_from(&files).unwrap().attachments;
        assert_eq!((same.all, same.sent, same.bytes), (2, 0, 0));
        assert!(stage.count(before, "POST") + stage.count(before, "PUT") == 0);
        let fetched = stage.fetched().unwrap();
        assert_eq!(fetched.len(), 2);
        assert!([&one, &two].iter().all(|it| fetched.contains(it)));
        // Another store gets the same.
        let other = Stage::new(Rules::default());
        assert_eq!(keep_attachments(&other.store, &digest, &fetched, &[]).unwrap().new, 2);
        assert_eq!(keep_attachments(&other.store, &digest, &fetched, &[]).unwrap().new, 0);
        assert_eq!(other.store.attachments(&digest).unwrap().len(), 2);
        let tag = (NAME.to_owned(), format!("sha256-{}", stage.digest().hex()));
        assert_eq!(stage.registry.with(|held| held.manifests.contains_key(&tag)), !has_api);
    }
}

/// GitLab refuses every document with an artifact type.
#[test]
fn a_registry_that_refuses_artifacts_takes_attachments_as_images() {
    let rules = Rules { refuses: Some(super::push::as_gitlab), ..Rules::default() };
    let (stage, files) = (Stage::new(rules), test_box());
    let digest = open(&files).digest;
    let all = [signature("one"), Attachment::new("application/spdx+json", b"two".to_vec())];
    all.iter().for_each(|it| assert!(stage.store.attach(&digest, it).unwrap()));
    let pushed = stage.push_from(&files).unwrap();
    assert_eq!((pushed.form, pushed.attachments.sent), (Form::Image, 2));
    assert_eq!(stage.fetched().unwrap(), all);
    let again = stage.push_from(&files).unwrap().attachments;
    assert_eq!((again.all, again.sent, again.bytes), (2, 0, 0));
}

/// The form is the one of cosign's specification, without a time.
#[test]
fn the_manifest_of_a_signature_is_what_others_read() {
    let (stage, files) = (Stage::new(Rules::default()), test_box());
    stage.store.attach(&open(&files).digest, &signature("{}\n")).unwrap();
    let pushed = stage.push_from(&files).unwrap();
    let (manifest, index) = stage.registry.with(|held| {
        let read = |held: &Held, reference: &str| -> Value {
            let key = (NAME.to_owned(), reference.to_owned());
            serde_json::from_slice(&held.manifests[&key].1).unwrap()
        };
        let index = read(held, &format!("sha256-{}", pushed.registry_digest.hex()));
        (read(held, index["manifests"][0]["digest"].as_str().unwrap()), index)
    });
    let size =
        stage.registry.with(|held| held.manifests[&(NAME.to_owned(), TAG.to_owned())].1.len());
    let annotations = json!({
        "dev.sigstore.bundle.content": "dsse-envelope",
        "dev.sigstore.bundle.predicateType": "https://sigstore.dev/cosign/sign/v1",
    });
    let expected = json!({
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST_TYPE,
        "artifactType": BUNDLE,
        "config": {
            "mediaType": "application/vnd.oci.empty.v1+json",
            "digest": "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
            "size": 2,
        },
        "layers": [{ "mediaType": BUNDLE, "digest": Digest::of(b"{}\n"), "size": 3 }],
        "subject": { "mediaType": OCI_MANIFEST_TYPE, "digest": pushed.registry_digest, "size": size },
        "annotations": annotations,
    });
    assert_eq!(manifest, expected);
    let text = manifest_text(&expected);
    let listed = json!({
        "mediaType": OCI_MANIFEST_TYPE, "digest": Digest::of(text.as_bytes()), "size": text.len(),
        "artifactType": BUNDLE, "annotations": annotations,
    });
    assert_eq!(
        index,
        json!({ "schemaVersion": 2, "mediaType": OCI_INDEX_TYPE, "manifests": [listed] })
    );
}

/// Returns the manifest's bytes: its fields in the order of the specification.
fn manifest_text(manifest: &Value) -> String {
    let field = |name: &str| {
        let value = match name {
            "config" | "layers" | "subject" => {
                let order = |it: &Value| {
                    let keys = ["mediaType", "digest", "size"];
                    let fields = keys.map(|key| format!("\"{key}\":{}", it[key]));
                    format!("{{{}}}", fields.join(","))
                };
                match &manifest[name] {
                    Value::Array(all) => format!("[{}]", order(&all[0])),
                    it => order(it),
                }
            }
            _ => manifest[name].to_string(),
        };
        format!("\"{name}\":{value}")
    };
    let names = [
        "schemaVersion",
        "mediaType",
        "artifactType",
        "config",
        "layers",
        "subject",
        "annotations",
    ];
    format!("{{{}}}", names.map(field).join(","))
}

#[test]
fn what_another_client_has_sent_is_not_sent_again() {
    for rules in [with_api(), Rules::default()] {
        let (stage, files) = (Stage::new(rules), test_box());
        stage.push_from(&files).unwrap();
        let created = json!({ "org.opencontainers.image.created": "2026-01-01T00:00:00Z" });
        let added = stage.add(b"bundle", |it| it["annotations"] = created);
        stage.list(&[added]);
        let fetched = stage.fetched().unwrap();
        assert_eq!(fetched[0].annotations.len(), 1);
        stage.store.attach(&open(&files).digest, &signature("bundle")).unwrap();
        let sent = stage.push_from(&files).unwrap().attachments;
        assert_eq!((sent.all, sent.sent), (1, 0));
    }
}

#[test]
fn manifests_that_are_no_attachments_are_left_out() {
    let (stage, files) = (Stage::new(with_api()), test_box());
    stage.push(&files, None).unwrap();
    let right = stage.add(b"right", |_| ());
    stage.add(b"a", |it| it["artifactType"] = json!("application/vnd.other"));
    stage.add(b"b", |it| it["layers"] = json!([]));
    stage.add(b"c", |it| it["layers"][0]["size"] = json!(MAX_ATTACHMENT + 1));
    stage.add(b"d", |it| it["schemaVersion"] = json!(1));
    stage.add(b"e", |it| it["annotations"]["large"] = json!("x".repeat(5000)));
    stage.add(b"f", |it| it["annotations"]["huge"] = json!("x".repeat(70_000)));
    stage.add(b"g", |it| it["layers"][0]["digest"] = json!("sha512:00"));
    // The same document twice.
    stage.add(b"right", |it| it["annotations"] = json!({ "a": "b" }));
    let fetched = stage.fetched().unwrap();
    assert!(fetched.iter().all(|it| it.bytes == b"right") && fetched.len() == 1, "{fetched:?}");
    assert!(stage.registry.lines().iter().any(|it| it.contains(&right.digest.to_string())));
}

#[test]
fn an_index_that_lists_manifests_of_other_boxes_or_missing_ones_misleads_nobody() {
    let (stage, files) = (Stage::new(Rules::default()), test_box());
    stage.push(&files, None).unwrap();
    let other = json!(Digest::of(b"another box"));
    let listed = [
        stage.add(b"right", |_| ()),
        stage.add(b"wrong", |it| it["subject"]["digest"] = other),
        stage.add(b"missing", |_| ()),
    ];
    let missing = (NAME.to_owned(), listed[2].digest.to_string());
    stage.registry.with(|held| held.manifests.remove(&missing)).unwrap();
    stage.list(&listed);
    let fetched = stage.fetched().unwrap();
    assert_eq!(fetched.iter().map(|it| &*it.bytes).collect::<Vec<_>>(), [b"right"]);
}

/// Whoever can write to a repository can list anything, and must not keep others from a pull.
#[test]
fn an_attachment_that_is_damaged_or_missing_is_left_out() {
    let (stage, files) = (Stage::new(with_api()), test_box());
    stage.push(&files, None).unwrap();
    stage.add(b"bundle", |_| ());
    stage.add(b"right", |_| ());
    let key = (NAME.to_owned(), Digest::of(b"bundle").to_string());
    for bytes in [Some(&b"bundl3"[..]), Some(b"bundle and more"), Some(b"bun"), None] {
        stage.registry.with(|held| match bytes {
            Some(bytes) => held.blobs.insert(key.clone(), bytes.to_vec()),
            None => held.blobs.remove(&key),
        });
        let found = stage.found(&[]).unwrap();
        assert_eq!(found.all.iter().map(|it| &*it.bytes).collect::<Vec<_>>(), [b"right"]);
        assert_eq!(found.left_out, 1);
        assert!(found.note().unwrap().contains("missing or damaged"));
    }
}

#[test]
fn an_attachment_that_cannot_be_fetched_is_an_error() {
    let path = format!("/blobs/{}", Digest::of(b"bundle"));
    let deed = move |request: &Request, _: usize| {
        let is_it = request.method() == "GET" && request.path().ends_with(&path);
        let reply = error("503 Service Unavailable", "UNAVAILABLE");
        is_it.then_some(Early { after: usize::MAX, reply })
    };
    let stage = Stage::new(Rules { deed: Some(Box::new(deed)), ..with_api() });
    stage.push(&test_box(), None).unwrap();
    stage.add(b"bundle", |_| ());
    assert!(stage.fetched().unwrap_err().to_string().contains("503"));
}

/// The digest of a signature with another size is another attachment, which does not exist.
#[test]
fn an_entry_with_another_size_does_not_hide_a_signature() {
    let (stage, files) = (Stage::new(with_api()), test_box());
    stage.push(&files, None).unwrap();
    for size in [0, 5, 7] {
        stage.add(b"bundle", |it| it["layers"][0]["size"] = json!(size));
    }
    assert_eq!(stage.found(&[]).unwrap().left_out, 3);
    let one = Attachment::new(BUNDLE, b"bundle".to_vec());
    assert_eq!(stage.send(std::slice::from_ref(&one)).sent, 1);
    stage.add(b"bundle", |it| it["layers"][0]["size"] = json!(8));
    let found = stage.found(&[]).unwrap();
    assert_eq!((found.all, found.left_out), (vec![one], 4));
}

#[test]
fn only_the_last_attachments_are_fetched() {
    let (stage, files) = (Stage::new(Rules::default()), test_box());
    stage.push(&files, None).unwrap();
    let all: Vec<_> = (10..80).map(|it| signature(&it.to_string())).collect();
    assert_eq!(stage.send(&all[..40]).sent, 40);
    assert_eq!(stage.send(&all).sent, 30);
    let found = stage.found(&[]).unwrap();
    assert_eq!(found.left_out, 70 - MAX_ATTACHMENTS);
    assert!(found.note().unwrap().starts_with("6 attachments of the box in the registry left out"));
    let fetched = found.all;
    assert_eq!(fetched, all[70 - MAX_ATTACHMENTS..]);
    // A store that has others already takes what it has room for.
    let digest = open(&files).digest;
    stage.store.attach(&digest, &signature("own")).unwrap();
    let keep =
        |needed: &[Digest]| keep_attachments(&stage.store, &digest, &fetched, needed).unwrap();
    assert_eq!(keep(&[]), KeptAttachments { new: MAX_ATTACHMENTS - 1, left_out: 1 });
    // What a policy needs is added in any case. What only the store has stays there.
    let kept = || stage.store.attachments(&digest).unwrap();
    let needed = fetched.last().unwrap().info();
    assert!(!kept().contains(&needed));
    assert_eq!(keep(&[needed.digest]), KeptAttachments { new: 1, left_out: 1 });
    assert!(kept().contains(&needed) && kept().contains(&signature("own").info()));
    assert_eq!(kept().len(), MAX_ATTACHMENTS);
}

/// Whoever can write to a repository can list anything before and after a signature.
#[test]
fn what_is_no_signature_does_not_displace_one() {
    let junk = |kind: &str, count: usize| -> Vec<_> {
        (0..count).map(|it| Attachment::new(kind, format!("{kind} {it}").into_bytes())).collect()
    };
    let large = |kind: &str| {
        let size = usize::try_from(MAX_ATTACHMENT).unwrap();
        (0..4).map(|it| Attachment::new(kind, vec![it; size])).collect::<Vec<_>>()
    };
    for (name, junk) in [
        ("other documents", junk("text/plain", 300)),
        ("malformed bundles", junk(BUNDLE, 300)),
        ("large documents", large("text/plain")),
        ("large bundles", large(BUNDLE)),
    ] {
        let (stage, files) = (Stage::new(with_api()), test_box());
        stage.push(&files, None).unwrap();
        let digest = open(&files).digest;
        let one = signed(digest, &PrivateKey::generate(Algorithm::Ed25519).unwrap());
        let (before, after) = junk.split_at(junk.len() / 2);
        stage.send(before);
        stage.send(std::slice::from_ref(&one));
        stage.send(after);
        let found = stage.found(&[]).unwrap();
        assert!(found.all.contains(&one), "{name}");
        assert_eq!(found.all.len() + found.left_out, junk.len() + 1, "{name}");
        assert!(found.left_out > 0 && AttachmentInfo::check_all(&infos(&found.all)).is_ok());
        assert_eq!(stage.found(&[]).unwrap(), found, "{name}: always the same");
        // A store that has little room takes the signature first.
        let own: Vec<_> = (1..MAX_ATTACHMENTS).map(|it| signature(&it.to_string())).collect();
        assert!(own.iter().all(|it| stage.store.attach(&digest, it).unwrap()));
        let offered = found.all;
        let kept = keep_attachments(&stage.store, &digest, &offered, &[]).unwrap();
        assert_eq!(kept, KeptAttachments { new: 1, left_out: offered.len() - 1 }, "{name}");
        assert!(stage.store.attachments(&digest).unwrap().contains(&one.info()), "{name}");
    }
}

/// Without a trusted key, nobody can tell one signature from another.
#[test]
fn the_signatures_of_others_do_not_displace_that_of_a_trusted_key() {
    let (stage, files) = (Stage::new(with_api()), test_box());
    stage.push(&files, None).unwrap();
    let digest = open(&files).digest;
    let [mine, other] = [(); 2].map(|()| PrivateKey::generate(Algorithm::Ed25519).unwrap());
    let others = (0..70).map(|it| {
        let bundle = Statement::signature(Some(&it.to_string()), digest).sign(&other).unwrap();
        Attachment::new(BUNDLE, bundle)
    });
    let others: Vec<_> = others.collect();
    let one = signed(digest, &mine);
    stage.send(std::slice::from_ref(&one));
    stage.send(&others);
    let found = stage.found(&[mine.public().clone()]).unwrap();
    assert!(found.all.contains(&one));
    assert_eq!((found.all.len(), found.left_out), (MAX_ATTACHMENTS, 7));
    let found = stage.found(&[]).unwrap();
    assert_eq!((found.all.len(), found.left_out), (MAX_ATTACHMENTS, 7));
}

#[test]
fn a_list_that_is_too_long_does_not_keep_others_from_a_pull() {
    let (stage, files) = (Stage::new(Rules::default()), test_box());
    stage.push(&files, None).unwrap();
    let mut listed = vec![stage.add(b"first", |_| ())];
    let junk = |it: u32| {
        let digest = Digest::of(&it.to_le_bytes());
        let kind = Some("text/plain".to_owned());
        Descriptor { artifact_type: kind, ..Descriptor::new(OCI_MANIFEST_TYPE, digest, 1) }
    };
    listed.extend((0..1100).map(junk));
    stage.list(&listed);
    let found = stage.found(&[]).unwrap();
    assert_eq!(found.all.iter().map(|it| &*it.bytes).collect::<Vec<_>>(), [b"first"]);
    // 256 other documents are looked for, and do not exist.
    assert_eq!(found.left_out, 1100 - 256);
}

/// Only the payload of a bundle is signed, so anybody can make other bundles from a signature.
#[test]
fn copies_of_a_signature_do_not_displace_the_provenance() {
    let (stage, files) = (Stage::new(with_api()), test_box());
    stage.push(&files, None).unwrap();
    let digest = open(&files).digest;
    let key = PrivateKey::generate(Algorithm::EcdsaP256).unwrap();
    let one = signed(digest, &key);
    let provenance = Provenance {
        boxfile: "Boxfile".to_owned(),
        profile: None,
        inputs: Vec::new(),
        builder: "https://example.com/builder".to_owned(),
        version: "1".to_owned(),
    };
    let provenance = Statement::provenance(None, digest, &provenance).unwrap();
    let provenance = Attachment::new(BUNDLE, provenance.sign(&key).unwrap());
    let copy = |it: usize| {
        let mut document: Value = serde_json::from_slice(&one.bytes).unwrap();
        document["dsseEnvelope"]["signatures"][0]["keyid"] = json!(it.to_string());
        let text = if it.is_multiple_of(2) { document.to_string() } else { " ".repeat(it) };
        let bytes = if it.is_multiple_of(2) {
            text.into_bytes()
        } else {
            [&one.bytes, text.as_bytes()].concat()
        };
        Attachment::new(BUNDLE, bytes)
    };
    stage.send(&[one.clone(), provenance.clone()]);
    stage.send(&(0..MAX_ATTACHMENTS).map(copy).collect::<Vec<_>>());
    let trusted = [key.public().clone()];
    let found = stage.found(&trusted).unwrap();
    let kinds = |it: &Attachment| verify(&it.bytes, &trusted, &digest).unwrap().statement.kind;
    let kinds: Vec<_> = found.all.iter().map(kinds).collect();
    assert_eq!((kinds.len(), found.left_out), (2, MAX_ATTACHMENTS), "{kinds:?}");
    assert!(kinds.contains(&Kind::Signature) && kinds.contains(&Kind::Provenance));
}

/// The bytes of a signature under another media type are another document.
#[test]
fn the_same_bytes_of_another_type_do_not_hide_a_signature() {
    for rules in [with_api(), Rules::default()] {
        let (stage, files) = (Stage::new(rules), test_box());
        stage.push(&files, None).unwrap();
        let digest = open(&files).digest;
        let one = signed(digest, &PrivateKey::generate(Algorithm::Ed25519).unwrap());
        let twin = |kind: &str| Attachment::new(kind, one.bytes.clone());
        // The registry has the bytes already, as another document.
        assert_eq!(stage.send(&[twin("text/plain")]).sent, 1);
        assert_eq!(stage.send(&[one.clone(), twin("text/plain")]).sent, 1);
        assert_eq!(stage.send(&[twin("a/b")]).sent, 1);
        let found = stage.found(&[]).unwrap();
        assert!(found.all.contains(&one));
        assert_eq!((found.all.len(), found.left_out), (3, 0));
        assert!(stage.store.attach(&digest, &twin("text/plain")).unwrap());
        let kept = keep_attachments(&stage.store, &digest, &found.all, &[]).unwrap();
        assert_eq!(kept, KeptAttachments { new: 2, left_out: 0 });
        assert!(stage.store.attachments(&digest).unwrap().contains(&one.info()));
    }
}

#[test]
fn large_attachments_are_fetched_up_to_the_limit_of_a_box() {
    let (stage, files) = (Stage::new(with_api()), test_box());
    stage.push(&files, None).unwrap();
    let large =
        |it: u8| Attachment::new(BUNDLE, vec![it; usize::try_from(MAX_ATTACHMENT).unwrap()]);
    let all: Vec<_> = (0..5).map(large).chain([signature("small")]).collect();
    stage.send(&all);
    let sizes: BTreeMap<_, usize> =
        stage.fetched().unwrap().iter().fold(BTreeMap::new(), |mut all, it| {
            *all.entry(it.bytes.len()).or_default() += 1;
            all
        });
    let large: usize = sizes.iter().filter(|(size, _)| **size > 5).map(|(_, count)| count).sum();
    assert!((3..=4).contains(&large), "{sizes:?}");
}

#[test]
fn an_error_of_the_registry_is_no_missing_signature() {
    let failing = |status: &'static str| {
        let deed = move |request: &Request, _: usize| {
            let is_it = request.path().contains("/referrers/");
            is_it.then(|| Early { after: usize::MAX, reply: error(status, "UNSUPPORTED") })
        };
        let stage = Stage::new(Rules { deed: Some(Box::new(deed)), ..Rules::default() });
        stage.push(&test_box(), None).unwrap();
        stage.fetched().map(|it| it.len()).map_err(|it| it.to_string())
    };
    assert_eq!(failing("405 Method Not Allowed"), Ok(0));
    assert!(failing("503 Service Unavailable").unwrap_err().contains("503"));
    let stage = Stage::new(Rules::default());
    let absent = Digest::of(b"absent");
    let sent = send_attachments(&stage.client, &stage.repository(NAME), &absent, &[signature("x")]);
    let error = sent.unwrap_err().to_string();
    assert!(error.ends_with(&format!("has no team/app with the digest {absent}")), "{error}");
}
