//! Paths in an archive.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use box_tree::{MAX_NAME, path};

use super::limits::Limits;
use super::{Action, Change, LayerErrorKind};
use crate::error::refused;

/// The reason to refuse a path that contains `..`.
pub(super) const PARENT_IN_PATH: &str = "the path leaves the image by \"..\"";

/// Normalizes a path: removes leading and trailing slashes, empty names and `.`. For example, `/a/./b/` becomes `a/b`.
///
/// # Errors
/// `..`, a NUL byte, or a path beyond the limits.
pub(super) fn normalize(path: &[u8], limits: &Limits) -> Result<Vec<u8>, LayerErrorKind> {
    if path.len() > limits.path_bytes {
        return Err(refused("the path is too long"));
    }
    if path.contains(&0) {
        return Err(refused("the path holds a NUL byte"));
    }
    let parts: Vec<_> = path::names(path).collect();
    if parts.contains(&b"..".as_slice()) {
        return Err(refused(PARENT_IN_PATH));
    }
    if parts.iter().any(|part| part.len() > MAX_NAME) {
        return Err(refused("a name in the path is longer than 255 bytes"));
    }
    if parts.len() > limits.depth {
        return Err(refused("the path is too deep"));
    }
    Ok(parts.join(&b'/'))
}

/// The directories of a layer, by a hash of their paths. Two directories with the same hash are counted once.
#[derive(Debug, Default)]
pub(super) struct Directories {
    seen: HashSet<u64>,
    hasher: RandomState,
}

impl Directories {
    /// Returns how many parent directories a change makes that no earlier change has declared or implied.
    pub(super) fn implied_by(&mut self, change: &Change) -> usize {
        let is_directory = match change.action {
            Action::Directory(_) => true,
            Action::Leaf(..) | Action::HardLink(_) => false,
            Action::Whiteout | Action::Opaque => return 0,
        };
        if is_directory {
            self.seen.insert(self.hasher.hash_one(&change.path));
        }
        let (mut path, mut implied) = (change.path.as_slice(), 0);
        // The parents of a known directory are known.
        while let (directory @ [_, ..], _) = path::split(path)
            && self.seen.insert(self.hasher.hash_one(directory))
        {
            (path, implied) = (directory, implied + 1);
        }
        implied
    }
}

/// The directory, in the root of a layer, in which AUFS keeps the data of hard links. Its files are
/// targets of hard links, and not files of the image.
pub(super) const AUFS_LINKS: &[u8] = b".wh..wh.plnk";

/// The meaning of a path with regard to whiteouts (layer.md, "Whiteouts").
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Marker {
    /// An ordinary path, or one in [`AUFS_LINKS`].
    None,
    /// The layer changes another path; the marker itself is no file.
    Change(Vec<u8>, Action),
    /// Bookkeeping of AUFS (`.wh..wh.aufs`, `.wh..wh.orph/…`): no file, no change.
    Skip,
}

/// Reads a normalized path as a whiteout.
///
/// Only the last name of a path can be a whiteout. An image cannot have a directory of such a name; existing extractors
/// make it anyway, or drop its entries.
///
/// # Errors
/// A whiteout without a valid name; a path below a whiteout.
pub(super) fn marker(path: &[u8]) -> Result<Marker, LayerErrorKind> {
    let (directory, name) = path::split(path);
    match directory.split(|byte| *byte == b'/').position(|part| part.starts_with(b".wh.")) {
        Some(0) if directory == AUFS_LINKS => return Ok(Marker::None),
        Some(0) if directory.starts_with(b".wh..wh.") => return Ok(Marker::Skip),
        Some(_) => return Err(refused("the path is below a whiteout")),
        None => {}
    }
    let Some(hidden) = name.strip_prefix(b".wh.") else { return Ok(Marker::None) };
    match hidden {
        b".wh..opq" => Ok(Marker::Change(directory.to_vec(), Action::Opaque)),
        hidden if hidden.starts_with(b".wh.") => Ok(Marker::Skip),
        b"" | b"." => Err(refused("the whiteout names nothing")),
        b".." => Err(refused(PARENT_IN_PATH)),
        hidden => {
            let before = &path[..path.len() - name.len()];
            Ok(Marker::Change([before, hidden].concat(), Action::Whiteout))
        }
    }
}

