//! Keeps the store of both programs below its size, and says what went and what was kept.
//!
//! [`box_cache::collect`] has the rules. This crate knows what it takes to apply them to boxes: which blobs a box has, how large
//! a store may be, and how a report reads.
#![forbid(unsafe_code)]

mod cap;
mod report;

use std::path::Path;

use box_cache::StoreError;
use box_cache::collect::{Collector, Contents, Report, Rules};
use box_contract::Manifest;
use box_digest::Digest;
use box_layout::{Documents, Places};

pub use cap::{Cap, VARIABLE, age};
pub use report::{asked_lines, called, json, lines, over, size_line};

/// Knows which blobs the boxes of a store have.
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
}

/// Collects in the store in a directory. One that is not there loses nothing.
///
/// # Errors
/// Those of [`Collector::open`] and [`Collector::collect`].
pub fn collect(root: &Path, rules: &Rules) -> Result<Report, StoreError> {
    match Collector::open(root)? {
        Some(collector) => collector.collect(&BoxContents, rules),
        None => Ok(Report { cap: rules.cap, ..Report::default() }),
    }
}

/// Looks at the size of a store to which a command has added so many bytes (see [`box_cache::Store::added`]), and collects if it is
/// larger than it may be. Returns what was collected, if something was, or if the store is too large all the same.
///
/// If nothing was added, nothing is looked at. Whatever the command made or used stays, as long as its store is open.
///
/// # Errors
/// Those of [`Collector::collect`]. A store that another process keeps locked, or in which nothing refers to any blob, is left as it is.
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
