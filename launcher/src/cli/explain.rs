//! The table of errors: the code and the help of each.

use std::borrow::Cow;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use box_contract::ErrorCode::{self, *};
use box_contract::SkillMode;
use box_contract::rules::MIN_VM_MIB;
use boxlaunch::agent::AgentError;
use boxlaunch::boxes::{ENTRY_NAME_FORM, RecordError, SnapshotError, is_entry_name};
use boxlaunch::client::ClientError;
use boxlaunch::host::error::{Allowed, KvmError, PolicyError, Resource};
use boxlaunch::host::{INSTALL_NETWORK, NETWORK_NEEDS};
use boxlaunch::machine::MachineError;
use boxlaunch::mounts::volumes::VolumeError;
use boxlaunch::network::NetworkError;
use boxlaunch::opened::OpenBoxError;
use boxlaunch::streams::StreamError;
use checkout::files::FilesError;
use checkout::skill::SkillError;
use cli_common::Explanation;
use cli_common::store::{BoxArgument, StoreOption};
use host_fs::OsError;
use nix::errno::Errno;
use nix::libc::SIGSYS;
use vmm::VmmError;
use vmm::jail::Unshared;

use super::emulated::Emulation;
use super::environment;
use super::launch_error::LaunchError;
use super::stored::PROGRAM;

/// The help if this user may not open the directory of a share.
const NOT_YOURS: &str = "share a directory that you can read";
/// The help if the root certificates cannot be read.
const ROOTS: &str = "correct SSL_CERT_FILE, or install the package ca-certificates";
/// The help if the box has to be built again.
const BUILD_AGAIN: &str = "build the box again, with `boxbuild build`, and start that one";

/// Returns the code and the help of an error.
pub(crate) fn explain(error: &LaunchError) -> Explanation {
    match error {
        LaunchError::Os(error) => of_os(error),
        LaunchError::Stopped(_) => Interrupted.into(),
        LaunchError::Open(error) => error.into(),
        LaunchError::Kvm(error) => (KvmUnavailable, without_kvm(error, None)).into(),
        LaunchError::Policy(error) => of_policy(error),
        LaunchError::Share(error) => row(Io, share_help(&error.source)),
        LaunchError::Project(error) => (Usage, environment::help(error)).into(),
        LaunchError::Skill(error) => of_skill(error),
        LaunchError::Vmm(error) => of_vmm(error),
        LaunchError::Stream(error) => of_stream(error),
        LaunchError::Opened(error) => of_opened(error),
        LaunchError::Volume(error) => of_volume(error),
        LaunchError::Network(error) => of_network(error),
        LaunchError::Agent(error) => of_agent(error),
        LaunchError::Machine(error) => of_machine(error),
        LaunchError::Record(error) => of_record(error),
        LaunchError::Snapshot(error) => of_snapshot(error),
        LaunchError::Client(error) => of_client(error),
        LaunchError::NoComponent(_) => ComponentNotFound.into(),
        LaunchError::NoSuchPort { .. } => {
            (ComponentNotFound, "`boxlaunch inspect BOX` shows its components").into()
        }
        LaunchError::NoHealthCheck(_) => {
            (NotDeclared, "declare `health` for it in the Boxfile, and build the box again").into()
        }
        LaunchError::NoPort(_) => NotDeclared.into(),
        LaunchError::StillStarting(_) => {
            (NotRunning, "wait until its agent is ready: `boxlaunch ps`").into()
        }
        LaunchError::NoSkill(_) => {
            (SkillNotFound, "`boxlaunch skills NAME` lists those that were").into()
        }
    }
}

/// Returns the explanation with this code and, if it is not `None`, this help.
fn row(code: ErrorCode, help: Option<&'static str>) -> Explanation {
    Explanation { code, help: help.map(Cow::from) }
}

fn of_os(error: &OsError) -> Explanation {
    match error {
        OsError::File { source, .. } => {
            let exists = source.kind() == ErrorKind::AlreadyExists;
            row(if exists { OutputExists } else { Io }, file_help(source))
        }
        OsError::System { .. } => Internal.into(),
    }
}

fn of_policy(error: &PolicyError) -> Explanation {
    match error {
        PolicyError::TooMuch { resource, asked, most, .. } => {
            (HostPolicy, size_help(*resource, *asked, *most)).into()
        }
        PolicyError::TooMuchScratch { asked, .. } => {
            let gib = asked.div_ceil(1 << 30);
            let help = format!(
                "give it a smaller disk with `--disk SIZE`; or, if it may write so much to this host's disk: `--max-scratch \
                 {gib}GiB` (without it, half of the free space)"
            );
            (HostPolicy, help).into()
        }
    }
}

