//! Checks the resources of a plan: skills, shares, disks, volumes, published ports, secrets, launch variables, the SSH agent, the network,
//! the configuration of the agent and the task.

use std::collections::HashSet;

use crate::rules::{
    MAX_CONNECTIONS, MAX_NAMES, MAX_RATE, MAX_SCRATCH_BYTES, MAX_SKILLS, MAX_VOLUME_NAME,
    MIN_DISK_BYTES, MIN_RATE, MIN_SCRATCH_BYTES, MountKind, NAME_FORM, check_disjoint,
    is_host_port, is_name, is_peer, is_place, is_variable, share_host_fault,
};
use crate::wire::{
    MAX_DEVICES, MAX_SECRETS, MAX_VARIABLES, TOO_MANY_SECRETS, TOO_MANY_VARIABLES, devices,
};

use super::{MAX_SCRATCH, NO_PORT, PlanError};
use crate::plan::{
    Access, NetworkPlan, PeerPlan, PublishPlan, RunPlan, SSH_AGENT_SOCKET, Scope, SecretDelivery,
    SecretPlan, SkillMode, reserved_place,
};

const TWICE: &str = "there are two of this name";
const LONG_VOLUME: &str =
    "it and the name of the box have together more than 62 characters; shorten one of them";
const NOBODY: &str = "it is for a business application, and the box has none";
const MIB: u64 = 1 << 20;

impl RunPlan {
    /// Finds the first resource that the launcher could never provide, or that no Boxfile can declare.
    pub(super) fn resource_fault(&self) -> Option<PlanError> {
        self.wrong_launch_variable()
            .or_else(|| self.wrong_secret())
            .or_else(|| self.wrong_scratch())
            .or_else(|| self.wrong_disk())
            .or_else(|| self.wrong_volume())
            .or_else(|| self.wrong_share())
            .or_else(|| self.check_devices().err())
            .or_else(|| self.overlap_fault())
            .or_else(|| self.wrong_skill())
            .or_else(|| wrong_network(&self.network))
            .or_else(|| self.wrong_service())
            .or_else(|| self.wrong_cap())
            .or_else(|| self.wrong_ssh_agent())
            .or_else(|| self.wrong_publish())
            .or_else(|| self.wrong_agent_config())
            .or_else(|| self.wrong_task())
    }

    /// Finds the first skill with an invalid name, description, version or author.
    fn wrong_skill(&self) -> Option<PlanError> {
        let mut names = HashSet::new();
        let wrong = self.skills.iter().enumerate().find_map(|(at, skill)| {
            let reason = if at >= MAX_SKILLS {
                "a box has at most 1000 skills"
            } else if !is_name(&skill.name) {
                NAME_FORM
            } else if !skill.is_sound() {
                "its description, version or author is too long, or not of one line"
            } else if !names.insert(&skill.name) {
                TWICE
            } else {
                return None;
            };
            Some((skill, reason))
        });
        wrong.map(|(it, reason)| PlanError::Skill { name: format!("{:?}", it.name), reason })
    }

    /// Finds the first scratch disk that cannot be mounted.
    fn wrong_scratch(&self) -> Option<PlanError> {
        let mut names = HashSet::new();
        let wrong = self.scratch.iter().enumerate().find_map(|(at, disk)| {
            let reason = if at >= MAX_SCRATCH {
                "a box has at most 3 scratch disks"
            } else if let Some(reason) = self.wrong_place(&disk.name, &disk.guest, disk.scope) {
                reason
            } else if !names.insert(&disk.name) {
                TWICE
            } else if !(MIN_SCRATCH_BYTES..=MAX_SCRATCH_BYTES).contains(&disk.size_bytes) {
                "its size is not between 1 MiB and 1 TiB"
            } else if !disk.size_bytes.is_multiple_of(MIB) {
                "its size is not a whole number of MiB"
            } else {
                return None;
            };
            Some((disk, reason))
        });
        wrong.map(|(it, reason)| PlanError::Scratch { name: format!("{:?}", it.name), reason })
    }

    /// Finds the fault of the size of the disk.
    fn wrong_disk(&self) -> Option<PlanError> {
        let size = self.disk_bytes?;
        if !(MIN_DISK_BYTES..=MAX_SCRATCH_BYTES).contains(&size) {
            Some(PlanError::Disk("its size is not between 16 MiB and 1 TiB"))
        } else if !size.is_multiple_of(MIB) {
            Some(PlanError::Disk("its size is not a whole number of MiB"))
        } else {
            None
        }
    }

