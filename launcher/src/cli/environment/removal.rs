//! `boxlaunch rm` of an environment: what is lost with it, and `--all-data`.

use std::path::Path;

use boxlaunch::boxes::{Boxes, Record};
use boxlaunch::mounts::volumes::Volumes;
use boxlaunch::project::left::Seen;
use boxlaunch::project::volume_prefix;
use safe_text::shown;

use super::Environment;

use crate::cli::error::{Failure, usage};
use crate::cli::terminal::notice;

/// Refuses to remove an environment without `--all-data`, and says what would be lost.
pub(in crate::cli) fn check_kept(state: &Path, name: &str, all_data: bool) -> Result<(), Failure> {
    let record = Boxes::new(state).find(name).ok().filter(|it| it.project.is_some());
    let Some(record) = record.filter(|_| !all_data) else { return Ok(()) };
    let message = format!("{name} is the environment of a project: {}", lost(state, &record)?);
    let help = format!(
        "`boxlaunch down` stops it; `boxlaunch reset` empties its root; `boxlaunch rm --all-data {name}` removes all of that"
    );
    Err(usage(&shown(&message), &help))
}

/// Describes what is lost with an environment, and what is not.
fn lost(state: &Path, record: &Record) -> Result<String, Failure> {
    let volumes = match of_environment(state, &record.name)?.as_slice() {
        [] => String::new(),
        names => format!(", and the volumes {}", names.join(", ")),
    };
    let project = record.project.as_deref().unwrap_or(Path::new("")).display();
    Ok(format!("what was installed in it would be lost{volumes}; {project} would stay"))
}

/// Returns the volumes that boxes of an environment have declared.
fn of_environment(state: &Path, name: &str) -> Result<Vec<String>, Failure> {
    let (all, _) = Volumes::new(state).all()?;
    let start = volume_prefix(name);
    Ok(all.into_iter().map(|it| it.name).filter(|it| it.starts_with(&start)).collect())
}

/// Removes the volumes of an environment that was removed, and what is known of its project.
pub(in crate::cli) fn remove_data(state: &Path, record: &Record) -> Result<(), Failure> {
    if let Some(environment) = Environment::of(state, record) {
        environment.tell();
    }
    Seen::remove(state, &record.name);
    for name in of_environment(state, &record.name)? {
        Volumes::new(state).remove(&name)?;
        notice(&format!("boxlaunch: removed the volume {name}\n"));
    }
    Ok(())
}
