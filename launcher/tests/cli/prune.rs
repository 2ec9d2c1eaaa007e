//! `boxlaunch prune`, `rmi` and `images --sizes`: what they remove from a store, and what they print.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use box_cache::{Held, Named, Store, hold};
use box_contract::BoxConfig;
use box_digest::Digest;
use box_layout::OpenBox;
use serde_json::Value;
use testkit::TestBox;
use testkit::test_box::config;

use crate::{Ended, boxlaunch, ended};

/// The paths of a store and of a state directory, neither of which exists at first.
pub(crate) struct TestStore {
    directory: tempfile::TempDir,
}

impl TestStore {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    /// Puts a box with this config and these names into the store, and makes everything in the store a day older.
    pub(crate) fn add(&self, names: &[&str], config: &BoxConfig) -> Digest {
        let (made, store) = (TestBox::new(config), Store::open(&self.root()).unwrap());
        let opened = OpenBox::open(made.path()).unwrap();
        for (name, now) in opened.files() {
            let bytes = fs::read(now).unwrap();
            if name.starts_with("blobs") {
                store.put(&bytes).unwrap();
            } else {
                let directory = store.box_directory(&opened.digest);
                fs::create_dir_all(&directory).unwrap();
                fs::write(directory.join(name), bytes).unwrap();
            }
        }
        for name in names {
            let named = Named {
                digest: opened.digest,
                owner: box_cache::Owner::Boxfile(self.root().join("version")),
            };
            store.name_box(name, &named).unwrap();
        }
        drop(store);
        self.age();
        opened.digest
    }

    /// Makes everything in the store a day older.
    fn age(&self) {
        for part in ["blobs", "boxes", "names"] {
            for entry in fs::read_dir(self.root().join(part)).unwrap() {
                let path = entry.unwrap().path();
                for path in [path.join("index.json"), path].iter().filter(|it| it.exists()) {
                    let file = File::open(path).unwrap();
                    let day = Duration::from_secs(24 * 60 * 60);
                    file.set_modified(file.metadata().unwrap().modified().unwrap() - day).unwrap();
                }
            }
        }
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        let mut command = boxlaunch(args);
        command.env("BOXBUILD_STORE", self.root());
        command.env("BOXLAUNCH_STATE", self.directory.path().join("state"));
        ended(command)
    }

