//! The index of a repository, [gitformat-index(5)](https://git-scm.com/docs/gitformat-index). git does not check the paths of an index
//! that it reads: with an entry `../x`, `git restore .` writes outside of the project, and `git add -u` reads there.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use super::git::is_git;

/// The first bytes of an index.
const SIGNATURE: &[u8] = b"DIRC";
/// The sizes of the digests that a repository may use, in bytes: SHA-1 and SHA-256.
const DIGESTS: [usize; 2] = [20, 32];
/// The fields of an entry before its digest.
const FIELDS: usize = 40;
/// The offset of the mode in these fields.
const MODE: usize = 24;
/// The mode of a directory, whose path ends with a slash.
const DIRECTORY: u32 = 0o040_000;
/// The bits of the flags with the length of the path. All of them stand for a greater length.
const LENGTH: u16 = 0x0fff;
/// The flag of an entry that has further flags.
const EXTENDED: u16 = 0x4000;

/// Returns whether a file of a repository is an index, by its name.
pub(super) fn is_index(name: &OsStr) -> bool {
    name == "index" || name.as_bytes().starts_with(b"sharedindex.")
}

/// What an index has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Index {
    /// Files of the project alone, or nothing that git reads.
    Fine,
    /// The path of an entry that is none of the files of the project, such as `../x` or `.git/hooks/x`.
    Stray(Vec<u8>),
    /// It is no index that this module can read.
    Unreadable,
}

impl Index {
    /// Reads an index. The size of its digests is known to git from the `config`; each size is tried here.
    pub(super) fn of(index: &[u8]) -> Self {
        if !index.starts_with(SIGNATURE) {
            // git does not read it either.
            return Self::Fine;
        }
        let read = DIGESTS.map(|digest| Reader { left: index, version: 0 }.paths(digest));
        let all = read.iter().flatten().flatten();
        match all.into_iter().find(|(mode, path)| !is_inside(*mode, path)) {
            Some((_, path)) => Self::Stray(path.clone()),
            None if read.iter().any(Option::is_some) => Self::Fine,
            None => Self::Unreadable,
        }
    }
}

fn is_inside(mode: u32, path: &[u8]) -> bool {
    let path = if mode == DIRECTORY { path.strip_suffix(b"/").unwrap_or(path) } else { path };
    !path.contains(&0)
        && path
            .split(|it| *it == b'/')
            .all(|it| !matches!(it, b"" | b"." | b"..") && !is_git(OsStr::from_bytes(it)))
}

struct Reader<'a> {
    left: &'a [u8],
    version: u32,
}

