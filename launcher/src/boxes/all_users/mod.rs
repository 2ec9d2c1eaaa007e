//! The boxes of all users of a host, for its administrator.
//!
//! Each user has his own state directories, which no file lists. But each supervisor has the lock of its box,
//! `<state>/boxes/.locks/NAME`, open and locked. So [`AllUsers::look`] examines the open files of all processes.
//!
//! Another user may start a process with any open file, in a directory of links, pipes and endless files. So a file of
//! another user is opened without following a link in any component, it must be a regular file of the user of the process,
//! and it is read within bounds. Nothing of another user is written, locked or removed. A record that cannot be used is left
//! out, with a reason that contains none of its text.

mod process;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use host_fs::OsError;
use host_fs::read::{Links, ReadError, open_regular, read_open};
use rustix::fs::{CWD, Dir, Mode, OFlags, ResolveFlags, fstat, openat2};
use safe_text::shown;

use self::process::Lock;
use super::starts::{self, MAX_STARTS};
use super::{MAX_ENDED, MAX_RECORD, NAME, RECORD, Record, State, is_entry_name};

/// How many boxes of a user are shown.
pub const MAX_BOXES: usize = 1024;
/// How many files of a user are opened as records.
const MAX_FILES: usize = 4 * MAX_BOXES;
/// How many bytes of records of a user are read.
const MAX_BYTES: u64 = 16 << 20;
/// How many bytes of records of all users are read. With subordinate ids, a user has processes of many users.
const MAX_ALL_BYTES: u64 = 128 << 20;
/// How many entries of a directory of records are examined.
const MAX_ENTRIES: usize = 2 * (MAX_BOXES + MAX_ENDED);

/// Why something of a user is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum LeftOut {
    /// A link is in the path, or the file is no regular file.
    #[error("the record is no regular file, or a symbolic link leads to it")]
    NotRegular,
    /// The file belongs to another user than the process.
    #[error("the record belongs to another user")]
    OtherOwner,
    /// The record is longer than any that boxlaunch writes.
    #[error("the record is too long")]
    TooLong,
    /// The record does not parse, or is of another box or process.
    #[error("the record is damaged, or of another box")]
    Malformed,
    /// The operating system cannot read the record.
    #[error("the record cannot be read")]
    Unreadable,
    /// The path of the state directory cannot be printed as it is.
    #[error("the path of the state directory has control characters, or is not UTF-8")]
    OddPath,
    /// The user has more than [`MAX_BOXES`] boxes, or very long records.
    #[error("the user has more than {MAX_BOXES} boxes, or very long records")]
    TooMany,
}

impl From<ReadError> for LeftOut {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NotRegular => Self::NotRegular,
            ReadError::TooLong { .. } => Self::TooLong,
            ReadError::Io(_) => Self::Unreadable,
        }
    }
}

/// A box of a user that has not ended.
#[derive(Debug, Clone, PartialEq)]
pub struct UserBox {
    /// The user of the supervisor.
    pub uid: u32,
    /// The state directory that has the record.
    pub state: PathBuf,
    /// The record. If the user is another one, its texts are not trusted.
    pub record: Record,
}

/// All records of a state directory.
#[derive(Debug, Clone, PartialEq)]
pub struct UserState {
    /// The user of the state directory.
    pub uid: u32,
    /// The state directory.
    pub state: PathBuf,
    /// How many boxes were started: see [`Boxes::starts`](super::Boxes::starts).
    pub starts: u64,
    /// The records. If the user is another one, their texts are not trusted. A box whose supervisor was killed has ended.
    pub records: Vec<Record>,
}

/// The processes that have the lock of a box, by the name of the box. One is the supervisor. Another one may be a child of it that has
/// not executed its program yet.
type Supervisors = BTreeMap<String, BTreeSet<u32>>;

/// How much of a user was read.
#[derive(Debug, Default)]
struct Taken {
    files: usize,
    bytes: u64,
}

