//! Watching which files a program names to the kernel.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use testbed::prerequisites::{Package, packages};

/// Returns a command that runs `program` and writes each system call that names a file to `log`.
pub(crate) fn watched(program: &str, log: &Path) -> Command {
    packages(&[Package::Strace], &mut |line| println!("{line}")).unwrap();
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-s", "4096", "-e", "trace=%file", "-o"]);
    command.arg(log).arg(program);
    // What cargo sets here, the loader looks through for each library.
    command.env_remove("LD_LIBRARY_PATH");
    command
}

/// Returns every text that a system call of a log was given, which holds the names of all files.
pub(crate) fn named(log: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(log).unwrap();
    // Of the call that starts the program, only the program is a file's name.
    let calls = text.lines().map(|line| line.split_once(", [").map_or(line, |(call, _)| call));
    calls.flat_map(|line| line.split('"').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// Returns all that is in a directory: each path with what it is, and when it was changed.
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
