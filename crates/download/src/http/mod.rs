//! Connections, TLS, and the rules for URLs.
//!
//! ```text
//! url     text                   → RemoteUrl
//! client  RemoteUrl, headers     → one response; redirects are not followed here
//! upload  RemoteUrl, content     → one response
//! screen  a name in a redirect   → its addresses, if none of them is forbidden
//! ```
//!
//! The client does not read the environment, keep cookies, or decompress the bodies of responses.

mod client;
mod error;
mod screen;
mod upload;
mod url;

pub use client::{Client, NetworkOptions, Progress, timed_out};
pub use error::HttpError;
pub(crate) use upload::Outgoing;
pub use upload::{Content, InMemory};
pub use url::{RemoteUrl, UrlError};