/// Returns the help for a VM that would be too large.
fn size_help(resource: Resource, asked: u32, most: u32) -> String {
    let (option, least) = match resource {
        Resource::Cpus => ("cpus", 1),
        Resource::Memory => ("memory", MIN_VM_MIB),
    };
    let less = if most < least { String::new() } else { format!("write `--{option} {most}`, or ") };
    format!("{less}raise the maximum: `--max-{option} {asked}`")
}

fn of_skill(error: &SkillError) -> Explanation {
    match error {
        SkillError::Files(FilesError::TooLarge(_) | FilesError::TooLargeTogether(_)) => {
            TooLarge.into()
        }
        SkillError::File(error) | SkillError::Files(FilesError::File(error)) => {
            row(Io, limit_help(&error.source))
        }
        _ => {
            let help = "a skill is a directory that has the skill's name and contains a file SKILL.md: docs/skills.md";
            (SkillInvalid, help).into()
        }
    }
}

/// Returns the code and the help of a VMM process that could not be started or confined.
fn of_vmm(error: &VmmError) -> Explanation {
    match error {
        VmmError::Os(error) => of_os(error),
        VmmError::Stopped(_) => Interrupted.into(),
        VmmError::Open(error) => error.into(),
        VmmError::Krun(_) => VmmFailed.into(),
        VmmError::NoJail => StartupTimeout.into(),
        VmmError::Jail(_) => {
            let help = "`boxlaunch doctor` shows how to get them; `--jail best-effort` starts the box without them";
            (JailIncomplete, help).into()
        }
        VmmError::SocketPath { .. } => {
            let help =
                "set XDG_RUNTIME_DIR to a directory with a shorter path, or shorten --agent-socket";
            (Usage, help).into()
        }
        VmmError::SharedOwners => {
            let help = "the files that a box writes belong to one user: share only writable directories of that user";
            (Usage, help).into()
        }
        VmmError::Unshared(error) => (Io, unshared_help(error)).into(),
    }
}

const fn unshared_help(error: &Unshared) -> &'static str {
    match error {
        Unshared::Directory { is_forbidden: true, .. } => NOT_YOURS,
        Unshared::Directory { .. } => "share another directory, or one above it",
        Unshared::Box(_) => "it was removed, or built again, while it started: start it again",
        Unshared::Host(_) => "`boxlaunch doctor` says what this host gives, and what to do",
    }
}

fn of_stream(error: &StreamError) -> Explanation {
    match error {
        StreamError::Os(error) => of_os(error),
        StreamError::Stopped(_) => Interrupted.into(),
        StreamError::OtherProtocol(_) => {
            let help = "build the box again, with `boxbuild build`, or use the boxlaunch of the boxbuild that built it";
            (BoxUnsupported, help).into()
        }
        StreamError::OlderBox(_) => (BoxUnsupported, BUILD_AGAIN).into(),
        StreamError::Protocol(_) => GuestFailed.into(),
        StreamError::Input(_) | StreamError::Output(_) => Io.into(),
    }
}

fn of_opened(error: &OpenBoxError) -> Explanation {
    match error {
        OpenBoxError::Os(error) => of_os(error),
        OpenBoxError::Stopped(_) => Interrupted.into(),
        OpenBoxError::Stream(error) => of_stream(error),
        OpenBoxError::Open(error) => error.into(),
        OpenBoxError::Writable(_) => {
            let help = "the files that boot must belong to you or to root, and only their owner may write to them: build the \
                        box again, or `chmod go-w` and `chown` its blobs";
            (BoxWritable, help).into()
        }
        OpenBoxError::Unsupported(_) => {
            let help = "remove these declarations from the Boxfile and build the box again, or use a newer \
                        boxlaunch";
            (BoxUnsupported, help).into()
        }
    }
}

fn of_volume(error: &VolumeError) -> Explanation {
    match error {
        VolumeError::Os(error) => of_os(error),
        VolumeError::Missing(_) => {
            (VolumeNotFound, "`boxlaunch volume ls` lists all volumes").into()
        }
        VolumeError::Exists(_) => {
            let help = "use it, or remove it with its content: `boxlaunch volume rm`";
            (VolumeExists, help).into()
        }
        VolumeError::NotDeclared { name, guest } | VolumeError::OfAnother { name, guest, .. } => {
            let help = format!(
                "if this box may have its files, give it by name: `--volume {name}:{guest}`"
            );
            (Usage, help).into()
        }
        VolumeError::InUse { .. } => {
            let help = "stop that box first, with `boxlaunch stop`, or use another volume";
            (VolumeInUse, help).into()
        }
        VolumeError::Damaged { .. } => {
            let help = "copy what you need of its directory, $BOXLAUNCH_STATE/volumes/NAME, and remove it: `boxlaunch volume rm`";
            (VolumeDamaged, help).into()
        }
        VolumeError::BadName(_) => (Usage, ENTRY_NAME_FORM).into(),
        VolumeError::BadSize(_) => Usage.into(),
    }
}

