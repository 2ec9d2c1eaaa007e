#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod color;
mod component;
pub mod manual;
pub mod paint;
pub mod problem;
pub mod store;

pub use component::component_name;
pub use problem::{Explanation, Problem};
