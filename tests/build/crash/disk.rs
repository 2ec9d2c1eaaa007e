//! A model of a disk that loses everything unflushed in a power failure: the bytes of files and, in each directory, the names
//! that were added since its last flush.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::traced::Call;

/// The system calls of the model that open, create and remove names. It also knows [`WRITES`], renames and flushes.
pub(super) const NAMES: &[&str] = &[
    "open",
    "openat",
    "creat",
    "mkdir",
    "mkdirat",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "unlink",
    "unlinkat",
    "rmdir",
];

/// The system calls that change a file's bytes: the first file in the arguments of `sendfile`, the last in those of the others.
pub(super) const WRITES: &[&str] = &[
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "copy_file_range",
    "sendfile",
    "ftruncate",
    "truncate",
    "fallocate",
];

/// The state of a file or directory that was created or changed.
#[derive(Debug, Clone, Copy)]
struct State {
    /// Whether the bytes were flushed.
    bytes: bool,
    /// Whether the name was flushed.
    name: bool,
}

/// The files and directories below `root` that were created or changed, by path.
#[derive(Debug)]
pub(super) struct Disk {
    root: PathBuf,
    states: BTreeMap<PathBuf, State>,
    /// Descriptions of the files that a power failure at some moment would have lost.
    lost: Vec<String>,
}

impl Disk {
    /// Returns the files that a power failure during or after `calls` would have lost. `before` has the paths that were on the
    /// disk before the first call.
    pub(super) fn after(before: &[PathBuf], calls: &[Call], root: &Path) -> Vec<String> {
        let flushed = State { bytes: true, name: true };
        let states = before.iter().map(|path| (path.clone(), flushed)).collect();
        let mut disk = Self { root: root.to_owned(), states, lost: Vec::new() };
        calls.iter().filter(|call| call.ok).for_each(|call| disk.apply(call));
        disk.judge(root, "at the end");
        disk.lost
    }

    fn apply(&mut self, call: &Call) {
        // Drops the written text, which could look like a file name.
        let arguments = call.arguments.split(", \"").next().unwrap_or_default();
        let is_write = WRITES.contains(&call.name.as_str());
        let paths = self.paths(if is_write { arguments } else { &call.arguments });
        let new = State { bytes: true, name: false };
        match (call.name.as_str(), paths.as_slice()) {
            ("open" | "openat" | "creat", [path]) if call.arguments.contains("O_CREAT") => {
                self.states.entry(path.clone()).or_insert(new);
            }
            ("mkdir" | "mkdirat" | "symlink" | "symlinkat", [.., path]) => {
                self.states.insert(path.clone(), new);
            }
            ("link" | "linkat", [from, to]) => {
                let bytes = self.states.get(from).is_none_or(|it| it.bytes);
                self.states.insert(to.clone(), State { bytes, ..new });
            }
            ("unlink" | "unlinkat" | "rmdir", [path]) => drop(self.take(path)),
            ("rename" | "renameat" | "renameat2", [from, to]) => {
                let (one, other) = (self.take(from), self.take(to));
                self.put(to, one);
                if call.arguments.contains("RENAME_EXCHANGE") {
                    self.put(from, other);
                }
                self.judge_named(to);
            }
            ("fsync" | "fdatasync", [path]) => self.flush(path),
            ("syncfs", _) => {
                self.states.values_mut().for_each(|it| *it = State { bytes: true, name: true });
            }
            ("sendfile", [path, ..]) => self.write(path),
            (name, [.., path]) if WRITES.contains(&name) => self.write(path),
            _ => {}
        }
    }

    fn write(&mut self, path: &Path) {
        let known = State { bytes: true, name: true };
        self.states.entry(path.to_owned()).or_insert(known).bytes = false;
    }

    /// Returns the paths below the root in a call's arguments. A path is a directory's handle and a name, a name alone, or a
    /// handle alone.
    fn paths(&self, arguments: &str) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        let mut directory: Option<PathBuf> = None;
        for argument in arguments.split(", ") {
            if let Some(name) = argument.strip_prefix('"') {
                let name = name.trim_end_matches("...").trim_end_matches('"');
                paths.push(directory.take().unwrap_or_else(|| self.root.clone()).join(name));
            } else if let Some((_, path)) = argument.split_once('<') {
                paths.extend(directory.take());
                directory = Some(path.trim_end_matches('>').into());
            }
        }
        paths.extend(directory);
        paths.retain(|path| path.starts_with(&self.root));
        paths
    }

    fn flush(&mut self, path: &Path) {
        if let Some(state) = self.states.get_mut(path) {
            state.bytes = true;
        }
        let below = self.states.iter_mut().filter(|(it, _)| it.parent() == Some(path));
        below.for_each(|(_, state)| state.name = true);
    }

    /// Removes and returns the states of `path` and of everything below it, with paths relative to `path`.
    fn take(&mut self, path: &Path) -> Vec<(PathBuf, State)> {
        let taken: Vec<_> = self.states.extract_if(.., |it, _| it.starts_with(path)).collect();
        taken
            .into_iter()
            .map(|(it, state)| (it.strip_prefix(path).unwrap().into(), state))
            .collect()
    }

    fn put(&mut self, path: &Path, taken: Vec<(PathBuf, State)>) {
        for (below, state) in taken {
            self.states.insert(path.join(below), state);
        }
        self.states.entry(path.to_owned()).or_insert(State { bytes: true, name: false }).name =
            false;
    }

    /// Records everything unflushed at and below `path`, which has just got its final name. The name itself need not be flushed
    /// yet.
    fn judge_named(&mut self, path: &Path) {
        let below = self.states.iter().filter(|(it, _)| it.starts_with(path));
        let lost = below.filter(|(it, state)| !state.bytes || !state.name && *it != path);
        let lost: Vec<_> = lost.filter(|(it, _)| !self.may_be_lost(it)).collect();
        let lost = lost.iter().map(|(it, state)| format!("{it:?} has a name, but {state:?}"));
        self.lost.extend(lost.collect::<Vec<_>>());
    }

    /// Records everything unflushed at and below `path`.
    fn judge(&mut self, path: &Path, when: &str) {
        let below = self.states.iter().filter(|(it, _)| it.starts_with(path));
        let is_flushed = |state: &State| state.bytes && state.name;
        let lost = below.filter(|(it, state)| !is_flushed(state) && !self.may_be_lost(it));
        let lost = lost.map(|(it, state)| format!("{it:?} {when}: {state:?}"));
        self.lost.extend(lost.collect::<Vec<_>>());
    }

    /// Returns whether `path` may be lost: it is data of an action, which its readers verify, or it is in a draft. Only names
    /// below the root are compared, because the root itself may be in a draft.
    fn may_be_lost(&self, path: &Path) -> bool {
        let path = path.strip_prefix(&self.root).unwrap();
        let is_draft = |name: &OsStr| name.as_encoded_bytes().starts_with(b".boxbuild-");
        path.starts_with("store/data") || path.iter().any(is_draft)
    }
}
