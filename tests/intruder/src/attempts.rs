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
use nix::unistd::{Pid, execv, setuid};
use vmm::jail::PERMIT;

/// An attempt to reach something outside the jail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    pub(crate) name: &'static str,
    call: fn(&str) -> Result<(), Errno>,
}

/// The mode that an attempt sets on a file. Other users can still read the box's files.
const MODE: Mode = Mode::from_bits_truncate(0o744);
/// The name of an abstract Unix socket (unix(7)).
const ABSTRACT: &[u8] = b"intruder";

/// Listens on the abstract socket. Returns `None` if another process already does.
pub(crate) fn listen() -> Option<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(ABSTRACT).ok()?).ok()
}

/// Tries to connect to the socket at `path`, and returns `done` or the error's name.
pub(crate) fn connect_as_is(path: &str) -> String {
    connect_to(UnixAddr::new(path))
        .map_or_else(|errno| format!("{errno:?}"), |()| "done".to_owned())
}

/// All attempts. The argument of each call is its target: a path, a process ID or an address.
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
    Attempt { name: "make-link", call: make_link },
    Attempt { name: "change-mode", call: change_mode },
    Attempt { name: "executable-memory", call: |_| executable_memory() },
    Attempt { name: "other-request", call: |_| other_request() },
];

impl Attempt {
    /// Finds an attempt by its name.
    pub(crate) fn find(name: &str) -> Option<Self> {
        ALL.iter().copied().find(|it| it.name == name)
    }

    /// Returns the path under which this program must be started to make the attempt on `target`. The directory's name is the
    /// target in hexadecimal: `base/t2f746d70/read-file` for `/tmp`.
    pub(crate) fn program(self, base: &Path, target: &str) -> std::path::PathBuf {
        let encoded: String = target.bytes().map(|byte| format!("{byte:02x}")).collect();
        base.join(format!("t{encoded}")).join(self.name)
    }

    /// Parses a path from [`Self::program`] into the attempt and its target.
    pub(crate) fn of_program(path: &str) -> Option<(Self, String)> {
        let path = Path::new(path);
        let encoded = path.parent()?.file_name()?.to_str()?.strip_prefix('t')?;
        let digits: Vec<u8> = encoded.bytes().collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let target = digits.chunks(2).map(byte).collect::<Option<Vec<_>>>()?;
        Some((Self::find(path.file_name()?.to_str()?)?, String::from_utf8(target).ok()?))
    }

    /// Makes the attempt, and returns `done` or the error's name.
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

/// Returns the `/proc` path of the box's file that this process has open. Outside the jail, where it has none, returns `path`.
fn own(path: &str) -> String {
    let open = (3..32).map(|fd| format!("/proc/self/fd/{fd}"));
    // The list of the rootfs's segments is a file in memory, whose link count is 0.
    let is_of_box = |it: std::fs::Metadata| it.is_file() && it.nlink() > 0;
    let mut files = open.filter(|path| std::fs::metadata(path).is_ok_and(is_of_box));
    files.next().unwrap_or_else(|| path.to_owned())
}

/// Opens the box's open file again, for writing.
fn write_own(path: &str) -> Result<(), Errno> {
    open_as(&own(path), OFlag::O_RDWR)
}

/// Changes the mode of the box's open file, by its path and by its descriptor.
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
    // SAFETY: PTRACE_ATTACH does not access this process's memory.
    Errno::result(unsafe { libc::ptrace(libc::PTRACE_ATTACH, process.as_raw(), none, none) })
        .map(drop)
}

/// Makes a link with the system call, as a program that the guest controls would: not with the function of the VMM, which refuses
/// more.
fn make_link(path: &str) -> Result<(), Errno> {
    let path = CString::new(path).map_err(|_| Errno::EINVAL)?;
    let (to, here, path) = (c"/etc".as_ptr(), libc::AT_FDCWD, path.as_ptr());
    // SAFETY: both paths are C strings that outlive the call.
    let result = unsafe { libc::syscall(libc::SYS_symlinkat, to, here, path, PERMIT) };
    Errno::result(result).map(drop)
}

fn mount(path: &str) -> Result<(), Errno> {
    let path = CString::new(path).map_err(|_| Errno::EINVAL)?;
    let kind = c"tmpfs".as_ptr();
    // SAFETY: the arguments are C strings that outlive the call, and tmpfs accepts null data.
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
    // SAFETY: the child only calls _exit.
    match unsafe { nix::unistd::fork() }? {
        nix::unistd::ForkResult::Parent { .. } => Ok(()),
        // SAFETY: _exit(2) runs no code of this program.
        nix::unistd::ForkResult::Child => unsafe { libc::_exit(0) },
    }
}

fn executable_memory() -> Result<(), Errno> {
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: the mapping is new, and nothing uses it.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0) };
    if at == libc::MAP_FAILED { Err(Errno::last()) } else { Ok(()) }
}

/// Asks a pipe for the number of bytes in it, with an ioctl(2) request that the VMM never makes.
fn other_request() -> Result<(), Errno> {
    let mut bytes = 0_i32;
    // SAFETY: FIONREAD writes one `int`, and `bytes` is one.
    let result = unsafe { libc::ioctl(0, libc::FIONREAD, &raw mut bytes) };
    Errno::result(result).map(drop)
}
