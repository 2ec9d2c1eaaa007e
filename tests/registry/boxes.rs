//! Tests that push boxes to a real registry and pull them again.

use std::fs;
use std::process::{Command, Output};

use box_cache::Store;
use box_contract::RunPlan;
use box_layout::OpenBox;
use box_registry::{Destination, Form, Pushed as Sent, plan, push};
use oci_registry::{Options, Registry, Repository, Tag};
use serde_json::Value;
use testbed::{Artefacts, Workspace};
use testkit::TestBox;
use testkit::test_box::{BoxFiles, config};

use crate::closed::RIGHT;
use crate::pushed::{NAME, Pushed, TAG, tagged};
use crate::schema::assert_fits;

/// Pushes a box to the repository `name`, which may mount blobs from the repository `from`.
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

/// Pulls a box into a new store, and compares each blob with `files`. Returns its form in the registry.
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

/// Runs `boxbuild` with the store `store`, and with a configuration that allows plain HTTP to the registry.
pub(crate) fn boxbuild(pushed: &Pushed, store: &str, args: &[&str]) -> Output {
    let tools = Artefacts::build(&Workspace::find()).unwrap();
    let config = format!("[registry.\"{}\"]\nplain-http = true\n", pushed.registry.host());
    let config = pushed.write("registries.toml", &config);
    let mut command = Command::new(tools.boxbuild);
    command.args(args).env_clear().env("BOXBUILD_REGISTRIES", config);
    command.env("BOXBUILD_STORE", pushed.dir.path().join(store)).output().unwrap()
}

/// Returns the stdout and stderr of a command that must succeed.
pub(crate) fn printed(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (result, notes) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{notes}{result}");
    (result, notes)
}

#[test]
fn a_box_travels_from_one_store_to_another() {
    let pushed = Pushed::open();
    let files = TestBox::new(&config());
    let digest = OpenBox::open(files.path()).unwrap().digest.to_string();
    let reference = format!("{}/team/box:v1", pushed.registry.host());
    let path = files.path().to_str().unwrap();
    let run = |store: &str, args: &[&str]| boxbuild(&pushed, store, args);
    let (first, notes) = printed(&run("one", &["push", path, &reference]));
    assert!(first.trim() == digest && notes.contains("sent "), "{first}{notes}");
    let (again, notes) = printed(&run("one", &["push", path, &reference]));
    assert!(again == first && notes.contains("has this box already"), "{notes}");
    let (report, _) = printed(&run("one", &["push", path, &reference, "--json"]));
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_fits("push", &report);
    let in_registry = report["registry_digest"].as_str().unwrap();
    assert!(
        notes.contains(&format!("pushed: {reference}@{in_registry} (box {digest})")),
        "{notes}"
    );
    let (_, notes) = printed(&run("two", &["pull", &reference, "--dry-run"]));
    assert!(notes.starts_with("would fetch "), "{notes}");
    assert_eq!(run("two", &["verify", &digest]).status.code(), Some(1), "nothing was fetched");
    let (pulled, _) = printed(&run("two", &["pull", &reference]));
    assert_eq!(pulled.trim(), digest);
    let plan = printed(&run("two", &["cat", &digest, "/boxbuild/plan.json"])).0;
    let plan: RunPlan = serde_json::from_str(&plan).unwrap();
    assert!(plan == config().plan, "the box of the other store is this one");
    // The box's digest and the registry's digest both pin the box. Another digest is refused.
    for given in [digest.as_str(), in_registry] {
        let pinned = format!("{reference}@{given}");
        let (report, _) = printed(&run("two", &["pull", &pinned, "--json"]));
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_fits("pull", &report);
        assert_eq!((&report["box"], &report["fetched"]), (&digest.as_str().into(), &0.into()));
    }
    let other = format!("{reference}@sha256:{}", "7".repeat(64));
    let refused = run("three", &["pull", &other]);
    let errors = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(1) && errors.contains("was asked for"), "{errors}");
}

