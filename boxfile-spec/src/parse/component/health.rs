//! `health …`: the health check of a component.

use box_contract::AgentKind;

use crate::errors::DECLARATION_ERRORS;
use crate::parse::{Children, Reader};
use crate::{Health, schema};
use diagnostics::{Spanned, Syntax};

/// The path of OpenCode's health check.
const OPENCODE_PATH: &str = "/global/health";

/// Reads the health check of the agent. Without a declaration, returns the default check of the
/// agent's kind, over which a label of the image takes precedence.
pub(super) fn of_agent(children: &Children<'_>, kind: AgentKind) -> Option<Health> {
    let declared = children.one(&schema::HEALTH).is_some();
    if declared { read(children, Port::Agents) } else { Some(default(kind)) }
}

/// Reads the health check of the business application, which has no default port.
pub(super) fn of_business(children: &Children<'_>) -> Option<Health> {
    read(children, Port::Named)
}

/// The port of a check that names none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Port {
    /// The agent's port.
    Agents,
    /// None: the check must name one.
    Named,
}

fn read(children: &Children<'_>, default: Port) -> Option<Health> {
    let node = children.one(&schema::HEALTH)?;
    let mut reader = Reader::new(node, &schema::HEALTH, children.sink());
    // Without a known kind, the other parts cannot be checked.
    let kind: String = reader.first()?;
    let allowed: &[&'static str] = match kind.as_str() {
        "tcp" | "a3s" => &["port"],
        "http" => &["port", "path"],
        "grpc" => &["port", "service"],
        _ => &[],
    };
    let mut others = ["port", "path", "service"].to_vec();
    others.retain(|name| !allowed.contains(name));
    reader.refuse(&others);
    let port = if allowed.contains(&"port") { port(&mut reader, default) } else { Some(None) };
    let health = match kind.as_str() {
        "tcp" => port.map(|port| Health::Tcp { port }),
        "a3s" => port.map(|port| Health::A3s { port }),
        "http" => {
            // Reports a missing `path`.
            reader.prop("path");
            let path = reader.optional("path");
            port.zip(path).map(|(port, path)| Health::Http { port, path })
        }
        "grpc" => {
            let service = match reader.optional_prop("service") {
                None => Some(String::new()),
                Some(_) => reader.optional("service"),
            };
            port.zip(service).map(|(port, service)| Health::Grpc { port, service })
        }
        "exec" => read_exec(&mut reader),
        _ => None,
    };
    reader.finish();
    health
}

/// Reads the port. Returns `None` if it is wrong, or required and missing.
fn port(reader: &mut Reader<'_>, default: Port) -> Option<Option<u16>> {
    let is_declared = match default {
        Port::Agents => reader.optional_prop("port").is_some(),
        Port::Named => reader.prop("port").map(|_| true)?,
    };
    if is_declared { reader.optional("port").map(Some) } else { Some(None) }
}

fn default(kind: AgentKind) -> Health {
    match kind {
        AgentKind::Opencode => Health::Http { port: None, path: OPENCODE_PATH.to_owned() },
        AgentKind::A3sCode => Health::A3s { port: None },
        AgentKind::OciImage | AgentKind::LocalBinary | AgentKind::RemoteBinary => {
            Health::Tcp { port: None }
        }
    }
}

fn read_exec(reader: &mut Reader<'_>) -> Option<Health> {
    let span = reader.next_span();
    let mut argv: Vec<String> = reader.rest()?;
    if argv.first().is_none_or(String::is_empty) {
        let example = match reader.syntax() {
            Syntax::Kdl => "health \"exec\" \"/bin/check\"",
            Syntax::Toml => "health = { kind = \"exec\", command = [\"/bin/check\"] }",
        };
        reader.report_missing_error(DECLARATION_ERRORS.about("no-program", example, reader.span()));
        argv.clear();
    }
    (!argv.is_empty()).then_some(Health::Exec { argv: Spanned { value: argv, span } })
}
