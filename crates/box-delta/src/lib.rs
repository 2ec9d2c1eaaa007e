#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod apply;
mod format;
mod made;
mod make;
mod partner;

pub use apply::{ApplyError, Given, apply, sources};
pub use format::{MAX_FRAME, MAX_PREFIX, MAX_SOURCES};
pub use made::Made;
pub use make::{Extent, Piece, Plan, Source, make};
pub use partner::{PlacedFile, partners};
