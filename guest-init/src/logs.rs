//! The logs of the run: files that init writes and the agent sees in `/logs`.
//!
//! ```text
//! /run/logs         a tmpfs that init writes; /logs in the agent's root is the same, read-only
//! /run/logs/atif    another tmpfs, for the agent's trajectories, so that they cannot fill the first
//! ```

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, chown};
use std::path::{Path, PathBuf};

use box_contract::logs::{
    EVENTS, LOGS_PATH, MAX_LOG, MAX_TRAJECTORIES, MAX_TRAJECTORY_FILES, STDERR, STDOUT,
    TRAJECTORIES, is_trajectory_name,
};
use box_contract::wire::{GuestEvent, MAX_OUTPUT, Stream, Trajectory};
use box_contract::{LogsPlan, User};
use nix::fcntl::{OFlag, ResolveFlag};

use crate::boot::{NO_SUID_DEV_EXEC, mount_fs};
use crate::console;
use crate::error::{InitError, Step as _};
use crate::mounts::open_or_make_in;
use crate::sys::mounts::show_copy;
use crate::time;

/// Init's directory of the logs.
const DIRECTORY: &str = "/run/logs";
/// The greatest number of files of each log: the current one and the previous, full one.
const FILES: usize = 2;
/// The space on the tmpfs for the directories and for each file's last entry, which can exceed the file's limit, in
/// bytes.
const ROOM: usize = 256 << 10;

/// The logs that the plan declares.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    stdout: Option<Log>,
    stderr: Option<Log>,
    events: Option<Log>,
    /// Whether events are logged. The host logs them even after the file in the box has failed.
    has_events: bool,
    trajectories: bool,
}

impl Logs {
    /// Makes the files, for an agent that runs as `user`.
    ///
    /// # Errors
    /// The step that failed.
    pub(crate) fn make(plan: &LogsPlan, user: &User) -> Result<Self, InitError> {
        let step = "make the logs";
        let directory = Path::new(DIRECTORY);
        fs::create_dir(directory).step(step)?;
        let count = [plan.stdout, plan.stderr, plan.events].into_iter().filter(|it| *it).count();
        let size = count * FILES * MAX_LOG + ROOM;
        mount_fs("tmpfs", directory, NO_SUID_DEV_EXEC, &format!("mode=0755,size={size}"))?;
        let log = |wanted: bool, name| wanted.then(|| Log::make(directory.join(name))).transpose();
        if plan.atif {
            let at = directory.join(TRAJECTORIES);
            fs::create_dir(&at).step(step)?;
            let (size, files) = (MAX_TRAJECTORIES, MAX_TRAJECTORY_FILES + 1);
            let options = format!("mode=0755,size={size},nr_inodes={files}");
            mount_fs("tmpfs", &at, NO_SUID_DEV_EXEC, &options)?;
            chown(&at, Some(user.uid), Some(user.gid)).step(step)?;
        }
        Ok(Self {
            stdout: log(plan.stdout, STDOUT).step(step)?,
            stderr: log(plan.stderr, STDERR).step(step)?,
            events: log(plan.events, EVENTS).step(step)?,
            has_events: plan.events,
            trajectories: plan.atif,
        })
    }

    /// Logs the agent's output.
    pub(crate) fn output(&mut self, stream: Stream, data: &[u8]) {
        match stream {
            Stream::Stdout => Log::write(&mut self.stdout, data),
            Stream::Stderr => Log::write(&mut self.stderr, data),
        }
    }

    /// Logs an event. Returns whether the host has to log it, too.
    pub(crate) fn event(&mut self, event: &GuestEvent) -> bool {
        let event = serde_json::to_string(event).unwrap_or_default();
        // Puts the time before the first field of the JSON object.
        let line = format!("{{\"time_ms\":{},{}\n", time_ms(), event.trim_start_matches('{'));
        Log::write(&mut self.events, line.as_bytes());
        self.has_events
    }

    /// Calls `each` with each part of the agent's trajectories.
    pub(crate) fn trajectories(&self, each: impl FnMut(Trajectory)) {
        if self.trajectories
            && let Err(error) = read_trajectories(&Path::new(DIRECTORY).join(TRAJECTORIES), each)
        {
            console::say(&format!("read the trajectories: {error}"));
        }
    }
}

/// Mounts the logs in the agent's root. Only the directory of the trajectories is writable.
///
/// # Errors
/// The error of the mount.
pub(crate) fn show(plan: &LogsPlan, root: &Path) -> Result<(), InitError> {
    let show = || -> nix::Result<()> {
        let at = open_or_make_in(root, Path::new(LOGS_PATH), ResolveFlag::empty())?;
        show_copy(Path::new(DIRECTORY), true, at)?;
        if plan.atif {
            let at = Path::new(LOGS_PATH).join(TRAJECTORIES);
            let at = open_or_make_in(root, &at, ResolveFlag::empty())?;
            show_copy(&Path::new(DIRECTORY).join(TRAJECTORIES), false, at)?;
        }
        Ok(())
    };
    show().step_with(|| format!("show the logs at {LOGS_PATH}"))
}

