//! One statement of a text that is being read: a header, or a key with its value.

use toml_parser::{ParseError, Raw, Span as Range};

use super::table::{Content, Item, Path};
use super::word;
use crate::syntax::tree::{Data, MAX_DEPTH};
use diagnostics::{Sink, Span, Spanned};

/// The kind of a statement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Form {
    /// `a.b = 1`.
    #[default]
    Pair,
    /// `[a.b]`.
    Header,
    /// `[[a.b]]`.
    ListHeader,
}

/// A list or a table in braces that is being read.
#[derive(Debug)]
struct Bracket {
    /// The opening bracket. The parser marks a missing one with an empty span.
    open: Span,
    content: Content,
    /// The key of the next value, if the bracket is a table.
    key: Path,
}

/// A statement and its errors.
#[derive(Debug, Default)]
pub(super) struct Statement {
    pub(super) form: Form,
    /// The depth of the table that contains the statement.
    pub(super) base: usize,
    /// The offset of the first token; `None` until it is read.
    pub(super) start: Option<usize>,
    /// The names of the header or key.
    pub(super) path: Path,
    /// Whether one of the names cannot be read.
    pub(super) path_lost: bool,
    /// The `=` after the key.
    pub(super) equals: Option<Span>,
    /// The value.
    pub(super) item: Option<Item>,
    /// The brackets that are open, the outermost first.
    brackets: Vec<Bracket>,
    /// Whether a header has its closing bracket.
    pub(super) closed: bool,
    /// A bracket or dot that is nested too deep.
    pub(super) deep: Option<Span>,
    /// The innermost unclosed bracket.
    pub(super) unclosed: Option<Span>,
    /// A closing bracket without a matching one, and the bracket that is open instead.
    pub(super) stray: Option<(Span, Option<Span>)>,
    /// The position of a missing name.
    pub(super) nameless: Option<Span>,
    /// The position of a missing value, and its key.
    pub(super) valueless: Option<(Span, Option<Spanned<String>>)>,
    /// A word after a value, without a comma between them.
    pub(super) second: Option<Span>,
    /// The first token after the end of the statement.
    pub(super) extra: Option<Span>,
    /// The errors of single names and values.
    pub(super) words: Sink,
    /// The first error that the parser found in the structure.
    pub(super) refused: Option<ParseError>,
}

impl Statement {
    /// Reads a name of the header or key, or of a table in braces.
    ///
    /// The parser marks a missing name with an empty span.
    pub(super) fn name(&mut self, raw: Raw<'_>, at: Range) {
        let span = span(at);
        let read = if span.len == 0 {
            self.nameless.get_or_insert(span);
            None
        } else {
            self.words.check(word::name(raw, span))
        };
        self.path_lost |= read.is_none() && !self.is_open();
        if self.deep.is_some() {
            return;
        }
        let name = Spanned { value: read.unwrap_or_default(), span };
        self.brackets.last_mut().map_or(&mut self.path, |bracket| &mut bracket.key).push(name);
        if self.depth() > MAX_DEPTH {
            self.deep = Some(span);
            self.path_lost |= !self.is_open();
        }
    }

    /// Reads a text, a number or another single value.
    ///
    /// The parser marks a missing value with an empty span.
    pub(super) fn scalar(&mut self, raw: Raw<'_>, at: Range) {
        let span = span(at);
        let read = if span.len == 0 {
            let key = self.brackets.last().map_or(&self.path, |bracket| &bracket.key).last();
            self.valueless.get_or_insert((span, key.cloned()));
            None
        } else if word::is_endless(raw) {
            self.unclosed.get_or_insert(Span::at(span.offset, 3));
            None
        } else {
            self.word(raw, span)
        };
        self.put(Item { content: read.map_or(Content::Broken, Content::Value), span });
    }

    /// Reads a word. The parser passes several words, such as `1 2`, as one. If the first of them alone is a value, the
    /// others are an error.
    fn word(&mut self, raw: Raw<'_>, span: Span) -> Option<Data> {
        let read = word::scalar(raw, span);
        match read.as_ref().err().and_then(|_| word::second(raw.as_str(), span)) {
            None => return self.words.check(read),
            Some(second) if self.is_open() => self.second.get_or_insert(second),
            Some(second) => self.extra.get_or_insert(second),
        };
        None
    }

    /// Opens a list or a table in braces; returns `false` if it is nested too deep.
    pub(super) fn open(&mut self, at: Range, content: Content) -> bool {
        let open = span(at);
        let fits = self.depth() < MAX_DEPTH;
        if !fits {
            self.deep.get_or_insert(open);
        }
        self.brackets.push(Bracket { open, content, key: Path::new() });
        fits
    }

    /// Closes the innermost list or table. The parser marks a missing bracket with an empty span.
    pub(super) fn close(&mut self, at: Range) {
        let close = span(at);
        let Some(Bracket { open, content, .. }) = self.brackets.pop() else { return };
        if close.len == 0 {
            self.unclosed.get_or_insert(open);
        } else if open.len == 0 {
            let around = self.brackets.last().map(|bracket| bracket.open);
            self.stray.get_or_insert((close, around));
        }
        self.put(Item { content, span: Span::between(open.offset, close.end()) });
    }

    /// Returns `true` if the statement has an error.
    pub(super) fn is_faulty(&self) -> bool {
        let whole = if self.form == Form::Pair { self.item.is_some() } else { self.closed };
        let missing = self.nameless.is_some() || self.valueless.is_some() || self.second.is_some();
        let refused =
            self.refused.is_some() || self.extra.is_some() || self.form == Form::ListHeader;
        let lost = self.unclosed.is_some() || self.deep.is_some();
        !whole || missing || refused || lost || !self.words.found().is_empty()
    }

    /// Returns `true` if a list or a table in braces is open.
    pub(super) fn is_open(&self) -> bool {
        !self.brackets.is_empty()
    }

    /// Returns `true` if the next value is an item of a list.
    pub(super) fn is_in_list(&self) -> bool {
        matches!(self.brackets.last(), Some(Bracket { content: Content::List(_), .. }))
    }

    /// Adds a value to the innermost list or table, or makes it the value of the statement.
    fn put(&mut self, item: Item) {
        let Some(bracket) = self.brackets.last_mut() else {
            self.item = Some(item);
            return;
        };
        match &mut bracket.content {
            Content::Table(table) => {
                self.words.check(table.add(std::mem::take(&mut bracket.key), item));
            }
            Content::List(items) => items.push(item),
            Content::Value(_) | Content::Broken => {}
        }
    }

    /// Returns the depth of the next value.
    fn depth(&self) -> usize {
        let dots = |path: &Path| path.len().saturating_sub(1);
        let inner = self.brackets.iter().map(|bracket| 1 + dots(&bracket.key)).sum::<usize>();
        self.base + dots(&self.path) + inner
    }
}

/// Converts a span of the parser.
pub(super) fn span(range: Range) -> Span {
    Span::between(range.start(), range.end())
}
