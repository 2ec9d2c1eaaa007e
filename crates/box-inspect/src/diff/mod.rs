//! The differences between two trees, entry by entry: boxes, images or directories.
//!
//! Both trees are listed in the canonical order and walked side by side, so the work is linear in the number of
//! entries.

mod directory;
mod image;
pub mod markdown;
mod packages;
mod parts;
mod side;
mod sizes;
pub mod summary;
#[cfg(test)]
mod tests;
pub mod text;

use std::cmp::Ordering;

use box_tree::Field;
use box_tree::path::split;

pub use crate::links::FirstName;
pub use image::{ImageError, ImageFault};
pub use packages::{PackageChange, PackageChanges};
pub use parts::{PartDifference, parts};
pub use side::{Entry, PathError, Side, SideKind};
pub use sizes::{Size, Sizes, growth};

/// A path at which two trees differ.
#[derive(Debug)]
pub struct Difference<'a> {
    /// The absolute path in the compared trees.
    pub path: Vec<u8>,
    /// How they differ.
    pub change: Change<'a>,
}

/// How two trees differ at a path.
#[derive(Debug)]
pub enum Change<'a> {
    /// Only the second tree has an entry at the path.
    Added(Entry<'a>),
    /// Only the first tree has an entry at the path.
    Removed(Entry<'a>),
    /// Both trees have an entry at the path. Contains the first field that differs.
    Changed(Field, Entry<'a>, Entry<'a>),
}

/// Compares two trees at a path and below. Fields in `ignored` are not compared.
///
/// The differences are in the canonical order, a directory before its entries. The iterator is lazy, because all
/// differences together can take many times the memory of both trees.
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

/// Compares paths name by name, as the canonical order does: `/d/a` comes before `/d-`, although `-` is less than `/`.
fn canonical(one: &[u8], other: &[u8]) -> Ordering {
    let ((directory, name), (other_directory, other_name)) = (split(one), split(other));
    if directory == other_directory {
        // The common case: entries of one directory, which may be deep.
        return name.cmp(other_name);
    }
    // No name contains a NUL, so NUL separates names. The root is the empty path.
    let key = |path| {
        let path: &[u8] = if path == b"/" { b"" } else { path };
        path.iter().map(|byte| if *byte == b'/' { 0 } else { *byte })
    };
    key(one).cmp(key(other))
}
