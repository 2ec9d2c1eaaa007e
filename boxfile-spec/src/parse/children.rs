//! Finds the declarations of a block, or of the top level, by name.

use std::cell::RefCell;

use crate::errors::DECLARATION_ERRORS;
use crate::form;
use crate::parse::{hints, names};
use crate::schema::{self, Count, Declaration, Kind};
use crate::syntax::tree::Node;
use diagnostics::suggest::{did_you_mean, nearest};
use diagnostics::{Diagnostic, Sink};
use safe_text::quote;

/// The greatest number of declarations of the same name, after the second one, that one error shows.
const MAX_REPEATS: usize = 8;

/// Names that other tools use, and the declarations of a Boxfile with the same meaning. Typing errors are found without
/// this list.
const SYNONYMS: [(&str, &str); 20] = [
    ("cmd", "args"),
    ("command", "args"),
    ("environment", "env"),
    ("working_dir", "workdir"),
    ("cwd", "workdir"),
    ("healthcheck", "health"),
    ("volumes", "volume"),
    ("ports", "publish"),
    ("expose", "publish"),
    ("mount", "share"),
    ("mounts", "share"),
    ("ulimits", "rlimits"),
    ("cap_add", "capabilities"),
    ("cap_drop", "capabilities"),
    ("resources", "limits"),
    ("name", "box"),
    ("copy", "file"),
    ("deny", "forbid"),
    ("mcpservers", "mcp"),
    ("mcp_servers", "mcp"),
];

/// The declarations of a block that is being read.
pub(super) struct Children<'n> {
    nodes: &'n [Node],
    known: &'static [&'static Declaration],
    sink: &'n Sink,
    /// The names of repeated declarations that are already reported.
    repeated: RefCell<Vec<&'static str>>,
}

