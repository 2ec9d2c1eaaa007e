//! Boxes that go to a real registry and come back.

use std::fs;

use box_cache::Store;
use box_layout::OpenBox;
use box_registry::{Destination, Form, Pushed as Sent, plan, push};
use oci_registry::{Options, Registry, Repository, Tag};
use testkit::TestBox;
use testkit::test_box::{BoxFiles, config};

use crate::closed::RIGHT;
use crate::pushed::{NAME, Pushed, TAG, tagged};

/// Pushes a box to a repository.
fn send(pushed: &Pushed, client: &Registry, files: &BoxFiles, name: &str, from: &str) -> Sent {
    let named = |name| Repository::new(&pushed.registry.host(), name).unwrap();
    let (repository, from) = (named(name), named(from));
    let to = Destination {
        repository: &repository,
        tag: &Tag::new("box").unwrap(),
        mount_from: Some(&from),
        reuse: true,
        scratch: pushed.dir.path(),
    };
    push(client, &OpenBox::open(files.path()).unwrap(), &to).unwrap()
}

/// Pulls a box into a new store, and compares each blob.
fn compare(pushed: &Pushed, options: Options, files: &BoxFiles, name: &str, tag: &str) -> Form {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("store")).unwrap();
    let repository = Repository::new(&pushed.registry.host(), name).unwrap();
    let client = Registry::new(options);
    let plan = plan(&client, &repository, &tagged(tag), &store).unwrap();
    let pulled = plan.fetch(&client, &store).unwrap();
    let opened = OpenBox::open(files.path()).unwrap();
    assert_eq!(pulled.digest, opened.digest);
    let blobs = opened.manifest.blobs().into_iter().map(|it| it.digest);
    for digest in blobs.chain([opened.digest]) {
        assert!(store.read(&digest).unwrap() == fs::read(files.blob_path(&digest)).unwrap());
    }
    plan.remote.form
}

#[test]
fn a_box_goes_and_comes_and_is_shared() {
    let pushed = Pushed::open();
    let files = TestBox::new(&config());
    let client = Registry::new(pushed.options());
    let first = send(&pushed, &client, &files, NAME, NAME);
    assert!(first.sent > 0 && first.mounted == 0);
    assert_eq!(compare(&pushed, pushed.options(), &files, NAME, "box"), Form::Artifact);
    let again = send(&pushed, &client, &files, NAME, NAME);
    assert_eq!((again.bytes, again.registry_digest), (0, first.registry_digest));
    // Another repository takes the blobs from the first.
    let other = send(&pushed, &client, &files, "team/other", NAME);
    assert_eq!((other.sent, other.mounted), (0, first.sent));
    assert_eq!(other.registry_digest, first.registry_digest);
    compare(&pushed, pushed.options(), &files, "team/other", "box");
    // Of a box with another config, the config goes.
    files.edit_config(|config| config["plan"]["vm"]["memory-mib"] = 512.into());
    let changed = send(&pushed, &client, &files, NAME, NAME);
    assert_eq!((changed.sent, changed.skipped), (1, first.sent - 1));
    compare(&pushed, pushed.options(), &files, NAME, "box");
}

/// A registry that wants a name and a password with each request.
#[test]
fn a_closed_registry_takes_a_box() {
    let pushed = Pushed::closed();
    let entry = format!(r#"{{"auths": {{"{}": {RIGHT}}}}}"#, pushed.registry.host());
    let auth_files = vec![pushed.write("auth.json", &entry)];
    let options = || Options { auth_files: auth_files.clone(), ..pushed.options() };
    let files = TestBox::new(&config());
    let sent = send(&pushed, &Registry::new(options()), &files, NAME, NAME);
    assert_eq!(sent.form, Form::Artifact);
    compare(&pushed, options(), &files, NAME, "box");
}

#[test]
fn a_box_that_skopeo_has_copied_is_the_same() {
    let pushed = Pushed::open();
    let files = TestBox::new(&config());
    files.edit_index(|index| {
        index["manifests"][0]["annotations"] =
            serde_json::json!({ "org.opencontainers.image.ref.name": TAG });
    });
    pushed.registry.push(files.path(), TAG, "team/copied:v1").unwrap();
    assert_eq!(compare(&pushed, pushed.options(), &files, "team/copied", "v1"), Form::Plain);
}
