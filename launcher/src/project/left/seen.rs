//! What was in the project of an environment, in the state directory:
//!
//! ```text
//! <state>/projects/                0700
//! <state>/projects/NAME.json       `Seen` of the environment NAME
//! ```

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use host_fs::OsError;
use host_fs::publish::FileDraft;
use host_fs::read::{Links, read_file};
use serde::{Deserialize, Serialize};

use super::Found;
use crate::host::state_dir;

const DIRECTORY: &str = "projects";
/// The greatest size of a file, in bytes: some hundred thousand repositories.
const MAX_SEEN: u64 = 32 << 20;

/// What a user knows of the repositories in a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// What was there before the environment began, what the user has made while it had ended, and what the user has accepted.
    pub known: Found,
    /// When the first run began whose changed files were not reported yet, in milliseconds since 1970.
    pub since_ms: u64,
    /// What was there when the environment was last stopped. `None` if it has been started since.
    #[serde(default)]
    pub at_end: Option<AtEnd>,
}

/// What was in a project when its environment had ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtEnd {
    /// When the run began that had ended, in milliseconds since 1970.
    pub run_ms: u64,
    /// What was there.
    pub found: Found,
}

impl Seen {
    /// Reads what is known of the project of an environment. `None` if there is no file, or it is damaged.
    pub fn read(state: &Path, name: &str) -> Option<Self> {
        let bytes = read_file(&path(state, name), Links::Refuse, MAX_SEEN).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Writes what is known.
    ///
    /// # Errors
    /// Errors of the operating system, and a file that is too large to be read again.
    pub fn write(&self, state: &Path, name: &str) -> Result<(), OsError> {
        let path = path(state, name);
        state_dir::make(&state.join(DIRECTORY))?;
        let write = || -> io::Result<()> {
            let text = serde_json::to_vec(self)?;
            if text.len() as u64 > MAX_SEEN {
                return Err(io::Error::from(io::ErrorKind::FileTooLarge));
            }
            let draft = FileDraft::beside(&path, 0o600)?;
            draft.file().write_all(&text)?;
            draft.finish_over_unflushed(&path)
        };
        write().map_err(OsError::file("write", &path))
    }

    /// Removes what is known of an environment that was removed.
    pub fn remove(state: &Path, name: &str) {
        // If it stays, the next environment of this name lists more than it has to.
        drop(fs::remove_file(path(state, name)));
    }

    /// Returns since when a changed file was not reported yet. `run_ms` is when the run began that has ended. It counts for an
    /// environment that was started before this file existed.
    pub const fn since(&self, run_ms: u64) -> u64 {
        if self.since_ms == 0 { run_ms } else { self.since_ms }
    }

    /// Takes what has changed while the environment had ended as the user's. `run_ms` is when its last run began, and `now_ms` when
    /// the next one does.
    #[must_use]
    pub fn begun(mut self, now: &Found, run_ms: u64, now_ms: u64) -> Self {
        if let Some(AtEnd { found, .. }) = self.at_end.take().filter(|it| it.run_ms == run_ms) {
            let own = now.without(&found);
            self.known.repositories.extend(own.repositories);
            self.known.operations.extend(own.operations);
            self.since_ms = now_ms;
        }
        self
    }
}

fn path(state: &Path, name: &str) -> PathBuf {
    state.join(DIRECTORY).join(format!("{name}.json"))
}
