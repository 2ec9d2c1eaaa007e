//! The run plan: the Boxfile's words over the images' (Boxfile > image config > default).

use std::collections::BTreeMap;

use box_image::defaults::SEARCH_PATH;
use box_image::plan::{ComponentName, SkillMode, SkillPlan};
use box_image::{Budget, ComponentPlan, Health, Layout, Limits, Namespaces, RunPlan, Vm};
use boxfile_spec::{Boxfile, Component};
use oci_image::Config;

use super::labels::Labels;
use super::root::root_of;
use super::user::resolve;
use super::{ComposeError, FlatImage, run};
use crate::binary::AGENT_PATH;
use crate::pack::PackReader;

/// What is declared: the Boxfile, and what its files of the checkout say.
#[derive(Debug)]
pub struct Declared<'a> {
    /// The Boxfile.
    pub boxfile: &'a Boxfile,
    /// The variables of the components' files.
    pub env: &'a BTreeMap<ComponentName, BTreeMap<String, String>>,
    /// The skills, sorted by name.
    pub skills: Vec<(String, boxfile_spec::SkillMode)>,
}

/// Decides how a box runs.
///
/// # Errors
/// [`ComposeError`].
pub fn plan_of(
    declared: &Declared<'_>,
    images: &[FlatImage],
    packs: &mut PackReader<'_>,
) -> Result<RunPlan, ComposeError> {
    let boxfile = declared.boxfile;
    let (mut agent, mut business) = (None, None);
    for flat in images {
        match flat.component {
            ComponentName::Agent => agent = Some(agent_plan(declared, flat, packs)?),
            ComponentName::Business => business = business_plan(declared, flat, packs)?,
        }
    }
    let Some(agent) = agent.filter(|agent| !agent.argv.is_empty()) else {
        return Err(ComposeError::NoProgram);
    };
    Ok(RunPlan {
        name: boxfile.name.clone(),
        layout: match boxfile.layout {
            boxfile_spec::Layout::Split => Layout::Split,
            boxfile_spec::Layout::Merged => Layout::Merged,
        },
        agent_kind: run::agent_kind(boxfile.agent.kind),
        tools: boxfile.agent.tools.clone().unwrap_or_default(),
        agent,
        business,
        skills: declared.skills.iter().map(skill).collect(),
        shares: run::shares(boxfile),
        scratch: run::scratch(boxfile),
        network: run::network(&boxfile.network),
        secrets: run::secrets(boxfile),
        task: boxfile.task.as_ref().map(run::task),
        logs: boxfile.logs.as_ref().map(run::logs),
        caps: boxfile.caps.iter().map(run::cap).collect(),
        sandbox: boxfile.sandbox.as_ref().map(run::sandbox),
        vm: vm(boxfile.vm),
        budget: budget(boxfile.budget),
    })
}

fn skill((name, mode): &(String, boxfile_spec::SkillMode)) -> SkillPlan {
    let mode = match mode {
        boxfile_spec::SkillMode::Bake => SkillMode::Baked,
        boxfile_spec::SkillMode::Mount => SkillMode::Mounted,
    };
    SkillPlan { name: name.clone(), mode }
}

fn agent_plan(
    declared: &Declared<'_>,
    flat: &FlatImage,
    packs: &mut PackReader<'_>,
) -> Result<ComponentPlan, ComposeError> {
    let agent = &declared.boxfile.agent;
    let mut plan = component(&agent.component, declared, flat, packs)?;
    if agent.binary.is_some() && agent.component.entrypoint.is_none() {
        let args = agent.component.args.clone().unwrap_or_default();
        plan.argv = [vec![AGENT_PATH.to_owned()], args].concat();
    }
    let labelled = Labels::of(flat.component, &flat.process)?.port()?;
    let port = agent.port.or(labelled).unwrap_or_else(|| agent.kind.default_port());
    plan.port = Some(port);
    plan.health = agent.health.as_ref().map(|check| health(check, port));
    Ok(plan)
}

fn business_plan(
    declared: &Declared<'_>,
    flat: &FlatImage,
    packs: &mut PackReader<'_>,
) -> Result<Option<ComponentPlan>, ComposeError> {
    let Some(business) = &declared.boxfile.business else { return Ok(None) };
    let mut plan = component(&business.component, declared, flat, packs)?;
    plan.autostart = business.autostart;
    Ok(Some(plan))
}

fn vm(vm: boxfile_spec::Vm) -> Vm {
    // The language bounds the memory far below 2^32 MiB.
    let memory_mib = u32::try_from(vm.memory >> 20).unwrap_or(u32::MAX);
    Vm { cpus: vm.cpus, memory_mib }
}

const fn budget(budget: boxfile_spec::Budget) -> Budget {
    let boxfile_spec::Budget { vmm, kernel, init, ready, total } = budget;
    Budget { vmm, kernel, init, ready, total }
}

