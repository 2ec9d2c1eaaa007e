//! The lines of a Boxfile that would decide conflicts.

use std::collections::HashMap;

use box_tree::path::join;
use boxfile_spec::{ConflictPolicy, Syntax, in_quotes, shown};

use super::Conflict;
use super::policies::fits;

/// The most declarations that are advised. Beside one pattern for everything, there are at most as
/// many as there are files that only their own name decides, which are fewer.
pub const MOST_ADVICE: usize = 20;

/// Where paths of one directory get one pattern.
struct Grouping {
    /// A directory with fewer parts is no group: what is in `/etc` or `/usr` has nothing in common.
    least_parts: usize,
    /// More lines than that for the paths below a directory are replaced by a pattern.
    most_lines: usize,
}

/// The ways to group, of which the first is taken that leaves at most [`MOST_ADVICE`] declarations.
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
    fn one(path: &[u8], policy: ConflictPolicy) -> Self {
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
/// most [`MOST_ADVICE`].
///
/// Files that only their own name decides come first, then the others by path; where a directory
/// has many, one pattern is for all of them. A path that only a pattern for others, too, can spell has
/// none, such as that of a file `*`.
pub fn advice(conflicts: &[Conflict]) -> Vec<Advice> {
    let open = || conflicts.iter().filter(|it| !it.declared);
    let named: Vec<Advice> =
        open().filter_map(|it| Some(Advice::one(&it.path, it.named?))).collect();
    let mut plain: Vec<&[u8]> =
        open().filter(|it| it.named.is_none()).map(|it| it.path.as_slice()).collect();
    // So that what lies below a directory follows it at once.
    let parts =
        |path: &'_ [u8]| path.split(|byte| *byte == b'/').map(<[u8]>::to_vec).collect::<Vec<_>>();
    plain.sort_by_cached_key(|path| parts(path));
    let by = |grouping: &Grouping| {
        distinct(named.iter().cloned().chain(grouping.group(&plain, b"/", 0)).collect())
    };
    let fewest = GROUPINGS.len() - 1;
    let few = GROUPINGS[..fewest].iter().map(by).find(|it| it.len() <= MOST_ADVICE);
    let mut advice = few.unwrap_or_else(|| by(&GROUPINGS[fewest]));
    let is_exact = |it: &Advice| {
        let path = it.pattern.strip_suffix("/**").unwrap_or(&it.pattern);
        let decided = || plain.iter().filter(|path| fits(it.pattern.as_bytes(), path)).count();
        !path.contains('*') || decided() == it.paths
    };
    advice.retain(is_exact);
    advice
}

/// Puts declarations with the same pattern into one: a star can stand for several names.
fn distinct(advice: Vec<Advice>) -> Vec<Advice> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut distinct: Vec<Advice> = Vec::new();
    for one in advice {
        match places.get(&one.pattern) {
            Some(place) => distinct[*place].paths += one.paths,
            None => {
                places.insert(one.pattern.clone(), distinct.len());
                distinct.push(one);
            }
        }
    }
    distinct
}

impl Grouping {
    /// Advises on paths at or below a directory, which are sorted.
    fn group(&self, paths: &[&[u8]], directory: &[u8], parts: usize) -> Vec<Advice> {
        let mut advice = Vec::new();
        let mut rest = paths;
        while let [first, ..] = rest {
            if *first == directory {
                advice.push(Advice::one(first, ConflictPolicy::PreferAgent));
                rest = &rest[1..];
                continue;
            }
            let child = join(directory, part(first, directory));
            let inside = |path: &&&[u8]| join(directory, part(path, directory)) == child;
            let count = rest.iter().take_while(inside).count();
            advice.extend(self.group(&rest[..count], &child, parts + 1));
            rest = &rest[count..];
        }
        let mut advice = distinct(advice);
        // The directory itself is not in the pattern for what it holds.
        let own = usize::from(paths.first() == Some(&directory));
        if parts < self.least_parts || advice.len() - own <= self.most_lines {
            return advice;
        }
        let all = Advice {
            pattern: format!("{}/**", pattern(directory).trim_end_matches('/')),
            policy: ConflictPolicy::PreferAgent,
            paths: paths.len() - own,
        };
        advice.truncate(own);
        advice.push(all);
        advice
    }
}

/// Returns the part of a path that follows a directory.
fn part<'p>(path: &'p [u8], directory: &[u8]) -> &'p [u8] {
    let rest = path.get(directory.len()..).unwrap_or_default();
    let rest = rest.strip_prefix(b"/").unwrap_or(rest);
    rest.split(|byte| *byte == b'/').next().unwrap_or_default()
}

/// Writes a path as a pattern. A star stands for what a Boxfile cannot spell; it fits a star, too.
fn pattern(path: &[u8]) -> String {
    let text = shown(&String::from_utf8_lossy(path));
    let mut pattern = text.replace(char::REPLACEMENT_CHARACTER, "*");
    while pattern.contains("**") {
        pattern = pattern.replace("**", "*");
    }
    pattern
}