fn of_network(error: &NetworkError) -> Explanation {
    match error {
        NetworkError::Os(error) => of_os(error),
        NetworkError::Vmm(error) => of_vmm(error),
        NetworkError::Port { at, source } => (Io, port_help(at.ip(), source)).into(),
        NetworkError::NoComponent(_) => Usage.into(),
        NetworkError::Peer(_) | NetworkError::Service(_) => BoxMalformed.into(),
        NetworkError::Roots(_) | NetworkError::NoRoots => (ServerUntrusted, ROOTS).into(),
        NetworkError::Tls(_) => Internal.into(),
        NetworkError::NoPasst => (NetworkUnavailable, INSTALL_NETWORK).into(),
        NetworkError::Passt(_) => (NetworkUnavailable, NETWORK_NEEDS).into(),
    }
}

/// Returns the help for a host port that cannot be published at an address.
fn port_help(at: IpAddr, source: &io::Error) -> &'static str {
    match source.kind() {
        ErrorKind::AddrInUse => {
            "another program uses it: publish another port, or 0 for any free port, which `boxlaunch port` shows"
        }
        ErrorKind::PermissionDenied => {
            "only root may listen on ports below 1024 of this host: publish a higher one"
        }
        // All addresses of 127.0.0.0/8 are of the loopback interface.
        ErrorKind::AddrNotAvailable if at.is_ipv4() && at.is_loopback() => {
            "the loopback interface of this host is down: run `ip link set lo up` as root"
        }
        _ => "publish at an address of this host, such as 127.0.0.1",
    }
}

/// Returns the code and the help of a failed call to an agent.
fn of_agent(error: &AgentError) -> Explanation {
    let help = match error {
        AgentError::Os(error) => return of_os(error),
        AgentError::Stream(error) => return of_stream(error),
        AgentError::Connect(_) => {
            "`boxlaunch ps` lists the boxes that run, and `boxlaunch port` shows the addresses of their agents"
        }
        AgentError::NotGrpc(_) => {
            "these commands are for agents that serve a3s.code.agent.v1, as docs/agents.md describes it; `boxlaunch \
             port` shows the addresses of others"
        }
        AgentError::Closed { .. } => {
            "it may not listen on its port, speak another protocol, or have failed: `boxlaunch logs` shows what it has written"
        }
        AgentError::Timeout { .. } => {
            "give it more time with --timeout, or look at `boxlaunch logs`"
        }
        AgentError::Status { code: AgentError::UNIMPLEMENTED, .. } => {
            "this agent does not have that part of the interface: docs/agents.md"
        }
        AgentError::Declined { .. } => {
            "`boxlaunch agent session list NAME` lists the agent's sessions"
        }
        AgentError::Status { .. } => "`boxlaunch logs NAME` shows what the agent has written",
        AgentError::Compressed(_) | AgentError::TooLarge { .. } | AgentError::Malformed { .. } => {
            "the agent does not follow the interface: docs/agents.md"
        }
    };
    (AgentCallFailed, help).into()
}

fn of_machine(error: &MachineError) -> Explanation {
    match error {
        MachineError::Os(error) => of_os(error),
        MachineError::Stopped(_) => Interrupted.into(),
        MachineError::Opened(error) => of_opened(error),
        MachineError::Vmm(error) => of_vmm(error),
        MachineError::Network(error) => of_network(error),
        MachineError::Stream(error) => of_stream(error),
        MachineError::Kvm(error) => (KvmUnavailable, without_kvm(error, None)).into(),
        MachineError::TooManyMounts => (Io, "share another directory, or one above it").into(),
        MachineError::Guest { .. } => GuestFailed.into(),
        MachineError::VmmEnded { status, .. } if status.signal() == Some(SIGSYS) => {
            let help = "the jail forbids a system call that the VMM process made: `boxlaunch run --jail trace` names it. Please \
                        report it";
            (VmmFailed, help).into()
        }
        MachineError::VmmEnded { .. } | MachineError::HiddenVmm => VmmFailed.into(),
        MachineError::AgentEnded { lacked_memory: true, .. } => {
            let help = "the kernel killed one of its processes because memory ran out: give `agent` a larger `limits memory` in the Boxfile";
            (AgentFailed, help).into()
        }
        MachineError::AgentEnded { status, was_silent, .. } => {
            (AgentFailed, ended_help(*status, *was_silent)).into()
        }
        MachineError::Unhealthy(_) => {
            (AgentFailed, "`boxlaunch logs NAME` shows what the agent has written").into()
        }
        MachineError::Timeout { .. } => {
            let help = "look at the agent's output and its health check; --console FILE keeps the guest's console, and --startup-timeout gives it more time";
            (StartupTimeout, help).into()
        }
    }
}

