//! Tests of deltas: a host that has an older box fetches what has changed.

use std::fs;
use std::process::Output;

use box_contract::manifest::OCI_MANIFEST_TYPE;
use box_digest::Digest;
use box_registry::DELTAS_TYPE;
use serde_json::{Value, json};
use test_server::registry::{Referrers, Registry, Rules};
use testkit::images::{Config, Image, Layer, LayerTar};

use crate::host::report;
use crate::inline::{Ci, noise};
use crate::schema::assert_fits;

/// Returns the layer of the agent in its version `version`: each has a program that is a little longer at its beginning, a large file
/// that never changes, and a file whose name has the version.
fn layer(version: u8) -> LayerTar {
    let program = [vec![version; usize::from(version) * 7], noise(900_000, 3)].concat();
    let chunk = [noise(300_000, 5), vec![version; 20]].concat();
    let layer = Layer::new().dir("/usr", 0o755).file("/usr/data", 0o644, noise(1_600_000, 4));
    let layer = layer.file("/usr/program", 0o755, program);
    layer.file(&format!("/usr/chunk-{version}"), 0o644, chunk).to_tar()
}

/// Builds and pushes the version `version` of the agent.
fn push(ci: &Ci<'_>, version: u8, to: &str, more: &[&str]) -> Value {
    let entrypoint = vec!["/usr/program".to_owned()];
    let agent = Image::new(Config { entrypoint, ..Config::default() });
    ci.image("agent", &agent.with(layer(version)));
    // The lock has the version before.
    fs::remove_file(ci.path("app/Boxfile.lock")).ok();
    ci.build(to, more)
}

fn boxbuild(ci: &Ci<'_>, store: &str, args: &[&str]) -> Output {
    ci.command(args).env("BOXBUILD_STORE", ci.path(store)).output().unwrap()
}

