//! Builds a box from a Boxfile.
//!
//! Each stage takes one noun and gives one noun:
//!
//! ```text
//! source   image reference    → Image (digests)
//! layer    layer blob         → LayerIndex and a pack of data; LayerIndexes → Tree
//! compose  Trees, skills      → root Tree, RunPlan
//! bake     root Tree          → EROFS rootfs
//! seal     rootfs, init, …    → box
//! ```
//!
//! [`build()`] runs them, and asks the store first whether it has been done before. Nothing is
//! extracted to a disk: no path of an image ever reaches the host's file system.
#![forbid(unsafe_code)]

pub mod bake;
mod build;
pub mod compose;
mod error;
pub mod kernel;
pub mod layer;
pub mod output;
pub mod pack;
mod seal;
pub mod skill;
pub mod source;
pub mod tree;

pub use build::{Build, Request, build, root_tree};
pub use error::BuildError;
pub use seal::Sealed;
