//! Reads the arguments, properties and children that a declaration has from a node, and reports all others.

use serde::de::DeserializeOwned;

use crate::form;
use crate::parse::children::Children;
use crate::parse::{instead, names};
use crate::schema::{self, Declaration, Kind, Merge};
use crate::syntax::tree::{Data, Node, Prop, Value};
use crate::value;
use diagnostics::Sink;
use diagnostics::suggest::{did_you_mean, nearest};
use diagnostics::{Diagnostic, Span, Syntax};
use safe_text::quote;

/// A node that is being read: arguments one after another, properties and children by name.
///
/// Anything that was not asked for when [`Self::finish`] is called is an error. A node whose line
/// could not be read has neither arguments nor properties, and nothing more is said about it.
pub(super) struct Reader<'n> {
    node: &'n Node,
    declaration: &'static Declaration,
    sink: &'n Sink,
    args: &'n [Value],
    known: Vec<&'static str>,
    /// The properties that do not go with what else it says.
    refused: Vec<&'static str>,
    any_prop: bool,
    /// The parts that the declaration needs and does not have.
    missing: Vec<String>,
}

/// Declarations of one value each that say something even without one: no arguments at all, and
/// everything is recorded.
const MEANINGFUL_ALONE: [&str; 2] = [schema::ARGS.name, schema::LOGS.name];

impl<'n> Reader<'n> {
    pub(super) fn new(node: &'n Node, declaration: &'static Declaration, sink: &'n Sink) -> Self {
        let (known, refused, missing) = (Vec::new(), Vec::new(), Vec::new());
        let args = &node.args;
        Self { node, declaration, sink, args, known, refused, any_prop: false, missing }
    }

    /// Reads a declaration of a block, if it is there, and reports what `read` does not ask for.
    pub(super) fn sole<T>(
        children: &Children<'n>,
        declaration: &'static Declaration,
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let mut reader = Self::new(children.one(declaration)?, declaration, children.sink());
        let value = read(&mut reader);
        reader.finish();
        value
    }

    /// Returns the place of the declaration's name.
    pub(super) const fn span(&self) -> Span {
        self.node.name.span
    }

    /// Returns the place of the next argument, or that of the declaration's name after the last one.
    pub(super) fn next_span(&self) -> Span {
        self.args.first().map_or(self.span(), |value| value.span)
    }

