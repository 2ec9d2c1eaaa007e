#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod attempt;
mod decision;
mod filter;
mod first;
mod http;
mod limits;
mod meter;
mod own;
mod percent;
mod proxy;
mod refusal;
mod resolver;
mod service;
mod socks;
pub mod ssh_agent;
mod state;
mod upstream;

#[cfg(test)]
mod tests;

pub use decision::{ApiRequest, Channel, Decision, Verdict, printable, target, to_allow};
pub use filter::ClientKind;
pub use own::is_own;
pub use proxy::{Proxy, ProxyError, ProxyFailure};
pub use refusal::Refusal;
pub use resolver::Resolver;
pub use service::{Held, Secrets, Service, ServiceError};
pub use state::{Filter, LOOKUPS};
