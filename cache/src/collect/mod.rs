//! Collection: reduces a store to a size limit, and removes unused content.
//!
//! **What is kept, regardless of the size.** A running box, a box to which a person gave a name, a box to which an existing thin
//! directory elsewhere refers, a box that was made or used within the last hour, and everything that is used by a process that
//! has the store open; see [`Why`]. Other boxes and records are removed by age, the least recently used first, until the store is
//! small enough. A blob is removed with the last box or record that refers to it. Blobs without references are always removed.
//!
//! **Concurrency.** A collection reads the store twice: first without blocking other processes, and then only the changes, while
//! it holds the gate exclusively. While it holds the gate, it removes names, boxes and records first and blobs last, each by one
//! `rename` or `unlink`. After a tenth of a second it releases the gate, deletes the moved files, and starts again if there is
//! more. So no process waits for long. Between two rounds, other processes find an object either complete or absent.
//!
//! **Crash story.** A collection that is killed leaves a consistent store, with a part of the plan carried out. Files that were
//! moved and not deleted are in `tmp/`, with names that begin with `gone-`. The next collection deletes them.

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

/// How long to wait for the gate, which other processes hold for a moment when they begin to use something. Then the collection
/// fails.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest time for which a collection blocks other processes.
const AT_ONCE: Duration = Duration::from_millis(100);
/// The pause in which other processes can take the gate.
const BETWEEN: Duration = Duration::from_millis(20);

/// Reads the formats that the collector does not know: box manifests and thin directories.
pub trait Contents {
    /// Returns the blobs to which a box manifest refers, or `None` if it is no such manifest.
    fn blobs(&self, manifest: &[u8]) -> Option<Vec<Digest>>;

    /// Returns the box in a directory outside the store: its digest, and the blobs to which its manifest refers. `blobs` is the
    /// store's blob directory, which has the files that the directory lacks. Returns `None` if there is no box.
    fn thin(&self, directory: &Path, blobs: &Path) -> Option<(Digest, Vec<Digest>)>;
}

/// The rules of a collection.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The size limit of the store in bytes, or `None` for no limit.
    pub cap: Option<u64>,
    /// Boxes and records that were not used for this long are removed even if the store is small enough.
    pub older_than: Option<Duration>,
    /// Boxes that were made or used within this time are kept. The default is [`Rules::YOUNG`].
    pub young: Duration,
    /// Labels to remove, each only if it means this box. A box that loses its last label is removed like one of `boxes`.
    pub names: BTreeMap<Label, Digest>,
    /// Boxes to remove regardless of their age, with the records of the builds that made them.
    pub boxes: BTreeSet<Digest>,
    /// Also removes requested boxes that run or have other labels.
    pub is_forced: bool,
    /// Removes nothing. The report lists what would be removed.
    pub dry_run: bool,
}

impl Rules {
    /// The default for [`Rules::young`].
    pub const YOUNG: Duration = Duration::from_secs(60 * 60);
}

impl Default for Rules {
    /// Removes only content without references.
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

/// Why a box is kept regardless of the size of the store. If there are several reasons, the first one is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The box runs.
    Running,
    /// A person gave the box a name.
    Tagged,
    /// A thin directory elsewhere refers to the box.
    Thin,
    /// A process that has the store open made or used the box.
    Used,
    /// The box was made or used within the last hour.
    Young,
    /// The directory of the box contains foreign files.
    Foreign,
}

/// A box in a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    /// The digest of the box.
    pub digest: Digest,
    /// The names that the box has or had, sorted.
    pub names: Vec<String>,
    /// The thin directories elsewhere that refer to the box.
    pub directories: Vec<PathBuf>,
    /// Why the box is kept. `None` if it is removed, or kept only because the store is small enough.
    pub reason: Option<Why>,
    /// The size of its blobs.
    pub bytes: u64,
}

/// The result of a collection or of a dry run. Sizes count each file in units of 4096 bytes, like file systems.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The size of the store before.
    pub before: u64,
    /// The size of the store after.
    pub after: u64,
    /// The size limit of the store.
    pub cap: Option<u64>,
    /// The boxes that were removed, the least recently used first.
    pub removed: Vec<Reported>,
    /// The names that were removed, sorted.
    pub removed_names: Vec<String>,
    /// The number of removed records, which are results of build steps.
    pub removed_records: usize,
    /// The number of removed blobs.
    pub removed_blobs: usize,
    /// The boxes that are left, sorted by digest.
    pub kept: Vec<Reported>,
    /// The size of the content that is kept regardless of the limit.
    pub kept_bytes: u64,
    /// The part of `kept_bytes` that is kept only because a process has the store open.
    pub used_bytes: u64,
    /// The number of foreign files and directories, which are left as they are.
    pub foreign: usize,
}

impl Report {
    /// Returns whether the store is still larger than its limit, because everything in it is kept.
    pub fn is_over(&self) -> bool {
        self.cap.is_some_and(|cap| self.after > cap)
    }

    /// Returns the part of the report that was carried out.
    fn as_far_as(&self, done: &carry::Done) -> Self {
        let mut report = self.clone();
        report.removed.truncate(done.boxes);
        report.removed_names.truncate(done.names);
        report.removed_records = done.records;
        report.removed_blobs = done.blobs;
        report
    }

    /// Adds the report of the next round.
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

/// The size of a box.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BoxSize {
    /// The size of the blobs to which only this box refers.
    pub own: u64,
    /// The size of the other blobs of the box.
    pub shared: u64,
}

/// Removes unneeded content from a store.
#[derive(Debug)]
pub struct Collector {
    root: PathBuf,
}

impl Collector {
    /// Opens the store in the directory `root`. Returns `None` if there is none.
    ///
    /// # Errors
    /// The errors of [`StoredBoxes::blobs_of`]: a store that another user can change is refused.
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

    /// Returns the size of the store: its blobs, its records and their data. This takes some microseconds for each file.
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

    /// Runs a collection.
    ///
    /// # Errors
    /// [`StoreError::NoRoots`] if the store has blobs but no references; [`StoreError::Busy`] if another process holds the gate
    /// for too long; [`StoreError::File`]. Content that was removed before the error stays removed.
    pub fn collect(&self, contents: &dyn Contents, rules: &Rules) -> Result<Report, StoreError> {
        self.collect_in(contents, rules, AT_ONCE)
    }

    /// Runs a collection that blocks other processes for at most `at_once` in each round.
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
            // The first round has removed all requested labels and boxes. The request does not apply to new ones of the same
            // names.
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

/// Removes a file. A missing file is no error.
fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error).context("remove", path),
        _ => Ok(()),
    }
}
