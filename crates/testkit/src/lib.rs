//! Helpers that the examples, the tests and xtask share.
//!
//! - [`images`] assembles OCI image layouts from declared files;
//! - [`debian`] makes real images from Debian packages;
//! - [`assistant`] makes the images of examples/assistant;
//! - [`hello`] makes the two small images of examples/hello;
//! - [`hostile`] is a corpus of layers that an attacker would send;
//! - [`prerequisites`] installs or fetches what is missing, and says so;
//! - [`artefacts`] builds the project's own programs and says where they lie;
//! - [`lean_kernel`] compiles the kernels of `kernel/`;
//! - [`small_kernel`] makes a kernel for boxes that nobody boots;
//! - [`test_box`] writes a small box, and [`damage`] damages boxes as an attacker would;
//! - [`deaf`] has the stops of an agent that does not end when it is asked to;
//! - [`promises`] has the numbers of SPECIFICATION.md, which tests hold;
//! - [`registry`] runs a registry on the loopback device;
//! - [`VirtualHost`] runs a command on an emulated machine that has hardware virtualization.
//!
//! Nothing here prints but what a promise measured: what people should know goes to a callback.
#![forbid(unsafe_code)]

pub mod artefacts;
pub mod assistant;
pub mod damage;
pub mod deaf;
pub mod debian;
pub mod digest;
mod elf;
pub mod error;
pub mod hello;
pub mod hostile;
pub mod images;
pub mod lean_kernel;
pub mod prerequisites;
pub mod program;
pub mod promises;
pub mod registry;
pub mod small_kernel;
pub mod test_box;
pub mod workspace;

pub use artefacts::{Artefacts, Profile};
pub use error::{KitError, Result};
pub use promises::Promise;
pub use registry::DockerRegistry;
pub use test_box::TestBox;
pub use virtual_host::{HostKernel, VirtualHost};
pub use workspace::Workspace;
