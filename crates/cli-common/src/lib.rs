#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod color;
pub mod complete;
mod component;
pub mod failure;
pub mod manual;
pub mod output;
pub mod pages;
pub mod paint;
pub mod policy;
pub mod problem;
mod sizes;
pub mod store;
pub mod trust;
pub mod usage;

pub use component::component_name;
pub use failure::Failure;
pub use problem::{Explanation, Problem};
pub use sizes::size_between;
