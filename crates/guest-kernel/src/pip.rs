//! Downloading the package with pip.
//!
//! `python3 -m pip` searches modules in the current directory first, so that a file `pip.py` or `json.py` of a
//! checkout would be executed. So Python starts in another directory: an empty one, or `/`. The option `-I` is no
//! alternative, because it would also hide a pip that was installed with `--user`. `-P` requires Python 3.11.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::{PACKAGE, PackageError, check};

/// Returns whether python3 with pip is installed.
pub fn has_pip() -> bool {
    run(pip(Path::new("/")).arg("--version")).is_ok_and(|output| output.status.success())
}

/// Downloads [`PACKAGE`] into `directory`, and returns the wheel's bytes. The directory must be empty, and no other user
/// may be able to write to it. There is no timeout, and pip's output is captured.
///
/// # Errors
/// [`PackageError`]: there is no pip, pip fails, or the wheel has another sha256.
pub fn download(directory: &Path) -> Result<Vec<u8>, PackageError> {
    let requirement = PACKAGE.requirement();
    let command = format!("pip download {requirement}");
    let mut pip = pip(directory);
    pip.args(["download", "--quiet", "--no-deps", "--only-binary=:all:"]);
    pip.args(["--platform", "manylinux_2_28_x86_64", "--python-version", "3.11"]);
    let output = run(pip.args(["--dest", ".", &requirement]))?;
    if !output.status.success() && !has_pip() {
        return Err(PackageError::NoPip);
    }
    if !output.status.success() {
        return Err(PackageError::Pip { command, output: last_line(&output.stderr) });
    }
    let wheel = wheel_in(directory)?.ok_or(PackageError::NoWheel { command })?;
    let bytes = fs::read(&wheel).map_err(|source| PackageError::File { path: wheel, source })?;
    check(&requirement, &bytes, PACKAGE.sha256)?;
    Ok(bytes)
}

/// Prepares a command that runs pip in a directory in which no other user can have put Python code.
fn pip(directory: &Path) -> Command {
    let mut python = Command::new("python3");
    python.current_dir(directory);
    python.args(["-m", "pip", "--disable-pip-version-check", "--no-input"]);
    python
}

fn run(command: &mut Command) -> Result<Output, PackageError> {
    command.stdin(Stdio::null()).output().map_err(|_| PackageError::NoPip)
}

/// Returns the last line of pip's standard error, which contains the reason of the failure.
fn last_line(written: &[u8]) -> String {
    let text = String::from_utf8_lossy(written);
    let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
    last.unwrap_or("it says nothing about it").trim_start_matches("ERROR: ").to_owned()
}

fn wheel_in(directory: &Path) -> Result<Option<PathBuf>, PackageError> {
    let failed = |source| PackageError::File { path: directory.to_owned(), source };
    let entries = fs::read_dir(directory).map_err(failed)?;
    let mut files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(files.find(|file| file.extension().is_some_and(|it| it == "whl")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pip_is_not_run_in_the_current_directory() {
        let scratch = Path::new("/some/scratch");
        assert_eq!(pip(scratch).get_current_dir(), Some(scratch));
    }

    #[test]
    fn an_error_of_pip_is_its_last_line() {
        let written = b"WARNING: retrying\nERROR: No matching distribution found for x==1\n\n";
        assert_eq!(last_line(written), "No matching distribution found for x==1");
        assert_eq!(last_line(b""), "it says nothing about it");
    }
}
