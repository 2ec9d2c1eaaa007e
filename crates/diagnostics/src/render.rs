//! Renders a diagnostic with its source lines.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar as _;

use crate::sources::Line;
use crate::{Diagnostic, Label, Sources, Span};
use safe_text::{shown, visible};

/// The maximum number of characters of a source line that are shown.
const MAX_WIDTH: usize = 120;
/// The number of characters of a longer line that are shown before the underlined part.
const LEAD: usize = 40;
/// The rendering of a tab. Terminals differ in their tab stops.
const TAB: &str = "    ";

/// See [`Diagnostic::render`].
pub(crate) fn render(diagnostic: &Diagnostic, sources: &Sources) -> String {
    let marks = Mark::all(diagnostic, sources);
    let widest = marks.iter().map(|mark| mark.line.number).max().unwrap_or(1);
    let gutter = " ".repeat(widest.to_string().len() + 1);

    let mut out = format!("{}: {}\n", diagnostic.severity(), diagnostic.message());
    out += &format!("{gutter}--> {}\n{gutter} |\n", place(diagnostic.span(), sources));
    let mut above: Option<&Mark<'_>> = None;
    for mark in &marks {
        if above.map_or(diagnostic.span(), |above| above.label.span).source != mark.source() {
            let place = place(mark.label.span, sources);
            out += &format!("{gutter} |\n{gutter}::: {place}\n{gutter} |\n");
        }
        mark.write(&mut out, above.filter(|above| above.source() == mark.source()), &gutter);
        above = Some(mark);
    }
    match diagnostic.help() {
        Some(help) => {
            let help = help.replace('\n', &format!("\n{gutter}       "));
            out + &format!("{gutter} |\n{gutter} = help: {help}")
        }
        None => out.trim_end().to_owned(),
    }
}

/// Formats the start of a span: file, line and column.
fn place(span: Span, sources: &Sources) -> String {
    let (line, column) = sources.location(span);
    format!("{}:{line}:{column}", shown(&sources.of(span).name))
}

/// A label and the line on which it starts.
struct Mark<'d> {
    label: &'d Label,
    line: Line<'d>,
    /// The byte offset in the line at which the span begins. For a label at the end of the line, the line's length.
    from: usize,
    /// The byte offset in the line at which the span ends.
    to: usize,
    /// `^` for the primary span, `-` for the others.
    sign: &'static str,
}

impl<'d> Mark<'d> {
    /// Returns the marks of all labels, sorted by position. The source of the primary span comes first.
    fn all(diagnostic: &'d Diagnostic, sources: &'d Sources) -> Vec<Self> {
        let signs = std::iter::once("^").chain(std::iter::repeat("-"));
        let place = |(label, sign)| Self::new(label, sources, sign);
        let mut marks: Vec<Self> = diagnostic.labels().iter().zip(signs).map(place).collect();
        let first = diagnostic.span().source;
        marks.sort_by_key(|it| (it.source() != first, it.source(), it.line.number, it.from));
        marks
    }

    fn source(&self) -> u32 {
        self.label.span.source
    }

    fn new(label: &'d Label, sources: &'d Sources, sign: &'static str) -> Self {
        let line = sources.line(label.span);
        let from = line.within(label.span.offset);
        // A span of several lines is underlined to the end of its first line. A point is as wide as its character.
        let to = line.within(label.span.end()).max(ahead(line.text, from, 1));
        Self { label, line, from, to, sign }
    }

    /// Writes the line, unless the previous mark has shown it already, and the underline.
    fn write(&self, out: &mut String, above: Option<&Mark<'_>>, gutter: &str) {
        let window = Window::around(self.line.text, self.from);
        let shown = above.is_some_and(|above| {
            above.line.number == self.line.number
                && Window::around(above.line.text, above.from) == window
        });
        if !shown {
            if above.is_some_and(|above| above.line.number + 1 < self.line.number) {
                out.push_str("...\n");
            }
            let width = gutter.len() - 1;
            let text = window.text(self.line.text);
            push_line(out, &format!(" {:>width$} | {text}", self.line.number));
        }
        let (before, under) = window.columns(self.line.text, self.from, self.to);
        let underline = " ".repeat(before) + &self.sign.repeat(under);
        push_line(out, &format!("{gutter} | {underline} {}", self.label.text));
    }
}

fn push_line(out: &mut String, line: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{}", line.trim_end());
}

/// The shown part of a line, in bytes. Only characters near the span are examined, because a line of a mebibyte can
/// have thousands of errors.
#[derive(Debug, PartialEq, Eq)]
struct Window {
    start: usize,
    end: usize,
}

impl Window {
    /// Returns the [`MAX_WIDTH`] characters around an offset: [`LEAD`] before it, and more if fewer follow.
    fn around(line: &str, from: usize) -> Self {
        let lead = back(line, from, LEAD);
        let end = ahead(line, lead, MAX_WIDTH);
        Self { start: if end == line.len() { back(line, end, MAX_WIDTH) } else { lead }, end }
    }

    /// Returns the shown text, with an ellipsis on each side that is cut.
    fn text(&self, line: &str) -> String {
        let shown = line[self.start..self.end].chars().map(show);
        let end = if self.end < line.len() { "…" } else { "" };
        format!("{}{}{end}", self.ellipsis(), shown.collect::<String>())
    }

    fn ellipsis(&self) -> &'static str {
        if self.start > 0 { "…" } else { "" }
    }

    /// Returns the number of terminal columns in front of `from..to`, a part of the line, and the number of columns
    /// that this part takes.
    fn columns(&self, line: &str, from: usize, to: usize) -> (usize, usize) {
        let width = |text: &str| -> usize { text.chars().map(columns).sum() };
        let before = self.ellipsis().chars().count() + width(&line[self.start..from]);
        (before, width(&line[from..to.min(self.end)]).max(1))
    }
}

