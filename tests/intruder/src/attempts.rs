//! The attempts: each is one or two system calls.

use std::ffi::CString;
use std::fmt::Display;
use std::fs::File;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::kill;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use nix::sys::stat::{FchmodatFlags, Mode, SFlag, fchmod, fchmodat, mknod};
use nix::unistd::{Pid, execv, setuid, symlinkat};

/// An attempt to get at something outside.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    pub(crate) name: &'static str,
    call: fn(&str) -> Result<(), Errno>,
}

/// What a file's mode is changed to: everybody can read the box's files as before.
const MODE: Mode = Mode::from_bits_truncate(0o744);
/// The name of a socket without a file.
const ABSTRACT: &[u8] = b"intruder";

/// Listens at the socket without a file; `None` where somebody does so already.
pub(crate) fn listen() -> Option<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(ABSTRACT).ok()?).ok()
}

/// Tries to connect to a socket; returns how that ended.
pub(crate) fn connect_as_is(path: &str) -> String {
    connect_to(UnixAddr::new(path))
        .map_or_else(|errno| format!("{errno:?}"), |()| "done".to_owned())
}

/// All of them. Each gets its target: a path, a process, an address.
pub(crate) const ALL: &[Attempt] = &[
    Attempt { name: "open-device", call: |_| open_as("/dev/kvm", OFlag::O_RDWR) },
    Attempt { name: "write-receipt", call: |path| open_as(path, OFlag::O_WRONLY) },
    Attempt { name: "write-record", call: |path| open_as(path, OFlag::O_WRONLY) },
    Attempt { name: "write-blob", call: |path| open_as(path, OFlag::O_WRONLY) },
    Attempt { name: "read-file", call: |path| open_as(path, OFlag::O_RDONLY) },
    Attempt { name: "write-own-blob", call: write_own },
    Attempt { name: "change-own-blob", call: change_own },
    Attempt {
        name: "see-process",
        call: |pid| open_as(&format!("/proc/{pid}/status"), OFlag::O_RDONLY),
    },
    Attempt { name: "create-file", call: |path| open_as(path, OFlag::O_CREAT | OFlag::O_WRONLY) },
    Attempt { name: "connect-socket", call: |path| connect_to(UnixAddr::new(path)) },
    Attempt { name: "connect-supervisor", call: |path| connect_to(UnixAddr::new(path)) },
    Attempt { name: "connect-vmm", call: |path| connect_to(UnixAddr::new(path)) },
    Attempt { name: "connect-abstract", call: |_| connect_to(UnixAddr::new_abstract(ABSTRACT)) },
    Attempt { name: "connect-tcp", call: connect_tcp },
    Attempt { name: "signal", call: |pid| kill(process(pid)?, None) },
    Attempt { name: "trace", call: |pid| trace(process(pid)?) },
    Attempt {
        name: "read-memory",
        call: |pid| open_as(&format!("/proc/{pid}/mem"), OFlag::O_RDONLY),
    },
    Attempt { name: "execute", call: execute },
    Attempt { name: "fork", call: |_| fork() },
    Attempt { name: "new-namespace", call: |_| unshare(CloneFlags::CLONE_NEWUSER) },
    Attempt { name: "mount", call: mount },
    Attempt { name: "become-root", call: |_| setuid(0.into()) },
    Attempt {
        name: "make-device",
        call: |path| mknod(path, SFlag::S_IFCHR, Mode::S_IRWXU, 0x0103),
    },
    Attempt { name: "make-link", call: |path| symlinkat("/etc", nix::fcntl::AT_FDCWD, path) },
    Attempt { name: "change-mode", call: change_mode },
    Attempt { name: "executable-memory", call: |_| executable_memory() },
    Attempt { name: "other-request", call: |_| other_request() },
];

impl Attempt {
    /// Finds an attempt by its name.
    pub(crate) fn find(name: &str) -> Option<Self> {
        ALL.iter().copied().find(|it| it.name == name)
    }

    /// Returns the path below which a program makes the attempt at a target: the target is the name of the directory,
    /// in hexadecimal.
    pub(crate) fn program(self, base: &Path, target: &str) -> std::path::PathBuf {
        let encoded: String = target.bytes().map(|byte| format!("{byte:02x}")).collect();
        base.join(format!("t{encoded}")).join(self.name)
    }

