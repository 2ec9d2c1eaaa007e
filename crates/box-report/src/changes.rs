//! The section about the differences from an older box.

use box_contract::permissions::Effect;
use box_inspect::diff::summary::{FileChange, Summary};
use box_inspect::diff::{PackageChange, Size, Sizes, growth};

use crate::html::Html;
use crate::sections::MAX_ROWS;

/// The number of files in the section.
pub const MAX_CHANGED_FILES: usize = 100;
const DIFF: &str = "; <code>boxbuild diff OLD BOX</code> prints everything";

/// Adds the section.
pub(crate) fn section(body: &mut Html, summary: &Summary<'_>) {
    let mut html = Html::default();
    let [a, b] = [0, 1].map(|side| Html::code(&summary.names[side]).into_string());
    html.put(&format!(
        "<dl class=\"sides\"><dt>old</dt><dd>{a}</dd><dt>new</dt><dd>{b}</dd></dl>\n"
    ));
    permissions(&mut html, summary);
    packages(&mut html, summary);
    sizes(&mut html, summary);
    files(&mut html, summary);
    fields(&mut html, summary);
    body.section("changes", "Changes", &html);
}

/// Adds a table under a title, or a sentence if it is empty.
fn table<const N: usize>(
    html: &mut Html,
    title: &str,
    columns: [&str; N],
    rows: impl ExactSizeIterator<Item = [Html; N]>,
) {
    html.put(&format!("<h3>{title}</h3>\n"));
    match rows.len() {
        0 => html.paragraph("No change."),
        _ => html.table(columns, rows, (MAX_ROWS, DIFF)),
    }
}

/// Marks a value that grows or allows more.
fn marked(is_more: bool, text: &str) -> Html {
    let class = if is_more { "more" } else { "other" };
    Html::own(format!("<span class=\"{class}\">{text}</span>"))
}

fn permissions(html: &mut Html, Summary { permissions, .. }: &Summary<'_>) {
    let rows = permissions.iter().map(|it| {
        let [a, b] = [&it.a, &it.b].map(|it| Html::value(it.as_deref()));
        [marked(it.effect == Effect::More, it.effect.text()), Html::text(&it.field), a, b]
    });
    table(html, "Permissions", ["", "permission", "old", "new"], rows);
}

fn packages(html: &mut Html, summary: &Summary<'_>) {
    let versions = |it: &[String]| Html::value((!it.is_empty()).then(|| it.join(", ")).as_deref());
    let rows = summary.packages.iter().map(|PackageChange { package, a, b }| {
        let (name, part) = (Html::code(&package.name), Html::text(&package.part));
        [name, Html::own(package.kind), part, versions(a), versions(b)]
    });
    table(html, "Packages", ["package", "kind", "part", "old", "new"], rows);
    if summary.is_incomplete {
        html.paragraph("Some package data cannot be read: see the packages of each box.");
    }
}

/// Adds the sizes, the budget, the kernel and the init.
fn sizes(html: &mut Html, summary: &Summary<'_>) {
    let [a, b] = &summary.sizes;
    let rows = Sizes::pairs(a, b).into_iter().map(|(size, a, b)| {
        let name = match size {
            Size::Whole => Html::own("box"),
            Size::Rootfs => Html::own("rootfs"),
            Size::Part(part) => Html::own("files of ").and(&Html::code(part)),
        };
        [name, Html::size(a), Html::size(b), marked(a < b, &growth(a, b))]
    });
    table(html, "Sizes", ["", "#old", "#new", "#difference"], rows);
    let [a, b] = summary.budgets;
    let budget = if a == b { format!("{b}, no change") } else { format!("{a} → {b}") };
    html.paragraph(&format!("<b>Start budget:</b> {budget}."));
    for part in summary.parts {
        let [a, b] = summary.kernels.map(|it| Html::code(it.trim_end()).into_string());
        let change = match part.name {
            "kernel" if a != b => format!("{a} → {b}"),
            _ => "another one".to_owned(),
        };
        html.paragraph(&format!("<b>{}:</b> {change}.", part.name));
    }
}

fn files(html: &mut Html, Summary { files, .. }: &Summary<'_>) {
    let rows = files.largest.iter().map(|FileChange { change, path, a, b }| {
        let [a, b] = [a, b].map(|it| Html::own(it.as_deref().unwrap_or("–")));
        [Html::own(change.clone()), Html::code(path), a, b]
    });
    table(html, "Files", ["", "path", "#old", "#new"], rows);
    let ([added, removed, changed], shown) = (files.counts, files.largest.len());
    let mut text = format!("{added} added, {removed} removed, {changed} changed.");
    if added + removed + changed > shown {
        text += &format!(" These are the {shown} with the most data{DIFF}.");
    }
    html.paragraph(&text);
}

fn fields(html: &mut Html, Summary { fields, .. }: &Summary<'_>) {
    let rows = fields.iter().map(|it| [Html::text(&it.name()), Html::code(&it.change())]);
    table(html, "Fields of the plan", ["field", "change"], rows);
}
