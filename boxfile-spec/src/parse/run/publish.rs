//! `publish …`: the ports that clients on the host can connect to.

use box_contract::rules::is_host_port;
use box_contract::{ComponentName, PublishPlan};

use super::check_business;
use crate::errors::DECLARATION_ERRORS;
use crate::form;
use crate::parse::{Children, Reader};
use crate::schema;
use diagnostics::{Diagnostic, Sink, Span, Spanned};

/// Reads all published ports, and sorts them.
pub(in crate::parse) fn read(top: &Children<'_>) -> Vec<PublishPlan> {
    let nodes = top.many(&schema::PUBLISH).into_iter();
    let read =
        |node| Reader::whole(node, &schema::PUBLISH, top.sink(), |reader| ports(reader, top));
    let mut all: Vec<Spanned<PublishPlan>> = nodes.flat_map(read).collect();
    all.sort_by_key(|it| it.value);
    check_once(&all, top.sink());
    all.into_iter().map(|it| it.value).collect()
}

/// Reads the ports of one declaration.
fn ports(reader: &mut Reader<'_>, top: &Children<'_>) -> Vec<Spanned<PublishPlan>> {
    let mut ports: Vec<Spanned<u16>> = reader.all().unwrap_or_default();
    let host: Option<u16> = reader.optional("host");
    let component = reader.value("component");
    check_business(reader, top, component == Some(ComponentName::Business));
    if let (Some(_), Some(second)) = (host.filter(|it| *it != 0), ports.get(1)) {
        reader.report(DECLARATION_ERRORS.at("host-of-ports", second.span));
        ports.truncate(1);
    }
    let component = component.unwrap_or(ComponentName::Agent);
    let published = |port: Spanned<u16>| {
        let host = host.unwrap_or(port.value);
        if !is_host_port(host) {
            let other = form::prop(reader.syntax(), "host", "8080");
            let error = DECLARATION_ERRORS.about("host-port", &host.to_string(), port.span);
            reader.report(error.with_help(format!("choose another port of the host: `{other}`")));
        }
        Spanned { value: PublishPlan { component, guest: port.value, host }, span: port.span }
    };
    ports.into_iter().map(published).collect()
}

/// Reports two ports of the same number, in one component or on the host. `all` is sorted.
fn check_once(all: &[Spanned<PublishPlan>], sink: &Sink) {
    for (at, Spanned { value: port, span }) in all.iter().enumerate() {
        let is_same = |it: &&Spanned<PublishPlan>| {
            let in_box = (it.value.component, it.value.guest) == (port.component, port.guest);
            in_box || (port.host != 0 && it.value.host == port.host)
        };
        if let Some(earlier) = all[..at].iter().find(is_same) {
            sink.report(twice(
                port,
                &earlier.value,
                earlier.span.min(*span),
                earlier.span.max(*span),
            ));
        }
    }
}

fn twice(port: &PublishPlan, other: &PublishPlan, earlier: Span, later: Span) -> Diagnostic {
    let is_in_box = (port.component, port.guest) == (other.component, other.guest);
    let what = if is_in_box { port.guest.to_string() } else { format!("host={}", port.host) };
    Diagnostic::twice(&what, earlier, later)
}