    /// Finds the first volume that cannot be mounted, or that no host could name.
    fn wrong_volume(&self) -> Option<PlanError> {
        let mut names = HashSet::new();
        let wrong = self.volumes.iter().find_map(|volume| {
            let reason = self.wrong_place(&volume.name, &volume.guest, volume.scope);
            let reason = reason.or_else(|| (!names.insert(&volume.name)).then_some(TWICE));
            let is_long = self.host_volume(volume).len() > MAX_VOLUME_NAME;
            let reason = reason.or(is_long.then_some(LONG_VOLUME))?;
            Some((volume, reason))
        });
        wrong.map(|(it, reason)| PlanError::Volume { name: format!("{:?}", it.name), reason })
    }

    /// Finds the first port that cannot be published.
    fn wrong_publish(&self) -> Option<PlanError> {
        let is_after = |at: usize, it: &PublishPlan| {
            let before = at.checked_sub(1).and_then(|at| self.publish.get(at));
            before.is_none_or(|other| (other.component, other.guest) < (it.component, it.guest))
        };
        let same_host = |at: usize, it: &PublishPlan| {
            it.host != 0 && self.publish[..at].iter().any(|other| other.host == it.host)
        };
        self.publish.iter().enumerate().find_map(|(at, it)| {
            let reason = if it.guest == 0 {
                NO_PORT
            } else if self.component(it.component).is_none() {
                NOBODY
            } else if !is_host_port(it.host) {
                "a box publishes no port of the host below 1024; set `host`, or 0 for any free port"
            } else if !is_after(at, it) {
                "the ports are not sorted, or one is there twice"
            } else if same_host(at, it) {
                "another port has the same port of the host"
            } else {
                return None;
            };
            Some(PlanError::Publish { port: it.guest, reason })
        })
    }

    /// Finds the first share that cannot be mounted, or that proposes a directory of the host that it must not.
    fn wrong_share(&self) -> Option<PlanError> {
        let mut names = HashSet::new();
        self.shares.iter().find_map(|share| {
            let reason = self.wrong_place(&share.name, &share.guest, share.scope);
            let name = || format!("{:?}", share.name);
            if let Some(reason) = reason.or_else(|| (!names.insert(&share.name)).then_some(TWICE)) {
                return Some(PlanError::Share { name: name(), reason });
            }
            let host = share.host.as_deref()?;
            let fault = share_host_fault(host)?;
            Some(PlanError::ShareHost { name: name(), host: format!("{host:?}"), fault })
        })
    }

