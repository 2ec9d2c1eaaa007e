//! Reads the arguments, properties and children of one declaration, and reports those that the declaration does not
//! take.

use crate::errors::DECLARATION_ERRORS;
use crate::form;
use crate::parse::children::Children;
use crate::parse::{hints, names};
use crate::schema::{self, Declaration, Kind, Merge, Property};
use crate::syntax::tree::{Data, Node, Prop, Value};
use crate::value::Read;
use diagnostics::suggest::{did_you_mean, nearest};
use diagnostics::{Diagnostic, Sink, Span, Syntax};
use safe_text::quote;

/// A node that is being read: arguments one after another, properties and children by name.
///
/// `arg`, `prop`, `optional_prop` and `props` take a value as it was written. `first`, `value`, `optional`, `rest` and
/// `all` read a value of the kind in the schema.
///
/// Any part that was not taken before [`Self::finish`] is an error. A node whose line could not be read has neither
/// arguments nor properties, and no further error about it is reported.
pub(super) struct Reader<'n> {
    node: &'n Node,
    declaration: &'static Declaration,
    sink: &'n Sink,
    args: &'n [Value],
    known: Vec<&'static str>,
    /// The properties that are not allowed together with the first argument: see [`Self::refuse`].
    refused: Vec<&'static str>,
    any_prop: bool,
    /// The required parts that are missing.
    missing: Vec<String>,
}

/// Declarations that have a meaning without any value: `args` alone means no arguments, `logs` alone records
/// everything, and `ssh-agent` alone is for the agent.
const MEANINGFUL_ALONE: [&str; 3] = [schema::ARGS.name, schema::LOGS.name, schema::SSH_AGENT.name];

impl<'n> Reader<'n> {
    pub(super) fn new(node: &'n Node, declaration: &'static Declaration, sink: &'n Sink) -> Self {
        let (known, refused, missing) = (Vec::new(), Vec::new(), Vec::new());
        let args = &node.args;
        Self { node, declaration, sink, args, known, refused, any_prop: false, missing }
    }

    /// Reads a declaration, and reports the parts that `read` does not take.
    pub(super) fn whole<T>(
        node: &'n Node,
        declaration: &'static Declaration,
        sink: &'n Sink,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let mut reader = Self::new(node, declaration, sink);
        let value = read(&mut reader);
        reader.finish();
        value
    }

    /// Reads the declaration with `read`, if the block has it.
    pub(super) fn sole<T>(
        children: &Children<'n>,
        declaration: &'static Declaration,
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        Self::whole(children.one(declaration)?, declaration, children.sink(), read)
    }

    /// Reads all declarations of the name in a block, sorted by their first arguments, which must differ.
    pub(super) fn keyed<T>(
        children: &Children<'n>,
        declaration: &'static Declaration,
        read: impl Fn(&mut Self) -> Option<T>,
    ) -> Vec<T> {
        let nodes = children.keyed(declaration).into_iter();
        nodes.filter_map(|it| Self::whole(it, declaration, children.sink(), &read)).collect()
    }

    /// Returns the span of the declaration's name.
    pub(super) const fn span(&self) -> Span {
        self.node.name.span
    }

    /// Returns the span of the next argument, or of the declaration's name after the last argument.
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

    /// Returns an example of the declaration, as a help for a missing part.
    pub(super) fn usage(&self) -> String {
        form::imperative("for example", &self.declaration.usage(self.syntax()))
    }

    /// Reports an error, unless the node's line could not be read.
    pub(super) fn report(&self, error: Diagnostic) {
        if !self.node.broken {
            self.sink.report(error);
        }
    }

    /// Returns the value of a check, or reports its error.
    pub(super) fn check<T>(&self, result: Result<T, Diagnostic>) -> Option<T> {
        self.sink.check(result)
    }

    /// Reads a value of a kind.
    pub(super) fn read<T: Read>(&self, value: Option<&Value>, name: &str, kind: Kind) -> Option<T> {
        self.check(T::read(value?, name, kind))
    }

    /// Reads the first argument, which is required.
    pub(super) fn first<T: Read>(&mut self) -> Option<T> {
        let value = self.arg();
        self.read_first(value)
    }

    /// Reads a value that was taken as the first argument.
    pub(super) fn read_first<T: Read>(&self, value: Option<&Value>) -> Option<T> {
        let kind = self.declaration.first.as_ref().map_or(Kind::Text, |first| first.kind);
        self.read(value, self.name(), kind)
    }

    /// Reads a property. Returns the default if the property is missing or wrong. Reports a missing property that the
    /// schema requires.
    pub(super) fn value<T: Read>(&mut self, name: &'static str) -> Option<T> {
        let prop = self.declaration.prop(name)?;
        let value = if prop.required { self.prop(name) } else { self.optional_prop(name) };
        let read = self.read(value, name, prop.kind);
        read.or_else(|| self.default(prop)).or_else(T::absent)
    }

