//! The texts to which spans refer: the Boxfile and the files that it extends.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use safe_text::secrets::{Secrets, asterisks, config_secrets};

use crate::{Label, Span};

/// The syntax of a Boxfile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Syntax {
    /// [KDL 2](https://kdl.dev), the first syntax.
    #[default]
    Kdl,
    /// [TOML 1](https://toml.io/en/v1.0.0), the second syntax.
    Toml,
}

impl Syntax {
    /// Returns the syntax of a file: TOML if its name ends with `.toml`, otherwise KDL.
    pub fn of(file_name: &str) -> Self {
        if file_name.ends_with(".toml") { Self::Toml } else { Self::Kdl }
    }
}

/// A text with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The file's name in messages.
    pub name: String,
    /// The text's syntax.
    pub syntax: Syntax,
    /// The content.
    pub text: String,
}

impl Source {
    /// Creates a source. Its name determines the syntax.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let name = name.into();
        Self { syntax: Syntax::of(&name), name, text: text.into() }
    }
}

/// All texts of a Boxfile. The first one is the main source, and [`Span::source`] is an index into them. Clones share
/// the texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources(Arc<Texts>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Texts {
    list: Vec<Source>,
    /// For each text of `list`, the data that messages need.
    shown: Vec<Shown>,
}

/// The step in bytes at which characters are counted in advance, for the lookup of columns.
const STRIDE: usize = 1 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Shown {
    /// The byte offsets at which the lines begin.
    lines: Vec<usize>,
    /// The number of characters that begin before each multiple of [`STRIDE`] bytes. With it, a column is not counted
    /// from the start of its line: a line of a mebibyte can have thousands of errors.
    characters: Vec<usize>,
    /// The text with asterisks in place of secrets. All other bytes keep their offsets.
    text: String,
    secrets: Secrets,
}

impl Sources {
    /// Creates the sources of a Boxfile that extends no other file.
    pub fn single(source: Source) -> Self {
        let mut sources = Self::default();
        sources.push(source);
        sources
    }

    /// Adds a text and returns its index.
    pub fn push(&mut self, source: Source) -> u32 {
        let newlines = source.text.match_indices('\n').map(|(offset, _)| offset + 1);
        let lines = std::iter::once(0).chain(newlines).collect();
        let (text, secrets) = (source.text.clone(), Secrets::default());
        let characters = characters(&source.text);
        let mut shown = Shown { lines, characters, text, secrets };
        for place in config_secrets(&source.text) {
            shown.secrets.add(&source.text[place.clone()]);
            shown.mask(place);
        }
        let texts = Arc::make_mut(&mut self.0);
        texts.list.push(source);
        texts.shown.push(shown);
        u32::try_from(texts.list.len() - 1).unwrap_or(u32::MAX)
    }

    /// Hides the quoted content of a span in all rendered lines.
    pub fn hide(&mut self, place: Span) {
        let source = usize::try_from(place.source).unwrap_or(usize::MAX);
        let text = self.0.list.get(source).and_then(|it| it.text.get(place.offset..place.end()));
        let Some(written) = text else { return };
        let is_quote = |c: char| matches!(c, '"' | '\'' | '#');
        let inside = written.trim_start_matches(is_quote);
        let start = place.end() - inside.len();
        let end = start + inside.trim_end_matches(is_quote).len();
        Arc::make_mut(&mut self.0).shown[source].mask(start..end);
    }

    /// Masks the secrets of all texts in a message. A word is kept if it is visible on a line of `labels` anyway.
    pub fn redacted(&self, message: &str, labels: &[Label]) -> String {
        let secrets = self.0.shown.iter().map(|it| &it.secrets).filter(|it| !it.is_empty());
        secrets.fold(message.to_owned(), |message, secrets| {
            let lines: Vec<&str> = labels.iter().map(|it| self.line(it.span).text).collect();
            secrets.redact(&message, &lines.join("\n"))
        })
    }

    /// Returns the texts in order.
    pub fn as_slice(&self) -> &[Source] {
        &self.0.list
    }

