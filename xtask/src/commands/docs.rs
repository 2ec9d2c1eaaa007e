//! `cargo xtask docs`: writes the documents that `boxbuild schema` prints.
//!
//! It runs the program and does not link the language, so that xtask, which is compiled before anything
//! else, has few dependencies.

use std::fs;
use std::process::ExitCode;

use testkit::{KitError, Workspace, program};

use super::Outcome;
use crate::say;

pub(crate) fn run() -> Outcome {
    let workspace = Workspace::find();
    for (name, arguments) in [
        ("docs/boxfile.md", &["schema", "--reference"][..]),
        ("docs/boxfile.schema.json", &["schema"]),
    ] {
        let mut boxbuild = workspace.cargo();
        boxbuild.args(["run", "--quiet", "--package", "boxbuild", "--"]).args(arguments);
        let text = say::step(name, || program::run(&mut boxbuild))?;
        let path = workspace.path(name);
        fs::write(&path, text).map_err(|source| KitError::File { what: "write", path, source })?;
    }
    Ok(ExitCode::SUCCESS)
}
