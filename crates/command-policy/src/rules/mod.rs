//! The built-in rules, as data.

mod ask;
mod forbidden;
mod table;

use crate::Decision;
use crate::call::Call;
use crate::path::Path;

pub(crate) use ask::edits_in_place;
pub(crate) use table::RULES;

/// A built-in rule.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The name, such as `recursive-delete-root`.
    pub name: &'static str,
    /// The decision on a command that the rule matches.
    pub decision: Decision,
    /// What of it runs without asking if the preset is `development`.
    pub relaxed: Relaxed,
    /// The commands that it matches, for documents.
    pub commands: &'static str,
    /// The reason for the decision, as a clause for a person.
    pub reason: &'static str,
    pub(crate) matcher: Matcher,
}

/// What runs without asking if the preset is `development`, although a rule asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relaxed {
    /// Nothing.
    No,
    /// All commands of the rule.
    Yes,
    /// The commands of git that only read from another repository: `fetch`, `pull` and `clone`.
    Reading,
}

/// How a rule finds its commands.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Matcher {
    /// By the program.
    Programs(&'static [&'static str]),
    /// By the program and its subcommand.
    Subcommands(&'static [&'static str], &'static [&'static str]),
    /// By the program and its arguments.
    Call(fn(Call<'_>) -> Found),
    /// By a file that is written.
    Target(fn(&Path, How) -> Found),
    /// By more than one command, or by what is no command.
    Structure,
}

/// Whether a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// It does not match.
    No,
    /// It can match: that depends on what is known only when the command runs, or on how the command is meant. A rule that
    /// forbids then asks.
    Perhaps,
    /// It matches.
    Yes,
}

/// How a command writes a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// With content of the command line or of a pipe.
    Direct,
    /// By copying, moving or deleting.
    Indirect,
}

impl From<bool> for Found {
    fn from(is_found: bool) -> Self {
        if is_found { Self::Yes } else { Self::No }
    }
}

impl Rule {
    /// Returns whether the rule matches a call. Rules about files match none.
    pub(crate) fn find(&self, call: Call<'_>) -> Found {
        match self.matcher {
            Matcher::Programs(names) => call.is(names).into(),
            Matcher::Subcommands(names, verbs) => {
                (call.is(names) && verbs.contains(&call.verb())).into()
            }
            Matcher::Call(matches) => matches(call),
            Matcher::Target(_) | Matcher::Structure => Found::No,
        }
    }
}

/// Returns the built-in rules: first those that forbid, then those that ask, and then those that allow.
pub fn rules() -> &'static [Rule] {
    &RULES
}

/// Returns the rule of this name.
pub(crate) fn named(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|it| it.name == name)
}
