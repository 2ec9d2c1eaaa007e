//! A tree of patterns that match many paths. Each directory is in memory once, regardless of the number of paths
//! below it.

use std::collections::HashMap;
use std::sync::Arc;

use box_tree::Trail;
use safe_text::shown;

use super::policies::fits;

/// The paths as a tree. Two names with the same pattern in one directory share one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Patterns {
    /// The nodes. A node follows its parent, and the first is the root.
    pub(super) places: Vec<PatternNode>,
    /// The indexes of the nodes, by parent and pattern.
    known: HashMap<(usize, Arc<str>), usize>,
    trail: Trail<usize>,
}

/// A node of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PatternNode {
    /// The pattern for the node's name; empty for the root.
    name: Arc<str>,
    /// The index of the parent. The root is its own parent.
    pub(super) above: usize,
    /// The number of names in the node's path: 2 for `/usr/lib`.
    pub(super) parts: usize,
    /// The number of added paths that end at this node.
    pub(super) paths: usize,
}

impl Default for Patterns {
    fn default() -> Self {
        let root = PatternNode { name: Arc::from(""), above: 0, parts: 0, paths: 0 };
        Self { places: vec![root], known: HashMap::new(), trail: Trail::new(0) }
    }
}

impl Patterns {
    /// Adds a path.
    pub(super) fn add(&mut self, path: &[u8]) {
        let mut trail = std::mem::replace(&mut self.trail, Trail::new(0));
        let place = trail.follow(path, |above, name| self.place(above, name));
        self.places[place].paths += 1;
        self.trail = trail;
    }

    /// Returns the node of `name` in the directory `above`. Adds the node if it is new.
    fn place(&mut self, above: usize, name: &[u8]) -> usize {
        let name = Arc::from(pattern(name));
        if let Some(place) = self.known.get(&(above, Arc::clone(&name))) {
            return *place;
        }
        let place = self.places.len();
        let parts = self.places[above].parts + 1;
        self.places.push(PatternNode { name: Arc::clone(&name), above, parts, paths: 0 });
        self.known.insert((above, name), place);
        place
    }

    /// Returns the nodes on the path from the root to `place`, including both.
    fn way(&self, place: usize) -> Vec<usize> {
        let above = |place: &usize| (*place != 0).then(|| self.places[*place].above);
        let mut way: Vec<_> = std::iter::successors(Some(place), above).collect();
        way.reverse();
        way
    }

    /// Returns the pattern of a node.
    pub(super) fn pattern(&self, place: usize) -> String {
        let names = self.way(place).into_iter().skip(1).map(|it| &*self.places[it].name);
        let pattern: String = names.flat_map(|name| ["/", name]).collect();
        if pattern.is_empty() { "/".to_owned() } else { pattern }
    }

    /// Returns whether the pattern of a node may match other paths, too: a star in the pattern matches the name of a
    /// sibling of the node, or of a sibling of a directory above the node.
    pub(super) fn is_wide(&self, place: usize) -> bool {
        let way = self.way(place);
        if !way.iter().any(|it| self.places[*it].name.contains('*')) {
            return false;
        }
        let mut beside = self.places.iter().enumerate().skip(1);
        beside.any(|(number, other)| {
            let own =
                way.get(other.parts).filter(|_| way.get(other.parts - 1) == Some(&other.above));
            own.is_some_and(|own| {
                let (own_name, name) = (&self.places[*own].name, &other.name);
                *own != number && fits(own_name.as_bytes(), name.as_bytes())
            })
        })
    }
}

/// Returns the pattern for a name. A star replaces each part that a Boxfile cannot spell. A star in the name is kept,
/// because the pattern `*` also matches it.
pub(super) fn pattern(name: &[u8]) -> String {
    let text = shown(&String::from_utf8_lossy(name));
    let mut pattern = text.replace(char::REPLACEMENT_CHARACTER, "*");
    while pattern.contains("**") {
        pattern = pattern.replace("**", "*");
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_held_once_for_all_paths_below_it() {
        let deep = "/n".repeat(200);
        let mut patterns = Patterns::default();
        for number in 0..1000 {
            patterns.add(format!("{deep}/{number:04}").as_bytes());
        }
        assert_eq!(patterns.places.len(), 1 + 200 + 1000);
        assert_eq!(patterns.pattern(1200), format!("{deep}/0999"));
        assert_eq!((patterns.places[1200].parts, patterns.places[1200].paths), (201, 1));
    }

    #[test]
    fn a_place_has_the_paths_that_end_there() {
        let mut patterns = Patterns::default();
        for path in ["/", "/a", "/a/b", "/a-b", "/a/b", "/a\u{1}/b", "/a\u{2}/b"] {
            patterns.add(path.as_bytes());
        }
        let reported = (0..patterns.places.len())
            .map(|place| format!("{} {}", patterns.pattern(place), patterns.places[place].paths));
        let expected = ["/ 1", "/a 1", "/a/b 2", "/a-b 1", "/a* 0", "/a*/b 2"];
        assert_eq!(reported.collect::<Vec<_>>(), expected);
        let wide: Vec<_> = (0..6).map(|place| patterns.is_wide(place)).collect();
        assert_eq!(wide, [false, false, false, false, true, true]);
    }
}
