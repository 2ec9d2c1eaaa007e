//! Collects lines and writes them as text: indentation, blank lines, and aligned comments.

use std::iter::repeat_n;

use diagnostics::cursor::BYTE_ORDER_MARK;

/// The width of one step of indentation, in columns.
const STEP: usize = 4;

/// The greatest width of code with an aligned comment, in columns. Without a bound, one long line
/// would move the comments of all lines around it.
const MAX_WIDTH: usize = 80;

/// A line of the formatted text. If its code or its comment contains line feeds, it is several
/// lines of the output.
#[derive(Debug, Default)]
struct Line<'s> {
    /// The indentation in steps.
    depth: usize,
    /// Whether a blank line precedes this one.
    blank: bool,
    code: String,
    /// The comment at the end of the line.
    comment: Option<&'s str>,
}

impl Line<'_> {
    const fn is_empty(&self) -> bool {
        self.code.is_empty() && self.comment.is_none()
    }

    /// Returns the width of the code in columns.
    fn width(&self) -> usize {
        self.code.chars().count()
    }

    /// Returns whether the comment may be aligned with the comments of the lines around it. A
    /// comment after a bracket or the name of a table is not aligned: it describes the whole block
    /// or table.
    fn aligns(&self) -> bool {
        let code = &self.code;
        let brackets = code.ends_with(['{', '[']) || code.starts_with(['}', ']']);
        let table = code.starts_with('[') && code.ends_with(']');
        let short = !code.contains('\n') && self.width() <= MAX_WIDTH;
        self.comment.is_some() && !code.is_empty() && short && !brackets && !table
    }

    /// Writes the line; its comment begins after `width` columns of code.
    fn render(&self, width: usize, text: &mut String) {
        text.extend(repeat_n(' ', self.depth * STEP));
        text.push_str(&self.code);
        if let Some(comment) = self.comment {
            if !self.code.is_empty() {
                text.extend(repeat_n(' ', width - self.width() + 1));
            }
            text.push_str(comment);
        }
        text.push('\n');
    }
}

/// The finished lines and the current one.
#[derive(Debug, Default)]
pub(super) struct Page<'s> {
    done: Vec<Line<'s>>,
    line: Line<'s>,
}

impl<'s> Page<'s> {
    /// Begins a new line, unless the current one is empty.
    pub(super) fn begin(&mut self, depth: usize, blank: bool) {
        if !self.line.is_empty() {
            self.done.push(std::mem::take(&mut self.line));
        }
        self.line.depth = depth;
        self.line.blank |= blank;
    }

    /// Writes code. If `space` is set and the line is not empty, writes a space first.
    pub(super) fn write(&mut self, space: bool, code: &str) {
        let line = &mut self.line.code;
        if space && !line.is_empty() {
            line.push(' ');
        }
        line.push_str(code);
    }

    /// Ends the line with a comment. The next call must be [`Page::begin`].
    pub(super) const fn comment(&mut self, comment: &'s str) {
        self.line.comment = Some(comment);
    }

    pub(super) const fn is_line_empty(&self) -> bool {
        self.line.is_empty()
    }

    pub(super) const fn has_comment(&self) -> bool {
        self.line.comment.is_some()
    }

    /// Puts a blank line in front of this line and the comment directly above it.
    pub(super) fn set_apart(&mut self) {
        let mut first = &mut self.line;
        for above in self.done.iter_mut().rev() {
            if first.blank || !above.code.is_empty() {
                break;
            }
            first = above;
        }
        first.blank = true;
    }

    /// Returns the text of all lines, with a byte order mark if the source has one.
    pub(super) fn finish(mut self, source: &str) -> String {
        self.begin(0, false);
        let mark = if source.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK } else { "" };
        let mut text = mark.to_owned();
        let one_column =
            |a: &Line<'_>, b: &Line<'_>| a.aligns() && b.aligns() && a.depth == b.depth && !b.blank;
        for run in self.done.chunk_by(one_column) {
            let width = run.iter().map(Line::width).max().unwrap_or(0);
            for line in run {
                if line.blank && text.len() > mark.len() {
                    text.push('\n');
                }
                line.render(width, &mut text);
            }
        }
        text
    }
}
