//! Runs `boxbuild build` under `strace`, which records, delays or fails its system calls, or kills the build at one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use testbed::prerequisites::{Package, packages};

use crate::checkout::Checkout;

/// Returns a command that builds the box of a checkout with one thread.
pub(crate) fn build(checkout: &Checkout) -> Command {
    let mut build = checkout.command();
    build.args(["--jobs", "1"]);
    build
}

/// Returns a command that runs `command` under `strace` with these options.
fn traced(command: &Command, options: &[&str]) -> Command {
    packages(&[Package::Strace], &mut |line| println!("{line}")).unwrap();
    let mut strace = Command::new("strace");
    strace.current_dir(command.get_current_dir().unwrap()).env_clear();
    strace.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    strace.args(["-f", "-qq", "-y", "-s", "256", "-e", "signal=none"]).args(options);
    strace.arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    strace
}

/// Returns a command that builds the box of a checkout with changed calls of one system call. `inject` is the value of
/// `strace -e inject=`, such as `fsync:error=EIO:when=1`.
pub(crate) fn injected(checkout: &Checkout, inject: &str) -> Command {
    injected_into(&build(checkout), inject)
}

/// Returns a command that runs `command` with changed calls of one system call, as [`injected`] does.
pub(crate) fn injected_into(command: &Command, inject: &str) -> Command {
    let (name, _) = inject.split_once(':').unwrap();
    let (trace, inject) = (format!("trace={name}"), format!("inject={inject}"));
    traced(command, &["-o", "/dev/null", "-e", &trace, "-e", &inject])
}

/// Runs a command, which must succeed, and returns its calls of the system calls `names`, in their order.
pub(crate) fn calls(command: &Command, names: &[&str]) -> Vec<Call> {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let trace = format!("trace={}", names.join(","));
    let output = traced(command, &["-o", log.to_str().unwrap(), "-e", &trace]).output().unwrap();
    assert_success(&output);
    read_log(&fs::read_to_string(log).unwrap())
}

pub(crate) fn assert_success(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A system call that has returned.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) thread: String,
    pub(crate) name: String,
    /// The arguments as `strace` writes them.
    pub(crate) arguments: String,
    /// Whether the call succeeded.
    pub(crate) ok: bool,
}

/// Parses a log of `strace`. A call during which another thread makes one has two lines.
fn read_log(log: &str) -> Vec<Call> {
    let mut started = BTreeMap::new();
    let mut calls = Vec::new();
    for line in log.lines() {
        let (thread, rest) = line.split_once(' ').unwrap();
        let rest = rest.trim_start();
        if let Some(start) = rest.strip_suffix(" <unfinished ...>") {
            started.insert(thread.to_owned(), start.to_owned());
        } else if rest.starts_with("<... ") {
            let (_, end) = rest.split_once(" resumed>").unwrap();
            calls.push(call(thread, &(started.remove(thread).unwrap() + end)));
        } else {
            calls.push(call(thread, rest));
        }
    }
    calls
}

fn call(thread: &str, text: &str) -> Call {
    let (name, rest) = text.split_once('(').unwrap_or_else(|| panic!("{text}"));
    let (arguments, result) = rest.rsplit_once(" = ").unwrap_or_else(|| panic!("{text}"));
    let arguments = arguments.trim_end().trim_end_matches(')').to_owned();
    let ok = !result.starts_with('-');
    Call { thread: thread.to_owned(), name: name.to_owned(), arguments, ok }
}

/// Returns the paths of all entries below a directory.
pub(crate) fn everything(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        found.push(entry.path());
        if entry.file_type().unwrap().is_dir() {
            found.extend(everything(&entry.path()));
        }
    }
    found
}

/// Returns the drafts of files and directories below a directory, whose names begin with `.boxbuild-`.
pub(crate) fn leftovers(directory: &Path) -> Vec<PathBuf> {
    let mut found = everything(directory);
    let is_draft = |name: &str| name.starts_with(".boxbuild-");
    found.retain(|path| path.file_name().and_then(|it| it.to_str()).is_some_and(is_draft));
    found
}
