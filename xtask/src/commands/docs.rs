//! `cargo xtask docs`: writes the documents that `boxbuild schema` prints, and the page about isolation.
//!
//! It runs programs and does not link the language, so that xtask, which is compiled before anything
//! else, has few dependencies.

use std::fs;
use std::process::ExitCode;

use testkit::{KitError, Workspace, program};

use super::Outcome;
use crate::say;

pub(crate) fn run() -> Outcome {
    let workspace = Workspace::find();
    for (name, program_and_arguments) in [
        ("docs/boxfile.md", &["boxbuild", "--", "schema", "--reference"][..]),
        ("docs/boxfile.schema.json", &["boxbuild", "--", "schema"]),
        ("docs/isolation.md", &["box-init", "--example", "isolation"]),
    ] {
        let mut writer = workspace.cargo();
        writer.args(["run", "--quiet", "--package"]).args(program_and_arguments);
        let text = say::step(name, || program::run(&mut writer))?;
        let path = workspace.path(name);
        fs::write(&path, text).map_err(|source| KitError::File { what: "write", path, source })?;
    }
    Ok(ExitCode::SUCCESS)
}
