//! The file as a whole: its declarations and the short ones among them.

use box_contract::rules::MOST_SKILLS;
use box_contract::{LogsPlan, Scope, SkillMode};

use crate::parse::checkout::{Checkout, Reach};
use crate::parse::children::Children;
use crate::parse::component;
use crate::parse::names::{place_inside, plain_name};
use crate::parse::reader::Reader;
use crate::parse::run::mounts::Placed;
use crate::parse::run::secret::Secret;
use crate::parse::{budget, layout, run, secrets, vm};
use crate::schema::{self, Declaration};
use crate::syntax::tree::Node;
use crate::{Agent, BakedFile, Boxfile, Business, Kernel, Skill, SkillsDir, form, value};
use box_contract::Platform;
use diagnostics::Sink;
use diagnostics::{Diagnostic, Span, Spanned, Syntax};

/// Reads the top-level nodes; nothing if a required declaration is missing or cannot be read.
pub(super) fn read(nodes: &[Node], syntax: Syntax, reach: &Reach, sink: &Sink) -> Option<Boxfile> {
    let top = Children::new(nodes, schema::TOP, sink);
    top.finish(place_inside, |declaration| missing_in_file(declaration, syntax));
    let agent = top.one_or(&schema::AGENT, "a box has exactly one agent");
    let business = top.one_or(&schema::BUSINESS, "a box has at most one business application");
    let checkout = Checkout { reach, sink };
    let declared = run::secret::read(&top, sink);
    secrets::check([agent, business], top.one(&schema::TASK), &declared, sink);
    let (agent, agent_share) = component::agent(agent, sink);
    let (business, business_share) = component::business(business, sink);
    let skills_dir = Reader::sole(&top, &schema::SKILLS, read_skills_dir);
    if let Some(further) = top.many(&schema::SKILL).get(MOST_SKILLS) {
        sink.report(too_many_skills(further));
    }
    let skills = top.keyed(&schema::SKILL).into_iter();
    let skills: Vec<Skill> = skills.filter_map(|node| read_skill(node, sink)).collect();
    let shares = run::mounts::shares(&top, sink);
    let scratch = run::mounts::scratch(&top, sink);
    let files = files(agent.as_ref(), business.as_ref());
    let (secrets, disks) = (&declared, &scratch);
    run::mounts::check_apart(&Placed { shares: &shares, disks, secrets, files }, sink);
    checkout.components(agent.as_ref(), business.as_ref());
    checkout.skills(skills_dir.as_ref(), &skills);
    // A binary with no image under it is the small mode, for which less time is allowed.
    let small = agent.as_ref().is_some_and(|agent| agent.component.image.is_none());
    let total = if small { budget::BINARY_TOTAL } else { budget::IMAGE_TOTAL };
    let (layout, conflicts) = layout::read(&top, sink);
    let platforms = Reader::sole(&top, &schema::PLATFORM, read_platforms);
    // Whatever is missing in the end, all of it was read: each part reports for itself.
    let name = Reader::sole(&top, &schema::BOX, |it| it.read_arg(plain_name));
    let boxfile = Boxfile {
        platforms: platforms.unwrap_or_else(|| vec![AMD64]),
        skills_dir,
        skills,
        vm: vm::read(top.one(&schema::VM), &[agent_share, business_share], sink),
        layout,
        conflicts,
        shares,
        scratch,
        network: run::network::read(&top, sink),
        secrets: declared.into_iter().filter_map(Secret::plan).collect(),
        task: top.one(&schema::TASK).and_then(|node| run::task::read(node, sink)),
        logs: Reader::sole(&top, &schema::LOGS, |it| Some(read_logs(it))),
        caps: run::cap::read(&top, sink),
        sandbox: top.one(&schema::SANDBOX).and_then(|node| run::sandbox::read(node, sink)),
        budget: budget::read(top.one(&schema::BUDGET), total, sink),
        kernel: Reader::sole(&top, &schema::KERNEL, |it| Some(read_kernel(it))),
        name: name?,
        agent: agent?,
        business,
    };
    is_whole(&boxfile).then_some(boxfile)
}