    /// Returns why a share or disk cannot have this name, mount point and scope.
    fn wrong_place(&self, name: &str, guest: &str, scope: Scope) -> Option<&'static str> {
        if !is_name(name) {
            Some(NAME_FORM)
        } else if !is_place(guest) {
            Some("its path is not absolute and normalized")
        } else if reserved_place(guest).is_some() {
            Some("its path is reserved for the guest, as /proc and /a3s/skills are")
        } else {
            self.wrong_scope(scope)
        }
    }

    fn wrong_scope(&self, scope: Scope) -> Option<&'static str> {
        (scope == Scope::Business && self.business.is_none()).then_some(NOBODY)
    }

    /// Checks that a VM has enough devices for the disks, the shares and the network. No image is needed for that.
    ///
    /// # Errors
    /// [`PlanError::Devices`].
    pub fn check_devices(&self) -> Result<(), PlanError> {
        let written = self.shares.iter().filter(|it| it.access == Access::ReadWrite).count();
        let is_read = written < self.shares.len()
            || self.skills.iter().any(|it| it.mode == SkillMode::Mounted);
        let disks =
            self.scratch.len() + self.volumes.len() + usize::from(self.disk_bytes.is_some());
        let devices = devices(disks, written > 0, is_read, self.network.mode);
        if devices > MAX_DEVICES { Err(PlanError::Devices(devices)) } else { Ok(()) }
    }

    /// Finds a share, a disk, a secret's file or the socket of the SSH agent that would hide another resource of the same component.
    fn overlap_fault(&self) -> Option<PlanError> {
        self.components().find_map(|(component, _)| {
            let gets = |scope: Scope| scope.includes(component);
            let shares = self.shares.iter().filter(|it| gets(it.scope));
            let volumes = self.volumes.iter().filter(|it| gets(it.scope));
            let disks = self.scratch.iter().filter(|it| gets(it.scope));
            let secrets = self.secrets.iter().filter(|it| gets(it.scope));
            let secrets = secrets.filter_map(|it| Some((MountKind::Secret, path_of(it)?)));
            let places = shares.map(|it| (MountKind::Mount, it.guest.as_str()));
            let places = places.chain(volumes.map(|it| (MountKind::Mount, it.guest.as_str())));
            let places = places.chain(disks.map(|it| (MountKind::Scratch, it.guest.as_str())));
            let agent = self.ssh_agent.filter(|it| gets(it.scope));
            let agent = agent.map(|_| (MountKind::Socket, SSH_AGENT_SOCKET));
            let places: Vec<_> = places.chain(secrets).chain(agent).collect();
            let (_, place) = places[check_disjoint(&places).err()?];
            Some(PlanError::Hidden { component, place: format!("{place:?}") })
        })
    }

    /// Finds the first secret that cannot be delivered.
    fn wrong_secret(&self) -> Option<PlanError> {
        let wrong = self.secrets.iter().enumerate().find_map(|(at, secret)| {
            let reason = if at >= MAX_SECRETS {
                TOO_MANY_SECRETS
            } else if !is_variable(&secret.name) {
                "its name is not that of a variable"
            } else if self.secrets[..at].iter().any(|other| other.name == secret.name) {
                TWICE
            } else if path_of(secret).is_some_and(|path| !is_place(path)) {
                "its path is not absolute and normalized"
            } else if path_of(secret).is_some_and(|path| reserved_place(path).is_some()) {
                "its path is reserved for the guest, as /proc and /a3s/skills are"
            } else {
                self.wrong_scope(secret.scope)?
            };
            Some((secret, reason))
        });
        wrong.map(|(it, reason)| PlanError::Secret { name: format!("{:?}", it.name), reason })
    }

    /// Finds the fault of the access to the host's SSH agent.
    fn wrong_ssh_agent(&self) -> Option<PlanError> {
        self.wrong_scope(self.ssh_agent?.scope).map(PlanError::SshAgent)
    }

    /// Finds the first launch variable that cannot be set.
    fn wrong_launch_variable(&self) -> Option<PlanError> {
        let is_secret = |component, name: &str| {
            let is_it = |secret: &SecretPlan| {
                secret.delivery == SecretDelivery::Env
                    && secret.scope.includes(component)
                    && secret.name == name
            };
            self.secrets.iter().any(is_it)
        };
        let mut before = None;
        self.launch_variables().enumerate().find_map(|(at, (component, name))| {
            let reason = if at >= MAX_VARIABLES {
                TOO_MANY_VARIABLES
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

    /// Finds the fault of a task that cannot be given to the agent.
    fn wrong_task(&self) -> Option<PlanError> {
        let task = self.task.as_ref()?;
        if let Err(error) = task.clone().checked() {
            return Some(PlanError::Task(error.to_string()));
        }
        self.verification_fault(task.verify.as_ref()?).map(PlanError::Task)
    }
}

/// Returns the path of the file in which a secret is delivered.
fn path_of(secret: &SecretPlan) -> Option<&str> {
    match &secret.delivery {
        SecretDelivery::Env | SecretDelivery::Host => None,
        SecretDelivery::File { path } => Some(path),
    }
}

/// Finds the first rule or limit of a network that no filter supports.
fn wrong_network(network: &NetworkPlan) -> Option<PlanError> {
    let NetworkPlan { mode: _, allow, deny, limits } = network;
    let of = |name: &'static str, peers: &[PeerPlan]| {
        peers.iter().find_map(|peer| {
            let reason = if !is_peer(&peer.peer) {
                "it is neither a domain nor an address"
            } else if peer.port == Some(0) {
                NO_PORT
            } else {
                return None;
            };
            Some((format!("{name} {:?}", peer.peer), reason))
        })
    };
    let [connections, names] = [limits.connections, limits.names_per_minute].map(u64::from);
    let bounds = [
        ("connections", connections, 1..=u64::from(MAX_CONNECTIONS), "it is not from 1 to 512"),
        ("rate", limits.bytes_per_second, MIN_RATE..=MAX_RATE, "it is not from 64KiB to 16GiB"),
        ("names", names, 1..=u64::from(MAX_NAMES), "it is not from 1 to 100000"),
    ];
    let wrong = bounds.into_iter().find(|(_, value, range, _)| !range.contains(value));
    let limit = wrong.map(|(name, value, _, reason)| (format!("limits {name}={value}"), reason));
    let wrong = of("allow", allow).or_else(|| of("deny", deny)).or(limit);
    wrong.map(|(setting, reason)| PlanError::Network { setting, reason })
}

mod agent_config;
mod services;
#[cfg(test)]
mod tests;
mod verify;
