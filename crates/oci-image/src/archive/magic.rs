//! Recognizes files that are not plain tar archives.

use host_fs::FileError;
use std::io::Read;
use std::path::Path;

use oci_layer::{GZIP_MAGIC, ZSTD_MAGIC};

use super::super::error::SourceError;
use super::super::form::Found;

/// How compressed files begin, and what unpacks them.
const COMPRESSED: [(&[u8], &str, &str); 5] = [
    (&GZIP_MAGIC, "gzip", "gunzip"),
    (&ZSTD_MAGIC, "zstd", "unzstd"),
    (b"\xfd7zXZ\0", "xz", "unxz"),
    (b"BZh", "bzip2", "bunzip2"),
    (b"PK\x03\x04", "zip", "unzip"),
];
/// Where a tar header says that it is one (POSIX pax(1), "ustar Interchange Format").
const USTAR: std::ops::Range<usize> = 257..262;
const BLOCK: usize = 512;

/// Reads the start of a file, and returns what it is where that is no tar archive.
pub(super) fn check(path: &Path, file: &mut impl Read) -> Result<Option<Found>, SourceError> {
    let mut start = Vec::new();
    let read = file.take(BLOCK as u64).read_to_end(&mut start);
    read.map_err(FileError::of("read", path))?;
    Ok(problem(&start))
}

fn problem(start: &[u8]) -> Option<Found> {
    let compressed = COMPRESSED.iter().find(|(magic, ..)| start.starts_with(magic));
    if let Some((_, format, program)) = compressed {
        return Some(Found::Compressed { format, program });
    }
    if start.is_empty() {
        return Some(Found::Empty);
    }
    // The end of an archive without members is a block of zeros.
    let is_tar = start.get(USTAR) == Some(b"ustar".as_slice())
        || (start.len() == BLOCK && start.iter().all(|byte| *byte == 0));
    (!is_tar).then_some(Found::NoArchive)
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
            (b"\x1f\x8b\x08".as_slice(), Found::Compressed { format: "gzip", program: "gunzip" }),
            (b"\x28\xb5\x2f\xfd", Found::Compressed { format: "zstd", program: "unzstd" }),
            (b"PK\x03\x04", Found::Compressed { format: "zip", program: "unzip" }),
            (b"", Found::Empty),
            (b"{}", Found::NoArchive),
            (&[0; 100], Found::NoArchive),
        ] {
            assert_eq!(problem(start), Some(found));
        }
    }
}
