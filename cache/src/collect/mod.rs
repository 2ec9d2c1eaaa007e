//! Collecting: a store is brought below a size, and loses what nobody needs.
//!
//! **What is kept, whatever the size.** A box that runs, one that a person gave a name, one that a thin directory elsewhere names
//! that is still there, one that was made or used within the last hour, and everything that a process uses that has the store open;
//! see [`Why`]. All else goes by age: the box or the record that was used least recently goes first, until the store is small
//! enough. A blob goes with the last box or record that refers to it. Blobs to which nothing refers go at once.
//!
//! **Beside others.** A collection reads the store twice: first beside everybody else, and then, while it holds the gate alone, only
//! what has changed. Under the gate it takes from the store what goes: names, boxes and records first and blobs last, each by one
//! `rename` or `unlink`. After a tenth of a second it lets go of the gate, frees the bytes of what it has taken, and begins again if
//! there is more. So nobody waits for long, and whoever looks for something while it does not hold the gate finds all of it or nothing.
//!
//! **Crash story.** A collection that is killed leaves a store that has lost some of what was to go. What was taken and not freed is in
//! `tmp/` under a name that begins with `gone-`; the next collection frees it.

mod carry;
#[cfg(test)]
mod measure;
mod plan;
mod scan;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use box_digest::Digest;

use crate::boxes::check_private;
use crate::error::IoContext;
use crate::gate::Gate;
use crate::store::DIRECTORIES;
use crate::{Label, StoreError, StoredBoxes};
pub(crate) use carry::free_gone;
use plan::plan;
use scan::{Known, Scan, size_of_directory};

/// How long a process that begins to use something may take. Longer than that, nothing is collected.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long others wait at once for a collection.
const AT_ONCE: Duration = Duration::from_millis(100);
/// How long they get in between.
const BETWEEN: Duration = Duration::from_millis(20);

/// What the collector has to know of the blobs of a store, which is not the store's to know.
pub trait Contents {
    /// Returns the blobs that the manifest of a box names; `None` if it is none.
    fn blobs(&self, manifest: &[u8]) -> Option<Vec<Digest>>;

    /// Returns the digest of the box in a directory elsewhere, and the blobs that its manifest names; `None` if there is none. What
    /// the directory lacks is in `blobs`, the directory of the store's blobs.
    fn thin(&self, directory: &Path, blobs: &Path) -> Option<(Digest, Vec<Digest>)>;
}

/// What goes.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The size in bytes that the store is to have at most; `None` if it may be of any.
    pub cap: Option<u64>,
    /// What was not used for so long goes also from a store that is small enough.
    pub older_than: Option<Duration>,
    /// A box that was made or used within this time is kept: [`Rules::YOUNG`], if nobody says otherwise.
    pub young: Duration,
    /// Labels that go, each with the box that it has to mean. A box whose last label goes is removed as one of `boxes` is.
    pub names: BTreeMap<Label, Digest>,
    /// Boxes that go, whatever their age, with the records of the builds that made them.
    pub boxes: BTreeSet<Digest>,
    /// Of `boxes` and of those that lose their last label, those go as well that run or that have other labels.
    pub is_forced: bool,
    /// Nothing goes; the report says what would.
    pub dry_run: bool,
}

impl Rules {
    /// How long a box is kept that was made or used.
    pub const YOUNG: Duration = Duration::from_secs(60 * 60);
}

impl Default for Rules {
    /// Only that goes to which nothing refers.
    fn default() -> Self {
        Self {
            cap: None,
            older_than: None,
            young: Self::YOUNG,
            names: BTreeMap::new(),
            boxes: BTreeSet::new(),
            is_forced: false,
            dry_run: false,
        }
    }
}

/// Why a box is kept whatever the size of the store. Of several reasons, the first one is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// It runs.
    Running,
    /// A person gave it a name.
    Tagged,
    /// A thin directory elsewhere names it.
    Thin,
    /// A process that has the store open made or used it.
    Used,
    /// It was made or used within the last hour.
    Young,
    /// Something is in its directory that is not the store's.
    Foreign,
}

/// A box of which a report speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    /// Its digest.
    pub digest: Digest,
    /// The names that it has, or had, sorted.
    pub names: Vec<String>,
    /// The thin directories elsewhere that name it.
    pub directories: Vec<PathBuf>,
    /// Why it is kept; `None` of one that goes, or that is only young enough.
    pub reason: Option<Why>,
    /// The size of its blobs.
    pub bytes: u64,
}

/// What a collection did, or would do. A size counts each file in units of 4096 bytes, as file systems do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The size of the store before.
    pub before: u64,
    /// Its size after.
    pub after: u64,
    /// The size that it was to have at most.
    pub cap: Option<u64>,
    /// The boxes that were removed, in the order of their last use.
    pub removed: Vec<Reported>,
    /// The names that were removed, sorted.
    pub removed_names: Vec<String>,
    /// How many results of steps of builds were removed.
    pub removed_records: usize,
    /// How many blobs were removed.
    pub removed_blobs: usize,
    /// The boxes that are left, in the order of their digests.
    pub kept: Vec<Reported>,
    /// The size of what is kept whatever the cap.
    pub kept_bytes: u64,
    /// The part of it that is kept only because a process has the store open.
    pub used_bytes: u64,
    /// How many files and directories were found that are not the store's. They are left as they are.
    pub foreign: usize,
}