#[cfg(test)]
mod tests {
    use box_tree::{Leaf, Meta};

    use super::*;

    #[test]
    fn directories_that_nothing_names_are_counted_once() {
        let mut directories = Directories::default();
        let meta = || Meta::root_owned(0o644);
        let (file, directory) = (Action::Leaf(meta(), Leaf::Fifo), Action::Directory(meta()));
        for (path, action, implied) in [
            ("a", &file, 0),
            ("b", &directory, 0),
            ("b/c", &file, 0),
            ("b/d/e/f", &file, 2),
            ("b/d/e/g", &file, 0),
            ("b/d/h/i", &Action::HardLink(b"a".to_vec()), 1),
            ("j/k", &directory, 1),
            ("j/k/l", &file, 0),
            ("m/n/o", &Action::Whiteout, 0),
            ("", &directory, 0),
        ] {
            let change = Change { path: path.into(), action: action.clone() };
            assert_eq!(directories.implied_by(&change), implied, "{path}");
        }
    }

    fn normal(path: &str) -> Result<String, String> {
        normalize(path.as_bytes(), &Limits::default())
            .map(|path| String::from_utf8(path).unwrap())
            .map_err(|kind| kind.to_string())
    }

    #[test]
    fn spellings_of_one_path_are_one() {
        for spelling in ["a/b", "/a/b", "./a/b", "a//b/", "././a/./b/."] {
            assert_eq!(normal(spelling).as_deref(), Ok("a/b"));
        }
        for root in ["", "/", ".", "./"] {
            assert_eq!(normal(root).as_deref(), Ok(""));
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for bad in ["..", "a/../b", "/../etc", "a\0b", &"x".repeat(256), &"d/".repeat(300)] {
            assert!(normal(bad).is_err(), "{bad:?}");
        }
        assert_eq!(normal("a..b/...").as_deref(), Ok("a..b/..."));
    }

    #[test]
    fn whiteouts_are_distinguished_from_names() {
        let change = |path: &str, action| Marker::Change(path.as_bytes().to_vec(), action);
        assert_eq!(marker(b"a/.wh.b").unwrap(), change("a/b", Action::Whiteout));
        assert_eq!(marker(b".wh.b").unwrap(), change("b", Action::Whiteout));
        assert_eq!(marker(b"a/.wh..wh..opq").unwrap(), change("a", Action::Opaque));
        assert_eq!(marker(b".wh..wh..opq").unwrap(), change("", Action::Opaque));
        assert_eq!(marker(b".wh..wh.plnk").unwrap(), Marker::Skip);
        assert_eq!(marker(b"a/.whx").unwrap(), Marker::None);
        for bad in [b".wh.".as_slice(), b"a/.wh..", b".wh..."] {
            assert!(marker(bad).is_err(), "{:?}", String::from_utf8_lossy(bad));
        }
    }

    #[test]
    fn paths_below_a_whiteout_are_refused() {
        for below in [".wh.a/b", "a/.wh.b/c", "a/.wh.b/.wh.c", "a/.wh..wh.plnk/c", ".wh./a"] {
            let error = marker(below.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), "the path is below a whiteout");
        }
        assert_eq!(marker(b".wh..wh.plnk/1.2").unwrap(), Marker::None, "a target of hard links");
        for skipped in [".wh..wh.orph/a", ".wh..wh.plnk/a/b", ".wh..wh.aufs", "a/.wh..wh.x"] {
            assert_eq!(marker(skipped.as_bytes()).unwrap(), Marker::Skip, "{skipped}");
        }
        assert_eq!(marker(b"a.wh.b/c").unwrap(), Marker::None);
    }
}
