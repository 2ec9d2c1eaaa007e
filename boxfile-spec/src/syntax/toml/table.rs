//! The tables of a text, and what may stand in them twice.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;

use super::statement::Path;
use crate::syntax::Data;
use crate::{Span, Spanned};

/// A value or table.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) content: Content,
    /// The value; of a table with a header, its name there.
    pub(super) span: Span,
}

impl Item {
    /// Whether it could not be read.
    pub(super) const fn is_broken(&self) -> bool {
        matches!(self.content, Content::Broken)
    }

    /// Makes a table of what could not be read and is used as one.
    fn mend(&mut self) {
        if self.is_broken() {
            self.content = Content::Table(Table::new(Origin::Implied));
        }
    }
}

#[derive(Debug)]
pub(super) enum Content {
    Value(Data),
    List(Vec<Item>),
    Table(Table),
    /// It could not be read, which is reported.
    Broken,
}

/// How a table came about. It decides what may be added to it later (TOML 1.1, "Table").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// By a header of a table inside of it.
    Implied,
    /// By a key with a dot.
    Dotted,
    /// By its own header.
    Header,
    /// By braces: it is complete.
    Inline,
}

/// The entries of a table, in their order.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) entries: Vec<(Spanned<String>, Item)>,
    places: HashMap<String, usize>,
    origin: Origin,
    /// Whether its header has an error, which is reported: keys may stand in what is not read.
    pub(super) doubtful: bool,
}

/// Two statements that do not go together.
#[derive(Debug)]
pub(super) struct Clash {
    /// The name in the later statement.
    pub(super) name: Spanned<String>,
    /// The name in the earlier one.
    pub(super) first: Span,
    pub(super) kind: ClashKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClashKind {
    /// The name has a value, and is given another.
    Twice,
    /// The name has a value, and is used as a table.
    NoTable,
    /// The table is written in braces, and is added to.
    Closed,
    /// The table has a header, and is declared or added to elsewhere.
    Redeclared,
}

impl Table {
    pub(super) fn new(origin: Origin) -> Self {
        Self { entries: Vec::new(), places: HashMap::new(), origin, doubtful: false }
    }

    /// Adds an entry; nothing if there is one of its name.
    pub(super) fn push(&mut self, name: Spanned<String>, item: Item) {
        if let Slot::Vacant(slot) = self.places.entry(name.value.clone()) {
            slot.insert(self.entries.len());
            self.entries.push((name, item));
        }
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// Adds a value under a name with dots.
    pub(super) fn add(&mut self, mut path: Path, item: Item) -> Result<(), Clash> {
        let Some(last) = path.pop() else { return Ok(()) };
        let table = self.descend(&path, Origin::Dotted)?;
        if let Some(place) = table.find(&last.value) {
            let (key, first) = &table.entries[place];
            if first.is_broken() || item.is_broken() {
                return Ok(());
            }
            return Err(Clash { name: last, first: key.span, kind: ClashKind::Twice });
        }
        table.push(last, item);
        Ok(())
    }

    /// Returns the table of a header.
    pub(super) fn open(&mut self, mut path: Path) -> Result<&mut Self, Clash> {
        let Some(last) = path.pop() else { return Ok(self) };
        let parent = self.descend(&path, Origin::Implied)?;
        let Some(place) = parent.find(&last.value) else {
            return parent.step(&last, Origin::Header);
        };
        let (key, item) = &mut parent.entries[place];
        item.mend();
        let first = key.span;
        let clash = |name, kind| Err(Clash { name, first, kind });
        match &mut item.content {
            Content::Table(table) => {
                match table.origin {
                    Origin::Implied => table.origin = Origin::Header,
                    Origin::Inline => return clash(last, ClashKind::Closed),
                    Origin::Dotted | Origin::Header => return clash(last, ClashKind::Redeclared),
                }
                item.span = last.span;
                key.span = last.span;
                Ok(table)
            }
            _ => clash(last, ClashKind::NoTable),
        }
    }

    /// Returns the table of a header that is declared again, or of one that was opened before.
    pub(super) fn reopen(&mut self, path: &Path) -> Option<&mut Self> {
        let mut table = self;
        for name in path {
            let place = table.find(&name.value)?;
            let Content::Table(inner) = &mut table.entries[place].1.content else { return None };
            table = inner;
        }
        Some(table)
    }

    fn descend(&mut self, path: &Path, origin: Origin) -> Result<&mut Self, Clash> {
        path.iter().try_fold(self, |table, name| table.step(name, origin))
    }

    /// Returns the table of a name; it is made where it is missing.
    fn step(&mut self, name: &Spanned<String>, origin: Origin) -> Result<&mut Self, Clash> {
        let place = self.find(&name.value).unwrap_or(self.entries.len());
        if place == self.entries.len() {
            let content = Content::Table(Self::new(origin));
            self.push(name.clone(), Item { content, span: name.span });
        }
        let (key, item) = &mut self.entries[place];
        item.mend();
        let clash = |kind| Err(Clash { name: name.clone(), first: key.span, kind });
        let Content::Table(table) = &mut item.content else { return clash(ClashKind::NoTable) };
        match (table.origin, origin) {
            (Origin::Inline, _) => return clash(ClashKind::Closed),
            (Origin::Header, Origin::Dotted) => return clash(ClashKind::Redeclared),
            (Origin::Implied, Origin::Dotted) => table.origin = Origin::Dotted,
            _ => {}
        }
        Ok(table)
    }
}
