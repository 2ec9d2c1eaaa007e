//! What a box may have left in the project of its environment, as `up`, `down`, `rm` and `shell` print it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use boxlaunch::boxes::{Record, since_epoch};
use boxlaunch::project::Repository;
use boxlaunch::project::left::{AtEnd, Found, Look, Seen, look};
use host_fs::OsError;
use safe_text::shown;

use super::listed;
use crate::cli::error::Failure;
use crate::cli::terminal::{is_quiet, notice};

/// How many paths a notice has.
const MAX_SHOWN: usize = 8;

/// The environment of a project.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct Environment<'a> {
    /// The state directory.
    pub(in crate::cli) state: &'a Path,
    pub(in crate::cli) name: &'a str,
    pub(in crate::cli) project: &'a Path,
}

impl<'a> Environment<'a> {
    /// Returns the environment that has this record. `None` if the box is no environment.
    pub(in crate::cli) fn of(state: &'a Path, record: &'a Record) -> Option<Self> {
        Some(Self { state, name: &record.name, project: record.project.as_deref()? })
    }

    fn seen(self) -> Seen {
        Seen::read(self.state, self.name).unwrap_or_default()
    }

    fn write(self, seen: &Seen) -> Result<(), Failure> {
        Ok(seen.write(self.state, self.name)?)
    }

    /// Looks through the project. Files that have changed since `since_ms`, in milliseconds since 1970, are found if it is given.
    fn look(self, since_ms: Option<u64>) -> Result<Look, OsError> {
        let outside = Repository::outside_of(self.project);
        let since = since_ms.map(|it| UNIX_EPOCH + Duration::from_millis(it));
        look(self.project, outside.as_deref(), since)
            .map_err(OsError::file("look through", self.project))
    }

    /// Looks at the project before the first start: what is there is the user's, unless a start has failed before. With `accepts`, it is
    /// the user's in any case.
    pub(super) fn first(self, accepts: bool) -> Result<(), Failure> {
        let now = self.look(None)?;
        if let Some(seen) = Seen::read(self.state, self.name) {
            tell(&now, &seen.known);
            if !accepts {
                return Ok(());
            }
        }
        self.write(&Seen { known: now.found, since_ms: since_epoch(), at_end: None })
    }

    /// Looks at the project before the environment starts again after the run of `record`. With `accepts`, what is there is the user's
    /// from now on. Returns what is there.
    pub(super) fn again(self, record: &Record, accepts: bool) -> Result<Found, Failure> {
        let now = self.look(None)?;
        let mut seen = self.seen().begun(&now.found, record.created_ms, since_epoch());
        tell(&now, &seen.known);
        if accepts {
            seen.known = now.found.clone();
        }
        self.write(&seen)?;
        Ok(now.found)
    }

    /// Notes that the environment was not started again after the run of `record`, so that what the user makes is still the user's.
    pub(super) fn not_begun(self, record: &Record, found: Found) -> Result<(), Failure> {
        let at_end = Some(AtEnd { run_ms: record.created_ms, found });
        self.write(&Seen { at_end, ..self.seen() })
    }

    /// Looks at the project before any other start. Without this, the next look would take what the box makes for the user's.
    pub(in crate::cli) fn begins(self, record: &Record) -> Result<(), Failure> {
        let seen = self.seen();
        if seen.at_end.is_none() {
            return Ok(());
        }
        let now = self.look(None)?;
        self.write(&seen.begun(&now.found, record.created_ms, since_epoch()))
    }

    /// Prints what is in the project, and was not there before. A failure is no error, because something else was asked for.
    pub(in crate::cli) fn tell(self) {
        if !is_quiet() {
            self.look(None).map_or_else(failed, |now| tell(&now, &self.seen().known));
        }
    }

