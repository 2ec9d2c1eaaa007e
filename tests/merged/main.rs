//! Layout "merged" as its users meet it: what is one, what conflicts, what is decided and refused,
//! and what `boxbuild plan` shows of it.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a panic is how a test fails")]

mod advice;
mod built;
mod plan;
mod reported;
mod sbom;
mod scene;
