//! Decides what a box may connect to.
//!
//! Nothing here connects or resolves names. Whoever does so asks, in this order, and connects only to the address that was
//! allowed:
//!
//! 1. [`Target::parse`] for what a client wants: one spelling of a name or an address, and no other;
//! 2. [`Rules::check`] for the name, or the address that stands in its place, and the port;
//! 3. [`Rules::check_address`] for each address that the name turns out to have, and [`Rules::check_own_address`] for one
//!    that the host has itself;
//!
//!    The rules of a box alone lift neither: [`Rules::local`] has what its user has given, and [`Local::wanted`] finds the
//!    rules for which that has to be asked before the box is started;
//! 4. [`hello::read`] for what a TLS client says first, whose name has to be the one that was asked for; at a port that is
//!    not for TLS, [`first::read`] for what a client of TLS or HTTP says first.
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
