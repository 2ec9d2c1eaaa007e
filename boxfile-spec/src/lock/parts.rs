//! Cuts the text of a lock into its head and its entries.
//!
//! Each part is read for itself, so that an error in one entry, an array that does not close for
//! example, leaves all others readable. A cut is in front of every line that starts with `[[`. In
//! a lock, no value has such a line: texts have their line breaks escaped.

use crate::Span;

/// A part of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part<'s> {
    /// The bytes in front of it.
    pub(super) start: usize,
    pub(super) text: &'s str,
}

impl Part<'_> {
    /// Translates a place of the part into one of the whole text.
    pub(super) fn span(&self, within: &std::ops::Range<usize>) -> Span {
        Span::between(self.start + within.start, self.start + within.end)
    }
}

/// Returns the head, which always exists, and behind it the entries.
pub(super) fn cut(text: &str) -> (Part<'_>, impl Iterator<Item = Part<'_>>) {
    let mut starts = lines(text)
        .filter(|(_, line)| line.trim_start_matches([' ', '\t']).starts_with("[["))
        .map(|(start, _)| start)
        .peekable();
    let head = Part { start: 0, text: &text[..starts.peek().copied().unwrap_or(text.len())] };
    let entries = std::iter::from_fn(move || {
        let start = starts.next()?;
        let end = starts.peek().copied().unwrap_or(text.len());
        Some(Part { start, text: &text[start..end] })
    });
    (head, entries)
}

/// Iterates over the lines, with their ends, and where they start.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_inclusive('\n').scan(0, |next, line| {
        let start = *next;
        *next += line.len();
        Some((start, line))
    })
}
