//! `agent { … }` and `business { … }`.

use crate::diagnostic::quote;
use crate::parse::children::Children;
use crate::parse::limits::Share;
use crate::parse::reader::Reader;
use crate::parse::{env, health, image, limits, namespaces};
use crate::sink::Sink;
use crate::syntax::{Node, Value};
use crate::units::MIB;
use crate::{Component, Diagnostic, Health, Limits, value};

/// The port on which an agent listens unless the Boxfile names another.
const DEFAULT_PORT: u16 = 4088;

/// What is declared inside of a component.
pub(super) const DECLARATIONS: [&str; 9] =
    ["image", "entrypoint", "args", "env", "workdir", "port", "health", "namespaces", "limits"];

/// What the two components differ in.
pub(super) struct Kind {
    hostname: &'static str,
    usage: &'static str,
    limits: Limits,
    /// Whether it is started with the box, and so has a port and a health check.
    served: bool,
}

/// The agent.
pub(super) const AGENT: Kind = Kind {
    hostname: "agent-host",
    usage: "`agent { image \"oci:images/agent\"; }`",
    limits: Limits { memory: 512 * MIB, cpu_weight: limits::weight(512), pids: 100 },
    served: true,
};

/// The business application.
pub(super) const BUSINESS: Kind = Kind {
    hostname: "business-host",
    usage: "`business { image \"oci:images/business\"; }`",
    limits: Limits { memory: 1024 * MIB, cpu_weight: limits::weight(1024), pids: 200 },
    served: false,
};

/// Reads a component, if it is declared, and the memory that it asks for.
pub(super) fn read(
    node: Option<&Node>,
    kind: &Kind,
    sink: &Sink,
) -> (Option<Component>, Option<Share>) {
    let Some(node) = node else { return (None, None) };
    let mut reader = Reader::new(node, kind.usage, sink);
    let mut children = reader.children();
    let image = children.one("image");
    let entrypoint = children.one("entrypoint").and_then(|node| read_entrypoint(node, sink));
    let args = children.one("args").and_then(|node| read_args(node, sink));
    let env = env::read(&children.many("env"), sink);
    let workdir = children.one("workdir").and_then(|node| read_workdir(node, sink));
    let (port, health) = read_service(&mut children, kind, sink);
    let (namespaces, hostname) = namespaces::read(children.one("namespaces"), kind.hostname, sink);
    let (limits, share) = limits::read(children.one("limits"), node, kind.limits, sink);
    let misspelt = children.finish(place_in_file);
    reader.finish_line();
    if image.is_none() && !misspelt.contains(&"image") {
        reader.report_missing("an `image`");
    }
    let component = image.and_then(|node| image::read(node, sink)).map(|image| Component {
        image,
        entrypoint,
        args,
        env,
        workdir,
        port,
        health,
        namespaces,
        hostname,
        limits,
    });
    (component, share)
}

fn read_entrypoint(node: &Node, sink: &Sink) -> Option<Vec<String>> {
    let mut reader = Reader::new(node, "`entrypoint \"/bin/agent\" \"--option\"`", sink);
    let argv = read_argv(&mut reader);
    reader.finish();
    argv
}

fn read_args(node: &Node, sink: &Sink) -> Option<Vec<String>> {
    let mut reader = Reader::new(node, "`args \"--greeting\" \"hello\"`", sink);
    let args = read_texts(&mut reader);
    reader.finish();
    args
}

/// Reads a program, which must be there, and its arguments.
pub(super) fn read_argv(reader: &mut Reader<'_>) -> Option<Vec<String>> {
    let program = reader.arg("a program");
    let program = reader.read(program, reader.name(), value::filled_text);
    let args = read_texts(reader);
    Some([vec![program?.to_owned()], args?].concat())
}

/// Reads all further arguments as texts; nothing if one of them is none.
fn read_texts(reader: &mut Reader<'_>) -> Option<Vec<String>> {
    let values = reader.args();
    let read = |value| reader.read(Some(value), reader.name(), value::text).map(str::to_owned);
    // All of them are read before the first failure counts: each reports for itself.
    let texts: Vec<Option<String>> = values.iter().map(read).collect();
    texts.into_iter().collect()
}

fn read_workdir(node: &Node, sink: &Sink) -> Option<String> {
    let mut reader = Reader::new(node, "`workdir \"/work\"`", sink);
    let workdir = reader.arg("a directory");
    let workdir = reader.read(workdir, "workdir", absolute);
    reader.finish();
    workdir
}

fn absolute(value: &Value, name: &str) -> Result<String, Diagnostic> {
    let path = value::filled_text(value, name)?;
    if path.starts_with('/') {
        return Ok(path.to_owned());
    }
    let message = format!("`{name}` takes an absolute path, not {}", quote(path));
    Err(Diagnostic::new(message, value.span, "a relative path")
        .with_help(format!("write `{name} \"/{path}\"`")))
}

/// Reads what only a component has that is started with the box.
fn read_service(
    children: &mut Children<'_>,
    kind: &Kind,
    sink: &Sink,
) -> (Option<u16>, Option<Health>) {
    if !kind.served {
        let help = "only the agent is started with the box; write it inside `agent { … }`";
        children.refuse("port", "`port` belongs to the agent alone", help);
        children.refuse("health", "`health` belongs to the agent alone", help);
        return (None, None);
    }
    let port = children.one("port").and_then(|node| read_port(node, sink)).unwrap_or(DEFAULT_PORT);
    (Some(port), health::read(children.one("health"), port, sink))
}

fn read_port(node: &Node, sink: &Sink) -> Option<u16> {
    let mut reader = Reader::new(node, "`port 4088`", sink);
    let port = reader.arg("a number");
    let port = reader.read(port, "port", |value, name| value::integer(value, name, 1..=u16::MAX));
    reader.finish();
    port
}

/// Tells where a name belongs that was found inside of a component.
fn place_in_file(name: &str) -> Option<String> {
    let outside = ["box", "agent", "business", "skill", "vm", "layout", "budget", "kernel"];
    let outside = outside.contains(&name);
    outside.then(|| format!("`{name}` stands by itself in the file, outside of any `{{ … }}`"))
}
