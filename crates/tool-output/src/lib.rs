//! What the project's own tools print: progress, signs of life and results.
//!
//! - [`say`] prints: progress to standard error, results to standard output;
//! - [`cargo`] runs cargo so that people see how far it is.
#![forbid(unsafe_code)]

pub mod cargo;
mod progress;
pub mod say;