    /// Prints what is in the project after the run of `record` was stopped, and notes it.
    pub(in crate::cli) fn stopped(self, record: &Record) -> Result<(), Failure> {
        if is_quiet() {
            return Ok(());
        }
        let seen = self.seen();
        // The changed files of that run were printed before.
        let is_known = seen.at_end.as_ref().is_some_and(|it| it.run_ms == record.created_ms);
        let now = match self.look((!is_known).then_some(seen.since(record.created_ms))) {
            Ok(now) => now,
            Err(error) => {
                failed(error);
                return Ok(());
            }
        };
        tell(&now, &seen.known);
        if is_known || !now.is_whole {
            return Ok(());
        }
        let at_end = Some(AtEnd { run_ms: record.created_ms, found: now.found });
        self.write(&Seen { at_end, ..seen })
    }
}

fn failed(error: OsError) {
    notice(&(shown(&format!("boxlaunch: {error}")) + "\n"));
}

fn tell(look: &Look, known: &Found) {
    if !is_quiet() {
        lines(look, known).iter().for_each(|it| notice(it));
    }
}

/// Returns the notices about a project.
fn lines(look: &Look, known: &Found) -> Vec<String> {
    let new = look.found.without(known);
    let named = |paths: &BTreeMap<String, String>, text: &dyn Fn(String) -> String| {
        (!paths.is_empty()).then(|| text(listed(paths.keys(), paths.len() as u64, MAX_SHOWN)))
    };
    let repositories = named(&new.repositories, &|it| {
        format!(
            "the box may have made or changed git repositories in the project: {it}; git starts what their `config` and `hooks` name, \
             also for `git status` in the project if one is a submodule; if they are yours: `boxlaunch down && boxlaunch up --accept`"
        )
    });
    let operations = named(&new.operations, &|it| {
        format!(
            "the box may have begun or changed an operation of git, whose next step could run its commands: {it}; look at it with \
             `git status` before you continue it"
        )
    });
    let indexes = named(&look.indexes, &|it| {
        format!(
            "the box has forged an index of git, with files outside of the project, to which git would write: {it}; remove it, and make a \
             new one with `git reset`"
        )
    });
    let changed = named(&look.changed, &|it| {
        format!(
            "these files have changed while the environment ran, and programs of this host run them: {it}"
        )
    });
    let part = (!look.is_whole).then(|| {
        "not all of the project was looked at: it has too many files, or some that cannot be read".to_owned()
    });
    let texts = [repositories, operations, indexes, changed, part].into_iter().flatten();
    texts.map(|it| shown(&format!("boxlaunch: {it}")) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_line_of_limited_length() {
        let list = |count: usize, path: &str| {
            (0..count).map(|it| (format!("{path}{it}"), String::new())).collect()
        };
        let found =
            Found { repositories: list(11, "sub/r"), operations: list(1, ".git: a rebase") };
        let look = Look {
            found: found.clone(),
            indexes: list(1, ".git/index"),
            changed: list(1, &"Makefile/".repeat(100)),
            is_whole: false,
        };
        assert_eq!(lines(&Look { is_whole: true, ..Look::default() }, &found), [""; 0]);
        let lines = lines(&look, &Found { operations: list(0, ""), ..Found::default() });
        assert!(lines.iter().all(|it| it.len() < 2000), "{lines:?}");
        insta::assert_snapshot!(lines.concat().replace(&"Makefile/".repeat(22), "LONG"), @"
        boxlaunch: the box may have made or changed git repositories in the project: sub/r0, sub/r1, sub/r10, sub/r2, sub/r3, sub/r4, sub/r5, sub/r6 and 3 more; git starts what their `config` and `hooks` name, also for `git status` in the project if one is a submodule; if they are yours: `boxlaunch down && boxlaunch up --accept`
        boxlaunch: the box may have begun or changed an operation of git, whose next step could run its commands: .git: a rebase0; look at it with `git status` before you continue it
        boxlaunch: the box has forged an index of git, with files outside of the project, to which git would write: .git/index0; remove it, and make a new one with `git reset`
        boxlaunch: these files have changed while the environment ran, and programs of this host run them: LONGMa…
        boxlaunch: not all of the project was looked at: it has too many files, or some that cannot be read
        ");
        assert_eq!(self::lines(&Look { is_whole: true, ..look }, &found).len(), 2);
    }
}
