//! The walk through a project. It follows no link, even if a box that runs replaces a directory with one, and it ends: the box decides
//! how many files there are.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use host_fs::read::{Links, open_regular_at, read_open_prefix};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, open, openat2, statat};
use safe_text::shell_path;

use super::{Look, code};
use crate::project::git::{GIT, is_bare, is_git};

/// How many entries are looked at. A large repository with its packages has a tenth.
const MAX_ENTRIES: u64 = 1_000_000;
/// How many bytes of files are read.
const MAX_READ: u64 = 256 << 20;
/// How many bytes the paths of a [`Look`] have together.
const MAX_PATHS: usize = 1 << 20;

/// A walk in progress.
#[derive(Debug)]
pub(super) struct Walk {
    root: OwnedFd,
    /// The path of the root, to which a repository may refer by an absolute path.
    pub(super) path: PathBuf,
    /// The path of the root in what is found: empty for a project.
    shown: PathBuf,
    /// In seconds and nanoseconds since 1970.
    since: Option<(i64, i64)>,
    /// How much more may be looked at.
    entries: u64,
    bytes: u64,
    paths: usize,
    pub(super) look: Look,
}

/// The entries of a directory, sorted by their names.
pub(super) type Entries = Vec<(OsString, FileType)>;

impl Walk {
    /// Begins a walk at `path`, whose paths begin with `shown`.
    pub(super) fn of(path: &Path, shown: &Path, since: Option<SystemTime>) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let root = open(path, flags, Mode::empty())?;
        let since = since.and_then(|it| it.duration_since(UNIX_EPOCH).ok());
        let since = since
            .map(|it| (i64::try_from(it.as_secs()).unwrap_or(i64::MAX), it.subsec_nanos().into()));
        let look = Look { is_whole: true, ..Look::default() };
        let (entries, bytes, paths) = (MAX_ENTRIES, MAX_READ, MAX_PATHS);
        let (path, shown) = (path.to_owned(), shown.to_owned());
        Ok(Self { root, path, shown, since, entries, bytes, paths, look })
    }

    /// Limits the walk to fewer entries.
    #[cfg(test)]
    pub(super) fn at_most(self, entries: u64) -> Self {
        Self { entries, ..self }
    }

    pub(super) fn root(&self) -> &OwnedFd {
        &self.root
    }

    /// Looks at the whole project.
    pub(super) fn project(&mut self) {
        let mut left = vec![PathBuf::new()];
        while let Some(directory) = left.pop() {
            let entries = self.entries(&directory);
            if is_bare(|name| entries.iter().any(|(it, _)| it == name)) {
                self.repository(&directory);
            }
            for (name, kind) in entries {
                let path = directory.join(&name);
                if path == Path::new(GIT) {
                    self.own(&path, kind);
                } else if is_git(&name) {
                    self.repository(&path);
                } else if kind.is_dir() {
                    left.push(path);
                } else {
                    self.file(&path);
                }
            }
        }
    }

    /// Looks at the repository of the project. A start protects it, so only whether it is there counts, and what is new in it.
    fn own(&mut self, path: &Path, kind: FileType) {
        let project = self.word(Path::new(""));
        self.add(|look| &mut look.found.repositories, project, String::new());
        if kind.is_dir() {
            self.inside(path);
        }
    }

    /// Records a file that programs of the host run, if it has changed.
    fn file(&mut self, path: &Path) {
        let Some(since) = self.since else { return };
        let Some(code) = code::of(path) else { return };
        let code = self.word(code);
        if self.look.changed.contains_key(&code) {
            return;
        }
        let found = statat(&self.root, path, AtFlags::SYMLINK_NOFOLLOW);
        // The box can set the time of a change of the content, and not this one.
        if found.is_ok_and(|it| (it.st_ctime, it.st_ctime_nsec.cast_signed()) >= since) {
            self.add(|look| &mut look.changed, code, String::new());
        }
    }

    /// Adds a path to one of the lists, with a digest. Without room for it, the look is not whole.
    pub(super) fn add(&mut self, list: super::List, path: String, digest: String) {
        match self.paths.checked_sub(path.len()) {
            Some(left) => {
                self.paths = left;
                list(&mut self.look).insert(path, digest);
            }
            None => self.look.is_whole = false,
        }
    }

    /// Returns the entries of a directory. If that cannot be read, or there were too many before, the look is not whole.
    pub(super) fn entries(&mut self, directory: &Path) -> Entries {
        let entries = self.list(directory);
        self.look.is_whole &= entries.is_ok();
        entries.unwrap_or_default()
    }

    fn list(&mut self, directory: &Path) -> io::Result<Entries> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let rule = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let opened = openat2(&self.root, here(directory), flags, Mode::empty(), rule)?;
        let mut entries = Entries::new();
        for entry in Dir::read_from(&opened)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            let left = self.entries.checked_sub(1);
            self.entries = left.ok_or_else(|| io::Error::from(io::ErrorKind::FileTooLarge))?;
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let found = statat(&opened, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
                    FileType::from_raw_mode(found.st_mode)
                }
                kind => kind,
            };
            entries.push((OsString::from_vec(name.to_vec()), kind));
        }
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(entries)
    }

    /// Returns the content of a file. If it cannot be read as a whole, the look is not whole.
    pub(super) fn content(&mut self, path: &Path) -> Vec<u8> {
        let opened = open_regular_at(&self.root, path, Links::RefuseAll).ok();
        let text = opened.and_then(|it| read_open_prefix(&it, self.bytes).ok());
        let read = text.as_ref().map_or(0, |it| it.len() as u64);
        self.bytes -= read;
        self.look.is_whole &= text.is_some() && self.bytes > 0;
        text.unwrap_or_default()
    }

    /// Returns the kind of an entry.
    pub(super) fn kind(&self, path: &Path) -> Option<FileType> {
        let found = statat(&self.root, here(path), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(FileType::from_raw_mode(found.st_mode))
    }

    /// Returns a path as a word for a shell.
    pub(super) fn word(&self, path: &Path) -> String {
        // The components leave out the slash that an empty path adds.
        shell_path(here(&self.shown.join(path).components().collect::<PathBuf>()))
    }
}

/// Returns a relative path that the kernel accepts: `.` for the project itself.
fn here(path: &Path) -> &Path {
    if path == Path::new("") { Path::new(".") } else { path }
}
