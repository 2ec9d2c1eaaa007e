//! Helpers for the tests' inits.
#![forbid(unsafe_code)]

pub mod listing;
pub mod ports;
