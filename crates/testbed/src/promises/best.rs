//! `best.json`: the best limit that each promise had since the file exists, and why a present limit is worse.
//!
//! ```json
//! {"HELLO_START": {"best": 115, "is": "at most, ms"},
//!  "HELLO_VMM": {"best": 23, "is": "at most, ms", "now": 25, "for": "what users get for the difference"}}
//! ```
//!
//! The tests compare the file with the list of promises, with its own history, and with the changelog. So a limit gets worse only in a
//! commit that says why, and never unnoticed. A promise that was taken out of the list stays in the file, with `for`.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde::Deserialize;

use super::{ALL, Bound, Promise};
use crate::{Workspace, program};

/// The file, below the repository's root.
const FILE: &str = "crates/testbed/src/promises/best.json";
/// What a commit that makes a limit worse may change, beside the pages that repeat the limit.
const OF_RAISES: [&str; 4] =
    [FILE, "crates/testbed/src/promises/list.rs", "SPECIFICATION.md", "CHANGELOG.md"];

/// The least length of a reason, in bytes.
const REASON: usize = 20;

/// The limits of a promise.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    best: f64,
    /// The bound and the unit. Older versions of the file have none.
    is: Option<String>,
    /// The present limit, if it is worse.
    now: Option<f64>,
    /// What users get for the difference.
    r#for: Option<String>,
}

type File = BTreeMap<String, Limits>;

impl Promise {
    /// Returns whether `number` is a better limit than `other`.
    fn is_better(&self, number: f64, other: f64) -> bool {
        match self.bound {
            Bound::AtMost | Bound::Exactly => number < other,
            Bound::AtLeast => number > other,
        }
    }

    /// Returns the bound and the unit, as [`Limits::is`] has them: `at most, ms`.
    fn is(&self) -> String {
        let is = format!("{}, {}", self.bound.words(), self.unit);
        is.trim_end_matches(", ").to_owned()
    }
}

impl Limits {
    fn present(&self) -> f64 {
        self.now.unwrap_or(self.best)
    }

    /// Returns whether the file says what users get for a limit that is worse, or gone.
    fn has_reason(&self) -> bool {
        self.r#for.as_ref().is_some_and(|reason| reason.len() >= REASON)
    }

    /// Returns whether the promise is not in the list any more.
    const fn is_gone(&self) -> bool {
        self.r#for.is_some() && self.now.is_none()
    }

    /// Returns whether `later` is a weaker promise, or may be one because it is about something else.
    fn is_weaker_in(&self, later: &Self, promise: Option<&Promise>) -> bool {
        let is_other = self.is.is_some() && self.is != later.is;
        let is_worse = |it: &Promise| it.is_better(self.present(), later.present());
        is_other || (later.is_gone() && !self.is_gone()) || promise.is_some_and(is_worse)
    }
}

/// Returns the promise of the list with a name.
fn listed(name: &str) -> Option<&'static Promise> {
    ALL.iter().find(|(known, _)| *known == name).map(|(_, promise)| promise)
}

fn parse(text: &str) -> File {
    serde_json::from_str(text).unwrap()
}

fn git(arguments: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    let text = program::run(git.args(arguments).current_dir(Workspace::find().path("."))).ok()?;
    String::from_utf8(text).ok()
}

/// Returns the fault of a limit in the file, for the limits of a promise in the list.
fn fault(name: &str, promise: &Promise, limits: &Limits, changelog: &str) -> Option<String> {
    let present = limits.present();
    if (promise.number - present).abs() > 1e-9 {
        let better = promise.is_better(promise.number, limits.best);
        let advice = if better {
            "write the better limit there"
        } else {
            "add `now` and `for` in a commit of its own"
        };
        return Some(format!(
            "{name} is {} in the list, and {present} in {FILE}: {advice}",
            promise.number
        ));
    }
    let is = promise.is();
    if limits.is.as_ref() != Some(&is) {
        return Some(format!("{name}: `is` in {FILE} must be {is:?}"));
    }
    let is_worse = limits.now.is_some_and(|now| promise.is_better(limits.best, now));
    match limits.now {
        None => None,
        Some(_) if !is_worse => Some(format!("{name}: `now` is not worse than `best`")),
        Some(_) if !limits.has_reason() => {
            Some(format!("{name}: `for` does not say what users get"))
        }
        Some(_) if !is_told(promise, changelog) => Some(format!(
            "{name}: no line of CHANGELOG.md has SPECIFICATION.md and \"{}\"",
            promise.limit()
        )),
        Some(_) => None,
    }
}

/// Returns whether a line of the changelog has the present limit.
fn is_told(promise: &Promise, changelog: &str) -> bool {
    let limit = promise.limit();
    let has_limit = |line: &str| {
        line.split_once(&limit)
            .is_some_and(|(_, rest)| !rest.starts_with(|it: char| it.is_alphanumeric()))
    };
    changelog.lines().any(|line| line.contains("SPECIFICATION.md") && has_limit(line))
}

/// Returns the versions of the file in the history, with the files that each commit has changed, oldest first. Empty if this is no clone.
///
/// # Panics
/// git fails, or the clone has a part of the history only: then nothing would be compared.
fn versions() -> Vec<(File, Vec<String>)> {
    if !Workspace::find().path(".git").exists() {
        return Vec::new();
    }
    let shallow = git(&["rev-parse", "--is-shallow-repository"]).expect("git reads the history");
    assert_eq!(shallow.trim(), "false", "the clone is shallow: `git fetch --unshallow`");
    let commits = git(&["log", "--reverse", "--format=%H", "--", FILE]).unwrap_or_default();
    assert!(!commits.is_empty(), "the history has no version of {FILE}");
    let version = |commit: &str| {
        let text = git(&["show", &format!("{commit}:{FILE}")])?;
        let changed = git(&["show", "--format=", "--name-only", commit])?;
        Some((parse(&text), changed.lines().map(str::to_owned).collect()))
    };
    commits.lines().filter_map(version).collect()
}