impl Reader<'_> {
    /// Returns the mode and the path of each entry. `None` if the index is malformed for digests of this size.
    fn paths(mut self, digest: usize) -> Option<Vec<(u32, Vec<u8>)>> {
        self.bytes(SIGNATURE.len())?;
        self.version = self.number()?;
        let count = self.number()?;
        let mut paths: Vec<(u32, Vec<u8>)> = Vec::new();
        for _ in 0..count {
            let start = self.left.len();
            let mode = u32::from_be_bytes(self.bytes(FIELDS)?[MODE..MODE + 4].try_into().ok()?);
            self.bytes(digest)?;
            let flags = u16::from_be_bytes(self.bytes(2)?.try_into().ok()?);
            if flags & EXTENDED != 0 {
                self.bytes(2)?;
            }
            let length = usize::from(flags & LENGTH);
            let path = match self.version {
                2 | 3 => self.padded(start, length)?,
                4 => self.continued(paths.last().map_or(&[][..], |(_, it)| it), length)?,
                _ => return None,
            };
            paths.push((mode, path));
        }
        // git reads such an index in parts, each of which begins without the path before it.
        let is_in_parts = self.version == 4 && self.left.windows(4).any(|it| it == b"IEOT");
        (!is_in_parts).then_some(paths)
    }

    fn bytes(&mut self, count: usize) -> Option<&[u8]> {
        let (bytes, left) = self.left.split_at_checked(count)?;
        self.left = left;
        Some(bytes)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.bytes(4)?.try_into().ok()?))
    }

    /// Reads a path of `length` bytes, and the zero after it. A length of [`LENGTH`] stands for all greater ones.
    fn text(&mut self, length: usize) -> Option<Vec<u8>> {
        let long = || self.left.iter().position(|it| *it == 0);
        let length = if length >= usize::from(LENGTH) { long()? } else { length };
        let text = self.bytes(length)?.to_vec();
        (self.bytes(1)? == [0]).then_some(text)
    }

    /// Reads the path of an entry whose length is a multiple of eight. The entry began when `start` bytes were left.
    fn padded(&mut self, start: usize, length: usize) -> Option<Vec<u8>> {
        let path = self.text(length)?;
        let taken = start - self.left.len();
        self.bytes(taken.next_multiple_of(8) - taken)?;
        Some(path)
    }

    /// Reads the path of an entry as the change of the path before it: how many bytes fall away at its end, and what follows.
    fn continued(&mut self, before: &[u8], length: usize) -> Option<Vec<u8>> {
        let mut byte = self.bytes(1)?[0];
        let mut dropped = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = self.bytes(1)?[0];
            dropped =
                dropped.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
        }
        let kept = before.len().checked_sub(dropped)?;
        let is_long = length >= usize::from(LENGTH);
        let rest = if is_long { length } else { length.checked_sub(kept)? };
        Some([&before[..kept], &self.text(rest)?].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an index of version 2 with these paths.
    fn index(digest: usize, paths: &[(u32, &str)]) -> Vec<u8> {
        let mut index = b"DIRC\0\0\0\x02".to_vec();
        index.extend(u32::try_from(paths.len()).unwrap().to_be_bytes());
        for (mode, path) in paths {
            let mut entry = vec![0; FIELDS];
            entry[MODE..MODE + 4].copy_from_slice(&mode.to_be_bytes());
            entry.resize(FIELDS + digest + 2, 7);
            let length = u16::try_from(path.len()).unwrap().to_be_bytes();
            entry[FIELDS + digest..].copy_from_slice(&length);
            entry.extend(path.as_bytes());
            entry.resize((entry.len() + 8) / 8 * 8, 0);
            index.extend(entry);
        }
        index.extend([0; 20]);
        index
    }

    #[test]
    fn an_entry_outside_of_the_project_is_found() {
        for digest in DIGESTS {
            let good = [
                (0o100_644, "a"),
                (0o100_644, "d/.gitignore"),
                (0o160_000, "lib"),
                (0o040_000, "d/"),
            ];
            assert_eq!(Index::of(&index(digest, &good)), Index::Fine);
            for bad in [
                "../x",
                "/x",
                "a/../../x",
                ".git/hooks/x",
                "d/.GIT/config",
                "d//x",
                "x/",
                "git~1/x",
                ".",
            ] {
                let found = Index::of(&index(digest, &[good[0], (0o100_644, bad), good[1]]));
                assert_eq!(found, Index::Stray(bad.into()), "{bad}");
            }
        }
    }

    #[test]
    fn what_is_no_index_is_not_read() {
        assert_eq!(Index::of(b""), Index::Fine);
        let good = index(20, &[(0o100_644, "a")]);
        for length in SIGNATURE.len()..good.len() - 20 {
            assert_eq!(Index::of(&good[..length]), Index::Unreadable, "{length}");
        }
    }

    /// git itself is the judge of the format.
    #[test]
    fn each_version_that_git_writes_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let git = |words: &[&str]| {
            let mut git = std::process::Command::new("git");
            git.current_dir(dir.path()).args(words).env("GIT_CONFIG_GLOBAL", "/dev/null");
            assert!(git.output().unwrap().status.success(), "{words:?}");
        };
        for format in ["sha1", "sha256"] {
            git(&["init", "-q", &format!("--object-format={format}"), format]);
            for path in ["a", "long/path/of/a/file", "long/path/of/another", "long/x"] {
                let path = dir.path().join(format).join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, "x").unwrap();
            }
            git(&["-C", format, "add", "."]);
            for version in ["2", "3", "4"] {
                git(&["-C", format, "update-index", "--index-version", version]);
                let index = std::fs::read(dir.path().join(format).join(".git/index")).unwrap();
                assert_eq!(Index::of(&index), Index::Fine, "{format} {version}");
                let size = DIGESTS[usize::from(format == "sha256")];
                let read = Reader { left: &index, version: 0 }.paths(size).unwrap();
                let paths: Vec<_> =
                    read.iter().map(|(_, it)| String::from_utf8_lossy(it)).collect();
                assert_eq!(paths, ["a", "long/path/of/a/file", "long/path/of/another", "long/x"]);
            }
        }
    }
}
