//! Formats differences as text.

use box_contract::plan::FieldDifference;
use box_tree::Field;
use safe_text::bytes;

use super::PackageChange;
use super::parts::PartDifference;
use super::{Change, Difference, Entry};
use crate::entry::{origin, shown_bytes};

/// A difference, and how many differences of the same kind below it are not shown.
struct Shown<'d> {
    difference: Difference<'d>,
    below: usize,
}

/// Formats the differences, line by line. For a directory that only one side has, shows the number
/// of entries below it instead of the entries.
pub fn lines<'d>(
    differences: impl Iterator<Item = Difference<'d>> + 'd,
    parts: &'d [PartDifference],
) -> impl Iterator<Item = String> + 'd {
    let digest = |it: Option<box_digest::Digest>| it.map_or("none".to_owned(), |it| it.to_string());
    let parts = parts.iter().map(move |part| {
        let (a, b) = (digest(part.a), digest(part.b));
        format!("changed  the {}\n         a  {a}\n         b  {b}", part.name)
    });
    parts.chain(folded(differences).map(|shown| one(&shown)))
}

/// Formats how the plans of two boxes differ, one line for each field.
pub fn plan_lines(differences: &[FieldDifference]) -> impl Iterator<Item = String> {
    differences.iter().map(|it| format!("plan     {}  {}", it.name(), it.change()))
}

/// Formats which packages differ between two boxes, one line for each package.
pub fn package_lines(changes: &[PackageChange]) -> impl Iterator<Item = String> {
    changes.iter().map(|it| format!("package  {}", it.line()))
}

/// Leaves out the differences below a directory that only one side has.
fn folded<'d>(
    differences: impl Iterator<Item = Difference<'d>>,
) -> impl Iterator<Item = Shown<'d>> {
    let mut differences = differences.peekable();
    std::iter::from_fn(move || {
        let difference = differences.next()?;
        let mut below = 0;
        while differences.next_if(|next| hides(&difference, next)).is_some() {
            below += 1;
        }
        Some(Shown { difference, below })
    })
}

/// Returns whether `directory` is an added or removed directory and `other` is the same change
/// below it.
fn hides(directory: &Difference<'_>, other: &Difference<'_>) -> bool {
    let is_directory = |entry: &Entry<'_>| entry.inode.type_name() == "directory";
    let alike = match (&directory.change, &other.change) {
        (Change::Added(entry), Change::Added(_)) | (Change::Removed(entry), Change::Removed(_)) => {
            is_directory(entry)
        }
        (Change::Changed(Field::Type, a, _), Change::Removed(_)) => is_directory(a),
        (Change::Changed(Field::Type, _, b), Change::Added(_)) => is_directory(b),
        _ => false,
    };
    let rest = other.path.strip_prefix(directory.path.as_slice());
    alike && rest.is_some_and(|rest| rest.starts_with(b"/") || directory.path == b"/")
}

fn one(Shown { difference, below }: &Shown<'_>) -> String {
    let path = shown_bytes(&difference.path);
    let below = match below {
        0 => String::new(),
        1 => ", 1 entry below".to_owned(),
        below => format!(", {below} entries below"),
    };
    match &difference.change {
        Change::Added(entry) => format!("added    {path}  {}", about(entry, &below)),
        Change::Removed(entry) => format!("removed  {path}  {}", about(entry, &below)),
        Change::Changed(field, a, b) => {
            let shown = field.difference(a.inode, b.inode);
            let (to_a, to_b) = match b.inode.type_name() {
                "directory" => (String::new(), below),
                _ => (below, String::new()),
            };
            format!(
                "changed  {path}  {}\n         a  {}\n         b  {}",
                shown.field,
                differing(*field, &shown.values[0], a, &to_a),
                differing(*field, &shown.values[1], b, &to_b),
            )
        }
    }
}

/// Describes an entry: type, size, origin.
fn about(entry: &Entry<'_>, below: &str) -> String {
    let size = entry.inode.content().map_or_else(String::new, |it| format!(", {}", bytes(it.size)));
    format!("{}{size}{below}, {}", entry.inode.type_name(), origin(entry))
}

/// Formats the differing field of an entry, followed by its description.
fn differing(field: Field, value: &str, entry: &Entry<'_>, below: &str) -> String {
    let rest = about(entry, below);
    match (field, entry.first_name) {
        // The description has type and size.
        (Field::Type | Field::Size, _) => rest,
        (Field::HardLinks, None) => format!("1 name: {rest}"),
        (Field::HardLinks, Some(first)) => {
            format!("{} names, first {}: {rest}", entry.names, shown_bytes(&first.path()))
        }
        _ => format!("{value}: {rest}"),
    }
}
