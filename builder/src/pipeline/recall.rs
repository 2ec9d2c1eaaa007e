//! Takes a box from the store, if all its blobs are there and undamaged.

use box_cache::{ActionKey, Refers, Store};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::resolved::Build;
use crate::compose::merged::Unused;
use crate::{BuildError, Sealed};

/// A box, and the warnings of its build.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    sealed: Sealed,
    unused: Vec<Unused>,
}

/// Records a box whose blobs were just written or verified. `actions` are the keys of its stages' records. A build that
/// takes the box from the store marks these records as used, too, because a build after a change of one input reuses
/// them.
pub(super) fn record(
    store: &Store,
    key: &ActionKey,
    sealed: &Sealed,
    unused: &[Unused],
    actions: &[ActionKey],
) -> Result<(), BuildError> {
    let record = Record { sealed: sealed.clone(), unused: unused.to_vec() };
    let blobs: Vec<_> = sealed.blobs().into_iter().map(|(blob, _)| blob).collect();
    Ok(store.record_action(
        key,
        &serde_json::to_vec(&record)?,
        &Refers { blobs: &blobs, actions },
    )?)
}

/// Returns the box that an earlier build made of the same inputs, with its warnings. Returns `None` if there is no such
/// box, or if one of its blobs is missing or damaged: a new build repairs the store.
pub(super) fn recall(store: &Store, key: &ActionKey) -> Result<Option<Build>, BuildError> {
    let record = store.action(key)?;
    let record: Option<Record> = record.and_then(|it| serde_json::from_slice(&it).ok());
    let Some(Record { sealed, unused }) = record else { return Ok(None) };
    let is_whole = sealed.blobs().par_iter().all(|(blob, _)| store.is_whole(blob));
    Ok(is_whole.then_some(Build {
        sealed,
        cached: true,
        unused,
        absent: Vec::new(),
        has_cached_layers: false,
    }))
}
