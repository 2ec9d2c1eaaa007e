//! The virtual host: runs one command on an emulated machine that has hardware virtualization.
//!
//! QEMU emulates a CPU with AMD's SVM, so that the machine's own KVM works and real microVMs boot
//! in it wherever QEMU runs. Its clock is its instruction counter, one nanosecond each: a command
//! takes **the same virtual time in every run**, whatever the real machine is doing, and a startup
//! time can be asserted. A change of the command, the files, the kernel or QEMU changes it.
//!
//! ```no_run
//! # fn main() -> testkit::Result<()> {
//! use testkit::{VirtualHost, Workspace, prerequisites};
//!
//! let kernel = prerequisites::host_kernel(&Workspace::find(), &mut |line| eprintln!("{line}"))?;
//! let host = VirtualHost::new(&kernel).file("target/release/boxlaunch", "/bin/boxlaunch");
//! let output = host.run(&["boxlaunch", "--version"])?;
//! assert_eq!(output.status, 0);
//! # Ok(())
//! # }
//! ```
//!
//! The command runs as root in `/root` with busybox's programs around it, `/dev/kvm`, no network
//! but loopback, and a root that it may write. Files that it leaves in `/out` are handed back.
//! `patiently SECONDS COMMAND…` is there for microVMs that hang, which the emulator's fault makes
//! one in a hundred do (`patiently.sh` has the reason).
//!
//! Its output is collected in the machine's memory and left, with its status and `/out`, as a tar
//! stream on a disk; so nothing that it writes goes through an emulated device while it runs.

mod cpio;
mod disk;
mod elf;
mod initramfs;
pub(crate) mod kernel;
mod output;
mod qemu;
mod vmlinux;

use std::fs;
use std::io::{Write, sink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{KitError, Result, program};
pub(crate) use elf::is_dynamic;
pub use kernel::HostKernel;
pub use output::Output;

/// How much of the console's log an error shows, in bytes.
const CONSOLE_SHOWN: usize = 3000;

/// An emulated machine that is ready to run commands; each run starts from the same state.
#[derive(Debug, Clone)]
pub struct VirtualHost {
    kernel: HostKernel,
    memory_mib: u32,
    files: Vec<(PathBuf, String)>,
    disks: Vec<(PathBuf, String)>,
    time_limit: Duration,
}

impl VirtualHost {
    /// Starts with 1 GiB of memory, no files, and a limit of twenty minutes of real time:
    /// a microVM that hangs for 20 s of its time takes eight of them.
    pub fn new(kernel: &HostKernel) -> Self {
        Self {
            kernel: kernel.clone(),
            memory_mib: 1024,
            files: Vec::new(),
            disks: Vec::new(),
            time_limit: Duration::from_secs(1200),
        }
    }

    /// Sets the memory in MiB. All files and what the command writes lie in it.
    #[must_use]
    pub const fn memory(mut self, mib: u32) -> Self {
        self.memory_mib = mib;
        self
    }

    /// Sets the real time that a run may take.
    #[must_use]
    pub const fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Gives the machine a file or a directory at an absolute path, in its memory. A dynamic
    /// program brings the shared libraries that it needs.
    #[must_use]
    pub fn file(mut self, source: impl Into<PathBuf>, guest: impl Into<String>) -> Self {
        self.files.push((source.into(), guest.into()));
        self
    }

    /// Gives the machine a file or a directory at an absolute path, read-only and not in its
    /// memory: for what is large. Its files have their sizes, modes and content, and belong to root.
    #[must_use]
    pub fn disk(mut self, source: impl Into<PathBuf>, guest: impl Into<String>) -> Self {
        self.disks.push((source.into(), guest.into()));
        self
    }

    /// Runs a command and returns its output. A failing command is not an error: see
    /// [`Output::status`].
    ///
    /// # Errors
    /// A file cannot be read, a program is missing, the time limit is reached, or the machine stops
    /// without a result; the last two show the end of its console.
    pub fn run<S: AsRef<str>>(&self, command: &[S]) -> Result<Output> {
        let words = words(command);
        self.start(&words, false, &mut sink(), &mut sink())
    }

    /// Runs a command like [`Self::run`] and also passes its output on while it runs. For people:
    /// the machine is slightly slower than without.
    ///
    /// # Errors
    /// As for [`Self::run`].
    pub fn run_live<S: AsRef<str>>(
        &self,
        command: &[S],
        out: &mut (dyn Write + Send),
        err: &mut (dyn Write + Send),
    ) -> Result<Output> {
        self.start(&words(command), true, out, err)
    }

    fn start(
        &self,
        command: &[String],
        live: bool,
        out: &mut (dyn Write + Send),
        err: &mut (dyn Write + Send),
    ) -> Result<Output> {
        let scratch =
            tempfile::tempdir().map_err(KitError::file("make", Path::new("a directory")))?;
        let disks = self.disks(scratch.path())?;
        let initramfs = scratch.path().join("initramfs");
        let archive = initramfs::build(self, command, live)?;
        fs::write(&initramfs, archive).map_err(KitError::file("write", &initramfs))?;
        let console = scratch.path().join("console");
        let machine = qemu::Machine {
            memory_mib: self.memory_mib,
            kernel: &self.kernel.kernel(),
            initramfs: &initramfs,
            console: &console,
            disks: &disks,
            live,
        };
        let end = qemu::run(qemu::command(&machine), self.time_limit, out, err)?;
        self.conclude(&end, &console, &disks[0].path)
    }

    /// Makes the disks: the one for the result first.
    fn disks(&self, scratch: &Path) -> Result<Vec<disk::Disk>> {
        let mut disks = vec![disk::for_result(scratch)?];
        for (number, (source, _)) in self.disks.iter().enumerate() {
            disks.push(disk::pack(source, scratch, number)?);
        }
        Ok(disks)
    }

    fn conclude(&self, end: &qemu::End, console: &Path, result: &Path) -> Result<Output> {
        let log = fs::read(console).unwrap_or_default();
        let console = program::tail(&log, CONSOLE_SHOWN);
        let Some(status) = end.status else {
            return Err(KitError::TimeLimit { limit: self.time_limit, console });
        };
        let qemu = program::tail(&end.stderr, CONSOLE_SHOWN);
        let status = status.to_string();
        let nothing = KitError::NoResult { status, qemu, console };
        output::read(result)?.ok_or(nothing).map(|mut output| {
            output.console = log;
            output
        })
    }
}

fn words<S: AsRef<str>>(command: &[S]) -> Vec<String> {
    command.iter().map(|word| word.as_ref().to_owned()).collect()
}
