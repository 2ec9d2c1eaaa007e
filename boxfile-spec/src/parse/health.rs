//! `health …`: how the launcher finds out that the agent is ready.

use crate::diagnostic::quote;
use crate::parse::component::read_argv;
use crate::parse::reader::Reader;
use crate::sink::Sink;
use crate::suggest::nearest;
use crate::syntax::{Node, Value};
use crate::{Diagnostic, Health, rules, value};

const USAGE: &str = "`health \"tcp\"`, `health \"http\" path=\"/health\"`, `health \"exec\" \
     \"/bin/check\"` or `health \"none\"`";
const KINDS: [&str; 4] = ["tcp", "http", "exec", "none"];

/// Reads the health check; without a declaration, a connection to the agent's port.
pub(super) fn read(node: Option<&Node>, agent_port: u16, sink: &Sink) -> Option<Health> {
    let Some(node) = node else { return Some(Health::Tcp { port: agent_port }) };
    let mut reader = Reader::new(node, USAGE, sink);
    let kind = reader.arg("a kind");
    let health = match reader.read(kind, "health", kind_name) {
        Some("tcp") => Some(Health::Tcp { port: read_port(&mut reader, agent_port) }),
        Some("http") => read_http(&mut reader, agent_port),
        Some("exec") => read_argv(&mut reader).map(|argv| Health::Exec { argv }),
        Some(_) => None,
        // Of an unknown kind, nothing can be said about the rest.
        None => return None,
    };
    reader.finish();
    health
}

fn kind_name<'v>(value: &'v Value, name: &str) -> Result<&'v str, Diagnostic> {
    let kind = value::text(value, name)?;
    if KINDS.contains(&kind) {
        return Ok(kind);
    }
    let message = format!("unknown kind of health check: {}", quote(kind));
    let help = match nearest(kind, &KINDS) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => format!("write {USAGE}"),
    };
    Err(Diagnostic::new(message, value.span, "no such kind").with_help(help))
}

fn read_port(reader: &mut Reader<'_>, agent_port: u16) -> u16 {
    let port = reader.optional_prop("port");
    let port = reader.read(port, "port", |value, name| value::integer(value, name, 1..=u16::MAX));
    port.unwrap_or(agent_port)
}

fn read_http(reader: &mut Reader<'_>, agent_port: u16) -> Option<Health> {
    let port = read_port(reader, agent_port);
    let path = reader.prop("path");
    let path = reader.read(path, "path", http_path)?;
    Some(Health::Http { port, path })
}

fn http_path(value: &Value, name: &str) -> Result<String, Diagnostic> {
    let path = value::text(value, name)?;
    if rules::is_http_path(path) {
        return Ok(path.to_owned());
    }
    let message = format!("{} is not the path of a request", quote(path));
    let rooted = format!("/{path}");
    let help = if rules::is_http_path(&rooted) {
        format!("write `{name}=\"{rooted}\"`")
    } else {
        "it begins with `/` and has neither spaces nor control characters: \"/health\"".to_owned()
    };
    Err(Diagnostic::new(message, value.span, "not a path").with_help(help))
}
