//! The table of errors: the code of each, and what to do about it.

use std::borrow::Cow;
use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use box_contract::ErrorCode::{self, *};
use box_contract::SkillMode;
use boxlaunch::LaunchError;
use boxlaunch::agent::AgentError;
use boxlaunch::boxes::NAME_FORM;
use boxlaunch::host::kvm_error::{Allowed, KvmError};
use boxlaunch::host::{INSTALL_NETWORK, NETWORK_NEEDS};
use boxlaunch::mounts::shares::SHARE;
use boxlaunch::mounts::volumes::VolumeError;
use checkout::files::FilesError;
use checkout::skill::SkillError;
use cli_common::Explanation;
use host_fs::OsError;
use nix::errno::Errno;
use nix::libc::SIGSYS;
use vmm::VmmError;
use vmm::jail::Unshared;

/// The advice where this user may not look at a directory that is to be shared.
const NOT_YOURS: &str = "share what you yourself may look at";

/// Returns the row of an error in the table.
pub(crate) fn explain(error: &LaunchError) -> Explanation {
    if let LaunchError::Open(error) | LaunchError::Vmm(VmmError::Open(error)) = error {
        return error.into();
    }
    match help(error) {
        Some(help) => (code(error), help).into(),
        None => code(error).into(),
    }
}

fn code(error: &LaunchError) -> ErrorCode {
    match error {
        LaunchError::Open(error) => Explanation::from(error).code,
        LaunchError::Kvm(_) => KvmUnavailable,
        LaunchError::TooMuch(_) | LaunchError::TooMuchScratch { .. } => HostPolicy,
        LaunchError::Writable(_) => BoxWritable,
        LaunchError::OtherProtocol(_) | LaunchError::OlderBox(_) | LaunchError::Unsupported(_) => {
            BoxUnsupported
        }
        LaunchError::NoComponent(_) | LaunchError::NoSuchPort { .. } => ComponentNotFound,
        LaunchError::NoBox(_) => NameNotFound,
        LaunchError::ResultPlace(_) => Usage,
        LaunchError::NotRunning(_) | LaunchError::StillStarting(_) => NotRunning,
        LaunchError::NoHealthCheck(_) | LaunchError::NoPort(_) => NotDeclared,
        LaunchError::StillRunning(_) => StillRunning,
        LaunchError::NameTaken(_) => NameTaken,
        LaunchError::FixedSkill { .. } => SkillFixed,
        LaunchError::NoSkill(_) => SkillNotFound,
        LaunchError::Skill(error) => skill_code(error),
        LaunchError::BoxEnded(_) => BoxEnded,
        LaunchError::Volume(error) => volume_code(error),
        LaunchError::Refused { .. } => Refused,
        LaunchError::Os(error) => os_code(error),
        LaunchError::Peer(_) => BoxMalformed,
        LaunchError::Port { .. }
        | LaunchError::Input(_)
        | LaunchError::Output(_)
        | LaunchError::Copy(_)
        | LaunchError::TooManyMounts
        | LaunchError::Skills { .. } => Io,
        LaunchError::NoPasst | LaunchError::Passt(_) => NetworkUnavailable,
        LaunchError::BadName(_) => Usage,
        LaunchError::VmmEnded { .. } | LaunchError::HiddenVmm => VmmFailed,
        LaunchError::Vmm(error) => vmm_code(error),
        LaunchError::Guest { .. } | LaunchError::Protocol(_) | LaunchError::NoAnswer => GuestFailed,
        LaunchError::AgentEnded { .. } => AgentFailed,
        LaunchError::Agent(_) => AgentCallFailed,
        LaunchError::Timeout { .. } => StartupTimeout,
        LaunchError::Stopped(_) => Interrupted,
    }
}

fn vmm_code(error: &VmmError) -> ErrorCode {
    match error {
        VmmError::Os(error) => os_code(error),
        VmmError::Krun(_) => VmmFailed,
        VmmError::Open(error) => Explanation::from(error).code,
        VmmError::Jail(_) => JailIncomplete,
        VmmError::NoJail => StartupTimeout,
        VmmError::SocketPath { .. } | VmmError::SharedOwners => Usage,
        VmmError::Unshared(_) => Io,
        VmmError::Stopped(_) => Interrupted,
    }
}

