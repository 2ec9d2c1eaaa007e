//! Many paths of a tree, in little memory.

use box_tree::{Name, Trail};

/// A list of paths. Each directory that they share is in memory once.
#[derive(Debug)]
pub(crate) struct Paths {
    /// For each path the index of its parent directory, and its name there. The first is the root.
    places: Vec<(usize, Name)>,
    trail: Trail<usize>,
}

impl Default for Paths {
    fn default() -> Self {
        Self { places: vec![(0, Name::default())], trail: Trail::new(0) }
    }
}

impl Paths {
    /// Adds a path and returns its index. Paths must be added in the canonical order.
    pub(crate) fn add(&mut self, path: &[u8]) -> usize {
        self.trail.follow(path, |above, name| {
            self.places.push((above, name.into()));
            self.places.len() - 1
        })
    }

    /// Returns the names of the path with this index, the last one first.
    pub(crate) fn names(&self, place: usize) -> impl Iterator<Item = &[u8]> {
        let places = std::iter::successors(Some(place), |place| Some(self.places[*place].0));
        places.take_while(|place| *place != 0).map(|place| &*self.places[place].1)
    }

    /// Returns the path with this index.
    pub(crate) fn path(&self, place: usize) -> Vec<u8> {
        let names: Vec<_> = self.names(place).collect();
        match names.as_slice() {
            [] => b"/".to_vec(),
            names => names.iter().rev().flat_map(|name| [b"/", *name].concat()).collect(),
        }
    }

    /// Returns how many names are in memory for all paths.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.places.len() - 1
    }
}
