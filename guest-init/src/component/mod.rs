//! Components: the agent and the business application, each with a [`holder`].
//!
//! ```text
//! init ── holder (PID 1 of the component's namespaces) ── workloads, in the component's cgroup
//!   └──── bridge (vsock port → the component's TCP port)
//! ```

pub(crate) mod account;
mod builtin;
pub(crate) mod caps;
pub(crate) mod dev;
pub(crate) mod exec;
pub(crate) mod fence;
pub(crate) mod health;
mod hidden;
pub(crate) mod holder;
mod listing;
pub(crate) mod protocol;
mod readiness;
pub(crate) mod rlimits;
pub(crate) mod rootfs;
pub(crate) mod seccomp;
pub(crate) mod spawn;
mod system;
pub(crate) mod workdir;

use std::cell::RefCell;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use box_contract::wire::ComponentUsage;
use box_contract::{ComponentName, ComponentPlan, Namespaces, RunPlan};
use nix::sched::CloneFlags;
use nix::sys::signal::Signal;
use nix::sys::statvfs::{Statvfs, statvfs};
use nix::unistd::Pid;

use crate::cgroup::Leaf;
use crate::error::{InitError, Step as _};
use crate::mounts::HostMounts;
use crate::secrets::SecretFile;
use crate::sys;
use protocol::{Event, Link};

/// A file system with less free space than this, in bytes, is full: a program that failed to write a file has often removed
/// the beginning of that file.
const FULL: u64 = 1 << 20;

/// Init's end of one component.
#[derive(Debug)]
pub(crate) struct Component {
    /// Which component it is.
    pub(crate) name: ComponentName,
    /// The holder's process id in init's namespace.
    pub(crate) holder: Pid,
    /// The connection to the holder.
    pub(crate) link: Link,
    /// The cgroup of the component's workloads.
    pub(crate) leaf: Leaf,
    /// The signal that asks the component's main program to end. `None` is SIGTERM.
    pub(crate) stop_signal: Option<u8>,
    /// Whether the holder has ended, and with it the component.
    pub(crate) is_lost: bool,
    /// The process that sends the component's requests as files. It is in the component's cgroup.
    pub(crate) requests: Option<Pid>,
}

/// The name of the directories and of the cgroup of the component in which a task is verified.
const VERIFICATION: &str = "verification";

/// What the component of a verification takes over from the component in which the agent has worked. Everything else in its root
/// is as the image has it.
#[derive(Debug, Default)]
pub(crate) struct FreshRoot {
    /// The working directory: its path without symbolic links, and a detached mount of it. `None` if it is on a mount of the host
    /// or on a scratch disk.
    pub(crate) workdir: Option<(PathBuf, OwnedFd)>,
}

impl FreshRoot {
    /// Returns the mount of the working directory.
    pub(crate) fn mount(&self) -> Option<BorrowedFd<'_>> {
        self.workdir.as_ref().map(|(_, mount)| mount.as_fd())
    }
}

/// The skills that a component has from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Skills {
    None,
    /// The skills of the rootfs, and the mount points of those that the plan has from the host.
    OfBox,
    /// The [layer](crate::skills) over the skills of the rootfs.
    Layer,
}

/// Starts components.
#[derive(Debug)]
pub(crate) struct Starter<'a> {
    /// The run plan.
    pub(crate) run: &'a RunPlan,
    /// The files of all secrets. Each holder takes them from its copy of this memory.
    pub(crate) secrets: RefCell<Vec<SecretFile>>,
    /// The mounts of the host.
    pub(crate) host: HostMounts,
    /// Whether the components' roots are on the box's disk, and not in memory.
    pub(crate) has_disk: bool,
    /// Whether the skills of the components are those of the [layer](crate::skills).
    pub(crate) has_skill_layer: bool,
}

