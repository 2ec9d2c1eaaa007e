//! `cargo xtask docs`: writes the documents that are generated from the code.

use std::fs;
use std::process::ExitCode;

use testkit::{KitError, Workspace};

use super::Outcome;
use crate::say;

pub(crate) fn run() -> Outcome {
    let workspace = Workspace::find();
    for (name, text) in [
        ("docs/boxfile.md", boxfile_spec::reference()),
        ("docs/boxfile.schema.json", boxfile_spec::json_schema()),
    ] {
        let path = workspace.path(name);
        fs::write(&path, text).map_err(|source| KitError::File { what: "write", path, source })?;
        say::note(&format!("wrote {name}"));
    }
    Ok(ExitCode::SUCCESS)
}
