//! The lines of a Boxfile that would decide conflicts.

use std::collections::HashMap;

use box_tree::path::join;
use boxfile_spec::{ConflictPolicy, Syntax, in_quotes, shown};

use super::accounts::unitable;
use super::special::special;
use super::{Conflict, Special};

/// So many lines for paths of one directory are tolerable; instead of more there is one pattern.
const MOST_LINES: usize = 3;
/// A directory with fewer parts is no group: what is in `/etc` or `/usr` has nothing in common.
const LEAST_PARTS: usize = 2;

/// A declaration that decides conflicts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// The pattern.
    pub pattern: String,
    /// A policy; which one is right, only a person can know.
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

/// Returns declarations that decide the conflicts, but for those that the Boxfile names already.
/// Special files come first, then the others by path; where many lie in one
/// directory, one pattern stands for them.
pub fn advice(conflicts: &[Conflict]) -> Vec<Advice> {
    let (mut own, mut plain) = (Vec::new(), Vec::new());
    for conflict in conflicts.iter().filter(|it| !it.declared) {
        let files = conflict.sides.iter().all(|side| side.size.is_some());
        let same_attributes = matches!(conflict.difference.field.as_str(), "size" | "content");
        match special(&conflict.path) {
            Some(Special::LoaderCache) => {
                own.push(Advice::one(&conflict.path, ConflictPolicy::Drop));
            }
            Some(Special::Packages(_)) => {
                own.push(Advice::one(&conflict.path, ConflictPolicy::PreferAgent));
            }
            None if files && same_attributes && unitable(&conflict.path).is_some() => {
                own.push(Advice::one(&conflict.path, ConflictPolicy::Merge));
            }
            None => plain.push(conflict.path.as_slice()),
        }
    }
    // So that what lies below a directory follows it at once.
    let parts =
        |path: &'_ [u8]| path.split(|byte| *byte == b'/').map(<[u8]>::to_vec).collect::<Vec<_>>();
    plain.sort_by_cached_key(|path| parts(path));
    own.extend(grouped(&plain, b"/", 0));
    distinct(own)
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

/// Advises on paths at or below a directory, which are sorted.
fn grouped(paths: &[&[u8]], directory: &[u8], parts: usize) -> Vec<Advice> {
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
        advice.extend(grouped(&rest[..count], &child, parts + 1));
        rest = &rest[count..];
    }
    let mut advice = distinct(advice);
    if parts < LEAST_PARTS || advice.len() <= MOST_LINES {
        return advice;
    }
    // The directory itself is not in it.
    let own = usize::from(paths.first() == Some(&directory));
    let all = Advice {
        pattern: format!("{}/**", pattern(directory)),
        policy: ConflictPolicy::PreferAgent,
        paths: paths.len() - own,
    };
    advice.truncate(own);
    advice.push(all);
    advice
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
