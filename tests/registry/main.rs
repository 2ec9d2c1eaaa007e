//! Tests of the registry client with Debian's `docker-registry` on the loopback device, which `skopeo` or the client fills,
//! and with a registry of the tests.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a panic is how a test fails")]

mod archives;
mod attached;
mod boxes;
mod broken;
mod clients;
mod closed;
mod deltas;
mod disk;
mod host;
mod hostile;
mod inline;
mod killed;
mod kinds;
mod open;
mod policy;
mod pushed;
#[path = "../show/schema.rs"]
mod schema;
mod signed;
mod together;
mod updated;
#[path = "../../boxfile-spec/src/schema/json/validator.rs"]
mod validator;
mod viewed;
