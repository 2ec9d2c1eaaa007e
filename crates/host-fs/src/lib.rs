//! Reads files of the host within bounds, and puts files and directories in place so that a crash
//! leaves the old or the new.
//!
//! - [`read`] opens and reads regular files, whatever was put in their place.
//! - [`publish`] puts files and directories in place, whole or not at all.
//! - [`stamp`] recognizes a file that has not changed since it was hashed.
#![forbid(unsafe_code)]

mod error;
pub mod publish;
pub mod read;
pub mod stamp;

pub use error::FileError;
