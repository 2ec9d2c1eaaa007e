//! Checks that paths stay in the checkout.
//!
//! Files of the checkout are under version control together with the Boxfile. Files outside of it
//! differ from host to host, and may be private.

use crate::{Agent, Binary, Business, Skill, SkillsDir};
use diagnostics::{Diagnostic, Sink, Spanned};

const COPY: &str =
    "copy it into the Boxfile's directory or below, and write its path from there, without `..`";

/// The directories that belong to the checkout of a Boxfile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// The number of directories above the Boxfile's directory that belong to the checkout. `None`
    /// if there is no checkout: then not even the Boxfile's directory belongs to one.
    pub up: Option<usize>,
    /// Why the checkout does not have more directories, and how to change that. The text is part of
    /// a diagnostic's help, and may be empty.
    pub reason: String,
}

/// The checkout is only the Boxfile's directory.
impl Default for Reach {
    fn default() -> Self {
        Self { up: Some(0), reason: String::new() }
    }
}

/// Reports every path that leads out of the checkout.
#[derive(Clone, Copy)]
pub(super) struct Checkout<'s> {
    pub(super) reach: &'s Reach,
    pub(super) sink: &'s Sink,
}

impl Checkout<'_> {
    pub(super) fn components(self, agent: Option<&Agent>, business: Option<&Business>) {
        if let Some(Binary::Local { path, .. }) = agent.and_then(|agent| agent.binary.as_ref()) {
            self.report("the agent's program", path);
        }
        let agent = agent.map(|agent| &agent.component);
        let business = business.map(|business| &business.component);
        for component in agent.into_iter().chain(business) {
            component.env_files.iter().for_each(|it| self.report("a file of variables", it));
            component.files.iter().for_each(|it| self.report("a file of the box", &it.path));
        }
    }

    pub(super) fn skills(self, directory: Option<&SkillsDir>, skills: &[Skill]) {
        directory.iter().for_each(|it| self.report("a directory of skills", &it.dir));
        skills.iter().for_each(|skill| self.report("a skill", &skill.path));
    }

    fn report(&self, what: &str, path: &Spanned<String>) {
        self.sink.check(Self::check(self.reach, what, path, COPY));
    }

    /// Checks that a path stays in the checkout, by its text alone. `what` names the path in the
    /// message.
    ///
    /// The path may begin with as many `..` as the checkout has directories above the Boxfile. Any
    /// other `..` is refused, even in `a/../b`: if `a` is a symbolic link, that path is not `b`.
    pub(super) fn check(
        reach: &Reach,
        what: &str,
        path: &Spanned<String>,
        help: &str,
    ) -> Result<(), Diagnostic> {
        let parts: Vec<&str> =
            path.value.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        let up = parts.iter().take_while(|part| **part == "..").count();
        let (label, reason) = match reach.up {
            _ if path.value.starts_with('/') => ("an absolute path", ""),
            None => ("there is no checkout here", &*reach.reason),
            Some(most) if up > most => ("`..` leads out of it", &*reach.reason),
            _ if parts[up..].contains(&"..") => ("`..` after another name can lead out of it", ""),
            _ => return Ok(()),
        };
        let message = format!("{what} must be inside the checkout");
        let help = match reach.up {
            _ if reason.is_empty() => help.to_owned(),
            None => reason.to_owned(),
            Some(_) => format!("{help}; {reason}"),
        };
        Err(Diagnostic::new(message, path.span, label).with_help(help))
    }
}
