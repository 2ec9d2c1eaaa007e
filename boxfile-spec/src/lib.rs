//! The Boxfile language: text in, a validated [`Boxfile`] or spanned diagnostics out.
//!
//! A Boxfile is a [KDL 2](https://kdl.dev) document that declares one box: an agent, perhaps a
//! business application, skills, the virtual machine and the startup budget.
//!
//! ```
//! let boxfile = boxfile_spec::parse(r#"
//!     box "hello"
//!     agent {
//!         image "oci:images/agent"
//!     }
//! "#)?;
//! assert_eq!(boxfile.name, "hello");
//! assert_eq!(boxfile.agent.port, Some(4088));
//! # Ok::<(), boxfile_spec::Diagnostics>(())
//! ```
//!
//! The way from text to model has two steps. `syntax` makes a tree of nodes with their places in
//! the text; `parse` reads each declaration from its node. Both report into one sink, so that a
//! user learns of all errors at once. The crate does no I/O and reads neither clock nor
//! environment: what a path in the model means is its caller's affair.
#![forbid(unsafe_code)]

mod diagnostic;
mod lines;
mod model;
mod parse;
mod render;
mod rules;
mod sink;
mod suggest;
mod syntax;
mod units;
mod value;

pub use diagnostic::{Diagnostic, Diagnostics, Label, Span, Spanned};
pub use lines::location;
pub use model::{
    Boxfile, Budget, Component, Health, ImageRef, Kernel, Layout, Limits, Namespaces, Skill, Vm,
};
pub use parse::{MAX_SOURCE, parse};
