//! The bodies of the fuzz targets.
#![forbid(unsafe_code)]

mod boxfile;
mod image;
mod layer;

pub use boxfile::boxfile;
pub use image::{index, manifest};
pub use layer::layer;