    fn json(&self, args: &[&str]) -> Value {
        let ended = self.run(&[args, &["--json"]].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        serde_json::from_str(&ended.stdout).unwrap()
    }

    fn names(&self) -> String {
        self.run(&["images", "-aq"]).stdout
    }

    fn blobs(&self) -> usize {
        fs::read_dir(self.root().join("blobs")).unwrap().count()
    }

    fn held(&self, digest: &Digest) -> Held {
        hold(&self.root(), digest).unwrap()
    }
}

/// Returns the config of a box with `number` CPUs. Boxes with different numbers share all blobs except the manifest and the
/// config.
fn numbered(number: u8) -> BoxConfig {
    let mut config = config();
    config.plan.vm.cpus = number;
    config
}

#[test]
fn a_box_goes_with_its_last_name() {
    let place = TestStore::new();
    let [one, _] = [place.add(&["a", "b"], &numbered(1)), place.add(&["c"], &numbered(2))];
    let before = place.blobs();
    assert_eq!(
        place.run(&["rmi", "a"]).stdout.lines().next(),
        Some("removed the name a; the box stays as b")
    );
    assert_eq!((place.names().as_str(), place.blobs()), ("b\nc\n", before));
    let report = place.json(&["rmi", "b"]);
    assert_eq!(report["removed"][0]["box"], one.to_string());
    // Only the manifest and the config are removed, because the box `c` shares the other blobs.
    assert_eq!((place.names().as_str(), place.blobs()), ("c\n", before - 2));
    assert_eq!(place.run(&["rmi", "c", "-q"]).code, Some(0));
    assert_eq!((place.names().as_str(), place.blobs()), ("", 0));
}

#[test]
fn a_name_whose_box_is_gone_can_be_removed() {
    let place = TestStore::new();
    place.add(&["a"], &numbered(1));
    fs::remove_dir_all(place.root().join("boxes")).unwrap();
    fs::create_dir(place.root().join("boxes")).unwrap();
    let ended = place.run(&["rmi", "a"]);
    assert_eq!((ended.code, place.names().as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.stdout.starts_with("removed the name a, which had no box\n"), "{ended:?}");
}

#[test]
fn what_cannot_be_removed_is_said_before_anything_is() {
    let place = TestStore::new();
    let named = place.add(&["a", "b"], &numbered(1));
    let runs = place.add(&["c"], &numbered(2));
    let held = place.held(&runs);
    let refused = |args: &[&str], code: i32, text: &str| {
        let ended = place.run(args);
        assert!(ended.code == Some(code) && ended.stderr.contains(text), "{ended:?}");
        assert_eq!(place.names(), "a\nb\nc\n");
    };
    refused(&["rmi", "a", "none"], 1, "no box has the name none");
    refused(&["rmi", "a", "./c.box"], 2, "a path does not name a box of the store");
    refused(&["rmi", "a", "c"], 1, "c runs");
    let digest = named.to_string();
    refused(&["rmi", &digest], 2, "has several names: a, b");
    let other = format!("c@{digest}");
    refused(&["rmi", "a", &other], 1, "the box has the digest sha256:");
    let absent = Digest::of(b"none").to_string();
    refused(&["rmi", "a", &absent], 1, "the store has no box sha256:");
    assert_eq!(place.run(&["rmi", "--force", &digest, "c"]).code, Some(0));
    assert_eq!((place.names().as_str(), place.blobs()), ("", 0));
    drop(held);
}

#[test]
fn what_was_used_least_recently_goes_and_the_rest_is_explained() {
    let place = TestStore::new();
    place.add(&["old"], &numbered(1));
    let runs = place.add(&["runs"], &numbered(2));
    let held = place.held(&runs);
    place.age();
    let dry = place.run(&["prune", "--max-size", "0", "--dry-run"]);
    assert!(dry.stdout.starts_with("would remove old\n"), "{dry:?}");
    assert_eq!(place.names(), "old\nruns\n");
    let pruned = place.run(&["prune", "--max-size", "0"]);
    assert!(pruned.stdout.starts_with("removed old\n"), "{pruned:?}");
    assert!(pruned.stdout.contains("\nkept runs: it runs\n"), "{pruned:?}");
    assert!(pruned.stderr.starts_with("warning: the store "), "{pruned:?}");
    drop(held);
    assert_eq!(place.json(&["prune", "--max-size", "none"])["removed"], serde_json::json!([]));
    let week = place.json(&["prune", "--max-size", "none", "--older-than", "7d"]);
    assert_eq!(week["kept"][0]["why"], Value::Null);
    let quiet = place.run(&["prune", "-q", "--max-size", "none", "--older-than", "1h"]);
    assert_eq!((quiet.stdout, place.blobs()), (format!("{runs}\n"), 0));
    let wrong = place.run(&["prune", "--max-size", "much"]);
    assert!(wrong.code == Some(2) && wrong.stderr.contains("50G"), "{wrong:?}");
}

#[test]
fn sizes_say_what_goes_with_a_box() {
    let place = TestStore::new();
    place.add(&["a"], &numbered(1));
    let alone = place.json(&["images", "--sizes"])["images"][0].clone();
    assert!(alone["shared_bytes"] == 0 && alone["own_bytes"].as_u64() > Some(0));
    place.add(&["b"], &numbered(2));
    let both = place.json(&["images", "--sizes"]);
    for image in both["images"].as_array().unwrap() {
        assert_eq!(image["own_bytes"], 2 * 4096, "{image}");
        let all = image["own_bytes"].as_u64().unwrap() + image["shared_bytes"].as_u64().unwrap();
        assert_eq!(alone["own_bytes"], all);
    }
    assert!(place.run(&["images", "--sizes"]).stdout.contains("OWN"));
}

#[test]
fn without_a_store_there_is_nothing_to_remove_and_none_is_made() {
    let place = TestStore::new();
    let pruned = place.run(&["prune"]);
    assert!(pruned.code == Some(0) && pruned.stdout.starts_with("nothing to remove"), "{pruned:?}");
    assert!(!place.root().exists());
    let foreign = place.directory.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("thesis"), "").unwrap();
    let refused = place.run(&["prune", "--store", path(&foreign), "--max-size", "0"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("is not a store"), "{refused:?}");
    assert!(foreign.join("thesis").exists());
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}
