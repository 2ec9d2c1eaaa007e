//! Takes the declarations of a block, or of the file, by their names.

use crate::Diagnostic;
use crate::diagnostic::quote;
use crate::sink::Sink;
use crate::suggest::nearest;
use crate::syntax::Node;

/// How many further declarations of the same name one error shows.
const MOST_REPEATS: usize = 8;

/// The declarations of a block that are being read.
///
/// Those that were not asked for when [`Self::finish`] is called are errors.
pub(super) struct Children<'n> {
    nodes: &'n [Node],
    sink: &'n Sink,
    known: Vec<&'static str>,
}

impl<'n> Children<'n> {
    pub(super) const fn new(nodes: &'n [Node], sink: &'n Sink) -> Self {
        Self { nodes, sink, known: Vec::new() }
    }

    /// Takes the declaration of a name, if there is one; a second is an error.
    pub(super) fn one(&mut self, name: &'static str) -> Option<&'n Node> {
        self.one_or(name, &format!("`{name}` is declared twice"))
    }

    /// As [`Self::one`], with the message for a second.
    pub(super) fn one_or(&mut self, name: &'static str, message: &str) -> Option<&'n Node> {
        let all = self.many(name);
        let first = *all.first()?;
        if let [_, second, further @ ..] = all.as_slice() {
            let error = Diagnostic::new(message, second.name.span, "declared again")
                .with_label(first.name.span, "declared first")
                .with_help("keep one of them and remove the others");
            let add =
                |error: Diagnostic, node: &&Node| error.with_label(node.name.span, "and again");
            self.sink.report(further.iter().take(MOST_REPEATS).fold(error, add));
        }
        Some(first)
    }

    /// Takes all declarations of a name.
    pub(super) fn many(&mut self, name: &'static str) -> Vec<&'n Node> {
        self.known.push(name);
        self.nodes.iter().filter(|node| node.name.value == name).collect()
    }

    /// Reports every declaration of a name as misplaced, for the reason given.
    pub(super) fn refuse(&mut self, name: &'static str, message: &str, help: &str) {
        for node in self.many(name) {
            let error = Diagnostic::new(message, node.name.span, "not allowed here");
            self.sink.report(error.with_help(help));
        }
    }

    /// Reports what was not asked for; `elsewhere` says where a name belongs that this block does
    /// not know. Returns the names that were probably meant, which are not missing then.
    pub(super) fn finish(self, elsewhere: impl Fn(&str) -> Option<String>) -> Vec<&'static str> {
        let mut misspelt = Vec::new();
        for node in self.nodes.iter().filter(|node| !node.broken) {
            let name = node.name.value.as_str();
            if self.known.contains(&name) {
                continue;
            }
            let message = format!("unknown declaration {}", quote(name));
            let error = Diagnostic::new(message, node.name.span, "no such declaration here");
            let meant = nearest(name, &self.known);
            misspelt.extend(meant);
            let meant = meant.map(|meant| format!("did you mean `{meant}`?"));
            let help = elsewhere(name).or(meant);
            self.sink.report(error.with_help(help.unwrap_or_else(|| self.list())));
        }
        misspelt
    }

    fn list(&self) -> String {
        let known: Vec<String> = self.known.iter().map(|name| format!("`{name}`")).collect();
        format!("the declarations here are {}", known.join(", "))
    }
}
