//! Carries a box's connections to the hosts that its rules allow.
//!
//! A program in a box says where it wants to go in one of three ways ([`ClientKind`]), and [`Filter::serve`] does for each what
//! `egress-rules` asks for, in its order: the target is read in its one spelling and checked, its name is resolved here and
//! once, every address is checked, and the connection goes to an address that was checked, never to a name. At port 443 of
//! a name, the client's first message has to ask for that name before anything of it is sent on; at another port, it may ask for
//! no other.
//!
//! The result of each attempt is a [`Decision`]. The library prints nothing and reads no environment.
#![forbid(unsafe_code)]

mod attempt;
mod decision;
mod filter;
mod first;
mod http;
mod limits;
mod meter;
mod own;
mod refusal;
mod resolver;
mod socks;
mod state;
mod upstream;

#[cfg(test)]
mod tests;

pub use decision::{Channel, Decision, Verdict};
pub use filter::ClientKind;
pub use own::is_own;
pub use refusal::Refusal;
pub use resolver::Resolver;
pub use state::{Filter, LOOKUPS};
