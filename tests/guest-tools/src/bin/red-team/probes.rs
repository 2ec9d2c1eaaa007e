//! The attempts, each with the layer that must refuse it.

use std::fmt;

use box_init::sys::zeros::{Call, call_with_zeros};
use nix::errno::Errno;

use crate::attempts as to;

/// The layer that must make an attempt fail.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Layer {
    /// The system call filter.
    Filter,
    /// A capability that the component lacks.
    Capability,
    /// The component's namespaces and devices: the target does not exist there.
    Namespace,
    /// A mount that is read-only or nodev.
    Mount,
    /// The user ID and capabilities of init's process in the component.
    Init,
    /// The VM, which has no network and no such device.
    Machine,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Filter => "filter",
            Self::Capability => "capability",
            Self::Namespace => "namespace",
            Self::Mount => "mount",
            Self::Init => "init",
            Self::Machine => "machine",
        })
    }
}

/// An attempt.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// A function that makes the attempt.
    By(fn() -> Result<(), Errno>),
    /// A system call whose arguments are all zero.
    Zeros(Call),
    /// Reads the file at this path.
    Read(&'static str),
    /// Writes a text (second) to the file at a path (first).
    Write(&'static str, &'static str),
}

/// An attempt, and the error with which it must fail.
#[derive(Debug)]
pub(crate) struct Probe {
    name: &'static str,
    layer: Layer,
    error: Errno,
    attempt: Attempt,
}

impl Probe {
    /// Makes the attempt, and returns its line for the output.
    pub(crate) fn line(&self) -> String {
        let result = match self.attempt {
            Attempt::By(function) => function(),
            Attempt::Zeros(call) => call_with_zeros(call),
            Attempt::Read(path) => to::read(path),
            Attempt::Write(path, text) => to::write(path, text),
        };
        let outcome = match result {
            Err(error) if error == self.error => format!("refused\t{error:?}"),
            Err(error) => format!("{error:?} instead of {:?}\t", self.error),
            Ok(()) => "succeeded\t".to_owned(),
        };
        format!("{}\t{}\t{outcome}", self.name, self.layer)
    }
}

const fn probe(name: &'static str, layer: Layer, error: Errno, attempt: Attempt) -> Probe {
    Probe { name, layer, error, attempt }
}

const fn filtered(name: &'static str, attempt: Attempt) -> Probe {
    probe(name, Layer::Filter, Errno::EPERM, attempt)
}

/// Creates a probe for a system call that the filter refuses.
const fn zeros(name: &'static str, call: Call) -> Probe {
    filtered(name, Attempt::Zeros(call))
}

const fn uncapable(name: &'static str, attempt: fn() -> Result<(), Errno>) -> Probe {
    probe(name, Layer::Capability, Errno::EPERM, Attempt::By(attempt))
}

/// Creates a probe for a file that must not exist in the component.
const fn missing(name: &'static str, layer: Layer, path: &'static str) -> Probe {
    probe(name, layer, Errno::ENOENT, Attempt::Read(path))
}

use Attempt::{By, Read, Write, Zeros};
use Errno::{EACCES, EAFNOSUPPORT, ECONNREFUSED, ENETUNREACH, ENOENT, ENOSYS, EPERM, EROFS};
use Layer::{Capability, Filter, Init, Machine, Mount, Namespace};

/// The limit of user namespaces.
const USER_NAMESPACES: &str = "/proc/sys/user/max_user_namespaces";