    /// Reads a property that may be left out.
    pub(super) fn optional<T: Read>(&mut self, name: &'static str) -> Option<T> {
        self.value::<Option<T>>(name).flatten()
    }

    /// Reads the default of a property as if it were written.
    fn default<T: Read>(&self, prop: &Property) -> Option<T> {
        let schema::Default::Always(default) = prop.default else { return None };
        let value = Value { data: default.data(), span: self.span(), syntax: self.syntax() };
        T::read(&value, prop.name, prop.kind).ok()
    }

    /// Takes the next argument, if there is one.
    pub(super) fn optional_arg(&mut self) -> Option<&'n Value> {
        let (first, rest) = self.args.split_first()?;
        self.args = rest;
        Some(first)
    }

    /// Takes the first argument, which is required.
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

    /// Reads all further arguments; returns `None` if one of them is wrong.
    pub(super) fn rest<T: Read>(&mut self) -> Option<Vec<T>> {
        let kind = self.declaration.rest.as_ref().map_or(Kind::Text, |rest| rest.kind);
        // Reads all arguments before `collect` stops at a wrong one, so that each reports its error.
        let values = self.args().iter();
        let read: Vec<Option<T>> =
            values.map(|value| self.read(Some(value), self.name(), kind)).collect();
        read.into_iter().collect()
    }

    /// Reads all arguments, at least one of which is required; returns `None` if one of them is wrong.
    pub(super) fn all<T: Read>(&mut self) -> Option<Vec<T>> {
        let first = self.first();
        let rest = self.rest();
        let mut all = vec![first?];
        all.extend(rest?);
        Some(all)
    }

    /// Takes a property, if the node has it.
    pub(super) fn optional_prop(&mut self, name: &'static str) -> Option<&'n Value> {
        let again = self.asked_for(name);
        let mut found = self.node.props.iter().filter(|prop| prop.name.value == name);
        let first = found.next()?;
        for second in found.filter(|_| !again) {
            self.report(twice(first, second));
        }
        Some(&first.value)
    }

    /// Returns the span of a property's value, or of the declaration's name.
    pub(super) fn value_span(&self, name: &str) -> Span {
        let prop = self.node.props.iter().find(|prop| prop.name.value == name);
        prop.map_or(self.span(), |prop| prop.value.span)
    }

    /// Records that a property was taken, and returns whether it had been taken before.
    fn asked_for(&mut self, name: &'static str) -> bool {
        debug_assert!(self.declaration.prop(name).is_some(), "{name} is not in the schema");
        let again = self.known.contains(&name);
        self.known.push(name);
        again
    }

    /// Reports the properties `names`, which are not allowed together with the first argument. For example, `health
    /// "tcp"` takes no `path`.
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

    /// Names the first argument, which decides which properties are allowed, for example `the kind "tcp"`.
    fn first_shown(&self) -> String {
        match (&self.declaration.first, self.node.args.first().map(|value| &value.data)) {
            (Some(first), Some(Data::Text(text))) => format!("the {} {}", first.name, quote(text)),
            _ => format!("the rest of `{}`", self.name()),
        }
    }

    /// Takes a property, which is required.
    pub(super) fn prop(&mut self, name: &'static str) -> Option<&'n Value> {
        let value = self.optional_prop(name);
        if value.is_none() {
            self.report_missing(&format!("`{name}`"));
        }
        value
    }

    /// Returns the kind of a property.
    pub(super) fn kind(&self, name: &str) -> Kind {
        self.declaration.prop(name).map_or(Kind::Text, |prop| prop.kind)
    }

    /// Takes all properties, whatever their names.
    pub(super) fn props(&mut self) -> &'n [Prop] {
        self.any_prop = true;
        &self.node.props
    }

    /// Returns the children. Their caller must end with [`Children::finish`], which reports unknown declarations.
    pub(super) fn children(&self) -> Children<'n> {
        Children::new(self.node.children(), self.declaration.children, self.sink)
    }

    /// Reports the parts that were not taken, including a block.
    pub(super) fn finish(self) {
        if let Some(block) = &self.node.block {
            let error = DECLARATION_ERRORS.about("no-block", self.name(), block.open);
            self.sink.report(error.with_help(self.usage()));
        }
        self.finish_line();
    }

    /// Reports the parts that were not taken, and the declarations that the block lacks.
    pub(super) fn finish_block(&self, children: &Children<'_>) {
        children.finish(|_| None, |declaration| names::missing(declaration, self.node));
        self.finish_line();
    }

    /// Reports the arguments and properties that were not taken.
    pub(super) fn finish_line(&self) {
        debug_assert!(
            self.any_prop || self.declaration.props.iter().all(|it| self.known.contains(&it.name)),
            "a property of `{}` is in the schema and not read",
            self.name()
        );
        if self.is_mute() {
            let error = DECLARATION_ERRORS.about("nothing-said", self.name(), self.span());
            self.report(error.with_help(self.usage()));
        }
        let argument = |arg| hints::argument(self.node, self.declaration, &self.refused, arg);
        match (self.args, hints::joined(self.node, self.declaration)) {
            ([first, ..], Some(written)) => {
                self.report(argument(first).with_help(format!("write `{written}`")));
            }
            (args, _) => args.iter().for_each(|arg| self.report(argument(arg))),
        }
        let unknown = |prop: &&Prop| !self.known.iter().any(|known| *known == prop.name.value);
        for prop in self.node.props.iter().filter(|_| !self.any_prop).filter(unknown) {
            self.report(self.unknown_prop(prop));
        }
    }

    fn unknown_prop(&self, prop: &Prop) -> Diagnostic {
        let name = &prop.name.value;
        if let Some(child) = self.declaration.child(name) {
            return self.child_as_prop(child, prop);
        }
        let message = format!("`{}` has no property {}", self.name(), quote(name));
        let error = Diagnostic::new(message, prop.name.span, "no such property");
        let names = || hints::properties(self.declaration, &self.refused);
        error.with_help(nearest(name, &self.known).map_or_else(names, did_you_mean))
    }

    /// Returns the error of a declaration that is written as a property of the one around it: `agent port=80`.
    fn child_as_prop(&self, child: &Declaration, prop: &Prop) -> Diagnostic {
        let (block, syntax) = (self.name(), self.syntax());
        let message = format!("`{}` is a declaration inside `{block}`, not a property", child.name);
        let value = child.first.as_ref().and_then(|it| hints::fitting(it.kind, &prop.value));
        let help = value.map_or_else(
            || form::imperative("for example", &child.usage(syntax)),
            |value| format!("write `{}`", form::with_child(syntax, block, child.name, &value)),
        );
        Diagnostic::new(message, prop.name.span, "not a property").with_help(help)
    }

    /// Records a missing part of the declaration. All missing parts are one error.
    pub(super) fn report_missing(&mut self, what: &str) {
        self.missing.push(what.to_owned());
    }

    /// Reports a missing part, unless it may be in text that cannot be read.
    pub(super) fn report_missing_error(&self, error: Diagnostic) {
        if !self.node.broken {
            self.sink.report_missing(error);
        }
    }

    /// Returns whether the declaration is written without any value. The schema allows this, but such a declaration has
    /// no effect.
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