/// The state directories of the boxes that have not ended, of all users. Only root finds them: a supervisor hides its open files
/// from other processes, also from those of its user.
#[derive(Debug, Default)]
pub struct AllUsers {
    /// The boxes by the user and the state directory.
    states: BTreeMap<(u32, PathBuf), Supervisors>,
    taken: BTreeMap<u32, Taken>,
    left_out: BTreeMap<(u32, LeftOut), usize>,
}

impl AllUsers {
    /// Finds the locks of boxes among the open files of all processes.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn look() -> Result<Self, OsError> {
        let mut all = Self::default();
        for pid in process::all()? {
            for lock in process::locks(pid) {
                all.add(lock);
            }
        }
        Ok(all)
    }

    /// Adds a state directory of this user, even if none of its boxes runs. Links in its path are resolved.
    pub fn include(&mut self, uid: u32, state: &Path) {
        if let Ok(state) = state.canonicalize() {
            self.states.entry((uid, state)).or_default();
        }
    }

    /// Returns the users with something that was left out, the reason, and how often.
    pub fn left_out(&self) -> impl Iterator<Item = (u32, LeftOut, usize)> {
        self.left_out.iter().map(|((uid, reason), count)| (*uid, *reason, *count))
    }

    fn add(&mut self, lock: Lock) {
        if lock.state.to_str().is_none_or(|it| shown(it) != it) {
            return self.leave_out(lock.uid, LeftOut::OddPath);
        }
        let count = self.states.iter().filter(|((uid, _), _)| *uid == lock.uid);
        if count.map(|(_, boxes)| boxes.len()).sum::<usize>() >= MAX_BOXES {
            return self.leave_out(lock.uid, LeftOut::TooMany);
        }
        let boxes = self.states.entry((lock.uid, lock.state)).or_default();
        boxes.entry(lock.name).or_default().insert(lock.pid);
    }

    fn leave_out(&mut self, uid: u32, reason: LeftOut) {
        let count = self.left_out.entry((uid, reason)).or_default();
        *count = count.saturating_add(1);
    }

    /// Returns the boxes that have not ended: by user and state directory, the newest first.
    pub fn running(&mut self) -> Vec<UserBox> {
        let mut boxes = self.locked();
        boxes.retain(|it| it.record.state != State::Ended);
        boxes
    }

    /// Returns all records of the state directories: by user and state directory, the newest first.
    pub fn all(&mut self) -> Vec<UserState> {
        // Read first, so that no number of ended boxes leaves out one that runs.
        let mut locked: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for UserBox { uid, state, record } in self.locked() {
            locked.entry((uid, state)).or_default().push(record);
        }
        let mut states = Vec::new();
        for (of, supervisors) in self.states.clone() {
            let mut records = locked.remove(&of).unwrap_or_default();
            let (uid, state) = of;
            records.extend(self.ended(uid, &state, &supervisors));
            newest_first(&mut records);
            let starts = starts(&state, uid);
            states.push(UserState { uid, state, starts, records });
        }
        states
    }

    /// Returns the boxes whose lock is locked, some of which may be about to end.
    fn locked(&mut self) -> Vec<UserBox> {
        let mut boxes = Vec::new();
        for ((uid, state), supervisors) in self.states.clone() {
            let record = |(name, pids): (&String, _)| self.record(uid, &state, name, Some(pids));
            let mut records: Vec<_> = supervisors.iter().filter_map(record).collect();
            newest_first(&mut records);
            let of_user = |record| UserBox { uid, state: state.clone(), record };
            boxes.extend(records.into_iter().map(of_user));
        }
        boxes
    }

    /// Returns the records of a state directory that no supervisor has. A box that has not ended by its record has no supervisor
    /// any more.
    fn ended(&mut self, uid: u32, state: &Path, supervisors: &Supervisors) -> Vec<Record> {
        let mut names = names(&state.join(NAME), uid);
        names.retain(|name| !supervisors.contains_key(name));
        let record = |name: &String| {
            let mut record = self.record(uid, state, name, None)?;
            if record.state != State::Ended {
                record.lose();
            }
            Some(record)
        };
        names.iter().filter_map(record).collect()
    }

    /// Reads the record of a box. If it has not ended, `pids` are the processes that have its lock. `None` if the record is absent
    /// or left out.
    fn record(
        &mut self,
        uid: u32,
        state: &Path,
        name: &str,
        pids: Option<&BTreeSet<u32>>,
    ) -> Option<Record> {
        let read = self.read(uid, &state.join(NAME).join(name).join(RECORD)).and_then(|bytes| {
            let Some(bytes) = bytes else { return Ok(None) };
            let record: Record = serde_json::from_slice(&bytes).map_err(|_| LeftOut::Malformed)?;
            let is_of_box =
                record.name == name && pids.is_none_or(|it| it.contains(&record.supervisor));
            if is_of_box { Ok(Some(record)) } else { Err(LeftOut::Malformed) }
        });
        read.unwrap_or_else(|reason| {
            self.leave_out(uid, reason);
            None
        })
    }

    fn read(&mut self, uid: u32, path: &Path) -> Result<Option<Vec<u8>>, LeftOut> {
        let all: u64 = self.taken.values().map(|it| it.bytes).sum();
        let taken = self.taken.entry(uid).or_default();
        if taken.files >= MAX_FILES {
            return Err(LeftOut::TooMany);
        }
        taken.files += 1;
        let file = match open_regular(path, Links::RefuseAll) {
            // Its start or its removal is at work, or the directory is of something else.
            Err(error) if error.is_absent() => return Ok(None),
            opened => check(opened?, uid)?,
        };
        let length = file.metadata().map_err(|_| LeftOut::Unreadable)?.len();
        if length > MAX_RECORD {
            return Err(LeftOut::TooLong);
        }
        if taken.bytes + length > MAX_BYTES || all + length > MAX_ALL_BYTES {
            return Err(LeftOut::TooMany);
        }
        taken.bytes += length;
        Ok(Some(read_open(&file, length)?))
    }
}

