//! The VMM process from the supervisor's side.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::process::ExitStatus;
use std::time::Instant;

use box_layout::OpenBox;
use host_fs::OsError;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::Pid;
use rustix::process::{PidfdFlags, pidfd_open};
use serde::Serialize;

use crate::jail::control_group::ControlGroup;
use crate::jail::process::{self, Process, Program, Started};
use crate::jail::{Missing, Report};
use crate::signals::{StopSignals, Stopped};
use crate::{SUBCOMMAND, VmmError};

/// The stack size of libkrun's threads, in the variable that Rust's standard library reads. The default of 2 MiB is
/// one huge page, which the host's kernel allocates whole at the first byte.
pub(crate) const STACK: &str = "RUST_MIN_STACK=524288";
/// The stack size if there is a network device. libkrun moves the device, which contains buffers of 128 KiB, between
/// threads by value, which makes many copies of it.
const NETWORK_STACK: &str = "RUST_MIN_STACK=1572864";
/// The greatest length of a report on the jail, in bytes.
const MAX_REPORT: usize = 16 << 10;
/// The running VMM process. Dropping it kills the process.
#[derive(Debug)]
pub struct Vmm {
    process: Process,
    /// The control group. It is removed after the process has ended.
    group: Option<ControlGroup>,
    /// The layers of the jail that the supervisor could not set up. The process reports further missing layers itself.
    pub missing: Vec<Missing>,
    stdin: Option<PipeWriter>,
    /// The pipe for the report on the jail.
    report: Option<PipeReader>,
    log: Option<PipeReader>,
}

impl Vmm {
    /// Starts `program` as a VMM that waits for its configuration. The VMM inherits the box's blobs, its disks and the
    /// socket of a network device.
    ///
    /// # Errors
    /// If the process cannot be started.
    pub fn spawn(
        program: &Path,
        opened: &OpenBox,
        disks: &[&File],
        network: Option<BorrowedFd<'_>>,
    ) -> Result<Self, OsError> {
        let blobs = opened.boot_blobs().map(|blob| blob.file.as_raw_fd());
        let disks = disks.iter().map(|it| it.as_raw_fd());
        let network = network.map(|it| it.as_raw_fd());
        let stack = if network.is_some() { NETWORK_STACK } else { STACK };
        let files: Vec<_> = blobs.chain(disks).chain(network).collect();
        let program =
            Program { path: program, argument: SUBCOMMAND, environment: &[stack], files: &files };
        Self::start(&program)
    }

    /// Starts `program` with one argument and the open files `files`, as a process that sets up a jail around itself.
    ///
    /// # Errors
    /// If the process cannot be started.
    pub fn spawn_as(program: &Path, argument: &str, files: &[RawFd]) -> Result<Self, OsError> {
        Self::start(&Program { path: program, argument, environment: &[STACK], files })
    }

    fn start(program: &Program<'_>) -> Result<Self, OsError> {
        let started = process::start(program).map_err(OsError::system("start the VMM process"))?;
        let Started { process, stdin, stdout, stderr, missing } = started;
        let (stdin, report, log) = (Some(stdin), Some(stdout), Some(stderr));
        Ok(Self { process, group: None, missing, stdin, report, log })
    }

    /// Moves the process into a control group, which is removed after the process has ended.
    ///
    /// # Errors
    /// The reason.
    pub fn join(&mut self, group: ControlGroup) -> Result<(), String> {
        group.take(self.process.pid())?;
        self.group = Some(group);
        Ok(())
    }

    /// Sends the process its configuration, once. The process then waits for [`Vmm::go`].
    ///
    /// # Errors
    /// If the process has ended, or [`Vmm::go`] was called already.
    pub fn configure(&mut self, config: &impl Serialize) -> Result<(), OsError> {
        let action = "configure the VMM process";
        let json = serde_json::to_vec(config).map_err(OsError::system(action))?;
        match &mut self.stdin {
            Some(pipe) => pipe.write_all(&json).map_err(OsError::system(action)),
            None => Err(OsError::system(action)(io::Error::other("it has been started"))),
        }
    }

    /// Lets the configured process become the VM.
    pub fn go(&mut self) {
        self.stdin = None;
    }

    /// Returns the process's id.
    pub fn pid(&self) -> u32 {
        self.id().as_raw().unsigned_abs()
    }

    /// Returns the process's id as a [`Pid`].
    pub const fn id(&self) -> Pid {
        self.process.pid()
    }

    /// Returns a descriptor that is readable once the process has ended.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn watch(&self) -> io::Result<OwnedFd> {
        let pid = rustix::process::Pid::from_raw(self.process.pid().as_raw());
        let pid = pid.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(pidfd_open(pid, PidfdFlags::empty())?)
    }

    /// Returns the pipe with libkrun's log and the guest's console. A later call returns `None`. A process that is not
    /// compromised closes its end of the pipe only when it ends.
    pub fn take_log(&mut self) -> Option<OwnedFd> {
        self.log.take().map(OwnedFd::from)
    }

    /// Waits for the process's report on its jail, which the process sends before it waits for [`Vmm::go`]. Returns
    /// `None` if the process ends without a well-formed report, or if the report was returned already.
    ///
    /// # Errors
    /// [`Stopped`], [`VmmError::NoJail`] at the deadline, or the kernel's error.
    pub fn await_report(
        &mut self,
        deadline: Instant,
        signals: &StopSignals,
    ) -> Result<Option<Report>, VmmError> {
        let Some(pipe) = self.report.take() else { return Ok(None) };
        let action = "wait for the VMM process";
        let mut text = [0; MAX_REPORT];
        let mut length = 0;
        loop {
            let mut fds =
                [pipe.as_fd(), signals.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
            let left = deadline.saturating_duration_since(Instant::now());
            let left = PollTimeout::try_from(left.as_millis()).unwrap_or(PollTimeout::MAX);
            match poll(&mut fds, left) {
                Err(nix::Error::EINTR) => continue,
                Ok(0) if Instant::now() >= deadline => return Err(VmmError::NoJail),
                polled => polled.map_err(OsError::system(action))?,
            };
            if let Some(signal) = signals.next()? {
                return Err(Stopped(signal).into());
            }
            if fds[0].any() == Some(true) {
                match (&pipe).read(&mut text[length..]).map_err(OsError::system(action))? {
                    0 => break,
                    more => length += more,
                }
            }
        }
        let report: Option<Report> = serde_json::from_slice(&text[..length]).ok();
        Ok(report.map(|mut report| {
            report.missing.append(&mut self.missing);
            report
        }))
    }

    /// Kills the process.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Waits until the process has ended.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn wait(&mut self) -> Result<ExitStatus, OsError> {
        self.process.wait().map_err(OsError::system("wait for the VMM process"))
    }
}

impl Drop for Vmm {
    fn drop(&mut self) {
        self.kill();
        // An error is ignored: the process is a child, so the wait fails only if the kernel does.
        drop(self.wait());
    }
}
