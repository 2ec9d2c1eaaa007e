//! Checks a run plan for faults with which every start of the box would fail.

mod given;

use thiserror::Error;

use crate::capabilities::Capability;
use crate::rules::{
    MAX_BYTES, MAX_CPU_WEIGHT, MAX_CPUS, MAX_FILES, MAX_GROUPS, MAX_PIDS, MAX_VM_MIB,
    MIN_ADDRESS_SPACE, MIN_VM_MIB, NAME_FORM, NO_ID, PATH_MAX, is_grpc_service, is_label, is_name,
    is_normalized, is_request_path, kernel_directory,
};
use crate::signals::can_ask_to_end;
use crate::wire::MAX_DEVICES;
use safe_text::readable;

use super::{
    CONTROL_PORT, ComponentName, ComponentPlan, Health, Rlimits, RunPlan, SystemDirectories, User,
    system_part,
};

/// The maximum size of a run plan that init reads, in bytes of JSON.
pub const MAX_PLAN: u64 = 1 << 20;

/// The maximum number of scratch disks that a box can declare. One of the VM's devices ([`MAX_DEVICES`]) stays free for
/// the user.
pub const MAX_SCRATCH: usize = 3;

/// The reason for a refused port.
const NO_PORT: &str = "a port is from 1 to 65535";

/// The reason for a refused working directory of a component with a read-only system.
const READ_ONLY_WORKDIR: &str = "it is in the component's system, which is read-only; choose another directory, such as \
                                 \"/work\", or mount a share or a volume there";

/// Why a plan cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum PlanError {
    /// The plan is longer than [`MAX_PLAN`]. The value is its length in bytes.
    #[error(
        "its plan has {0} bytes as JSON, and init reads at most {MAX_PLAN}; shorten what is \
         longest in it, such as the environment or the task"
    )]
    TooLong(u64),
    /// The agent has no program.
    #[error("its agent has no program to run; name one with `entrypoint`")]
    NoProgram,
    /// The VM has no CPU, or more CPUs than the guest kernel supports.
    #[error("it asks for {0} CPUs; 1 to {MAX_CPUS} are possible")]
    Cpus(u8),
    /// The VM has less memory than a kernel needs, or more than the limit.
    #[error("it asks for {0} MiB of memory; {MIN_VM_MIB} to {MAX_VM_MIB} are possible")]
    MachineMemory(u32),
    /// The box's name is invalid. The value is the name, safe for a terminal.
    #[error("its name {0}: {NAME_FORM}")]
    Name(String),
    /// The components' limits take all of the VM's memory, so that the kernel would kill arbitrary processes.
    #[error(
        "its components may take {} of memory, but the VM has only {machine_mib} MiB; it needs more than its components",
        readable(*limits)
    )]
    Memory {
        /// The sum of the components' memory limits, in bytes.
        limits: u64,
        /// The memory of the VM, in MiB.
        machine_mib: u32,
    },
    /// The agent's port is init's port.
    #[error("its agent's port is {CONTROL_PORT}, which init itself uses; choose another")]
    ControlPort,
    /// A skill has an invalid name or invalid texts.
    #[error("its skill {name}: {reason}")]
    Skill {
        /// The skill's name, safe for a terminal.
        name: String,
        /// The fault, and how to fix it.
        reason: &'static str,
    },
    /// A rule or limit of the network's filter is invalid.
    #[error("its network {setting}: {reason}")]
    Network {
        /// The setting as the Boxfile spells it, safe for a terminal.
        setting: String,
        /// The fault, and how to fix it.
        reason: &'static str,
    },
    /// The task is invalid. The value is the reason.
    #[error("its task: {0}")]
    Task(String),
    /// A secret cannot be delivered.
    #[error("its secret {name}: {reason}")]
    Secret {
        /// The secret's name, safe for a terminal.
        name: String,
        /// The fault, and how to fix it.
        reason: &'static str,
    },
    /// A scratch disk cannot be mounted.
    #[error("its scratch disk {name}: {reason}")]
    Scratch {
        /// The disk's name, safe for a terminal.
        name: String,
        /// The fault, and how to fix it.
        reason: &'static str,
    },
    /// A volume cannot be mounted.
    #[error("its volume {name}: {reason}")]
    Volume {
        /// The volume's name, safe for a terminal.
        name: String,
        /// The fault, and how to fix it.
        reason: &'static str,
    },
    /// A port cannot be published.
    #[error("its `publish {port}`: {reason}")]
    Publish {
        /// The port of the component.
        port: u16,
        /// The fault, and how to fix it.
        reason: &'static str,
    },
    /// An HTTP API cannot be served.
    #[error("its service {name}: {reason}")]
    Service {
        /// The service's name, safe for a terminal.
        name: String,
        /// The fault, and how to fix it.
        reason: &'static str,
    },
    /// No component could use the capability `http`. The value is the fault, and how to fix it.
    #[error("its `cap \"http\"`: {0}")]
    Cap(&'static str),
    /// No component could use the host's SSH agent. The value is the fault, and how to fix it.
    #[error("its ssh-agent: {0}")]
    SshAgent(&'static str),
    /// The configuration of the agent has a wrong part.
    #[error("its {what}: {reason}")]
    AgentConfig {
        /// The part, as the Boxfile spells it, safe for a terminal.
        what: String,
        /// The fault, and how to fix it.
        reason: &'static str,
    },
    /// The disk for the components' roots has a wrong size.
    #[error("its disk: {0}")]
    Disk(&'static str),
    /// A share cannot be mounted.
    #[error("its share {name}: {reason}")]
    Share {
        /// The share's name, safe for a terminal.
        name: String,
        /// The fault, and how to fix it.
        reason: &'static str,
    },
    /// A share proposes a directory of the host that it must not propose: see
    /// [`share_host_fault`](crate::rules::share_host_fault).
    #[error(
        "its share {name} proposes {host}: {fault}; a share proposes a directory below the one in which the box is launched, \
         or none"
    )]
    ShareHost {
        /// The share's name, safe for a terminal.
        name: String,
        /// The proposed directory, safe for a terminal.
        host: String,
        /// The fault, without a fix.
        fault: &'static str,
    },
    /// One of a component's resources would hide another one, because their paths are equal or nested.
    #[error(
        "{} uses {place} twice, or a path inside another: only a directory may be inside another, or on a scratch disk",
        component.name()
    )]
    Hidden {
        component: ComponentName,
        /// The path of one of the two resources, safe for a terminal.
        place: String,
    },
    /// The mounts need more devices than the VM has. The value is the number of devices that they need.
    #[error(
        "its disks, shares and network take {0} devices, and a VM has {MAX_DEVICES}: one for each disk, one for all \
         writable shares together, one for all other shares together, and one for `network \"shared\"`"
    )]
    Devices(usize),
    /// A component has a setting that the kernel or init always refuses.
    #[error("{} {setting}: {reason}", component.name())]
    Component {
        component: ComponentName,
        /// The setting as the Boxfile spells it, safe for a terminal.
        setting: String,
        /// The fault, and how to fix it.
        reason: &'static str,
    },
}

