//! The file as a whole: its declarations and the short ones among them.

use crate::diagnostic::quote;
use crate::parse::checkout::Checkout;
use crate::parse::children::Children;
use crate::parse::component;
use crate::parse::machine::{budget, kernel, vm};
use crate::parse::reader::Reader;
use crate::parse::{layout, run, skill};
use crate::schema::{self, Declaration};
use crate::sink::Sink;
use crate::syntax::tree::{Node, Value};
use crate::{Boxfile, Diagnostic, Platform, Span, Spanned, Syntax, form, rules, value};

/// Reads the top-level nodes; nothing if a required declaration is missing or cannot be read.
///
/// `climb` is how many directories above the main file's still belong to the checkout.
pub(super) fn read(nodes: &[Node], syntax: Syntax, climb: usize, sink: &Sink) -> Option<Boxfile> {
    let top = Children::new(nodes, schema::TOP, sink);
    top.finish(place_inside, |declaration| missing_in_file(declaration, syntax));
    let agent = top.one_or(&schema::AGENT, "a box has exactly one agent");
    let business = top.one_or(&schema::BUSINESS, "a box has at most one business application");
    let (secrets, files) = run::secret::read(&top, sink);
    [agent, business].into_iter().for_each(|it| component::check_secrets(it, &secrets, sink));
    let (agent, agent_share) = component::agent(agent, sink);
    let (business, business_share) = component::business(business, sink);
    let skills_dir = top.one(&schema::SKILLS).and_then(|node| skill::read_dir(node, sink));
    let skills = skill::read(&top, sink);
    let shares = run::mounts::shares(&top, sink);
    let scratch = run::mounts::scratch(&top, sink);
    run::mounts::check_apart(&shares, &scratch, &files, sink);
    let checkout = Checkout { climb, sink };
    checkout.components(agent.as_ref(), business.as_ref());
    checkout.skills(skills_dir.as_ref(), &skills);
    checkout.shares(&shares);
    // A binary with no image under it is the small mode, for which less time is allowed.
    let small = agent.as_ref().is_some_and(|agent| agent.component.image.is_none());
    let total = if small { budget::BINARY_TOTAL } else { budget::IMAGE_TOTAL };
    let (layout, conflicts) = layout::read(&top, sink);
    let platforms = top.one(&schema::PLATFORM).and_then(|node| read_platforms(node, sink));
    // Whatever is missing in the end, all of it was read: each part reports for itself.
    let name = top.one(&schema::BOX).and_then(|node| read_name(node, sink));
    let boxfile = Boxfile {
        platforms: platforms.unwrap_or_else(default_platforms),
        skills_dir,
        skills,
        vm: vm::read(top.one(&schema::VM), &[agent_share, business_share], sink),
        layout,
        conflicts,
        shares,
        scratch,
        network: run::network::read(&top, sink),
        secrets,
        task: top.one(&schema::TASK).and_then(|node| run::task::read(node, sink)),
        logs: top.one(&schema::LOGS).map(|node| run::logs::read(node, sink)),
        caps: run::cap::read(&top, sink),
        sandbox: top.one(&schema::SANDBOX).and_then(|node| run::sandbox::read(node, sink)),
        budget: budget::read(top.one(&schema::BUDGET), total, sink),
        kernel: top.one(&schema::KERNEL).and_then(|node| kernel::read(node, sink)),
        climb,
        name: name?,
        agent: agent?,
        business,
    };
    is_whole(&boxfile).then_some(boxfile)
}

/// Tells whether each component has files: of what lacks them, an error was reported.
fn is_whole(boxfile: &Boxfile) -> bool {
    let agent = &boxfile.agent;
    let business = boxfile.business.as_ref();
    (agent.component.image.is_some() || agent.binary.is_some())
        && business.is_none_or(|business| business.component.image.is_some())
}

fn default_platforms() -> Vec<Spanned<Platform>> {
    vec![Spanned { value: Platform::LinuxAmd64, span: Span::default() }]
}

/// The error that a file lacks a declaration.
fn missing_in_file(declaration: &'static Declaration, syntax: Syntax) -> Diagnostic {
    let message = format!("the file does not declare `{}`", declaration.name);
    Diagnostic::new(message, Span::default(), "in this file")
        .with_help(form::imperative("add", &declaration.usage(syntax)))
}

/// The error that a block lacks a declaration.
pub(super) fn missing(declaration: &'static Declaration, block: &Node) -> Diagnostic {
    let message = format!("`{}` needs `{}`", block.name.value, declaration.name);
    Diagnostic::new(message, block.name.span, format!("without `{}`", declaration.name))
        .with_help(form::imperative("add", &declaration.usage(block.syntax)))
}

fn read_name(node: &Node, sink: &Sink) -> Option<String> {
    let mut reader = Reader::new(node, &schema::BOX, sink);
    let name = reader.arg();
    let name = reader.read(name, "box", plain_name);
    reader.finish();
    name
}

/// Reads the name of a box, skill, share or the like.
pub(super) fn plain_name(value: &Value, of: &str) -> Result<String, Diagnostic> {
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

fn read_platforms(node: &Node, sink: &Sink) -> Option<Vec<Spanned<Platform>>> {
    let mut reader = Reader::new(node, &schema::PLATFORM, sink);
    let kind = reader.first_kind();
    let platform = |value: &Value, name: &str| {
        let platform = match value::choice(value, name, kind)? {
            "linux/arm64" => Platform::LinuxArm64,
            _ => Platform::LinuxAmd64,
        };
        Ok(Spanned { value: platform, span: value.span })
    };
    let platforms = reader.read_some(platform);
    reader.finish();
    let platforms = platforms?;
    for (index, platform) in platforms.iter().enumerate() {
        if let Some(earlier) = platforms[..index].iter().find(|it| it.value == platform.value) {
            let message = format!("`{}` is named twice", platform.value);
            sink.report(
                Diagnostic::new(message, platform.span, "named again")
                    .with_label(earlier.span, "named first")
                    .with_help("remove one of them"),
            );
        }
    }
    Some(platforms)
}

/// Tells where a declaration belongs that was found at the top level.
pub(super) fn place_inside(node: &Node) -> Option<String> {
    let name = node.name.value.as_str();
    let [agent, business] =
        [&schema::AGENT, &schema::BUSINESS].map(|it| it.child(name).map(|_| it.name));
    let block = |name| format!("`{}`", form::block(node.syntax, name));
    let places: Vec<String> = agent.into_iter().chain(business).map(block).collect();
    (!places.is_empty()).then(|| format!("it belongs inside {}", places.join(" or ")))
}
