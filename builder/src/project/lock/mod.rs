//! The lock: the content of each input of a Boxfile at its last resolution.
//!
//! A Boxfile names images, URLs, files and directories. `Boxfile.lock`, which is checked in next to it, records the
//! digest of each, so that another host builds the same bytes next year:
//!
//! ```toml
//! version = 2
//! epoch = 1
//!
//! [[entry]]
//! name = "agent"
//! kind = "image"
//! source = "oci:images/agent:v1"
//! platform = "linux/amd64"
//! digest = "sha256:…"
//! size = 481
//! layers = [
//!     "sha256:…",
//! ]
//! ```
//!
//! - `version` is the version of this format, [`FORMAT_VERSION`]. Version 1 can be read, too: its entries also had a
//!   `check`, a checksum of the entry, which is ignored.
//! - `epoch` is the format epoch of the box's bytes. The caller of [`Lock::new`] chooses it.
//! - An `entry` is a [`LockEntry`]. Content is verified against its digests. The lock itself needs no protection,
//!   because every user with write access to it can edit the Boxfile, too.
//!
//! The text is TOML. It is parsed with serde, but written by this module and not by a serializer, because the layout
//! is part of the format. A diff has to show exactly the change, and two branches that add different entries have to
//! merge. Therefore entries are sorted by name and platform, each field and each layer has its own line, there is no
//! checksum of the whole file, and characters that a review would not show are escaped. A new version of a TOML
//! library changes no checked-in lock.
//!
//! [`Lock::write`] returns the same text for equal locks, and [`Lock::parse`] reads it back:
//!
//! ```
//! use box_digest::Blake3Digest;
//! use boxbuild::project::lock::{Lock, LockEntry, PinKind};
//!
//! let mut lock = Lock::new(1);
//! lock.set(LockEntry {
//!     name: "skill:greet".to_owned(),
//!     kind: PinKind::Skill,
//!     source: "skills/greet".to_owned(),
//!     platform: None,
//!     digest: Blake3Digest::from_bytes([7; 32]).into(),
//!     size: 120,
//!     layers: Vec::new(),
//! });
//! assert_eq!(Lock::parse(&lock.write())?, lock);
//! # Ok::<(), diagnostics::Diagnostics>(())
//! ```

mod entry;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use entry::{LockEntry, PinKind};

use std::collections::BTreeSet;

use box_contract::Platform;
use diagnostics::{Diagnostic, Diagnostics, Span, edited};

/// The version of the format that is written.
pub const FORMAT_VERSION: u32 = 2;

/// The maximum size of a lock in bytes: 1 MiB.
pub const MAX_TEXT: usize = 1 << 20;

/// The help with the command that repairs any lock, because the command uses no part of the old lock.
pub const REBUILD: &str = "run `boxbuild update` to resolve everything again";

/// The content of a `Boxfile.lock`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    epoch: u32,
    /// Sorted by [`LockEntry::key`], each key once.
    entries: Vec<LockEntry>,
}

impl Lock {
    /// Returns a lock without entries for boxes of this format epoch.
    pub const fn new(epoch: u32) -> Self {
        Self { epoch, entries: Vec::new() }
    }

    /// Reads the text of a lock.
    ///
    /// # Errors
    /// The first fault of each entry, with its span and the command that repairs it: a merge conflict, text that is
    /// not TOML, an unknown version of the format, missing, unknown or malformed fields, names and sources with
    /// invisible characters, two entries with the same name and platform, more than [`MAX_TEXT`] bytes.
    pub fn parse(text: &str) -> Result<Self, Diagnostics> {
        Diagnostic::check_length(text, MAX_TEXT, REBUILD)?;
        read::read(text).map_err(|errors| {
            if Self::is_lock(text) {
                return errors;
            }
            // The commands that repair a lock overwrite no other file.
            let line = Span::at(0, text.lines().next().unwrap_or_default().len());
            Diagnostic::new("this is not a lock", line, "boxbuild did not write this file")
                .with_help("move it away, and run `boxbuild lock`")
                .into()
        })
    }

    /// Returns whether a text was once written as a lock, even if it no longer parses: such a text has the comment that
    /// is at the top of every written lock. Commands must not overwrite any other file.
    pub fn is_lock(text: &str) -> bool {
        text.lines().any(|line| line.starts_with(write::MARK))
    }

    /// Returns whether a text has conflict markers of a merge.
    pub fn has_conflict(text: &str) -> bool {
        edited::conflict(text).is_some()
    }

    /// Returns the text of the lock, which is the same for equal locks. [`Lock::parse`] reads it back if it has at
    /// most [`MAX_TEXT`] bytes and no name or source with invisible characters.
    pub fn write(&self) -> String {
        write::write(self)
    }

    /// Returns the format epoch of the boxes that the lock is for.
    pub const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Returns the entry with this name and platform.
    pub fn get(&self, name: &str, platform: Option<Platform>) -> Option<&LockEntry> {
        self.find(name, platform).ok().map(|index| &self.entries[index])
    }

    /// Adds an entry. Returns the entry with the same name and platform, if it replaces one.
    pub fn set(&mut self, entry: LockEntry) -> Option<LockEntry> {
        match self.find(&entry.name, entry.platform) {
            Ok(index) => Some(std::mem::replace(&mut self.entries[index], entry)),
            Err(index) => {
                self.entries.insert(index, entry);
                None
            }
        }
    }

    /// Iterates over the entries, sorted by [`LockEntry::key`].
    pub fn entries(&self) -> std::slice::Iter<'_, LockEntry> {
        self.entries.iter()
    }

    /// Returns the differences to a newer lock, sorted by [`LockEntry::key`].
    pub fn changes<'l>(&'l self, newer: &'l Self) -> Vec<Change<'l>> {
        let keys: BTreeSet<_> = self.entries().chain(newer.entries()).map(LockEntry::key).collect();
        let change = |(name, platform)| match [self, newer].map(|lock| lock.get(name, platform)) {
            [Some(old), Some(new)] => (old != new).then_some(Change::Changed { old, new }),
            [Some(old), None] => Some(Change::Removed(old)),
            [None, new] => new.map(Change::Added),
        };
        keys.into_iter().filter_map(change).collect()
    }

    /// Returns the index of an entry, or else the index at which to insert it.
    fn find(&self, name: &str, platform: Option<Platform>) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| entry.key().cmp(&(name, platform)))
    }
}

/// An entry that differs between two locks. `boxbuild update` shows the changes, and `--locked` fails if there are
/// any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'l> {
    /// Only the newer lock has the entry.
    Added(&'l LockEntry),
    /// Only the older lock has the entry.
    Removed(&'l LockEntry),
    /// Both have an entry of this name and platform, with different fields.
    Changed {
        /// The entry of the older lock.
        old: &'l LockEntry,
        /// The entry of the newer lock.
        new: &'l LockEntry,
    },
}
