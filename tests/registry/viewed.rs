//! Tests of `boxbuild diff` with boxes in a registry: it fetches only what it compares, and keeps no box.

use std::fs;
use std::path::Path;

use box_trust::{Algorithm, PrivateKey};
use serde_json::Value;
use test_server::registry::{Registry, Rules};
use testkit::images::{Config, Image, Layer, LayerTar};

use crate::host::report;
use crate::inline::{Ci, noise};

/// Returns a layer whose segment has a package database: that of dpkg with a package in this version.
fn debian(version: u32) -> LayerTar {
    let status = format!("Package: libc6\nStatus: install ok installed\nVersion: {version}\n");
    // Longer than what the metadata have.
    let status = status + &"Description: padding\n".repeat(200);
    let layer = Layer::new().file("/usr/data", 0o644, noise(1_600_000, 7));
    layer.file("/var/lib/dpkg/status", 0o644, status).to_tar()
}

/// Returns a host whose agent has packages of Debian.
fn host(registry: &Registry, version: u32) -> Ci<'_> {
    let ci = Ci::new(registry);
    let entrypoint = vec!["/usr/program".to_owned()];
    let agent = Image::new(Config { entrypoint, ..Config::default() });
    let program = Layer::new().file("/usr/program", 0o755, "program").to_tar();
    ci.image("agent", &agent.with(debian(version)).with(program));
    ci
}

/// A comparison: what it printed, and how many bytes of blobs it fetched, by their media type.
struct Compared {
    printed: String,
    fetched: Vec<(String, u64)>,
}

impl Compared {
    fn of(ci: &Ci<'_>, registry: &Registry, args: &[&str]) -> Self {
        let before = registry.lines().len();
        let ran = ci.command(&[&["diff"][..], args].concat()).output().unwrap();
        let notes = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(5), "{notes}");
        let lines = registry.lines().split_off(before);
        let blobs = lines.iter().filter_map(|it| it.split_once("/blobs/"));
        let blobs = blobs.filter(|(method, _)| method.starts_with("GET "));
        let fetched = blobs.map(|(_, digest)| stored(registry, digest)).collect();
        Self { printed: String::from_utf8(ran.stdout).unwrap(), fetched }
    }

    fn kinds(&self) -> Vec<&str> {
        let mut kinds: Vec<_> = self.fetched.iter().map(|(kind, _)| kind.as_str()).collect();
        kinds.sort_unstable();
        kinds
    }

    fn bytes(&self) -> u64 {
        self.fetched.iter().map(|(_, size)| size).sum()
    }
}

/// Returns the role of a blob in the registry's manifests, and its size.
fn stored(registry: &Registry, digest: &str) -> (String, u64) {
    registry.with(|held| {
        let manifests = held.manifests.values();
        let parsed = manifests.filter_map(|(_, it)| serde_json::from_slice::<Value>(it).ok());
        let named = parsed.flat_map(|it| {
            let layers = it["layers"].as_array().cloned().unwrap_or_default();
            layers.into_iter().chain([it["config"].clone()]).collect::<Vec<_>>()
        });
        let blob = named.into_iter().find(|it| it["digest"] == digest).unwrap();
        let kind = blob["mediaType"].as_str().unwrap();
        let kind = kind.trim_start_matches("application/vnd.boxbuild.");
        let kind = kind.split('.').next().unwrap();
        (kind.to_owned(), blob["size"].as_u64().unwrap())
    })
}

/// Pushes a box, and returns its name with the digest of its manifest, as the action of GitHub passes it on.
fn pushed(ci: &Ci<'_>) -> String {
    let built = ci.build("hello:v1", &[]);
    format!("{}@{}", ci.reference("hello"), built["pushed"]["registry_digest"].as_str().unwrap())
}

fn registry() -> Registry {
    Registry::start(Rules { mounts: true, ..Rules::default() })
}

/// Returns what `diff` prints on a host that has both boxes.
fn whole(registry: &Registry, boxes: [&str; 2], more: &[&str]) -> String {
    let ci = Ci::new(registry);
    for name in boxes {
        report(&ci.command(&["pull", name, "--json"]).output().unwrap());
    }
    let compared = Compared::of(&ci, registry, &[&boxes[..], more].concat());
    assert!(compared.fetched.is_empty(), "{:?}", compared.fetched);
    compared.printed
}

