//! The lines of a Boxfile that would decide conflicts.

use std::collections::HashMap;

use boxfile_spec::ConflictPolicy;
use diagnostics::Syntax;
use diagnostics::in_quotes;

use super::conflicts::Conflicts;
use super::patterns::{PatternNode, Patterns, pattern};

/// The most declarations that are advised. Beside one pattern for everything, there are at most as
/// many as there are files that only their own name decides, which are fewer.
pub const MAX_ADVICE: usize = 20;

/// Where paths of one directory get one pattern.
struct Grouping {
    /// A directory with fewer parts is no group: what is in `/etc` or `/usr` has nothing in common.
    least_parts: usize,
    /// More lines than that for the paths below a directory are replaced by a pattern.
    most_lines: usize,
}

/// The ways to group, of which the first is taken that leaves at most [`MAX_ADVICE`] declarations.
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
    /// A policy that can be carried out; which one is right, only a person can know.
    pub policy: ConflictPolicy,
    /// How many of the conflicts it decides.
    pub paths: usize,
}

impl Advice {
    /// Returns the declaration for a path that a Boxfile can spell.
    pub(super) fn one(path: &[u8], policy: ConflictPolicy) -> Self {
        Self { pattern: pattern(path), policy, paths: 1 }
    }

    /// Writes the declaration as the Boxfile has it: one line, in TOML two.
    pub fn declaration(&self, syntax: Syntax) -> String {
        let (pattern, policy) = (in_quotes(syntax, &self.pattern), self.policy.name());
        match syntax {
            Syntax::Kdl => format!("conflict {pattern} policy=\"{policy}\""),
            Syntax::Toml => format!("[conflict.{pattern}]\npolicy = \"{policy}\""),
        }
    }
}

/// Returns declarations that decide the conflicts, but for those that the Boxfile names already: at
/// most [`MAX_ADVICE`].
///
/// Files that only their own name decides come first, then the others by path; where a directory
/// has many, one pattern is for all of them. A path that only a pattern for others, too, can spell has
/// none, such as that of a file `*`.
pub fn advice(conflicts: &Conflicts) -> Vec<Advice> {
    let Conflicts { named, plain, .. } = conflicts;
    let few = |lines: &Vec<Line>| named.len() + lines.len() <= MAX_ADVICE;
    let fewest = GROUPINGS.len() - 1;
    let lines = GROUPINGS[..fewest].iter().map(|it| it.lines(plain)).find(few);
    let lines = lines.unwrap_or_else(|| GROUPINGS[fewest].lines(plain));
    let exact = lines.into_iter().filter(|line| !plain.is_wide(line.place));
    named.iter().cloned().chain(exact.map(|line| line.advice(plain))).collect()
}

/// A declaration for paths, by their place.
#[derive(Debug, Clone, Copy)]
struct Line {
    place: usize,
    /// Whether it is for all paths below the place, or for the place alone.
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

/// The lines for what is below a directory, the last first.
#[derive(Default)]
struct LinesBelow {
    /// At most one more than may be advised: then it is too many, however many more there are.
    lines: Vec<Line>,
    paths: usize,
}

impl Grouping {
    /// Returns the lines for all paths, in the order of the places. If they are too many, it is only some of them, and
    /// still too many.
    fn lines(&self, plain: &Patterns) -> Vec<Line> {
        let mut all: HashMap<usize, LinesBelow> = HashMap::new();
        // Each place comes before those in it, and what is below it is known when its turn comes.
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

    /// Adds the line of a place to those for what is below it, or to the pattern that replaces them.
    fn with_place(&self, number: usize, place: &PatternNode, below: LinesBelow) -> Vec<Line> {
        let line = |is_below, paths| Line { place: number, is_below, paths };
        let mut lines = below.lines;
        if place.parts >= self.least_parts && lines.len() > self.most_lines {
            lines = vec![line(true, below.paths)];
        }
        // The directory itself is not in the pattern for what it holds.
        lines.extend((place.paths > 0).then(|| line(false, place.paths)));
        lines
    }
}
