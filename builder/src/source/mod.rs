//! Where images come from: OCI image layout directories.
//!
//! Formats: OCI image-spec v1.1, image-layout.md, image-index.md, manifest.md and config.md. A
//! layout is input from strangers: every document is bounded, and its digest and size are verified
//! before it is read; a digest is parsed before it becomes a file name.

mod config;
mod documents;
mod error;
mod layout;

pub use config::{ImageConfig, Process};
pub use error::SourceError;
pub use layout::{Image, Wanted, open};
