//! Declarations of what a box is given when it runs.

pub(super) mod cap;
pub(super) mod mounts;
pub(super) mod network;
pub(super) mod sandbox;
pub(super) mod secret;
pub(super) mod task;

use box_contract::Scope;

use crate::parse::children::Children;
use crate::parse::reader::Reader;
use crate::syntax::tree::Value;
use crate::{form, schema};
use diagnostics::Diagnostic;
use diagnostics::Sink;

/// The components that a file has, besides the agent.
#[derive(Clone, Copy)]
struct Components<'s> {
    /// Whether a business application is declared.
    business: bool,
    sink: &'s Sink,
}

impl<'s> Components<'s> {
    fn of(top: &Children<'_>, sink: &'s Sink) -> Self {
        Self { business: top.may_have(&schema::BUSINESS), sink }
    }

    /// Takes the property that says who sees something.
    fn scope(self, reader: &mut Reader<'_>, default: Scope) -> Scope {
        let written = reader.optional_prop("component");
        let scope = reader.choice("component");
        if let (Some(Scope::Business), Some(written), false) = (scope, written, self.business) {
            self.sink.report_missing(no_business(written));
        }
        scope.unwrap_or(default)
    }
}

fn no_business(written: &Value) -> Diagnostic {
    let message = "the file declares no business application";
    let agent = form::prop(written.syntax, "component", "\"agent\"");
    let business = form::block(written.syntax, schema::BUSINESS.name);
    Diagnostic::new(message, written.span, "not declared")
        .with_help(format!("write `{agent}`, or declare `{business}`"))
}
