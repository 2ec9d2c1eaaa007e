//! What all clients share: connections, TLS, and the rules for URLs and redirects.
//!
//! ```text
//! url       text                   → RemoteUrl
//! roots     files of certificates  → the TLS configuration
//! client    RemoteUrl, headers     → one answer; no redirect is followed by itself
//! redirect  an answer              → where to go on
//! range     a header               → which part of a file an answer has
//! ```
//!
//! Nothing is read from the environment, no cookie is kept, and an answer's body is given as it
//! came: nothing is decompressed.

mod client;
mod error;
mod range;
mod redirect;
mod roots;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod url;

pub use client::{Client, ClientOptions, timed_out};
pub use error::HttpError;
pub use range::content_range;
pub use redirect::{Refused, location, next};
pub use url::{RemoteUrl, UrlError};