/// Returns the name of a promise that is missing in `new`, or whose best limit is worse there than in `old`.
fn forgotten<'a>(old: &'a File, new: &File) -> Option<&'a String> {
    let is_worse = |name: &str, before: f64, after: f64| {
        listed(name).is_some_and(|promise| promise.is_better(before, after))
    };
    let mut names = old.iter();
    let found = names.find(|(name, before)| {
        new.get(*name).is_none_or(|after| is_worse(name, before.best, after.best))
    });
    found.map(|(name, _)| name)
}

/// Returns whether a promise is weaker in `new` than in `old`, or gone.
fn raises(old: &File, new: &File) -> bool {
    old.iter().any(|(name, before)| {
        new.get(name).is_none_or(|after| before.is_weaker_in(after, listed(name)))
    })
}

#[test]
fn no_limit_is_worse_than_it_ever_was_without_a_reason() {
    let workspace = Workspace::find();
    let read = |path: &str| fs::read_to_string(workspace.path(path)).unwrap();
    let (file, changelog) = (parse(&read(FILE)), read("CHANGELOG.md"));
    for (name, promise) in ALL {
        let limits = file.get(*name).unwrap_or_else(|| panic!("{FILE} has no {name}"));
        assert_eq!(fault(name, promise, limits, &changelog), None);
    }
    let gone = file.iter().find(|(name, it)| listed(name).is_none() && !it.has_reason());
    assert_eq!(gone, None, "a promise that is not in the list: `for` must say why");
    for (old, _) in versions() {
        assert_eq!(forgotten(&old, &file), None, "its best limit was better before");
    }
}

#[test]
fn a_limit_gets_worse_in_a_commit_of_its_own() {
    let repeated: Vec<_> =
        ALL.iter().flat_map(|(_, it)| it.repeated).map(|(file, _)| *file).collect();
    for pair in versions().windows(2) {
        let ((old, _), (new, changed)) = (&pair[0], &pair[1]);
        if !raises(old, new) {
            continue;
        }
        let missing = OF_RAISES.iter().find(|path| !changed.iter().any(|it| it == **path));
        assert_eq!(missing, None, "a limit was made worse without a change of this file");
        let foreign = changed
            .iter()
            .find(|path| !OF_RAISES.contains(&path.as_str()) && !repeated.contains(&path.as_str()));
        assert_eq!(foreign, None, "a limit was made worse together with this file");
    }
}

#[test]
fn each_way_to_make_a_limit_worse_is_a_fault() {
    let promise = Promise { number: 25.0, unit: "ms", bound: Bound::AtMost, ..ALL[0].1 };
    let reason_of = |reason: &str| (!reason.is_empty()).then(|| reason.to_owned());
    let is = || Some("at most, ms".to_owned());
    let limits = |best, now, reason: &str| Limits { best, is: is(), now, r#for: reason_of(reason) };
    let of = |limits: &Limits, changelog: &str| fault("IT", &promise, limits, changelog);
    let reason = "a check of every file before the start";
    assert_eq!(of(&limits(25.0, None, ""), ""), None);
    assert_eq!(
        of(&limits(23.0, Some(25.0), reason), "- SPECIFICATION.md: at most 25 ms now"),
        None
    );
    let faults = [
        (limits(23.0, None, ""), "add `now` and `for` in a commit"),
        (limits(27.0, None, ""), "write the better limit"),
        (limits(23.0, Some(24.0), reason), "add `now`"),
        (limits(27.0, Some(25.0), reason), "not worse"),
        (limits(23.0, Some(25.0), "reasons"), "does not say"),
        (limits(23.0, Some(25.0), reason), "no line of CHANGELOG.md"),
    ];
    for (limits, part) in faults {
        let found = of(&limits, "").unwrap_or_default();
        assert!(found.contains(part), "{found} has no {part}");
    }
    let file =
        |best: f64, now: Option<f64>| File::from([(ALL[0].0.to_owned(), limits(best, now, ""))]);
    assert_eq!(forgotten(&file(1.0, None), &file(2.0, None)).map(String::as_str), Some(ALL[0].0));
    assert_eq!(forgotten(&file(2.0, None), &file(1.0, None)), None);
    assert_eq!(forgotten(&file(1.0, None), &File::new()).map(String::as_str), Some(ALL[0].0));
    assert!(
        !is_told(&promise, "- SPECIFICATION.md: at most 25 msec")
            && !is_told(&promise, "- at most 25 ms")
    );
    assert!(raises(&file(1.0, None), &file(1.0, Some(2.0))));
    assert!(!raises(&file(1.0, Some(2.0)), &file(1.0, None)));
    // A promise that leaves the file or the list, or is in another unit, is one that got worse.
    let only = |limits| File::from([(ALL[0].0.to_owned(), limits)]);
    let other = |is: &str| Limits { is: Some(is.to_owned()), ..limits(1.0, None, "") };
    for new in [File::new(), only(limits(1.0, None, reason)), only(other("at most, s"))] {
        assert!(raises(&file(1.0, None), &new), "{new:?}");
    }
    let in_seconds = of(&Limits { best: 25.0, ..other("at most, s") }, "").unwrap_or_default();
    assert!(in_seconds.contains("`is`"), "{in_seconds}");
}
