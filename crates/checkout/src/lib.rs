#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod dotenv;
pub mod files;
pub mod skill;
pub mod skill_md;
