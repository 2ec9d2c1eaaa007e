//! The environment of the current directory: what a command means that names no box, or `.`.

use std::env;
use std::path::PathBuf;

use box_contract::ErrorCode;
use boxlaunch::boxes::{Boxes, Record};
use host_fs::OsError;
use safe_text::{shell_word, shown};

use crate::cli::error::Failure;

/// The name that means the environment of the current directory.
const HERE: &str = ".";

/// Returns the environment of the current directory or of a directory above it.
pub(super) fn around(boxes: &Boxes) -> Result<Option<Record>, Failure> {
    Ok(boxes.environment_around(&current()?)?)
}

fn current() -> Result<PathBuf, OsError> {
    env::current_dir().map_err(OsError::system("find the current directory"))
}

/// Returns the name of a box: `name`, or for `.` and without a name that of the environment of the current directory.
pub(in crate::cli) fn named(boxes: &Boxes, name: Option<&str>) -> Result<String, Failure> {
    if let Some(name) = name.filter(|it| *it != HERE) {
        return Ok(name.to_owned());
    }
    let found = around(boxes)?.map(|it| it.name);
    found.ok_or_else(|| {
        let here = current().map(|it| it.display().to_string()).unwrap_or_default();
        let message = format!("{here} is in no project that has an environment");
        let help = "`boxlaunch up` starts one; or name a box: `boxlaunch ps -a` lists them";
        Failure::new((ErrorCode::BoxNotFound, help), shown(&message))
    })
}

/// Returns the names of boxes, each as [`named`] does. Without any, the environment of the current directory.
pub(in crate::cli) fn names_of(boxes: &Boxes, names: &[String]) -> Result<Vec<String>, Failure> {
    if names.is_empty() {
        return Ok(vec![named(boxes, None)?]);
    }
    names.iter().map(|it| named(boxes, Some(it))).collect()
}

/// Returns the record of a box, found by [`named`]. If no box has this name, and the current directory has an environment, the help says
/// how the command is written for that one. `command` has the word `.` instead of a name.
pub(in crate::cli) fn record_or_tip(
    boxes: &Boxes,
    name: Option<&str>,
    command: impl FnOnce(&str) -> String,
) -> Result<Record, Failure> {
    let error = match record_at(boxes, name) {
        Err(error) if error.has(ErrorCode::BoxNotFound) => error,
        found => return found,
    };
    let Some((word, environment)) = name.zip(around(boxes)?.map(|it| it.name)) else {
        return Err(error);
    };
    let help = format!(
        "`boxlaunch ps -a` lists all boxes; for {environment}, the environment of this project: `{}`",
        command(&shell_word(word))
    );
    Err(Failure::new((ErrorCode::BoxNotFound, shown(&help)), error.message()))
}

/// Returns the record of a box, found by [`named`].
pub(in crate::cli) fn record_at(boxes: &Boxes, name: Option<&str>) -> Result<Record, Failure> {
    Ok(boxes.find(&named(boxes, name)?)?)
}
