//! Formats how two boxes differ as a Markdown comment, for example on a pull request.
//!
//! Every foreign text in it is formatted by [`safe_text::markdown_code`], so that it cannot have an effect on the comment around
//! it.

use box_contract::Budget;
use box_contract::permissions::{Effect, PermissionChange};
use box_contract::plan::FieldDifference;
use safe_text::{counted, markdown_code as code, readable};

use super::sizes::{Size, Sizes, growth};
use super::summary::{FileChange, Files, Summary};
use super::{PackageChange, PartDifference};

/// The length limit of a comment on GitHub, in characters. This module counts bytes, which are at least as many.
pub const MAX_COMMENT: usize = 65_536;
/// The length that is kept for everything but the rows of tables.
const RESERVE: usize = 8 << 10;
/// The number of rows of a table.
const MAX_ROWS: usize = 100;
/// The number of files in a comment.
pub const MAX_FILES: usize = 20;
/// An absent value.
const NONE: &str = "–";

/// Formats the comment, which has at most [`MAX_COMMENT`] characters.
pub fn comment(comment: &Summary<'_>) -> String {
    let [a, b] = [0, 1].map(|side| code(&comment.names[side]));
    let mut page = Page::default();
    page.line(&format!("### Box {}\n\n{a} → {b}\n", code(comment.title)));
    permissions(&mut page, comment.permissions);
    packages(&mut page, comment);
    page.line("| size | old | new | difference |\n|---|--:|--:|--:|");
    page.rows(size_rows(&comment.sizes), MAX_ROWS);
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

fn packages(page: &mut Page, Summary { packages, is_incomplete, .. }: &Summary<'_>) {
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
fn size_rows([a, b]: &[Sizes; 2]) -> Vec<String> {
    let one = |(size, a, b): (Size<'_>, u64, u64)| {
        let name = match size {
            Size::Whole => "box".to_owned(),
            Size::Rootfs => "rootfs".to_owned(),
            Size::Part(name) => format!("files of {}", code(name)),
        };
        row([&name, &readable(a), &readable(b), &growth(a, b)])
    };
    Sizes::pairs(a, b).into_iter().map(one).collect()
}

fn budget(page: &mut Page, [a, b]: [Budget; 2]) {
    let change = if a == b { format!("{b}, no change") } else { format!("{a} → {b}") };
    page.line(&format!("**Start budget:** {change}.\n"));
}

fn parts(page: &mut Page, Summary { parts, kernels: [a, b], .. }: &Summary<'_>) {
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
    page.rows(largest.iter().map(file_row), MAX_FILES);
    page.line("</details>\n");
}

fn file_row(FileChange { change, path, a, b }: &FileChange) -> String {
    let side = |it: &Option<String>| it.clone().unwrap_or_else(|| NONE.to_owned());
    row([change, &code(path), &side(a), &side(b)])
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
        let file = FileChange {
            change: "added".to_owned(),
            path: HOSTILE.to_owned(),
            a: None,
            b: Some("1 byte".to_owned()),
        };
        let largest = vec![file; count.min(MAX_FILES)];
        comment(&Summary {
            names: [HOSTILE.to_owned(), HOSTILE.to_owned()],
            title: HOSTILE,
            permissions: &permissions,
            fields: &fields,
            packages: &packages,
            is_incomplete: true,
            sizes: [Sizes::default(), sizes],
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
}
