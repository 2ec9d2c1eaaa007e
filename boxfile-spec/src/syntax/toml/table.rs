//! The tables of a text. The names in a table must be unique.

use std::collections::HashMap;

use crate::errors::SYNTAX_ERRORS;
use crate::syntax::tree::Data;
use diagnostics::{Diagnostic, Span, Spanned};
use safe_text::quote;

/// The names of a header or in front of a `=`, separated by dots.
pub(super) type Path = Vec<Spanned<String>>;

/// A value or table.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) content: Content,
    /// The span of the value. For a table with a header, the span of the table's name in the
    /// header.
    pub(super) span: Span,
}

impl Item {
    /// Returns `true` if the item could not be read.
    pub(super) const fn is_broken(&self) -> bool {
        matches!(self.content, Content::Broken)
    }
}

#[derive(Debug)]
pub(super) enum Content {
    Value(Data),
    List(Vec<Item>),
    Table(Table),
    /// The value could not be read, and the error is already reported.
    Broken,
}

/// The statement that created a table. It decides what may be added to the table later ([TOML
/// 1.1](https://toml.io), "Table").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The header of an inner table: `[a.b]` creates `a`.
    Implied,
    /// A key with a dot: `a.b = 1` creates `a`.
    Dotted,
    /// The header of the table itself: `[a]`.
    Header,
    /// Braces: `a = { b = 1 }`. Nothing may be added.
    Inline,
}

/// The entries of a table, in the order of the file.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) entries: Vec<(Spanned<String>, Item)>,
    /// The index of each name in `entries`.
    places: HashMap<String, usize>,
    origin: Origin,
    /// Whether the table's header has an error, so that keys may be missing.
    pub(super) doubtful: bool,
}

/// Returns the error of two statements that declare the same table.
fn declared_twice(name: &Spanned<String>, first: Span) -> Diagnostic {
    SYNTAX_ERRORS.about("twice", &quote(&name.value), name.span).with_label(first, "declared first")
}

impl Table {
    pub(super) fn new(origin: Origin) -> Self {
        Self { entries: Vec::new(), places: HashMap::new(), origin, doubtful: false }
    }

    fn push(&mut self, name: Spanned<String>, item: Item) {
        self.places.insert(name.value.clone(), self.entries.len());
        self.entries.push((name, item));
    }

    /// Adds a value under a dotted name.
    pub(super) fn add(&mut self, mut path: Path, item: Item) -> Result<(), Diagnostic> {
        let Some(name) = path.pop() else { return Ok(()) };
        let table = path.iter().try_fold(self, |table, name| table.step(name, Origin::Dotted))?;
        let Some(&place) = table.places.get(&name.value) else {
            table.push(name, item);
            return Ok(());
        };
        let (key, earlier) = &table.entries[place];
        if earlier.is_broken() || item.is_broken() {
            return Ok(());
        }
        Err(Diagnostic::twice(&name.value, key.span, name.span))
    }

    /// Declares the table of a header.
    pub(super) fn open(&mut self, path: &[Spanned<String>]) -> Result<(), Diagnostic> {
        let Some((name, parents)) = path.split_last() else { return Ok(()) };
        let parent =
            parents.iter().try_fold(self, |table, name| table.step(name, Origin::Implied))?;
        let fresh = !parent.places.contains_key(&name.value);
        let table = parent.step(name, if fresh { Origin::Header } else { Origin::Implied })?;
        let implied = std::mem::replace(&mut table.origin, Origin::Header) == Origin::Implied;
        let (key, item) = &mut parent.entries[parent.places[&name.value]];
        if !fresh && !implied {
            return Err(declared_twice(name, key.span));
        }
        key.span = name.span;
        item.span = name.span;
        Ok(())
    }

    /// Returns the table at `path`; `None` if there is no table.
    pub(super) fn at(&mut self, path: &[Spanned<String>]) -> Option<&mut Self> {
        path.iter().try_fold(self, |table, name| {
            let place = *table.places.get(&name.value)?;
            match &mut table.entries[place].1.content {
                Content::Table(inner) => Some(inner),
                _ => None,
            }
        })
    }

    /// Returns whether a statement of the kind `origin` may add to the table.
    fn accepts(&self, origin: Origin) -> bool {
        self.origin != Origin::Inline
            && !(self.origin == Origin::Header && origin == Origin::Dotted)
    }

    /// Returns the inner table `name`, and creates it if it is missing.
    fn step(&mut self, name: &Spanned<String>, origin: Origin) -> Result<&mut Self, Diagnostic> {
        if !self.places.contains_key(&name.value) {
            let content = Content::Table(Self::new(origin));
            self.push(name.clone(), Item { content, span: name.span });
        }
        let (key, item) = &mut self.entries[self.places[&name.value]];
        if item.is_broken() {
            item.content = Content::Table(Self::new(Origin::Implied));
        }
        match &mut item.content {
            Content::Table(table) if table.accepts(origin) => {
                if table.origin == Origin::Implied {
                    table.origin = origin;
                }
                Ok(table)
            }
            Content::Table(_) => Err(declared_twice(name, key.span)),
            _ => Err(Diagnostic::twice(&name.value, key.span, name.span)),
        }
    }
}
