//! Reads the files of a tar archive in place, without extracting them.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use host_fs::FileError;
use host_fs::read::{Links, Section, open_regular};
use oci_layer::{GZIP_MAGIC, MemberIndex, TAR_BLOCK as BLOCK, ZSTD_MAGIC};

use super::error::SourceError;
use super::files::Files;
use super::form::{Form, Found};
use super::source::Opened;

/// The first bytes of compressed files, their descriptions, and the programs that decompress them.
const COMPRESSED: [(&[u8], &str, &str); 5] = [
    (&GZIP_MAGIC, "a gzip file", "gunzip"),
    (&ZSTD_MAGIC, "a zstd file", "unzstd"),
    (b"\xfd7zXZ\0", "an xz file", "unxz"),
    (b"BZh", "a bzip2 file", "bunzip2"),
    (b"PK\x03\x04", "a zip archive", "unzip"),
];
/// The first bytes of other files that users take for archives, and their descriptions.
const OTHERS: [(&[u8], &str); 8] = [
    (b"hsqs", "a squashfs image"),
    (b"QFI\xfb", "a qcow2 disk image"),
    (b"\x7fELF", "a program"),
    (b"<", "a page for a browser, or XML"),
    (b"{", "a JSON document"),
    (b"FROM ", "a Dockerfile"),
    (b"# syntax=", "a Dockerfile"),
    (b"ARG ", "a Dockerfile"),
];
/// The first bytes of a Git LFS pointer ([The Pointer](https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md#the-pointer)).
const LFS_START: &[u8] = b"version https://git-lfs.github.com/spec/";
/// The position of `ustar` in a tar header (POSIX pax(1), "ustar Interchange Format").
const USTAR: std::ops::Range<usize> = 257..262;

/// An archive with an index of its members.
#[derive(Debug)]
pub(super) struct Archive {
    path: PathBuf,
    file: Arc<File>,
    index: MemberIndex,
}

impl Archive {
    /// Opens an archive and reads the headers of its members. `expected` is the form that error messages name.
    ///
    /// # Errors
    /// The file does not exist, is not a tar archive, or is an archive that programs could read differently.
    pub(super) fn open(path: &Path, expected: Form) -> Result<Self, SourceError> {
        let other = |found| SourceError::NotAnImage { path: path.to_owned(), expected, found };
        if path.is_dir() {
            return Err(other(Found::Directory));
        }
        if !path.exists() {
            return Err(other(Found::Nothing));
        }
        let file = open_regular(path, Links::Follow).map_err(FileError::of("read", path))?;
        let length = file.metadata().map_err(FileError::of("read", path))?.len();
        let file = Arc::new(file);
        let mut start = Vec::new();
        let mut first = Section::new(&*file, 0, BLOCK as u64);
        first.read_to_end(&mut start).map_err(FileError::of("read", path))?;
        if let Some(found) = problem(&start) {
            return Err(other(found));
        }
        let index = MemberIndex::read(&file, length).map_err(|error| {
            let at = format!("{}, at byte {},", path.display(), error.offset);
            SourceError::malformed(&at, "a tar archive", &error.reason)
        })?;
        Ok(Self { path: path.to_owned(), file, index })
    }

    /// Returns whether the archive has a member of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.index.has(name)
    }
}

impl Files for Archive {
    fn title(&self) -> String {
        self.path.display().to_string()
    }

    fn at(&self, name: &str) -> String {
        format!("{name} in {}", self.path.display())
    }

    fn open(&self, name: &str) -> Result<Option<Opened>, SourceError> {
        let failed =
            |reason| SourceError::Malformed(format!("cannot read {}: {reason}", self.at(name)));
        let place = self.index.find(name).map_err(failed)?;
        Ok(place.map(|(offset, size)| {
            let reader = Section::new(Arc::clone(&self.file), offset, size);
            Opened { reader: Box::new(reader), size }
        }))
    }
}

/// Returns [`Found::Compressed`] if a file that begins with `start` is compressed in a known format, otherwise `None`.
pub fn compressed(start: &[u8]) -> Option<Found> {
    let (_, what, program) = COMPRESSED.iter().find(|(magic, ..)| start.starts_with(magic))?;
    Some(Found::Compressed { what, program })
}

/// Returns whether a file that begins with `start` is a Git LFS pointer: `git` has not checked out the file itself.
pub fn is_lfs_pointer(start: &[u8]) -> bool {
    start.starts_with(LFS_START)
}

/// Returns what a file with the first block `start` is instead of a tar archive. `None` for a tar archive.
fn problem(start: &[u8]) -> Option<Found> {
    if start.is_empty() {
        return Some(Found::Empty);
    }
    // The first block of an archive without members is its end mark, a block of zeros.
    let is_tar = start.get(USTAR) == Some(b"ustar".as_slice())
        || (start.len() == BLOCK && start.iter().all(|byte| *byte == 0));
    if is_lfs_pointer(start) {
        return Some(Found::LfsPointer);
    }
    let other = || OTHERS.iter().find(|(magic, _)| start.starts_with(magic));
    let no_archive = || other().map_or(Found::NoArchive, |(_, what)| Found::Other(what));
    compressed(start).or_else(|| (!is_tar).then(no_archive))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_problem_is_named() {
        let mut tar = vec![b'a'; BLOCK];
        tar[USTAR].copy_from_slice(b"ustar");
        assert_eq!(problem(&tar), None);
        assert_eq!(problem(&[0; BLOCK]), None);
        for (start, found) in [
            (
                b"\x1f\x8b\x08".as_slice(),
                Found::Compressed { what: "a gzip file", program: "gunzip" },
            ),
            (b"\x28\xb5\x2f\xfd", Found::Compressed { what: "a zstd file", program: "unzstd" }),
            (b"PK\x03\x04", Found::Compressed { what: "a zip archive", program: "unzip" }),
            (b"", Found::Empty),
            (b"no archive", Found::NoArchive),
            (b"{}", Found::Other("a JSON document")),
            (b"hsqs\x01", Found::Other("a squashfs image")),
            (b"FROM debian\n", Found::Other("a Dockerfile")),
            (b"version https://git-lfs.github.com/spec/v1\n", Found::LfsPointer),
            (&[0; 100], Found::NoArchive),
        ] {
            assert_eq!(problem(start), Some(found));
        }
    }
}
