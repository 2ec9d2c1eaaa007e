#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod errors;
mod form;
mod format;
mod model;
mod parse;
mod recognize;
mod rules;
mod schema;
mod syntax;
mod units;
mod value;

pub use diagnostics::in_quotes;
pub use format::{format, format_kdl, format_toml};
pub use model::{
    Agent, BakedFile, Binary, Boxfile, Business, Component, Conflict, ConflictPolicy, Health,
    Kernel, Share, Skill, SkillsDir,
};
pub use parse::{Document, MAX_ADDED, MAX_SOURCE, Reach, parse, read, read_within};
pub use recognize::{likely_syntax, looks_like_boxfile};
pub use schema::{json_schema, reference};
pub use syntax::allowance::MAX_DECLARED;
pub use syntax::toml::faults as toml_faults;