impl Starter<'_> {
    /// Makes the cgroup of a component and starts its holder. The holder accepts requests at once and serves them after
    /// it has set up the component's root and namespaces.
    ///
    /// # Errors
    /// The step that failed.
    pub(crate) fn start(
        &self,
        name: ComponentName,
        plan: &ComponentPlan,
    ) -> Result<Component, InitError> {
        self.launch(name, plan, None)
    }

    /// Starts the component in which a task is verified: with the settings of the component `name`, whose holder and programs have
    /// ended, and a new root.
    ///
    /// # Errors
    /// The step that failed.
    pub(crate) fn verify(
        &self,
        name: ComponentName,
        plan: &ComponentPlan,
        fresh: &FreshRoot,
    ) -> Result<Component, InitError> {
        self.launch(name, plan, Some(fresh))
    }

    fn launch(
        &self,
        name: ComponentName,
        plan: &ComponentPlan,
        fresh: Option<&FreshRoot>,
    ) -> Result<Component, InitError> {
        let Self { run, secrets, host, has_disk, has_skill_layer } = self;
        let place = if fresh.is_some() { VERIFICATION } else { name.name() };
        let leaf = Leaf::create(place, &plan.limits)?;
        let (link, theirs) = Link::pair().step("make a holder's socket")?;
        let skills = if *has_skill_layer {
            Skills::Layer
        } else if run.skills.is_empty() {
            Skills::None
        } else {
            Skills::OfBox
        };
        let calls = run.calls_from(name) && fresh.is_none();
        let holder = sys::fork(clone_flags(plan.namespaces), None, || {
            let (leaf, link) = (&leaf, &theirs);
            let has_disk = *has_disk && fresh.is_none();
            let args = holder::HolderArgs {
                name,
                place,
                fresh,
                run,
                plan,
                leaf,
                link,
                skills,
                calls,
                secrets,
                host,
                has_disk,
            };
            holder::run(args)
        })
        .step_with(|| format!("start the holder of the {}", name.name()))?;
        let stop_signal = plan.stop_signal;
        Ok(Component { name, holder, link, leaf, stop_signal, is_lost: false, requests: None })
    }
}

impl Component {
    /// Waits until the component's root and namespaces are set up.
    ///
    /// # Errors
    /// The step of the set-up that failed.
    pub(crate) fn wait_until_prepared(&self) -> Result<(), InitError> {
        let step = || format!("set up the {}", self.name.name());
        match self.link.receive::<Event>().step_with(step)? {
            Some((Event::Prepared, _)) => Ok(()),
            Some((Event::Failed(failed), _)) => Err(failed.into()),
            other => Err(format!("its holder ended or said {other:?}")).step_with(step),
        }
    }

    /// Sends a signal to every workload.
    pub(crate) fn signal_all(&self, signal: Signal) {
        self.leaf.signal_all(signal, self.requests);
    }

    /// Returns whether a workload is alive.
    pub(crate) fn is_populated(&self) -> bool {
        self.leaf.is_populated(self.requests)
    }

    /// Returns the component's resource usage and limits.
    pub(crate) fn usage(&self) -> ComponentUsage {
        let usage = self.leaf.usage(self.name);
        // The component's root is an overlay. Its statistics are those of the writable layer.
        let Ok(disk) = self.root_statistics() else { return usage };
        let bytes = |blocks: u64| blocks.saturating_mul(disk.fragment_size());
        let disk_bytes = bytes(disk.blocks().saturating_sub(disk.blocks_free()));
        ComponentUsage { disk_bytes, disk_max_bytes: bytes(disk.blocks()), ..usage }
    }

    /// Returns whether programs can hardly write to the component's root any more: see [`FULL`].
    pub(crate) fn is_full(&self) -> bool {
        self.root_statistics().is_ok_and(|it| {
            let free = it.blocks_available().saturating_mul(it.fragment_size());
            free < FULL || it.files_free() == 0
        })
    }

    fn root_statistics(&self) -> nix::Result<Statvfs> {
        statvfs(format!("/proc/{}/root", self.holder).as_str())
    }

    /// Opens the component's network namespace.
    ///
    /// # Errors
    /// The error of the file.
    pub(crate) fn open_network(&self) -> Result<std::fs::File, InitError> {
        std::fs::File::open(format!("/proc/{}/ns/net", self.holder))
            .step("open the component's network namespace")
    }
}

/// Returns the clone flags for the namespaces of a plan.
fn clone_flags(namespaces: Namespaces) -> CloneFlags {
    let Namespaces { mount, pid, ipc, uts, net } = namespaces;
    [
        (mount, CloneFlags::CLONE_NEWNS),
        (pid, CloneFlags::CLONE_NEWPID),
        (ipc, CloneFlags::CLONE_NEWIPC),
        (uts, CloneFlags::CLONE_NEWUTS),
        (net, CloneFlags::CLONE_NEWNET),
    ]
    .into_iter()
    .filter(|(own, _)| *own)
    .fold(CloneFlags::empty(), |flags, (_, flag)| flags | flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_namespace_of_the_plan_is_asked_for() {
        let defaults = clone_flags(Namespaces::default());
        let expected = CloneFlags::CLONE_NEWNS
            | CloneFlags::CLONE_NEWPID
            | CloneFlags::CLONE_NEWIPC
            | CloneFlags::CLONE_NEWUTS;
        assert_eq!(defaults, expected);
        let all = Namespaces { net: true, ..Namespaces::default() };
        assert_eq!(clone_flags(all), expected | CloneFlags::CLONE_NEWNET);
        let none = Namespaces { mount: false, pid: false, ipc: false, uts: false, net: false };
        assert!(clone_flags(none).is_empty());
    }
}
