//! The Boxfile language: text in, a validated [`Boxfile`] or spanned diagnostics out.
//!
//! A Boxfile is a [KDL 2](https://kdl.dev) or a TOML document that declares one box: an agent,
//! perhaps a business application, skills, the virtual machine and the startup budget.
//!
//! ```
//! let boxfile = boxfile_spec::parse(r#"
//!     box "hello"
//!     agent {
//!         image "oci:images/agent"
//!     }
//! "#)?;
//! assert_eq!(boxfile.name, "hello");
//! assert_eq!(boxfile.agent.kind.default_port(), 4088);
//! # Ok::<(), diagnostics::Diagnostics>(())
//! ```
//!
//! The way from text to model has three steps. `syntax` makes a tree of nodes with their places in
//! the text, the same for both syntaxes; `parse` merges the trees of a file, its bases and its
//! profile, and reads each declaration from its node; `schema` says which declarations there are.
//! All report into one sink, so that a user learns of all errors at once. The crate does no I/O and
//! reads neither clock nor environment: what a path in the model means is its caller's affair.
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
    Kernel, Skill, SkillsDir,
};
pub use parse::{Document, MAX_ADDED, MAX_SOURCE, Reach, parse, read, read_within};
pub use recognize::{likely_syntax, looks_like_boxfile};
pub use schema::{json_schema, reference};
pub use syntax::allowance::MAX_DECLARED;
pub use syntax::toml::faults as toml_faults;
