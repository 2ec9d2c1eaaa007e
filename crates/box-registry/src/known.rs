//! Remembers the digest and size of the compressed form of plain blobs. If a registry still has the compressed form, a push does
//! not compress the blob again.
//!
//! A record means that the compressed bytes decompress to the plain blob. It stays true if the version of zstd changes. A push
//! compresses the blob again if the registry does not have the remembered bytes.

use box_cache::{ActionKey, KeyHasher, Refers, Store};
use box_digest::Digest;

use crate::form::{Coding, Sent};

/// The minimum size of remembered blobs, in bytes. Smaller blobs are compressed quickly.
const MIN_KNOWN: u64 = 1 << 20;

/// Remembers the stored blob of a plain blob of `size` bytes. Errors of the store are ignored, because a record only saves work.
pub(crate) fn remember(store: &Store, plain: &Digest, size: u64, sent: &Sent) {
    if size >= MIN_KNOWN
        && sent.coding == Coding::Zstd
        && recall(store, plain).as_ref() != Some(sent)
    {
        let record = [sent.digest.as_bytes().as_slice(), &sent.size.to_le_bytes()].concat();
        store.record_action(&key("packed", plain), &record, &Refers::NOTHING).ok();
    }
}

/// Returns the remembered stored blob of a plain blob.
pub(crate) fn recall(store: &Store, plain: &Digest) -> Option<Sent> {
    let record = store.action(&key("packed", plain)).ok()??;
    let (digest, size) = record.split_at_checked(32)?;
    let digest = Digest::from_bytes(digest.try_into().ok()?);
    Some(Sent { digest, size: u64::from_le_bytes(size.try_into().ok()?), coding: Coding::Zstd })
}

/// Returns the key of an action on a plain blob.
pub(crate) fn key(action: &str, plain: &Digest) -> ActionKey {
    KeyHasher::new(action, 1).part(plain.as_bytes()).finish()
}
