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
pub use config::{BlobFds, RootsDisk, VmmConfig};
pub use enter::{add_first_root, await_go, configuration, confine, enter, prepare, report_stream};
pub use error::VmmError;
pub use follow::{follow, follow_as};
pub use inherited::close_all_but;
pub use nonce::Nonce;

/// The hidden subcommand of this program that runs the VMM process.
pub const SUBCOMMAND: &str = "vmm";
/// The socket on which the supervisor listens. libkrun connects the guest's [control
/// port](box_contract::plan::CONTROL_PORT) to it.
pub const CONTROL_SOCKET: &str = "control.sock";
/// The socket on which libkrun listens. It connects the supervisor to the agent's port.
pub const AGENT_SOCKET: &str = "agent.sock";
/// The socket on which the host's end of a guest's network listens. libkrun connects the guest to it.
pub const NETWORK_SOCKET: &str = "network.sock";
/// The hardware address of the guest's network device. Any locally administered address (bit 1 of the first byte)
/// works, because only the box sees it.
pub const GUEST_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x02];