impl RunPlan {
    /// Refuses a plan that no start could carry out, or that no Boxfile could have produced.
    ///
    /// This covers values that the kernel or init always refuses. It also covers values from which the Boxfile language
    /// protects a host, because a box may have been written by hand. [`RunPlan::unsupported`] covers declarations that
    /// this version does not enforce.
    ///
    /// # Errors
    /// Returns [`PlanError`] for the first such value.
    pub fn check(&self) -> Result<(), PlanError> {
        self.check_values()?;
        // Plans are representable in JSON.
        let text = serde_json::to_vec(self).unwrap_or_default();
        match u64::try_from(text.len()).unwrap_or(u64::MAX) {
            length if length > MAX_PLAN => Err(PlanError::TooLong(length)),
            _ => Ok(()),
        }
    }

    /// Checks a plan like [`RunPlan::check`], except for the length of its JSON. For callers that have already measured
    /// the JSON, so that the plan is not serialized again.
    ///
    /// # Errors
    /// Returns the errors of [`RunPlan::check`] except [`PlanError::TooLong`].
    pub fn check_values(&self) -> Result<(), PlanError> {
        if self.agent.argv.is_empty() {
            return Err(PlanError::NoProgram);
        }
        if self.vm.cpus == 0 || self.vm.cpus > MAX_CPUS {
            return Err(PlanError::Cpus(self.vm.cpus));
        }
        if !is_name(&self.name) {
            return Err(PlanError::Name(format!("{:?}", self.name)));
        }
        if !(MIN_VM_MIB..=MAX_VM_MIB).contains(&self.vm.memory_mib) {
            return Err(PlanError::MachineMemory(self.vm.memory_mib));
        }
        let (limits, machine_mib) = (self.memory_limits(), self.vm.memory_mib);
        if limits >= u64::from(machine_mib) << 20 {
            return Err(PlanError::Memory { limits, machine_mib });
        }
        if self.agent.port.is_some_and(|port| u32::from(port) == CONTROL_PORT) {
            return Err(PlanError::ControlPort);
        }
        let wrong = self.components().find_map(|(component, plan)| {
            let (setting, reason) = fault(plan)
                .or_else(|| self.shared_port(component))
                .or_else(|| self.unwritable_workdir(component))?;
            Some(PlanError::Component { component, setting, reason })
        });
        wrong.or_else(|| self.resource_fault()).map_or(Ok(()), Err)
    }

