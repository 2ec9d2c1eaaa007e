#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod artefacts;
pub mod assistant;
pub mod boots;
pub mod cache;
pub mod deaf;
pub mod debian;
pub mod digest;
mod elf;
pub mod error;
pub mod hello;
pub mod lean_kernel;
pub mod openssh;
pub mod prerequisites;
pub mod program;
pub mod promises;
pub mod registry;
pub mod workspace;

pub use artefacts::{Artefacts, Profile};
pub use cache::Cache;
pub use error::{KitError, Result};
pub use openssh::OpenSsh;
pub use promises::Promise;
pub use registry::DockerRegistry;
pub use virtual_host::{HostKernel, VirtualHost};
pub use workspace::Workspace;
