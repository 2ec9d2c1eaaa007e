//! Collection: reduces a store to a size limit, and removes unused content.
//!
//! **What is kept, regardless of the size.** Running boxes; boxes that a person named, pulled or loaded; boxes of thin
//! directories; boxes that were made or used within the last hour; boxes with foreign files in their directories; and everything
//! that is used by a process that has the store open. See [`Why`]. A *thin directory* is a directory outside the store that has
//! the documents of a box, but not its blobs.
//!
//! **What is removed.** Other boxes and records, the least recently used first, until the store is small enough. A blob is
//! removed with the last box or record that refers to it. Blobs without references are always removed.
//!
//! **Concurrency.** A collection reads the store twice: first without blocking other processes, and then only the changes, while
//! it holds the gate (`Gate`) exclusively. While it holds the gate, it removes names, boxes and records first and blobs last,
//! each by one `rename` to `tmp/` or by one `unlink`. After a tenth of a second, it releases the gate, deletes the renamed files,
//! and starts another round if there is more to remove. So no process waits for long. Between two rounds, other processes find
//! an object either complete or absent.
//!
//! **Crash story.** A collection that is killed leaves a consistent store, with a part of the plan carried out. Files that were
//! renamed but not deleted are in `tmp/`, with names that begin with `gone-`. The next collection deletes them.

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
use crate::lock::waiting_text;
use crate::store::{DIRECTORIES, is_store};
use crate::{Label, StoreError, StoredBoxes};
pub(crate) use carry::free_gone;
use plan::plan;
use scan::{Known, Scan, size_of_directory};

/// How long a collection waits for the [`Gate`] before it fails. Other processes hold the gate only for a moment, when they begin
/// to use an object.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time after which a round of a collection removes no more files, because it blocks other processes.
const AT_ONCE: Duration = Duration::from_millis(100);
/// The pause between two rounds, in which other processes can take the gate.
const BETWEEN: Duration = Duration::from_millis(20);

/// Reads the formats that the collector does not know: box manifests and thin directories.
pub trait Contents {
    /// Returns the blobs to which a box manifest refers, or `None` if `manifest` is not a box manifest.
    fn blobs(&self, manifest: &[u8]) -> Option<Vec<Digest>>;

    /// Returns the box in the thin directory `directory`: its digest, and the blobs to which its manifest refers. `blobs` is the
    /// store's blob directory, which has the blobs that `directory` lacks. Returns `None` if there is no box in `directory`.
    fn thin(&self, directory: &Path, blobs: &Path) -> Option<(Digest, Vec<Digest>)>;

    /// Returns the thin directories for which a directory that was noted in the store stands: by default itself.
    fn thin_in(&self, directory: &Path) -> Vec<PathBuf> {
        vec![directory.to_owned()]
    }
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
    /// Labels to remove, each with the box that must still have it. A box that loses its last label is removed like one of
    /// `boxes`.
    pub names: BTreeMap<Label, Digest>,
    /// Boxes to remove regardless of their age, with the records of the builds that made them.
    pub boxes: BTreeSet<Digest>,
    /// Whether to remove requested boxes even if they run, or have several labels of which not all are requested.
    pub is_forced: bool,
    /// Whether to remove nothing, and only report what would be removed.
    pub dry_run: bool,
}

impl Rules {
    /// The default for [`Rules::young`].
    pub const YOUNG: Duration = Duration::from_secs(60 * 60);
}

impl Default for Rules {
    /// Returns the rules that remove only useless content, such as blobs without references.
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
    /// A person named, pulled or loaded the box.
    Tagged,
    /// A thin directory refers to the box.
    Thin,
    /// A process that has the store open made or used the box.
    Used,
    /// The box was made or used within the time [`Rules::young`].
    Young,
    /// The directory of the box contains foreign files.
    Foreign,
}

