//! `kernel "PATH" sha256="…"`: the kernel that the box boots.

use crate::parse::reader::Reader;
use crate::sink::Sink;
use crate::syntax::tree::Node;
use crate::{Kernel, schema, value};

/// Reads the kernel's path and digest, of which one at least must be there.
pub(in crate::parse) fn read(node: &Node, sink: &Sink) -> Option<Kernel> {
    let mut reader = Reader::new(node, &schema::KERNEL, sink);
    let path = reader.optional_arg();
    let sha256 = reader.optional_prop("sha256");
    if path.is_none() && sha256.is_none() {
        reader.report_missing("a path or a `sha256`");
    }
    let path = reader.read(path, "kernel", value::path);
    let sha256 = reader.read(sha256, "sha256", value::sha256);
    reader.finish();
    Some(Kernel { path, sha256 })
}
