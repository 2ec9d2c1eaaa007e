#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod annotation;
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
pub use quoted::{escape, in_quotes, with_texts};
pub use sink::{MAX_KEPT, Sink};
pub use sources::{Source, Sources, Syntax};
