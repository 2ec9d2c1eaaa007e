//! Runs boxlaunch with limits of time and memory, and traces which files it changes. The VMM process is not traced: it has a
//! separate root directory, which the tests of the jail examine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use testbed::prerequisites::{Package, packages};

use crate::{Ended, Scene, ended, piped};

/// The time limit of a command, in seconds. A command needs less than one second.
const SECONDS: &str = "30";
/// The limit of a command's address space, in KiB. Without it, a command that reads `/dev/zero` would use up the memory of this
/// host.
const ADDRESS_SPACE: &str = "4194304";
/// The exit codes of timeout(1) if the command exceeded the time limit.
const TIMED_OUT: [i32; 2] = [124, 137];
/// The system calls that have a path as an argument and can change the file at that path.
const CHANGES: &str = "trace=open,openat,openat2,creat,mkdir,mkdirat,mknod,mknodat,link,linkat,\
     symlink,symlinkat,rename,renameat,renameat2,unlink,unlinkat,rmdir,truncate,chmod,fchmodat,\
     chown,lchown,fchownat,setxattr,lsetxattr,utimensat,mount,bind";
/// The beginnings of the paths outside of the state to which boxlaunch may write: devices, its files in `/proc` for starting a
/// process in a namespace, and the control groups of root.
const OWN: [&str; 5] = ["/dev/kvm", "/dev/null", "/proc/self/", "/sys/fs/cgroup/", "/dev/tty"];

/// The result of a command on a hostile box.
pub(super) struct Outcome {
    pub(super) ended: Ended,
    /// The system calls, as strace(1) prints them, that changed a file outside of the state.
    foreign: Vec<String>,
    what: String,
}

/// Runs `boxlaunch ARGS BOX` for a user whose state, home, runtime and temporary directories are the scene's state directory.
pub(super) fn run(scene: &Scene, name: &str, args: &[&str]) -> Outcome {
    packages(&[Package::Strace], &mut |_| {}).unwrap();
    let (state, log) = (scene.state.path(), scene.state.path().join("calls"));
    let mut command = Command::new("timeout");
    command.args(["--kill-after=1", SECONDS, "sh", "-c", "ulimit -v $0; exec \"$@\""]);
    // Without `-f`, strace(1) traces only the main thread. No other thread of boxlaunch changes files.
    command.args([ADDRESS_SPACE, "strace", "-y", "-qq", "-s", "4096", "-e", CHANGES, "-o"]);
    command.arg(&log).arg(env!("CARGO_BIN_EXE_boxlaunch")).args(args).arg(scene.made.path());
    for variable in ["BOXLAUNCH_STATE", "HOME", "XDG_RUNTIME_DIR", "TMPDIR"] {
        command.env(variable, state);
    }
    let ended = ended(piped(command));
    let what = format!("{name}: {args:?}: {ended:?}");
    Outcome { ended, foreign: foreign(&log, state), what }
}

impl Outcome {
    /// Panics if the command exceeded the time limit, was ended by a signal, changed a file outside of the state, printed
    /// something that controls a terminal, or did not print exactly one error for a failure.
    pub(super) fn check(&self) {
        let Self { ended, foreign, what } = self;
        let code = ended.code.unwrap_or_else(|| panic!("{what}"));
        assert!(!TIMED_OUT.contains(&code), "it took too long: {what}");
        assert!(matches!(code, 0 | 1 | 5), "{what}");
        assert!(foreign.is_empty(), "{what} changed {foreign:#?}");
        for text in [&ended.stdout, &ended.stderr] {
            assert!(text.chars().all(is_harmless), "a terminal obeys {what}");
        }
        let errors = ended.stderr.lines().filter(|line| line.starts_with("error:")).count();
        let in_json = ended.stdout.starts_with("{\"errors\":[{");
        assert_eq!(errors + usize::from(in_json), usize::from(code != 0), "{what}");
    }
}

/// Returns whether a character does not control a terminal: it is a line feed, or neither a control character nor one that
/// reverses text.
fn is_harmless(c: char) -> bool {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c == '\n' || !(c.is_control() || turns)
}

/// Returns the system calls in a log of strace(1) that changed a file outside of `state` and [`OWN`].
fn foreign(log: &Path, state: &Path) -> Vec<String> {
    let text = fs::read(log).unwrap();
    let text = String::from_utf8_lossy(&text);
    let changes = text.lines().filter(|line| changes(line));
    changes.filter(|line| !is_own(line, state)).map(str::to_owned).collect()
}

/// Returns whether a system call succeeded, and has changed a file or opened it for writing.
fn changes(line: &str) -> bool {
    let only_opens = line.starts_with("open");
    let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"].iter().any(|it| line.contains(it));
    !line.starts_with("---")
        && !line.starts_with("+++")
        && !line.contains(" = -1 ")
        && (writes || !only_opens)
}

fn is_own(line: &str, state: &Path) -> bool {
    let names = names(line);
    let own = |name: &PathBuf| {
        name.starts_with(state) || OWN.iter().any(|own| name.to_string_lossy().starts_with(own))
    };
    !names.is_empty() && names.iter().all(own)
}

/// Returns the paths in a system call. A relative path is joined to the directory before it, which `strace -y` prints as
/// `3</directory>`.
fn names(line: &str) -> Vec<PathBuf> {
    let mut pieces = line.split('"');
    let mut names = Vec::new();
    while let (Some(before), Some(name)) = (pieces.next(), pieces.next()) {
        let directory = before.rsplit_once('<').and_then(|(_, rest)| rest.split_once('>'));
        names.push(Path::new(directory.map_or("", |(directory, _)| directory)).join(name));
    }
    names
}
