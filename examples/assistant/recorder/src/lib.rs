#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod image;
mod story;

pub use image::svg;
pub use story::{for_people, is_good, report};

/// The script that runs the box and its model. Its arguments are the output directory, the example's directory, the box, and the
/// model's program.
pub const SCRIPT: &str = include_str!("script.sh");
