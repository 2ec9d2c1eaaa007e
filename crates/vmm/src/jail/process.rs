//! Starts the VMM process in a new user and a new PID namespace.
//!
//! A process cannot move to a new PID namespace: only a new child can be in it. clone(2) creates the child in the way
//! of posix_spawn(3): the child shares this process's memory until it executes the program, and this thread waits until
//! then.
#![allow(unsafe_code)]

use std::convert::Infallible;
use std::ffi::{CStr, CString};
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd as _, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl, open};
use nix::libc::{self, SIGCHLD};
use nix::sched::{CloneFlags, clone};
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{
    Pid, chdir, dup2_stderr, dup2_stdin, dup2_stdout, execve, getegid, geteuid, setpgid, write,
};
use rustix::process::{WaitOptions, waitpid};

use super::{Layer, Missing};

/// The size of the stack that the child has until it executes the program, in bytes.
const STACK: usize = 64 << 10;
/// The exit status of a child that could not execute the program. Its value is not used.
const NOT_STARTED: isize = 127;

/// A program to start.
#[derive(Debug)]
pub struct Program<'a> {
    /// The path of the program's file.
    pub path: &'a Path,
    /// The only argument.
    pub argument: &'a str,
    /// The environment, each variable as `NAME=value`.
    pub environment: &'a [&'a str],
    /// The descriptors that the program inherits, under the same numbers.
    pub files: &'a [RawFd],
}

/// A started process and, after it has been waited for, its exit status.
#[derive(Debug)]
pub struct Process {
    pid: Pid,
    status: Option<ExitStatus>,
}

/// A started process and its streams.
#[derive(Debug)]
pub struct Started {
    /// The process.
    pub process: Process,
    /// The pipe to its standard input.
    pub stdin: PipeWriter,
    /// The pipe from its standard output, for the report.
    pub stdout: PipeReader,
    /// The pipe from its standard error, for the log.
    pub stderr: PipeReader,
    /// The namespaces that are unavailable on this host.
    pub missing: Vec<Missing>,
}

/// Starts a program in the directory `/`, in a new process group, with a pipe for each standard stream.
///
/// # Errors
/// If the program cannot be started even without new namespaces.
pub fn start(program: &Program<'_>) -> io::Result<Started> {
    let ((read_in, stdin), (stdout, write_out)) = (io::pipe()?, io::pipe()?);
    let (stderr, write_err) = io::pipe()?;
    let streams = [read_in.as_fd(), write_out.as_fd(), write_err.as_fd()];
    let new = Prepared::new(program, streams)?;
    let (pid, missing) = match new.namespaces() {
        Ok(pid) => (pid, Vec::new()),
        Err(reason) => (new.start(CloneFlags::empty(), None)?, new.missing(reason)),
    };
    let process = Process { pid, status: None };
    Ok(Started { process, stdin, stdout, stderr, missing })
}

/// The data for the child, allocated before it starts: the child must not allocate memory.
struct Prepared<'a> {
    path: CString,
    arguments: [CString; 2],
    environment: Vec<CString>,
    files: &'a [RawFd],
    streams: [BorrowedFd<'a>; 3],
}

/// The only user and the only group of a user namespace, as the content of `uid_map` and `gid_map`
/// ([user_namespaces(7)](https://man7.org/linux/man-pages/man7/user_namespaces.7.html)).
struct Maps {
    user: String,
    group: String,
}

