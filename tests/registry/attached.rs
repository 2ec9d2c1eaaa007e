//! Tests that the attachments of a box, such as its signature, travel with it.

use std::collections::BTreeMap;
use std::process::Command;

use box_cache::{Attachment, Named, Owner, Store, StoredBoxes};
use box_digest::Digest;
use box_layout::OpenBox;
use box_registry::{Form, attachments, plan, send_attachments};
use oci_registry::{Reference, Registry, Repository};
use serde_json::Value;
use testbed::prerequisites::oras;
use testbed::{Artefacts, Workspace, program};
use testkit::TestBox;
use testkit::test_box::config;

use crate::boxes::{boxbuild, printed};
use crate::pushed::{Pushed, TAG, tagged};
use crate::schema::assert_fits;

const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// Returns an attachment in the form of a signature.
fn signature(text: &str) -> Attachment {
    let annotations = BTreeMap::from([
        ("dev.sigstore.bundle.content".to_owned(), "dsse-envelope".to_owned()),
        (
            "dev.sigstore.bundle.predicateType".to_owned(),
            "https://slsa.dev/provenance/v1".to_owned(),
        ),
    ]);
    Attachment { annotations, ..Attachment::new(BUNDLE, text.as_bytes().to_vec()) }
}

/// A registry without the API for referrers, and a box with attachments in the store `one`.
struct Signed {
    pushed: Pushed,
    files: TestBox,
    digest: Digest,
    attachments: Vec<Attachment>,
}

impl Signed {
    fn new() -> Self {
        let (pushed, files) = (Pushed::open(), TestBox::new(&config()));
        let digest = OpenBox::open(files.path()).unwrap().digest;
        let signed = Self { pushed, files, digest, attachments: Vec::new() };
        signed.with(signature("{\"signature\":1}"))
    }

    /// Adds an attachment in the store `one`.
    fn with(mut self, attachment: Attachment) -> Self {
        assert!(self.store("one").attach(&self.digest, &attachment).unwrap());
        self.attachments.push(attachment);
        self
    }

    fn store(&self, name: &str) -> Store {
        Store::open(&self.pushed.dir.path().join(name)).unwrap()
    }

    fn reference(&self) -> String {
        format!("{}/team/box:v1", self.pushed.registry.host())
    }

    fn report(&self, store: &str, args: &[&str]) -> Value {
        serde_json::from_str(&printed(&boxbuild(&self.pushed, store, args)).0).unwrap()
    }

    fn push(&self) -> Value {
        let path = self.files.path().to_str().unwrap();
        let report = self.report("one", &["push", path, &self.reference(), "--json"]);
        assert_fits("push", &report);
        report
    }

    /// Returns the attachments of the box in a store.
    fn kept(&self, store: &str) -> Vec<Attachment> {
        let boxes = StoredBoxes::open(&self.pushed.dir.path().join(store)).unwrap();
        let listed = boxes.attachments(&self.digest).unwrap();
        listed.iter().map(|it| boxes.read_attachment(it).unwrap()).collect()
    }
}

#[test]
fn a_signature_travels_with_its_box_through_a_registry() {
    let signed = Signed::new();
    let first = signed.push();
    assert_eq!((&first["attachments"], &first["attachments_sent"]), (&1.into(), &1.into()));
    let again = signed.push();
    assert_eq!((&again["bytes"], &again["attachments_sent"]), (&0.into(), &0.into()));
    // A later attachment of the same box is sent by itself.
    let signed = signed.with(signature("{\"provenance\":2}"));
    let path = signed.files.path().to_str().unwrap();
    let notes = printed(&boxbuild(&signed.pushed, "one", &["push", path, &signed.reference()])).1;
    assert!(
        notes.contains("the registry has this box already\nsent 1 of 2 attachments, "),
        "{notes}"
    );
    let pull = |args: &[&str]| {
        let report =
            signed.report("two", &[&["pull", &signed.reference(), "--json"], args].concat());
        assert_fits("pull", &report);
        assert_eq!(report["attachments"], 2);
    };
    pull(&["--dry-run"]);
    assert_eq!(signed.kept("two"), []);
    pull(&[]);
    assert_eq!(signed.kept("two"), signed.attachments);
    pull(&[]);
    assert_eq!(signed.kept("two"), signed.attachments);
    // The store that pulled them sends them to another repository.
    let other = format!("{}/team/other:v1", signed.pushed.registry.host());
    let report = signed.report("two", &["push", &signed.reference(), &other, "--json"]);
    assert_eq!(report["attachments_sent"], 2);
    // They live and die with the box.
    printed(&boxbuild(&signed.pushed, "two", &["gc", "--max-size", "0"]));
    assert_eq!(signed.kept("two").len(), 2);
    let mut rmi = Command::new(Artefacts::build(&Workspace::find()).unwrap().boxlaunch);
    rmi.args(["rmi", &signed.reference()]).env_clear();
    program::run(rmi.env("BOXBUILD_STORE", signed.pushed.dir.path().join("two"))).unwrap();
    assert_eq!(signed.kept("two"), []);
}