/// Returns the milliseconds since 1970.
fn time_ms() -> u64 {
    u64::try_from(time::since_epoch().as_millis()).unwrap_or(u64::MAX)
}

/// A file to which entries are appended.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    file: File,
    size: usize,
    /// The previous, full file.
    older: Option<File>,
}

impl Log {
    fn make(path: PathBuf) -> io::Result<Self> {
        let file = File::options().append(true).create_new(true).mode(0o644).open(&path)?;
        Ok(Self { path, file, size: 0, older: None })
    }

    /// Appends an entry. If that fails, closes the log, and the box continues.
    fn write(log: &mut Option<Self>, data: &[u8]) {
        if let Some(it) = log
            && let Err(error) = it.append(data)
        {
            console::say(&format!("write {}: {error}", it.path.display()));
            *log = None;
        }
    }

    fn append(&mut self, data: &[u8]) -> io::Result<()> {
        if self.size >= MAX_LOG {
            let mut older = self.path.clone().into_os_string();
            older.push(".1");
            // Truncates the oldest file before the rename unlinks it: if a process in the box has the file open, the
            // unlink alone would not free its memory.
            self.older.iter().try_for_each(|it| it.set_len(0))?;
            fs::rename(&self.path, older)?;
            let next = Self::make(std::mem::take(&mut self.path))?;
            self.older = Some(std::mem::replace(self, next).file);
        }
        self.size += data.len();
        self.file.write_all(data)
    }
}

/// Reads the files of a directory to which processes of the agent can still write.
fn read_trajectories(directory: &Path, mut each: impl FnMut(Trajectory)) -> io::Result<()> {
    let mut left = MAX_TRAJECTORIES;
    let entries = fs::read_dir(directory)?.filter_map(|it| it.ok()?.file_name().into_string().ok());
    let mut names: Vec<_> =
        entries.filter(|it| is_trajectory_name(it)).take(MAX_TRAJECTORY_FILES).collect();
    names.sort_unstable();
    for name in names {
        // Does not follow a link and does not wait for a pipe.
        let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let opened =
            File::options().read(true).custom_flags(flags.bits()).open(directory.join(&name));
        let Ok(file) = opened else { continue };
        if !file.metadata()?.is_file() {
            continue;
        }
        let mut data = Vec::new();
        left -= file.take(left as u64).read_to_end(&mut data)?;
        // An empty file has one empty part.
        let parts = data.chunks(MAX_OUTPUT).chain(data.is_empty().then_some([].as_slice()));
        parts.for_each(|it| each(Trajectory { name: name.clone(), data: it.to_vec() }));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_full_file_takes_the_place_of_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let mut log = Some(Log::make(path.clone()).unwrap());
        let held = File::open(&path).unwrap();
        for byte in b'a'..=b'e' {
            Log::write(&mut log, &vec![byte; MAX_LOG / 2]);
        }
        assert_eq!(held.metadata().unwrap().len(), 0, "it takes no room, whoever has it open");
        let first = |path: &Path| {
            let bytes = fs::read(path).unwrap();
            (bytes[0], bytes.len())
        };
        assert_eq!(first(&path), (b'e', MAX_LOG / 2));
        assert_eq!(first(&dir.path().join("a.log.1")), (b'c', MAX_LOG));
        assert_eq!(fs::read_dir(&dir).unwrap().count(), FILES);
    }

    #[test]
    fn only_plain_files_are_trajectories() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("run.json"), vec![b' '; MAX_OUTPUT + 1]).unwrap();
        fs::write(at(".hidden"), "x").unwrap();
        fs::write(at("empty"), "").unwrap();
        fs::create_dir(at("directory")).unwrap();
        symlink("/etc/passwd", at("link")).unwrap();
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRUSR).unwrap();
        let mut parts = Vec::new();
        read_trajectories(dir.path(), |it| parts.push((it.name, it.data.len()))).unwrap();
        let expected = [("empty", 0), ("run.json", MAX_OUTPUT), ("run.json", 1)];
        assert_eq!(parts, expected.map(|(name, length)| (name.to_owned(), length)));
    }

    #[test]
    fn trajectories_end_where_there_are_too_many_bytes() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            fs::write(dir.path().join(name), vec![0; MAX_TRAJECTORIES - 1]).unwrap();
        }
        let mut bytes = 0;
        read_trajectories(dir.path(), |it| bytes += it.data.len()).unwrap();
        assert_eq!(bytes, MAX_TRAJECTORIES);
    }
}