/// Returns the files that are baked into the components, and who sees them.
fn files<'b>(
    agent: Option<&'b Agent>,
    business: Option<&'b Business>,
) -> Vec<(Scope, &'b BakedFile)> {
    let agent = agent.map(|it| (Scope::Agent, &it.component));
    let business = business.map(|it| (Scope::Business, &it.component));
    let components = agent.into_iter().chain(business);
    components.flat_map(|(scope, it)| it.files.iter().map(move |file| (scope, file))).collect()
}

/// Returns whether each component has files: of what lacks them, an error was reported.
fn is_whole(boxfile: &Boxfile) -> bool {
    let agent = &boxfile.agent;
    let business = boxfile.business.as_ref();
    (agent.component.image.is_some() || agent.binary.is_some())
        && business.is_none_or(|business| business.component.image.is_some())
}

/// The platform of a box that declares none.
const AMD64: Spanned<Platform> = Spanned { value: Platform::LinuxAmd64, span: Span::at(0, 0) };

/// The error that a file lacks a declaration.
fn missing_in_file(declaration: &'static Declaration, syntax: Syntax) -> Diagnostic {
    let message = format!("the file does not declare `{}`", declaration.name);
    Diagnostic::new(message, Span::default(), "in this file")
        .with_help(form::imperative("add", &declaration.usage(syntax)))
}

/// The error of the first skill that is one too many.
fn too_many_skills(skill: &Node) -> Diagnostic {
    let message = format!("a box has at most {MOST_SKILLS} skills");
    Diagnostic::new(message, skill.name.span, "one too many")
        .with_help("put what belongs together into one skill")
}

fn read_platforms(reader: &mut Reader<'_>) -> Option<Vec<Spanned<Platform>>> {
    let kind = reader.first_kind();
    let platforms: Vec<Spanned<Platform>> = reader.read_some(|value, name| {
        Ok(Spanned { value: value::choice(value, name, kind)?, span: value.span })
    })?;
    for (index, platform) in platforms.iter().enumerate() {
        if let Some(earlier) = platforms[..index].iter().find(|it| it.value == platform.value) {
            let name = platform.value.name();
            reader.report(Diagnostic::twice(name, earlier.span, platform.span));
        }
    }
    Some(platforms)
}

/// Reads the kernel's path and digest, of which one at least must be there.
fn read_kernel(reader: &mut Reader<'_>) -> Kernel {
    let path = reader.optional_arg();
    let sha256 = reader.optional_prop("sha256");
    if path.is_none() && sha256.is_none() {
        reader.report_missing("a path or a `sha256`");
    }
    let path = reader.read(path, "kernel", value::path);
    let sha256 = reader.read(sha256, "sha256", value::sha256);
    Kernel { path, sha256 }
}

/// Reads what is recorded: everything that is not switched off.
fn read_logs(reader: &mut Reader<'_>) -> LogsPlan {
    let mut recorded = |name| reader.read_optional(name, value::truth).unwrap_or(true);
    LogsPlan {
        stdout: recorded("stdout"),
        stderr: recorded("stderr"),
        events: recorded("events"),
        atif: recorded("atif"),
    }
}

/// Reads a single skill.
fn read_skill(node: &Node, sink: &Sink) -> Option<Skill> {
    let mut reader = Reader::new(node, &schema::SKILL, sink);
    let name = reader.read_arg(plain_name);
    let path = reader.read_prop("path", value::path);
    let mode = skill_mode(&mut reader);
    reader.finish();
    Some(Skill { name: name?, path: path?, mode })
}

/// Reads the directory of skills.
fn read_skills_dir(reader: &mut Reader<'_>) -> Option<SkillsDir> {
    let dir = reader.read_prop("dir", value::path);
    let mode = skill_mode(reader);
    Some(SkillsDir { dir: dir?, mode })
}

fn skill_mode(reader: &mut Reader<'_>) -> SkillMode {
    let word: Option<String> = reader.choice("mode");
    let named = |mode: &SkillMode| word.as_deref() == Some(mode.name());
    SkillMode::ALL.into_iter().find(named).unwrap_or_default()
}
