//! Formats how two boxes differ as a Markdown comment, for example on a pull request.
//!
//! Every foreign text in it is formatted by [`safe_text::markdown_code`], so that it cannot have an effect on the comment around
//! it.

use std::collections::{BTreeSet, BinaryHeap};

use box_contract::Budget;
use box_contract::permissions::{Effect, PermissionChange};
use box_contract::plan::FieldDifference;
use safe_text::{counted, markdown_code as code, readable};

use super::{Change, Difference, Entry, PackageChange, PartDifference, Sizes};
use crate::entry::shown_bytes;

/// The length limit of a comment on GitHub, in characters. This module counts bytes, which are at least as many.
pub const MAX_COMMENT: usize = 65_536;
/// The length that is kept for everything but the rows of tables.
const RESERVE: usize = 8 << 10;
/// The number of rows of a table.
const MAX_ROWS: usize = 100;
/// The number of files in a comment.
const MAX_FILES: usize = 20;
/// An absent value.
const NONE: &str = "–";

/// The content of a comment.
#[derive(Debug)]
pub struct Comment<'a> {
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
    pub sizes: [&'a Sizes; 2],
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
    /// The rows of the changes with the most data, the largest first.
    largest: Vec<String>,
}

impl Files {
    /// Counts the differences, and keeps those with the most data: the size of the new file, or of the file that was removed.
    pub fn of<'d>(differences: impl Iterator<Item = Difference<'d>>) -> Self {
        let (mut counts, mut largest) = ([0; 3], BinaryHeap::new());
        for (at, difference) in differences.enumerate() {
            counts[kind(&difference.change)] += 1;
            // Of equal sizes, the first in the order of the paths is kept. The heap's greatest element is the least wanted.
            let key = (std::cmp::Reverse(weight(&difference.change)), at);
            if largest.len() < MAX_FILES || largest.peek().is_some_and(|(last, _)| key < *last) {
                largest.push((key, file_row(&difference)));
            }
            if largest.len() > MAX_FILES {
                largest.pop();
            }
        }
        let largest = largest.into_sorted_vec().into_iter().map(|(_, row)| row).collect();
        Self { counts, largest }
    }
}

/// Formats the comment, which has at most [`MAX_COMMENT`] characters.
pub fn comment(comment: &Comment<'_>) -> String {
    let [a, b] = [0, 1].map(|side| code(&comment.names[side]));
    let mut page = Page::default();
    page.line(&format!("### Box {}\n\n{a} → {b}\n", code(comment.title)));
    permissions(&mut page, comment.permissions);
    packages(&mut page, comment);
    page.line("| size | old | new | difference |\n|---|--:|--:|--:|");
    page.rows(size_rows(comment.sizes), MAX_ROWS);
    budget(&mut page, comment.budgets);
    parts(&mut page, comment);
    files(&mut page, &comment.files);
    fields(&mut page, comment.fields);
    page.text
}

/// A comment that grows.
#[derive(Debug, Default)]
struct Page {
    text: String,
}

impl Page {
    /// Adds text of this program: headings and summaries.
    fn line(&mut self, text: &str) {
        self.text += text;
        self.text.push('\n');
    }

    /// Adds at most `most` rows of a table, as far as there is room, and the number of the others.
    fn rows(&mut self, rows: impl IntoIterator<Item = String>, most: usize) {
        let (mut added, mut left) = (0, 0);
        for row in rows {
            let has_room = self.text.len() + row.len() < MAX_COMMENT - RESERVE;
            if left == 0 && added < most && has_room {
                self.line(&row);
                added += 1;
            } else {
                left += 1;
            }
        }
        if left > 0 {
            let rows = counted(left, "more row is", "more rows are");
            self.line(&format!(
                "\n{rows} left out. `boxbuild diff` without `--format` prints everything."
            ));
        }
        self.line("");
    }
}

/// Formats a row of a table.
fn row<const N: usize>(cells: [&str; N]) -> String {
    format!("| {} |", cells.join(" | "))
}

/// Formats a foreign value that may be absent.
fn value(value: Option<&String>) -> String {
    value.map_or_else(|| NONE.to_owned(), |it| code(it))
}

