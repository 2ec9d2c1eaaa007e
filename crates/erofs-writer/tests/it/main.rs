//! Checks the images with erofs-utils and with the crate `erofs-rs`.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod boundaries;
mod determinism;
mod failures;
mod faults;
mod format;
mod large;
mod limits;
mod memory;
mod model;
mod random;
mod reader;
mod tools;
