//! `agent { … }` and `business { … }`.

mod binary;
mod env;
mod health;
mod image;
mod limits;
mod namespaces;
mod rlimits;

use crate::parse::children::Children;
use crate::parse::document;
use crate::parse::reader::Reader;
use crate::schema::{self, Declaration};
use crate::sink::Sink;
use crate::syntax::tree::{Node, Value};
use crate::units::MIB;
use crate::{
    Agent, AgentKind, Binary, Business, Component, Diagnostic, Limits, Spanned, Syntax, form,
    rules, tools, value,
};

pub(super) use env::check_secrets;
pub(super) use limits::Share;

const AGENT_LIMITS: Limits =
    Limits { memory: 512 * MIB, cpu_weight: limits::weight(512), pids: 100 };
const BUSINESS_LIMITS: Limits =
    Limits { memory: 1024 * MIB, cpu_weight: limits::weight(1024), pids: 200 };

/// Reads the agent, if it is declared, and the memory that it asks for. An agent that has neither
/// image nor binary is reported.
pub(super) fn agent(node: Option<&Node>, sink: &Sink) -> (Option<Agent>, Option<Share>) {
    let Some(node) = node else { return (None, None) };
    let mut reader = Reader::new(node, &schema::AGENT, sink);
    let written = reader.optional_prop("kind");
    let kind = reader.choice("kind").map(|kind| Spanned {
        value: kind_of(kind),
        span: written.map_or(node.name.span, |value| value.span),
    });
    let children = reader.children();
    let (component, share) = common(&children, node, &AGENT_LIMITS, "agent-host", sink);
    let binary = children.one(&schema::BINARY);
    let program = binary.and_then(|node| binary::read(node, sink));
    let image = children.one(&schema::IMAGE);
    let kind = if (image.is_none() && binary.is_none()) || (binary.is_some() && program.is_none()) {
        kind.map_or(AgentKind::OciImage, |kind| kind.value)
    } else {
        agreed_kind(kind, program.as_ref(), binary, sink)
    };
    let port = children.one(&schema::PORT).and_then(|node| read_port(node, sink));
    let health = health::read(children.one(&schema::HEALTH), kind, sink);
    let tools = children.one(&schema::TOOLS).and_then(|node| read_tools(node, sink));
    finish(&reader, &children, node);
    let needs_image = !matches!(kind, AgentKind::LocalBinary | AgentKind::RemoteBinary);
    if image.is_none() && binary.is_none() {
        report_no_program(&reader, node, needs_image);
    }
    (Some(Agent { kind, binary: program, port, health, tools, component }), share)
}

/// Reads the business application, if it is declared, and the memory that it asks for. One without
/// an image is reported.
pub(super) fn business(node: Option<&Node>, sink: &Sink) -> (Option<Business>, Option<Share>) {
    let Some(node) = node else { return (None, None) };
    let reader = Reader::new(node, &schema::BUSINESS, sink);
    let children = reader.children();
    let (component, share) = common(&children, node, &BUSINESS_LIMITS, "business-host", sink);
    let autostart = children.one(&schema::AUTOSTART).and_then(|node| read_autostart(node, sink));
    finish(&reader, &children, node);
    if children.one(&schema::IMAGE).is_none() {
        report_no_program(&reader, node, true);
    }
    (Some(Business { autostart: autostart.unwrap_or_default(), component }), share)
}

/// Reads what both components have.
fn common(
    children: &Children<'_>,
    node: &Node,
    limits: &Limits,
    hostname: &str,
    sink: &Sink,
) -> (Component, Option<Share>) {
    let one = |declaration| children.one(declaration);
    let (namespaces, hostname) = namespaces::read(one(&schema::NAMESPACES), hostname, sink);
    let (limits, share) = limits::read(one(&schema::LIMITS), node, *limits, sink);
    let user = one(&schema::USER).and_then(|node| read_user(node, sink));
    let rlimits = rlimits::read(one(&schema::RLIMITS), user.as_ref(), sink);
    let component = Component {
        image: one(&schema::IMAGE).and_then(|node| image::read(node, sink)),
        entrypoint: one(&schema::ENTRYPOINT).and_then(|node| read_entrypoint(node, sink)),
        args: one(&schema::ARGS).and_then(|node| read_args(node, sink)),
        env_files: one(&schema::ENV_FILE)
            .and_then(|node| read_env_files(node, sink))
            .unwrap_or_default(),
        env: env::read(children, sink),
        workdir: one(&schema::WORKDIR).and_then(|node| read_workdir(node, sink)),
        user,
        namespaces,
        hostname,
        limits,
        rlimits,
    };
    (component, share)
}

