//! Tests of `boxbuild`'s reports on boxes: `ls`, `cat`, `diff`, `inspect` and the SBOM.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a panic is how a test fails")]

mod assistant;
mod cat;
#[path = "../build/checkout.rs"]
#[allow(dead_code, reason = "the tests of the build use the rest")]
mod checkout;
mod comment;
mod diff;
mod files;
mod fixture;
mod foreign;
mod inspect;
mod json;
mod ls;
mod real;
mod refused;
mod report;
mod sbom;
mod schema;
mod sdk;
#[path = "../../boxfile-spec/src/schema/json/validator.rs"]
mod validator;
