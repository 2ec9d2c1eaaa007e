//! The bodies of the fuzz targets.
#![forbid(unsafe_code)]

mod boot;
mod boxfile;
mod delta;
mod egress;
mod image;
mod layer;

pub use boot::{frames, plan};
pub use boxfile::boxfile;
pub use delta::delta;
pub use egress::{first_bytes, proxy};
pub use image::{index, manifest};
pub use layer::layer;
