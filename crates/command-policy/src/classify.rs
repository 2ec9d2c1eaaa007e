//! Classifies commands by the rules of the Boxfile and the built-in rules.

use std::ffi::OsStr;

use box_contract::{SandboxPlan, SandboxPreset};

use crate::pattern::{is_allowed, is_match};
use crate::shell::Word;
use crate::walk::Walk;
use crate::{Decision, Ruling};

/// Characters that only a shell reads.
const OF_SHELLS: &str = " \t\n;&|<>()$`'\"\\*?[]{}~#!=";

/// What decides besides its words what a command does. The default is that nothing is known, and that the command starts like the
/// other ones.
#[derive(Debug, Clone, Copy, Default)]
pub struct Circumstances<'a> {
    /// The directory in which the command starts, if it is known.
    pub directory: Option<&'a str>,
    /// The names of the variables that are set for the command.
    pub variables: &'a [&'a str],
    /// Whether the command runs as a user that its caller names.
    pub has_user: bool,
    /// Whether a program in the box has chosen the variables and the user. What a person on the host chooses asks nobody.
    pub is_of_agent: bool,
}

/// The rules for commands.
#[derive(Debug, Clone)]
pub struct Classifier {
    own: OwnRules,
    is_development: bool,
}

impl Classifier {
    /// Creates the rules of a policy: its own, and the built-in rules.
    pub fn new(plan: &SandboxPlan) -> Self {
        Self {
            own: OwnRules {
                forbid: plan.forbid.clone(),
                ask: plan.ask.clone(),
                allow: plan.allow.clone(),
            },
            is_development: plan.preset == SandboxPreset::Development,
        }
    }

    /// Returns the decision on a command, given as the program and its arguments. The command line of a shell in it
    /// (`sh -c LINE`) is read like one in [`Self::classify_line`].
    pub fn classify<W: AsRef<OsStr>>(&self, argv: &[W]) -> Ruling {
        self.classify_in(argv, &Circumstances::default())
    }

    /// Returns the decision on a command, like [`Self::classify`], that starts in these circumstances. No `allow` applies if one of its
    /// variables decides which program runs.
    pub fn classify_in<W: AsRef<OsStr>>(&self, argv: &[W], around: &Circumstances<'_>) -> Ruling {
        let word = |it: &W| Word::literal(&it.as_ref().to_string_lossy());
        let words: Vec<Word> = argv.iter().map(word).collect();
        let mut walk = self.walk(around);
        walk.argv(&words).or_stricter(walk.started(around))
    }

    /// Returns the decision on a line for a shell.
    pub fn classify_line(&self, line: &str) -> Ruling {
        self.walk(&Circumstances::default()).line(line)
    }

    fn walk(&self, around: &Circumstances<'_>) -> Walk<'_> {
        Walk::new(&self.own, self.is_development, around)
    }

    /// Returns the decision on what a person typed: one word with a character that only a shell reads is a line for a shell, and
    /// everything else is a program and its arguments.
    pub fn classify_typed<W: AsRef<OsStr>>(&self, words: &[W]) -> Ruling {
        self.classify_typed_in(words, &Circumstances::default())
    }

    /// Returns the decision on what a person typed, like [`Self::classify_typed`], that starts in these circumstances.
    pub fn classify_typed_in<W: AsRef<OsStr>>(
        &self,
        words: &[W],
        around: &Circumstances<'_>,
    ) -> Ruling {
        if let [word] = words {
            let line = word.as_ref().to_string_lossy();
            if line.contains(|it: char| OF_SHELLS.contains(it)) {
                let mut walk = self.walk(around);
                return walk.line(&line).or_stricter(walk.started(around));
            }
        }
        self.classify_in(words, around)
    }
}

/// The patterns of a Boxfile.
#[derive(Debug, Clone)]
pub(crate) struct OwnRules {
    forbid: Vec<String>,
    ask: Vec<String>,
    allow: Vec<String>,
}

impl OwnRules {
    /// Returns the decision on a simple command. `None` if no pattern matches. `name` is the program without its directory: what is
    /// forbidden or asked for is so in every directory, but what is allowed is exactly what the pattern names. `may_allow` is whether
    /// the program that it names is the one that runs.
    pub(crate) fn of(&self, words: &[Word], name: &str, may_allow: bool) -> Option<Ruling> {
        if self.forbid.is_empty() && self.ask.is_empty() && self.allow.is_empty() {
            return None;
        }
        let texts: Vec<&str> = words.iter().map(|it| it.text.as_str()).collect();
        let whole = texts.join(" ");
        let named = [&[name][..], texts.get(1..).unwrap_or_default()].concat().join(" ");
        let find = |all: &[String]| {
            all.iter().find(|it| is_match(it, &whole) || is_match(it, &named)).cloned()
        };
        let allowed = || self.allow.iter().find(|it| may_allow && is_allowed(it, words)).cloned();
        let ruling = |decision, reason: &str, rule| {
            Some(Ruling { decision, rule: Some(rule), reason: reason.to_owned() })
        };
        if let Some(rule) = find(&self.forbid) {
            return ruling(Decision::Forbid, "the Boxfile forbids it", rule);
        }
        if let Some(rule) = find(&self.ask) {
            return ruling(Decision::Ask, "the Boxfile asks for it", rule);
        }
        ruling(Decision::Run, "the Boxfile allows it", allowed()?)
    }
}