/// Returns the help for an agent that ended before it was ready.
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

fn of_record(error: &RecordError) -> Explanation {
    match error {
        RecordError::Os(error) => of_os(error),
        RecordError::NoBox(name) => (NameNotFound, not_started(name)).into(),
        RecordError::StillRunning(_) => {
            (StillRunning, "stop it first, with `boxlaunch stop`, or use `rm --force`").into()
        }
        RecordError::NameTaken(_) => {
            let help = "`boxlaunch start` starts the box that has it again; --replace takes its place and removes it with its disk; or \
                        use another name";
            (NameTaken, help).into()
        }
        RecordError::BeingUpdated(_) => {
            (Busy, "wait until that update has ended: `boxlaunch ps` shows the box").into()
        }
        RecordError::BadName(_) => (Usage, ENTRY_NAME_FORM).into(),
        RecordError::ResultPlace(_) => (Usage, "name a file, whose directory has to exist").into(),
    }
}

fn of_snapshot(error: &SnapshotError) -> Explanation {
    match error {
        SnapshotError::Os(error) => of_os(error),
        SnapshotError::Stopped(_) => Interrupted.into(),
        SnapshotError::Missing(_) => {
            (SnapshotNotFound, "`boxlaunch snapshot ls` lists all snapshots").into()
        }
        SnapshotError::Exists(_) => {
            let help = "choose another name, or remove it: `boxlaunch snapshot rm`";
            (SnapshotExists, help).into()
        }
        SnapshotError::BadName(_) => (Usage, ENTRY_NAME_FORM).into(),
        SnapshotError::Running { name, is_environment } => {
            let down = if *is_environment { "`boxlaunch down` in its project, or " } else { "" };
            (StillRunning, format!("stop it first: {down}`boxlaunch stop {name}`")).into()
        }
        SnapshotError::NoDisk(_) => {
            let help = "a box of `up` or `run --detach` gets one at its start, unless it has `--disk none`; `reset` removes it";
            (Usage, help).into()
        }
        SnapshotError::Damaged { .. } => {
            (SnapshotDamaged, "remove it: `boxlaunch snapshot rm`").into()
        }
        SnapshotError::OtherBox { name, of, .. } => {
            let help =
                format!("start the box of the snapshot: `boxlaunch up --box {of} --from {name}`");
            (SnapshotOfOther, help).into()
        }
    }
}

/// Returns the help for a name that no started box has.
fn not_started(name: &str) -> String {
    let list = "`boxlaunch ps -a` lists the started boxes";
    if !is_entry_name(name) {
        return format!("a started box is addressed by its name: {list}");
    }
    let stored = BoxArgument { reference: name.into(), store: StoreOption::default() };
    match stored.find(&PROGRAM) {
        Ok(_) => format!("start it: `boxlaunch run --detach --name {name} {name}`; {list}"),
        Err(_) => list.to_owned(),
    }
}

fn of_client(error: &ClientError) -> Explanation {
    match error {
        ClientError::Os(error) => of_os(error),
        ClientError::Stopped(_) => Interrupted.into(),
        ClientError::Stream(error) => of_stream(error),
        ClientError::NotRunning(_) => {
            let help = "`boxlaunch inspect` says how it ended, and `boxlaunch start` starts it again; `boxlaunch ps` lists the boxes that run";
            (NotRunning, help).into()
        }
        ClientError::Refused { .. } => Refused.into(),
        ClientError::BoxEnded(_) => {
            (BoxEnded, "`boxlaunch inspect` and `boxlaunch logs` say why").into()
        }
        ClientError::Command(_) => {
            (Usage, "pass long text to the command in a file, or with -i on its standard input")
                .into()
        }
        ClientError::NoAnswer => {
            (GuestFailed, "it may be busy, or stopped; `boxlaunch rm --force` ends it").into()
        }
        ClientError::Copy(_) | ClientError::List(_) | ClientError::Skills { .. } => Io.into(),
        ClientError::FixedSkill { mode, .. } => (SkillFixed, fixed_help(*mode)).into(),
    }
}