impl<'n> Children<'n> {
    pub(super) const fn new(
        nodes: &'n [Node],
        known: &'static [&'static Declaration],
        sink: &'n Sink,
    ) -> Self {
        Self { nodes, known, sink, repeated: RefCell::new(Vec::new()) }
    }

    /// Returns the sink for errors in the block.
    pub(super) const fn sink(&self) -> &'n Sink {
        self.sink
    }

    /// Returns the first declaration of the name, if the block has one. A second one is an error, which is reported
    /// once.
    pub(super) fn one(&self, declaration: &Declaration) -> Option<&'n Node> {
        self.one_or(declaration, &format!("`{}` is declared twice", declaration.name))
    }

    /// As [`Self::one`]. `message` is the error if there is a second declaration.
    pub(super) fn one_or(&self, declaration: &Declaration, message: &str) -> Option<&'n Node> {
        let mut all = self.many(declaration);
        // Restores the order of the file, which merging with a base may have changed.
        all.sort_by_key(|node| node.name.span);
        let first = *all.first()?;
        if let [_, second, further @ ..] = all.as_slice()
            && self.is_news(declaration)
        {
            let error = Diagnostic::new(message, second.name.span, "declared again")
                .with_label(first.name.span, "declared first")
                .with_help("keep one of them and remove the others");
            let add =
                |error: Diagnostic, node: &&Node| error.with_label(node.name.span, "and again");
            self.sink.report(further.iter().take(MAX_REPEATS).fold(error, add));
        }
        Some(first)
    }

    /// Records that a declaration is repeated. Returns `true` at the first call for its name.
    fn is_news(&self, declaration: &Declaration) -> bool {
        let mut repeated = self.repeated.borrow_mut();
        let news = !repeated.contains(&declaration.name);
        repeated.push(declaration.name);
        news
    }

    /// Returns whether the block has `declaration`, or a declaration whose name may be a misspelling of it.
    pub(super) fn may_have(&self, declaration: &Declaration) -> bool {
        let name = declaration.name;
        self.nodes
            .iter()
            .any(|node| node.name.value == name || nearest(&node.name.value, &[name]).is_some())
    }

    /// Returns all declarations of the name.
    pub(super) fn many(&self, declaration: &Declaration) -> Vec<&'n Node> {
        debug_assert!(self.known.iter().any(|known| known.name == declaration.name));
        self.nodes.iter().filter(|node| node.name.value == declaration.name).collect()
    }

    /// Returns all declarations of the name, sorted by their first arguments. Reports two with the same first argument.
    pub(super) fn keyed(&self, declaration: &Declaration) -> Vec<&'n Node> {
        let mut nodes = self.many(declaration);
        names::check_unique(&nodes, declaration, self.sink);
        nodes.sort_by_key(|node| names::key(node));
        nodes
    }

    /// Reports unknown declarations, and required ones that are missing. `elsewhere` returns the help that names the
    /// right block of a misplaced declaration. A required declaration is not reported as missing if the name of an
    /// unknown one is probably a misspelling of it.
    pub(super) fn finish(
        &self,
        elsewhere: impl Fn(&Node) -> Option<String>,
        missing: impl Fn(&'static Declaration) -> Diagnostic,
    ) {
        let meant = self.finish_profile(elsewhere);
        // The missing declarations may be in the base that a misspelt `extends` names.
        if meant.contains(&schema::EXTENDS.name) {
            return;
        }
        for required in self.known.iter().filter(|known| known.count == Count::Required) {
            let there = self.nodes.iter().any(|node| node.name.value == required.name);
            if !there && !meant.contains(&required.name) {
                self.sink.report_missing(missing(required));
            }
        }
    }

    /// As [`Self::finish`], for a profile, in which no declaration is required. Returns the names that were probably
    /// meant by the names of unknown declarations.
    pub(super) fn finish_profile(
        &self,
        elsewhere: impl Fn(&Node) -> Option<String>,
    ) -> Vec<&'static str> {
        let names: Vec<&'static str> = self.known.iter().map(|known| known.name).collect();
        let mut meant = Vec::new();
        for node in self.nodes.iter().filter(|node| !names.contains(&node.name.value.as_str())) {
            if self.sink.is_full() {
                break;
            }
            let intended = synonym(node, &names).or_else(|| nearest(&node.name.value, &names));
            meant.extend(intended);
            if !node.broken {
                let (error, help) = match elsewhere(node) {
                    Some(place) => ("misplaced", Some(place)),
                    None => ("unknown", self.as_property(node)),
                };
                let help = help.unwrap_or_else(|| known(intended, &names));
                let error =
                    DECLARATION_ERRORS.about(error, &quote(&node.name.value), node.name.span);
                self.sink.report(error.with_help(help));
            }
        }
        meant
    }

    /// Returns the help for an unknown declaration that is a property of a known one, if its value fits the property.
    /// For example, `memory "1GiB"` should be `vm memory="1GiB"`, and `restart "always"` should be
    /// `autostart #true restart="always"`.
    fn as_property(&self, node: &Node) -> Option<String> {
        let [value] = node.args.as_slice() else { return None };
        self.known.iter().find_map(|declaration| {
            let prop = declaration.prop(&node.name.value)?;
            let value = hints::fitting(prop.kind, value)?;
            let written = form::prop(node.syntax, prop.name, &value);
            let written = match declaration.first.as_ref().map(|first| first.kind) {
                None => form::with_props(node.syntax, declaration.name, &written),
                Some(Kind::Bool) => form::switched_on(node.syntax, declaration.name, &written),
                Some(_) => return None,
            };
            Some(format!("write `{written}`"))
        })
    }
}

/// Returns the help for an unknown declaration: the name that was probably meant, or a list of all names.
fn known(intended: Option<&str>, names: &[&str]) -> String {
    match intended {
        Some(name) => did_you_mean(name),
        None => format!("the declarations here are `{}`", names.join("`, `")),
    }
}

fn synonym(node: &Node, names: &[&'static str]) -> Option<&'static str> {
    // A name may end with a colon, as in YAML.
    let name = node.name.value.trim_end_matches(':').to_ascii_lowercase();
    let (_, ours) = SYNONYMS.iter().find(|(theirs, _)| *theirs == name)?;
    names.contains(ours).then_some(*ours)
}
