//! What a file is that is no plain tar archive.

use std::io::Read;
use std::path::Path;

use super::super::error::SourceError;

/// How compressed files begin, and what unpacks them.
const COMPRESSED: [(&[u8], &str, &str); 5] = [
    (b"\x1f\x8b", "gzip", "gunzip"),
    (b"\x28\xb5\x2f\xfd", "zstd", "unzstd"),
    (b"\xfd7zXZ\0", "xz", "unxz"),
    (b"BZh", "bzip2", "bunzip2"),
    (b"PK\x03\x04", "zip", "unzip"),
];
/// Where a tar header says that it is one (POSIX pax(1), "ustar Interchange Format").
const USTAR: std::ops::Range<usize> = 257..262;
const BLOCK: usize = 512;

/// Refuses a file that does not begin like a tar archive.
///
/// # Errors
/// What it is instead, and what to do.
pub(super) fn check(path: &Path, file: &mut impl Read) -> Result<(), SourceError> {
    let mut start = Vec::new();
    let read = file.take(BLOCK as u64).read_to_end(&mut start);
    read.map_err(SourceError::io(path.display().to_string()))?;
    match problem(path, &start) {
        None => Ok(()),
        Some(why) => Err(SourceError::NotAnArchive { path: path.to_owned(), why }),
    }
}

fn problem(path: &Path, start: &[u8]) -> Option<String> {
    let compressed = COMPRESSED.iter().find(|(magic, ..)| start.starts_with(magic));
    if let Some((_, what, program)) = compressed {
        return Some(format!(
            "it is compressed with {what}, and an archive is read in place; run `{program} {}`, \
             and name the file that this leaves",
            path.display()
        ));
    }
    if start.is_empty() {
        return Some("it is empty".to_owned());
    }
    // The end of an archive without members is a block of zeros.
    let is_tar = start.get(USTAR) == Some(b"ustar".as_slice())
        || (start.len() == BLOCK && start.iter().all(|byte| *byte == 0));
    (!is_tar).then(|| "it does not begin like one".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_problem_is_named() {
        let mut tar = vec![b'a'; BLOCK];
        tar[USTAR].copy_from_slice(b"ustar");
        assert_eq!(problem(Path::new("a.tar"), &tar), None);
        assert_eq!(problem(Path::new("a.tar"), &[0; BLOCK]), None);
        let found = |start: &[u8]| problem(Path::new("a.tar.gz"), start).unwrap();
        let all = [
            found(b"\x1f\x8b\x08"),
            found(b"\x28\xb5\x2f\xfd"),
            found(b"PK\x03\x04"),
            found(b""),
            found(b"{}"),
            found(&[0; 100]),
        ];
        insta::assert_snapshot!(all.join("\n"), @r"
    it is compressed with gzip, and an archive is read in place; run `gunzip a.tar.gz`, and name the file that this leaves
    it is compressed with zstd, and an archive is read in place; run `unzstd a.tar.gz`, and name the file that this leaves
    it is compressed with zip, and an archive is read in place; run `unzip a.tar.gz`, and name the file that this leaves
    it is empty
    it does not begin like one
    it does not begin like one
    ");
    }
}