/// A box in a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    /// The digest of the box.
    pub digest: Digest,
    /// The names and references of the box. For a removed box, the ones that it had.
    pub names: Vec<String>,
    /// The thin directories that refer to the box.
    pub directories: Vec<PathBuf>,
    /// Why the box is kept. `None` if it is removed, or kept only because the store is small enough.
    pub reason: Option<Why>,
    /// The total size of the box's blobs in bytes.
    pub bytes: u64,
}

/// The result of a collection or of a dry run. Sizes are in bytes. The size of each file is rounded up to a multiple of 4096,
/// because file systems allocate such units.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The size of the store before the collection.
    pub before: u64,
    /// The size of the store after the collection.
    pub after: u64,
    /// The size limit of the store.
    pub cap: Option<u64>,
    /// The boxes that were removed: the requested ones, and then the others, the least recently used first.
    pub removed: Vec<Reported>,
    /// The names and references that were removed.
    pub removed_names: Vec<String>,
    /// The number of removed records, which are results of build steps.
    pub removed_records: usize,
    /// The number of removed blobs.
    pub removed_blobs: usize,
    /// The boxes that were not removed, sorted by digest.
    pub kept: Vec<Reported>,
    /// The size of the content that is kept regardless of the limit.
    pub kept_bytes: u64,
    /// The part of `kept_bytes` that is kept only because a process has the store open.
    pub used_bytes: u64,
    /// The number of foreign files and directories. They stay unchanged.
    pub foreign: usize,
}

impl Report {
    /// Returns whether the store is still larger than its limit, because everything in it is kept.
    pub fn is_over(&self) -> bool {
        self.cap.is_some_and(|cap| self.after > cap)
    }

    /// Returns the report without the removals that were not carried out.
    fn carried_out(&self, done: &carry::Done) -> Self {
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

/// The size of a box in bytes.
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
    /// Gets a [`waiting_text`] if another process has the gate for more than a second. The collection then waits without end.
    note: Option<fn(&str)>,
}

impl Collector {
    /// Opens the store in the directory `root`. Returns `None` if there is none.
    ///
    /// # Errors
    /// The errors of [`StoredBoxes::blobs_of`]: a store that another user can change is refused.
    pub fn open(root: &Path) -> Result<Option<Self>, StoreError> {
        StoredBoxes::blobs_of(root)?;
        if !is_store(root) {
            return Ok(None);
        }
        for part in DIRECTORIES.map(|name| root.join(name)) {
            if part.is_symlink() {
                return Err(ErrorKind::NotADirectory.into()).context("use", &part);
            }
            check_private(&part)?;
        }
        Ok(Some(Self { root: root.to_owned(), note: None }))
    }

    /// Waits for other processes without end, and gives `note` a [`waiting_text`] if that takes more than a second. By default, a
    /// collection fails after some seconds with [`StoreError::Busy`].
    #[must_use]
    pub fn patient(self, note: fn(&str)) -> Self {
        Self { note: Some(note), ..self }
    }

    /// Takes the gate of a round.
    fn gate(&self) -> Result<Gate, StoreError> {
        match self.note {
            Some(note) => Gate::alone_waiting(&self.root, || note(&waiting_text(&self.root))),
            None => Gate::alone_within(&self.root, PATIENCE),
        }
    }

    /// Returns the size of the store's blobs, records and data in bytes. This takes some microseconds for each file.
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

    /// Runs a collection whose rounds end when `at_once` is over, except for a minimum of removed files.
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
            let gate = self.gate()?;
            let end = Instant::now() + at_once;
            let scan = self.scan(contents, &mut known)?;
            let plan = plan(&scan, &rules, &gone).ok_or_else(no_roots)?;
            let done = carry::out(&self.root, &gate, &plan, &scan.living.ended, end)?;
            drop(gate);
            free_gone(&self.root);
            let now = plan.report.carried_out(&done);
            let so_far =
                report.take().map_or_else(|| now.clone(), |before| before.with(now.clone()));
            if done.is_all {
                return Ok(so_far);
            }
            report = Some(so_far);
            // The first round has removed all requested labels and boxes. The request does not apply to a label or box that was
            // added again since.
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
