//! Diagnostics of texts that people write: what is wrong, where, and what to write instead.
//!
//! ```
//! use diagnostics::{Diagnostic, Source, Sources, Span};
//!
//! let sources = Sources::single(Source::new("Boxfile", "box \"Hello\"\n"));
//! let error = Diagnostic::new("`Hello` is not a valid name", Span::at(4, 7), "not a name");
//! assert!(error.render(&sources).contains("Boxfile:1:5"));
//! ```
//!
//! A [`Diagnostic`] is about places ([`Span`]) of one of several texts ([`Sources`]). It is shown with the lines that it is about,
//! without what would move a terminal's cursor, and with asterisks in place of what looks like a secret. The crate knows no
//! language, does no I/O, and reads neither clock nor environment.
#![forbid(unsafe_code)]

pub mod cursor;
mod diagnostic;
pub mod edited;
mod errors;
pub mod names;
mod quoted;
mod render;
mod sink;
mod sources;
pub mod suggest;

pub use diagnostic::{
    Diagnostic, Diagnostics, Label, Severity, Span, Spanned, invisible, named_invisible,
};
pub use errors::ErrorTable;
pub use quoted::{escape, in_quotes};
pub use sink::{MAX_KEPT, Sink};
pub use sources::{Source, Sources, Syntax};
