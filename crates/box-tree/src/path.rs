//! Paths of the guest: names with slashes between them. They are bytes, and never paths of the
//! host.

use memchr::{memchr, memrchr};

/// Returns the names of a path, without empty names and `.`. The caller interprets `..`.
pub fn names(path: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    Names(Some(path))
}

/// The remaining names of a path, with the slashes between them. `None` at the end.
struct Names<'a>(Option<&'a [u8]>);

impl<'a> Iterator for Names<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            let path = self.0?;
            let slash = memchr(b'/', path);
            self.0 = slash.map(|slash| &path[slash + 1..]);
            let name = &path[..slash.unwrap_or(path.len())];
            if means_something(name) {
                return Some(name);
            }
        }
    }
}

impl DoubleEndedIterator for Names<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        loop {
            let path = self.0?;
            let slash = memrchr(b'/', path);
            self.0 = slash.map(|slash| &path[..slash]);
            let name = &path[slash.map_or(0, |slash| slash + 1)..];
            if means_something(name) {
                return Some(name);
            }
        }
    }
}

fn means_something(name: &[u8]) -> bool {
    !matches!(name, [] | [b'.'])
}

/// Returns a path in its only absolute form: a slash before each name. Returns an empty path for the root.
pub fn normalize(path: &[u8]) -> Vec<u8> {
    let mut absolute = Vec::with_capacity(path.len() + 1);
    for name in names(path) {
        absolute.push(b'/');
        absolute.extend_from_slice(name);
    }
    absolute
}

/// Returns how many bytes two paths share at their start.
pub(crate) fn shared(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

/// Returns a path as text. Invalid UTF-8 becomes U+FFFD.
pub fn lossy(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

/// Splits a path into the path of its directory and its name. Neither the path nor the directory
/// ends with a slash.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match memrchr(b'/', path) {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&[], path),
    }
}

/// Appends a name to the absolute path of a directory, which may end with a slash.
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
    fn names_come_from_both_ends() {
        for path in ["", "/", "a", "/a/b", "a//./b/", "./../.a/.", "/a/b/c/d"] {
            let forwards: Vec<_> = names(path.as_bytes()).collect();
            let mut backwards: Vec<_> = names(path.as_bytes()).rev().collect();
            backwards.reverse();
            assert_eq!(forwards, backwards, "{path}");
        }
        let mut names = names(b"/a/b/c");
        let [first, last] = [names.next(), names.next_back()];
        assert_eq!((first, last), (Some(b"a".as_slice()), Some(b"c".as_slice())));
        assert_eq!((names.next(), names.next_back()), (Some(b"b".as_slice()), None));
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
