//! Checks a run plan for faults that would make every start of the box fail.

use thiserror::Error;

use crate::capabilities::Capability;
use crate::rules::{
    LEAST_SCRATCH, MAX_CPU_WEIGHT, MAX_CPUS, MAX_FILES, MAX_GROUPS, MAX_PIDS, MOST_SCRATCH, NO_ID,
    PATH_MAX, is_grpc_service, is_normalized, is_place, is_request_path, is_variable,
    kernel_directory, reserved_place,
};
use crate::signals::can_ask_to_end;
use crate::text::readable;

use crate::wire::{MAX_DEVICES, MAX_SECRETS, MAX_VARIABLES, devices};

use super::{
    Access, CONTROL_PORT, ComponentName, ComponentPlan, Health, RunPlan, SecretDelivery,
    SecretPlan, SkillMode, User,
};

/// The greatest run plan that init reads, in bytes of JSON.
pub const PLAN_MAX: u64 = 1 << 20;

/// The scratch disks that a box can declare: of a machine's devices ([`MAX_DEVICES`]), one is left for what a user adds.
pub const MAX_SCRATCH: usize = 3;

/// The kernel's `__NEW_UTS_LEN`.
const MAX_HOSTNAME: usize = 64;

/// Why a plan cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum PlanError {
    /// The plan is longer than [`PLAN_MAX`]; holds its length in bytes.
    #[error(
        "its plan has {0} bytes as JSON, and init reads at most {PLAN_MAX}; shorten what is \
         longest in it, such as the environment or the task"
    )]
    TooLong(u64),
    /// There is nothing to start.
    #[error("its agent has no program to run; name one with `entrypoint`")]
    NoProgram,
    /// The machine has no processor, or more than the guest's kernel knows.
    #[error("it asks for {0} CPUs; 1 to {MAX_CPUS} are possible")]
    Cpus(u8),
    /// The machine has no memory.
    #[error("it asks for no memory")]
    NoMemory,
    /// The components may take all of the machine's memory, and the kernel would end what it likes.
    #[error(
        "its components may take {} of memory, and the machine has {machine_mib} MiB; it needs more than they",
        readable(*limits)
    )]
    Memory {
        /// The memory that the components may take together, in bytes.
        limits: u64,
        /// The memory of the machine, in MiB.
        machine_mib: u32,
    },
    /// The agent would listen where init does.
    #[error("its agent's port is {CONTROL_PORT}, which init itself uses; choose another")]
    ControlPort,
    /// A secret could be delivered in no box.
    #[error("its secret {name}: {reason}")]
    Secret {
        /// Its name, safe for a terminal.
        name: String,
        /// The fault, and how to fix it.
        reason: &'static str,
    },
    /// A scratch disk could be mounted in no box.
    #[error("its scratch disk {name}: {reason}")]
    Scratch {
        /// Its name, safe for a terminal.
        name: String,
        /// The fault, and how to fix it.
        reason: &'static str,
    },
    /// A share could be mounted in no box.
    #[error("its share {name}: {reason}")]
    Share {
        /// Its name, safe for a terminal.
        name: String,
        /// The fault, and how to fix it.
        reason: &'static str,
    },
    /// The machine has no place for what is mounted; holds how many devices that would be.
    #[error(
        "its scratch disks, shares and network take {0} devices, and a machine has {MAX_DEVICES}: one for each disk, one \
         for each share that is written to, one for all others together, and one for `network \"shared\"`"
    )]
    Devices(usize),
    /// A component asks for what the kernel, or init, always refuses.
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
    /// Refuses a plan that no start could carry out.
    ///
    /// This is about values that the kernel or init always refuses; [`RunPlan::unsupported`] is
    /// about declarations that this version does not know how to keep.
    ///
    /// # Errors
    /// [`PlanError`], for the first such value.
    pub fn check(&self) -> Result<(), PlanError> {
        self.check_values()?;
        // Plans have nothing that JSON cannot express.
        let text = serde_json::to_vec(self).unwrap_or_default();
        match u64::try_from(text.len()).unwrap_or(u64::MAX) {
            length if length > PLAN_MAX => Err(PlanError::TooLong(length)),
            _ => Ok(()),
        }
    }

    /// As [`RunPlan::check`], for who has read the plan's JSON and measured it: does not write it
    /// once more.
    ///
    /// # Errors
    /// As [`RunPlan::check`], but for [`PlanError::TooLong`].
    pub fn check_values(&self) -> Result<(), PlanError> {
        if self.agent.argv.is_empty() {
            return Err(PlanError::NoProgram);
        }
        if self.vm.cpus == 0 || self.vm.cpus > MAX_CPUS {
            return Err(PlanError::Cpus(self.vm.cpus));
        }
        if self.vm.memory_mib == 0 {
            return Err(PlanError::NoMemory);
        }
        let (limits, machine_mib) = (self.memory_limits(), self.vm.memory_mib);
        if limits >= u64::from(machine_mib) << 20 {
            return Err(PlanError::Memory { limits, machine_mib });
        }
        if self.agent.port.is_some_and(|port| u32::from(port) == CONTROL_PORT) {
            return Err(PlanError::ControlPort);
        }
        let wrong = self.components().find_map(|(component, plan)| {
            let (setting, reason) = fault(plan).or_else(|| self.shared_port(component))?;
            Some(PlanError::Component { component, setting, reason })
        });
        let wrong = wrong.or_else(|| self.wrong_launch_variable());
        let wrong = wrong.or_else(|| self.wrong_secret()).or_else(|| self.wrong_scratch());
        let wrong = wrong.or_else(|| self.wrong_share()).or_else(|| self.too_many_devices());
        wrong.map_or(Ok(()), Err)
    }

    /// Finds the first scratch disk that no start could mount.
    fn wrong_scratch(&self) -> Option<PlanError> {
        let wrong = self.scratch.iter().enumerate().find_map(|(at, it)| {
            let reason = if at >= MAX_SCRATCH {
                "a box has at most 3 scratch disks"
            } else if let Some(reason) = wrong_place(&it.guest) {
                reason
            } else if !(LEAST_SCRATCH..=MOST_SCRATCH).contains(&it.size_bytes) {
                "its size is not between 1 MiB and 1 TiB"
            } else {
                return None;
            };
            Some((it, reason))
        });
        wrong.map(|(it, reason)| PlanError::Scratch { name: format!("{:?}", it.name), reason })
    }

    /// Finds the first share that no start could mount.
    fn wrong_share(&self) -> Option<PlanError> {
        let wrong = self.shares.iter().find_map(|it| Some((it, wrong_place(&it.guest)?)));
        wrong.map(|(it, reason)| PlanError::Share { name: format!("{:?}", it.name), reason })
    }

    fn too_many_devices(&self) -> Option<PlanError> {
        let written = self.shares.iter().filter(|it| it.access == Access::ReadWrite).count();
        let is_read = written < self.shares.len()
            || self.skills.iter().any(|it| it.mode == SkillMode::Mounted);
        let devices = devices(self.scratch.len(), written, is_read, self.network.mode);
        (devices > MAX_DEVICES).then_some(PlanError::Devices(devices))
    }

    /// Finds the first secret that no start could deliver.
    fn wrong_secret(&self) -> Option<PlanError> {
        let wrong = self.secrets.iter().enumerate().find_map(|(at, it)| {
            let path = match &it.delivery {
                SecretDelivery::Env => None,
                SecretDelivery::File { path } => Some(path.as_str()),
            };
            let reason = if at >= MAX_SECRETS {
                "a box has at most 256 secrets"
            } else if !is_variable(&it.name) {
                "its name is not that of a variable"
            } else if self.secrets[..at].iter().any(|other| other.name == it.name) {
                "there are two of this name"
            } else if path.is_some_and(|it| !is_place(it)) {
                "its path is not absolute and normalized"
            } else if path.is_some_and(|it| kernel_directory(it).is_some()) {
                "its path is in /proc, /sys or /dev, which are the kernel's"
            } else {
                return None;
            };
            Some((it, reason))
        });
        wrong.map(|(it, reason)| PlanError::Secret { name: format!("{:?}", it.name), reason })
    }

    /// Finds the first variable that nobody could give at launch.
    fn wrong_launch_variable(&self) -> Option<PlanError> {
        let is_secret = |component, name: &str| {
            let is_it = |it: &SecretPlan| {
                it.delivery == SecretDelivery::Env
                    && it.scope.includes(component)
                    && it.name == name
            };
            self.secrets.iter().any(is_it)
        };
        let mut before = None;
        self.launch_variables().enumerate().find_map(|(at, (component, name))| {
            let reason = if at >= MAX_VARIABLES {
                "a box has at most 256 variables that are given at launch"
            } else if !is_variable(name) {
                "its name is not that of a variable"
            } else if before.replace((component, name)).is_some_and(|it| it >= (component, name)) {
                "the variables that are given at launch are not sorted, or one is there twice"
            } else if is_secret(component, name) {
                "it is a secret of the component, too"
            } else {
                return None;
            };
            Some(PlanError::Component { component, setting: format!("env {name:?}"), reason })
        })
    }

    /// Finds a port of the business component that is the agent's: init listens on the vsock port of each.
    fn shared_port(&self, component: ComponentName) -> Option<Fault> {
        let port = self.business.as_ref().filter(|_| component == ComponentName::Business)?.port?;
        let fault = (format!("port={port}"), "the agent has the same; choose another");
        (self.agent.port == Some(port)).then_some(fault)
    }
}

