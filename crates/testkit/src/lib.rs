#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod damage;
pub mod error;
pub mod error_table;
pub mod hostile;
pub mod images;
pub mod small_init;
pub mod small_kernel;
pub mod test_box;

pub use error::{FileError, Result};
pub use test_box::TestBox;