fn os_code(error: &OsError) -> ErrorCode {
    match error {
        OsError::File { source, .. } if source.kind() == ErrorKind::AlreadyExists => OutputExists,
        OsError::File { .. } => Io,
        OsError::System { .. } => Internal,
    }
}

const fn volume_code(error: &VolumeError) -> ErrorCode {
    match error {
        VolumeError::Missing(_) => VolumeNotFound,
        VolumeError::Exists(_) => VolumeExists,
        VolumeError::InUse { .. } => VolumeInUse,
        VolumeError::Damaged { .. } => VolumeDamaged,
        VolumeError::BadName(_) | VolumeError::BadSize(_) => Usage,
    }
}

fn skill_code(error: &SkillError) -> ErrorCode {
    match error {
        SkillError::Files(FilesError::TooLarge(_) | FilesError::TooLargeTogether(_)) => TooLarge,
        SkillError::File(_) | SkillError::Files(FilesError::File(_)) => Io,
        _ => SkillInvalid,
    }
}

fn help(error: &LaunchError) -> Option<Cow<'static, str>> {
    if let LaunchError::Kvm(error) = error {
        return Some(without_kvm(error, None).into());
    }
    if let LaunchError::TooMuchScratch { asked, .. } = error {
        let gib = asked.div_ceil(1 << 30);
        return Some(
            format!("if it may write so much to this host's disk: `--max-scratch {gib}GiB`").into(),
        );
    }
    constant_help(error).map(Cow::from)
}

fn constant_help(error: &LaunchError) -> Option<&'static str> {
    Some(match error {
        LaunchError::Writable(_) => {
            "what boots must belong to you or to root, and only its owner may write to it: build the \
             box again, or `chmod go-w` and `chown` its blobs"
        }
        LaunchError::OtherProtocol(_) => {
            "build the box again, with `boxbuild build`, or use the boxlaunch of the boxbuild that built it"
        }
        LaunchError::TooMuch(_) => {
            "start it with less: `--cpus N`, `--memory MIB`; or allow more: `--max-cpus N`, `--max-memory MIB`"
        }
        LaunchError::Port { source, .. } if source.kind() == ErrorKind::AddrInUse => {
            "another program has it: publish at another port, or at 0, for a free one that `boxlaunch port` shows"
        }
        LaunchError::Port { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
            "ports below 1024 are root's on this host: publish at one above"
        }
        LaunchError::Port { .. } => "publish at an address of this host, such as 127.0.0.1",
        LaunchError::NoSuchPort { .. } => "`boxlaunch inspect BOX` shows its components",
        LaunchError::TooManyMounts => "share another directory, or one above it",
        LaunchError::Vmm(error) => return vmm_help(error),
        LaunchError::VmmEnded { status, .. } if status.signal() == Some(SIGSYS) => {
            "the jail forbids a system call that the machine made: `boxlaunch run --jail trace` names it. Please \
             report it"
        }
        LaunchError::OlderBox(_) => {
            "build the box again, with `boxbuild build`, and start that one"
        }
        LaunchError::Unsupported(_) => {
            "remove these declarations from the Boxfile and build the box again, or use a newer \
             boxlaunch"
        }
        LaunchError::Os(error) => return os_help(error),
        LaunchError::AgentEnded { lacked_memory: true, .. } => {
            "the kernel has ended a process of it for lack of memory: give `agent` a larger `limits memory` in the Boxfile"
        }
        LaunchError::AgentEnded { status, was_silent, .. } => ended_help(*status, *was_silent),
        LaunchError::Volume(error) => return volume_help(error),
        LaunchError::Agent(error) => agent_help(error),
        LaunchError::NoPasst => INSTALL_NETWORK,
        LaunchError::Passt(_) => NETWORK_NEEDS,
        LaunchError::Timeout { .. } => {
            "look at the agent's output and its health check; --console FILE keeps all that the \
             machine said, and --startup-timeout gives it more time"
        }
        error => return named_help(error).or_else(|| skill_help(error)),
    })
}

