//! Paths that must stay in the checkout.
//!
//! The checkout is the smallest directory that holds the Boxfile and every file that it extends.
//! Files in it are checked in with the Boxfile; what is read from elsewhere differs from
//! one machine to the next.

use crate::sink::Sink;
use crate::{Agent, Binary, Business, Diagnostic, Skill, SkillsDir, Spanned};

const COPY: &str =
    "copy it to a place beside the Boxfile or below it, and name it from there, without `..`";
const NAME_AT_LAUNCH: &str =
    "leave `host` out: whoever launches the box names a directory, which may be anywhere";

/// Reports every path that leads out of the checkout, which reaches `climb` directories up.
#[derive(Clone, Copy)]
pub(super) struct Checkout<'s> {
    pub(super) climb: usize,
    pub(super) sink: &'s Sink,
}

impl Checkout<'_> {
    pub(super) fn components(self, agent: Option<&Agent>, business: Option<&Business>) {
        if let Some(Binary::Local { path, .. }) = agent.and_then(|agent| agent.binary.as_ref()) {
            self.check("the agent's program", path, COPY);
        }
        let agent = agent.map(|agent| &agent.component);
        let business = business.map(|business| &business.component);
        for component in agent.into_iter().chain(business) {
            component.env_files.iter().for_each(|it| self.check("a file of variables", it, COPY));
            component.files.iter().for_each(|it| self.check("a file of the box", &it.path, COPY));
        }
    }

    pub(super) fn skills(self, directory: Option<&SkillsDir>, skills: &[Skill]) {
        directory.iter().for_each(|it| self.check("a directory of skills", &it.dir, COPY));
        skills.iter().for_each(|skill| self.check("a skill", &skill.path, COPY));
    }

    pub(super) fn share(self, host: &Spanned<String>) {
        self.check("the directory of a share", host, NAME_AT_LAUNCH);
    }

    /// A `..` is allowed at the path's beginning, as often as the checkout reaches up. Any other is
    /// refused, even one that would lead back: after a symbolic link it may not.
    fn check(self, what: &str, path: &Spanned<String>, help: &str) {
        let parts: Vec<&str> =
            path.value.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        let up = parts.iter().take_while(|part| **part == "..").count();
        let label = if path.value.starts_with('/') {
            "an absolute path"
        } else if up > self.climb || parts[up..].contains(&"..") {
            "`..` leads out of it"
        } else {
            return;
        };
        let message = format!("{what} must be inside the checkout");
        self.sink.report(Diagnostic::new(message, path.span, label).with_help(help));
    }
}
