//! HTML in which every foreign text is escaped.
//!
//! [`Html`] is made only from texts of this program and from escaped texts, so the compiler finds a foreign text that is not
//! escaped.

use safe_text::{counted, readable, visible};

/// The maximum number of characters of a foreign text on the page.
const MAX_TEXT: usize = 160;
/// The number of rows of a table that are shown at first.
const FIRST_ROWS: usize = 25;

/// A piece of a page.
#[derive(Debug, Clone, Default)]
pub(crate) struct Html(String);

impl Html {
    /// Takes HTML of this program.
    pub(crate) fn own(html: impl Into<String>) -> Self {
        Self(html.into())
    }

    /// Escapes a text. Characters that a terminal would not show become U+FFFD, and the middle of a long text is left out.
    pub(crate) fn text(text: &str) -> Self {
        Self(escape(&clipped(text, MAX_TEXT)))
    }

    /// Escapes a name, a path or a value from a box, and marks it as code.
    pub(crate) fn code(text: &str) -> Self {
        Self(format!("<code>{}</code>", Self::text(text).0))
    }

    /// Formats a foreign value that may be absent.
    pub(crate) fn value(text: Option<&str>) -> Self {
        text.map_or_else(|| Self::own("–"), Self::code)
    }

    /// Formats a size.
    pub(crate) fn size(bytes: u64) -> Self {
        Self(format!("<span title=\"{}\">{}</span>", safe_text::bytes(bytes), readable(bytes)))
    }

    /// Draws a bar whose length is `value` of `whole`. The mark is at `mark` of `whole`.
    pub(crate) fn bar(value: f64, mark: Option<f64>, whole: f64) -> Self {
        let at = |it: f64| if whole > 0.0 { (it / whole * 100.0).clamp(0.0, 100.0) } else { 0.0 };
        let is_over = mark.is_some_and(|mark| value > mark);
        let mark = mark.map_or_else(String::new, |mark| {
            format!("<rect class=\"mark\" x=\"{:.1}\" width=\"1\" height=\"10\"/>", at(mark) - 0.5)
        });
        let class = if is_over { " class=\"over\"" } else { "" };
        let bar = format!("<rect{class} y=\"2\" width=\"{:.1}\" height=\"6\"/>", at(value));
        let head = "<svg class=\"bar\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\"";
        Self(format!("{head} aria-hidden=\"true\">{bar}{mark}</svg>"))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }

    /// Returns this piece followed by another.
    pub(crate) fn and(mut self, other: &Self) -> Self {
        self.0 += &other.0;
        self
    }

    /// Appends HTML of this program.
    pub(crate) fn put(&mut self, own: &str) {
        self.0 += own;
    }

    /// Appends a section with its title and content.
    pub(crate) fn section(&mut self, id: &str, title: &str, content: &Self) {
        let head = format!("<section id=\"{id}\"><h2>{title}</h2>\n");
        self.0 += &(head + &content.0 + "</section>\n");
    }

    /// Appends a paragraph of this program.
    pub(crate) fn paragraph(&mut self, text: &str) {
        self.0 += &format!("<p>{text}</p>\n");
    }

    /// Appends a table of at most `most` rows, and a sentence about the rows that are left out. `more` tells where they are. The
    /// first rows are shown, and a person opens the others. Columns whose names begin with `#` are numbers.
    pub(crate) fn table<const N: usize>(
        &mut self,
        columns: [&str; N],
        rows: impl IntoIterator<Item = [Self; N]>,
        (most, more): (usize, &str),
    ) {
        let class = columns.map(|it| if it.starts_with('#') { " class=\"n\"" } else { "" });
        let of_row = |row: [Self; N]| {
            let cells = class.iter().zip(&row);
            let cells = cells.map(|(class, cell)| format!("<td{class}>{}</td>", cell.0));
            format!("<tr>{}</tr>\n", cells.collect::<String>())
        };
        let mut rows = rows.into_iter().map(of_row);
        let shown: Vec<String> = rows.by_ref().take(most).collect();
        let left = rows.count();
        let (first, others) = shown.split_at(shown.len().min(FIRST_ROWS));
        let titles = columns.iter().zip(class);
        let titles = titles.map(|(it, class)| {
            format!("<th scope=\"col\"{class}>{}</th>", it.trim_start_matches('#'))
        });
        let head = format!("<thead><tr>{}</tr></thead>", titles.collect::<String>());
        let table = |rows: &[String]| {
            let rows = rows.concat();
            let head = format!("<div class=\"table\" tabindex=\"0\"><table>{head}");
            Self(format!("{head}<tbody>\n{rows}</tbody></table></div>\n"))
        };
        self.0 += &table(first).0;
        if !others.is_empty() {
            self.details(&counted(others.len(), "more row", "more rows"), &table(others));
        }
        if left > 0 {
            let left = counted(left, "row is", "rows are");
            self.paragraph(&format!("{left} left out{more}."));
        }
    }

    /// Appends content that a person opens.
    pub(crate) fn details(&mut self, title: &str, content: &Self) {
        let title = format!("<details><summary>{title}</summary>\n");
        self.0 += &(title + &content.0 + "</details>\n");
    }
}

/// Cuts the middle of a text with more than `most` characters, because the end of a path identifies it.
pub(crate) fn clipped(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let (head, tail) = (most / 2, most - most / 2 - 1);
    let end: String = text.chars().skip(count - tail).collect();
    text.chars().take(head).chain(['…']).collect::<String>() + &end
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match visible(c) {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_text_keeps_both_ends() {
        assert_eq!(clipped("abcdefgh", 8), "abcdefgh");
        assert_eq!(clipped("abcdefghi", 8), "abcd…ghi");
    }

    #[test]
    fn a_table_counts_the_rows_that_it_lacks() {
        let mut html = Html::default();
        let rows = (0..5u64).map(|it| [Html::size(it)]);
        html.table(["#size"], rows, (3, ": elsewhere"));
        assert_eq!(html.0.matches("<tr><td class=\"n\">").count(), 3);
        assert!(html.0.contains("<p>2 rows are left out: elsewhere.</p>"), "{}", html.0);
    }

    proptest! {
        #[test]
        fn no_text_is_markup(text in "(\\PC|[<>&\"'\u{0}-\u{20}\u{7f}-\u{9f}\u{202e}\u{2066}]){0,400}") {
            let html = Html::text(&text).0;
            prop_assert!(!html.contains(['<', '>', '"', '\'']));
            prop_assert!(html.chars().all(|c| visible(c) == c));
            let entities = ["amp;", "lt;", "gt;", "quot;", "#39;"];
            let is_entity = |rest: &str| entities.iter().any(|it| rest.starts_with(it));
            prop_assert!(html.split('&').skip(1).all(is_entity));
            prop_assert!(html.len() <= 6 * MAX_TEXT);
        }
    }
}
