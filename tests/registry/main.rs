//! The registry client against a real registry: Debian's `docker-registry`, on the loopback device,
//! and filled by `skopeo` or by the client.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a panic is how a test fails")]

mod boxes;
mod broken;
mod closed;
mod open;
mod pushed;
#[path = "../show/schema.rs"]
mod schema;
#[path = "../../boxfile-spec/src/schema/json/validator.rs"]
mod validator;
