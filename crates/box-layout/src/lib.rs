#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod describe;
mod error;
mod index;
mod open;
mod places;
mod read;
mod rootfs;

use std::path::{Path, PathBuf};

use box_contract::manifest::{BLOBS, INDEX_FILE, LAYOUT_FILE, blob_name};
use box_digest::Digest;

pub use describe::may_do;
pub use error::OpenError;

pub use index::{Listed, MAX_MANIFESTS, REF_NAME, listed, names_one_box};
pub use open::{Blob, Documents, OpenBox, check_layout_file};
pub use places::Places;
pub use read::MAX_DOCUMENT;
pub use rootfs::{Rootfs, locate};

/// Returns the path of a blob of the box in `directory`, for example `hello.box/blobs/sha256/8f3c…`.
pub fn blob_path(directory: &Path, digest: &Digest) -> PathBuf {
    directory.join(blob_name(digest))
}

/// Returns the OCI image layout directory that contains `path`, which need not exist. A new file at `path` would not be part of
/// the layout.
pub fn layout_above(path: &Path) -> Option<PathBuf> {
    let mut above = path.ancestors().skip(1);
    let nearest = above.find_map(|it| Path::new(".").join(it).canonicalize().ok())?;
    nearest.ancestors().find(|it| is_layout(it)).map(Path::to_owned)
}

/// Returns `true` for the directory of an OCI image layout, even of an incomplete one.
pub fn is_layout(directory: &Path) -> bool {
    let has = |name: &str| directory.join(name).symlink_metadata().is_ok();
    has(LAYOUT_FILE) || has(INDEX_FILE) && has(BLOBS)
}

/// The kind of a directory entry of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file, such as a blob.
    File,
    /// A directory of the layout.
    Directory,
}

/// Returns the kind of the entry at `path`, relative to the directory of a box. `None` if boxes have no entry at this path.
pub fn entry_kind(path: &Path) -> Option<EntryKind> {
    match path.to_str()? {
        LAYOUT_FILE | INDEX_FILE => Some(EntryKind::File),
        "blobs" | BLOBS => Some(EntryKind::Directory),
        path => {
            let name = path.strip_prefix(BLOBS)?.strip_prefix('/')?;
            Digest::from_hex(name).map(|_| EntryKind::File)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_build_writes_belongs_to_a_box() {
        let digest = Digest::from_bytes([7; 32]);
        let kind = |path: &str| entry_kind(Path::new(path));
        for file in ["oci-layout", "index.json"] {
            assert_eq!(kind(file), Some(EntryKind::File), "{file}");
        }
        for directory in ["blobs", "blobs/sha256"] {
            assert_eq!(kind(directory), Some(EntryKind::Directory), "{directory}");
        }
        let blob = blob_path(Path::new(""), &digest);
        assert_eq!(entry_kind(&blob), Some(EntryKind::File));
        let upper = format!("blobs/sha256/{}", digest.hex().replace('7', "A"));
        for other in ["", "blobs/sha512", "blobs/sha256/x", "notes", "../index.json", &upper] {
            assert_eq!(kind(other), None, "{other}");
        }
    }
}
