//! Tests of the program `boxbuild`: its outputs, errors and leftovers.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a panic is how a test fails")]

mod agents;
mod bad_input;
mod checkout;
mod collected;
mod command_line;
mod crash;
mod declarations;
mod example;
mod faults;
mod front;
mod history;
mod lock;
mod output;
mod pipes;
mod rebuilt;
mod reproducible;
mod segments;
mod sizes;
mod store;
mod traced;

#[path = "../format/main.rs"]
mod format;
