#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod contents;
pub mod delta;
pub mod diff;
pub mod entry;
mod error;
pub mod export;
pub mod largest;
mod links;
pub mod opened;
mod paths;
pub mod sbom;
pub mod verify;
