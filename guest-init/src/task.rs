//! The task of the run: its files, which the agent sees at `/task`.
//!
//! ```text
//! /run/task         a tmpfs, where init writes
//! /task             the same in the agent's root, read-only but for the result
//! ```

use std::fs::{self, File, Permissions, create_dir};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::time::{Instant, SystemTime};

use box_image::task::{MAX_RESULT, META, RESULT, SPEC, STATUS, TASK_PATH};
use box_image::wire::Exited;
use box_image::{TaskPlan, TaskStatus, User};
use nix::fcntl::{OFlag, ResolveFlag, open};
use nix::sys::stat::Mode;

use crate::boot::{NO_SUID_DEV_EXEC, mount_fs};
use crate::console;
use crate::error::{InitError, Step as _};
use crate::mounts::open_or_make_in;
use crate::sys::mounts::{self, Attributes};

/// Where init has the files.
const DIRECTORY: &str = "/run/task";
/// The name of a status that is being written.
const NEW_STATUS: &str = ".status";
/// Room for the directory, the status, and what is left of the last page of each file, in bytes.
const ROOM: usize = 64 << 10;
/// The result belongs to the agent's user.
const RESULT_MODE: u32 = 0o644;
/// Everything else is to be read.
const READ_ONLY: u32 = 0o444;

/// Makes the files, for an agent of this user.
///
/// # Errors
/// The step that failed.
pub(crate) fn make(plan: &TaskPlan, user: &User) -> Result<(), InitError> {
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
    let result = directory.join(RESULT);
    let make_result = || {
        File::create(&result)?;
        fs::set_permissions(&result, Permissions::from_mode(RESULT_MODE))?;
        chown(&result, Some(user.uid), Some(user.gid))
    };
    make_result().step(step)
}

/// Shows the files in the agent's root, of which it can write to the result.
///
/// # Errors
/// The mount's.
pub(crate) fn show(root: &Path) -> Result<(), InitError> {
    let place = |source: &Path, read_only, target: OwnedFd| {
        let copy = mounts::copy(source)?;
        mounts::set_attributes(&copy, Attributes { read_only, id_map: None })?;
        mounts::place(&copy, target)
    };
    let show = || -> nix::Result<()> {
        let at = open_or_make_in(root, Path::new(TASK_PATH), ResolveFlag::empty())?;
        place(Path::new(DIRECTORY), true, at)?;
        // Nothing of the agent's has run, and no link is in it.
        let result = root.join(TASK_PATH.trim_start_matches('/')).join(RESULT);
        let at =
            open(&result, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())?;
        place(&Path::new(DIRECTORY).join(RESULT), false, at)
    };
    show().step_with(|| format!("show the task at {TASK_PATH}"))
}

/// Notes that the agent works on it.
pub(crate) fn start() {
    note(&TaskStatus::Running { started_at: now() });
}

/// Notes that the agent has ended; returns the result, or of one that is too long enough to see that.
pub(crate) fn end(exited: Exited) -> Vec<u8> {
    let mut result = Vec::new();
    let most = MAX_RESULT as u64 + 1;
    let read = File::open(Path::new(DIRECTORY).join(RESULT))
        .and_then(|file| file.take(most).read_to_end(&mut result));
    if let Err(error) = read {
        console::say(&format!("read the result of the task: {error}"));
    }
    note(&TaskStatus::of_end(exited, &result, now()));
    result
}

/// Returns when the agent's time for a task that begins now is up.
pub(crate) fn deadline(plan: &TaskPlan) -> Option<Instant> {
    let limit = std::time::Duration::from_secs(plan.timeout_seconds?);
    Instant::now().checked_add(limit)
}

/// Writes the status. Whoever cannot read it knows less, and nothing else changes.
fn note(status: &TaskStatus) {
    if let Err(error) = set_status(status) {
        console::say(&format!("write the status of the task: {error}"));
    }
}

/// Puts a status in place of the one before, so that no reader sees half of it.
fn set_status(status: &TaskStatus) -> io::Result<()> {
    let new = Path::new(DIRECTORY).join(NEW_STATUS);
    fs::write(&new, status.json())?;
    fs::set_permissions(&new, Permissions::from_mode(READ_ONLY))?;
    fs::rename(&new, Path::new(DIRECTORY).join(STATUS))
}

/// Returns the seconds since 1970.
fn now() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, |it| it.as_secs())
}