    /// Reads what [`Self::program`] has written.
    pub(crate) fn of_program(path: &str) -> Option<(Self, String)> {
        let path = Path::new(path);
        let encoded = path.parent()?.file_name()?.to_str()?.strip_prefix('t')?;
        let digits: Vec<u8> = encoded.bytes().collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let target = digits.chunks(2).map(byte).collect::<Option<Vec<_>>>()?;
        Some((Self::find(path.file_name()?.to_str()?)?, String::from_utf8(target).ok()?))
    }

    /// Makes it; returns how it ended.
    pub(crate) fn make(self, target: &str) -> impl Display + use<> {
        match (self.call)(target) {
            Ok(()) => "done".to_owned(),
            Err(errno) => format!("{errno:?}"),
        }
    }
}

fn open_as(path: &str, flags: OFlag) -> Result<(), Errno> {
    open(path, flags | OFlag::O_CLOEXEC, Mode::S_IRWXU).map(drop)
}

/// Returns the path of the box's file that this process has open for reading; elsewhere the one given.
fn own(path: &str) -> String {
    let open = (3..32).map(|fd| format!("/proc/self/fd/{fd}"));
    // The list of the rootfs's parts is a file in memory, which no directory has.
    let is_of_box = |it: std::fs::Metadata| it.is_file() && it.nlink() > 0;
    let mut files = open.filter(|path| std::fs::metadata(path).is_ok_and(is_of_box));
    files.next().unwrap_or_else(|| path.to_owned())
}

/// Opens the box's file again, for writing.
fn write_own(path: &str) -> Result<(), Errno> {
    open_as(&own(path), OFlag::O_RDWR)
}

/// Changes the mode of the box's file, by its path and by its descriptor.
fn change_own(path: &str) -> Result<(), Errno> {
    let path = own(path);
    let by_path = change_mode(&path);
    let file =
        File::open(&path).map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))?;
    fchmod(&file, MODE).or(by_path)
}

fn change_mode(path: &str) -> Result<(), Errno> {
    fchmodat(nix::fcntl::AT_FDCWD, path, MODE, FchmodatFlags::FollowSymlink)
}

fn connect_to(address: Result<UnixAddr, Errno>) -> Result<(), Errno> {
    let kind = SockType::Stream;
    let fd = socket(AddressFamily::Unix, kind, SockFlag::empty(), None)?;
    connect(std::os::fd::AsRawFd::as_raw_fd(&fd), &address?)
}

fn connect_tcp(port: &str) -> Result<(), Errno> {
    let port = port.parse().map_err(|_| Errno::EINVAL)?;
    let connected = std::net::TcpStream::connect(("127.0.0.1", port));
    connected.map(drop).map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or_default()))
}

fn trace(process: Pid) -> Result<(), Errno> {
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: the request takes no memory of this process.
    Errno::result(unsafe { libc::ptrace(libc::PTRACE_ATTACH, process.as_raw(), none, none) })
        .map(drop)
}

fn mount(path: &str) -> Result<(), Errno> {
    let path = CString::new(path).map_err(|_| Errno::EINVAL)?;
    let kind = c"tmpfs".as_ptr();
    // SAFETY: the strings are C strings for the call; this file system needs no data.
    let result = unsafe { libc::mount(kind, path.as_ptr(), kind, 0, std::ptr::null()) };
    Errno::result(result).map(drop)
}

fn process(pid: &str) -> Result<Pid, Errno> {
    pid.parse().map(Pid::from_raw).map_err(|_| Errno::EINVAL)
}

fn execute(path: &str) -> Result<(), Errno> {
    let path = CString::new(path).map_err(|_| Errno::EINVAL)?;
    execv(&path, &[&path]).map(|never| match never {})
}

fn fork() -> Result<(), Errno> {
    // SAFETY: the child ends at once.
    match unsafe { nix::unistd::fork() }? {
        nix::unistd::ForkResult::Parent { .. } => Ok(()),
        // SAFETY: it runs nothing of this program.
        nix::unistd::ForkResult::Child => unsafe { libc::_exit(0) },
    }
}

fn executable_memory() -> Result<(), Errno> {
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: new memory, which nothing uses.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0) };
    if at == libc::MAP_FAILED { Err(Errno::last()) } else { Ok(()) }
}

/// Asks a pipe for the number of bytes in it: a request of ioctl(2) that no machine makes.
fn other_request() -> Result<(), Errno> {
    let mut bytes = 0_i32;
    // SAFETY: the kernel writes one `int` where there is one.
    let result = unsafe { libc::ioctl(0, libc::FIONREAD, &raw mut bytes) };
    Errno::result(result).map(drop)
}
