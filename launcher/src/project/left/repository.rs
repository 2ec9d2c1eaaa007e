//! A repository in a project: what in it lets git start programs, and which of its operations are in progress.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use box_digest::{Digest, Hasher, Sha256};
use host_fs::plain;
use rustix::fs::{FileType, readlinkat};

use super::walk::{Entries, Walk};
use crate::project::git::{COMMON, HOOKS, KEPT, OWN, is_bare, is_git, is_named, target};
use crate::project::index::{Index, is_index};

/// The entries of a repository that show an operation in progress (`wt_status_get_state` of git). A rebase and the others run commands at
/// their next step, such as `exec` lines. `MERGE_RR` lists files that the next commit records.
const OPERATIONS: [(&str, &str); 8] = [
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("sequencer", "a cherry-pick or a revert"),
    ("BISECT_START", "a bisect"),
    ("MERGE_RR", "a conflict to record"),
];

type Hash = Hasher<Sha256>;

impl Walk {
    /// Records a repository that is not that of the project: `.git`, which may be a file or a link, or a directory that has the content
    /// of one.
    pub(super) fn repository(&mut self, path: &Path) {
        let mut hash = Hash::default();
        self.hash(path, &mut hash);
        if self.kind(path).is_some_and(FileType::is_dir) {
            for (special, kind) in self.inside(path) {
                self.special(&special, Some(kind), &mut hash);
            }
        }
        let is_inner = path.file_name().is_some_and(is_git);
        let place = self.word(if is_inner { path.parent().unwrap_or(path) } else { path });
        self.record(place, &hash);
    }

    fn record(&mut self, place: String, hash: &Hash) {
        let digest: Digest = hash.digest();
        self.add(|look| &mut look.found.repositories, place, digest.hex());
    }

    /// Looks at all files of a repository: for operations, indexes, and the repositories in it, such as those of submodules and worktrees.
    /// Returns what is neither a file nor a directory.
    pub(super) fn inside(&mut self, repository: &Path) -> Vec<(PathBuf, FileType)> {
        let (mut specials, mut left) = (Vec::new(), vec![repository.to_owned()]);
        while let Some(directory) = left.pop() {
            let entries = self.entries(&directory);
            let inner = directory.strip_prefix(repository).unwrap_or(&directory);
            let is_named = is_named(inner);
            if directory != repository && is_repository(&entries, is_named) {
                let (mut hash, place) = (Hash::default(), self.word(&directory));
                self.hash(&directory, &mut hash);
                self.record(place, &hash);
            }
            for (name, kind) in entries {
                let path = directory.join(&name);
                if is_git(&name) {
                    self.repository(&path);
                    continue;
                }
                if !is_named {
                    self.operation(&path, &name, kind);
                    self.index(&path, &name, kind);
                }
                match kind {
                    FileType::Directory => left.push(path),
                    FileType::RegularFile => {}
                    kind => specials.push((path, kind)),
                }
            }
        }
        specials
    }

    fn operation(&mut self, path: &Path, name: &OsStr, kind: FileType) {
        let Some((_, what)) = OPERATIONS.iter().find(|(it, _)| name == *it) else { return };
        let mut hash = Hash::default();
        let files = match kind {
            FileType::Directory => {
                self.entries(path).into_iter().map(|(it, _)| path.join(it)).collect()
            }
            _ => vec![path.to_owned()],
        };
        // git leaves an empty list behind.
        let mut is_empty = !kind.is_dir();
        for file in files {
            if self.kind(&file) == Some(FileType::RegularFile) {
                let text = self.content(&file);
                is_empty &= text.is_empty();
                part(&mut hash, &file, b"file", &text);
            }
        }
        if !is_empty {
            let place = self.word(path.parent().unwrap_or(path));
            let digest: Digest = hash.digest();
            self.add(|look| &mut look.found.operations, format!("{place}: {what}"), digest.hex());
        }
    }

    /// Records an index with an entry that git would write to, or read from, outside of the files of the project.
    fn index(&mut self, path: &Path, name: &OsStr, kind: FileType) {
        if kind.is_file() && is_index(name) {
            let text = self.content(path);
            match Index::of(&text) {
                Index::Fine => {}
                Index::Unreadable => self.look.is_whole = false,
                Index::Stray(_) => {
                    let index = self.word(path);
                    self.add(|look| &mut look.indexes, index, String::new());
                }
            }
        }
    }