fn permissions(page: &mut Page, changes: &[PermissionChange]) {
    if changes.is_empty() {
        return page.line("**Permissions:** no change.\n");
    }
    let count = |effect| changes.iter().filter(|it| it.effect == effect).count();
    let [more, other, less] = [Effect::More, Effect::Other, Effect::Less].map(count);
    let more = counted(more, "allows more", "allow more");
    let less = counted(less, "allows less", "allow less");
    page.line(&format!("**Permissions:** {more}, {other} changed, {less}.\n"));
    page.line("| | permission | old | new |\n|---|---|---|---|");
    let rows = changes.iter().map(|PermissionChange { field, effect, a, b }| {
        let effect = match effect {
            Effect::More => format!("⚠️ **{}**", effect.text()),
            effect => effect.text().to_owned(),
        };
        row([&effect, &code(field), &value(a.as_ref()), &value(b.as_ref())])
    });
    page.rows(rows, MAX_ROWS);
}

fn packages(page: &mut Page, Comment { packages, is_incomplete, .. }: &Comment<'_>) {
    let count = |is_it: fn(&PackageChange) -> bool| packages.iter().filter(|it| is_it(it)).count();
    let added = count(|it| it.a.is_empty());
    let removed = count(|it| it.b.is_empty());
    let changed = packages.len() - added - removed;
    let summary = match packages.len() {
        0 => "no change".to_owned(),
        _ => format!("{added} added, {removed} removed, {changed} changed"),
    };
    let note = match is_incomplete {
        true => {
            " Some package data cannot be read: the SBOM of each box (`boxbuild inspect BOX --sbom`) has a list."
        }
        false => "",
    };
    page.line(&format!("**Packages:** {summary}.{note}\n"));
    if packages.is_empty() {
        return;
    }
    page.line("| part | package | old | new |\n|---|---|---|---|");
    let versions = |of: &[String]| match of {
        [] => NONE.to_owned(),
        of => code(&of.join(", ")),
    };
    let rows = packages.iter().map(|PackageChange { package, a, b }| {
        let name = format!("{} {}", package.kind, code(&package.name));
        row([&code(&package.part), &name, &versions(a), &versions(b)])
    });
    page.rows(rows, MAX_ROWS);
}

/// Returns the rows of the whole box, of the rootfs, and of the files of each part.
fn size_rows([a, b]: [&Sizes; 2]) -> Vec<String> {
    let sizes = |name: &str, a: u64, b: u64| row([name, &readable(a), &readable(b), &growth(a, b)]);
    let mut rows = vec![sizes("box", a.whole, b.whole), sizes("rootfs", a.rootfs, b.rootfs)];
    let names: BTreeSet<&String> = a.parts.keys().chain(b.parts.keys()).collect();
    for name in names {
        let [a, b] = [a, b].map(|it| it.parts.get(name).copied().unwrap_or_default());
        rows.push(sizes(&format!("files of {}", code(name)), a, b));
    }
    rows
}

/// Formats a difference of sizes with its sign.
fn growth(a: u64, b: u64) -> String {
    let sign = match a.cmp(&b) {
        std::cmp::Ordering::Less => "+",
        std::cmp::Ordering::Equal => return "0".to_owned(),
        std::cmp::Ordering::Greater => "−",
    };
    format!("{sign}{}", readable(a.abs_diff(b)))
}

fn budget(page: &mut Page, [a, b]: [Budget; 2]) {
    let change = if a == b { format!("{b}, no change") } else { format!("{a} → {b}") };
    page.line(&format!("**Start budget:** {change}.\n"));
}

fn parts(page: &mut Page, Comment { parts, kernels: [a, b], .. }: &Comment<'_>) {
    for PartDifference { name, .. } in *parts {
        let change = match *name {
            "kernel" if a != b => format!("{} → {}", code(a.trim_end()), code(b.trim_end())),
            _ => "another one".to_owned(),
        };
        page.line(&format!("**{name}:** {change}.\n"));
    }
}

