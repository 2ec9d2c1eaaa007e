//! Builds a box from a Boxfile.
//!
//! Each stage takes one noun and gives one noun:
//!
//! ```text
//! project    a Boxfile's path   → Boxfile, Lock
//! source     image reference    → Image (digests)
//! registry   name and digests   → blobs in the store
//! fetch      URL and sha256     → a blob in the store
//! binary     a program's file   → Tree
//! layer      layer blob         → LayerIndex and a pack of data; LayerIndexes → Tree
//! compose    Trees, skills      → root Tree, RunPlan
//! bake       root Tree          → EROFS rootfs
//! seal       rootfs, init, …    → box
//! opened     a box's directory  → its documents and its Listing
//! difference two of anything    → what differs
//! export     box                → image, archive, directory or OCI image
//! ```
//!
//! [`build()`] runs them up to the box, and asks the store first whether it has been done before.
//! Nothing is extracted to a disk: no path of an image reaches the host's file system, unless
//! [`export::Export::directory`] is asked for just that.
#![forbid(unsafe_code)]

pub mod bake;
pub mod binary;
mod checkout;
pub mod compose;
mod error;
pub mod kernel;
pub mod output;
pub mod pack;
mod pipeline;
pub mod project;
mod report;
mod seal;
pub mod skill;

pub use error::BuildError;
pub use pipeline::{
    Build, Composition, LayerState, Preview, PreviewImage, PreviewSkill, Request, Resolved,
    Unmerged, build, check, preview, resolve, root_tree,
};
pub use project::{Pins, Variant};
pub use report::Report;
pub use seal::Sealed;
