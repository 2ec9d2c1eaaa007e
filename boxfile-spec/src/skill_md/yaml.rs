//! From the frontmatter's text to a tree of nodes with their places in the file.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span as Marks};

use super::explain;
use super::report::Report;
use super::scalar;
use crate::diagnostic::quote;
use crate::{Diagnostic, Span, Spanned};

/// How deep collections may lie in one another.
const DEEPEST: usize = 16;

/// A value and its place. Of a list or mapping, the place is its first line.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) span: Span,
    pub(super) data: Data,
}

/// What a value is.
#[derive(Debug, PartialEq)]
pub(super) enum Data {
    Null,
    Bool(bool),
    /// A number as it is written.
    Number(String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) key: Spanned<String>,
    pub(super) value: Node,
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.data == other.data
    }
}

/// Reads the YAML that begins `base` bytes behind the file's start; nothing where it cannot be
/// read, which is reported then. Empty text is an empty mapping.
pub(super) fn read(text: &str, base: usize, report: &Report) -> Option<Node> {
    let places = Places::new(text, base);
    let mut builder =
        Builder { places: &places, report, stack: Vec::new(), root: None, intact: true };
    // The first error ends it: behind it, the scanner gives the same one for ever.
    for event in Parser::new_from_str(text) {
        let step = match event {
            Ok((event, marks)) => builder.take(event, marks),
            Err(error) => Err(explain::scan_error(&error, &places)),
        };
        if let Err(error) = step {
            report.error(error);
            return None;
        }
    }
    let empty = Node { span: Span::between(base, base), data: Data::Map(Vec::new()) };
    builder.intact.then(|| builder.root.unwrap_or(empty))
}

/// Turns the scanner's characters into bytes of the file.
pub(super) struct Places<'t> {
    text: &'t str,
    base: usize,
    /// For each character, the byte at which it starts, and the text's end.
    starts: Vec<usize>,
    /// For each line, the bytes at which it starts and ends, without what is blank at its end.
    lines: Vec<(usize, usize)>,
}

impl<'t> Places<'t> {
    fn new(text: &'t str, base: usize) -> Self {
        let starts = text.char_indices().map(|(start, _)| start).chain([text.len()]).collect();
        let mut lines = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            lines.push((at, at + line.trim_end().len()));
            at += line.len();
        }
        Self { text, base, starts, lines }
    }

    fn byte(&self, character: usize) -> usize {
        self.starts.get(character).copied().unwrap_or(self.text.len())
    }

    /// Returns the point at a character.
    pub(super) fn point(&self, character: usize) -> Span {
        let at = self.base + self.byte(character);
        Span::between(at, at)
    }

    /// Returns the place of a scalar, without what is blank behind it.
    fn scalar(&self, marks: Marks) -> Span {
        let (start, end) = (self.byte(marks.start.index()), self.byte(marks.end.index()));
        let text = self.text.get(start..end).unwrap_or_default();
        Span::between(self.base + start, self.base + start + text.trim_end().len())
    }

    /// Returns the place of a collection: from its start to the end of that line.
    fn first_line(&self, marks: Marks) -> Span {
        let start = self.byte(marks.start.index());
        let line = self.lines[..self.lines_to(start)].last();
        let end = line.map_or(start, |(_, end)| start.max(*end));
        Span::between(self.base + start, self.base + end)
    }

    /// Returns the place of the last line above a character that is not blank.
    pub(super) fn line_above(&self, character: usize) -> Span {
        let before = self.lines_to(self.byte(character).saturating_sub(1));
        let line = self.lines[..before].iter().rev().find(|(start, end)| end > start);
        let (start, end) = line.copied().unwrap_or_default();
        Span::between(self.base + start, self.base + end)
    }

    /// Counts the lines that start at a byte or before it.
    fn lines_to(&self, byte: usize) -> usize {
        self.lines.partition_point(|(start, _)| *start <= byte)
    }
}

/// A collection that is not finished.
struct Frame {
    span: Span,
    items: Items,
}

enum Items {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, seen: HashMap<String, Span>, key: Option<Spanned<String>> },
}