    /// Returns the text of a span, or an empty text if the span belongs to other sources.
    pub fn of(&self, span: Span) -> Cow<'_, Source> {
        let source = usize::try_from(span.source).ok().and_then(|index| self.0.list.get(index));
        source.map_or_else(|| Cow::Owned(Source::new("", "")), Cow::Borrowed)
    }

    /// Returns the line and the column of a span's start, both counted from 1.
    ///
    /// Lines end with LF or CRLF. Columns count characters, and a tab counts as one. An offset past the end means the
    /// end. An offset inside a character means that character.
    pub fn location(&self, span: Span) -> (usize, usize) {
        let texts = self.0.list.iter().map(|it| &*it.text);
        let line = self.line_of(texts, span);
        let end = line.start + line.within(span.offset);
        (
            line.number,
            self.characters_before(span, end) - self.characters_before(span, line.start) + 1,
        )
    }

    /// Returns the number of characters that begin before an offset in the text of a span.
    fn characters_before(&self, span: Span, offset: usize) -> usize {
        let index = usize::try_from(span.source).unwrap_or(usize::MAX);
        let (Some(source), Some(shown)) = (self.0.list.get(index), self.0.shown.get(index)) else {
            return 0;
        };
        let (strides, start) = (offset / STRIDE, offset / STRIDE * STRIDE);
        shown.characters[strides] + begun(&source.text.as_bytes()[start..offset])
    }

    /// Returns the line of a span's start, with asterisks in place of secrets.
    pub fn line(&self, span: Span) -> Line<'_> {
        self.line_of(self.0.shown.iter().map(|it| &*it.text), span)
    }

    fn line_of<'s>(&self, mut texts: impl Iterator<Item = &'s str>, span: Span) -> Line<'s> {
        let index = usize::try_from(span.source).unwrap_or(usize::MAX);
        let (Some(text), Some(Shown { lines: starts, .. })) =
            (texts.nth(index), self.0.shown.get(index))
        else {
            return Line { number: 1, start: 0, text: "" };
        };
        let number = starts.partition_point(|start| *start <= span.offset).max(1);
        let start = starts[number - 1];
        let end = starts.get(number).copied().unwrap_or(text.len());
        let text = text[start..end].trim_end_matches('\n');
        Line { number, start, text: text.strip_suffix('\r').unwrap_or(text) }
    }
}

impl Shown {
    /// Overwrites a range with asterisks, except for line ends.
    fn mask(&mut self, place: Range<usize>) {
        let hidden = asterisks(&self.text[place.clone()]);
        self.text.replace_range(place, &hidden);
    }
}

/// A line of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'s> {
    /// The line number, from 1.
    pub number: usize,
    /// The offset of its first byte.
    pub start: usize,
    /// The text without the line end.
    pub text: &'s str,
}

impl Line<'_> {
    /// Converts an offset of the source to an offset in the line. An offset past the line is its end, and an offset
    /// inside a character is the character's start.
    pub fn within(&self, offset: usize) -> usize {
        self.text.floor_char_boundary(offset.saturating_sub(self.start))
    }
}

/// Counts the characters that begin before each multiple of [`STRIDE`] bytes of a text.
fn characters(text: &str) -> Vec<usize> {
    let counts = text.as_bytes().chunks(STRIDE).scan(0, |count, chunk| {
        *count += begun(chunk);
        Some(*count)
    });
    std::iter::once(0).chain(counts).collect()
}

/// Counts the characters that begin in a part of a UTF-8 text: all bytes except continuation bytes.
fn begun(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(text: &str, offset: usize) -> (usize, usize) {
        Sources::single(Source::new("Boxfile", text)).location(Span::between(offset, offset))
    }

    #[test]
    fn places_are_counted_in_lines_and_characters() {
        let source = "ab\r\n\tжж x\n\nlast";
        for (offset, place) in [
            (0, (1, 1)),
            (1, (1, 2)),
            (3, (1, 3)),
            (4, (2, 1)),
            (5, (2, 2)),
            (6, (2, 2)),
            (7, (2, 3)),
            (10, (2, 5)),
            (11, (2, 6)),
            (12, (3, 1)),
            (13, (4, 1)),
            (17, (4, 5)),
            (99, (4, 5)),
        ] {
            assert_eq!(location(source, offset), place, "offset {offset}");
        }
    }

    #[test]
    fn a_column_of_a_long_line_is_counted_from_near_it() {
        let text = format!("\n{}\nж", "aж".repeat(3 * STRIDE));
        for offset in (0..text.len() + 2).step_by(7).chain([STRIDE, 3 * STRIDE, text.len()]) {
            let before = &text[..text.floor_char_boundary(offset)];
            let line = before.rsplit('\n').next().unwrap();
            let place = (before.matches('\n').count() + 1, line.chars().count() + 1);
            assert_eq!(location(&text, offset), place, "offset {offset}");
        }
        assert_eq!(characters(&text).len(), text.len().div_ceil(STRIDE) + 1);
        assert_eq!(characters("жж")[..], [0, 2]);
    }

    #[test]
    fn the_end_after_a_final_newline_is_a_separate_line() {
        assert_eq!(location("a\n", 2), (2, 1));
        assert_eq!(location("", 0), (1, 1));
    }

    #[test]
    fn a_name_tells_the_syntax() {
        for (name, syntax) in [
            ("Boxfile", Syntax::Kdl),
            ("a/Boxfile.kdl", Syntax::Kdl),
            ("Boxfile.toml", Syntax::Toml),
            ("base.toml", Syntax::Toml),
        ] {
            assert_eq!(Syntax::of(name), syntax);
        }
    }
}