fn files(page: &mut Page, Files { counts: [added, removed, changed], largest }: &Files) {
    if largest.is_empty() {
        return page.line("**Files:** no change.\n");
    }
    page.line(&format!(
        "<details><summary>Files: {added} added, {removed} removed, {changed} changed</summary>\n"
    ));
    if added + removed + changed > largest.len() {
        page.line(&format!("The {} with the most data:\n", largest.len()));
    }
    page.line("| | path | old | new |\n|---|---|--:|--:|");
    page.rows(largest.iter().cloned(), MAX_FILES);
    page.line("</details>\n");
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

fn file_row(difference: &Difference<'_>) -> String {
    let path = code(&shown_bytes(&difference.path));
    let about = |it: &Entry<'_>| match it.inode.content() {
        Some(content) => readable(content.size),
        None => it.inode.type_name().to_owned(),
    };
    match &difference.change {
        Change::Added(b) => row(["added", &path, NONE, &about(b)]),
        Change::Removed(a) => row(["removed", &path, &about(a), NONE]),
        Change::Changed(field, a, b) => {
            row([&format!("changed: {}", field.name()), &path, &about(a), &about(b)])
        }
    }
}

fn fields(page: &mut Page, fields: &[FieldDifference]) {
    if fields.is_empty() {
        return;
    }
    page.line(&format!(
        "<details><summary>Fields of the plan: {} changed</summary>\n",
        fields.len()
    ));
    page.line("| field | change |\n|---|---|");
    page.rows(fields.iter().map(|it| row([&code(&it.name()), &code(&it.change())])), MAX_ROWS);
    page.line("</details>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sbom::PackageName;

    const HOSTILE: &str = "a`b|c</code></details>@user [x](http://y) #1\n| --- |\u{202e}";

    fn changes(count: usize) -> (Vec<PermissionChange>, Vec<FieldDifference>, Vec<PackageChange>) {
        let text = || HOSTILE.repeat(9);
        let permission =
            |_| PermissionChange { field: text(), effect: Effect::More, a: None, b: Some(text()) };
        let field = |_| FieldDifference { field: text(), a: text().into(), b: text().into() };
        let package = |_| PackageChange {
            package: PackageName { part: text(), kind: "deb", name: text() },
            a: vec![text()],
            b: Vec::new(),
        };
        let all = 0..count;
        (
            all.clone().map(permission).collect(),
            all.clone().map(field).collect(),
            all.map(package).collect(),
        )
    }

    fn formatted(count: usize) -> String {
        let (permissions, fields, packages) = changes(count);
        let parts = (0..count).map(|at| (format!("{at}{HOSTILE}"), 1 << 20)).collect();
        let sizes = Sizes { whole: 3 << 20, rootfs: 2 << 20, parts };
        let part = PartDifference { name: "kernel", a: None, b: None };
        let largest = vec![row(["added", &code(HOSTILE), NONE, "1 byte"]); count.min(MAX_FILES)];
        comment(&Comment {
            names: [HOSTILE.to_owned(), HOSTILE.to_owned()],
            title: HOSTILE,
            permissions: &permissions,
            fields: &fields,
            packages: &packages,
            is_incomplete: true,
            sizes: [&Sizes::default(), &sizes],
            budgets: [Budget::default(), Budget { total: Some(900), ..Budget::default() }],
            kernels: [HOSTILE, "Linux version 6.12.34"],
            parts: &[part],
            files: Files { counts: [count, 0, 0], largest },
        })
    }

    /// Removes all code spans. The rest is this program's own text.
    fn outside(text: &str) -> String {
        text.split('`').step_by(2).collect()
    }

    #[test]
    fn a_comment_has_a_bound_and_keeps_its_form() {
        for count in [0, 1, 30, 3000] {
            let text = formatted(count);
            assert!(text.len() < MAX_COMMENT, "{}", text.len());
            assert_eq!(text.contains("left out"), count > 1, "{count}");
            let own = outside(&text);
            for foreign in ["user", "http", "code", " #1", "a`"] {
                assert!(!own.contains(foreign), "{foreign}: {own}");
            }
            assert_eq!(own.matches("<details>").count(), own.matches("</details>").count());
            assert_eq!(own.matches("<details>").count(), if count == 0 { 0 } else { 2 });
        }
    }

    #[test]
    fn every_row_has_as_many_cells_as_its_head() {
        let text = formatted(20);
        let cells = |line: &str| line.matches('|').count();
        let mut head = None;
        for line in text.lines().map(|line| line.starts_with('|').then_some(line)) {
            let Some(line) = line else {
                head = None;
                continue;
            };
            assert_eq!(cells(line), *head.get_or_insert_with(|| cells(line)), "{line}");
        }
    }

    #[test]
    fn a_size_has_a_sign() {
        assert_eq!([growth(1, 1), growth(0, 2048), growth(2048, 0)], ["0", "+2.0 KiB", "−2.0 KiB"]);
    }
}
