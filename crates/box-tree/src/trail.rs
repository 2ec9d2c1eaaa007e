//! Following many paths, one after the other.

use crate::path::{names, shared};

/// Maps paths in the canonical order, or nearly so, to values of type `P`. The directories that a path shares with the
/// previous one are not looked up again.
///
/// A caller that keeps many paths can store a `P` for each, and each directory once. Whole paths can take a thousand
/// times the memory: the paths in an untrusted image can be as deep as a path can be long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trail<P> {
    root: P,
    last: Vec<u8>,
    /// The values on the last path, each with the length of its path.
    open: Vec<(usize, P)>,
}

impl<P: Copy> Trail<P> {
    /// Starts with the value of the root.
    pub const fn new(root: P) -> Self {
        Self { root, last: Vec::new(), open: Vec::new() }
    }

    /// Follows a normalized absolute path, and returns its value. `enter` returns the value of a name in a directory.
    pub fn follow(&mut self, path: &[u8], mut enter: impl FnMut(P, &[u8]) -> P) -> P {
        let shared = shared(&self.last, path);
        let is_on_path = |length: usize| matches!(path.get(length), None | Some(b'/'));
        self.open.retain(|(length, _)| *length <= shared && is_on_path(*length));
        let (mut length, mut place) = self.open.last().copied().unwrap_or((0, self.root));
        for name in names(&path[length..]) {
            length += 1 + name.len();
            place = enter(place, name);
            self.open.push((length, place));
        }
        self.last.clear();
        self.last.extend_from_slice(path);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_entered_once_for_paths_that_follow_each_other() {
        let (mut trail, mut entered) = (Trail::new(0), Vec::new());
        let mut follow = |path: &str| {
            let place = trail.follow(path.as_bytes(), |place, name| {
                entered.push((place, name.to_vec()));
                entered.len()
            });
            (place, entered.len())
        };
        assert_eq!(follow("/"), (0, 0));
        assert_eq!(follow("/a/b"), (2, 2));
        assert_eq!(follow("/a/b/c"), (3, 3));
        assert_eq!(follow("/a/bc"), (4, 4), "what only begins with a name is another one");
        assert_eq!(follow("/a/bc"), (4, 4));
        assert_eq!(follow("/a"), (1, 4));
        assert_eq!(follow("/b"), (5, 5));
        assert_eq!(entered[3], (1, b"bc".to_vec()));
    }
}