fn finish(reader: &Reader<'_>, children: &Children<'_>, component: &Node) {
    let missing = |declaration| document::missing(declaration, component);
    children.finish(|node| place_elsewhere(component, node), missing);
    reader.finish_line();
}

/// Reports that a component has no files, unless a misspelt declaration may name them.
fn report_no_program(reader: &Reader<'_>, node: &Node, needs_image: bool) {
    let names = ["image", "binary"];
    let misspelt = |it: &Node| crate::suggest::nearest(&it.name.value, &names).is_some();
    if !node.children().iter().any(misspelt) {
        let (what, missing) = if needs_image {
            ("an `image`", &schema::IMAGE)
        } else {
            ("a `binary`", &schema::BINARY)
        };
        let message = format!("`{}` needs {what}", reader.name());
        let help = form::imperative("add", &missing.usage(reader.syntax()));
        reader.report_missing_as(&message, &format!("without {what}"), &help);
    }
}

fn kind_of(word: &str) -> AgentKind {
    match word {
        "a3s_code" => AgentKind::A3sCode,
        "opencode" => AgentKind::Opencode,
        "local_binary" => AgentKind::LocalBinary,
        "remote_binary" => AgentKind::RemoteBinary,
        _ => AgentKind::OciImage,
    }
}

/// Returns the kind that the agent's program makes it, and reports if another is declared.
fn agreed_kind(
    declared: Option<Spanned<AgentKind>>,
    program: Option<&Binary>,
    binary: Option<&Node>,
    sink: &Sink,
) -> AgentKind {
    let (found, word) = match program {
        None => (AgentKind::OciImage, "oci_image"),
        Some(Binary::Local { .. }) => (AgentKind::LocalBinary, "local_binary"),
        Some(Binary::Remote { .. }) => (AgentKind::RemoteBinary, "remote_binary"),
    };
    let Some(declared) = declared else { return found };
    let images = [AgentKind::OciImage, AgentKind::A3sCode, AgentKind::Opencode];
    if declared.value == found || images.contains(&found) && images.contains(&declared.value) {
        return declared.value;
    }
    let error = Diagnostic::new(
        "the agent's kind does not fit what it is made of",
        declared.span,
        "declared here",
    );
    sink.report(match binary {
        Some(binary) => error
            .with_label(binary.name.span, format!("makes it a `{word}`"))
            .with_help(format!("write `{word}`, or remove `kind` or `binary`")),
        None => error.with_help("this kind needs a `binary`; add one, or remove `kind`"),
    });
    found
}

fn read_entrypoint(node: &Node, sink: &Sink) -> Option<Vec<String>> {
    let mut reader = Reader::new(node, &schema::ENTRYPOINT, sink);
    let argv = read_argv(&mut reader);
    reader.finish();
    argv
}

fn read_args(node: &Node, sink: &Sink) -> Option<Vec<String>> {
    let mut reader = Reader::new(node, &schema::ARGS, sink);
    let args = reader.read_args(value::owned_text);
    reader.finish();
    args
}

/// Reads a program, which must be there, and its arguments.
fn read_argv(reader: &mut Reader<'_>) -> Option<Vec<String>> {
    let program = reader.arg();
    let program = reader.read(program, reader.name(), value::filled_text);
    let args = reader.read_args(value::owned_text);
    Some([vec![program?.to_owned()], args?].concat())
}

