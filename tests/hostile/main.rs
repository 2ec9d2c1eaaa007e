//! Tests with layers and images that an attacker could send.
//!
//! The layers are from `testkit::hostile`, or random changes of them. The program `hostile-probe` decodes, flattens and bakes
//! them as the builder does.
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
