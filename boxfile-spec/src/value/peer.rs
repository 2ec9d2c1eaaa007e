//! The domains, addresses and networks that a box may reach.

use std::net::IpAddr;
use std::num::NonZeroU16;

use egress_rules::Peer;

use super::{filled_text, unfit};
use crate::form;
use crate::syntax::tree::Value;
use diagnostics::{Diagnostic, Syntax};

pub(super) fn read(value: &Value, name: &str) -> Result<String, Diagnostic> {
    let text = filled_text(value, name)?;
    if Peer::parse(text).is_some() {
        return Ok(text.to_ascii_lowercase());
    }
    let error = unfit(value, text, "peer");
    Err(match peer_help(text, name, value.syntax) {
        Some(help) => error.with_help(help),
        None => error,
    })
}

/// Returns the help with the peer that was probably meant.
fn peer_help(text: &str, name: &str, syntax: Syntax) -> Option<String> {
    let (address, bits) = text.split_once('/').unwrap_or((text, ""));
    if address.parse::<IpAddr>().is_ok() && !bits.is_empty() {
        let help = "after the `/` of a network comes its length in bits, at most 32, or 128 for IPv6: \"10.1.0.0/16\"";
        return Some(help.to_owned());
    }
    if text.eq_ignore_ascii_case("localhost") {
        let help = "`localhost` is the box itself; the host's loopback, which `boxlaunch run --network-local \
                    localhost` allows, is \"127.0.0.1\"";
        return Some(help.to_owned());
    }
    let bare = text.split_once("://").map_or(text, |(_, rest)| rest);
    let bare = bare.split('/').next().unwrap_or_default();
    let (host, port) = bare.split_once(':').unwrap_or((bare, ""));
    if host == text || Peer::parse(host).is_none() {
        return None;
    }
    Some(match port.parse::<NonZeroU16>() {
        Ok(port) => format!("name the port by itself: `{}`", with_port(syntax, name, host, port)),
        Err(_) => format!("name the host alone, without scheme, port and path: \"{host}\""),
    })
}

/// Writes a peer with a port: `allow "a.example" port=22`; in TOML the item `{ peer = "a.example",
/// port = 22 }` of a list.
fn with_port(syntax: Syntax, name: &str, host: &str, port: NonZeroU16) -> String {
    let [host, port] = [diagnostics::in_quotes(syntax, host), port.to_string()];
    let port = form::prop(syntax, "port", &port);
    match syntax {
        Syntax::Kdl => format!("{name} {host} {port}"),
        Syntax::Toml => format!("{{ {}, {port} }}", form::prop(syntax, "peer", &host)),
    }
}