/// Returns the offset of the character that is `count` characters before `from`, or the start of the line.
fn back(line: &str, from: usize, count: usize) -> usize {
    line[..from].char_indices().rev().take(count).last().map_or(from, |(at, _)| at)
}

/// Returns the offset of the character that is `count` characters after `from`, or the end of the line.
fn ahead(line: &str, from: usize, count: usize) -> usize {
    line[from..].char_indices().nth(count).map_or(line.len(), |(at, _)| from + at)
}

fn show(c: char) -> String {
    if c == '\t' { TAB.to_owned() } else { visible(c).to_string() }
}

/// Returns the number of terminal columns of a character as [`show`] writes it.
fn columns(c: char) -> usize {
    if c == '\t' { TAB.len() } else { visible(c).width().unwrap_or(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;
    use insta::assert_snapshot;
    use proptest::prelude::*;

    fn boxfile(text: &str) -> Sources {
        Sources::single(Source::new("Boxfile", text))
    }

    fn at(source: &str, what: &str) -> Span {
        Span::at(source.find(what).unwrap(), what.len())
    }

    #[test]
    fn one_place() {
        let source = "box \"x\"\n\nagnet {\n}\n";
        let error = Diagnostic::new(
            "unknown declaration `agnet`",
            at(source, "agnet"),
            "no such declaration",
        )
        .with_help("did you mean `agent`?");
        assert_snapshot!(error.render(&boxfile(source)), @"
        error: unknown declaration `agnet`
          --> Boxfile:3:1
           |
         3 | agnet {
           | ^^^^^ no such declaration
           |
           = help: did you mean `agent`?
        ");
    }

    #[test]
    fn several_places() {
        let source = "a b c\nd\ne\nf\n";
        let error = Diagnostic::new("clash", at(source, "f"), "the last")
            .with_label(at(source, "a"), "the first")
            .with_label(at(source, "c"), "on the same line")
            .with_label(at(source, "d"), "on the next line");
        assert_snapshot!(error.render(&boxfile(source)), @"
        error: clash
          --> Boxfile:4:1
           |
         1 | a b c
           | - the first
           |     - on the same line
         2 | d
           | - on the next line
        ...
         4 | f
           | ^ the last
        ");
    }

    #[test]
    fn tabs_wide_and_control_characters_keep_the_underline_in_place() {
        let source = "\tx\t漢字\u{1b}e\u{301} here\r\nnext";
        let error = Diagnostic::new("m", at(source, "here"), "this");
        assert_snapshot!(error.render(&boxfile(source)), @"
        error: m
          --> Boxfile:1:10
           |
         1 |     x    漢字�é here
           |                 ^^^^ this
        ");
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let source = format!("{} here {}", "a ".repeat(300), "b ".repeat(300));
        let error = Diagnostic::new("m", at(&source, "here"), "this");
        assert_snapshot!(error.render(&boxfile(&source)), @"
        error: m
          --> Boxfile:1:602
           |
         1 | … a a a a a a a a a a a a a a a a a a a  here b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b…
           |                                          ^^^^ this
        ");
        let whole = Diagnostic::new("m", Span::at(0, source.len()), "all of it");
        assert_snapshot!(whole.render(&boxfile(&source)), @"
        error: m
          --> Boxfile:1:1
           |
         1 | a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a …
           | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ all of it
        ");
    }

    #[test]
    fn a_place_over_several_lines_is_underlined_on_its_first() {
        let source = "x \"\"\"\n  a\n  \"\"\"\n";
        let error = Diagnostic::new("m", at(source, "\"\"\"\n  a\n  \"\"\""), "this");
        assert_snapshot!(error.render(&boxfile(source)), @r#"
        error: m
          --> Boxfile:1:3
           |
         1 | x """
           |   ^^^ this
        "#);
    }

    #[test]
    fn the_end_of_the_file() {
        let error = |source: &str| {
            Diagnostic::new("m", Span::at(source.len(), 0), "here").render(&boxfile(source))
        };
        assert_snapshot!(error("agent {"), @"
        error: m
          --> Boxfile:1:8
           |
         1 | agent {
           |        ^ here
        ");
        assert_snapshot!(error("agent {\n"), @"
        error: m
          --> Boxfile:2:1
           |
         2 |
           | ^ here
        ");
        assert_snapshot!(error(""), @"
        error: m
          --> Boxfile:1:1
           |
         1 |
           | ^ here
        ");
    }

    #[test]
    fn only_what_is_near_a_place_is_looked_at() {
        let line = "é".repeat(500);
        for (from, start, end) in [
            (0, 0, 120),
            (40, 0, 120),
            (41, 1, 121),
            (300, 260, 380),
            (420, 380, 500),
            (460, 380, 500),
            (500, 380, 500),
        ] {
            assert_eq!(Window::around(&line, 2 * from), Window { start: 2 * start, end: 2 * end });
        }
        assert_eq!(Window::around("ab", 1), Window { start: 0, end: 2 });
        assert_eq!(Window::around("", 0), Window { start: 0, end: 0 });
    }

    proptest! {
        #[test]
        fn any_span_of_any_text_can_be_shown(
            source in "(\\PC|[\t\r\n\u{0}é漢]){0,300}",
            spans in proptest::collection::vec((0usize..400, 0usize..400), 1..4),
        ) {
            let mut error = Diagnostic::new("m", Span::default(), "");
            for (offset, len) in spans {
                error = error.with_label(Span::at(offset, len), "label");
            }
            let shown = error.render(&boxfile(&source));
            prop_assert!(shown.starts_with("error: m\n"));
            prop_assert!(shown.lines().all(|line| line.chars().count() < 600));
        }
    }
}
