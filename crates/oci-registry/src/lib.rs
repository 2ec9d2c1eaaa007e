//! Manifests and blobs of registries: from them, for the store, and to them.
//!
//! The OCI distribution-spec v1.1, without lists and deletion. Nothing here knows what an image is:
//! names, digests and sizes go in, verified bytes come out. Which manifests are sound is judged by
//! the reader of images.
//!
//! ```text
//! name         text                    → Repository, Reference
//! config       registries.toml         → mirrors, plain http, trusted realms
//! credentials  repository              → password or token, from files and helpers
//! page         a response              → whether a registry can have sent it
//! challenge    WWW-Authenticate        → Basic, or Bearer and its realm
//! server       –                         Options, and one repository on one server
//! refusal      response                → an error
//! auth, token  challenge, credentials  → the Authorization of one server
//! session      resource                → the response after redirects and authentication
//! manifest     response                → verified bytes and their media type
//! client       –                         Registry: mirrors, then the registry itself
//! blobs        digests and sizes       → verified blobs in the store
//! push         contents, a manifest    → what the registry has then
//! ```
//!
//! **Nobody is believed.** Every byte is hashed and counted, and compared with the digest and the
//! size that it was asked for by; manifests are bounded. What a registry names by a tag is named
//! here by what its bytes hash to. URLs that a manifest may give for its layers are ignored.
//!
//! **Secrets stay at home.** Credentials are looked for when a registry asks for some, by that
//! registry's own host. They go to its own origin (scheme, host and port), and to a realm only if
//! that has the same origin or is trusted for this registry, by the configuration or, for the
//! default registry, from the start. They go over https, unless the registry itself is configured
//! for plain http. A request that was redirected to another origin has none, also where a further
//! redirect leads back. A mirror is another host: it gets only what is kept for itself. No message
//! shows a secret, or any text from a server that could repeat one.
//!
//! **What fails.** A connection that breaks, a silent or slow server, a 408, 429 or 5xx are retried
//! after pauses that double; a blob is then resumed where it broke, and one that is sent begins again. Everything else is an error at
//! once. A blob gets its name in the store when its last byte was verified; a failure leaves nothing.
#![forbid(unsafe_code)]

mod auth;
mod blobs;
mod challenge;
mod client;
mod config;
mod credentials;
mod error;
mod manifest;
mod name;
mod page;
mod push;
mod refusal;
mod server;
mod session;
#[cfg(test)]
mod tests;
mod token;

pub use client::Registry;
pub use config::{ConfigError, RegistryConfig};
pub use error::RegistryError;
pub use manifest::{DOCKER_SCHEMA_1_TYPES, MAX_MANIFEST, Manifest};
pub use name::{Reference, Repository, Tag};
pub use push::{Pusher, Uploaded};
pub use server::{Notices, Options};
