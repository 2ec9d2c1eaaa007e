//! Tests of each rule for keeping content, with stores on a disk.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use box_digest::Digest;

use super::*;
use crate::{ActionKey, Held, KeyHasher, Named, Owner, Pulled, Refers, Store, hold};

mod attached;
mod damaged;
mod kept;
mod named;
mod order;
mod random;
mod records;

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The size in a report of a file with up to 4096 bytes.
const UNIT: u64 = 4096;
/// The size in a report of a record, and of a box without its blobs.
const RECORD: u64 = UNIT;
const BOX: u64 = 4 * UNIT;

/// A format for tests: a manifest is a list of digests, one on each line, and a thin directory has the digest of its box
/// in a file.
pub(super) struct Lines;

impl Contents for Lines {
    fn blobs(&self, manifest: &[u8]) -> Option<Vec<Digest>> {
        std::str::from_utf8(manifest).ok()?.lines().map(Digest::from_hex).collect()
    }

    fn thin(&self, directory: &Path, blobs: &Path) -> Option<(Digest, Vec<Digest>)> {
        let digest = Digest::from_hex(&fs::read_to_string(directory.join("box")).ok()?)?;
        let manifest = fs::read(blobs.join(digest.hex())).ok()?;
        Some((digest, self.blobs(&manifest)?))
    }

    fn thin_in(&self, directory: &Path) -> Vec<PathBuf> {
        if directory.join("box").exists() {
            return vec![directory.to_owned()];
        }
        let inner = fs::read_dir(directory).into_iter().flatten();
        inner.map(|it| it.unwrap().path()).collect()
    }
}

/// A store that no process has open.
pub(super) struct TestStore {
    directory: tempfile::TempDir,
}

impl TestStore {
    pub(super) fn new() -> Self {
        let place = Self { directory: tempfile::tempdir().unwrap() };
        drop(place.open());
        place
    }

    pub(super) fn root(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    fn open(&self) -> Store {
        Store::open(&self.root()).unwrap()
    }

    /// Makes a blob of `units` units.
    fn blob(&self, name: &str, units: u64) -> Digest {
        let mut bytes = name.as_bytes().to_vec();
        bytes.resize(usize::try_from(units * UNIT).unwrap(), b' ');
        self.open().put(&bytes).unwrap()
    }

    /// Makes a box with `blobs`.
    pub(super) fn make_box(&self, blobs: &[Digest]) -> Digest {
        let lines: Vec<_> = blobs.iter().map(Digest::hex).collect();
        let store = self.open();
        let digest = store.put(lines.join("\n").as_bytes()).unwrap();
        let directory = store.box_directory(&digest);
        fs::create_dir_all(directory.join("blobs/sha256")).unwrap();
        for name in ["oci-layout", "index.json"] {
            fs::write(directory.join(name), "{}").unwrap();
        }
        digest
    }

    pub(super) fn name(&self, name: &str, digest: Digest) {
        let owner = self.root().join("version");
        self.open().name_box(name, &Named { digest, owner: Owner::Boxfile(owner) }).unwrap();
    }

    fn record(&self, number: u32, blobs: &[Digest], actions: &[ActionKey]) -> ActionKey {
        let key = KeyHasher::new("test", number).finish();
        self.open().record_action(&key, b"value", &Refers { blobs, actions }).unwrap();
        key
    }

    /// Makes a record for each blob.
    pub(super) fn records(&self, blobs: &[Digest]) {
        let store = self.open();
        for (number, blob) in (1000..).zip(blobs) {
            let key = KeyHasher::new("test", number).finish();
            store.record_action(&key, b"value", &Refers::to(&[*blob])).unwrap();
        }
    }

    /// Makes a thin directory outside the store.
    fn thin(&self, name: &str, digest: Digest) -> PathBuf {
        let path = self.directory.path().join(name);
        self.open().add_root(&path).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("box"), digest.hex()).unwrap();
        path
    }

    /// Makes all content of the store older.
    pub(super) fn age(&self, by: Duration) {
        for part in DIRECTORIES {
            for entry in fs::read_dir(self.root().join(part)).unwrap() {
                let path = entry.unwrap().path();
                let index = path.join("index.json");
                for path in [path, index].iter().filter(|it| it.exists() && !it.is_symlink()) {
                    let file = File::open(path).unwrap();
                    let changed = file.metadata().unwrap().modified().unwrap();
                    file.set_modified(changed - by).unwrap();
                }
            }
        }
    }

    pub(super) fn collector(&self) -> Collector {
        Collector::open(&self.root()).unwrap().unwrap()
    }

    fn collect(&self, rules: &Rules) -> Report {
        self.collector().collect(&Lines, rules).unwrap()
    }

    fn collect_to(&self, cap: u64) -> Report {
        self.collect(&Rules { cap: Some(cap), ..Rules::default() })
    }

    fn has(&self, blob: Digest) -> bool {
        self.root().join("blobs").join(blob.hex()).exists()
    }

    fn has_box(&self, digest: Digest) -> bool {
        self.root().join("boxes").join(digest.hex()).exists()
    }

    fn has_record(&self, key: ActionKey) -> bool {
        self.root().join("actions").join(key.hex()).exists()
    }

    fn names(&self) -> Vec<String> {
        list(&self.root().join("names"))
    }
}

fn list(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|it| it.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn reason(report: &Report) -> Vec<Option<Why>> {
    report.kept.iter().map(|it| it.reason).collect()
}
