//! Runs the program `boxbuild export`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use testbed::{Artefacts, Workspace};

/// Builds `boxbuild` once, and returns its path.
fn boxbuild() -> &'static Path {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        // Builds all programs together: a separate build would compile the dependencies again with other features.
        Artefacts::build(&Workspace::find()).unwrap().boxbuild
    });
    &PROGRAM
}

/// Returns a `boxbuild export` command in a directory, with an empty environment and this umask.
pub(crate) fn under_umask(directory: &Path, umask: &str, args: &[&str]) -> Command {
    shell(directory, &format!("umask {umask}; exec \"$0\" export \"$@\""), args)
}

/// Returns a shell command that runs `script` in a directory, with `boxbuild` as `$0`.
pub(crate) fn shell(directory: &Path, script: &str, args: &[&str]) -> Command {
    let mut shell = Command::new("sh");
    shell.current_dir(directory).env_clear().arg("-c").arg(script);
    shell.arg(boxbuild()).args(args);
    shell
}

/// Runs `boxbuild export` in a directory.
pub(crate) fn export(directory: &Path, args: &[&str]) -> Output {
    under_umask(directory, "022", args).output().unwrap()
}

/// Runs `boxbuild export`, which must succeed, and returns its stdout.
pub(crate) fn exported(directory: &Path, args: &[&str]) -> String {
    let output = export(directory, args);
    assert!(output.status.success(), "{}", stderr_text(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the standard error of a command.
pub(crate) fn stderr_text(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