#[test]
fn a_signature_travels_with_its_box_in_a_file() {
    let signed = Signed::new().with(signature("{\"provenance\":2}"));
    signed.push();
    printed(&boxbuild(&signed.pushed, "two", &["pull", &signed.reference()]));
    let named = Named { digest: signed.digest, owner: Owner::Archive };
    signed.store("two").name_box("hello", &named).unwrap();
    let file = signed.pushed.dir.path().join("hello.tar");
    let save = ["save", "hello", "--json", "-o", file.to_str().unwrap()];
    let report = signed.report("two", &save);
    assert_fits("save", &report);
    assert_eq!(report["attachments"], 2);
    let report = signed.report("three", &["load", "--json", file.to_str().unwrap()]);
    assert_fits("load", &report);
    assert_eq!(report["loaded"][0]["attachments"], 2);
    let [mut kept, mut sent] = [signed.kept("three"), signed.attachments.clone()];
    [&mut kept, &mut sent].into_iter().for_each(|it| it.sort_by_key(|it| it.bytes.clone()));
    assert_eq!(kept, sent);
    // skopeo finds the box in it by its name.
    let mut skopeo = Command::new("skopeo");
    skopeo.args(["inspect", "--raw", &format!("oci-archive:{}:hello", file.display())]);
    assert_eq!(Digest::of(&program::run(&mut skopeo).unwrap()), signed.digest);
}

#[test]
fn other_clients_find_a_signature_and_read_it() {
    let signed = Signed::new();
    let report = signed.push();
    let repository = format!("{}/team/box", signed.pushed.registry.host());
    let subject = report["registry_digest"].as_str().unwrap();
    let tag = subject.replace(':', "-");
    let mut skopeo = Command::new("skopeo");
    skopeo.args([
        "inspect",
        "--raw",
        "--tls-verify=false",
        &format!("docker://{repository}:{tag}"),
    ]);
    let index: Value = serde_json::from_slice(&program::run(&mut skopeo).unwrap()).unwrap();
    let entry = &index["manifests"][0];
    assert_eq!(
        (index["manifests"].as_array().unwrap().len(), &entry["artifactType"]),
        (1, &BUNDLE.into())
    );
    let through = tempfile::tempdir().unwrap();
    let oras = oras(&Workspace::find(), &mut |line| println!("{line}")).unwrap();
    let from = format!("{repository}@{}", entry["digest"].as_str().unwrap());
    let to = format!("{}/team/copy:signature", signed.pushed.registry.host());
    let read: Value =
        serde_json::from_str(&oras.copy(&from, &to, through.path()).unwrap()).unwrap();
    assert_eq!(
        (&read["subject"]["digest"], &read["artifactType"]),
        (&subject.into(), &BUNDLE.into())
    );
    let layer: Digest = read["layers"][0]["digest"].as_str().unwrap().parse().unwrap();
    let bytes = std::fs::read(through.path().join(layer.hex())).unwrap();
    assert_eq!(bytes, signed.attachments[0].bytes);
}

/// skopeo copies a box as it is, without the manifests about it.
#[test]
fn a_box_in_its_plain_form_has_attachments_too() {
    let signed = Signed::new();
    signed.files.edit_index(|index| {
        index["manifests"][0]["annotations"] =
            serde_json::json!({ "org.opencontainers.image.ref.name": TAG });
    });
    signed.pushed.registry.push(signed.files.path(), TAG, "team/copied:v1").unwrap();
    let client = Registry::new(signed.pushed.options());
    let repository = Repository::new(&signed.pushed.registry.host(), "team/copied").unwrap();
    let sent = send_attachments(&client, &repository, &signed.digest, &signed.attachments).unwrap();
    assert_eq!((sent.all, sent.sent), (1, 1));
    let plan = plan(&client, &repository, &tagged("v1"), &signed.store("two")).unwrap();
    assert_eq!(plan.remote.form, Form::Plain);
    assert_eq!(
        attachments(&client, &repository, &plan.remote, &[]).unwrap().all,
        signed.attachments
    );
    let reference = format!("{}/team/copied:v1", signed.pushed.registry.host());
    assert_eq!(signed.report("two", &["pull", &reference, "--json"])["attachments"], 1);
    assert_eq!(signed.kept("two"), signed.attachments);
    // The digest of the box also finds the manifest.
    assert!(client.manifest(&repository, &Reference::Digest(signed.digest)).is_ok());
}
