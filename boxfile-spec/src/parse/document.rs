//! Reads the whole file: the short declarations here, the others in their modules.

use box_contract::rules::MAX_SKILLS;
use box_contract::{LogsPlan, Platform, Scope};

use crate::errors::DECLARATION_ERRORS;
use crate::parse::checkout::{Checkout, Reach};
use crate::parse::names::place_inside;
use crate::parse::run::mounts::Placed;
use crate::parse::run::service::Service;
use crate::parse::run::ssh_agent::Others;
use crate::parse::{Children, Reader, budget, component, layout, read_fields, run, secrets, vm};
use crate::schema::{self, Declaration};
use crate::syntax::tree::Node;
use crate::{Agent, BakedFile, Boxfile, Business, Component, Kernel, Skill, SkillsDir, form};
use diagnostics::{Diagnostic, Sink, Span, Spanned, Syntax};

/// Reads the top-level nodes; returns `None` if a required declaration is missing or cannot be
/// read.
pub(super) fn read(nodes: &[Node], syntax: Syntax, reach: &Reach, sink: &Sink) -> Option<Boxfile> {
    let top = Children::new(nodes, schema::TOP, sink);
    top.finish(place_inside, |declaration| missing_in_file(declaration, syntax));
    let agent = top.one_or(&schema::AGENT, "a box has exactly one agent");
    let business = top.one_or(&schema::BUSINESS, "a box has at most one business application");
    let checkout = Checkout { reach, sink };
    let declared = run::secret::read(&top);
    let services = run::service::read(&top);
    run::service::check_variables([agent, business], &services, &declared, sink);
    let others = Others { components: [agent, business], services: &services, secrets: &declared };
    let ssh_agent = run::ssh_agent::read(&top, &others);
    secrets::check([agent, business], top.one(&schema::TASK), &declared, sink);
    let [servers, hooks] = [&schema::MCP, &schema::HOOK].map(|it| top.many(it));
    secrets::check_programs(&servers, &hooks, sink);
    let network = run::network::read(&top);
    let mode = network.mode;
    let mcp = run::mcp::read(&top, &network, &declared);
    let (mut agent, agent_memory) = component::agent(agent, sink);
    let agents_dir = run::agents::read(&top, agent.as_mut());
    let (business, business_memory) = component::business(business, sink);
    let skills_dir =
        Reader::sole(&top, &schema::SKILLS, |it| read_fields!(it => SkillsDir { dir, mode }));
    let skills = skills(&top);
    let shares = run::mounts::shares(&top);
    let scratch = run::mounts::scratch(&top);
    let volumes = run::mounts::volumes(&top);
    let files = files(agent.as_ref(), business.as_ref());
    let (secrets, disks) = (&declared, &scratch);
    let placed = Placed {
        shares: &shares,
        volumes: &volumes,
        disks,
        secrets,
        ssh_agent: ssh_agent.as_ref(),
        files,
    };
    run::mounts::check_apart(&placed, sink);
    let parsed = components(agent.as_ref(), business.as_ref());
    parsed.for_each(|it| run::mounts::check_workdir(it, &placed, sink));
    checkout.components(agent.as_ref(), business.as_ref());
    checkout.skills(skills_dir.as_ref(), &skills);
    // A box without an image has a lower default limit.
    let small = agent.as_ref().is_some_and(|agent| agent.component.image.is_none());
    let total = if small { schema::BINARY_TOTAL_MS } else { schema::IMAGE_TOTAL_MS };
    let (layout, conflicts) = layout::read(&top);
    let platforms = Reader::sole(&top, &schema::PLATFORM, read_platforms);
    // Reads all declarations before `?` returns because one is missing, so that each reports its
    // errors.
    let name = Reader::sole(&top, &schema::BOX, Reader::first);
    let boxfile = Boxfile {
        platforms: platforms.unwrap_or_else(|| vec![AMD64]),
        skills_dir,
        skills,
        vm: vm::read(&top, &[agent_memory, business_memory]),
        layout,
        conflicts,
        shares,
        volumes,
        scratch,
        disk_bytes: run::mounts::disk(&top),
        network,
        publish: run::publish::read(&top),
        secrets: run::service::secrets(declared, &services, sink),
        services: services.into_iter().map(Service::plan).collect(),
        ssh_agent: ssh_agent.map(|it| it.value),
        task: run::task::read(&top),
        logs: Reader::sole(
            &top,
            &schema::LOGS,
            |it| read_fields!(it => LogsPlan { stdout, stderr, events, atif }),
        ),
        caps: run::cap::read(&top),
        sandbox: run::sandbox::read(&top, mode),
        agents_dir,
        mcp,
        hooks: run::hook::read(&top),
        budget: budget::read(&top, total),
        kernel: Reader::sole(&top, &schema::KERNEL, read_kernel),
        name: name?,
        agent: agent?,
        business,
    };
    run::task::check_workdir(&boxfile, sink);
    is_whole(&boxfile).then_some(boxfile)
}

