//! Reads one statement with the `toml` crate.

use std::cell::Cell;
use std::ops::Range;

use toml::de::{DeArray, DeTable, DeValue};

use super::explain::word;
use super::lexeme::{Kind, Lexemes};
use super::table::{Content, Item, Origin, Table};
use crate::syntax::Data;
use crate::{Span, Spanned};

/// The names of a header or in front of a `=`, one for each dot more.
pub(super) type Path = Vec<Spanned<String>>;

/// Reads a header: `[a.b]`.
pub(super) fn header(text: &str, range: &Range<usize>) -> Option<Path> {
    let root = DeTable::parse(&text[range.clone()]).ok()?.into_inner();
    let (path, _) = Reader::new(text, range.start).chain(root, usize::MAX);
    Some(path)
}

/// Reads a key and its value: `a.b = 1`.
pub(super) fn pair(text: &str, range: &Range<usize>) -> Option<(Path, Item)> {
    let statement = &text[range.clone()];
    let root = DeTable::parse(statement).ok()?.into_inner();
    let reader = Reader::new(text, range.start);
    let (path, item) = reader.chain(root, equals(statement)?);
    item.filter(|_| !reader.refused.get()).map(|item| (path, item))
}

/// Returns where the `=` behind the key of a statement is.
pub(super) fn equals(statement: &str) -> Option<usize> {
    let mut lexemes = Lexemes::new(statement, 0);
    let ends = |kind| matches!(kind, Kind::Mark(b'=' | b'[' | b'{' | b','));
    let mark = lexemes.find(|lexeme| ends(lexeme.kind))?;
    (mark.kind == Kind::Mark(b'=')).then_some(mark.start)
}

/// Reads names with dots between them, of a text that cannot be read as a whole.
pub(super) fn path(text: &str, range: &Range<usize>) -> Option<Path> {
    let written = format!("[{}]", &text[range.clone()]);
    let mut path = header(&written, &(0..written.len()))?;
    // The bracket in front is not in the text.
    path.iter_mut().for_each(|name| name.span.offset = range.start + name.span.offset - 1);
    Some(path)
}

/// Reads the header of a list of tables: `[[a.b]]`.
pub(super) fn list_header(text: &str, range: &Range<usize>) -> Option<Path> {
    let statement = &text[range.clone()];
    let inner = statement.strip_prefix("[[")?.split_once("]]")?.0;
    let start = range.start + 2;
    path(text, &(start..start + inner.len()))
}

/// Turns what the `toml` crate read into ours.
struct Reader<'s> {
    /// The offset of the statement in the text.
    base: usize,
    text: &'s str,
    /// Whether there is a value that the crate takes and a Boxfile does not.
    refused: Cell<bool>,
}

impl<'s> Reader<'s> {
    const fn new(text: &'s str, base: usize) -> Self {
        Self { base, text, refused: Cell::new(false) }
    }

    /// Follows the names that end in front of an offset, to the value behind them.
    fn chain(&self, root: DeTable<'_>, equals: usize) -> (Path, Option<Item>) {
        let mut path = Path::new();
        let mut table = root;
        while let Some((key, value)) = table.into_iter().next() {
            path.push(self.key(key));
            let span = self.span(value.span());
            let named = |inner: &DeTable<'_>| inner.keys().any(|key| key.span().start < equals);
            table = match value.into_inner() {
                DeValue::Table(inner) if named(&inner) => inner,
                value => return (path, Some(self.item(value, span))),
            };
        }
        (path, None)
    }

    fn key(&self, key: toml::Spanned<std::borrow::Cow<'_, str>>) -> Spanned<String> {
        let span = self.span(key.span());
        Spanned { value: key.into_inner().into_owned(), span }
    }

    fn span(&self, range: Range<usize>) -> Span {
        Span::between(self.base + range.start, self.base + range.end)
    }

    fn item(&self, value: DeValue<'_>, span: Span) -> Item {
        let content = match value {
            DeValue::Array(array) => Content::List(self.items(array)),
            DeValue::Table(table) => Content::Table(self.table(table)),
            DeValue::String(text) => Content::Value(Data::Text(text.into_owned())),
            DeValue::Boolean(truth) => Content::Value(Data::Truth(truth)),
            DeValue::Float(_) => Content::Value(Data::Float(self.written(span))),
            DeValue::Integer(number) => match word::integer(&number) {
                Some(number) => Content::Value(Data::Integer(number)),
                None => {
                    self.refused.set(true);
                    Content::Broken
                }
            },
            DeValue::Datetime(time) => {
                let what = if time.date.is_some() { "a date" } else { "a time of day" };
                Content::Value(Data::Other(what))
            }
        };
        Item { content, span }
    }

    fn written(&self, span: Span) -> String {
        self.text[span.offset..span.end()].to_owned()
    }

    fn items(&self, array: DeArray<'_>) -> Vec<Item> {
        let item = |value: toml::Spanned<DeValue<'_>>| {
            let span = self.span(value.span());
            self.item(value.into_inner(), span)
        };
        array.into_iter().map(item).collect()
    }

    /// Reads an inline table; the crate sorts by name, we by place.
    fn table(&self, table: DeTable<'_>) -> Table {
        let mut entries: Vec<_> = table.into_iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let mut table = Table::new(Origin::Inline);
        for (key, value) in entries {
            let span = self.span(value.span());
            let item = self.item(value.into_inner(), span);
            table.push(self.key(key), item);
        }
        table
    }
}
