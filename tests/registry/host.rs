//! The tests' own registry, a box, and the commands that push and pull it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use box_cache::Store;
use box_digest::Digest;
use box_layout::OpenBox;
use box_registry::PLAIN_DIGEST;
use serde_json::Value;
use test_server::registry::{Registry, Rules};
use testbed::{Artefacts, Workspace};
use testkit::TestBox;
use testkit::test_box::{BoxFiles, config};

/// The box's repository and tag.
pub(crate) const NAME: &str = "team/app";
pub(crate) const TAG: &str = "v1";

/// A registry, a box, and a directory for stores.
pub(crate) struct Host {
    pub(crate) registry: Registry,
    pub(crate) files: TestBox,
    pub(crate) dir: tempfile::TempDir,
    boxbuild: PathBuf,
}

impl Host {
    /// Starts a registry.
    pub(crate) fn new(rules: Rules) -> Self {
        let boxbuild = Artefacts::build(&Workspace::find()).unwrap().boxbuild;
        let (registry, files) =
            (Registry::start(rules), TestBox::with_segments(&config(), vec![noisy()]));
        let dir = tempfile::tempdir().unwrap();
        let config = format!("[registry.\"{}\"]\nplain-http = true\n", registry.host());
        fs::write(dir.path().join("registries.toml"), config).unwrap();
        Self { registry, files, dir, boxbuild }
    }

    /// Starts a registry for a box with these segments.
    pub(crate) fn of(rules: Rules, segments: Vec<Vec<u8>>) -> Self {
        Self { files: TestBox::with_segments(&config(), segments), ..Self::new(rules) }
    }

    /// Starts a registry that has the box.
    pub(crate) fn with_box(rules: Rules) -> Self {
        let host = Self::new(rules);
        host.pushed();
        host
    }

    pub(crate) fn reference(&self) -> String {
        format!("{}/{NAME}:{TAG}", self.registry.host())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns a `boxbuild` command that uses the store `store`.
    pub(crate) fn command(&self, store: &str, args: &[&str]) -> Command {
        let mut command = Command::new(&self.boxbuild);
        command.args(args).env_clear().env("BOXBUILD_REGISTRIES", self.path("registries.toml"));
        command.env("BOXBUILD_STORE", self.path(store)).env("TMPDIR", self.dir.path());
        command
    }

    pub(crate) fn push(&self, files: &BoxFiles) -> Command {
        self.command("none", &["push", files.path().to_str().unwrap(), &self.reference(), "--json"])
    }

    pub(crate) fn pull(&self, store: &str) -> Command {
        self.command(store, &["pull", &self.reference(), "--json"])
    }

    /// Pushes the box, and returns the report.
    pub(crate) fn pushed(&self) -> Value {
        report(&self.push(&self.files).output().unwrap())
    }

    /// Pulls the box, compares every byte, and returns the report.
    pub(crate) fn pulled(&self, store: &str) -> Value {
        let report = report(&self.pull(store).output().unwrap());
        compare(&self.files, &self.path(store));
        report
    }

    /// Runs a command that must fail, and returns its stdout and stderr.
    pub(crate) fn fails(&self, command: &mut Command) -> String {
        let output = command.output().unwrap();
        let message =
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(1), "{message}");
        message
    }

    /// Returns the box's manifest in the registry.
    pub(crate) fn document(&self) -> Value {
        let key = (NAME.to_owned(), TAG.to_owned());
        self.registry.with(|held| serde_json::from_slice(&held.manifests[&key].1).unwrap())
    }

    /// Returns, for each layer in the registry, the digest of its uncompressed bytes and its digest in the registry.
    pub(crate) fn layers(&self) -> Vec<(Digest, String)> {
        let document = self.document();
        let layers = document["layers"].as_array().unwrap().iter();
        let text = |it: &Value| it.as_str().unwrap().to_owned();
        let plain = |it: &Value| text(&it["annotations"][PLAIN_DIGEST]).parse().unwrap();
        layers.map(|it| (plain(it), text(&it["digest"]))).collect()
    }

    /// Returns the digest of the blob in each GET, of requests to the registry and to its separate storage.
    pub(crate) fn fetched(&self) -> Vec<String> {
        let requests = [self.registry.requests(), self.registry.stored()].concat();
        let blobs =
            requests.iter().filter(|it| it.method() == "GET" && it.path().contains("/blobs/"));
        blobs.map(|it| it.path().rsplit('/').next().unwrap_or_default().to_owned()).collect()
    }
}

/// Waits up to 60 s until `is_so` returns true.
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(60), "{what}");
        sleep(Duration::from_millis(5));
    }
}

/// Returns a segment of 4 KiB that compresses to about a half.
fn noisy() -> Vec<u8> {
    let noise = (0_u32..512).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes());
    noise.chain([0; 2048]).collect()
}

/// Parses the JSON report of a command that must succeed.
pub(crate) fn report(output: &Output) -> Value {
    let message = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{message}{printed}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Compares every blob of a box with the store's blob.
pub(crate) fn compare(files: &BoxFiles, store: &Path) {
    let store = Store::open(store).unwrap();
    let opened = OpenBox::open(files.path()).unwrap();
    let blobs = opened.manifest.blobs().into_iter().map(|it| it.digest);
    for digest in blobs.chain([opened.digest]) {
        assert!(store.read(&digest).unwrap() == fs::read(files.blob_path(&digest)).unwrap());
    }
}

/// Checks that each blob in a store matches the digest in its name. Returns the number of blobs.
pub(crate) fn check(store: &Path) -> usize {
    let Ok(entries) = fs::read_dir(store.join("blobs")) else { return 0 };
    let names: Vec<_> = entries.map(|it| it.unwrap().path()).collect();
    for path in &names {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(Digest::of(&fs::read(path).unwrap()).hex(), name);
    }
    names.len()
}
