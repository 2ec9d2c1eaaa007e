#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod auth;
mod blobs;
mod challenge;
mod client;
mod config;
mod credentials;
mod error;
mod index;
mod manifest;
mod name;
mod page;
mod push;
mod referrers;
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
pub use referrers::{Listed, MAX_LIST, MAX_PAGES, MAX_REFERRERS};
pub use server::{Notices, Options};
