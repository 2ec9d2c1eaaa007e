#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod color;
pub mod failure;
pub mod manual;
pub mod paint;
pub mod problem;
pub mod store;

pub use failure::Failure;
pub use problem::{Explanation, Problem};
