//! The bodies of the fuzz targets.
#![forbid(unsafe_code)]

mod boot;
mod boxfile;
mod image;
mod layer;

pub use boot::{frames, plan};
pub use boxfile::boxfile;
pub use image::{index, manifest};
pub use layer::layer;
