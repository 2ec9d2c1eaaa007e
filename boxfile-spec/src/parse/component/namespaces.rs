//! `namespaces …`: which Linux namespaces a component has for itself, and its host name.

use box_contract::Namespaces;
use box_contract::rules::is_label;

use crate::parse::reader::Reader;
use crate::syntax::tree::{Node, Value};
use crate::{form, schema, value};
use diagnostics::Diagnostic;
use diagnostics::Sink;
use safe_text::quote;

/// Reads the namespaces and the host name.
pub(super) fn read(
    node: Option<&Node>,
    default_hostname: &str,
    sink: &Sink,
) -> (Namespaces, String) {
    let mut namespaces = Namespaces::default();
    let Some(node) = node else { return (namespaces, default_hostname.to_owned()) };
    let mut reader = Reader::new(node, &schema::NAMESPACES, sink);
    for (name, setting) in [
        ("mount", &mut namespaces.mount),
        ("pid", &mut namespaces.pid),
        ("ipc", &mut namespaces.ipc),
        ("uts", &mut namespaces.uts),
        ("net", &mut namespaces.net),
    ] {
        *setting = reader.read_optional(name, value::truth).unwrap_or(*setting);
    }
    let hostname = match reader.optional_prop("hostname") {
        Some(hostname) if !namespaces.uts => {
            let uts = reader.optional_prop("uts");
            reader.report(needs_uts(hostname, uts));
            None
        }
        hostname => reader.read(hostname, "hostname", label),
    };
    reader.finish();
    (namespaces, hostname.unwrap_or_else(|| default_hostname.to_owned()))
}

fn label(value: &Value, name: &str) -> Result<String, Diagnostic> {
    let hostname = value::text(value, name)?;
    if is_label(hostname) {
        return Ok(hostname.to_owned());
    }
    let message = format!("{} is not a host name", quote(hostname));
    Err(Diagnostic::new(message, value.span, "not a host name").with_help(
        "it has letters, digits and inner hyphens, at most 63, and no dots: \"agent-host\"",
    ))
}

fn needs_uts(hostname: &Value, uts: Option<&Value>) -> Diagnostic {
    let message = "a component without its own `uts` namespace cannot have its own host name";
    let needed = form::prop(hostname.syntax, "uts", form::truth(hostname.syntax, true));
    let error = Diagnostic::new(message, hostname.span, format!("needs `{needed}`"));
    let uts = uts.map_or(hostname.span, |uts| uts.span);
    error.with_label(uts, "switched off").with_help("remove `hostname`, or `uts`")
}
