#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod address;
pub mod first;
pub mod hello;
mod local;
mod peer;
mod rules;
mod target;

pub use box_contract::network::USUAL_PORTS;
pub use local::{Local, Wanted};
pub use peer::{Peer, with_port};
pub use rules::{Denial, PeerError, Rule, Rules};
pub use target::{Host, Target, TargetError};