/// Makes a struct from a declaration; `None` if a required part is missing or wrong.
///
/// A field `guest` is read from the property `guest`, and `scope: "component"` from the property `component`. A field
/// `name = expression` is the [`Option`] of the expression:
///
/// ```text
/// read_fields!(reader => SharePlan { name = reader.first(), guest, access, scope: "component", host })
/// ```
///
/// expands to this. The types of the fields decide what a value becomes (see [`Read`]):
///
/// ```text
/// let name = reader.first();
/// let guest = reader.value("guest");
/// let access = reader.value("access");
/// let scope = reader.value("component");
/// let host = reader.value("host");
/// Some(SharePlan { name: name?, guest: guest?, access: access?, scope: scope?, host: host? })
/// ```
///
/// So all parts are read before `?` returns because one is missing, and each reports its errors.
macro_rules! read_fields {
    (@field $reader:ident $field:ident) => { $reader.value(stringify!($field)) };
    (@field $reader:ident $field:ident : $name:literal) => { $reader.value($name) };
    (@field $reader:ident $field:ident = $read:expr) => { $read };
    ($reader:ident => $type:ident { $($field:ident $(: $name:literal)? $(= $read:expr)?),+ }) => {{
        $(let $field = read_fields!(@field $reader $field $(: $name)? $(= $read)?);)+
        Some($type { $($field: $field?),+ })
    }};
}

pub(super) use read_fields;

impl Drop for Reader<'_> {
    /// Reports the missing parts, however the reading ended.
    fn drop(&mut self) {
        let Some((last, rest)) = self.missing.split_last() else { return };
        let what =
            if rest.is_empty() { last.clone() } else { format!("{} and {last}", rest.join(", ")) };
        let message = format!("`{}` needs {what}", self.name());
        let error = Diagnostic::new(message, self.span(), format!("without {what}"));
        let error = error.with_help(self.usage());
        // A declaration that replaces the base's declaration takes no parts from it.
        match self.declaration.merge {
            Merge::Replace => self.report(error),
            Merge::Combine => self.report_missing_error(error),
        }
    }
}

/// Returns the error of a property that is written twice.
pub(super) fn twice(one: &Prop, other: &Prop) -> Diagnostic {
    let (first, again) = (one.name.span.min(other.name.span), one.name.span.max(other.name.span));
    Diagnostic::twice(&one.name.value, first, again)
}
