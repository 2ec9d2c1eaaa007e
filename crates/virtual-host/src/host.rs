//! A virtual host under construction, and its runs.

use std::ffi::OsString;
use std::io::{Write, sink};
use std::path::PathBuf;
use std::time::Duration;

use crate::disk::Source;
use crate::kernel::HostKernel;
use crate::output::{Output, Run};
use crate::plan::{FOLLOW, Mount, Plan};
use crate::prepared::Prepared;
use crate::scratch::Scratch;
use crate::{HostError, Machine, Result, disk, initramfs, qemu};

/// The memory of a virtual host in addition to the memory of the box's VM, in MiB: for its kernel, its programs and
/// KVM's tables.
const BESIDE_A_GUEST: u32 = 768;

/// A virtual host that is ready to run commands. Each run starts from the same state.
#[derive(Debug, Clone)]
pub struct VirtualHost {
    kernel: HostKernel,
    init: PathBuf,
    memory_mib: u32,
    result_mib: u32,
    files: Vec<(PathBuf, String)>,
    disks: Vec<(Source, String)>,
    time_limit: Duration,
}

impl VirtualHost {
    /// The default limit on the duration of a run, in real time.
    pub const MAX_TIME: Duration = Duration::from_secs(20 * 60);

    /// Makes a virtual host with 1 GiB of memory, no files, and the time limit [`Self::MAX_TIME`]. `init` is a static
    /// program that calls [`crate::guest::run`] if [`crate::guest::is_init`] returns `true`, and has the subcommand
    /// [`FOLLOW`]. `boxlaunch` is such a program. On the virtual host, commands can run it as `/bin/boxlaunch`.
    pub fn new(kernel: &HostKernel, init: impl Into<PathBuf>) -> Self {
        Self {
            kernel: kernel.clone(),
            init: init.into(),
            memory_mib: 1024,
            result_mib: disk::RESULT_MIB,
            files: Vec::new(),
            disks: Vec::new(),
            time_limit: Self::MAX_TIME,
        }
    }

    /// Sets the memory in MiB. It also stores the files of [`Self::file`], and the output of commands.
    #[must_use]
    pub const fn memory(mut self, mib: u32) -> Self {
        self.memory_mib = mib;
        self
    }

    /// Sets the memory so that a VM with `memory_mib` MiB of memory can run.
    #[must_use]
    pub const fn for_guest(self, memory_mib: u32) -> Self {
        self.memory(memory_mib.saturating_add(BESIDE_A_GUEST))
    }

    /// Sets the size in MiB of the disk for the result. The disk is empty until the commands have ended, so they can use it.
    #[must_use]
    pub const fn result_disk(mut self, mib: u32) -> Self {
        self.result_mib = mib;
        self
    }

    /// Sets the limit on the duration of a run, in real time.
    #[must_use]
    pub const fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Adds a file or a directory at the absolute path `guest`, in memory. If two files have the same path, the first one
    /// takes precedence.
    #[must_use]
    pub fn file(mut self, source: impl Into<PathBuf>, guest: impl Into<String>) -> Self {
        self.files.push((source.into(), guest.into()));
        self
    }

    /// Adds a file or a directory at the absolute path `guest`, read-only and on a disk, for large files. The files keep
    /// their modes and content, and belong to root.
    #[must_use]
    pub fn disk(mut self, source: impl Into<PathBuf>, guest: impl Into<String>) -> Self {
        self.disks.push((Source::Whole(source.into()), guest.into()));
        self
    }

    /// Adds a directory like [`Self::disk`], made of `files`: the path of each file in the directory, and on the real host.
    #[must_use]
    pub fn disk_of(
        mut self,
        files: impl IntoIterator<Item = (PathBuf, PathBuf)>,
        guest: impl Into<String>,
    ) -> Self {
        self.disks.push((Source::Files(files.into_iter().collect()), guest.into()));
        self
    }

    /// Runs a command and returns its output. A failing command is not an error; see [`Output::status`].
    ///
    /// # Errors
    /// A file cannot be read, QEMU is missing, the time limit is reached, or the virtual host stops without a result.
    /// The last two errors contain the end of the console's log.
    pub fn run<S: AsRef<str>>(&self, command: &[S]) -> Result<Output> {
        self.start(&[words(command)], false, &mut sink(), &mut sink()).map(Output::of_only)
    }

