//! The wheel of the Python package, with the programs of the release inside. `sdk/wheel.py` writes it.

use std::path::{Path, PathBuf};
use std::process::Command;

use testbed::{Result, Workspace, program};

/// Returns the name of the wheel's file.
pub(super) fn file_name() -> String {
    let version = super::VERSION;
    format!("boxbuild-{version}-py3-none-manylinux2014_x86_64.musllinux_1_1_x86_64.whl")
}

/// Writes the wheel from an installation into a directory, and returns its path.
pub(super) fn write(workspace: &Workspace, installed: &Path, output: &Path) -> Result<PathBuf> {
    let mut python = Command::new("python3");
    python.arg(workspace.path("sdk/wheel.py")).arg(installed).arg(output);
    program::run(&mut python)?;
    Ok(output.join(file_name()))
}
