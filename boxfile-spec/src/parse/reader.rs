//! Takes from a node what a declaration knows and reports all that is left over.

use crate::diagnostic::quote;
use crate::parse::children::Children;
use crate::sink::Sink;
use crate::suggest::nearest;
use crate::syntax::{Node, Prop, Value};
use crate::value::describe;
use crate::{Diagnostic, Span};

/// A node that is being read: arguments one after another, properties and children by name.
///
/// What was not asked for when [`Self::finish`] is called is an error. A node whose line could not
/// be read has neither arguments nor properties, and nothing more is said about it.
pub(super) struct Reader<'n> {
    node: &'n Node,
    /// The declaration written out, as a help for whoever misses a part of it.
    usage: &'static str,
    sink: &'n Sink,
    args: &'n [Value],
    known: Vec<&'static str>,
    any_prop: bool,
}

impl<'n> Reader<'n> {
    pub(super) const fn new(node: &'n Node, usage: &'static str, sink: &'n Sink) -> Self {
        Self { node, usage, sink, args: node.args.as_slice(), known: Vec::new(), any_prop: false }
    }

    /// Returns the place of the declaration's name.
    pub(super) const fn span(&self) -> Span {
        self.node.name.span
    }

    /// Returns the declaration's name.
    pub(super) fn name(&self) -> &'n str {
        &self.node.name.value
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

    /// Takes the next argument, if there is one.
    pub(super) fn optional_arg(&mut self) -> Option<&'n Value> {
        let (first, rest) = self.args.split_first()?;
        self.args = rest;
        Some(first)
    }

    /// Takes the next argument; `what` names it in the error that there is none.
    pub(super) fn arg(&mut self, what: &str) -> Option<&'n Value> {
        let arg = self.optional_arg();
        if arg.is_none() {
            self.report_missing(what);
        }
        arg
    }

    /// Takes all further arguments.
    pub(super) fn args(&mut self) -> &'n [Value] {
        std::mem::take(&mut self.args)
    }

    /// Takes a property, if it is there.
    pub(super) fn optional_prop(&mut self, name: &'static str) -> Option<&'n Value> {
        self.known.push(name);
        let mut found = self.node.props.iter().filter(|prop| prop.name.value == name);
        let first = found.next()?;
        for second in found {
            self.report(twice(first, second));
        }
        Some(&first.value)
    }

    /// Takes a property; that it is not there is an error.
    pub(super) fn prop(&mut self, name: &'static str) -> Option<&'n Value> {
        let value = self.optional_prop(name);
        if value.is_none() {
            self.report_missing(&format!("`{name}`"));
        }
        value
    }

    /// Takes all properties, whatever their names.
    pub(super) fn props(&mut self) -> &'n [Prop] {
        self.any_prop = true;
        &self.node.props
    }

    /// Returns the children for reading; they report for themselves what is left over.
    pub(super) fn children(&mut self) -> Children<'n> {
        let nodes = self.node.block.as_ref().map_or(&[][..], |block| &block.nodes);
        Children::new(nodes, self.sink)
    }

    /// Reports what was not asked for, a block included.
    pub(super) fn finish(self) {
        if let Some(block) = &self.node.block {
            let message = format!("`{}` has no block", self.name());
            let error = Diagnostic::new(message, block.open, "opened here");
            self.sink.report(error.with_help(format!("write {}", self.usage)));
        }
        self.finish_line();
    }

    /// Reports the arguments and properties that were not asked for.
    pub(super) fn finish_line(&self) {
        for arg in self.args {
            let message = format!("unexpected argument: {}", describe(&arg.kdl));
            let error = Diagnostic::new(message, arg.span, "one too many");
            self.report(error.with_help(format!("write {}", self.usage)));
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
        error.with_help(match nearest(name, &self.known) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("write {}", self.usage),
        })
    }

    /// Reports that a part of the declaration is missing.
    pub(super) fn report_missing(&self, what: &str) {
        let message = format!("`{}` needs {what}", self.name());
        let error = Diagnostic::new(message, self.span(), format!("without {what}"));
        self.report(error.with_help(format!("write {}", self.usage)));
    }
}

/// The error that a property is written twice.
pub(super) fn twice(first: &Prop, second: &Prop) -> Diagnostic {
    let message = format!("{} is given twice", quote(&second.name.value));
    Diagnostic::new(message, second.name.span, "given again")
        .with_label(first.name.span, "given first")
        .with_help("remove one of them")
}
