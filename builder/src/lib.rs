//! Builds a box from a Boxfile.
//!
//! Each stage takes one noun and gives one noun:
//!
//! ```text
//! project    a Boxfile's path        → Boxfile, Lock
//! oci-image  image reference         → Image (digests)
//! download   URL and sha256          → a blob in the store
//! binary     a program's file        → Tree
//! oci-layer  layer blob              → LayerIndex, pack and segment of data; LayerIndexes → Tree
//! compose    Trees, skills           → root Tree, RunPlan
//! pipeline   root Tree, segments     → the metadata of the rootfs
//! seal       metadata, segments, …   → box
//! output     box                     → its directory
//! budget     box, virtual host       → how long it takes to start
//! ```
//!
//! [`resolve`] reads the inputs, and [`Resolved::build`] runs the stages up to the box, or takes it from
//! the store where it is known.
//! Nothing is extracted to a disk: no path of an image reaches the host's file system.
#![forbid(unsafe_code)]

pub mod binary;
pub mod budget;
pub mod compose;
mod error;
pub mod output;
pub mod pack;
mod pipeline;
pub mod project;
mod report;
mod seal;

pub use compose::merged::MergeConflicts;
pub use error::{BuildError, Cause, Meant};
pub use pipeline::{
    Build, Checked, Composition, InputError, InputFile, InputKind, LayerState, NamedBy, Observer,
    Preview, PreviewFile, PreviewImage, PreviewSkill, Request, Resolved, Step, check, resolve,
};
pub use project::{Pins, Variant};
pub use report::Report;
pub use seal::Sealed;
