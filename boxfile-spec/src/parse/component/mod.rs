//! `agent { … }` and `business { … }`.

mod capabilities;
pub(super) mod command;
pub(super) mod env;
mod file;
mod health;
mod image;
pub(super) mod limits;
mod namespaces;

use box_contract::{AgentKind, Restart};

use crate::errors::DECLARATION_ERRORS;
use crate::parse::{Children, Reader, hints, names};
use crate::schema::{self, AGENT_DEFAULTS, BUSINESS_DEFAULTS, ComponentDefaults, Declaration};
use crate::syntax::tree::{Node, Prop};
use crate::{Agent, Binary, Business, Component, form};
use diagnostics::{Diagnostic, Sink, Spanned, Syntax};
use limits::MemoryLimit;

/// The kinds of agents for which `boxbuild init --agent NAME` writes a Boxfile with the commands that make an image, with these
/// names. `tests/build/command_line/init.rs` compares them with those of `boxbuild init`.
const MADE: &[(AgentKind, &str)] =
    &[(AgentKind::A3sCode, "a3s-code"), (AgentKind::Opencode, "opencode")];

/// Reads the agent, if it is declared, and its memory limit. An agent with neither an image nor a
/// binary is reported.
pub(super) fn agent(node: Option<&Node>, sink: &Sink) -> (Option<Agent>, Option<MemoryLimit>) {
    let Some(node) = node else { return (None, None) };
    let mut reader = Reader::new(node, &schema::AGENT, sink);
    let kind: Option<Spanned<AgentKind>> = reader.optional("kind");
    let children = reader.children();
    let (component, memory) = common(&children, node, &AGENT_DEFAULTS);
    let binary = children.one(&schema::BINARY);
    let program = Reader::sole(&children, &schema::BINARY, image::binary);
    let image = children.one(&schema::IMAGE);
    let kind = if (image.is_none() && binary.is_none()) || (binary.is_some() && program.is_none()) {
        kind.map_or(AgentKind::OciImage, |kind| kind.value)
    } else {
        agreed_kind(kind, program.as_ref(), binary, sink)
    };
    let port = Reader::sole(&children, &schema::PORT, Reader::first);
    let health = health::of_agent(&children, kind);
    let declares_health = children.one(&schema::HEALTH).is_some();
    let tools = Reader::sole(&children, &schema::TOOLS, Reader::all).map(names::unique);
    finish(&reader, &children, node);
    if image.is_none() && binary.is_none() {
        let needs_image = !matches!(kind, AgentKind::LocalBinary | AgentKind::RemoteBinary);
        let made = MADE.iter().find(|it| it.0 == kind).map(|it| it.1);
        report_no_program(&reader, node, needs_image, made);
    }
    let agent = Agent { kind, binary: program, port, health, declares_health, tools, component };
    (Some(agent), memory)
}

/// Reads the business application, if it is declared, and its memory limit. An application without
/// an image is reported.
pub(super) fn business(
    node: Option<&Node>,
    sink: &Sink,
) -> (Option<Business>, Option<MemoryLimit>) {
    let Some(node) = node else { return (None, None) };
    let reader = Reader::new(node, &schema::BUSINESS, sink);
    let children = reader.children();
    let (component, memory) = common(&children, node, &BUSINESS_DEFAULTS);
    let (autostart, restart) =
        Reader::sole(&children, &schema::AUTOSTART, read_autostart).unwrap_or_default();
    let health = health::of_business(&children);
    finish(&reader, &children, node);
    if children.one(&schema::IMAGE).is_none() {
        report_no_program(&reader, node, true, None);
    }
    (Some(Business { autostart, restart, health, component }), memory)
}

/// Reads whether the program is started, and when it is restarted.
fn read_autostart(reader: &mut Reader<'_>) -> Option<(bool, Restart)> {
    let (autostart, restart) = (reader.first(), reader.value("restart"));
    if let (Some(false), Some(declared)) = (autostart, reader.optional_prop("restart")) {
        reader.report(DECLARATION_ERRORS.at("idle-restart", declared.span));
    }
    autostart.zip(restart)
}

