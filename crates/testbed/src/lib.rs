//! What the tests, the benchmarks and xtask run on and with.
//!
//! - [`VirtualHost`] runs a command on an emulated machine that has hardware virtualization;
//! - [`prerequisites`] installs or fetches what is missing, and says so;
//! - [`artefacts`] builds the project's own programs and says where they lie;
//! - [`lean_kernel`] compiles the lean kernel of `kernel/`;
//! - [`debian`] makes real images from Debian packages;
//! - [`hello`] makes the two small images of examples/hello;
//! - [`assistant`] makes the images of examples/assistant;
//! - [`registry`] runs a registry on the loopback device;
//! - [`deaf`] has the stops of an agent that does not end when it is asked to;
//! - [`promises`] has the numbers of SPECIFICATION.md, which tests hold.
//!
//! Nothing here prints but what a promise measured: what people should know goes to a callback.
//!
//! Images and boxes that a test declares are in the crate `testkit`, which compiles no emulator.
#![forbid(unsafe_code)]

pub mod artefacts;
pub mod assistant;
pub mod deaf;
pub mod debian;
pub mod digest;
mod elf;
pub mod error;
pub mod hello;
pub mod lean_kernel;
pub mod prerequisites;
pub mod program;
pub mod promises;
pub mod registry;
pub mod workspace;

pub use artefacts::{Artefacts, Profile};
pub use error::{KitError, Result};
pub use promises::Promise;
pub use registry::DockerRegistry;
pub use virtual_host::{HostKernel, VirtualHost};
pub use workspace::Workspace;
