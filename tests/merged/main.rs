//! Tests of the layout "merged": equal files, conflicts, policies and refusals, and the output of `boxbuild plan`.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a panic is how a test fails")]

mod advice;
mod built;
mod plan;
mod reported;
mod sbom;
mod scene;
