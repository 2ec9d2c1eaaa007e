#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod attachments;
mod build_cache;
mod choice;
mod delta;
mod error;
mod form;
mod inflate;
mod known;
mod origin;
mod pack;
mod parallel;
mod parcel;
mod pull;
mod push;
mod referrer;
mod remote;
mod sink;
#[cfg(test)]
mod tests;

pub use attachments::{
    FoundAttachments, KeptAttachments, SentAttachments, attachments, keep_attachments, not_kept,
    send_attachments,
};
pub use build_cache::{
    BuildCache, CACHE_TYPE, CacheToPush, CachedBox, CachedContent, LayerContent, MAX_HEADS,
    MakeHeads, ReadLayer, push_cache,
};
pub use choice::MAX_FETCHED;
pub use delta::{
    DELTAS_TYPE, Deltas, MAX_DELTAS, MAX_DELTAS_MANIFEST, RemoteDelta, has_deltas, push_deltas,
};
pub use error::BoxRegistryError;
pub use form::{BOX_MANIFEST_TYPE, DIGEST_LABEL, Form, PLAIN_DIGEST, PLAIN_SIZE};
pub use inflate::{FillError, Inflating};
pub use origin::{Found, Origin, Targets};
pub use parallel::each;
pub use parcel::Parcel;
pub use pull::{AT_ONCE, Fetched, Plan, Pulled, fetch, missing, plan};
pub use push::{Destination, Pushed, push, push_from, push_parcel};
pub use referrer::{EMPTY, MAX_REFERRER, Referrer, empty};
pub use remote::{Remote, RemoteBlob};
pub use sink::{Sink, SinkDraft};
