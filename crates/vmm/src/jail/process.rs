//! Starts the VMM process in a user and a PID namespace of its own.
//!
//! Nobody enters a PID namespace: one is born into it. So the process is made by `clone`, as posix_spawn(3) does it:
//! it shares this process's memory until it executes the program, and this thread waits for that.
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
/// The exit status of a process that was not started; nobody looks at it.
const NOT_STARTED: isize = 127;

/// A program to start.
#[derive(Debug)]
pub struct Program<'a> {
    /// The file.
    pub path: &'a Path,
    /// Its only argument.
    pub argument: &'a str,
    /// Its environment, each as `NAME=value`.
    pub environment: &'a [&'a str],
    /// The descriptors that it gets, with their numbers.
    pub files: &'a [RawFd],
}

/// A started process, which has not been waited for.
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
    /// What it reads.
    pub stdin: PipeWriter,
    /// What it writes: a report.
    pub stdout: PipeReader,
    /// What it writes: the log.
    pub stderr: PipeReader,
    /// The namespaces that this host does not give.
    pub missing: Vec<Missing>,
}

/// Starts a program in the directory `/`, in a process group of its own and with a pipe for each standard stream.
///
/// # Errors
/// When it cannot be started, in whatever namespaces.
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

/// Everything that the child needs, made before it: it must not ask for memory.
struct Prepared<'a> {
    path: CString,
    arguments: [CString; 2],
    environment: Vec<CString>,
    files: &'a [RawFd],
    streams: [BorrowedFd<'a>; 3],
}

/// The one user and the one group that there are in a user namespace, as the text of `uid_map` and `gid_map`.
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

    /// Starts the program in new namespaces. Root needs its own user until it has made the other ones.
    fn namespaces(&self) -> nix::Result<Pid> {
        let (user, group) = (geteuid(), getegid());
        if user.is_root() {
            return self.start(CloneFlags::CLONE_NEWPID, None);
        }
        let maps = Maps { user: format!("0 {user} 1"), group: format!("0 {group} 1") };
        // The files of a process whose memory is hidden belong to root, and the child shares this one's memory.
        let is_hidden = !prctl::get_dumpable()?;
        prctl::set_dumpable(true)?;
        let started = self.start(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWUSER, Some(&maps));
        if is_hidden {
            prctl::set_dumpable(false)?;
        }
        started
    }

    /// Returns the layers that a process without namespaces does not have.
    #[allow(clippy::unused_self, reason = "it belongs to `namespaces`")]
    fn missing(&self, reason: Errno) -> Vec<Missing> {
        let layers = if geteuid().is_root() {
            &[Layer::PidNamespace][..]
        } else {
            &[Layer::UserNamespace, Layer::PidNamespace][..]
        };
        layers.iter().map(|layer| Missing::new(*layer, reason)).collect()
    }

    /// Starts the program, and returns when it runs.
    fn start(&self, namespaces: CloneFlags, maps: Option<&Maps>) -> nix::Result<Pid> {
        let mut stack = vec![0; STACK];
        let mut failed = None;
        let child = || {
            let Err(error) = self.run(maps);
            failed = Some(error);
            NOT_STARTED
        };
        let flags = namespaces | CloneFlags::CLONE_VM | CloneFlags::CLONE_VFORK;
        // SAFETY: the child has a stack of its own, and this thread sleeps until the child executes a program or ends,
        // so nothing that it borrows goes or changes meanwhile. It only makes system calls with what was prepared, and
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

    /// Becomes the program, in the child.
    fn run(&self, maps: Option<&Maps>) -> nix::Result<Infallible> {
        if let Some(maps) = maps {
            // Without this, an ordinary user may not write the map of groups (user_namespaces(7)).
            put(c"/proc/self/setgroups", "deny")?;
            put(c"/proc/self/uid_map", &maps.user)?;
            put(c"/proc/self/gid_map", &maps.group)?;
        }
        // Ctrl-C at a terminal is for the supervisor, which ends the machine in order.
        setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
        chdir(c"/")?;
        let [stdin, stdout, stderr] = self.streams;
        dup2_stdin(stdin)?;
        dup2_stdout(stdout)?;
        dup2_stderr(stderr)?;
        for file in self.files {
            // SAFETY: whoever named the descriptor keeps it open while the program is started.
            let file = unsafe { BorrowedFd::borrow_raw(*file) };
            fcntl(file, FcntlArg::F_SETFD(FdFlag::empty()))?;
        }
        execve(&self.path, &self.arguments, &self.environment)
    }
}

/// Makes all files of this process but its standard streams such that no program which it executes inherits them: whoever
/// started this process may have left some open.
///
/// # Errors
/// The kernel's.
pub fn close_on_exec() -> nix::Result<()> {
    // `CLOSE_RANGE_CLOEXEC` of linux/close_range.h.
    const CLOEXEC: u32 = 1 << 2;
    // SAFETY: it changes a flag of descriptors alone, and closes none.
    let done = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, CLOEXEC) };
    Errno::result(done).map(drop)
}

/// Closes all files of this process with these numbers and those between. Nothing may own one of them.
///
/// # Errors
/// The kernel's.
pub fn close_range(first: u32, last: u32) -> nix::Result<()> {
    // SAFETY: whoever calls it says that nothing owns the files.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0_u32) };
    Errno::result(done).map(drop)
}

fn put(path: &CStr, text: &str) -> nix::Result<()> {
    let file = open(path, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty())?;
    write(file, text.as_bytes()).map(drop)
}

impl Process {
    /// Returns its id.
    pub const fn pid(&self) -> Pid {
        self.pid
    }

    /// Kills it.
    pub fn kill(&self) {
        // The id is its own until it was waited for.
        if self.status.is_none() {
            kill(self.pid, Signal::SIGKILL).ok();
        }
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// When the kernel refuses.
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
