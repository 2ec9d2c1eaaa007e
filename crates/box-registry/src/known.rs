//! How blobs were compressed before, by a push or for a pull: what a registry has need not be compressed to know its digest.
//!
//! A record says that these compressed bytes inflate to this plain blob, which was verified when it was written. That stays so
//! whatever compresses later, so the record depends on no version of zstd; a push that finds the registry without them compresses
//! again.

use box_cache::{ActionKey, KeyHasher, Refers, Store};
use box_digest::Digest;

use crate::form::Sent;

/// Blobs below this size, in bytes, are compressed in a moment and are not remembered.
const MIN_KNOWN: u64 = 1 << 20;

/// Remembers how a plain blob of so many bytes travels. A store that cannot be written to remembers nothing: this saves work alone.
pub(crate) fn remember(store: &Store, plain: &Digest, size: u64, sent: &Sent) {
    if size >= MIN_KNOWN && sent.is_zstd && recall(store, plain).as_ref() != Some(sent) {
        let record = [sent.digest.as_bytes().as_slice(), &sent.size.to_le_bytes()].concat();
        store.record_action(&key("packed", plain), &record, &Refers::NOTHING).ok();
    }
}

/// Returns how a plain blob has travelled.
pub(crate) fn recall(store: &Store, plain: &Digest) -> Option<Sent> {
    let record = store.action(&key("packed", plain)).ok()??;
    let (digest, size) = record.split_at_checked(32)?;
    let digest = Digest::from_bytes(digest.try_into().ok()?);
    Some(Sent { digest, size: u64::from_le_bytes(size.try_into().ok()?), is_zstd: true })
}

/// Returns the key of what is done with a plain blob.
pub(crate) fn key(action: &str, plain: &Digest) -> ActionKey {
    KeyHasher::new(action, 1).part(plain.as_bytes()).finish()
}
