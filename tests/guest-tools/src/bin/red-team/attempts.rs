//! The attempts that need code, unlike a file's path or a system call without arguments.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::kmod::{DeleteModuleFlags, delete_module, init_module};
use nix::mount::{MntFlags, MsFlags, mount as nix_mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::ptrace;
use nix::sys::reboot::set_cad_enabled;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::time::{ClockId, clock_gettime, clock_settime};
use nix::unistd::{Pid, chroot, pivot_root, sethostname};
use rustix::process::{Rlimit, nice, prlimit};

type Outcome = Result<(), Errno>;

fn errno(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw)
}

pub(crate) fn read(path: &str) -> Outcome {
    let mut file = File::open(path).map_err(|error| errno(&error))?;
    match file.read(&mut [0]) {
        // A directory: it could be opened, so the attempt succeeded.
        Err(error) if errno(&error) == Errno::EISDIR => Ok(()),
        other => other.map(drop).map_err(|error| errno(&error)),
    }
}

pub(crate) fn write(path: &str, text: &str) -> Outcome {
    let file = OpenOptions::new().write(true).open(path);
    let written = file.and_then(|mut it| it.write_all(text.as_bytes()));
    written.map_err(|error| errno(&error))
}

pub(crate) fn mount() -> Outcome {
    nix_mount(Some("tmpfs"), "/tmp", Some("tmpfs"), MsFlags::empty(), None::<&str>)
}

pub(crate) fn remount() -> Outcome {
    nix_mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REMOUNT, None::<&str>)
}

pub(crate) fn unmount() -> Outcome {
    umount2("/proc", MntFlags::MNT_DETACH)
}

pub(crate) fn pivot() -> Outcome {
    pivot_root("/", "/")
}

pub(crate) fn make_user_namespace() -> Outcome {
    unshare(CloneFlags::CLONE_NEWUSER)
}

pub(crate) fn make_mount_namespace() -> Outcome {
    unshare(CloneFlags::CLONE_NEWNS)
}

pub(crate) fn enter_namespace() -> Outcome {
    let own = File::open("/proc/self/ns/uts").map_err(|error| errno(&error))?;
    setns(own, CloneFlags::CLONE_NEWUTS)
}

pub(crate) fn load_module() -> Outcome {
    init_module(b"", c"")
}

pub(crate) fn unload_module() -> Outcome {
    delete_module(c"none", DeleteModuleFlags::O_NONBLOCK)
}

/// Calls reboot(2) with a command that does no harm: it disables Ctrl-Alt-Del.
pub(crate) fn reboot() -> Outcome {
    set_cad_enabled(false)
}

pub(crate) fn set_clock() -> Outcome {
    clock_settime(ClockId::CLOCK_REALTIME, clock_gettime(ClockId::CLOCK_REALTIME)?)
}

pub(crate) fn set_host_name() -> Outcome {
    sethostname("stolen")
}

fn open(family: AddressFamily, kind: SockType, protocol: Option<SockProtocol>) -> Outcome {
    socket(family, kind, SockFlag::empty(), protocol).map(drop)
}

pub(crate) fn open_vsock() -> Outcome {
    open(AddressFamily::Vsock, SockType::Stream, None)
}

pub(crate) fn open_cipher() -> Outcome {
    open(AddressFamily::Alg, SockType::SeqPacket, None)
}

pub(crate) fn open_raw() -> Outcome {
    open(AddressFamily::Inet, SockType::Raw, Some(SockProtocol::Icmp))
}

pub(crate) fn open_packet() -> Outcome {
    open(AddressFamily::Packet, SockType::Raw, None)
}

pub(crate) fn change_network() -> Outcome {
    let own = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::empty(), None)?;
    box_init::sys::loopback_up(own.as_fd())
}

/// Creates a device node for the kernel's log.
pub(crate) fn make_character_device() -> Outcome {
    mknod("/tmp/kmsg", SFlag::S_IFCHR, Mode::S_IRUSR, makedev(1, 11))
}

/// Creates a device node for the box's disk.
pub(crate) fn make_block_device() -> Outcome {
    mknod("/tmp/vda", SFlag::S_IFBLK, Mode::S_IRUSR, makedev(254, 0))
}

pub(crate) fn change_root() -> Outcome {
    chroot("/tmp")
}

pub(crate) fn raise_limit() -> Outcome {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, soft, hard + 1)
}

pub(crate) fn raise_priority() -> Outcome {
    nice(-5).map(drop).map_err(|error| Errno::from_raw(error.raw_os_error()))
}

pub(crate) fn limit_first_process() -> Outcome {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let first = rustix::process::Pid::INIT;
    let done = prlimit(Some(first), rustix::process::Resource::Nofile, none);
    done.map(drop).map_err(|error| Errno::from_raw(error.raw_os_error()))
}

pub(crate) fn trace_first_process() -> Outcome {
    ptrace::attach(Pid::from_raw(1))
}

/// Connects to a port at which the test has a server on the host's loopback.
pub(crate) fn connect_to_host_port() -> Outcome {
    TcpStream::connect("127.0.0.1:8099").map(drop).map_err(|error| errno(&error))
}

/// Connects to a path that is a Unix socket for the agent on the host.
pub(crate) fn connect_to_host_socket() -> Outcome {
    UnixStream::connect("/tmp/host.sock").map(drop).map_err(|error| errno(&error))
}

pub(crate) fn connect_to_metadata() -> Outcome {
    TcpStream::connect("169.254.169.254:80").map(drop).map_err(|error| errno(&error))
}
