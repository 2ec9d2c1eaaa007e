//! The differences between two trees, entry by entry: of boxes, images or directories.
//!
//! Both trees are listed in the canonical order and walked side by side, so that the work grows with
//! the number of entries and with nothing else.

mod directory;
mod image;
mod parts;
mod side;
#[cfg(test)]
mod tests;
pub mod text;

use std::cmp::Ordering;

use box_tree::Field;
use box_tree::path::split;

pub use crate::links::FirstName;
pub use image::{ImageError, ImageFault};
pub use parts::{PartDifference, parts};
pub use side::{Entry, PathError, Side, SideKind};

/// A path at which two trees differ.
#[derive(Debug)]
pub struct Difference<'a> {
    /// The path, absolute in what is compared.
    pub path: Vec<u8>,
    /// How they differ.
    pub change: Change<'a>,
}

/// How two trees differ at a path.
#[derive(Debug)]
pub enum Change<'a> {
    /// Only the second has it.
    Added(Entry<'a>),
    /// Only the first has it.
    Removed(Entry<'a>),
    /// Both have it, and this is the first field that differs.
    Changed(Field, Entry<'a>, Entry<'a>),
}

/// Compares two trees, at a path and below. A field that is in `ignored` is as if it were equal.
///
/// The differences are in the canonical order, a directory before what is in it. They are found as they are asked for:
/// all of them together can take many times as much memory as both trees.
pub fn compare<'a>(
    a: &'a Side,
    b: &'a Side,
    path: &[u8],
    ignored: &[Field],
) -> impl Iterator<Item = Difference<'a>> + use<'a> {
    let fields: Vec<Field> = Field::ALL.into_iter().filter(|it| !ignored.contains(it)).collect();
    let (mut ones, mut others) =
        (a.entries(path, None).peekable(), b.entries(path, None).peekable());
    let next_pair = move || {
        let order = match (ones.peek(), others.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((one, _)), Some((other, _))) => canonical(one, other),
        };
        let one = if order.is_le() { ones.next() } else { None };
        let other = if order.is_ge() { others.next() } else { None };
        Some((one, other))
    };
    std::iter::from_fn(next_pair).filter_map(move |(one, other)| difference(one, other, &fields))
}

fn difference<'a>(
    one: Option<(Vec<u8>, Entry<'a>)>,
    other: Option<(Vec<u8>, Entry<'a>)>,
    fields: &[Field],
) -> Option<Difference<'a>> {
    match (one, other) {
        (Some((path, one)), None) => Some(Difference { path, change: Change::Removed(one) }),
        (None, Some((path, other))) => Some(Difference { path, change: Change::Added(other) }),
        (Some((path, one)), Some((_, other))) => {
            let field = *fields.iter().find(|field| one.differs(&other, **field))?;
            Some(Difference { path, change: Change::Changed(field, one, other) })
        }
        (None, None) => None,
    }
}

/// Compares paths as the canonical order has them: part by part, so that what is in a directory
/// comes before what is named like it and longer.
fn canonical(one: &[u8], other: &[u8]) -> Ordering {
    let ((directory, name), (other_directory, other_name)) = (split(one), split(other));
    if directory == other_directory {
        // As most do, in directories that may lie deep.
        return name.cmp(other_name);
    }
    // No name has a NUL, and the root is the path that ends first.
    let key = |path| {
        let path: &[u8] = if path == b"/" { b"" } else { path };
        path.iter().map(|byte| if *byte == b'/' { 0 } else { *byte })
    };
    key(one).cmp(key(other))
}
