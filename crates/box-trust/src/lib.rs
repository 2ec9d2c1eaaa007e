#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod bundle;
mod error;
mod json;
mod keys;
mod pem;
mod policy;
mod provenance;
mod statement;
#[cfg(test)]
mod tests;
mod verify;

pub use bundle::{BUNDLE_MEDIA_TYPE, MAX_BUNDLE_BYTES};
pub use error::TrustError;
pub use keys::{Algorithm, MAX_KEY_BYTES, PrivateKey, PublicKey};
pub use policy::{Decision, MAX_POLICY_BYTES, Origin, Policy, Refusal, Requirement};
pub use provenance::{BUILD_TYPE, Input, Provenance};
pub use statement::{Kind, Statement};
pub use verify::{Accepted, Claim, Verified, claim, verify};
