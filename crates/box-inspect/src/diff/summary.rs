//! A summary of how two boxes differ, which is formatted as a comment or as part of a page.

use box_contract::Budget;
use box_contract::permissions::PermissionChange;
use box_contract::plan::FieldDifference;
use safe_text::readable;

use super::{Change, Difference, Entry, PackageChange, PartDifference, Sizes};
use crate::entry::shown_bytes;
use crate::largest::Largest;

/// How two boxes differ.
#[derive(Debug)]
pub struct Summary<'a> {
    /// The two boxes as the user named them. Foreign texts.
    pub names: [String; 2],
    /// The name in the plan of the second box. Foreign text.
    pub title: &'a str,
    /// The permissions that differ.
    pub permissions: &'a [PermissionChange],
    /// All fields of the plans that differ.
    pub fields: &'a [FieldDifference],
    /// The packages that differ.
    pub packages: &'a [PackageChange],
    /// Whether a package database of one of the boxes is not fully read.
    pub is_incomplete: bool,
    /// The sizes of both boxes.
    pub sizes: [Sizes; 2],
    /// The start budgets of both boxes.
    pub budgets: [Budget; 2],
    /// The version lines of both kernels. Foreign texts.
    pub kernels: [&'a str; 2],
    /// The parts outside the rootfs that differ.
    pub parts: &'a [PartDifference],
    /// The files that differ.
    pub files: Files,
}

/// A summary of the files that differ.
#[derive(Debug, Default)]
pub struct Files {
    /// The numbers of added, removed and changed entries.
    pub counts: [usize; 3],
    /// The changes with the most data, the largest first.
    pub largest: Vec<FileChange>,
}

/// A file that differs. `a` and `b` are its size, or its type if it is no regular file; `None` if that box lacks it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileChange {
    /// `added`, `removed`, or `changed: FIELD`.
    pub change: String,
    /// The path, with control characters replaced. Foreign text.
    pub path: String,
    /// The file in the first box.
    pub a: Option<String>,
    /// The file in the second box.
    pub b: Option<String>,
}

impl Files {
    /// Counts the differences, and keeps the `most` with the most data: the size of the new file, or of the file that was
    /// removed.
    pub fn of<'d>(differences: impl Iterator<Item = Difference<'d>>, most: usize) -> Self {
        let (mut counts, mut largest) = ([0; 3], Largest::new(most));
        for difference in differences {
            counts[kind(&difference.change)] += 1;
            largest.add(weight(&difference.change), || FileChange::of(&difference));
        }
        let largest = largest.into_vec().into_iter().map(|(_, change)| change).collect();
        Self { counts, largest }
    }
}

impl FileChange {
    fn of(difference: &Difference<'_>) -> Self {
        let about = |it: &Entry<'_>| match it.inode.content() {
            Some(content) => readable(content.size),
            None => it.inode.type_name().to_owned(),
        };
        let (change, a, b) = match &difference.change {
            Change::Added(b) => ("added".to_owned(), None, Some(about(b))),
            Change::Removed(a) => ("removed".to_owned(), Some(about(a)), None),
            Change::Changed(field, a, b) => {
                (format!("changed: {}", field.name()), Some(about(a)), Some(about(b)))
            }
        };
        Self { change, path: shown_bytes(&difference.path), a, b }
    }
}

/// Returns the index of a change in [`Files::counts`].
const fn kind(change: &Change<'_>) -> usize {
    match change {
        Change::Added(_) => 0,
        Change::Removed(_) => 1,
        Change::Changed(..) => 2,
    }
}

/// Returns how much data a change has, in bytes.
fn weight(change: &Change<'_>) -> u64 {
    let size = |it: &Entry<'_>| it.inode.content().map_or(0, |it| it.size);
    match change {
        Change::Added(it) | Change::Removed(it) => size(it),
        Change::Changed(_, a, b) if a.inode.content() == b.inode.content() => 0,
        Change::Changed(_, _, b) => size(b),
    }
}