struct Builder<'t, 'r> {
    places: &'r Places<'t>,
    report: &'r Report,
    stack: Vec<Frame>,
    root: Option<Node>,
    /// Whether all that was read is in the tree.
    intact: bool,
}

impl Builder<'_, '_> {
    /// Takes an event; an error ends the reading.
    fn take(&mut self, event: Event<'_>, marks: Marks) -> Result<(), Diagnostic> {
        let span = self.places.scalar(marks);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse(anchor != 0, tag.is_some(), span);
                self.scalar(&text, style == ScalarStyle::Plain, span);
            }
            Event::Alias(_) => {
                self.intact = false;
                self.report.error(explain::alias(span));
                self.scalar("*", false, span);
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse(anchor != 0, tag.is_some(), span);
                self.open(Items::List(Vec::new()), marks)?;
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse(anchor != 0, tag.is_some(), span);
                let (entries, seen) = (Vec::new(), HashMap::new());
                self.open(Items::Map { entries, seen, key: None }, marks)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::DocumentStart(_) if self.root.is_some() => {
                return Err(explain::second_document(span));
            }
            Event::DocumentStart(_) | Event::DocumentEnd => {}
            Event::StreamStart | Event::StreamEnd | Event::Nothing => {}
        }
        Ok(())
    }

    /// Reports an anchor or a tag.
    fn refuse(&mut self, anchor: bool, tag: bool, span: Span) {
        if anchor {
            self.report.error(explain::anchor(span));
        }
        if tag {
            self.report.error(explain::tag(span));
        }
        self.intact &= !anchor && !tag;
    }

    fn awaits_key(&self) -> bool {
        matches!(self.stack.last(), Some(Frame { items: Items::Map { key: None, .. }, .. }))
    }

    fn open(&mut self, items: Items, marks: Marks) -> Result<(), Diagnostic> {
        let span = self.places.first_line(marks);
        if self.awaits_key() {
            return Err(explain::complex_key(span));
        }
        if self.stack.len() >= DEEPEST {
            return Err(explain::too_deep(self.places.point(marks.start.index())));
        }
        self.stack.push(Frame { span, items });
        Ok(())
    }

    fn close(&mut self) {
        let Some(Frame { span, items }) = self.stack.pop() else { return };
        let data = match items {
            Items::List(items) => Data::List(items),
            Items::Map { entries, .. } => Data::Map(entries),
        };
        self.put(Node { span, data });
    }

    fn scalar(&mut self, text: &str, plain: bool, span: Span) {
        if self.awaits_key() {
            self.check_key(text, plain, span);
            return self.key(text, span);
        }
        let data = if plain { scalar::plain(text) } else { Data::Text(text.to_owned()) };
        self.put(Node { span, data });
    }

    /// Reports a key that YAML gives a meaning of its own, or none.
    fn check_key(&mut self, text: &str, plain: bool, span: Span) {
        let error = match text {
            "<<" if plain => explain::merge_key(span),
            "" => explain::no_key(span),
            _ => return,
        };
        self.intact = false;
        self.report.error(error);
    }

    fn key(&mut self, text: &str, span: Span) {
        let Some(Frame { items: Items::Map { seen, key, .. }, .. }) = self.stack.last_mut() else {
            return;
        };
        *key = Some(Spanned { value: text.to_owned(), span });
        match seen.get(text) {
            Some(first) if self.report.keeps_errors() => {
                self.report.error(twice(text, *first, span));
            }
            Some(_) => {}
            None => drop(seen.insert(text.to_owned(), span)),
        }
    }

    fn put(&mut self, value: Node) {
        match self.stack.last_mut().map(|frame| &mut frame.items) {
            None => self.root = Some(value),
            Some(Items::List(items)) => items.push(value),
            Some(Items::Map { entries, key, .. }) => {
                entries.extend(key.take().map(|key| Entry { key, value }));
            }
        }
    }
}

fn twice(key: &str, first: Span, second: Span) -> Diagnostic {
    Diagnostic::new(format!("{} is given twice", quote(key)), second, "given again")
        .with_label(first, "given first")
        .with_help("remove one of them")
}