    /// Hashes what lets git start programs in the repository at `path`.
    fn hash(&mut self, path: &Path, hash: &mut Hash) {
        match self.kind(path) {
            Some(FileType::Directory) => self.hash_directory(path, hash),
            Some(FileType::RegularFile) => {
                let text = self.content(path);
                part(hash, path, b"file", &text);
                self.hash_other(path, target(&text, b"gitdir:"), hash);
            }
            kind => {
                let target = self.special(path, kind, hash);
                self.hash_other(path, Path::new(OsStr::from_bytes(&target)), hash);
            }
        }
    }

    /// Hashes a directory to which the file or link `from` leads, if it is in the project. The host does not resolve the path.
    fn hash_other(&mut self, from: &Path, to: &Path, hash: &mut Hash) {
        let parent = from.parent().unwrap_or(from);
        let other = plain(&self.path.join(parent).join(to));
        let Ok(other) = other.strip_prefix(&self.path).map(Path::to_owned) else { return };
        if self.kind(&other).is_some_and(FileType::is_dir) && other != parent {
            self.hash_directory(&other, hash);
        }
    }

    fn hash_directory(&mut self, directory: &Path, hash: &mut Hash) {
        for (name, kind) in self.entries(directory) {
            let path = directory.join(&name);
            match kind {
                _ if KEPT.iter().all(|it| name != *it) => {}
                FileType::Directory if name == HOOKS => self.hash_hooks(&path, hash),
                FileType::Directory => {}
                FileType::RegularFile => {
                    let text = self.content(&path);
                    // A start makes these, so that a box cannot make them.
                    if !text.is_empty() && text != OWN.as_bytes() {
                        part(hash, &path, b"file", &text);
                        if name == COMMON {
                            self.hash_common(&path, &text, hash);
                        }
                    }
                }
                kind => drop(self.special(&path, Some(kind), hash)),
            }
        }
    }

    /// Hashes the settings and hooks of the directory that the file `commondir` names.
    fn hash_common(&mut self, file: &Path, text: &[u8], hash: &mut Hash) {
        let parent = file.parent().unwrap_or(file);
        let other = plain(&self.path.join(parent).join(target(text, b"")));
        let Ok(other) = other.strip_prefix(&self.path).map(Path::to_owned) else { return };
        // The project's own repository is protected.
        if is_git(other.as_os_str()) || other == Path::new("") {
            return;
        }
        for name in KEPT.iter().filter(|it| **it != HOOKS) {
            let path = other.join(name);
            if self.kind(&path) == Some(FileType::RegularFile) {
                let text = self.content(&path);
                part(hash, &path, b"file", &text);
            }
        }
        self.hash_hooks(&other.join(HOOKS), hash);
    }

    fn hash_hooks(&mut self, hooks: &Path, hash: &mut Hash) {
        if self.kind(hooks) != Some(FileType::Directory) {
            return;
        }
        let mut left = vec![hooks.to_owned()];
        while let Some(directory) = left.pop() {
            for (name, kind) in self.entries(&directory) {
                let path = directory.join(name);
                match kind {
                    FileType::Directory => left.push(path),
                    FileType::RegularFile => {
                        let text = self.content(&path);
                        part(hash, &path, b"file", &text);
                    }
                    kind => drop(self.special(&path, Some(kind), hash)),
                }
            }
        }
    }

    /// Hashes a link, pipe, socket or device: git follows the first, and waits at others. Returns the target of a link.
    fn special(&self, path: &Path, kind: Option<FileType>, hash: &mut Hash) -> Vec<u8> {
        let target = readlinkat(self.root(), path, Vec::new()).map(CString::into_bytes);
        let target = target.unwrap_or_default();
        let kind = kind.map_or(0, |it| it.as_raw_mode());
        part(hash, path, &kind.to_le_bytes(), &target);
        target
    }
}

/// Returns whether a directory in a repository is a repository, or would become one. Among branches and objects, `is_named`, a name alone
/// says nothing.
fn is_repository(entries: &Entries, is_named: bool) -> bool {
    let has = |name: &str| entries.iter().any(|(it, _)| it == name);
    is_bare(has) || (!is_named && KEPT.iter().any(|it| has(it)))
}

/// Hashes a path, its kind and its text, each with its length.
fn part(hash: &mut Hash, path: &Path, kind: &[u8], text: &[u8]) {
    for bytes in [path.as_os_str().as_bytes(), kind, text] {
        hash.update(&(bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
}