/// All attempts.
pub(crate) const ALL: &[Probe] = &[
    filtered("mount a file system", By(to::mount)),
    filtered("make the root writable", By(to::remount)),
    filtered("unmount /proc", By(to::unmount)),
    filtered("pivot_root", By(to::pivot)),
    zeros("open a tree of mounts", Call::OpenTree),
    zeros("move a mount", Call::MoveMount),
    zeros("open a file system", Call::Fsopen),
    zeros("change a mount", Call::MountSetattr),
    filtered("make a user namespace", By(to::make_user_namespace)),
    filtered("make a mount namespace", By(to::make_mount_namespace)),
    filtered("enter a namespace", By(to::enter_namespace)),
    probe("clone3", Filter, ENOSYS, Zeros(Call::Clone3)),
    zeros("keyctl", Call::Keyctl),
    zeros("add_key", Call::AddKey),
    zeros("request_key", Call::RequestKey),
    zeros("bpf", Call::Bpf),
    zeros("perf_event_open", Call::PerfEventOpen),
    zeros("userfaultfd", Call::Userfaultfd),
    zeros("io_uring_setup", Call::IoUringSetup),
    zeros("kexec_load", Call::KexecLoad),
    filtered("load a module", By(to::load_module)),
    filtered("unload a module", By(to::unload_module)),
    filtered("reboot", By(to::reboot)),
    filtered("set the clock", By(to::set_clock)),
    zeros("settimeofday", Call::Settimeofday),
    zeros("adjtimex", Call::Adjtimex),
    filtered("set the host name", By(to::set_host_name)),
    zeros("swapon", Call::Swapon),
    zeros("acct", Call::Acct),
    zeros("quotactl", Call::Quotactl),
    zeros("read the kernel's messages", Call::Syslog),
    zeros("iopl", Call::Iopl),
    zeros("ioperm", Call::Ioperm),
    zeros("vhangup", Call::Vhangup),
    zeros("name a file by a handle", Call::NameToHandleAt),
    zeros("open a file by a handle", Call::OpenByHandleAt),
    zeros("kcmp", Call::Kcmp),
    zeros("take a file of another process", Call::PidfdGetfd),
    zeros("watch a file system", Call::FanotifyInit),
    probe("vsock", Filter, EAFNOSUPPORT, By(to::open_vsock)),
    probe("the kernel's ciphers", Filter, EAFNOSUPPORT, By(to::open_cipher)),
    uncapable("a raw socket", to::open_raw),
    uncapable("a packet socket", to::open_packet),
    uncapable("change the network", to::change_network),
    uncapable("make a character device", to::make_character_device),
    uncapable("make a block device", to::make_block_device),
    uncapable("chroot", to::change_root),
    uncapable("raise a limit", to::raise_limit),
    probe("be preferred", Capability, EACCES, By(to::raise_priority)),
    probe("limits of process 1", Init, EPERM, By(to::limit_first_process)),
    probe("trace process 1", Init, EPERM, By(to::trace_first_process)),
    probe("the root of process 1", Init, EACCES, Read("/proc/1/root/etc")),
    probe("the memory of process 1", Init, EACCES, Read("/proc/1/mem")),
    probe("the variables of process 1", Init, EACCES, Read("/proc/1/environ")),
    missing("the roots of the box", Namespace, "/roots"),
    missing("the nonce and the config of the box", Namespace, "/nonce"),
    probe("the limit of processes", Mount, EROFS, Write("/sys/fs/cgroup/pids.max", "max")),
    probe("leave the cgroup", Mount, EROFS, Write("/sys/fs/cgroup/cgroup.procs", "0")),
    probe(
        "the program for core dumps",
        Mount,
        EROFS,
        Write("/proc/sys/kernel/core_pattern", "|/x"),
    ),
    probe("allow user namespaces", Capability, EACCES, Write(USER_NAMESPACES, "9")),
    probe("the magic SysRq key", Machine, ENOENT, Write("/proc/sysrq-trigger", "b")),
    probe("a device node of the image", Mount, EACCES, Read("/nodes/null")),
    probe("the kernel's messages as a node of the image", Mount, EACCES, Read("/nodes/kmsg")),
    missing("the disk of the box", Namespace, "/dev/vda"),
    missing("the kernel's messages as a file", Namespace, "/dev/kmsg"),
    missing("the memory of the machine", Machine, "/dev/mem"),
    missing("nested virtual machines", Machine, "/dev/kvm"),
    probe("a port of the host", Machine, ECONNREFUSED, By(to::connect_to_host_port)),
    probe("a socket of the host", Machine, ENOENT, By(to::connect_to_host_socket)),
    probe("the metadata of a cloud", Machine, ENETUNREACH, By(to::connect_to_metadata)),
];