impl Report {
    /// Returns whether the store is larger than it was to be, as everything that is left is kept.
    pub fn is_over(&self) -> bool {
        self.cap.is_some_and(|cap| self.after > cap)
    }

    /// Leaves out what was not removed yet.
    fn as_far_as(&self, done: &carry::Done) -> Self {
        let mut report = self.clone();
        report.removed.truncate(done.boxes);
        report.removed_names.truncate(done.names);
        report.removed_records = done.records;
        report.removed_blobs = done.blobs;
        report
    }

    /// Adds what was removed after this.
    fn with(mut self, later: Self) -> Self {
        self.removed.extend(later.removed);
        self.removed_names.extend(later.removed_names);
        self.removed_names.sort();
        Self {
            before: self.before,
            removed: self.removed,
            removed_names: self.removed_names,
            removed_records: self.removed_records + later.removed_records,
            removed_blobs: self.removed_blobs + later.removed_blobs,
            ..later
        }
    }
}

/// The size of a box of a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BoxSize {
    /// The size of its blobs that no other box refers to.
    pub own: u64,
    /// The size of its other blobs.
    pub shared: u64,
}

/// Collects what a store need not have.
#[derive(Debug)]
pub struct Collector {
    root: PathBuf,
}

impl Collector {
    /// Opens the store in a directory; `None` if there is none.
    ///
    /// # Errors
    /// As [`StoredBoxes::blobs_of`]: a store that another user can change is refused.
    pub fn open(root: &Path) -> Result<Option<Self>, StoreError> {
        StoredBoxes::blobs_of(root)?;
        if !root.join("version").exists() {
            return Ok(None);
        }
        for part in DIRECTORIES.map(|name| root.join(name)) {
            if part.is_symlink() {
                return Err(ErrorKind::NotADirectory.into()).context("use", &part);
            }
            check_private(&part)?;
        }
        Ok(Some(Self { root: root.to_owned() }))
    }

    /// Returns the size of the store: of its blobs, records and their data. It takes some microseconds for each.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn size(&self) -> Result<u64, StoreError> {
        let sizes = ["blobs", "actions", "data"].map(|it| size_of_directory(&self.root.join(it)));
        sizes.into_iter().try_fold(0, |all, size| Ok(all + size?))
    }

    /// Returns the size of each box.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn box_sizes(
        &self,
        contents: &dyn Contents,
    ) -> Result<BTreeMap<Digest, BoxSize>, StoreError> {
        Ok(self.scan(contents, &mut Known::default())?.box_sizes())
    }

    /// Collects.
    ///
    /// # Errors
    /// [`StoreError::NoRoots`] if the store has blobs, and nothing that refers to any; [`StoreError::Busy`] if another process keeps
    /// the store locked; [`StoreError::File`]. What was removed until then stays removed.
    pub fn collect(&self, contents: &dyn Contents, rules: &Rules) -> Result<Report, StoreError> {
        self.collect_in(contents, rules, AT_ONCE)
    }

    /// Collects, and keeps others waiting for so long at once.
    fn collect_in(
        &self,
        contents: &dyn Contents,
        rules: &Rules,
        at_once: Duration,
    ) -> Result<Report, StoreError> {
        let mut known = Known::default();
        let mut rules = rules.clone();
        let mut gone = BTreeSet::new();
        let no_roots = || StoreError::NoRoots(self.root.clone());
        let scan = self.scan(contents, &mut known)?;
        let first = plan(&scan, &rules, &gone).ok_or_else(no_roots)?;
        if rules.dry_run {
            return Ok(first.report);
        }
        free_gone(&self.root);
        if first.is_empty() {
            return Ok(first.report);
        }
        let mut report: Option<Report> = None;
        loop {
            let gate = Gate::alone_within(&self.root, PATIENCE)?;
            let end = Instant::now() + at_once;
            let scan = self.scan(contents, &mut known)?;
            let plan = plan(&scan, &rules, &gone).ok_or_else(no_roots)?;
            let done = carry::out(&self.root, &gate, &plan, &scan.living.ended, end)?;
            drop(gate);
            free_gone(&self.root);
            let now = plan.report.as_far_as(&done);
            let so_far =
                report.take().map_or_else(|| now.clone(), |before| before.with(now.clone()));
            if done.is_all {
                return Ok(so_far);
            }
            report = Some(so_far);
            // Labels and boxes went at once. What others made since then was not asked for.
            rules.names.clear();
            gone.append(&mut rules.boxes);
            gone.extend(plan.demanded);
            sleep(BETWEEN);
        }
    }

    fn scan(&self, contents: &dyn Contents, known: &mut Known) -> Result<Scan, StoreError> {
        Scan::of(&self.root, contents, known)
    }
}

/// Removes a file; one that is gone already is no error.
fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error).context("remove", path),
        _ => Ok(()),
    }
}