#[test]
fn a_tag_that_moves_is_told_and_its_former_box_is_found_by_the_digest_of_the_registry() {
    let pushed = Pushed::open();
    let reference = format!("{}/team/box:v1", pushed.registry.host());
    let send = |files: &TestBox| -> Value {
        let args = ["push", files.path().to_str().unwrap(), &reference, "--json"];
        serde_json::from_str(&printed(&boxbuild(&pushed, "none", &args)).0).unwrap()
    };
    let files = TestBox::new(&config());
    let first = send(&files);
    printed(&boxbuild(&pushed, "one", &["pull", &reference]));
    files.edit_config(|config| config["plan"]["vm"]["memory-mib"] = 512.into());
    let second = send(&files);
    let (report, _) = printed(&boxbuild(&pushed, "one", &["pull", &reference, "--json"]));
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["box"], &report["replaced"]), (&second["box"], &first["box"]));
    let pull = |pin: &Value| {
        boxbuild(&pushed, "two", &["pull", &format!("{reference}@{}", pin.as_str().unwrap())])
    };
    let errors = String::from_utf8(pull(&first["box"]).stderr).unwrap();
    assert!(
        errors.contains(&format!("{reference} is the box {}", second["box"].as_str().unwrap())),
        "{errors}"
    );
    assert_eq!(printed(&pull(&first["registry_digest"])).0.trim(), first["box"].as_str().unwrap());
    // Pulling the first box by digest does not change the tag in this store, which has both boxes.
    let pinned = format!("{reference}@{}", first["registry_digest"].as_str().unwrap());
    let (report, _) = printed(&boxbuild(&pushed, "one", &["pull", &pinned, "--json"]));
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["box"], &report["replaced"]), (&first["box"], &Value::Null));
    for (name, there) in [(&reference, &second), (&pinned, &first)] {
        let output = pushed.dir.path().join(if *name == reference { "tag" } else { "pin" });
        let args = ["save", name, "-o", output.to_str().unwrap(), "--json"];
        let saved: Value =
            serde_json::from_str(&printed(&boxbuild(&pushed, "one", &args)).0).unwrap();
        assert_eq!(saved["boxes"][0]["box"], there["box"], "{name}");
    }
}

#[test]
fn what_is_no_reference_is_refused_before_a_registry_is_asked() {
    let pushed = Pushed::open();
    let host = pushed.registry.host();
    let pinned = format!("{host}/a:v1@sha256:{}", "7".repeat(64));
    for (command, reference) in
        [("pull", "hello"), ("pull", "acme/hello:v1"), ("push", &pinned), ("push", "acme/hello")]
    {
        let args: &[&str] =
            if command == "push" { &["push", ".", reference] } else { &["pull", reference] };
        let refused = boxbuild(&pushed, "store", args);
        let errors = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{reference}: {errors}");
        assert!(errors.contains("HOST/NAME"), "{reference}: {errors}");
    }
    // An OCI image is not a box.
    let image = format!("{host}/{NAME}:{TAG}");
    let errors = String::from_utf8(boxbuild(&pushed, "store", &["pull", &image]).stderr).unwrap();
    assert!(errors.contains("not a box"), "{errors}");
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
    // The registry mounts all blobs from the first repository in another one.
    let other = send(&pushed, &client, &files, "team/other", NAME);
    assert_eq!((other.sent, other.mounted), (0, first.sent));
    assert_eq!(other.registry_digest, first.registry_digest);
    compare(&pushed, pushed.options(), &files, "team/other", "box");
    // If only the config has changed, only the config is sent.
    files.edit_config(|config| config["plan"]["vm"]["memory-mib"] = 512.into());
    let changed = send(&pushed, &client, &files, NAME, NAME);
    assert_eq!((changed.sent, changed.skipped), (1, first.sent - 1));
    compare(&pushed, pushed.options(), &files, NAME, "box");
}

/// The registry requires a user name and a password with each request.
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
