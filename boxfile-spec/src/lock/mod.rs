//! The lock: what each part of a Boxfile was when it was last resolved.
//!
//! A Boxfile names images, URLs, files and directories. `Boxfile.lock`, checked in beside it, says
//! for each of them which content that was, so that another machine builds the same bytes next
//! year:
//!
//! ```toml
//! version = 1
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
//! check = "77f6cd5b8e4f0a21"
//! ```
//!
//! - `version` is this format's, [`FORMAT_VERSION`]. A file of another one is not read.
//! - `epoch` is the format epoch of the box's bytes, which the caller of [`Lock::new`] names.
//! - An `entry` is an [`Entry`], and its `check` a seal over the others of its fields and the
//!   epoch. It finds what a person or a merge changed by mistake. It is no protection against
//!   intent, and need not be: who can edit the lock can edit the Boxfile; what content is verified
//!   against are the digests.
//!
//! The text is TOML 1.0, written so that a change shows as what it is: entries sorted by name and
//! platform, a line for each field and each layer, and nothing about the file as a whole but the
//! two numbers at its head. Two branches that add entries in different places merge; where git
//! cannot merge, its markers are recognised. LF ends each line; CRLF is read as well.
//!
//! [`Lock::write`] gives one text for one lock, and [`Lock::parse`] gives back what was written:
//!
//! ```
//! use boxfile_spec::lock::{Digest, Entry, Kind, Lock};
//!
//! let mut lock = Lock::new(1);
//! lock.set(Entry {
//!     name: "skill:greet".to_owned(),
//!     kind: Kind::Skill,
//!     source: "skills/greet".to_owned(),
//!     platform: None,
//!     digest: Digest::Blake3([7; 32]),
//!     size: 120,
//!     layers: Vec::new(),
//! });
//! let text = lock.write();
//! assert_eq!(Lock::parse(&text)?, lock);
//! assert!(Lock::parse(&text.replace("120", "121")).is_err());
//! # Ok::<(), boxfile_spec::Diagnostics>(())
//! ```

mod changes;
mod compare;
mod conflict;
mod digest;
mod document;
mod entry;
mod found;
mod nesting;
mod parts;
mod read;
mod salvage;
mod seal;
mod table;
#[cfg(test)]
mod tests;
mod write;

pub use changes::{Change, Field};
pub use digest::{Digest, MalformedDigest};
pub use entry::{Entry, Kind, UnknownKind};
pub use salvage::Salvaged;

use crate::{Diagnostics, Platform};

/// The version of the lock's format that is read and written.
pub const FORMAT_VERSION: u32 = 1;

/// The greatest length of a lock in bytes: 16 MiB.
pub const MAX_TEXT: usize = 16 << 20;

/// The content of a `Boxfile.lock`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    epoch: u32,
    /// Sorted by [`Entry::key`], each key once.
    entries: Vec<Entry>,
}

impl Lock {
    /// Makes a lock without entries for boxes of this format epoch.
    pub const fn new(epoch: u32) -> Self {
        Self { epoch, entries: Vec::new() }
    }

    /// Reads the text of a lock.
    ///
    /// # Errors
    /// What is wrong with it, sorted by position: text that is not TOML, merge conflicts, another
    /// version of the format, missing, unknown or malformed fields, names and sources with invisible
    /// characters, two entries of the same name and platform, and entries that do not fit their check. Of an entry that is not TOML, only
    /// its first error; of a ruined file, 100 errors.
    pub fn parse(text: &str) -> Result<Self, Diagnostics> {
        read::read(text)
    }

    /// Keeps what is intact of a text that [`Lock::parse`] refuses, so that one entry edited by hand
    /// or a merge conflict costs no other entry its pin.
    ///
    /// Kept is each entry that is well written and fits its check. Of a merge conflict, it may be on
    /// either side. Two entries of the same name and platform that differ are both dropped: which one
    /// is meant, nobody can tell. Nothing is kept of a lock of another version of the format.
    pub fn salvage(text: &str) -> Salvaged {
        salvage::salvage(text)
    }

    /// Writes the lock: one text for equal locks, which [`Lock::parse`] reads back if it has at
    /// most [`MAX_TEXT`] bytes and no entry whose name or source has invisible characters.
    pub fn write(&self) -> String {
        write::write(self)
    }

    /// Returns the format epoch of the boxes that the lock is for.
    pub const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Returns the entry of this name and platform.
    pub fn get(&self, name: &str, platform: Option<Platform>) -> Option<&Entry> {
        self.find(name, platform).ok().map(|index| &self.entries[index])
    }

    /// Adds an entry, or replaces the one of the same name and platform, which is returned.
    pub fn set(&mut self, entry: Entry) -> Option<Entry> {
        match self.find(&entry.name, entry.platform) {
            Ok(index) => Some(std::mem::replace(&mut self.entries[index], entry)),
            Err(index) => {
                self.entries.insert(index, entry);
                None
            }
        }
    }

    /// Removes and returns the entry of this name and platform.
    pub fn remove(&mut self, name: &str, platform: Option<Platform>) -> Option<Entry> {
        self.find(name, platform).ok().map(|index| self.entries.remove(index))
    }

    /// Removes the entries for which `keep` is false.
    pub fn retain(&mut self, keep: impl FnMut(&Entry) -> bool) {
        self.entries.retain(keep);
    }

    /// Iterates over the entries, sorted by [`Entry::key`].
    pub fn entries(&self) -> std::slice::Iter<'_, Entry> {
        self.entries.iter()
    }

    /// Returns what a newer lock has otherwise than this one, sorted by [`Entry::key`]; nothing if
    /// their entries are the same.
    pub fn changes<'l>(&'l self, newer: &'l Self) -> Vec<Change<'l>> {
        changes::changes(self, newer)
    }

    /// Returns where an entry is, or where it belongs.
    fn find(&self, name: &str, platform: Option<Platform>) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| entry.key().cmp(&(name, platform)))
    }
}
