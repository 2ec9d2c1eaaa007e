#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod cap;
mod report;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use box_cache::StoreError;
use box_cache::collect::{Collector, Contents, Report, Rules};
use box_contract::Manifest;
use box_digest::Digest;
use box_layout::{Documents, Places};

pub use cap::{Cap, VARIABLE, age};
pub use report::{asked_lines, called, json, lines, over, size_line};

/// The name of the directory with the records of boxlaunch, each of which is a directory.
pub const RECORDS: &str = "boxes";
/// The name of the directory with the snapshots of boxlaunch, each of which is a directory.
pub const SNAPSHOTS: &str = "snapshots";
/// The thin directory in the directory of a record or a snapshot: the documents of a box that can be started again.
pub const STARTED: &str = "box";

/// Lists the blobs of boxes for the collector.
#[derive(Debug, Clone, Copy)]
pub struct BoxContents;

impl Contents for BoxContents {
    fn blobs(&self, manifest: &[u8]) -> Option<Vec<Digest>> {
        let manifest: Manifest = serde_json::from_slice(manifest).ok()?;
        Some(manifest.blobs().into_iter().map(|it| it.digest).collect())
    }

    fn thin(&self, directory: &Path, blobs: &Path) -> Option<(Digest, Vec<Digest>)> {
        let documents = Documents::read(Places::new(directory, Some(blobs))).ok()?;
        let blobs = documents.manifest.blobs().into_iter().map(|it| it.digest);
        Some((documents.digest, blobs.collect()))
    }

    /// The directories with the records and the snapshots of boxlaunch stand for the boxes in them that can be started again.
    fn thin_in(&self, directory: &Path) -> Vec<PathBuf> {
        if ![RECORDS, SNAPSHOTS].map(|it| Some(OsStr::new(it))).contains(&directory.file_name()) {
            return vec![directory.to_owned()];
        }
        let records = fs::read_dir(directory).into_iter().flatten().flatten();
        let places = records.map(|it| it.path().join(STARTED));
        places.filter(|it| it.is_dir()).chain([directory.to_owned()]).collect()
    }
}

/// Removes unused content from the store in the directory `root`. Returns an empty report if there is no store. Waits
/// for other processes ([`Collector::patient`]).
///
/// # Errors
/// The errors of [`Collector::open`] and [`Collector::collect`].
pub fn collect(root: &Path, rules: &Rules, note: fn(&str)) -> Result<Report, StoreError> {
    match Collector::open(root)? {
        Some(collector) => collector.patient(note).collect(&BoxContents, rules),
        None => Ok(Report { cap: rules.cap, ..Report::default() }),
    }
}

/// Collects in the store `root` if it is larger than `cap`, after a command has added `added` bytes to it (see
/// [`box_cache::Store::added`]). Returns the report if something was removed, or if the store is still too large.
///
/// Does not read the store if `added` is 0. While the command has the store open, everything that the command made or used is
/// kept.
///
/// # Errors
/// The errors of [`Collector::open`], [`Collector::size`] and [`Collector::collect`], except [`StoreError::Busy`] and
/// [`StoreError::NoRoots`]: then the store is not collected.
pub fn after_adding(root: &Path, added: u64, cap: Cap) -> Result<Option<Report>, StoreError> {
    let Some(cap) = cap.bytes(root).filter(|_| added > 0) else { return Ok(None) };
    let Some(collector) = Collector::open(root)? else { return Ok(None) };
    if collector.size()? <= cap {
        return Ok(None);
    }
    match collector.collect(&BoxContents, &Rules { cap: Some(cap), ..Rules::default() }) {
        Err(StoreError::NoRoots(_) | StoreError::Busy(_)) => Ok(None),
        Err(error) => Err(error),
        Ok(report) => Ok(Some(report).filter(|it| it.is_over() || it.before > it.after)),
    }
}
