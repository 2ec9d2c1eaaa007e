//! The task of the run: its files, which the agent sees in `/task`.
//!
//! ```text
//! /run/task         a tmpfs that init writes
//! /task             the same in the agent's root, read-only except for the result
//! ```

use std::fs::{self, File, Permissions, create_dir};
use std::io::{self, Read as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::time::Instant;

use box_contract::task::{MAX_RESULT, MAX_SENT_RESULT, META, RESULT, SPEC, STATUS, TASK_PATH};
use box_contract::{TaskPlan, TaskStatus, User};
use nix::fcntl::ResolveFlag;

use crate::boot::{NO_SUID_DEV_EXEC, mount_fs};
use crate::console;
use crate::error::{InitError, Step as _};
use crate::mounts::{open_file_in, open_or_make_in};
use crate::sys::mounts::show_copy;
use crate::time;

/// Init's directory of the files.
const DIRECTORY: &str = "/run/task";
/// The name of a status that is being written.
const NEW_STATUS: &str = ".status";
/// The space on the tmpfs for the directory, the status, and the unused part of each file's last page, in bytes.
const ROOM: usize = 64 << 10;
/// The mode of the result, which belongs to the agent's user.
const RESULT_MODE: u32 = 0o644;
/// The mode of all other files.
const READ_ONLY: u32 = 0o444;

/// The files of a task.
#[derive(Debug)]
pub(crate) struct TaskFiles {
    /// The agent's result. While init has it open, no process can hold a lease on it, which would block a later open
    /// ([fcntl(2)](https://man7.org/linux/man-pages/man2/fcntl.2.html), `F_SETLEASE`).
    result: File,
}

impl TaskFiles {
    /// Makes the files, for an agent that runs as `user`.
    ///
    /// # Errors
    /// The step that failed.
    pub(crate) fn make(plan: &TaskPlan, user: &User) -> Result<Self, InitError> {
        let step = "make the files of the task";
        let directory = Path::new(DIRECTORY);
        create_dir(directory).step(step)?;
        let texts = [(SPEC, plan.spec_json()), (META, plan.meta_json(now()))];
        let size = MAX_RESULT + ROOM + texts.iter().map(|(_, text)| text.len()).sum::<usize>();
        mount_fs("tmpfs", directory, NO_SUID_DEV_EXEC, &format!("mode=0755,size={size}"))?;
        let write = |(name, text): &(&str, String)| {
            fs::write(directory.join(name), text)?;
            fs::set_permissions(directory.join(name), Permissions::from_mode(READ_ONLY))
        };
        texts.iter().try_for_each(write).step(step)?;
        set_status(&TaskStatus::Pending).step(step)?;
        let path = directory.join(RESULT);
        let make_result = || {
            let result = File::options().read(true).write(true).create_new(true).open(&path)?;
            fs::set_permissions(&path, Permissions::from_mode(RESULT_MODE))?;
            chown(&path, Some(user.uid), Some(user.gid))?;
            Ok::<_, io::Error>(result)
        };
        Ok(Self { result: make_result().step(step)? })
    }

    /// Returns the agent's result. A result that is too long is truncated to [`MAX_SENT_RESULT`] bytes. This length
    /// exceeds the limit, so the launcher can detect it.
    pub(crate) fn result(&self) -> Vec<u8> {
        let mut result = Vec::new();
        let read = (&self.result).take(MAX_SENT_RESULT as u64).read_to_end(&mut result);
        if let Err(error) = read {
            console::say(&format!("read the result of the task: {error}"));
        }
        result
    }
}

/// Mounts the files in the agent's root. Only the result is writable.
///
/// # Errors
/// The error of the mount.
pub(crate) fn show(root: &Path) -> Result<(), InitError> {
    let show = || -> nix::Result<()> {
        let at = open_or_make_in(root, Path::new(TASK_PATH), ResolveFlag::empty())?;
        show_copy(Path::new(DIRECTORY), true, at)?;
        let at = open_file_in(root, &Path::new(TASK_PATH).join(RESULT))?;
        show_copy(&Path::new(DIRECTORY).join(RESULT), false, at)
    };
    show().step_with(|| format!("show the task at {TASK_PATH}"))
}

/// Sets the status of the task to running. An error is printed on the console and ignored.
pub(crate) fn start() {
    if let Err(error) = set_status(&TaskStatus::Running { started_at: now() }) {
        console::say(&format!("write the status of the task: {error}"));
    }
}

/// Returns the deadline of a task that begins now, or `None` without a time limit.
pub(crate) fn deadline(plan: &TaskPlan) -> Option<Instant> {
    let limit = std::time::Duration::from_secs(plan.timeout_seconds?);
    Instant::now().checked_add(limit)
}

/// Replaces the status atomically, so that no reader sees a part of it.
fn set_status(status: &TaskStatus) -> io::Result<()> {
    let new = Path::new(DIRECTORY).join(NEW_STATUS);
    fs::write(&new, status.json())?;
    fs::set_permissions(&new, Permissions::from_mode(READ_ONLY))?;
    fs::rename(&new, Path::new(DIRECTORY).join(STATUS))
}

/// Returns the seconds since 1970.
fn now() -> u64 {
    time::since_epoch().as_secs()
}
