//! Declarations for the run of a box.

pub(super) mod cap;
pub(super) mod mounts;
pub(super) mod network;
pub(super) mod sandbox;
pub(super) mod secret;
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
    let written = reader.optional_prop("component");
    if let (Some(Scope::Business), Some(written)) = (scope, written)
        && !top.may_have(&schema::BUSINESS)
    {
        top.sink().report_missing(no_business(written));
    }
    scope
}

fn no_business(written: &Value) -> Diagnostic {
    let agent = form::prop(written.syntax, "component", "\"agent\"");
    let business = form::block(written.syntax, schema::BUSINESS.name);
    let error = DECLARATION_ERRORS.at("no-business", written.span);
    error.with_help(format!("write `{agent}`, or declare `{business}`"))
}
