//! Layers and images that an attacker would send.
//!
//! The layers are those of `testkit::hostile` and archives made of them at random. They are given
//! to `hostile-probe`, a program that goes with them as far as the builder does before it bakes.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a panic is how a test fails")]

mod bombs;
mod builds;
mod corpus;
mod deep;
mod differential;
mod documented;
mod layout;
mod outcome;
mod readers;
mod run;
mod syscalls;
