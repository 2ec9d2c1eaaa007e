//! Declarations for the run of a box.

pub(super) mod agents;
pub(super) mod cap;
pub(super) mod hook;
pub(super) mod mcp;
pub(super) mod mounts;
pub(super) mod network;
pub(super) mod publish;
pub(super) mod sandbox;
pub(super) mod secret;
pub(super) mod service;
pub(super) mod ssh_agent;
pub(super) mod task;

use box_contract::Scope;

use crate::errors::DECLARATION_ERRORS;
use crate::parse::{Children, Reader};
use crate::syntax::tree::Value;
use crate::{form, schema};
use diagnostics::Diagnostic;

/// Reads the property that names the components that see a mount or secret.
fn scope(reader: &mut Reader<'_>, top: &Children<'_>) -> Option<Scope> {
    let scope = reader.value("component");
    check_business(reader, top, scope == Some(Scope::Business));
    scope
}

/// Reports a property `component` that names a business component, if the box has none.
fn check_business(reader: &mut Reader<'_>, top: &Children<'_>, is_business: bool) {
    let written = reader.optional_prop("component");
    if let Some(written) = written.filter(|_| is_business && !top.may_have(&schema::BUSINESS)) {
        top.sink().report_missing(no_business(written));
    }
}

fn no_business(written: &Value) -> Diagnostic {
    let agent = form::prop(written.syntax, "component", "\"agent\"");
    let business = form::block(written.syntax, schema::BUSINESS.name);
    let error = DECLARATION_ERRORS.at("no-business", written.span);
    error.with_help(format!("write `{agent}`, or declare `{business}`"))
}
