//! Applies a policy to a box.

use std::fmt;

use super::pattern::canonical;
use super::{Answer, Condition, Field, Policy};
use crate::PublicKey;

/// Where a box comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin<'n> {
    /// A registry, or a store that has the box from there.
    Registry {
        /// The registry and the repository, such as `ghcr.io/acme/hello`. A tag is ignored. A mirror's name must not be here.
        repository: &'n str,
        /// Whether the user's reference has a digest.
        has_digest: bool,
    },
    /// A file that another host wrote.
    File {
        /// The name in a registry that the file declares for the box, if it has one.
        repository: Option<&'n str>,
    },
    /// A build on this host.
    Local,
}

/// What a policy says about a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision<'p> {
    /// The box may run without a signature.
    Allowed,
    /// The box may run if it has these signatures: see [`Requirement::check`].
    Signed(Requirement<'p>),
    /// The box must not run, whoever has signed it. No blob of it is needed.
    Refused(Refusal),
}

/// The signatures that a box needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requirement<'p> {
    /// The keys. A signature by any one is enough.
    pub keys: &'p [PublicKey],
    /// Whether provenance by one of the keys is needed, too.
    pub provenance: bool,
    /// Whether a tag must not move to a box with a lower release than that of the box before.
    pub refuse_older: bool,
}

/// Why a policy refuses a box. The message names what the policy has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// No rule matches, and `default` is `refuse`.
    NoRule,
    /// The rule with this number, beginning with 0, has `decision = "refuse"`.
    Rule,
    /// The matching rule has `digest-only`, and the reference has no digest.
    NoDigest,
    /// `local` is `refuse`.
    Local,
    /// `file` is `refuse`, and no rule matches the name of the box in its file.
    File,
    /// The name of the repository is malformed.
    Malformed,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRule => "the policy has no rule for this repository",
            Self::Rule => "the policy refuses this repository",
            Self::NoDigest => "the policy requires a digest for this repository",
            Self::Local => "the policy refuses boxes that were built on this host",
            Self::File => "the policy refuses boxes from files",
            Self::Malformed => "the name of the repository is malformed",
        })
    }
}

impl Policy {
    /// Returns what the policy says about a box from `origin`. The most specific rule that matches decides alone.
    pub fn decide(&self, origin: &Origin<'_>) -> Decision<'_> {
        self.find(origin).0
    }

    /// Returns the line of the policy's text that [`Self::decide`] follows, beginning with 1. `None` if the text has no field for
    /// it, so that a default applies.
    pub fn line(&self, origin: &Origin<'_>) -> Option<usize> {
        self.find(origin).1
    }

    /// Returns the number of rules.
    pub const fn rules(&self) -> usize {
        self.rules.len()
    }

    fn find(&self, origin: &Origin<'_>) -> (Decision<'_>, Option<usize>) {
        match *origin {
            Origin::Registry { repository, has_digest } => {
                self.by_name(repository, Some(has_digest), (self.default, Refusal::NoRule))
            }
            Origin::File { repository: Some(name) } => {
                self.by_name(name, None, (self.file, Refusal::File))
            }
            Origin::File { repository: None } => by_field(self.file, Refusal::File),
            Origin::Local => by_field(self.local, Refusal::Local),
        }
    }

    /// Decides by a repository. `has_digest` is `None` if the name is only what a file declares. The digests of a file's content are
    /// fixed. But anybody can write any name into a file, so a rule that trusts the registry does not apply to it.
    fn by_name(
        &self,
        name: &str,
        has_digest: Option<bool>,
        otherwise: (Field, Refusal),
    ) -> (Decision<'_>, Option<usize>) {
        let Some((host, repository)) = canonical(name) else {
            return (Decision::Refused(Refusal::Malformed), None);
        };
        let mut rules = self.rules.iter();
        let Some(rule) = rules.find(|rule| rule.pattern.matches(&host, &repository)) else {
            return by_field(otherwise.0, otherwise.1);
        };
        let decision = match &rule.condition {
            Condition::Always(Answer::Refuse) => Decision::Refused(Refusal::Rule),
            _ if rule.digest_only && has_digest == Some(false) => {
                Decision::Refused(Refusal::NoDigest)
            }
            Condition::Always(Answer::Allow) if has_digest.is_none() => {
                return by_field(otherwise.0, otherwise.1);
            }
            Condition::Always(Answer::Allow) => Decision::Allowed,
            Condition::Signed { keys, provenance, refuse_older } => {
                let (provenance, refuse_older) = (*provenance, *refuse_older);
                Decision::Signed(Requirement { keys, provenance, refuse_older })
            }
        };
        (decision, Some(rule.line))
    }
}

const fn by_field(field: Field, refusal: Refusal) -> (Decision<'static>, Option<usize>) {
    let decision = match field.answer {
        Answer::Allow => Decision::Allowed,
        Answer::Refuse => Decision::Refused(refusal),
    };
    (decision, field.line)
}