    /// Runs a command like [`Self::run`] and also forwards its output while it runs, for interactive use. The virtual
    /// host is then slightly slower.
    ///
    /// # Errors
    /// The errors of [`Self::run`].
    pub fn run_live<S: AsRef<str>>(
        &self,
        command: &[S],
        out: &mut (dyn Write + Send),
        err: &mut (dyn Write + Send),
    ) -> Result<Output> {
        self.start(&[words(command)], true, out, err).map(Output::of_only)
    }

    /// Runs commands in one start of the virtual host, one after the other, until one fails.
    ///
    /// # Errors
    /// The errors of [`Self::run`].
    pub fn run_each(&self, commands: &[Vec<String>]) -> Result<Run> {
        self.start(commands, false, &mut sink(), &mut sink())
    }

    /// Returns the hardware, QEMU and the kernel of the virtual host, for reports: virtual times are comparable only if these are
    /// the same.
    ///
    /// # Errors
    /// QEMU is missing or does not start.
    pub fn machine(&self) -> Result<Machine> {
        Ok(Machine {
            qemu: qemu::version()?,
            machine: qemu::MACHINE.to_owned(),
            cpu: qemu::CPU_MODEL.to_owned(),
            cpus: qemu::CPUS,
            kernel: self.kernel.version().to_owned(),
        })
    }

    fn start(
        &self,
        commands: &[Vec<String>],
        live: bool,
        out: &mut (dyn Write + Send),
        err: &mut (dyn Write + Send),
    ) -> Result<Run> {
        self.prepared(commands, live)?.start_with(out, err).map(|finished| finished.run)
    }

    /// Writes all inputs of a run of commands, as in [`Self::run_each`].
    ///
    /// # Errors
    /// A file cannot be read, or QEMU is missing.
    pub fn prepare(&self, commands: &[Vec<String>]) -> Result<Prepared> {
        self.prepared(commands, false)
    }

    fn prepared(&self, commands: &[Vec<String>], live: bool) -> Result<Prepared> {
        qemu::require_qemu()?;
        let (disks, initramfs, console) = (self.disks()?, Scratch::new()?, Scratch::new()?);
        let plan = Plan { disks: self.mounts(), commands: commands.to_vec(), live };
        let archive = initramfs::build(&self.init, &self.kernel, &self.files, &plan)?;
        let written = initramfs.file().write_all(&archive);
        written.map_err(HostError::file("write", &initramfs.path()))?;
        let start = qemu::Start {
            memory_mib: self.memory_mib,
            kernel: &self.kernel.kernel(),
            initramfs: &initramfs.path(),
            console: &console.path(),
            disks: &disks,
            live,
        };
        let command = qemu::command(&self.starter(), &start);
        Ok(Prepared::new(command, disks, [initramfs, console], self.time_limit))
    }

    /// Returns the prefix of a command line. It starts a program that ends when this process ends.
    fn starter(&self) -> [OsString; 3] {
        let own = std::process::id().to_string();
        // QEMU is started in another directory, so a relative path would not exist there.
        let init = std::path::absolute(&self.init).unwrap_or_else(|_| self.init.clone());
        [init.into(), FOLLOW.into(), own.into()]
    }

    fn mounts(&self) -> Vec<Mount> {
        let mount = |(source, path): &(Source, String)| Mount {
            path: path.clone(),
            is_file: matches!(source, Source::Whole(path) if !path.is_dir()),
        };
        self.disks.iter().map(mount).collect()
    }

    /// Makes the disks. The first one is for the result.
    fn disks(&self) -> Result<Vec<disk::Disk>> {
        let mut disks = vec![disk::for_result(self.result_mib)?];
        for (source, _) in &self.disks {
            disks.push(disk::pack(source)?);
        }
        Ok(disks)
    }
}

fn words<S: AsRef<str>>(command: &[S]) -> Vec<String> {
    command.iter().map(|word| word.as_ref().to_owned()).collect()
}