/// Asserts that a store has no box.
fn assert_no_box(ci: &Ci<'_>) {
    let store = ci.path("store");
    for directory in ["boxes", "names", "pulled"] {
        let entries = fs::read_dir(store.join(directory)).map_or(0, Iterator::count);
        assert_eq!(entries, 0, "{directory}: {:?}", names(&store.join(directory)));
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries.map(|it| it.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// The build of the changed box, and its comparison with the box before: what a job of the action does on a new machine.
#[test]
fn a_summary_of_a_changed_skill_fetches_documents_only() {
    let registry = registry();
    let old = pushed(&host(&registry, 1));
    let (ci, before) = (host(&registry, 1), registry.lines().len());
    ci.skill("Greets twice.");
    let new = pushed(&ci);
    let built: u64 = {
        let lines = registry.lines().split_off(before);
        let blobs = lines.iter().filter(|it| it.starts_with("GET "));
        let blobs = blobs.filter_map(|it| Some(stored(&registry, it.split_once("/blobs/")?.1).1));
        blobs.sum()
    };
    for format in ["markdown", "text"] {
        let compared = Compared::of(&ci, &registry, &[&old, &new, "--format", format]);
        // The new box's config and listing were built here. A second comparison has those of the old one.
        let expected: &[&str] = match format {
            "markdown" => &["config", "listing", "manifest", "manifest"],
            _ => &["manifest", "manifest"],
        };
        assert_eq!(compared.kinds(), expected);
        assert!(built + compared.bytes() < 50_000, "{built} {:?}", compared.fetched);
        assert_eq!(compared.printed, whole(&registry, [&old, &new], &["--format", format]));
        assert!(compared.printed.contains("SKILL.md"), "{}", compared.printed);
    }
    assert_no_box(&ci);
    let absent = ci.command(&["inspect", &old]).output().unwrap();
    assert_ne!(absent.status.code(), Some(0));
}

#[test]
fn a_changed_package_of_a_skill_fetches_the_metadata_and_no_segment() {
    let registry = registry();
    let old = pushed(&host(&registry, 1));
    let ci = host(&registry, 1);
    let package = ci.path("app/skills/greet/node_modules/pad");
    fs::create_dir_all(&package).unwrap();
    fs::write(package.join("package.json"), r#"{"name":"pad","version":"1.3.0"}"#).unwrap();
    let new = pushed(&ci);
    let compared = Compared::of(&Ci::new(&registry), &registry, &[&old, &new]);
    assert_eq!(
        compared.kinds(),
        ["config", "config", "listing", "listing", "manifest", "manifest", "metadata"]
    );
    assert!(compared.printed.contains("skill greet npm pad  +1.3.0"), "{}", compared.printed);
    assert_eq!(compared.printed, whole(&registry, [&old, &new], &[]));
}

#[test]
fn a_changed_database_fetches_the_segments_that_have_it() {
    let registry = registry();
    let (old, new) = (pushed(&host(&registry, 1)), pushed(&host(&registry, 2)));
    let ci = Ci::new(&registry);
    let compared = Compared::of(&ci, &registry, &[&old, &new]);
    assert!(compared.printed.contains("agent deb libc6  1 → 2"), "{}", compared.printed);
    assert_eq!(compared.printed, whole(&registry, [&old, &new], &[]));
    let count = |kind| compared.kinds().into_iter().filter(|it| *it == kind).count();
    assert_eq!(["metadata", "segment"].map(count), [2, 2], "{:?}", compared.fetched);
    assert_no_box(&ci);
}

/// A registry that has exchanged a blob is found out, and nothing of it is compared.
#[test]
fn a_wrong_segment_is_an_error() {
    let registry = registry();
    let (old, new) = (pushed(&host(&registry, 1)), pushed(&host(&registry, 2)));
    registry.with(|held| {
        for blob in held.blobs.values_mut().filter(|it| it.len() > 1_000_000) {
            let middle = blob.len() / 2;
            blob[middle] ^= 1;
        }
    });
    let ci = Ci::new(&registry);
    let ran = ci.command(&["diff", &old, &new, "--json"]).output().unwrap();
    assert_eq!(ran.status.code(), Some(1));
    let said: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let error = &said["errors"][0];
    assert!(error["message"].as_str().unwrap().contains("is damaged"), "{said}");
    assert_ne!(error["code"], "io", "{said}");
    assert!(said.get("differences").is_none(), "{said}");
}

#[test]
fn the_policy_is_asked_before_a_blob_of_the_box_is_fetched() {
    let registry = registry();
    let builder = host(&registry, 1);
    let old = pushed(&builder);
    let ci = Ci::new(&registry);
    let config = ci.path("config/boxbuild");
    fs::create_dir_all(&config).unwrap();
    let key = PrivateKey::generate(Algorithm::EcdsaP256).unwrap();
    fs::write(config.join("team.pub"), key.public().to_pem()).unwrap();
    let rule = format!("[[rule]]\nmatch = \"{}/team/*\"\n", registry.host());
    for (rest, code, asked) in [
        ("decision = \"refuse\"\n", "policy-refused", false),
        ("keys = [\"team.pub\"]\n", "box-unsigned", true),
    ] {
        fs::write(config.join("policy.toml"), format!("{rule}{rest}")).unwrap();
        for mut command in [
            ci.command(&["diff", &old, &old, "--json"]),
            builder.command(&["verify", &old, "--rebuild", "--json"]),
        ] {
            let before = registry.lines().len();
            let ran = command.env("XDG_CONFIG_HOME", ci.path("config")).output().unwrap();
            let said: Value = serde_json::from_slice(&ran.stdout).unwrap();
            assert_eq!(said["errors"][0]["code"], code, "{said}");
            let lines = registry.lines().split_off(before);
            assert_eq!(!lines.is_empty(), asked, "{lines:?}");
            // The manifest of the box is a blob in the registry.
            let blobs = lines.iter().filter(|it| it.contains("/blobs/")).count();
            assert_eq!(blobs, usize::from(asked), "{lines:?}");
        }
    }
}

/// A box of the store that lacks blobs is not replaced by the box that its tag means now.
#[test]
fn a_name_that_the_store_knows_is_that_box_or_an_error() {
    let registry = registry();
    let (old, tag) = (pushed(&host(&registry, 1)), "hello:v1");
    let ci = Ci::new(&registry);
    let tag = ci.reference(tag);
    report(&ci.command(&["pull", &tag, "--json"]).output().unwrap());
    for blob in names(&ci.path("store/blobs")) {
        fs::remove_file(ci.path("store/blobs").join(blob)).unwrap();
    }
    let diff = || ci.command(&["diff", &tag, &old, "--json"]).output().unwrap();
    // The tag still means that box.
    assert_eq!(diff().status.code(), Some(0));
    for blob in names(&ci.path("store/blobs")) {
        fs::remove_file(ci.path("store/blobs").join(blob)).unwrap();
    }
    pushed(&host(&registry, 2));
    let said: Value = serde_json::from_slice(&diff().stdout).unwrap();
    assert_eq!(said["errors"][0]["code"], "digest-mismatch", "{said}");
}
