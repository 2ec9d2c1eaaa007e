//! Helpers that the tests' inits share.
#![forbid(unsafe_code)]

pub mod listing;
pub mod ports;
