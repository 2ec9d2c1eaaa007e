//! The run plan: the Boxfile's words over the images' (Boxfile > image config > default).

use std::collections::BTreeMap;

use box_image::{
    Budget, ComponentName, ComponentPlan, Health, Layout, Limits, Namespaces, RunPlan, SkillPlan,
    Vm,
};
use boxfile_spec::{Boxfile, Component};

use super::user::resolve;
use super::{ComposeError, FlatImage};
use crate::pack::PackReader;
use crate::source::Process;

/// What programs are looked up in where neither Boxfile nor image says.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Decides how a box runs.
///
/// # Errors
/// [`ComposeError`].
pub fn plan_of(
    boxfile: &Boxfile,
    images: &[FlatImage],
    packs: &mut PackReader<'_>,
) -> Result<RunPlan, ComposeError> {
    let (mut agent, mut business) = (None, None);
    for flat in images {
        match (flat.component, &boxfile.business) {
            (ComponentName::Agent, _) => agent = Some(component(&boxfile.agent, flat, packs)?),
            (ComponentName::Business, Some(declared)) => {
                business = Some(component(declared, flat, packs)?);
            }
            (ComponentName::Business, None) => {}
        }
    }
    let Some(agent) = agent.filter(|agent| !agent.argv.is_empty()) else {
        return Err(ComposeError::NoProgram);
    };
    let skill = |skill: &boxfile_spec::Skill| SkillPlan { name: skill.name.clone() };
    Ok(RunPlan {
        name: boxfile.name.clone(),
        layout: match boxfile.layout {
            boxfile_spec::Layout::Split => Layout::Split,
        },
        agent,
        business,
        skills: boxfile.skills.iter().map(skill).collect(),
        vm: vm(boxfile.vm),
        budget: budget(boxfile.budget),
    })
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
    declared: &Component,
    flat: &FlatImage,
    packs: &mut PackReader<'_>,
) -> Result<ComponentPlan, ComposeError> {
    let name = flat.component.name();
    let process = flat.image.config.config.clone().unwrap_or_default();
    let user = process.user.as_deref().unwrap_or_default();
    let account = resolve(name, user, &flat.tree, packs)?;
    let env = environment(name, declared, &process, account.home)?;
    let boxfile_spec::Namespaces { mount, pid, ipc, uts, net } = declared.namespaces;
    let limits = declared.limits;
    let argv = argv(declared, &process);
    let workdir = workdir(name, declared, &process)?;
    check_strings(name, &argv, &env, &workdir)?;
    Ok(ComponentPlan {
        root: root_of(flat.component),
        argv,
        env,
        workdir,
        user: account.user,
        hostname: declared.hostname.clone(),
        namespaces: Namespaces { mount, pid, ipc, uts, net },
        limits: Limits {
            memory_bytes: limits.memory,
            cpu_weight: limits.cpu_weight,
            pids: limits.pids,
        },
        port: declared.port,
        health: declared.health.as_ref().map(health),
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

/// Returns where a component's root lies in the rootfs.
pub(super) fn root_of(component: ComponentName) -> String {
    format!("{}/{}", box_image::plan::ROOTS_PATH, component.name())
}

fn health(health: &boxfile_spec::Health) -> Health {
    match health.clone() {
        boxfile_spec::Health::Tcp { port } => Health::Tcp { port },
        boxfile_spec::Health::Http { port, path } => Health::Http { port, path },
        boxfile_spec::Health::Exec { argv } => Health::Exec { argv },
    }
}

/// As docker does: another entrypoint makes the image's CMD meaningless; other arguments replace
/// the CMD and keep the entrypoint.
fn argv(declared: &Component, process: &Process) -> Vec<String> {
    let image_entrypoint = process.entrypoint.clone().unwrap_or_default();
    let image_cmd = process.cmd.clone().unwrap_or_default();
    let (program, default_args) = match &declared.entrypoint {
        Some(entrypoint) => (entrypoint.clone(), Vec::new()),
        None => (image_entrypoint, image_cmd),
    };
    [program, declared.args.clone().unwrap_or(default_args)].concat()
}

/// Returns `NAME=value` entries, sorted by name, each name once.
fn environment(
    component: &'static str,
    declared: &Component,
    process: &Process,
    home: Option<String>,
) -> Result<Vec<String>, ComposeError> {
    let mut env = BTreeMap::from([("PATH".to_owned(), DEFAULT_PATH.to_owned())]);
    env.insert("HOME".to_owned(), home.unwrap_or_else(|| "/".to_owned()));
    for entry in process.env.iter().flatten() {
        let Some((name, value)) = entry.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(ComposeError::Environment { component, entry: entry.clone() });
        };
        env.insert(name.to_owned(), value.to_owned());
    }
    env.extend(declared.env.clone());
    Ok(env.into_iter().map(|(name, value)| format!("{name}={value}")).collect())
}

fn workdir(
    component: &'static str,
    declared: &Component,
    process: &Process,
) -> Result<String, ComposeError> {
    let image = process.working_dir.as_ref().filter(|path| !path.is_empty());
    match declared.workdir.as_ref().or(image) {
        None => Ok("/".to_owned()),
        Some(path) if path.starts_with('/') => Ok(path.clone()),
        Some(path) => Err(ComposeError::WorkingDirectory { component, path: path.clone() }),
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
