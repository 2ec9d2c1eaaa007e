//! `network "…" { allow …; deny …; limits … }`: the network that the guest can reach.

use box_contract::{NetworkLimits, NetworkMode, NetworkPlan, PeerPlan};
use egress_rules::{Local, Peer, Rule, Wanted};

use crate::errors::DECLARATION_ERRORS;
use crate::form;
use crate::parse::{Children, Reader, names, read_fields};
use crate::schema::{self, Declaration};
use crate::syntax::tree::{Data, Node, Value};
use diagnostics::{Diagnostic, Span, Syntax};

/// Reads the network. Without a declaration, the guest can reach nothing.
pub(in crate::parse) fn read(top: &Children<'_>) -> NetworkPlan {
    let Some(node) = top.one(&schema::NETWORK) else { return NetworkPlan::default() };
    let mut reader = Reader::new(node, &schema::NETWORK, top.sink());
    let mode: Option<NetworkMode> = reader.first();
    let children = reader.children();
    if mode.is_some_and(|mode| mode != NetworkMode::Filtered) {
        report_filter(&children, reader.syntax());
    }
    let [allow, deny] = [&schema::ALLOW_PEER, &schema::DENY_PEER].map(|it| peers(&children, it));
    let limits = limits(&children);
    if mode == Some(NetworkMode::Shared) {
        // The box gets the host's network only with an option at launch.
        top.sink().report(DECLARATION_ERRORS.at("shared-network", mode_span(node)).into_warning());
    }
    let lacks = match mode {
        Some(NetworkMode::Filtered) if !children.may_have(&schema::ALLOW_PEER) => Some("allow"),
        Some(NetworkMode::CapOnly) if !top.may_have(&schema::SERVICE) => Some("service"),
        _ => None,
    };
    if let Some(lacks) = lacks {
        report_closed(&reader, node, lacks);
    }
    reader.finish_block(&children);
    NetworkPlan { mode: mode.unwrap_or_default(), allow, deny, limits }
}

/// Reads all `allow` or all `deny` declarations.
fn peers(children: &Children<'_>, declaration: &'static Declaration) -> Vec<PeerPlan> {
    let read = |node| {
        let mut reader = Reader::new(node, declaration, children.sink());
        let peers = reader.all();
        let port = reader.optional("port");
        reader.finish();
        if declaration.name == schema::ALLOW_PEER.name {
            let text = |it: &Value| match &it.data {
                Data::Text(text) => needs_consent(text, port, it.span),
                _ => None,
            };
            let wanted = node.args.iter().filter_map(text);
            wanted.for_each(|warning| children.sink().report(warning));
        }
        peers.into_iter().flatten().map(move |peer| PeerPlan { peer, port })
    };
    names::unique(children.many(declaration).into_iter().flat_map(read).collect())
}

fn mode_span(network: &Node) -> Span {
    network.args.first().map_or(network.name.span, |mode| mode.span)
}

/// Returns the warning about an allowed peer that is not on the internet: the box reaches it only with an option at
/// launch.
pub(super) fn needs_consent(text: &str, port: Option<u16>, span: Span) -> Option<Diagnostic> {
    let rule = Rule { peer: Peer::parse(text)?, port };
    // Whether the launching host has a public address is unknown here.
    let Wanted { needs, purpose } = Local::wanted(&[rule], &[], |_| false).pop()?;
    let what = match text.contains('/') {
        true => "this network is not entirely on the internet",
        false => "this address is not on the internet",
    };
    let warning = DECLARATION_ERRORS.about("local-peer", &format!("{what} ({purpose})"), span);
    let help = format!("run the box with `boxlaunch run --network-local {needs}`");
    Some(warning.with_help(help).into_warning())
}

fn limits(children: &Children<'_>) -> NetworkLimits {
    let limits = Reader::sole(children, &schema::NETWORK_LIMITS, |reader| {
        read_fields!(reader => NetworkLimits {
            connections, bytes_per_second: "rate", names_per_minute: "names"
        })
    });
    limits.unwrap_or_default()
}

/// Reports the first `allow`, the first `deny` and the `limits` of a network that is not filtered.
fn report_filter(children: &Children<'_>, syntax: Syntax) {
    for declaration in schema::NETWORK.children {
        if let Some(node) = children.many(declaration).first() {
            children.sink().report(needs_filter(node, syntax));
        }
    }
}

/// Reports a mode that lets nothing through, because `lacks`, an `allow` or a `service`, is not declared.
fn report_closed(reader: &Reader<'_>, node: &Node, lacks: &str) {
    let syntax = reader.syntax();
    reader.report_missing_error(if lacks == "service" {
        let service = form::keyed(syntax, "service", "model");
        DECLARATION_ERRORS.about("no-cap", &service, mode_span(node))
    } else {
        let usage = schema::NETWORK.usage(syntax);
        let help = format!("write \"none\", or declare which hosts may be reached:{usage}");
        DECLARATION_ERRORS.at("no-allow", mode_span(node)).with_help(help)
    });
}

fn needs_filter(node: &Node, syntax: Syntax) -> Diagnostic {
    let name = &node.name.value;
    let filtered = match syntax {
        Syntax::Kdl => "network \"filtered\" { … }".to_owned(),
        Syntax::Toml => form::prop(syntax, "mode", "\"filtered\""),
    };
    let error = DECLARATION_ERRORS.about("no-filter", name, node.name.span);
    error.with_help(format!("write `{filtered}`, or remove `{name}`"))
}
