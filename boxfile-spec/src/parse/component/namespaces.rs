//! `namespaces …`: the Linux namespaces that a component does not share with the other component,
//! and its host name.

use box_contract::Namespaces;

use crate::errors::DECLARATION_ERRORS;
use crate::parse::{Children, Reader, read_fields};
use crate::syntax::tree::Value;
use crate::{form, schema};
use diagnostics::Diagnostic;

/// Reads the namespaces and the host name.
pub(super) fn read(children: &Children<'_>, default_hostname: &str) -> (Namespaces, String) {
    let read = Reader::sole(children, &schema::NAMESPACES, |reader| {
        let namespaces = read_fields!(reader => Namespaces { mount, pid, ipc, uts, net })?;
        let hostname = match reader.optional_prop("hostname") {
            Some(hostname) if !namespaces.uts => {
                let uts = reader.optional_prop("uts");
                reader.report(needs_uts(hostname, uts));
                None
            }
            _ => reader.optional("hostname"),
        };
        Some((namespaces, hostname))
    });
    let (namespaces, hostname) = read.unwrap_or_default();
    (namespaces, hostname.unwrap_or_else(|| default_hostname.to_owned()))
}

fn needs_uts(hostname: &Value, uts: Option<&Value>) -> Diagnostic {
    let needed = form::prop(hostname.syntax, "uts", form::truth(hostname.syntax, true));
    let error = DECLARATION_ERRORS.about("host-name-of-all", &needed, hostname.span);
    error.with_label(uts.map_or(hostname.span, |uts| uts.span), "switched off")
}
