//! Paths of the guest: names with slashes between them. They are bytes, and never paths of the
//! host.

/// Returns the names of a path. Empty ones and `.` mean nothing; `..` is the caller's to decide.
pub fn names(path: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|name| !matches!(name, [] | [b'.']))
}

/// Returns a path in its one absolute form: a slash before each name. The root is empty.
pub fn normalize(path: &[u8]) -> Vec<u8> {
    names(path).flat_map(|name| [b"/".as_slice(), name]).flatten().copied().collect()
}

/// Returns a path as text, with U+FFFD for what is not UTF-8.
pub fn lossy(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

/// Splits a path without a slash at its end into the path of its directory, also without one, and
/// its name.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&[], path),
    }
}

/// Appends a name to the absolute path of a directory; a slash at the directory's end is one.
pub fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let directory = directory.strip_suffix(b"/").unwrap_or(directory);
    [directory, b"/", name].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_path_are_one() {
        for spelling in ["/a/b", "a/b", "./a//b/", "/a/./b/."] {
            assert_eq!(normalize(spelling.as_bytes()), b"/a/b", "{spelling}");
        }
        assert_eq!(normalize(b"/"), b"");
        assert_eq!(normalize(b"a/../b"), b"/a/../b", "a link could be in the way");
    }

    #[test]
    fn a_path_is_its_directory_and_its_name() {
        for (path, directory, name) in [("/a/b", "/a", "b"), ("/a", "", "a"), ("a", "", "a")] {
            assert_eq!(split(path.as_bytes()), (directory.as_bytes(), name.as_bytes()));
        }
        assert_eq!(join(b"/a", b"b"), b"/a/b");
        assert_eq!((join(b"/", b"a"), join(b"", b"a")), (b"/a".to_vec(), b"/a".to_vec()));
    }
}
