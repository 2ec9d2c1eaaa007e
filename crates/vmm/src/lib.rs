#![doc = include_str!("../README.md")]
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
/// The hardware address of the guest's network device. Any locally administered address (the second bit) will do,
/// because it is visible only to the box.
pub const GUEST_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x02];
