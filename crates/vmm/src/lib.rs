//! The process that becomes a virtual machine, and the jail that confines it.
//!
//! libkrun turns the process that calls it into the virtual machine and ends it with the guest, so
//! the machine has a process of its own: the caller's program again. It is handed the box's blobs as open
//! files, which libkrun opens again through `/proc/self/fd`, and all else as JSON on standard
//! input; a command line would show the nonce to every process of the host. libkrun's log and the
//! guest's console come back on its standard error; standard output is for one report, on the jail.
//!
//! ```text
//! child        the process as its supervisor sees it: started, confined, watched, killed
//! config       what it is given
//! enter        the process from inside: from its configuration to the machine
//! krun         libkrun, one safe function for each call
//! root_disk    the disk of a rootfs that is in several files
//! jail         users, namespaces, system calls, Landlock and control groups of the process
//! confine      the supervisor's part of the jail
//! runtime_dir  the private directory of one run
//! signals      the signals that end a run
//! ```
//!
//! All `unsafe` code of the host is in this crate. It prints nothing and reads no environment.

#![deny(unsafe_code)]

mod child;
mod config;
pub mod confine;
mod enter;
mod error;
mod follow;
mod inherited;
pub mod jail;
pub mod krun;
mod nonce;
mod root_disk;
pub mod runtime_dir;
pub mod signals;
#[cfg(test)]
mod tests;

pub use child::Vmm;
pub use config::{BlobFds, VmmConfig};
pub use enter::{add_first_root, await_go, configuration, confine, enter, prepare, report_stream};
pub use error::VmmError;
pub use follow::{follow, follow_as};
pub use inherited::close_all_but;
pub use nonce::Nonce;

/// The hidden subcommand as which the VMM process is started.
pub const SUBCOMMAND: &str = "vmm";
/// The supervisor's socket, to which the [control port](box_contract::plan::CONTROL_PORT) leads.
pub const CONTROL_SOCKET: &str = "control.sock";
/// The socket that libkrun makes for the agent's port.
pub const AGENT_SOCKET: &str = "agent.sock";
/// The socket on which libkrun connects a guest to its network.
pub const NETWORK_SOCKET: &str = "network.sock";
/// The hardware address of the guest's device: any that somebody assigns (its second bit) will do, nobody else sees it.
pub const GUEST_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x02];
