//! Suggests declarations for a Boxfile that decide its conflicts.

use std::collections::HashMap;

use boxfile_spec::ConflictPolicy;
use diagnostics::Syntax;
use diagnostics::in_quotes;

use super::conflicts::Conflicts;
use super::patterns::{PatternNode, Patterns, pattern};

/// The maximum number of suggested declarations. It is enough for one declaration for each system file and account
/// file, and one pattern for all other files.
pub const MAX_ADVICE: usize = 20;

/// The conditions under which all paths below a directory get one pattern.
struct Grouping {
    /// A directory with fewer names in its path gets no pattern: the files in `/etc` or `/usr` have nothing in common.
    least_parts: usize,
    /// If the paths below a directory need more declarations, one pattern replaces them.
    most_lines: usize,
}

/// The groupings, from fine to coarse. The first that yields at most [`MAX_ADVICE`] declarations is used.
const GROUPINGS: [Grouping; 4] = [
    Grouping { least_parts: 2, most_lines: 3 },
    Grouping { least_parts: 1, most_lines: 3 },
    Grouping { least_parts: 1, most_lines: 1 },
    Grouping { least_parts: 0, most_lines: 1 },
];

/// A declaration that decides conflicts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// The pattern.
    pub pattern: String,
    /// A policy that can be applied. Only a person can know which policy is right.
    pub policy: ConflictPolicy,
    /// The number of conflicts that the declaration decides.
    pub paths: usize,
}

impl Advice {
    /// Returns the declaration for exactly `path`, which a Boxfile can spell.
    pub(super) fn one(path: &[u8], policy: ConflictPolicy) -> Self {
        Self { pattern: pattern(path), policy, paths: 1 }
    }

    /// Returns the declaration as Boxfile text: one line in KDL, two in TOML.
    pub fn declaration(&self, syntax: Syntax) -> String {
        let (pattern, policy) = (in_quotes(syntax, &self.pattern), self.policy.name());
        match syntax {
            Syntax::Kdl => format!("conflict {pattern} policy=\"{policy}\""),
            Syntax::Toml => format!("[conflict.{pattern}]\npolicy = \"{policy}\""),
        }
    }
}

/// Returns declarations for the conflicts that the Boxfile does not name yet: at most [`MAX_ADVICE`].
///
/// Files that need a declaration with their exact path come first, then the others by path. If a directory has many
/// conflicts, one pattern covers all of them. A path gets no declaration if every pattern that spells it also matches
/// other paths, such as a file with the name `*`.
pub fn advice(conflicts: &Conflicts) -> Vec<Advice> {
    let Conflicts { named, plain, .. } = conflicts;
    let few = |lines: &Vec<Line>| named.len() + lines.len() <= MAX_ADVICE;
    let fewest = GROUPINGS.len() - 1;
    let lines = GROUPINGS[..fewest].iter().map(|it| it.lines(plain)).find(few);
    let lines = lines.unwrap_or_else(|| GROUPINGS[fewest].lines(plain));
    let exact = lines.into_iter().filter(|line| !plain.is_wide(line.place));
    named.iter().cloned().chain(exact.map(|line| line.advice(plain))).collect()
}

/// A suggested declaration, for a node in the tree of patterns.
#[derive(Debug, Clone, Copy)]
struct Line {
    place: usize,
    /// Whether the declaration is for all paths below the node, and not for the node itself.
    is_below: bool,
    paths: usize,
}

impl Line {
    fn advice(self, plain: &Patterns) -> Advice {
        let pattern = plain.pattern(self.place);
        let pattern = match self.is_below {
            true => format!("{}/**", pattern.trim_end_matches('/')),
            false => pattern,
        };
        Advice { pattern, policy: ConflictPolicy::PreferAgent, paths: self.paths }
    }
}

/// The suggested declarations for the paths below a directory, the last first.
#[derive(Default)]
struct LinesBelow {
    /// At most [`MAX_ADVICE`] + 1 lines: more lines would not change that these are too many.
    lines: Vec<Line>,
    paths: usize,
}

impl Grouping {
    /// Returns the lines for all paths, in the order of the nodes. If there are more than [`MAX_ADVICE`], some lines
    /// are omitted, but the result still has more than [`MAX_ADVICE`].
    fn lines(&self, plain: &Patterns) -> Vec<Line> {
        let mut all: HashMap<usize, LinesBelow> = HashMap::new();
        // A parent precedes its children. In reverse, the lines below a node are complete when the loop reaches it.
        for (number, place) in plain.places.iter().enumerate().rev() {
            let below = all.remove(&number).unwrap_or_default();
            let paths = below.paths + place.paths;
            let mut lines = self.with_place(number, place, below);
            if number == 0 {
                lines.reverse();
                return lines;
            }
            let above = all.entry(place.above).or_default();
            above.paths += paths;
            let room = (MAX_ADVICE + 1).saturating_sub(above.lines.len());
            above.lines.extend(lines.into_iter().take(room));
        }
        Vec::new()
    }

    /// Adds the line of a node to the lines for the paths below it, or to the pattern that replaces them.
    fn with_place(&self, number: usize, place: &PatternNode, below: LinesBelow) -> Vec<Line> {
        let line = |is_below, paths| Line { place: number, is_below, paths };
        let mut lines = below.lines;
        if place.parts >= self.least_parts && lines.len() > self.most_lines {
            lines = vec![line(true, below.paths)];
        }
        // The pattern for the paths below a directory does not match the directory.
        lines.extend((place.paths > 0).then(|| line(false, place.paths)));
        lines
    }
}
