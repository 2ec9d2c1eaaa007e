//! The target for files with boxes.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use box_archive::{Archive, ArchiveError, Names, Plan};
use box_cache::{Store, StoredBoxes};
use box_digest::Digest;
use box_layout::{OpenBox, Places};

use super::in_memory;
use super::layer::summed;

/// Loads the bytes as a file with boxes, once from a file and once from a stream, each into an empty store, and again with correct
/// checksums of all headers. A file that is accepted leaves whole boxes, and a stream gives the same boxes.
pub fn archive(bytes: &[u8]) {
    for bytes in [bytes.to_vec(), summed(bytes)] {
        let file = loaded(|path| {
            let file = path.join("boxes.tar");
            fs::write(&file, &bytes).expect("the file can be written");
            Archive::open(&file)
        });
        let stream = loaded(|_| Archive::read("it".to_owned(), Cursor::new(bytes.clone())));
        // A stream may fail because of its order.
        assert!(stream.is_none() || stream == file, "file {file:?}, stream {stream:?}");
    }
}

/// Loads an archive into an empty store, and returns the digests of its boxes. `None` if it is refused.
fn loaded(open: impl FnOnce(&Path) -> Result<Archive, ArchiveError>) -> Option<Vec<Digest>> {
    let directory = in_memory();
    let path = directory.path().join("store");
    let store = Store::open(&path).expect("a store can be made");
    let load = || {
        let archive = open(directory.path())?;
        let plan = Plan::new(&archive, archive.boxes()?, &store)?;
        plan.load(&store, Names::Free)
    };
    let loaded = load().map(|all| all.iter().map(|it| it.digest).collect::<Vec<_>>());
    let stored = stored(&store, &path);
    match loaded {
        Ok(digests) => {
            assert!(digests.iter().all(|it| stored.contains(it)), "{digests:?} {stored:?}");
            Some(digests)
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert_eq!(stored, [], "a refused file leaves a box");
            None
        }
    }
}

/// Returns the boxes of a store. Each can be opened, and has undamaged blobs.
fn stored(store: &Store, path: &Path) -> Vec<Digest> {
    let boxes = StoredBoxes::open(path).expect("the store can be read");
    let all = boxes.all().expect("the store can be listed");
    for stored in &all {
        let places = Places::new(boxes.directory(&stored.digest), Some(&boxes.blobs()));
        let opened = OpenBox::open(places).expect("a stored box can be opened");
        assert_eq!(opened.digest, stored.digest);
        for blob in opened.manifest.blobs() {
            assert_eq!(store.verify(&blob.digest).expect("a blob"), blob.size);
        }
    }
    all.iter().map(|it| it.digest).collect()
}
