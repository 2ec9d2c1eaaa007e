//! The form that a box has in a registry.
//!
//! A box is an OCI image layout with plain blobs ([docs/format.md](../../../docs/format.md)). In a registry its blobs travel
//! compressed, and another manifest names them, the **registry's manifest** `T`:
//!
//! ```text
//! T  OCI image manifest, artifactType application/vnd.boxbuild.box.v1
//!    config   the box's own manifest, byte for byte      so that T.config.digest is the box digest
//!    layers   the box's config, and each other blob of it: one zstd frame, or plain where that is not smaller;
//!             annotated with the digest and the size of the plain blob
//! ```
//!
//! Docker has the same relation between the digest in a registry and the ID of an image. The box digest depends on no
//! compression: a box that somebody compresses again is the same box. Three forms are read:
//!
//! | form | `artifactType` | `config` | `layers` |
//! |---|---|---|---|
//! | [`Form::Artifact`] | that of a box | the box's manifest | as above |
//! | [`Form::Image`], for registries that refuse unknown types | none | an OCI image config: `diff_ids` are the plain digests, and a label is the box digest | the box's manifest, then as above, with the media types of an image's layers |
//! | [`Form::Plain`], a box that another tool has copied | that of a box | the box's config | the box's blobs: this is the box's own manifest |
//!
//! ```text
//! form     the registry's manifest, written and read
//! pack     a plain blob            → one zstd frame, the same bytes on each machine
//! inflate  bytes of a download     → a plain blob, bounded and verified
//! known    a plain blob            → how it was compressed before
//! parallel several blobs at once
//! origin   where manifests and blobs come from   a registry, or a file with boxes
//! sink     plain blobs             → the store, or another place
//! remote   a reference             → the box's manifest, and where each of its blobs is
//! push     an open box             → a registry
//! pull     a reference             → a plan, and then the blobs that the sink lacks
//! ```
//!
//! **Nobody is believed.** The box digest is the sha256 of the box's manifest, and that names each plain blob with its digest and
//! size. So what `T` says of blobs only tells where they are: a plain blob gets its name when its own bytes were hashed. A blob inflates to no more than
//! its size, in a window of at most 32 MiB.
#![forbid(unsafe_code)]

mod error;
mod form;
mod inflate;
mod known;
mod origin;
mod pack;
mod parallel;
mod pull;
mod push;
mod remote;
mod sink;
#[cfg(test)]
mod tests;

pub use error::BoxRegistryError;
pub use form::{BOX_MANIFEST_TYPE, DIGEST_LABEL, Form, PLAIN_DIGEST, PLAIN_SIZE};
pub use inflate::{FillError, Inflating};
pub use origin::{Found, Origin, Targets};
pub use parallel::each;
pub use pull::{AT_ONCE, Fetched, Plan, Pulled, fetch, missing, plan};
pub use push::{Destination, Pushed, push, push_from};
pub use remote::{Remote, RemoteBlob};
pub use sink::{Sink, SinkDraft};
