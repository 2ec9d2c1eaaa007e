//! Opens a box, verifies what it boots, starts it under libkrun and holds the start to its budget.
//!
//! Two processes run a box. The **supervisor** opens the box ([`open()`]), verifies its blobs
//! ([`verify`]), starts the machine ([`machine`]) with its control channel ([`control`]) and its console ([`console`]),
//! and serves its clients ([`supervisor`]) until it ends. The **VMM** ([`vmm`]) is the same program started again: it
//! calls libkrun ([`krun`]), and becomes the virtual machine. It gets the blobs as open files,
//! so that what was verified is what boots. Whether the host can run a machine at all is found out
//! before that ([`host`]), by a guest of a hundred bytes.
//!
//! Commands find a running box by its record ([`boxes`]), and talk to its supervisor as [`client`]s. What outlives a box
//! is in [`volumes`]. [`agent`] is a client of the agents themselves.
//!
//! The library prints nothing and reads no environment: the program hands it paths and writers.
#![deny(unsafe_code)]

pub mod agent;
mod agent_socket;
pub mod boxes;
pub mod client;
pub mod clock;
pub mod console;
pub mod control;
pub mod copy;
mod elf;
pub mod error;
pub mod floor;
pub mod health;
pub mod host;
pub mod input;
pub mod jail;
pub mod krun;
pub mod machine;
pub mod network;
mod open;
pub mod output;
mod own;
pub mod places;
pub mod receipt;
pub mod report;
pub mod resources;
pub mod runtime_dir;
pub mod scratch;
pub mod shares;
pub mod signals;
pub mod skills;
mod state;
pub mod supervisor;
pub mod task;
pub mod tty;
pub mod variables;
pub mod verify;
pub mod vmm;
pub mod volumes;
mod wall_clock;

pub use error::{LaunchError, RunFailure};
pub use open::{check_enforced, check_owner, check_owners, open};
