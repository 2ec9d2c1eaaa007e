#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod cargo;
mod progress;
pub mod say;