impl<'a> Prepared<'a> {
    fn new(program: &Program<'a>, streams: [BorrowedFd<'a>; 3]) -> io::Result<Self> {
        let path = CString::new(program.path.as_os_str().as_bytes())?;
        let arguments = [path.clone(), CString::new(program.argument)?];
        let environment = program.environment.iter().map(|it| CString::new(*it));
        let environment = environment.collect::<Result<_, _>>()?;
        Ok(Self { path, arguments, environment, files: program.files, streams })
    }

    /// Starts the program in a new PID namespace and, if this user is not root, in a new user namespace. Root's process
    /// enters a user namespace later, because it needs root's capabilities to make the other namespaces.
    fn namespaces(&self) -> nix::Result<Pid> {
        let (user, group) = (geteuid(), getegid());
        if user.is_root() {
            return self.start(CloneFlags::CLONE_NEWPID, None);
        }
        let maps = Maps { user: format!("0 {user} 1"), group: format!("0 {group} 1") };
        // If a process is not dumpable, root owns its files in `/proc`, and the child could not write its maps. The
        // child shares this attribute with this process, as it shares the memory.
        let is_hidden = !prctl::get_dumpable()?;
        prctl::set_dumpable(true)?;
        let started = self.start(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWUSER, Some(&maps));
        if is_hidden {
            prctl::set_dumpable(false)?;
        }
        started
    }

    /// Returns the layers that are missing if [`Self::namespaces`] has failed.
    #[allow(clippy::unused_self, reason = "it belongs to `namespaces`")]
    fn missing(&self, reason: Errno) -> Vec<Missing> {
        let layers = if geteuid().is_root() {
            &[Layer::PidNamespace][..]
        } else {
            &[Layer::UserNamespace, Layer::PidNamespace][..]
        };
        layers.iter().map(|layer| Missing::new(*layer, reason)).collect()
    }

    /// Starts the program, and returns once the child has executed it.
    fn start(&self, namespaces: CloneFlags, maps: Option<&Maps>) -> nix::Result<Pid> {
        let mut stack = vec![0; STACK];
        let mut failed = None;
        let child = || {
            let Err(error) = self.run(maps);
            failed = Some(error);
            NOT_STARTED
        };
        let flags = namespaces | CloneFlags::CLONE_VM | CloneFlags::CLONE_VFORK;
        // SAFETY: the child has a stack for itself, and this thread sleeps until the child executes a program or
        // ends, so its borrows stay valid and unchanged. The child only makes system calls on prepared data, and
        // writes its error.
        let pid = unsafe { clone(Box::new(child), &mut stack, flags, Some(SIGCHLD)) }?;
        match failed {
            None => Ok(pid),
            Some(error) => {
                waitpid(rustix::process::Pid::from_raw(pid.as_raw()), WaitOptions::empty()).ok();
                Err(error)
            }
        }
    }

    /// Sets up the child, and executes the program in it.
    fn run(&self, maps: Option<&Maps>) -> nix::Result<Infallible> {
        if let Some(maps) = maps {
            // An ordinary user may write the map of groups only after this (user_namespaces(7)).
            put(c"/proc/self/setgroups", "deny")?;
            put(c"/proc/self/uid_map", &maps.user)?;
            put(c"/proc/self/gid_map", &maps.group)?;
        }
        // Ctrl-C at a terminal must reach only the supervisor, which ends the VM in order.
        setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
        chdir(c"/")?;
        let [stdin, stdout, stderr] = self.streams;
        dup2_stdin(stdin)?;
        dup2_stdout(stdout)?;
        dup2_stderr(stderr)?;
        for file in self.files {
            // SAFETY: the caller of `start` keeps the descriptor open while the program is started.
            let file = unsafe { BorrowedFd::borrow_raw(*file) };
            fcntl(file, FcntlArg::F_SETFD(FdFlag::empty()))?;
        }
        execve(&self.path, &self.arguments, &self.environment)
    }
}

/// Sets the close-on-exec flag of all files except the standard streams. The parent of this process may have left files
/// open, which no program that this process starts may inherit.
///
/// # Errors
/// The kernel's error.
pub fn close_on_exec() -> nix::Result<()> {
    // `CLOSE_RANGE_CLOEXEC` of linux/close_range.h.
    const CLOEXEC: u32 = 1 << 2;
    // SAFETY: the call changes a flag of descriptors, and closes none.
    let done = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, CLOEXEC) };
    Errno::result(done).map(drop)
}

/// Closes all descriptors from `first` to `last`, including both. None of them may have an owner in this process.
///
/// # Errors
/// The kernel's error.
pub fn close_range(first: u32, last: u32) -> nix::Result<()> {
    // SAFETY: the caller guarantees that the descriptors have no owner.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0_u32) };
    Errno::result(done).map(drop)
}

fn put(path: &CStr, text: &str) -> nix::Result<()> {
    let file = open(path, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty())?;
    write(file, text.as_bytes()).map(drop)
}

impl Process {
    /// Returns the process id.
    pub const fn pid(&self) -> Pid {
        self.pid
    }

    /// Kills the process.
    pub fn kill(&self) {
        // The kernel does not reuse the process id before the process has been waited for.
        if self.status.is_none() {
            kill(self.pid, Signal::SIGKILL).ok();
        }
    }

    /// Waits until the process has ended.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        let pid = rustix::process::Pid::from_raw(self.pid.as_raw());
        let ended = rustix::io::retry_on_intr(|| waitpid(pid, WaitOptions::empty()))?;
        let (_, status) = ended.ok_or_else(|| io::Error::from(io::ErrorKind::WouldBlock))?;
        let status = ExitStatus::from_raw(status.as_raw());
        self.status = Some(status);
        Ok(status)
    }
}
