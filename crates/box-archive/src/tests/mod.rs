//! Boxes, files with boxes, and stores.

mod attached;
mod forms;
mod hostile;
mod loaded;
mod saved;

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use box_cache::{Store, StoredBoxes};
use box_digest::Digest;
use box_layout::{Documents, OpenBox, Places};
use tar::{EntryType, Header};
use tempfile::TempDir;
use testkit::TestBox;
use testkit::test_box::config;

use crate::*;

/// Returns boxes that differ in their names, so that they share all but two small blobs.
fn boxes(names: &[&str]) -> Vec<TestBox> {
    let named = |name: &&str| {
        let mut config = config();
        config.plan.name = (*name).to_owned();
        TestBox::new(&config)
    };
    names.iter().map(named).collect()
}

fn documents(boxes: &[TestBox]) -> Vec<Documents> {
    boxes.iter().map(|it| Documents::read(it.path()).unwrap()).collect()
}

/// Returns an archive of boxes with these names.
fn archive(names: &[&str]) -> Vec<u8> {
    let boxes = boxes(names);
    let documents = documents(&boxes);
    let named = documents.iter().zip(names.iter().map(|it| Some(*it)));
    let mut bytes = Vec::new();
    Bundle::of(named).unwrap().write_archive(&mut bytes).unwrap();
    bytes
}

/// A directory with a file and a new store.
struct Stage {
    dir: TempDir,
}

impl Stage {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn store(&self) -> Store {
        Store::open(&self.path("store")).unwrap()
    }

    fn write(&self, bytes: &[u8]) -> PathBuf {
        let path = self.path("boxes.tar");
        fs::write(&path, bytes).unwrap();
        path
    }

    fn load(&self, archive: &Archive) -> Result<Vec<Loaded>, ArchiveError> {
        let store = self.store();
        let plan = Plan::new(archive, archive.boxes()?, &store)?;
        plan.load(&store, Names::Free)
    }

    /// Loads an archive from a file.
    fn load_file(&self, bytes: &[u8]) -> Result<Vec<Loaded>, ArchiveError> {
        self.load(&Archive::open(&self.write(bytes))?)
    }

    /// Loads an archive from a stream.
    fn load_stream(&self, bytes: &[u8]) -> Result<Vec<Loaded>, ArchiveError> {
        self.load(&Archive::read("it".to_owned(), Cursor::new(bytes.to_vec()))?)
    }

    /// Returns the boxes of the store, and checks that each can be opened and has undamaged blobs.
    fn found(&self) -> Vec<(Digest, Option<String>)> {
        let store = self.store();
        let boxes = StoredBoxes::open(&self.path("store")).unwrap();
        let all = boxes.all().unwrap().into_iter().map(|stored| {
            let places = Places::new(boxes.directory(&stored.digest), Some(&boxes.blobs()));
            let opened = OpenBox::open(places).unwrap();
            assert_eq!(opened.digest, stored.digest);
            for blob in opened.manifest.blobs() {
                assert_eq!(store.verify(&blob.digest).unwrap(), blob.size);
            }
            (stored.digest, stored.label.map(|label| label.text().to_owned()))
        });
        all.collect()
    }
}

/// Returns the names and the data of an archive's members.
fn members(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = tar::Archive::new(bytes);
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().to_str().unwrap().to_owned();
        let mut data = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut data).unwrap();
        (name, data)
    });
    entries.collect()
}

/// Returns the header of a member.
fn header(kind: EntryType, name: &str, size: u64) -> Header {
    let mut header = Header::new_gnu();
    let fields = header.as_old_mut();
    fields.name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(0o444);
    header.set_size(size);
    header.set_cksum();
    header
}

fn put(to: &mut Vec<u8>, name: &str, data: &[u8]) {
    to.extend(header(EntryType::Regular, name, data.len() as u64).as_bytes());
    to.extend(data);
    to.resize(to.len().next_multiple_of(512), 0);
}

/// Returns an archive of these members.
fn tar_of(members: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    members.iter().for_each(|(name, data)| put(&mut bytes, name, data));
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

fn count(directory: &Path) -> usize {
    fs::read_dir(directory).unwrap().count()
}