/// Reads the declarations that an agent and a business application have in common.
fn common(
    children: &Children<'_>,
    node: &Node,
    defaults: &ComponentDefaults,
) -> (Component, Option<MemoryLimit>) {
    let (namespaces, hostname) = namespaces::read(children, defaults.hostname);
    let (limits, memory) = limits::read(children, node, defaults.limits);
    let user = Reader::sole(children, &schema::USER, Reader::first);
    let rlimits = limits::read_rlimits(children, user.as_ref());
    let context = capabilities::Context { user: user.as_ref(), own_mounts: namespaces.mount };
    let capabilities = capabilities::read(children, context);
    let entrypoint = Reader::sole(children, &schema::ENTRYPOINT, command::entrypoint);
    command::refuse_vsock(children);
    let variables = env::read(children);
    let component = Component {
        image: Reader::sole(children, &schema::IMAGE, Reader::first),
        args: command::args(children, entrypoint.as_ref()),
        entrypoint,
        env_files: Reader::sole(children, &schema::ENV_FILE, Reader::all).unwrap_or_default(),
        env: variables.env,
        launch_env: variables.launch,
        files: file::read(children),
        workdir: Reader::sole(children, &schema::WORKDIR, Reader::first),
        user,
        namespaces,
        hostname,
        limits,
        rlimits,
        capabilities,
        system: Reader::sole(children, &schema::SYSTEM, Reader::first).unwrap_or_default(),
    };
    (component, memory)
}

fn finish(reader: &Reader<'_>, children: &Children<'_>, component: &Node) {
    let missing = |declaration| names::missing(declaration, component);
    children.finish(|node| place_elsewhere(component, node), missing);
    reader.finish_line();
}

/// Reports that a component has no image or binary, unless the name of an `image` or `binary` is
/// misspelt, or it is written outside of the block: `agent image="oci:i"`. `made` is the agent's name in [`MADE`].
fn report_no_program(reader: &Reader<'_>, node: &Node, needs_image: bool, made: Option<&str>) {
    let names = ["image", "binary"];
    let misspelt = |it: &Node| diagnostics::suggest::nearest(&it.name.value, &names).is_some();
    let is_prop = |it: &Prop| names.contains(&it.name.value.as_str());
    let outside = node.props.iter().any(is_prop) || node.args.iter().any(hints::is_reference);
    if !outside && !node.children().iter().any(misspelt) {
        let (what, missing) = if needs_image {
            ("an `image`", &schema::IMAGE)
        } else {
            ("a `binary`", &schema::BINARY)
        };
        let message = format!("`{}` needs {what}", reader.name());
        // The schema's example is about the agent.
        let usage = missing.usage(reader.syntax()).replace("agent", reader.name());
        let error = Diagnostic::new(message, reader.span(), format!("without {what}"));
        let init = made.map(|name| {
            format!("`boxbuild init --agent {name}` writes a Boxfile with the commands that make one; or ")
        });
        let help = init.unwrap_or_default() + &form::imperative("add", &usage);
        reader.report_missing_error(error.with_help(help));
    }
}

/// Returns the declared kind if it agrees with the agent's program, else the kind that follows from
/// the program. Reports a declared kind that does not agree.
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
    let error = DECLARATION_ERRORS.at("agent-kind", declared.span);
    match binary {
        Some(binary) => sink.report(
            error
                .with_label(binary.name.span, format!("makes it a `{word}`"))
                .with_help(format!("write `{word}`, or remove `kind` or `binary`")),
        ),
        None => sink.report_missing(error),
    }
    found
}

/// Returns the help that names the right block of a declaration that is misplaced in a component.
fn place_elsewhere(component: &Node, node: &Node) -> Option<String> {
    let name = node.name.value.as_str();
    if let Some(top) = schema::find(schema::TOP, name) {
        return Some(outside(top, node.syntax));
    }
    let has = |it: &&Declaration| it.name != component.name.value && it.child(name).is_some();
    let block = [&schema::AGENT, &schema::BUSINESS].into_iter().find(has)?;
    let place = form::block(node.syntax, block.name);
    let title = if block.name == "business" { "business application" } else { block.name };
    Some(format!("only the {title} has it; write it inside `{place}`"))
}

fn outside(declaration: &Declaration, syntax: Syntax) -> String {
    let name = declaration.name;
    match syntax {
        Syntax::Kdl => format!("write `{name}` at the top level, outside any `{{ … }}`"),
        Syntax::Toml => {
            format!("write `{name}` at the top level: above the first `[table]`, or as a table")
        }
    }
}
