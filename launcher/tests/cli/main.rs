//! Tests of the command line of `boxlaunch` that need no VM.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod canary;
mod check_command;
mod complete;
mod doctor;
mod environment;
mod errors;
mod follow;
mod foreign;
mod global;
mod hostile;
mod inspect;
mod links;
mod metrics;
mod mistakes;
mod output;
mod parts;
mod prune;
mod refusal;
mod removed;
mod secrets;
mod shares;
mod skills;
mod snapshot;
mod stored;
mod task;
mod terminal;
mod update;
mod verify;
mod volume;

use std::path::Path;
use std::process::{Command, Stdio};

use box_contract::BoxConfig;
use boxlaunch::boxes::Record;
use boxlaunch::host::kvm::DEVICE;
use boxlaunch::host::memory::Memory;
use tempfile::TempDir;
use testkit::TestBox;

/// A box, and a state directory that is empty at first.
struct Scene {
    made: TestBox,
    state: TempDir,
}

/// The output and the exit code of a program. The exit code is `None` if a signal ended the program.
#[derive(Debug, PartialEq, Eq)]
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Scene {
    fn new(config: &BoxConfig) -> Self {
        Self { made: TestBox::new(config), state: tempfile::tempdir().unwrap() }
    }

    /// Returns the command `boxlaunch ARGS BOX`, whose output is captured.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = boxlaunch(args);
        command.arg(self.made.path()).env("BOXLAUNCH_STATE", self.state.path());
        command
    }

    /// Stores the result that KVM works on this host, so that a run does not fail before it checks the box.
    fn trust_kvm(&self) {
        Memory::new(self.state.path(), Path::new(DEVICE)).note(&Ok(()));
    }

    fn run(&self, args: &[&str]) -> Ended {
        ended(self.command(args))
    }

    /// Runs `boxlaunch ARGS BOX -- true`.
    fn run_true(&self, args: &[&str]) -> Ended {
        let mut command = self.command(args);
        command.args(["--", "true"]);
        ended(command)
    }
}

fn boxlaunch(args: &[&str]) -> Command {
    // Under nohup(1), the tests ignore SIGHUP, and child processes inherit that. `--default-signal` reverts it.
    let mut command = Command::new("env");
    command.args(["--default-signal", env!("CARGO_BIN_EXE_boxlaunch")]);
    // Hides the store of the developer from the tests.
    command.env("BOXBUILD_STORE", "/no/store");
    command.args(args);
    piped(command)
}

fn piped(mut command: Command) -> Command {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs `boxlaunch ARGS` with a state directory.
fn in_state(state: &TempDir, args: &[&str]) -> Ended {
    let mut command = boxlaunch(args);
    command.env("BOXLAUNCH_STATE", state.path());
    ended(command)
}

/// Returns the error of a command that ends with `code`, and prints nothing else.
#[track_caller]
fn refused(command: Command, code: i32) -> String {
    let Ended { code: ended, stdout, stderr } = ended(command);
    assert_eq!((ended, stdout.as_str()), (Some(code), ""), "{stderr}");
    stderr
}

/// Returns a new record of a box.
fn record(made: &TestBox) -> Record {
    let opened = boxlaunch::opened::open(made.path()).unwrap();
    Record::new(&opened, opened.plan().vm, Path::new("/none"))
}

fn ended(mut command: Command) -> Ended {
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}