/// Returns what to do about a VMM process that could not be started or confined.
fn vmm_help(error: &VmmError) -> Option<&'static str> {
    Some(match error {
        VmmError::Os(error) => return os_help(error),
        VmmError::Unshared(Unshared::Directory { is_forbidden: true, .. }) => NOT_YOURS,
        VmmError::Unshared(Unshared::Directory { .. }) => {
            "share another directory, or one above it"
        }
        VmmError::Unshared(Unshared::Box(_)) => {
            "it was removed, or built again, while it started: start it again"
        }
        VmmError::Unshared(Unshared::Host(_)) => {
            "`boxlaunch doctor` says what this host gives, and what to do"
        }
        VmmError::SharedOwners => {
            "what a box writes belongs to one user: share only that user's directories to be written to"
        }
        VmmError::Jail(_) => {
            "`boxlaunch doctor` says what gives them; `--jail best-effort` starts the box without them"
        }
        VmmError::SocketPath { .. } => {
            "set XDG_RUNTIME_DIR to a directory with a shorter path, or shorten --agent-socket"
        }
        VmmError::Open(_) | VmmError::Krun(_) | VmmError::NoJail | VmmError::Stopped(_) => {
            return None;
        }
    })
}

/// Returns what to do about an agent that has ended before it was ready.
const fn ended_help(status: u8, was_silent: bool) -> &'static str {
    match (status, was_silent) {
        (0, _) => {
            "give it a program that keeps running; one that ends when it is done, as with a task, needs \
             `health \"none\"` in the Boxfile"
        }
        (_, false) => "look at the agent's output above, and at its program in the Boxfile",
        (_, true) => {
            "it has written nothing: look at its program and arguments in the Boxfile, and give it \
             one that keeps running"
        }
    }
}

/// Returns what to do about an error of a command that names a box.
const fn named_help(error: &LaunchError) -> Option<&'static str> {
    Some(match error {
        LaunchError::ResultPlace(_) => "name a file, whose directory has to exist",
        LaunchError::NoBox(_) => {
            "`boxlaunch ps -a` lists the boxes that were started; `boxlaunch run NAME` starts one of `boxlaunch images`"
        }
        LaunchError::NotRunning(_) => {
            "`boxlaunch ps` lists the boxes that run; `boxlaunch inspect` says how this one ended"
        }
        LaunchError::StillStarting(_) => "wait until its agent is ready: `boxlaunch ps`",
        LaunchError::NoHealthCheck(_) => {
            "declare `health` for it in the Boxfile, and build the box again"
        }
        LaunchError::NoAnswer => "it may be busy, or stopped; `boxlaunch rm --force` ends it",
        LaunchError::StillRunning(_) => "stop it first, with `boxlaunch stop`, or use `rm --force`",
        LaunchError::NameTaken(_) => {
            "use another name, or remove the box that has it: `boxlaunch rm`, with --force if it runs"
        }
        LaunchError::BadName(_) => NAME_FORM,
        LaunchError::BoxEnded(_) => "`boxlaunch inspect` and `boxlaunch logs` say why",
        _ => return None,
    })
}

fn skill_help(error: &LaunchError) -> Option<&'static str> {
    Some(match error {
        LaunchError::FixedSkill { mode: SkillMode::Baked, .. } => {
            "baked skills cannot be changed: build the box again, or give the skill another name"
        }
        LaunchError::FixedSkill { mode: SkillMode::Mounted, .. } => {
            "change the files in its directory, or give the skill another name"
        }
        LaunchError::NoSkill(_) => "`boxlaunch skills NAME` lists those that were",
        LaunchError::Skill(error) if skill_code(error) == SkillInvalid => {
            "a skill is a directory with a file SKILL.md in it, which has its name: docs/skills.md"
        }
        _ => return None,
    })
}

/// Returns what to do about an agent that could not be asked.
const fn agent_help(error: &AgentError) -> &'static str {
    match error {
        AgentError::Connect(_) => {
            "`boxlaunch ps` lists the boxes that run, and `boxlaunch port` shows where their agents are"
        }
        AgentError::NotGrpc(_) => {
            "these commands are for agents that serve a3s.code.agent.v1, as docs/agents.md describes it; `boxlaunch port` \
             shows where others are"
        }
        AgentError::Closed { .. } => {
            "it may not listen at its port, speak something else, or have failed: `boxlaunch logs` shows what it has written"
        }
        AgentError::Timeout { .. } => {
            "give it more time with --timeout, or look at `boxlaunch logs`"
        }
        AgentError::Status { code: AgentError::UNIMPLEMENTED, .. } => {
            "this agent does not have that part of the interface: docs/agents.md"
        }
        AgentError::Status { .. } => "`boxlaunch logs NAME` shows what the agent has written",
        AgentError::Compressed(_) | AgentError::TooLarge { .. } | AgentError::Malformed { .. } => {
            "the agent does not keep to the interface: docs/agents.md"
        }
    }
}

