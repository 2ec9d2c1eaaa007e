//! A tree of names with their sizes, of which a map is made.

use std::borrow::Cow;

use box_inspect::entry::shown_bytes;

/// A tree of names in preorder. The first is the root.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    nodes: Vec<Node<'a>>,
    /// The names that are not closed yet.
    open: Vec<usize>,
}

/// A name. Some fifty bytes, because there is one for each entry of a box.
#[derive(Debug)]
struct Node<'a> {
    name: Cow<'a, [u8]>,
    size: u64,
    above: usize,
    /// The position after the last name below.
    end: usize,
}

impl<'a> Names<'a> {
    pub(crate) fn new() -> Self {
        let mut names = Self { nodes: Vec::new(), open: Vec::new() };
        names.open(Cow::Borrowed(b"all files"));
        names
    }

    /// Adds a name, below which the next names are until it is closed.
    pub(crate) fn open(&mut self, name: Cow<'a, [u8]>) {
        let number = self.leaf(name, 0);
        self.open.push(number);
    }

    /// Adds a name without names below it.
    pub(crate) fn leaf(&mut self, name: Cow<'a, [u8]>, size: u64) -> usize {
        let (number, above) = (self.nodes.len(), self.open.last().copied().unwrap_or_default());
        self.nodes.push(Node { name, size, above, end: number + 1 });
        self.grow(size);
        number
    }

    /// Closes the last open name.
    pub(crate) fn close(&mut self) {
        let end = self.nodes.len();
        if let Some(node) = self.open.pop().map(|it| &mut self.nodes[it]) {
            node.end = end;
            let size = node.size;
            self.grow(size);
        }
    }

    /// Adds to the size of the last open name.
    fn grow(&mut self, size: u64) {
        if let Some(last) = self.open.last() {
            let sum = &mut self.nodes[*last].size;
            *sum = sum.saturating_add(size);
        }
    }

    /// Returns the number of the open name at this depth, or of the last one.
    pub(crate) fn open_at(&self, depth: usize) -> usize {
        self.open.get(depth).or(self.open.last()).copied().unwrap_or_default()
    }

    /// Returns the names directly below a name.
    pub(crate) fn below(&self, of: usize) -> impl Iterator<Item = usize> {
        let (mut next, end) = (of + 1, self.nodes[of].end);
        std::iter::from_fn(move || {
            let found = Some(next).filter(|it| *it < end)?;
            next = self.nodes[found].end;
            Some(found)
        })
    }

    pub(crate) fn size(&self, of: usize) -> u64 {
        self.nodes[of].size
    }

    /// Returns a name, with control characters replaced.
    pub(crate) fn shown(&self, of: usize) -> String {
        shown_bytes(&self.nodes[of].name)
    }

    /// Returns whether there are names below a name.
    pub(crate) fn is_open(&self, of: usize) -> bool {
        self.nodes[of].end > of + 1
    }

    /// Returns the path of a name.
    pub(crate) fn path(&self, of: usize) -> String {
        let way = std::iter::successors(Some(of), |it| Some(self.nodes[*it].above));
        let way: Vec<String> = way.take_while(|it| *it != 0).map(|it| self.shown(it)).collect();
        format!("/{}", way.into_iter().rev().collect::<Vec<_>>().join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_the_size_of_its_files() {
        let mut names = Names::new();
        names.open(Cow::Borrowed(b"usr"));
        names.open(Cow::Borrowed(b"bin"));
        let file = names.leaf(Cow::Borrowed(b"a\n"), 5);
        names.close();
        let other = names.leaf(Cow::Borrowed(b"b"), 2);
        names.close();
        names.leaf(Cow::Borrowed(b"c"), u64::MAX);
        names.close();
        assert_eq!(
            (names.path(file), names.path(other), names.path(0)),
            ("/usr/bin/a\u{fffd}".into(), "/usr/b".into(), "/".into())
        );
        let below =
            |of| names.below(of).map(|it| (names.shown(it), names.size(it))).collect::<Vec<_>>();
        assert_eq!(below(0), [("usr".to_owned(), 7), ("c".to_owned(), u64::MAX)]);
        assert_eq!(below(1), [("bin".to_owned(), 5), ("b".to_owned(), 2)]);
        assert_eq!(below(file), []);
        assert_eq!(names.size(0), u64::MAX);
    }
}
