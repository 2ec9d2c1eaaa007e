//! `cap "KIND" …`: the host's services that components use through files under `/cap`.

use box_contract::CapPlan;

use crate::errors::DECLARATION_ERRORS;
use crate::parse::{Children, Reader, names};
use crate::syntax::tree::Node;
use crate::{form, schema};
use diagnostics::Diagnostic;

/// Reads all `cap` declarations, and sorts them by kind.
pub(in crate::parse) fn read(top: &Children<'_>) -> Vec<CapPlan> {
    top.keyed(&schema::CAP).into_iter().filter_map(|node| read_one(node, top)).collect()
}

fn read_one(node: &Node, top: &Children<'_>) -> Option<CapPlan> {
    let sink = top.sink();
    let mut reader = Reader::new(node, &schema::CAP, sink);
    let kind: Option<String> = reader.first();
    let children = reader.children();
    let relays = children.one(&schema::RELAYS);
    children.finish(|_| None, |declaration| names::missing(declaration, node));
    // Without a known kind, the other parts cannot be checked.
    let kind = kind?;
    if let (Some(relays), true) = (relays, kind != "nostr") {
        sink.report(without_relays(relays, &kind));
    }
    let cap = match kind.as_str() {
        "http" => {
            reader.refuse(&["max-connections"]);
            if !top.may_have(&schema::SERVICE) {
                reader.report_missing_error(without_service(node));
            }
            reader.value("timeout").map(|timeout_ms| CapPlan::Http { timeout_ms })
        }
        "ws" => {
            reader.refuse(&["timeout"]);
            reader.value("max-connections").map(|max_connections| CapPlan::Ws { max_connections })
        }
        other => {
            reader.refuse(&["max-connections", "timeout"]);
            if other == "nostr" { nostr(&reader, &children) } else { Some(CapPlan::Payments) }
        }
    };
    reader.finish_line();
    cap
}

/// Returns the error of a file whose capability `http` has no service to send requests to.
fn without_service(cap: &Node) -> Diagnostic {
    let span = cap.args.first().map_or(cap.name.span, |kind| kind.span);
    DECLARATION_ERRORS.about("cap-service", &form::keyed(cap.syntax, "service", "model"), span)
}

fn without_relays(relays: &Node, kind: &str) -> Diagnostic {
    let nostr = form::keyed(relays.syntax, "cap", "nostr");
    let error = DECLARATION_ERRORS.about("idle-relays", kind, relays.name.span);
    error.with_help(format!("remove it, or write it inside of `{nostr}`"))
}

fn nostr(reader: &Reader<'_>, children: &Children<'_>) -> Option<CapPlan> {
    if children.one(&schema::RELAYS).is_none() {
        let relays = schema::RELAYS.usage(reader.syntax());
        reader.report_missing_error(DECLARATION_ERRORS.about("no-relays", &relays, reader.span()));
    }
    let relays = Reader::sole(children, &schema::RELAYS, Reader::all)?;
    Some(CapPlan::Nostr { relays: names::unique(relays) })
}
