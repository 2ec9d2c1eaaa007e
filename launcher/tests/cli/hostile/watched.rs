//! boxlaunch under bounds of time and memory, with every file watched that it changes. Its VMM process is not watched: that
//! has a root directory of its own, and the tests of the jail.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use testbed::prerequisites::{Package, packages};

use crate::{Ended, Scene, ended, piped};

/// How long a command may take, in seconds: it needs less than one.
const SECONDS: &str = "30";
/// How much address space it may have, in KiB: without a bound, one that reads a device would end this machine.
const ADDRESS_SPACE: &str = "4194304";
/// The exit codes of timeout(1) where the time was up.
const TIMED_OUT: [i32; 2] = [124, 137];
/// The system calls that can change a file, all of which name it.
const CHANGES: &str = "trace=open,openat,openat2,creat,mkdir,mkdirat,mknod,mknodat,link,linkat,\
     symlink,symlinkat,rename,renameat,renameat2,unlink,unlinkat,rmdir,truncate,chmod,fchmodat,\
     chown,lchown,fchownat,setxattr,lsetxattr,utimensat,mount,bind";
/// Files outside of the state that boxlaunch writes to: the device, what starts a process in a namespace, and where
/// root's control groups are.
const OWN: [&str; 5] = ["/dev/kvm", "/dev/null", "/proc/self/", "/sys/fs/cgroup/", "/dev/tty"];

/// The end of a command that looked at a hostile box.
pub(super) struct Outcome {
    pub(super) ended: Ended,
    /// The calls that change a file outside of the user's state.
    foreign: Vec<String>,
    what: String,
}

/// Runs `boxlaunch ARGS BOX` as a user whose only directory is the scene's.
pub(super) fn run(scene: &Scene, name: &str, args: &[&str]) -> Outcome {
    packages(&[Package::Strace], &mut |_| {}).unwrap();
    let (state, log) = (scene.state.path(), scene.state.path().join("calls"));
    let mut command = Command::new("timeout");
    command.args(["--kill-after=1", SECONDS, "sh", "-c", "ulimit -v $0; exec \"$@\""]);
    // Without a thread of its own that writes, the first one is all of boxlaunch.
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
    /// Panics unless the command ended in time and by itself, changed nothing of others, and wrote what a terminal only
    /// shows.
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

/// Returns whether a terminal only shows a character: it is no control character, and turns no text around.
fn is_harmless(c: char) -> bool {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c == '\n' || !(c.is_control() || turns)
}

/// Returns the calls of a log that change a file elsewhere than below `state`.
fn foreign(log: &Path, state: &Path) -> Vec<String> {
    let text = fs::read(log).unwrap();
    let text = String::from_utf8_lossy(&text);
    let changes = text.lines().filter(|line| changes(line));
    changes.filter(|line| !is_own(line, state)).map(str::to_owned).collect()
}

/// Returns whether a call has changed a file, or could have done so later.
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

/// Returns the files that a call names, each below the directory that the call names it in.
fn names(line: &str) -> Vec<PathBuf> {
    let mut pieces = line.split('"');
    let mut names = Vec::new();
    while let (Some(before), Some(name)) = (pieces.next(), pieces.next()) {
        let directory = before.rsplit_once('<').and_then(|(_, rest)| rest.split_once('>'));
        names.push(Path::new(directory.map_or("", |(directory, _)| directory)).join(name));
    }
    names
}
