//! `rlimits …`: what each process of a component may take.

use crate::parse::reader::Reader;
use crate::sink::Sink;
use crate::syntax::Node;
use crate::{Diagnostic, ResourceLimits, form, schema, value};

/// Reads the limits of a process.
pub(super) fn read(node: Option<&Node>, sink: &Sink) -> ResourceLimits {
    let Some(node) = node else { return ResourceLimits::default() };
    let mut reader = Reader::new(node, &schema::RLIMITS, sink);
    let cpu = reader.optional_prop("cpu");
    let limits = ResourceLimits {
        nofile: reader.integer("nofile"),
        nproc: reader.integer("nproc"),
        address_space: reader.size("address-space"),
        cpu: reader.read(cpu, "cpu", |value, name| {
            let ms = value::some_duration(value, name)?;
            if ms.is_multiple_of(1000) {
                return Ok(ms / 1000);
            }
            let whole = format!("\"{}s\"", ms.div_ceil(1000));
            let help = format!("write `{}`", form::prop(value.syntax, name, &whole));
            let message = "the kernel counts CPU time in whole seconds";
            Err(Diagnostic::new(message, value.span, "not a whole second").with_help(help))
        }),
        core: reader.size("core"),
        file_size: reader.size("file-size"),
    };
    reader.finish();
    limits
}