/// Returns why nothing can be mounted at a place.
fn wrong_place(guest: &str) -> Option<&'static str> {
    if !is_place(guest) {
        Some("its place is not absolute and normalized")
    } else if reserved_place(guest).is_some() {
        Some("its place is one of the guest's own, as /proc and /a3s/skills are")
    } else {
        None
    }
}

/// A setting, and what is wrong with it.
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
        .or_else(|| capabilities(plan))
        .or_else(|| plan.health.as_ref().and_then(health))
}

/// The kernel's strings end at a NUL byte.
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

/// Overlayfs reads its options as a list in which these characters separate or escape.
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
    (plan.namespaces.uts && plan.hostname.len() > MAX_HOSTNAME)
        .then(|| (setting(), "it is longer than 64 bytes, and the kernel takes no more"))
}

fn numbers(plan: &ComponentPlan) -> Option<Fault> {
    let (weight, pids, files) = (plan.limits.cpu_weight, plan.limits.pids, plan.rlimits.nofile);
    if !(1..=MAX_CPU_WEIGHT).contains(&weight) {
        return Some((format!("limits cpu-weight={weight}"), "it is not between 1 and 10000"));
    }
    if let Some(signal) = plan.stop_signal.filter(|it| !can_ask_to_end(*it)) {
        return Some((format!("stop-signal={signal}"), "it asks no program to end"));
    }
    if pids == 0 || pids > MAX_PIDS {
        return Some((format!("limits pids={pids}"), "it is not between 1 and 4194304"));
    }
    let files = files.filter(|files| *files > MAX_FILES)?;
    Some((format!("rlimits nofile={files}"), "the kernel takes at most 1048576"))
}

/// Without mounts of its own a component's root is a directory, which root could leave with another `chroot`.
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
        Health::Exec { argv } if argv.is_empty() => {
            Some(("health \"exec\"".to_owned(), "it names no program"))
        }
        Health::Tcp { .. } | Health::A3s { .. } => None,
        Health::Http { .. } | Health::Grpc { .. } | Health::Exec { .. } => None,
    }
}

#[cfg(test)]
mod tests;
