//! Makes one table of all statements of a text.

use std::collections::HashSet;

use super::explain::{self, clash, header, pair};
use super::outline::{Fault, Outline, Statement};
use super::statement::{self, Path};
use super::table::{ClashKind, Content, Item, Origin, Table};
use crate::Span;
use crate::sink::Sink;

/// How many errors are explained: the sink keeps no more.
const MOST_EXPLAINED: usize = 1000;

/// What a text says.
pub(super) struct Document {
    pub(super) root: Table,
    /// See [`crate::syntax::Tree::intact`].
    pub(super) intact: bool,
    /// See [`crate::syntax::Tree::complete`].
    pub(super) complete: bool,
}

/// Reads all statements of a text, and reports those that cannot be read.
pub(super) fn read(text: &str, sink: &Sink) -> Document {
    let mut builder = Builder {
        text,
        invisible: explain::characters::report(text, sink),
        sink,
        root: Table::new(Origin::Header),
        current: Table::new(Origin::Header),
        place: Place::Table(Path::new(), false),
        lists: HashSet::new(),
        in_block: false,
        errors: 0,
        intact: true,
        complete: true,
    };
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    for statement in Outline::new(text, start) {
        if statement.header {
            builder.header(&statement);
        } else {
            builder.pair(&statement);
        }
    }
    builder.put_back();
    Document { root: builder.root, intact: builder.intact, complete: builder.complete }
}

/// Where the keys that follow belong.
enum Place {
    /// To a table: its name, and whether its header is a second one, which is reported.
    Table(Path, bool),
    /// To a table that cannot be made out, which is reported.
    Nowhere,
}

struct Builder<'s> {
    text: &'s str,
    /// The offsets of characters that a text must not have, in their order.
    invisible: Vec<usize>,
    sink: &'s Sink,
    root: Table,
    /// The table that is being filled, taken out of the root; or the root itself.
    current: Table,
    place: Place,
    /// The names of tables that are written as lists of tables, which is reported once for each.
    lists: HashSet<Vec<String>>,
    /// Whether a `{` without a `=` is open, so that a `}` will follow.
    in_block: bool,
    errors: usize,
    intact: bool,
    complete: bool,
}

impl Builder<'_> {
    fn header(&mut self, statement: &Statement) {
        self.put_back();
        let before = self.errors;
        if let Some(path) = self.header_path(statement) {
            let doubtful = self.errors > before;
            self.enter(path, statement);
            self.current.doubtful |= doubtful;
        }
        self.complete &= matches!(self.place, Place::Table(..));
    }

    /// Puts the current table back to where it belongs.
    fn put_back(&mut self) {
        let filled = std::mem::replace(&mut self.current, Table::new(Origin::Header));
        let place = std::mem::replace(&mut self.place, Place::Nowhere);
        if let Place::Table(path, _) = place
            && let Some(table) = self.root.reopen(&path)
        {
            *table = filled;
        }
    }

    /// Reads the names of a header, which may have an error: it is reported.
    fn header_path(&mut self, statement: &Statement) -> Option<Path> {
        let range = &statement.range;
        if statement.fault.is_none()
            && !self.is_invisible(statement)
            && let Some(path) = statement::header(self.text, range)
            && !self.text[range.clone()].starts_with("[[")
        {
            return Some(path);
        }
        self.explain_header(statement)
    }

    /// Reports what is wrong with a header, and returns its names where there is no doubt.
    fn explain_header(&mut self, statement: &Statement) -> Option<Path> {
        let range = &statement.range;
        if !self.is_news() || self.is_invisible(statement) {
            return None;
        }
        if let Some(Fault::Deep(span)) = statement.fault {
            self.sink.report(explain::too_deep(span));
            return None;
        }
        let Some(path) = statement::list_header(self.text, range) else {
            return header::report(self.text, range, self.sink);
        };
        if self.lists.insert(path.iter().map(|name| name.value.clone()).collect()) {
            self.sink.report(header::list(&path, range));
        }
        None
    }

    /// Makes the table of a header the current one.
    fn enter(&mut self, path: Path, statement: &Statement) {
        let again = match self.root.open(path.clone()) {
            Ok(_) => false,
            Err(error) => {
                if self.is_news() {
                    let header = &self.text[statement.range.clone()];
                    self.sink.report(clash::of_header(header, &error));
                }
                if error.kind != ClashKind::Redeclared {
                    return;
                }
                true
            }
        };
        if let Some(table) = self.root.reopen(&path) {
            self.current = std::mem::replace(table, Table::new(Origin::Header));
            self.place = Place::Table(path, again);
        }
    }

    fn pair(&mut self, statement: &Statement) {
        let range = &statement.range;
        let invisible = self.is_invisible(statement);
        let fine = statement.fault.is_none() && !invisible;
        let read = if fine { statement::pair(self.text, range) } else { None };
        if let Some((path, item)) = read {
            self.add(path, item);
            return;
        }
        if !self.is_news() {
            self.complete = false;
            return;
        }
        if !invisible {
            self.explain(statement);
        }
        match pair::key(self.text, range) {
            Some(path) => {
                let span = Span::at(range.start, 0);
                self.add(path, Item { content: Content::Broken, span });
            }
            None => self.complete = false,
        }
    }

    fn add(&mut self, path: Path, item: Item) {
        if matches!(self.place, Place::Nowhere) {
            return;
        }
        let added = self.current.add(path, item);
        if added.is_err()
            && self.is_news()
            && let (Err(error), Place::Table(table, false)) = (added, &self.place)
        {
            self.sink.report(clash::of_pair(table, &error));
        }
    }

    /// Counts an error, and tells whether it is still to be explained.
    const fn is_news(&mut self) -> bool {
        self.errors += 1;
        self.errors <= MOST_EXPLAINED
    }

    /// Reports why a pair cannot be read.
    fn explain(&mut self, statement: &Statement) {
        let range = &statement.range;
        match statement.fault {
            Some(Fault::Deep(span)) => self.sink.report(explain::too_deep(span)),
            Some(Fault::LongText(span)) => {
                self.sink.report(explain::unclosed_text(self.text, span));
                self.intact = false;
                self.complete = false;
            }
            Some(Fault::Bracket { open, sure }) if pair::has_key(self.text, range) => {
                self.sink.report(explain::unclosed_bracket(self.text, range, open, sure));
                self.intact &= sure;
                self.in_block |= !sure;
            }
            None if self.in_block && self.text[range.clone()].starts_with('}') => {
                self.in_block = false;
            }
            fault => {
                self.in_block |= fault.is_some();
                self.intact &= fault.is_none();
                let table: &[_] = if let Place::Table(path, _) = &self.place { path } else { &[] };
                pair::report(self.text, range, table, self.sink);
            }
        }
    }

    fn is_invisible(&self, statement: &Statement) -> bool {
        let range = &statement.range;
        let next = self.invisible.partition_point(|offset| *offset < range.start);
        self.invisible.get(next).is_some_and(|offset| range.contains(offset))
    }
}
