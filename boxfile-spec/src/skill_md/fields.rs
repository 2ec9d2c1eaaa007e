//! Takes the keys of a mapping by their names and warns of all that nobody asked for.

use super::report::Report;
use super::value;
use super::yaml::{Data, Entry, Node};
use crate::diagnostic::quote;
use crate::suggest::nearest;
use crate::{Diagnostic, Span};

/// A mapping that is being read.
pub(super) struct Fields<'n> {
    /// What the mapping is, for messages: `a skill`, `a tool`.
    what: &'static str,
    span: Span,
    entries: &'n [Entry],
    known: Vec<&'static str>,
    pub(super) report: &'n Report,
}

/// A key that was found, with its value.
#[derive(Clone, Copy)]
pub(super) struct Field<'n> {
    pub(super) name: &'static str,
    pub(super) key: Span,
    pub(super) value: &'n Node,
}

impl<'n> Fields<'n> {
    /// Reads a mapping; anything else is an error.
    pub(super) fn new(what: &'static str, node: &'n Node, report: &'n Report) -> Option<Self> {
        let Data::Map(entries) = &node.data else {
            let message = format!("{what} is not a mapping");
            let error = Diagnostic::new(message, node.span, "has no keys");
            report.error(error.with_help(
                "write its keys and their values as `key: value`, each on a line of its own",
            ));
            return None;
        };
        Some(Self { what, span: node.span, entries, known: Vec::new(), report })
    }

    /// Returns the mapping's first line.
    pub(super) const fn span(&self) -> Span {
        self.span
    }

    /// Takes a key, if it is there; one without a value is an error.
    pub(super) fn take(&mut self, name: &'static str) -> Option<Field<'n>> {
        self.known.push(name);
        let entry = self.entries.iter().find(|entry| entry.key.value == name)?;
        let field = Field { name, key: entry.key.span, value: &entry.value };
        if entry.value.data == Data::Null {
            let message = format!("`{name}` has no value");
            let error = Diagnostic::new(message, field.key, "nothing behind the `:`");
            self.report.error(error.with_help("write a value, or leave the key out"));
            return None;
        }
        Some(field)
    }

    /// Tells whether the mapping has a key, with or without a value.
    pub(super) fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.key.value == name)
    }

    /// Takes a key and reads its value.
    pub(super) fn read<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&'n Node, &str) -> Result<T, Diagnostic>,
    ) -> Option<T> {
        let field = self.take(name)?;
        self.report.check(read(field.value, name))
    }

    /// As [`Self::read`]; that the key is not there is an error, with what to write.
    pub(super) fn require<T>(
        &mut self,
        name: &'static str,
        help: &str,
        read: impl FnOnce(&'n Node, &str) -> Result<T, Diagnostic>,
    ) -> Option<T> {
        if !self.has(name) {
            self.known.push(name);
            let message = format!("{} has no `{name}`", self.what);
            let error = Diagnostic::new(message, self.span, format!("without `{name}`"));
            self.report.error(error.with_help(help));
        }
        self.read(name, read)
    }

    /// Takes a list and reads its items, leaving out those with errors.
    pub(super) fn items<T>(
        &mut self,
        name: &'static str,
        read: impl Fn(&'n Node, &str) -> Result<T, Diagnostic>,
    ) -> Vec<T> {
        let items = self.read(name, value::list).unwrap_or_default();
        items.iter().filter_map(|item| self.report.check(read(item, name))).collect()
    }

    /// Knows keys that are not read.
    pub(super) fn ignore(&mut self, names: &[&'static str]) {
        self.known.extend(names);
    }

    /// Warns of the keys that were not asked for.
    pub(super) fn finish(self) {
        let enough = |_: &&Entry| self.report.keeps_warnings();
        for entry in self.entries.iter().take_while(enough) {
            let key = entry.key.value.as_str();
            if self.known.contains(&key) {
                continue;
            }
            let message = format!("{} has no key {}", self.what, quote(key));
            let warning = Diagnostic::warning(message, entry.key.span, "nothing reads this");
            self.report.warning(warning.with_help(match nearest(key, &self.known) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("the keys here are {}", self.known.join(", ")),
            }));
        }
    }
}