const fn fixed_help(mode: SkillMode) -> &'static str {
    match mode {
        SkillMode::Baked => {
            "baked skills cannot be changed: build the box again, or give the skill another name"
        }
        SkillMode::Mounted => "change the files in its directory, or give the skill another name",
    }
}

/// Returns the help for a start that needs KVM. `emulation` is whether the run works without KVM, if that is known.
pub(super) fn without_kvm(error: &KvmError, emulation: Option<&Emulation>) -> String {
    let help = kvm_help(error);
    let help = match (emulation, error) {
        (None, _) => help.into_owned(),
        // Nothing repairs this host's KVM.
        (Some(Emulation::Command(command)), KvmError::Unusable(_) | KvmError::Kernel) => {
            format!("run the box slowly without KVM: `{command}`")
        }
        (Some(Emulation::Command(command)), _) => {
            format!("{help}; or run the box slowly without KVM: `{command}`")
        }
        (Some(Emulation::Excluded(what)), _) => {
            format!("{help}; `--emulated` cannot be used with {what}")
        }
    };
    help + "; `boxlaunch doctor` shows what this host offers"
}

/// Returns the help that makes KVM usable.
pub(super) fn kvm_help(error: &KvmError) -> Cow<'static, str> {
    match error {
        KvmError::Denied { allowed, path, .. } => permission_help(allowed, path),
        KvmError::Missing(_) | KvmError::Open { .. } => {
            "switch hardware virtualization on in the firmware, load the module (`sudo modprobe \
             kvm-intel` or `kvm-amd`), or, in a virtual machine or a container, pass /dev/kvm through"
                .into()
        }
        KvmError::Unusable(_) | KvmError::Kernel => {
            "use a host with hardware virtualization".into()
        }
        KvmError::Failed(_) => {
            "look at the end of `sudo dmesg`; another hypervisor, such as VirtualBox, may be using the \
             processor's virtualization"
                .into()
        }
        KvmError::Unknown(_) => "try again when the host is less busy".into(),
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

/// Returns the help for a directory that cannot be shared.
fn share_help(source: &io::Error) -> Option<&'static str> {
    match source.kind() {
        ErrorKind::NotFound => Some("create it first, or share another"),
        ErrorKind::NotADirectory | ErrorKind::FileTooLarge => {
            Some("share the directory that it is in, or copy it: `boxlaunch cp`")
        }
        ErrorKind::PermissionDenied => Some(NOT_YOURS),
        ErrorKind::Unsupported => Some("name a stream socket: boxes connect to no others"),
        // `host_fs::kernel::no_files`
        ErrorKind::Other => {
            Some("share a directory that has no file system of the kernel, such as /proc, in it")
        }
        _ => limit_help(source),
    }
}

/// Returns the help if this process has as many open files as it may have. Each share keeps the directories of its path open.
fn limit_help(source: &io::Error) -> Option<&'static str> {
    let is_limit = source.raw_os_error() == Some(Errno::EMFILE as i32);
    is_limit.then_some("raise the limit of open files: `ulimit -n 4096`")
}

fn file_help(source: &io::Error) -> Option<&'static str> {
    match source.kind() {
        ErrorKind::AlreadyExists => Some("remove the file, or name another"),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Some(
            "name another path: boxlaunch keeps the records of boxes in $BOXLAUNCH_STATE, else in your state directory",
        ),
        ErrorKind::NotFound => Some("create its directory first, or name another path"),
        _ if source.raw_os_error() == Some(Errno::ENXIO as i32) => {
            Some("it is a pipe that nobody reads: start its reader first")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_loopback_that_is_not_there_means_that_loopback_is_down() {
        let help = |at: &str, kind: ErrorKind| port_help(at.parse().unwrap(), &kind.into());
        for (at, kind, expected) in [
            ("127.0.0.1", ErrorKind::AddrNotAvailable, "ip link set lo up"),
            ("127.0.0.1", ErrorKind::AddrInUse, "another program uses it"),
            ("192.0.2.1", ErrorKind::AddrNotAvailable, "an address of this host"),
            ("::1", ErrorKind::AddrNotAvailable, "an address of this host"),
        ] {
            assert!(help(at, kind).contains(expected), "{at} {kind}");
        }
    }
}