fn read_env_files(node: &Node, sink: &Sink) -> Option<Vec<Spanned<String>>> {
    let mut reader = Reader::new(node, &schema::ENV_FILE, sink);
    let files = reader.read_some(value::path);
    reader.finish();
    files
}

fn read_workdir(node: &Node, sink: &Sink) -> Option<String> {
    let mut reader = Reader::new(node, &schema::WORKDIR, sink);
    let workdir = reader.arg();
    let workdir = reader.read(workdir, "workdir", |value, name| {
        let path = value::absolute(value, name)?.value;
        let Some(kernels) = rules::kernels_directory(&path) else { return Ok(path) };
        let message = format!("the component cannot work in {}", crate::diagnostic::quote(&path));
        let label = format!("in `/{kernels}`, which is the kernel's");
        Err(Diagnostic::new(message, value.span, label)
            .with_help("choose another directory, for instance \"/work\""))
    });
    reader.finish();
    workdir
}

fn read_user(node: &Node, sink: &Sink) -> Option<Spanned<String>> {
    let mut reader = Reader::new(node, &schema::USER, sink);
    let user = reader.arg();
    let user = reader.read(user, "user", |value, name| {
        let text = value::text(value, name)?;
        if rules::is_user(text) {
            return Ok(Spanned { value: text.to_owned(), span: value.span });
        }
        let message = format!("{} is not a user", crate::diagnostic::quote(text));
        Err(Diagnostic::new(message, value.span, "not a user")
            .with_help("write `USER` or `USER:GROUP`, names or numbers: \"app:app\", \"1000\""))
    });
    reader.finish();
    user
}

fn read_port(node: &Node, sink: &Sink) -> Option<u16> {
    let mut reader = Reader::new(node, &schema::PORT, sink);
    let (kind, port) = (reader.first_kind(), reader.arg());
    let port = reader.read(port, "port", |value, name| value::integer(value, name, kind));
    reader.finish();
    u16::try_from(port?).ok()
}

fn read_autostart(node: &Node, sink: &Sink) -> Option<bool> {
    let mut reader = Reader::new(node, &schema::AUTOSTART, sink);
    let autostart = reader.arg();
    let autostart = reader.read(autostart, "autostart", value::truth);
    reader.finish();
    autostart
}

fn read_tools(node: &Node, sink: &Sink) -> Option<Vec<String>> {
    let mut reader = Reader::new(node, &schema::TOOLS, sink);
    let tools = reader.read_some(tool);
    reader.finish();
    let mut tools = tools?;
    tools.sort_unstable();
    tools.dedup();
    Some(tools)
}

fn tool(value: &Value, name: &str) -> Result<String, Diagnostic> {
    let text = value::text(value, name)?;
    tools::canonical(text).map(str::to_owned).map_err(|help| {
        let message = format!("there is no built-in tool {}", crate::diagnostic::quote(text));
        Diagnostic::new(message, value.span, "no such tool").with_help(help)
    })
}

/// Tells where a declaration belongs that was found inside of a component.
fn place_elsewhere(component: &Node, node: &Node) -> Option<String> {
    let name = node.name.value.as_str();
    if let Some(top) = schema::find(schema::TOP, name) {
        return Some(outside(top, node.syntax));
    }
    let agent_only = schema::AGENT.child(name).is_some() && component.name.value == "business";
    let block = if agent_only {
        &schema::AGENT
    } else if schema::BUSINESS.child(name).is_some() {
        &schema::BUSINESS
    } else {
        return None;
    };
    let place = form::block(node.syntax, block.name);
    Some(format!("it belongs to the {} alone; write it inside `{place}`", title(block)))
}

fn outside(declaration: &Declaration, syntax: Syntax) -> String {
    let name = declaration.name;
    match syntax {
        Syntax::Kdl => format!("`{name}` stands by itself in the file, outside of any `{{ … }}`"),
        Syntax::Toml => format!("`{name}` stands by itself: above the first `[table]`, or as one"),
    }
}

fn title(declaration: &Declaration) -> &'static str {
    if declaration.name == "business" { "business application" } else { declaration.name }
}
