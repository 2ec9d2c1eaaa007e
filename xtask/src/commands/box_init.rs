//! `cargo xtask box-init`: builds PID 1 of the guest, whose digest is part of every box.

use std::process::ExitCode;

use testbed::prerequisites::musl_target;
use testbed::{Artefacts, Profile, Workspace, digest};
use tool_output::{cargo, say};

use super::Outcome;

pub(crate) fn run() -> Outcome {
    let workspace = Workspace::find();
    say::watch(|| musl_target(&mut say::note))?;
    let mut build = Artefacts::init_build(&workspace);
    say::step("compiling box-init", || cargo::run(&mut build))?;
    let program = Artefacts::locate(&workspace, Profile::Release).box_init;
    say::note(&format!("sha256:{}", digest::of_file(&program)?.hex()));
    say::result(&program.display().to_string());
    Ok(ExitCode::SUCCESS)
}
