//! The file as a whole: its declarations and the short ones among them.

use crate::diagnostic::quote;
use crate::parse::children::Children;
use crate::parse::component::{self, AGENT, BUSINESS};
use crate::parse::reader::Reader;
use crate::parse::{budget, kernel, skill, vm};
use crate::sink::Sink;
use crate::syntax::{Node, Value};
use crate::{Boxfile, Diagnostic, Layout, Span, rules, value};

/// Reads the top-level nodes; nothing if a required declaration is missing or cannot be read.
pub(super) fn read(nodes: &[Node], sink: &Sink) -> Option<Boxfile> {
    let mut top = Children::new(nodes, sink);
    let name = top.one("box");
    let agent = top.one_or("agent", "a box has exactly one agent");
    let business = top.one_or("business", "a box has at most one business application");
    let skills = skill::read(&top.many("skill"), sink);
    let vm = top.one("vm");
    let layout = top.one("layout").and_then(|node| read_layout(node, sink)).unwrap_or_default();
    let budget = budget::read(top.one("budget"), sink);
    let kernel = top.one("kernel").and_then(|node| kernel::read(node, sink));
    let misspelt = top.finish(place_in_component);
    for (node, required, usage) in [
        (name, "box", "box \"my-agent\""),
        (agent, "agent", "agent { image \"oci:images/agent\"; }"),
    ] {
        if node.is_none() && !misspelt.contains(&required) {
            sink.report(missing(required, usage));
        }
    }

    let name = name.and_then(|node| read_name(node, sink));
    let (agent, agent_share) = component::read(agent, &AGENT, sink);
    let (business, business_share) = component::read(business, &BUSINESS, sink);
    let vm = vm::read(vm, &[agent_share, business_share], sink);
    Some(Boxfile { name: name?, agent: agent?, business, skills, vm, layout, budget, kernel })
}

fn missing(name: &str, usage: &str) -> Diagnostic {
    let message = format!("the file does not declare `{name}`");
    Diagnostic::new(message, Span::default(), "in this file").with_help(format!("add `{usage}`"))
}

fn read_name(node: &Node, sink: &Sink) -> Option<String> {
    let mut reader = Reader::new(node, "`box \"my-agent\"`", sink);
    let name = reader.arg("a name");
    let name = reader.read(name, "box", box_or_skill_name);
    reader.finish();
    name
}

/// Reads the name of a box or skill.
pub(super) fn box_or_skill_name(value: &Value, of: &str) -> Result<String, Diagnostic> {
    let name = value::text(value, of)?;
    if rules::is_name(name) {
        return Ok(name.to_owned());
    }
    let error =
        Diagnostic::new(format!("{} is not a valid name", quote(name)), value.span, "not a name");
    Err(error.with_help(match rules::intended_name(name) {
        Some(intended) => format!("{}; write \"{intended}\"", rules::NAME_FORM),
        None => rules::NAME_FORM.to_owned(),
    }))
}

fn read_layout(node: &Node, sink: &Sink) -> Option<Layout> {
    let mut reader = Reader::new(node, "`layout \"split\"`", sink);
    let layout = reader.arg("the name of a layout");
    let layout = reader.read(layout, "layout", |value, name| match value::text(value, name)? {
        "split" => Ok(Layout::Split),
        "merged" => Err(layout_error("the layout `merged` is not supported", value.span)),
        other => Err(layout_error(&format!("unknown layout {}", quote(other)), value.span)),
    });
    reader.finish();
    layout
}

fn layout_error(message: &str, span: Span) -> Diagnostic {
    Diagnostic::new(message, span, "this version builds `split` only")
        .with_help("write `layout \"split\"`, where each image keeps its own root, or leave it out")
}

/// Tells where a name belongs that was found at the top level.
fn place_in_component(name: &str) -> Option<String> {
    let inside = component::DECLARATIONS.contains(&name);
    inside.then(|| format!("`{name}` belongs inside `agent {{ … }}` or `business {{ … }}`"))
}
