#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod cpio;
mod disk;
mod error;
pub mod guest;
mod host;
mod initramfs;
pub mod kernel;
mod output;
mod plan;
mod programs;
mod qemu;

pub use error::{HostError, Result};
pub use host::{Clock, VirtualHost};
pub use kernel::HostKernel;
pub use output::{Ended, Output};
pub use plan::FOLLOW;
pub use qemu::Machine;
