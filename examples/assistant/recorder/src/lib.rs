//! Records a run of examples/assistant: who did what, and when, as JSON, as text and as an image.
//!
//! [`SCRIPT`] runs the box and leaves files; [`report`] reads them, and [`for_people`] and [`svg`] tell their story.
#![forbid(unsafe_code)]

mod image;
mod story;

pub use image::svg;
pub use story::{for_people, is_good, report};

/// The script that runs the box beside its model. Its arguments are the directory for the files that it leaves, that of the
/// example, the box, and the model's program.
pub const SCRIPT: &str = include_str!("script.sh");
