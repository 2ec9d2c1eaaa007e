#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod binary;
pub mod budget;
pub mod compose;
mod error;
mod heads;
pub mod history;
pub mod output;
pub mod pack;
mod pipeline;
pub mod project;
mod report;
mod seal;

pub use compose::merged::MergeConflicts;
pub use error::{BuildError, Cause, Meant};
pub use pipeline::{
    BootDigests, Build, CachedLayer, CachedLayers, Checked, Composition, InputError, InputFile,
    InputKind, LayerState, NamedBy, Observer, Preview, PreviewFile, PreviewImage, PreviewSkill,
    Request, Resolved, Step, check, resolve,
};
pub use project::{Pins, Variant};
pub use report::Report;
pub use seal::Sealed;
