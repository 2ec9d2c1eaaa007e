//! Records the file names in a program's system calls.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use testbed::prerequisites::{Package, packages};

/// Returns a command that runs `program` and writes each system call with a file name to `log`.
pub(crate) fn watched(program: &str, log: &Path) -> Command {
    packages(&[Package::Strace], &mut |line| println!("{line}")).unwrap();
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-s", "4096", "-e", "trace=%file", "-o"]);
    command.arg(log).arg(program);
    // The loader would search the directories that cargo puts here for each library.
    command.env_remove("LD_LIBRARY_PATH");
    command
}

/// Returns all string arguments of the system calls in `log`, which include all file names.
pub(crate) fn named(log: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(log).unwrap();
    // Drops the arguments of execve(2), which are no file names.
    let calls = text.lines().map(|line| line.split_once(", [").map_or(line, |(call, _)| call));
    calls.flat_map(|line| line.split('"').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// Returns one line for each entry below a directory: path, type, permissions, modification time and content.
pub(crate) fn everything(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let data = fs::symlink_metadata(&path).unwrap();
        let content = if data.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        let (kind, mode, time) = (data.file_type(), data.permissions(), data.modified().unwrap());
        found.push(format!("{path:?} {kind:?} {mode:?} {time:?} {content:?}"));
        if data.is_dir() {
            found.extend(everything(&path));
        }
    }
    found.sort();
    found
}
