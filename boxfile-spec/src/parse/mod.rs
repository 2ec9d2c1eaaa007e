//! From the tree of nodes to the model: one file per declaration.

mod budget;
mod children;
mod component;
mod document;
mod env;
mod health;
mod image;
mod kernel;
mod limits;
mod namespaces;
mod reader;
mod skill;
mod vm;

use crate::sink::Sink;
use crate::{Boxfile, Diagnostic, Diagnostics, Span, syntax};

/// The greatest length of a Boxfile in bytes: 1 MiB.
pub const MAX_SOURCE: usize = 1 << 20;

/// Reads a Boxfile.
///
/// # Errors
/// Everything that is wrong with it, sorted by position. Where blocks do not close or text is
/// lost behind an unclosed quote, only errors of that kind: all others could be their consequence.
pub fn parse(source: &str) -> Result<Boxfile, Diagnostics> {
    if source.len() > MAX_SOURCE {
        return Err(too_long(source.len()).into());
    }
    let sink = Sink::default();
    let tree = syntax::read(source, &sink);
    let boxfile = if tree.intact { document::read(&tree.nodes, &sink) } else { None };
    match (boxfile, sink.into_diagnostics()) {
        (Some(boxfile), None) => Ok(boxfile),
        (_, Some(diagnostics)) => Err(diagnostics),
        (None, None) => Err(unexplained().into()),
    }
}

fn too_long(length: usize) -> Diagnostic {
    let message = format!("the file has {length} bytes, which is more than {MAX_SOURCE}");
    Diagnostic::new(message, Span::default(), "not read")
        .with_help("a Boxfile holds declarations only; put files into images and skills")
}

/// Stands for an error that was found and not reported: a defect of this crate, not of the file.
fn unexplained() -> Diagnostic {
    let message = "the file cannot be read, and the reason is unknown";
    Diagnostic::new(message, Span::default(), "").with_help("report this as a defect of boxbuild")
}