/// Pulls a box into a store, verifies it there, and returns the report.
fn pull(ci: &Ci<'_>, store: &str, name: &str) -> Value {
    let report = report(&boxbuild(ci, store, &["pull", &ci.reference(name), "--json"]));
    assert_fits("pull", &report);
    let digest = report["box"].as_str().unwrap();
    let verified = boxbuild(ci, store, &["verify", digest]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    report
}

fn number(report: &Value, field: &str) -> u64 {
    report[field].as_u64().unwrap()
}

#[test]
fn a_host_with_the_older_box_fetches_deltas() {
    for referrers in [Referrers::default(), Referrers::Paged(2)] {
        let registry = Registry::start(Rules { referrers, ..Rules::default() });
        let ci = Ci::new(&registry);
        let first = push(&ci, 1, "app:stable", &[]);
        assert_eq!(first["pushed"]["deltas"], 0);
        assert_eq!(pull(&ci, "host", "app:stable")["deltas"], 0);
        let second = push(&ci, 2, "app:stable", &[]);
        assert!(number(&second["pushed"], "deltas") > 0, "{second}");
        assert!(number(&second["pushed"], "delta_bytes") < 20_000, "{second}");
        // A second push of the same box makes no deltas again.
        assert_eq!(push(&ci, 2, "app:stable", &[])["pushed"]["delta_bytes"], 0);
        let (updated, new) = (pull(&ci, "host", "app:stable"), pull(&ci, "new", "app:stable"));
        assert_eq!((&updated["box"], &new["box"]), (&second["box"], &second["box"]));
        assert_eq!((&new["deltas"], &new["bytes"]), (&0.into(), &new["total_bytes"]));
        assert!(number(&updated, "deltas") > 0, "{updated}");
        let (some, all) = (number(&updated, "bytes"), number(&updated, "total_bytes"));
        assert!(some * 100 < all, "{some} of {all}: the program of 900 kB has seven bytes more");
        // No attachment of the box is a delta.
        assert_eq!(updated["attachments"], 0);
    }
}

#[test]
fn a_new_tag_gets_the_deltas_from_boxes_that_the_user_names() {
    let registry = Registry::start(Rules::default());
    let ci = Ci::new(&registry);
    let first = push(&ci, 1, "app:v1", &[]);
    pull(&ci, "host", "app:v1");
    let second = push(&ci, 2, "app:v2", &[]);
    assert_eq!(second["pushed"]["deltas"], 0, "the tag is new");
    let whole = number(&pull(&ci, "other", "app:v2"), "bytes");
    let digests = [&second, &first].map(|it| it["box"].as_str().unwrap().to_owned());
    let to = ci.reference("app:v2");
    let args = ["push", &digests[0], &to, "--since", &digests[1], "--json"];
    let sent = report(&boxbuild(&ci, "store", &args));
    assert_fits("push", &sent);
    assert!(sent["bytes"] == 0 && number(&sent, "deltas") > 0, "{sent}");
    let updated = pull(&ci, "host", "app:v2");
    assert!(number(&updated, "bytes") * 100 < whole, "{updated}");
}

/// Makes the wrong bytes of a delta from its descriptor.
type Fault<'f> = &'f dyn Fn(&Value) -> Vec<u8>;

/// Returns the key of the manifest with deltas in the registry, and the manifest.
fn manifest(registry: &Registry) -> ((String, String), Value) {
    registry.with(|held| {
        let all = held.manifests.iter();
        let read = |it: &[u8]| serde_json::from_slice::<Value>(it).unwrap();
        let mut all = all.map(|(key, it)| (key.clone(), read(&it.1)));
        all.find(|(_, it)| it["artifactType"] == DELTAS_TYPE).unwrap()
    })
}

#[test]
fn a_wrong_delta_costs_a_fallback_and_never_a_wrong_byte() {
    // This registry lists referrers itself, so the changed manifest is listed.
    let referrers = Referrers::Paged(2);
    let registry = Registry::start(Rules { referrers, ..Rules::default() });
    let ci = Ci::new(&registry);
    push(&ci, 1, "app:stable", &[]);
    pull(&ci, "host", "app:stable");
    let second = push(&ci, 2, "app:stable", &[]);
    let (key, sound) = manifest(&registry);
    let bytes = |it: &Value| {
        let digest: Digest = it["digest"].as_str().unwrap().parse().unwrap();
        registry.with(|held| held.blobs[&(key.0.clone(), digest.to_string())].clone())
    };
    // For each kind of fault, all deltas have it.
    let faults: [(&str, Fault<'_>); 4] = [
        ("no delta", &|_| b"boxdelt2".to_vec()),
        ("cut", &|it| bytes(it)[..bytes(it).len() - 1].to_vec()),
        ("longer", &|it| [bytes(it), b"x".to_vec()].concat()),
        ("changed", &|it| {
            let mut bytes = bytes(it);
            // A byte of the last frame, or of the last step.
            *bytes.last_mut().unwrap() ^= 1;
            bytes
        }),
    ];
    for (what, fault) in faults {
        let mut changed = sound.clone();
        for layer in changed["layers"].as_array_mut().unwrap() {
            let bytes = fault(layer);
            registry.with(|held| layer["digest"] = json!(held.put_blob(&key.0, &bytes)));
            layer["size"] = json!(bytes.len());
        }
        replace(&registry, &key, &changed);
        let store = format!("host-{what}").replace(' ', "-");
        copy(&ci, "host", &store);
        let output = boxbuild(&ci, &store, &["pull", &ci.reference("app:stable")]);
        let notes = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && notes.contains("could not be used"), "{what}: {notes}");
        assert_eq!(pull(&ci, &store, "app:stable")["box"], second["box"], "{what}");
    }
    // Deltas that the registry lists but lacks, and deltas of something that the host has not, are as good as none.
    for (field, value) in [
        ("/digest", json!(Digest::of(b"absent"))),
        ("/annotations/vnd.boxbuild.delta.sources", json!(Digest::of(b"absent"))),
        ("/annotations/vnd.boxbuild.delta.sources", json!("sha256:7")),
        ("/annotations/vnd.boxbuild.plain.size", json!("7")),
        ("/size", json!(100_000_000)),
    ] {
        let mut changed = sound.clone();
        for layer in changed["layers"].as_array_mut().unwrap() {
            *layer.pointer_mut(field).unwrap() = value.clone();
        }
        replace(&registry, &key, &changed);
        let store =
            format!("host{}", Digest::of((field.to_owned() + &value.to_string()).as_bytes()).hex());
        copy(&ci, "host", &store);
        assert_eq!(pull(&ci, &store, "app:stable")["box"], second["box"], "{field} {value}");
    }
}

/// Replaces the manifest of the deltas, and lists the new one in its place.
fn replace(registry: &Registry, key: &(String, String), document: &Value) {
    registry.with(|held| {
        held.manifests.retain(|_, it| !String::from_utf8_lossy(&it.1).contains(DELTAS_TYPE));
        let bytes = document.to_string().into_bytes();
        let digest = Digest::of(&bytes).to_string();
        held.put_manifest(&key.0, &digest, OCI_MANIFEST_TYPE, &bytes);
    });
}

fn copy(ci: &Ci<'_>, from: &str, to: &str) {
    let copied = std::process::Command::new("cp");
    let copied = { copied }.arg("-a").arg(ci.path(from)).arg(ci.path(to)).status().unwrap();
    assert!(copied.success());
}

#[test]
fn a_file_has_what_a_host_with_the_older_box_lacks() {
    let registry = Registry::start(Rules::default());
    let ci = Ci::new(&registry);
    let first = push(&ci, 1, "app:v1", &[]);
    for store in ["host", "piped", "directory"] {
        pull(&ci, store, "app:v1");
    }
    let second = push(&ci, 2, "app:v2", &[]);
    let [new, old] = [&second, &first].map(|it| it["box"].as_str().unwrap().to_owned());
    let save = |to: &str, more: &[&str]| {
        let args = [&["save", &new, "-o", to, "--json"][..], more].concat();
        let saved = report(&boxbuild(&ci, "store", &args));
        assert_fits("save", &saved);
        saved
    };
    let (whole, since) = (save("whole.tar", &[]), save("since.tar", &["--since", &old]));
    save("since", &["--since", &old]);
    assert!(number(&since, "bytes") * 100 < number(&whole, "bytes"), "{since} {whole}");
    assert!(number(&since, "deltas") > 0 && whole["deltas"] == 0, "{since} {new} {old}");
    // The same boxes give the same bytes.
    save("again.tar", &["--since", &old]);
    let file = |name: &str| fs::read(ci.path("app").join(name)).unwrap();
    assert!(file("again.tar") == file("since.tar"));
    for (store, path) in [("host", "since.tar"), ("directory", "since")] {
        let loaded = report(&boxbuild(&ci, store, &["load", path, "--json"]));
        assert_eq!(loaded["loaded"][0]["box"], second["box"]);
        assert!(boxbuild(&ci, store, &["verify", &new]).status.success());
    }
    let mut piped = ci.command(&["load", "-"]);
    piped.env("BOXBUILD_STORE", ci.path("piped"));
    let piped = piped.stdin(fs::File::open(ci.path("app/since.tar")).unwrap()).output().unwrap();
    assert!(piped.status.success(), "{}", String::from_utf8_lossy(&piped.stderr));
    assert!(boxbuild(&ci, "piped", &["verify", &new]).status.success());
    // A host without the older box is told which one it needs, and keeps nothing.
    for path in ["since.tar", "since"] {
        let refused = boxbuild(&ci, "empty", &["load", path]);
        let message = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{message}");
        assert!(message.contains(&old) && message.contains("--since"), "{message}");
    }
    // Two boxes cannot be saved since one.
    let two = boxbuild(&ci, "store", &["save", &new, &old, "-o", "x.tar", "--since", &old]);
    assert_eq!(two.status.code(), Some(2), "{}", String::from_utf8_lossy(&two.stderr));
}