const fn volume_help(error: &VolumeError) -> Option<&'static str> {
    Some(match error {
        VolumeError::Missing(_) => "`boxlaunch volume ls` lists those that there are",
        VolumeError::Exists(_) => {
            "use it, or remove it with all that is on it: `boxlaunch volume rm`"
        }
        VolumeError::InUse { .. } => {
            "stop that box first, with `boxlaunch stop`, or use another volume"
        }
        VolumeError::Damaged { .. } => {
            "copy what you need of its directory, $BOXLAUNCH_STATE/volumes/NAME, and remove it: `boxlaunch volume rm`"
        }
        VolumeError::BadName(_) => NAME_FORM,
        VolumeError::BadSize(_) => return None,
    })
}

/// Returns what to do about a KVM that cannot be used, for somebody who wants to start a box; `instead` is the command that
/// does so without KVM, if there is one.
pub(super) fn without_kvm(error: &KvmError, instead: Option<&str>) -> String {
    let instead = instead.map_or_else(String::new, |command| {
        format!("; or run the box slowly without KVM: `{command}`")
    });
    format!("{}{instead}; `boxlaunch doctor` shows what this host offers", kvm_help(error))
}

/// Returns what makes a KVM usable.
pub(super) fn kvm_help(error: &KvmError) -> Cow<'static, str> {
    match error {
        KvmError::Denied { allowed, path, .. } => permission_help(allowed, path),
        KvmError::Missing(_) | KvmError::Open { .. } => {
            "switch hardware virtualization on in the firmware, load the module (`sudo modprobe \
             kvm-intel` or `kvm-amd`), or, in a virtual machine or a container, pass /dev/kvm through"
                .into()
        }
        KvmError::Unusable(_) | KvmError::Kernel => {
            "use a machine whose KVM is backed by the processor's virtualization".into()
        }
        KvmError::Failed(_) => {
            "look at the end of `sudo dmesg`; another hypervisor, such as VirtualBox, may be using the \
             processor's virtualization"
                .into()
        }
        KvmError::Unknown(_) => "try again when the machine is less busy".into(),
    }
}

fn permission_help(allowed: &Allowed, path: &Path) -> Cow<'static, str> {
    let path = path.display();
    match allowed {
        Allowed::Group(group) => format!(
            "it belongs to the group {group}: add your user (`sudo usermod -aG {group} $USER`), and \
             log in again"
        ),
        Allowed::Owner(owner) => format!(
            "only {owner} may open it: `sudo chown $USER {path}`, which lasts until the next boot"
        ),
        Allowed::Everybody => format!(
            "its permissions are not the reason; in a container, pass it through, as with `docker \
             run --device {path}`"
        ),
    }
    .into()
}

fn os_help(error: &OsError) -> Option<&'static str> {
    match error {
        OsError::File { action: SHARE, source, .. } => share_help(source),
        OsError::File { source, .. } => file_help(source),
        OsError::System { .. } => None,
    }
}

/// Returns what to do about a directory that cannot be shared.
fn share_help(source: &io::Error) -> Option<&'static str> {
    match source.kind() {
        ErrorKind::NotFound => Some("make it first, or share another"),
        ErrorKind::NotADirectory => {
            Some("share the directory that it is in, or copy it: `boxlaunch cp`")
        }
        ErrorKind::PermissionDenied => Some(NOT_YOURS),
        _ => None,
    }
}

fn file_help(source: &io::Error) -> Option<&'static str> {
    match source.kind() {
        ErrorKind::AlreadyExists => Some("remove the file, or name another"),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Some(
            "name another place; what boxlaunch knows of boxes is in $BOXLAUNCH_STATE, else in your \
             state directory",
        ),
        ErrorKind::NotFound => Some("make its directory first, or name another place"),
        _ if source.raw_os_error() == Some(Errno::ENXIO as i32) => {
            Some("it is a pipe that nobody reads: start its reader first")
        }
        _ => None,
    }
}
