//! Checks the file systems with e2fsprogs, and the space that the host's file system allocates for them.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod checked;
mod compared;
mod refused;
mod sparse;
mod tools;
mod used;