    /// Returns the declaration's name.
    pub(super) const fn name(&self) -> &'static str {
        self.declaration.name
    }

    /// Returns the syntax that the node is written in.
    pub(super) const fn syntax(&self) -> Syntax {
        self.node.syntax
    }

    /// Returns an example of the declaration, as a help for whoever misses a part of it.
    pub(super) fn usage(&self) -> String {
        form::imperative("for example", &self.declaration.usage(self.syntax()))
    }

    /// Reports an error, unless the node's line could not be read.
    pub(super) fn report(&self, error: Diagnostic) {
        if !self.node.broken {
            self.sink.report(error);
        }
    }

    /// Reads a value with one of the functions of [`crate::value`].
    pub(super) fn read<'v, T>(
        &self,
        value: Option<&'v Value>,
        name: &str,
        read: impl FnOnce(&'v Value, &str) -> Result<T, Diagnostic>,
    ) -> Option<T> {
        self.sink.check(read(value?, name))
    }

    /// Reads the first argument; that it is not there is an error.
    pub(super) fn read_arg<T>(
        &mut self,
        read: impl FnOnce(&'n Value, &str) -> Result<T, Diagnostic>,
    ) -> Option<T> {
        let value = self.arg();
        self.read(value, self.name(), read)
    }

    /// Reads a property; that it is not there is an error.
    pub(super) fn read_prop<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&'n Value, &str) -> Result<T, Diagnostic>,
    ) -> Option<T> {
        let value = self.prop(name);
        self.read(value, name, read)
    }

    /// Reads a property, if it is there.
    pub(super) fn read_optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&'n Value, &str) -> Result<T, Diagnostic>,
    ) -> Option<T> {
        let value = self.optional_prop(name);
        self.read(value, name, read)
    }

    /// Takes the next argument, if there is one.
    pub(super) fn optional_arg(&mut self) -> Option<&'n Value> {
        let (first, rest) = self.args.split_first()?;
        self.args = rest;
        Some(first)
    }

    /// Takes the first argument; that it is not there is an error.
    pub(super) fn arg(&mut self) -> Option<&'n Value> {
        let arg = self.optional_arg();
        if arg.is_none() {
            let what = self.declaration.first.as_ref().map_or("argument", |first| first.name);
            let article = if what.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
            self.report_missing(&format!("{article} {what}"));
        }
        arg
    }

    /// Takes all further arguments.
    pub(super) fn args(&mut self) -> &'n [Value] {
        std::mem::take(&mut self.args)
    }

    /// Reads all further arguments; nothing if one of them is wrong.
    pub(super) fn read_args<T>(
        &mut self,
        read: impl Fn(&'n Value, &str) -> Result<T, Diagnostic>,
    ) -> Option<Vec<T>> {
        let (values, name) = (self.args(), self.name());
        // All of them are read before the first failure counts: each reports for itself.
        let read: Vec<Option<T>> =
            values.iter().map(|value| self.read(Some(value), name, &read)).collect();
        read.into_iter().collect()
    }

    /// Reads all arguments, of which one at least must be there; nothing if one of them is wrong.
    pub(super) fn read_some<T>(
        &mut self,
        read: impl Fn(&'n Value, &str) -> Result<T, Diagnostic>,
    ) -> Option<Vec<T>> {
        let first = self.read_arg(&read);
        let rest = self.read_args(read);
        let mut all = vec![first?];
        all.extend(rest?);
        Some(all)
    }

    /// Takes a property, if it is there.
    pub(super) fn optional_prop(&mut self, name: &'static str) -> Option<&'n Value> {
        let again = self.asked_for(name);
        let mut found = self.node.props.iter().filter(|prop| prop.name.value == name);
        let first = found.next()?;
        for second in found.filter(|_| !again) {
            self.report(twice(first, second));
        }
        Some(&first.value)
    }

    /// Notes that a property was asked for, and returns whether it was before.
    fn asked_for(&mut self, name: &'static str) -> bool {
        debug_assert!(self.declaration.prop(name).is_some(), "{name} is not in the schema");
        let again = self.known.contains(&name);
        self.known.push(name);
        again
    }

    /// Refuses properties that the declaration has, but not together with what else it says.
    pub(super) fn refuse(&mut self, names: &[&'static str]) {
        for name in names {
            self.asked_for(name);
            self.refused.push(name);
            for prop in self.node.props.iter().filter(|prop| prop.name.value == *name) {
                let message = format!("`{name}` is not allowed with {}", self.first_shown());
                let error = Diagnostic::new(message, prop.name.span, "has no effect here");
                self.report(error.with_help(format!("remove `{name}`")));
            }
        }
    }

    /// Names the first argument, which decides what else there may be: the kind `tcp`.
    fn first_shown(&self) -> String {
        match (&self.declaration.first, self.node.args.first().map(|value| &value.data)) {
            (Some(first), Some(Data::Text(text))) => format!("the {} {}", first.name, quote(text)),
            _ => format!("the rest of `{}`", self.name()),
        }
    }

    /// Takes a property; that it is not there is an error.
    pub(super) fn prop(&mut self, name: &'static str) -> Option<&'n Value> {
        let value = self.optional_prop(name);
        if value.is_none() {
            self.report_missing(&format!("`{name}`"));
        }
        value
    }

    /// Takes a property and reads it as what the schema says of numbers: a number in its range.
    pub(super) fn integer<T: TryFrom<u64>>(&mut self, name: &'static str) -> Option<T> {
        let kind = self.kind(name);
        let number = self.read_optional(name, |value, name| value::integer(value, name, kind))?;
        T::try_from(number).ok()
    }

    /// Takes a property that is a size in the range of the schema, in bytes.
    pub(super) fn size(&mut self, name: &'static str) -> Option<u64> {
        let kind = self.kind(name);
        self.read_optional(name, |value, name| value::size_within(value, name, kind))
    }

    /// Takes a property that is one of the words of the schema.
    pub(super) fn choice<T: DeserializeOwned>(&mut self, name: &'static str) -> Option<T> {
        let kind = self.kind(name);
        self.read_optional(name, |value, name| value::choice(value, name, kind))
    }

    /// Reads an argument as one of the words of the schema.
    pub(super) fn choice_arg<T: DeserializeOwned>(&mut self) -> Option<T> {
        let kind = self.first_kind();
        self.read_arg(|value, name| value::choice(value, name, kind))
    }

    /// Returns what a property must be.
    pub(super) fn kind(&self, name: &str) -> Kind {
        self.declaration.prop(name).map_or(Kind::Text, |prop| prop.kind)
    }

    /// Returns what the first argument must be.
    pub(super) fn first_kind(&self) -> Kind {
        self.declaration.first.as_ref().map_or(Kind::Text, |first| first.kind)
    }

    /// Takes all properties, whatever their names.
    pub(super) fn props(&mut self) -> &'n [Prop] {
        self.any_prop = true;
        &self.node.props
    }

    /// Returns the children for reading; they report for themselves what is left over.
    pub(super) fn children(&self) -> Children<'n> {
        Children::new(self.node.children(), self.declaration.children, self.sink)
    }

    /// Reports what was not asked for, a block included.
    pub(super) fn finish(self) {
        if let Some(block) = &self.node.block {
            let message = format!("`{}` takes no block", self.name());
            let error = Diagnostic::new(message, block.open, "opened here");
            self.sink.report(error.with_help(self.usage()));
        }
        self.finish_line();
    }

    /// Reports what was not asked for, and what the block lacks.
    pub(super) fn finish_block(&self, children: &Children<'_>) {
        children.finish(|_| None, |declaration| names::missing(declaration, self.node));
        self.finish_line();
    }

    /// Reports the arguments and properties that were not asked for.
    pub(super) fn finish_line(&self) {
        debug_assert!(
            self.any_prop || self.declaration.props.iter().all(|it| self.known.contains(&it.name)),
            "a property of `{}` is in the schema and not read",
            self.name()
        );
        if self.is_mute() {
            let message = format!("`{}` is empty", self.name());
            let error = Diagnostic::new(message, self.span(), "nothing is given");
            self.report(error.with_help(self.usage()));
        }
        for arg in self.args {
            self.report(instead::argument(self.node, self.declaration, &self.refused, arg));
        }
        let unknown = |prop: &&Prop| !self.known.iter().any(|known| *known == prop.name.value);
        for prop in self.node.props.iter().filter(|_| !self.any_prop).filter(unknown) {
            self.report(self.unknown_prop(prop));
        }
    }

    fn unknown_prop(&self, prop: &Prop) -> Diagnostic {
        let name = &prop.name.value;
        let message = format!("`{}` has no property {}", self.name(), quote(name));
        let error = Diagnostic::new(message, prop.name.span, "no such property");
        let names = || instead::properties(self.declaration, &self.refused);
        error.with_help(nearest(name, &self.known).map_or_else(names, did_you_mean))
    }

    /// Notes that a part of the declaration is missing; all of them are one error.
    pub(super) fn report_missing(&mut self, what: &str) {
        self.missing.push(what.to_owned());
    }

    /// As [`Self::report_missing`], in words of one's own.
    pub(super) fn report_missing_as(&self, message: &str, label: &str, help: &str) {
        let error = Diagnostic::new(message, self.span(), label);
        self.report_missing_error(error.with_help(help));
    }

    /// Reports the error that something is missing, unless it may be in what cannot be read.
    pub(super) fn report_missing_error(&self, error: Diagnostic) {
        if !self.node.broken {
            self.sink.report_missing(error);
        }
    }

    /// Returns whether the declaration is there and says nothing, though nothing of it is required.
    fn is_mute(&self) -> bool {
        let (node, declaration) = (self.node, self.declaration);
        node.args.is_empty()
            && node.props.is_empty()
            && node.block.is_none()
            && declaration.first.is_none()
            && declaration.variables.is_none()
            && declaration.children.is_empty()
            && !declaration.props.iter().any(|prop| prop.required)
            && !MEANINGFUL_ALONE.contains(&declaration.name)
    }
}

impl Drop for Reader<'_> {
    /// Reports what is missing, wherever the reading ended.
    fn drop(&mut self) {
        let Some((last, rest)) = self.missing.split_last() else { return };
        let what =
            if rest.is_empty() { last.clone() } else { format!("{} and {last}", rest.join(", ")) };
        let message = format!("`{}` needs {what}", self.name());
        let error = Diagnostic::new(message, self.span(), format!("without {what}"));
        let error = error.with_help(self.usage());
        // What replaces that of a base takes nothing from it.
        match self.declaration.merge {
            Merge::Replace => self.report(error),
            Merge::Combine => self.report_missing_error(error),
        }
    }
}

/// The error that a property is written twice.
pub(super) fn twice(one: &Prop, other: &Prop) -> Diagnostic {
    let (first, again) = (one.name.span.min(other.name.span), one.name.span.max(other.name.span));
    Diagnostic::twice(&one.name.value, first, again)
}
