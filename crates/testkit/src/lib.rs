//! Images, boxes and attacks for tests, made of declared bytes: nothing is fetched, and no program of the project is run.
//!
//! - [`images`] assembles OCI image layouts from declared files;
//! - [`hostile`] is a corpus of layers that an attacker would send;
//! - [`test_box`] writes a small box, and [`damage`] damages boxes as an attacker would;
//! - [`error_table`] checks a page of errors against the code that names them;
//! - [`small_kernel`] and [`small_init`] make a kernel and an init for boxes that nobody boots.
//!
//! The tests of every crate may use it, those of the language too. So it depends on little, and on zstd, which is C, with
//! the feature `zstd` alone. The crate `testbed` has what needs a virtual host, Debian packages or the project's programs.
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