fn component(
    component: &Component,
    declared: &Declared<'_>,
    flat: &FlatImage,
    packs: &mut PackReader<'_>,
) -> Result<ComponentPlan, ComposeError> {
    let (name, process) = (flat.component.name(), &flat.process);
    let labels = Labels::of(flat.component, process)?;
    let user = component.user.as_ref().map(|user| user.value.as_str());
    let user = user.or(process.user().as_deref()).unwrap_or_default();
    let account = resolve(name, user, &flat.tree, packs)?;
    let files = declared.env.get(&flat.component);
    let env = environment(flat, &labels, account.home, [files, Some(&component.env)])?;
    let boxfile_spec::Namespaces { mount, pid, ipc, uts, net } = component.namespaces;
    let limits = component.limits;
    let argv = argv(component, process, &labels);
    let workdir = workdir(name, component, process, &labels)?;
    check_strings(name, &argv, &env, &workdir)?;
    Ok(ComponentPlan {
        root: root_of(declared.boxfile.layout, flat.component),
        argv,
        env,
        workdir,
        user: account.user,
        hostname: component.hostname.clone(),
        namespaces: Namespaces { mount, pid, ipc, uts, net },
        limits: Limits {
            memory_bytes: limits.memory,
            cpu_weight: limits.cpu_weight,
            pids: limits.pids,
        },
        rlimits: run::rlimits(&component.rlimits),
        autostart: false,
        port: None,
        health: None,
    })
}

/// Refuses what the kernel cannot be given: the Boxfile's strings are checked when it is read, those
/// of an image's config here.
fn check_strings(
    component: &'static str,
    argv: &[String],
    env: &[String],
    workdir: &str,
) -> Result<(), ComposeError> {
    let refuse = |what| Err(ComposeError::Process { component, what });
    if argv.first().is_some_and(String::is_empty) {
        return refuse("a program without a name");
    }
    if argv.iter().chain(env).any(|text| text.contains('\0')) || workdir.contains('\0') {
        return refuse("a NUL byte in its program, environment or working directory");
    }
    Ok(())
}

fn health(health: &boxfile_spec::Health, agent_port: u16) -> Health {
    match health.clone() {
        boxfile_spec::Health::Tcp { port } => Health::Tcp { port: port.unwrap_or(agent_port) },
        boxfile_spec::Health::Http { port, path } => {
            Health::Http { port: port.unwrap_or(agent_port), path }
        }
        boxfile_spec::Health::Exec { argv } => Health::Exec { argv },
    }
}

/// As docker does: another entrypoint makes the image's CMD meaningless; other arguments replace
/// the CMD and keep the entrypoint. An image that has neither may name its program in a label.
fn argv(declared: &Component, process: &Config, labels: &Labels<'_>) -> Vec<String> {
    let image_entrypoint = process.entrypoint().clone().unwrap_or_default();
    let image_cmd = process.cmd().clone().unwrap_or_default();
    let (program, default_args) = match &declared.entrypoint {
        Some(entrypoint) => (entrypoint.clone(), Vec::new()),
        None if image_entrypoint.is_empty() && image_cmd.is_empty() => (labels.argv(), Vec::new()),
        None => (image_entrypoint, image_cmd),
    };
    [program, declared.args.clone().unwrap_or(default_args)].concat()
}

/// Returns `NAME=value` entries, sorted by name, each name once: the image's labels, over these its
/// environment, over this what is declared.
fn environment(
    flat: &FlatImage,
    labels: &Labels<'_>,
    home: Option<String>,
    declared: [Option<&BTreeMap<String, String>>; 2],
) -> Result<Vec<String>, ComposeError> {
    let mut env = BTreeMap::from([("PATH".to_owned(), SEARCH_PATH.to_owned())]);
    env.insert("HOME".to_owned(), home.unwrap_or_else(|| "/".to_owned()));
    env.extend(labels.env()?);
    for entry in flat.process.env().iter().flatten() {
        let Some((name, value)) = entry.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            let component = flat.component.name();
            return Err(ComposeError::Environment { component, entry: entry.clone() });
        };
        env.insert(name.to_owned(), value.to_owned());
    }
    declared.into_iter().flatten().for_each(|variables| env.extend(variables.clone()));
    Ok(env.into_iter().map(|(name, value)| format!("{name}={value}")).collect())
}

fn workdir(
    component: &'static str,
    declared: &Component,
    process: &Config,
    labels: &Labels<'_>,
) -> Result<String, ComposeError> {
    let image = process.working_dir().as_deref().filter(|path| !path.is_empty());
    match declared.workdir.as_deref().or(image).or(labels.workdir()) {
        None => Ok("/".to_owned()),
        Some(path) if path.starts_with('/') => Ok(path.to_owned()),
        Some(path) => Err(ComposeError::WorkingDirectory { component, path: path.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_cannot_be_given_is_refused() {
        let strings = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let check = |argv: &[&str], env: &[&str], workdir| {
            check_strings("agent", &strings(argv), &strings(env), workdir).is_ok()
        };
        assert!(check(&["a", ""], &["A="], "/"));
        assert!(check(&[], &[], "/"));
        assert!(!check(&[""], &[], "/"));
        assert!(!check(&["a", "b\0"], &[], "/"));
        assert!(!check(&["a"], &["A=\0"], "/"));
        assert!(!check(&["a"], &[], "/\0"));
    }
}
