//! `network "…" { allow …; deny … }`: what the guest can reach.

use std::net::IpAddr;

use box_image::{NetworkMode, NetworkPlan};
use egress_rules::Peer;

use crate::diagnostic::quote;
use crate::parse::children::Children;
use crate::parse::names;
use crate::parse::reader::Reader;
use crate::schema;
use crate::sink::Sink;
use crate::syntax::tree::{Node, Value};
use crate::{Diagnostic, Syntax, form, value};

/// Reads what the guest can reach; without a declaration, nothing.
pub(in crate::parse) fn read(top: &Children<'_>, sink: &Sink) -> NetworkPlan {
    let Some(node) = top.one(&schema::NETWORK) else { return NetworkPlan::default() };
    let mut reader = Reader::new(node, &schema::NETWORK, sink);
    let mode: Option<NetworkMode> = reader.choice_arg();
    let children = reader.children();
    let lists = [&schema::ALLOW_PEER, &schema::DENY_PEER].map(|declaration| {
        if let Some(node) = children.one(declaration)
            && mode.is_some_and(|mode| mode != NetworkMode::Filtered)
        {
            sink.report(needs_filter(node, reader.syntax()));
        }
        Reader::sole(&children, declaration, |it| it.read_args(peer)).map(names::unique)
    });
    let lacks = match mode {
        Some(NetworkMode::Filtered) if !children.may_have(&schema::ALLOW_PEER) => Some("allow"),
        Some(NetworkMode::CapOnly) if !top.may_have(&schema::CAP) => Some("cap"),
        _ => None,
    };
    if let Some(lacks) = lacks {
        report_closed(&reader, node, lacks);
    }
    reader.finish_block(&children);
    let [allow, deny] = lists.map(Option::unwrap_or_default);
    NetworkPlan { mode: mode.unwrap_or_default(), allow, deny }
}

/// Reports a mode that lets through nothing, because a declaration is missing.
fn report_closed(reader: &Reader<'_>, node: &Node, lacks: &str) {
    let syntax = reader.syntax();
    let (message, help) = if lacks == "cap" {
        let cap = form::keyed(syntax, "cap", "http");
        let message = "without a `cap`, the network mode `cap-only` lets nothing through";
        (message, format!("declare one, such as `{cap}`, or write \"none\""))
    } else {
        let usage = schema::NETWORK.usage(syntax);
        let message = "without an `allow`, the network mode `filtered` lets nothing through";
        (message, format!("write \"none\", or say what may be reached:{usage}"))
    };
    let span = node.args.first().map_or(node.name.span, |mode| mode.span);
    let error = Diagnostic::new(message, span, format!("without `{lacks}`"));
    reader.report_missing_error(error.with_help(help));
}

fn needs_filter(node: &Node, syntax: Syntax) -> Diagnostic {
    let name = &node.name.value;
    let message = format!("`{name}` needs the network mode `filtered`");
    let filtered = match syntax {
        Syntax::Kdl => "network \"filtered\" { … }".to_owned(),
        Syntax::Toml => form::prop(syntax, "mode", "\"filtered\""),
    };
    Diagnostic::new(message, node.name.span, "has no effect here")
        .with_help(format!("write `{filtered}`, or remove `{name}`"))
}

fn peer(value: &Value, name: &str) -> Result<String, Diagnostic> {
    let text = value::filled_text(value, name)?;
    if Peer::parse(text).is_some() {
        return Ok(text.to_ascii_lowercase());
    }
    let message = format!("{} is neither a domain nor an address", quote(text));
    Err(Diagnostic::new(message, value.span, "not a peer").with_help(peer_help(text)))
}

fn peer_help(text: &str) -> String {
    let (address, bits) = text.split_once('/').unwrap_or((text, ""));
    if address.parse::<IpAddr>().is_ok() && !bits.is_empty() {
        return "after the `/` of a network comes its length in bits, at most 32, or 128 for IPv6: \
                \"10.1.0.0/16\""
            .to_owned();
    }
    let bare = text.split_once("://").map_or(text, |(_, rest)| rest);
    let bare = bare.split(['/', ':']).next().unwrap_or_default();
    if bare != text && Peer::parse(bare).is_some() {
        return format!("name the host alone, without scheme, port and path: \"{bare}\"");
    }
    "write a domain, all below one, an address or a network: \"api.example.com\", \
     \"*.example.com\", \"10.1.0.7\", \"10.1.0.0/16\""
        .to_owned()
}
