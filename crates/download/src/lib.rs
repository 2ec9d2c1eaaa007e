//! Downloads files over HTTP into the store, verified.
//!
//! [`http`] is the client: its TLS roots, its bounds, its own handling of redirects. [`fetch`] gets
//! one file that is named by URL and sha256.
#![forbid(unsafe_code)]

pub mod fetch;
pub mod http;
