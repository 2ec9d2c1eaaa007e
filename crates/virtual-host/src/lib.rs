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
mod prepared;
pub mod programs;
mod qemu;
mod scratch;

pub use error::{HostError, Result};
pub use host::VirtualHost;
pub use initramfs::needs_loader;
pub use kernel::HostKernel;
pub use output::{Ended, Output, Run};
pub use plan::FOLLOW;
pub use prepared::{Finished, Prepared, recall};
pub use qemu::{EMULATOR, Machine, OLDEST_EMULATOR, is_supported, require_qemu};
