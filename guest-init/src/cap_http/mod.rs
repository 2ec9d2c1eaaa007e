//! Requests as files: a component's HTTP APIs for programs that only read and write files.
//!
//! ```text
//! /run/cap-agent                     a tmpfs; /cap in the agent's root is the same
//!     http/NAME/requests/ID          a request that a program of the component has written
//!     http/NAME/responses/.ID.part   its answer, while it arrives
//!     http/NAME/responses/ID         its answer
//! ```
//!
//! `box-cap-http` sends each request to the address of the API, as any program of the component could, and writes the answer.
//! It has the rights of the component's user in these directories, and sees no other file. It is not in the component's PID
//! namespace, so that its workload cannot stop it. It is in the component's cgroup, so that its files are charged to the
//! component's memory. If it is killed, because that memory is used up, init starts it again.

pub mod message;
mod serve;

use std::fs::{self, DirBuilder, File};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{DirBuilderExt as _, chown};
use std::path::{Path, PathBuf};

use box_contract::network::{own_address, service_port};
use box_contract::plan::{CAP_PATH, RUN_PATH};
use box_contract::{ComponentName, ComponentPlan, RunPlan};
use nix::fcntl::ResolveFlag;
use nix::unistd::{Pid, chdir, chroot};

use crate::boot::{NO_SUID_DEV_EXEC, mount_fs};
use crate::component::{Component, seccomp};
use crate::error::{InitError, Step as _};
use crate::mounts::open_or_make_in;
use crate::sys::mounts::show_copy;
use crate::{console, sandboxed};
use serve::Server;

/// The step under which the end of a process is reported.
pub(crate) const STEP: &str = "serve requests as files";
/// The directory of the HTTP APIs, below [`CAP_PATH`].
const HTTP: &str = "http";
/// The directories of an API.
const REQUESTS: &str = "requests";
const RESPONSES: &str = "responses";
/// The greatest size of a component's tmpfs, in bytes.
const MAX_SIZE: u64 = 64 << 20;
/// A component's memory limit divided by this is the greatest size of its tmpfs. Together with a writable layer in memory,
/// `/dev/shm` and loaded skills, which have seven eighths of the limit, the tmpfs is smaller than the limit.
const MEMORY_DIVISOR: u64 = 16;
/// The mode of the directories. Those of an API belong to the component's user, and the others to root.
const MODE: u32 = 0o755;
/// The greatest number of files and directories of a tmpfs.
const MAX_INODES: u32 = 4096;
/// The OOM score of a process that is killed after all others of its cgroup. With -1000, it could not be killed.
const LAST_KILLED: &str = "-999";

/// Makes the directories of each component that sends requests as files.
///
/// # Errors
/// The step that failed.
pub(crate) fn make_directories(plan: &RunPlan) -> Result<(), InitError> {
    for (name, component) in plan.components() {
        if plan.file_requests(name).is_some() {
            make(&directory(name), plan, name, component)?;
        }
    }
    Ok(())
}

fn make(
    at: &Path,
    plan: &RunPlan,
    name: ComponentName,
    component: &ComponentPlan,
) -> Result<(), InitError> {
    let step = "make the directories of requests";
    fs::create_dir(at).step(step)?;
    let size = MAX_SIZE.min(component.limits.memory_bytes / MEMORY_DIVISOR);
    let options = format!("mode=0755,size={size},nr_inodes={MAX_INODES}");
    mount_fs("tmpfs", at, NO_SUID_DEV_EXEC, &options)?;
    let user = &component.user;
    let make = |directory: PathBuf| -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(MODE).create(&directory)?;
        chown(&directory, Some(user.uid), Some(user.gid))
    };
    plan.services_of(name)
        .flat_map(|(_, service)| {
            [REQUESTS, RESPONSES].map(|it| at.join(HTTP).join(&service.name).join(it))
        })
        .try_for_each(make)
        .step(step)
}

/// Mounts a component's directories in its root, if it has them.
///
/// # Errors
/// The error of the mount.
pub(crate) fn show(root: &Path, plan: &RunPlan, name: ComponentName) -> Result<(), InitError> {
    if plan.file_requests(name).is_none() {
        return Ok(());
    }
    let show = || -> nix::Result<()> {
        let at = open_or_make_in(root, Path::new(CAP_PATH), ResolveFlag::empty())?;
        show_copy(&directory(name), false, at)
    };
    show().step_with(|| format!("show the directories of requests at {CAP_PATH}"))
}

/// Starts the process of a component that sends requests as files. Returns `None` for another component. When the function
/// returns, the process notices each new request.
///
/// # Errors
/// The step that failed.
pub(crate) fn start(component: &Component, plan: &RunPlan) -> Result<Option<Pid>, InitError> {
    let name = component.name;
    let (Some(_), Some(own)) = (plan.file_requests(name), plan.component(name)) else {
        return Ok(None);
    };
    let network = own.namespaces.net.then(|| component.open_network()).transpose()?;
    let prepare = move |report: &File| prepare((plan, name, own), network.as_ref(), report);
    let cgroup = Some(component.leaf.as_fd());
    sandboxed::start(STEP, cgroup, prepare, Server::run).map(Some)
}

/// Confines the process to the component's directories and network, and drops all privileges.
fn prepare(
    (plan, name, own): (&RunPlan, ComponentName, &ComponentPlan),
    network: Option<&File>,
    report: &File,
) -> Result<Server, InitError> {
    // If the component has used up its memory and has no other process, this one must be one that the kernel can kill.
    fs::write("/proc/self/oom_score_adj", LAST_KILLED).step("set the OOM score")?;
    sandboxed::enter(c"box-cap-http", &[report.as_fd()], network)?;
    console::speak_of_panics_on_stderr();
    chdir(&directory(name)).step("enter the directories of requests")?;
    chroot(".").step("enter the directories of requests")?;
    sandboxed::become_user(&own.user, 0)?;
    seccomp::install()?;
    let address = |number: u16| SocketAddr::from((own_address(name), service_port(number)));
    let services = plan.services_of(name).map(|(number, it)| (it.name.clone(), address(number)));
    let timeout = plan.file_requests(name).unwrap_or_default();
    let root = Path::new("/").join(HTTP);
    Server::new(&root, services, timeout).step("watch the directories of requests")
}

/// Returns init's path of a component's directories.
fn directory(name: ComponentName) -> PathBuf {
    Path::new(RUN_PATH).join(format!("cap-{}", name.name()))
}

#[cfg(test)]
mod tests;
