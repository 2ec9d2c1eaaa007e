#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod attached;
mod error;
mod keep;
mod load;
mod read;
mod report;
mod save;
mod stream;
#[cfg(test)]
mod tests;

pub use error::ArchiveError;
pub use keep::{NameGiven, Names};
pub use load::{Loaded, Plan};
pub use read::{Archive, Boxed};
pub use save::{Bundle, Saved, check_output, check_place, is_compressed, is_tar};