    /// Finds a port of the business component that equals the agent's port, because init listens on a vsock port with
    /// the number of each.
    fn shared_port(&self, component: ComponentName) -> Option<Fault> {
        let port = self.business.as_ref().filter(|_| component == ComponentName::Business)?.port?;
        let fault = (format!("port={port}"), "the agent has the same; choose another");
        (self.agent.port == Some(port)).then_some(fault)
    }

    /// Finds a working directory in which no program could write, because it is in a read-only system.
    fn unwritable_workdir(&self, component: ComponentName) -> Option<Fault> {
        let plan = self.component(component)?;
        (plan.system == SystemDirectories::ReadOnly).then_some(())?;
        system_part(&plan.workdir, self.mount_points(component))?;
        Some((format!("workdir {:?}", plan.workdir), READ_ONLY_WORKDIR))
    }
}

/// A setting, as the Boxfile spells it, and its fault.
type Fault = (String, &'static str);

/// Finds the first setting of a component that no start could carry out.
fn fault(plan: &ComponentPlan) -> Option<Fault> {
    let unnamed = ("entrypoint".to_owned(), "it names no program");
    let is_unnamed = plan.argv.first().map_or(plan.autostart, String::is_empty);
    strings(plan)
        .or_else(|| is_unnamed.then_some(unnamed))
        .or_else(|| root(&plan.root))
        .or_else(|| workdir(&plan.workdir))
        .or_else(|| user(&plan.user))
        .or_else(|| hostname(plan))
        .or_else(|| numbers(plan))
        .or_else(|| rlimits(&plan.rlimits))
        .or_else(|| port(plan))
        .or_else(|| capabilities(plan))
        .or_else(|| plan.health.as_ref().and_then(health))
}

/// Refuses NUL bytes, because the kernel's strings end at a NUL byte.
fn strings(plan: &ComponentPlan) -> Option<Fault> {
    let check = match &plan.health {
        Some(Health::Exec { argv }) => argv.as_slice(),
        Some(
            Health::Tcp { .. } | Health::Http { .. } | Health::Grpc { .. } | Health::A3s { .. },
        )
        | None => &[],
    };
    let settings = [
        ("entrypoint and args", plan.argv.as_slice()),
        ("env", &plan.env),
        ("workdir", std::slice::from_ref(&plan.workdir)),
        ("root", std::slice::from_ref(&plan.root)),
        ("namespaces hostname", std::slice::from_ref(&plan.hostname)),
        ("health \"exec\"", check),
    ];
    let broken = |strings: &[String]| strings.iter().any(|string| string.contains('\0'));
    let (setting, _) = settings.into_iter().find(|(_, strings)| broken(strings))?;
    Some((setting.to_owned(), "it has a NUL byte, and the kernel takes none; remove it"))
}

/// Refuses the characters that separate or escape entries in the mount options of
/// [overlayfs](https://docs.kernel.org/filesystems/overlayfs.html).
fn root(path: &str) -> Option<Fault> {
    if path.len() > PATH_MAX {
        return Some(("root".to_owned(), "it has more than 4096 bytes"));
    }
    let reason = if !path.starts_with('/') || path.contains([',', ':', '\\']) {
        "it is not an absolute path without `,`, `:` and `\\`"
    } else if path != "/" && !is_normalized(path) {
        "it is not normalized: it has an empty name, `.` or `..`"
    } else {
        return None;
    };
    Some((format!("root {path:?}"), reason))
}

fn workdir(path: &str) -> Option<Fault> {
    if path.len() > PATH_MAX {
        return Some(("workdir".to_owned(), "it has more than 4096 bytes"));
    }
    let reason = if !path.starts_with('/') {
        "it is not an absolute path; begin it with `/`"
    } else if kernel_directory(path).is_some() {
        "it is in /proc, /sys or /dev, which are the kernel's; choose another directory"
    } else {
        return None;
    };
    Some((format!("workdir {path:?}"), reason))
}

fn user(user: &User) -> Option<Fault> {
    let mut ids = [user.uid, user.gid].into_iter().chain(user.groups.iter().copied());
    let reason = if ids.any(|id| id == NO_ID) {
        "no user and no group has the number 4294967295"
    } else if user.groups.len() > MAX_GROUPS {
        "it has more than 65536 groups, and the kernel takes no more"
    } else {
        return None;
    };
    Some(("user".to_owned(), reason))
}

fn hostname(plan: &ComponentPlan) -> Option<Fault> {
    let setting = || format!("namespaces hostname={:?}", plan.hostname);
    let reason = "a host name has letters, digits and inner hyphens, at most 63";
    (!is_label(&plan.hostname)).then(|| (setting(), reason))
}

fn numbers(plan: &ComponentPlan) -> Option<Fault> {
    let (weight, pids) = (plan.limits.cpu_weight, plan.limits.pids);
    if !(1..=MAX_CPU_WEIGHT).contains(&weight) {
        return Some((format!("limits cpu-weight={weight}"), "it is not between 1 and 10000"));
    }
    if let Some(signal) = plan.stop_signal.filter(|it| !can_ask_to_end(*it)) {
        return Some((format!("stop-signal={signal}"), "it asks no program to end"));
    }
    (pids == 0 || pids > MAX_PIDS)
        .then(|| (format!("limits pids={pids}"), "it is not between 1 and 4194304"))
}

/// Finds the first resource limit that the kernel refuses, or under which no program runs.
fn rlimits(limits: &Rlimits) -> Option<Fault> {
    let Rlimits { nofile, nproc, as_bytes, cpu_seconds, core_bytes, fsize_bytes } = *limits;
    let bytes = "it is more than 1 PiB, or no program could start";
    let found = [
        ("nofile", nofile, 1..=MAX_FILES, "it is not between 1 and 1048576"),
        ("nproc", nproc, 1..=MAX_PIDS, "it is not between 1 and 4194304"),
        ("address-space", as_bytes, MIN_ADDRESS_SPACE..=MAX_BYTES, bytes),
        ("cpu", cpu_seconds, 1..=u64::MAX, "it is zero"),
        ("core", core_bytes, 0..=MAX_BYTES, bytes),
        ("file-size", fsize_bytes, 0..=MAX_BYTES, bytes),
    ];
    found.into_iter().find_map(|(name, limit, range, reason)| {
        let limit = limit.filter(|it| !range.contains(it))?;
        Some((format!("rlimits {name}={limit}"), reason))
    })
}

fn port(plan: &ComponentPlan) -> Option<Fault> {
    let of_check = match plan.health {
        Some(
            Health::Tcp { port }
            | Health::Http { port, .. }
            | Health::Grpc { port, .. }
            | Health::A3s { port },
        ) => Some(port),
        Some(Health::Exec { .. }) | None => None,
    };
    let ports = [("port", plan.port), ("health port", of_check)];
    let (setting, _) = ports.into_iter().find(|(_, port)| *port == Some(0))?;
    Some((format!("{setting}=0"), NO_PORT))
}

/// Refuses `SYS_CHROOT` for a component without a mount namespace: its root is only a directory, which the root user could leave
/// with another `chroot`.
fn capabilities(plan: &ComponentPlan) -> Option<Fault> {
    let chroot = Capability::find("SYS_CHROOT").filter(|it| plan.capabilities.contains(it))?;
    let setting = format!("capabilities add {:?}", chroot.name);
    (!plan.namespaces.mount)
        .then_some((setting, "it needs a component with mounts of its own (`namespaces mount`)"))
}

fn health(check: &Health) -> Option<Fault> {
    match check {
        Health::Http { path, .. } if !is_request_path(path) => Some((
            format!("health \"http\" path={path:?}"),
            "it is not an absolute path of visible ASCII characters; write others as `%` and \
             two hexadecimal digits per byte",
        )),
        Health::Grpc { service, .. } if !service.is_empty() && !is_grpc_service(service) => Some((
            format!("health \"grpc\" service={service:?}"),
            "it is not the name of a service; use at most 100 letters, digits, `_` and `.`",
        )),
        Health::Exec { argv } if argv.first().is_none_or(String::is_empty) => {
            Some(("health \"exec\"".to_owned(), "it names no program"))
        }
        Health::Tcp { .. } | Health::A3s { .. } => None,
        Health::Http { .. } | Health::Grpc { .. } | Health::Exec { .. } => None,
    }
}

#[cfg(test)]
mod tests;
