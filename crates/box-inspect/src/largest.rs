//! The largest of many items, in bounded memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Keeps the items with the largest sizes. Of equal sizes, those that were added first are kept.
#[derive(Debug)]
pub struct Largest<T> {
    most: usize,
    added: usize,
    /// The greatest element is the least wanted.
    kept: BinaryHeap<(Reverse<u64>, usize, T)>,
}

impl<T: Ord + Clone> Largest<T> {
    /// Keeps at most `most` items.
    pub const fn new(most: usize) -> Self {
        Self { most, added: 0, kept: BinaryHeap::new() }
    }

    /// Adds an item, which is made only if it is kept.
    pub fn add(&mut self, size: u64, make: impl FnOnce() -> T) {
        let key = (Reverse(size), self.added);
        self.added += 1;
        let is_kept = |last: &(Reverse<u64>, usize, T)| key < (last.0, last.1);
        if self.kept.len() < self.most || self.kept.peek().is_some_and(is_kept) {
            self.kept.push((key.0, key.1, make()));
        }
        if self.kept.len() > self.most {
            self.kept.pop();
        }
    }

    /// Returns the number of items that were added.
    pub const fn added(&self) -> usize {
        self.added
    }

    /// Returns copies of the kept items with their sizes, the largest first.
    pub fn sorted(&self) -> Vec<(u64, T)> {
        Self { kept: self.kept.clone(), ..*self }.into_vec()
    }

    /// Returns the kept items with their sizes, the largest first.
    pub fn into_vec(self) -> Vec<(u64, T)> {
        let sorted = self.kept.into_sorted_vec().into_iter();
        sorted.map(|(Reverse(size), _, item)| (size, item)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_kept_and_the_first_of_equals() {
        let mut largest = Largest::new(3);
        for (name, size) in [("a", 1), ("b", 5), ("c", 1), ("d", 9), ("e", 5), ("f", 5)] {
            largest.add(size, || name);
        }
        assert_eq!(largest.added(), 6);
        assert_eq!(largest.into_vec(), [(9, "d"), (5, "b"), (5, "e")]);
    }
}