/// Reads all skills that are declared by name. Reports the first one beyond the limit.
fn skills(top: &Children<'_>) -> Vec<Skill> {
    if let Some(further) = top.many(&schema::SKILL).get(MAX_SKILLS) {
        let limit = MAX_SKILLS.to_string();
        top.sink().report(DECLARATION_ERRORS.about("skills", &limit, further.name.span));
    }
    let read = |it: &mut Reader<'_>| read_fields!(it => Skill { name = it.first(), path, mode });
    Reader::keyed(top, &schema::SKILL, read)
}

/// Returns the files that are baked into the components, with the components that see them.
fn files<'b>(
    agent: Option<&'b Agent>,
    business: Option<&'b Business>,
) -> Vec<(Scope, &'b BakedFile)> {
    let files = |(scope, it): (_, &'b Component)| it.files.iter().map(move |file| (scope, file));
    components(agent, business).flat_map(files).collect()
}

/// Returns the components, each with the scope that means it alone.
fn components<'b>(
    agent: Option<&'b Agent>,
    business: Option<&'b Business>,
) -> impl Iterator<Item = (Scope, &'b Component)> {
    let agent = agent.map(|it| (Scope::Agent, &it.component));
    agent.into_iter().chain(business.map(|it| (Scope::Business, &it.component)))
}

/// Returns whether each component has an image or a binary. If not, an error was already reported.
fn is_whole(boxfile: &Boxfile) -> bool {
    let agent = &boxfile.agent;
    let business = boxfile.business.as_ref();
    (agent.component.image.is_some() || agent.binary.is_some())
        && business.is_none_or(|business| business.component.image.is_some())
}

/// The platform of a box that declares none.
const AMD64: Spanned<Platform> = Spanned { value: Platform::LinuxAmd64, span: Span::at(0, 0) };

/// Returns the error of a file without a required declaration.
fn missing_in_file(declaration: &'static Declaration, syntax: Syntax) -> Diagnostic {
    let error = DECLARATION_ERRORS.about("missing", declaration.name, Span::default());
    error.with_help(form::imperative("add", &declaration.usage(syntax)))
}

fn read_platforms(reader: &mut Reader<'_>) -> Option<Vec<Spanned<Platform>>> {
    let platforms: Vec<Spanned<Platform>> = reader.all()?;
    for (index, platform) in platforms.iter().enumerate() {
        if let Some(earlier) = platforms[..index].iter().find(|it| it.value == platform.value) {
            let name = platform.value.name();
            reader.report(Diagnostic::twice(name, earlier.span, platform.span));
        }
    }
    Some(platforms)
}

/// Reads the kernel's path and digest, at least one of which is required.
fn read_kernel(reader: &mut Reader<'_>) -> Option<Kernel> {
    let path = reader.optional_arg();
    if path.is_none() && reader.optional_prop("sha256").is_none() {
        reader.report_missing("a path or a `sha256`");
    }
    read_fields!(reader => Kernel { path = Some(reader.read_first(path)), sha256 })
}
