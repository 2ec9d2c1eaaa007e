//! `boxbuild` as its users call it: what it makes, what it refuses, what it leaves behind.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a panic is how a test fails")]

mod bad_input;
mod checkout;
mod crash;
mod example;
mod reproducible;
mod store;