/// Reads how many boxes were started with a state directory of a user.
fn starts(state: &Path, uid: u32) -> u64 {
    let file = owned(&starts::path(&state.join(NAME)), uid);
    let text = file.and_then(|file| Ok(read_open(&file, MAX_STARTS)?));
    text.map_or(0, |text| starts::parse(&text))
}

fn newest_first(records: &mut [Record]) {
    records.sort_by_key(|record| std::cmp::Reverse(record.created_ms));
}

/// Opens a regular file of a user without following a link.
fn owned(path: &Path, uid: u32) -> Result<File, LeftOut> {
    check(open_regular(path, Links::RefuseAll)?, uid)
}

/// Checks that an open file belongs to a user.
fn check(file: File, uid: u32) -> Result<File, LeftOut> {
    match file.metadata() {
        Ok(it) if it.uid() == uid => Ok(file),
        Ok(_) => Err(LeftOut::OtherOwner),
        Err(_) => Err(LeftOut::Unreadable),
    }
}

/// Lists the names of boxes in a directory of a user. Empty if it cannot be listed.
fn names(directory: &Path, uid: u32) -> Vec<String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = openat2(CWD, directory, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
    let is_own = |it: &OwnedFd| fstat(it).is_ok_and(|it| it.st_uid == uid);
    let Ok(entries) = opened.map(|it| is_own(&it).then(|| Dir::read_from(it))) else {
        return Vec::new();
    };
    let entries = entries.into_iter().flatten().flatten().take(MAX_ENTRIES).flatten();
    let name = entries.filter_map(|it| it.file_name().to_str().map(str::to_owned).ok());
    name.filter(|name| is_entry_name(name)).collect()
}

#[cfg(test)]
mod tests;
