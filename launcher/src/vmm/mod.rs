//! The VMM process: how the supervisor starts it, and what it does then.
//!
//! libkrun turns the process that calls it into the virtual machine and ends it with the guest, so
//! the machine has a process of its own: this program again. It is handed the box's blobs as open
//! files, which libkrun opens again through `/proc/self/fd`, and all else as JSON on standard
//! input; a command line would show the nonce to every process of the host. libkrun's log and the
//! guest's console come back on its standard error; standard output is for one report, on the jail.

pub(crate) mod confine;
pub mod krun;
mod root_disk;

use std::ffi::{CStr, OsString};
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Instant;

use box_image::Vm as VmSize;
use box_image::network::NETWORK_PORT;
use box_image::plan::{CONTROL_PORT, INIT_PATH, MAX_SCRATCH, NEW_ROOT, NONCE_PATH};
use box_image::rules::KERNEL_DIRECTORIES;
use box_image::wire::{
    MAX_DEVICES, MOUNTS_FOLLOW, MountSource, NO_MOUNTS, READ_ONLY_TAG, writable_tag,
};
use box_layout::{Blob, OpenBox, OpenError};
use host_fs::read::{Links, open_regular};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Pid, close, dup2_stdout, getppid};
use rustix::process::{PidfdFlags, pidfd_open};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::LaunchError;
use crate::jail::control_group::ControlGroup;
use crate::jail::process::{self, Process, Program, Started};
use crate::jail::shares::{self, Shared};
use crate::jail::{Files, Jail, Missing, Report, Terms, fd_path};
use crate::streams::control::Nonce;
use crate::streams::signals::{self, StopSignals};
use krun::{DiskMode, PortMode, ShareMode, Vm};
use root_disk::{Part, RootDisk};

/// The hidden subcommand as which the VMM process is started.
pub const SUBCOMMAND: &str = "vmm";
/// The supervisor's socket, to which [`CONTROL_PORT`] leads.
pub(crate) const CONTROL_SOCKET: &str = "control.sock";
/// The socket that libkrun makes for the agent's port.
pub(crate) const AGENT_SOCKET: &str = "agent.sock";
/// The socket on which libkrun connects a guest to its network.
pub(crate) const NETWORK_SOCKET: &str = "network.sock";
/// The hardware address of the guest's device: any that somebody assigns (its second bit) will do, nobody else sees it.
pub(crate) const GUEST_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x02];
/// The size of the stacks of libkrun's threads, as Rust's standard library takes it from the environment. The
/// default of 2 MiB is one large page, all of which the host's kernel gives at the first byte.
const STACK: &str = "RUST_MIN_STACK=524288";
/// The same where there is a network device: libkrun moves it between threads, with its buffers of 128 KiB, in many copies.
const NETWORK_STACK: &str = "RUST_MIN_STACK=1572864";
/// The names of scratch disks.
const SCRATCH: [&CStr; MAX_SCRATCH] = [c"scratch-0", c"scratch-1", c"scratch-2"];
/// Those of volumes.
const VOLUMES: [&CStr; MAX_DEVICES] = [c"volume-0", c"volume-1", c"volume-2", c"volume-3"];
/// The longest report of a jail, in bytes.
const MAX_REPORT: usize = 16 << 10;
/// A regular file that everybody may execute (`S_IFREG | 0755`).
const PROGRAM: u32 = 0o100_755;
/// A regular file that only root may read (`S_IFREG | 0400`).
const SECRET: u32 = 0o100_400;

/// The configuration of the VMM process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct VmmConfig {
    /// The machine's size.
    pub size: VmSize,
    /// The inherited descriptors of the blobs.
    pub blobs: BlobFds,
    /// The verified config of the box, byte for byte: init reads it.
    pub config: String,
    /// Those of the disks that it writes to, and that go with it.
    pub disks: Vec<RawFd>,
    /// Those of the disks that outlive it.
    pub volumes: Vec<RawFd>,
    /// The size of the largest of all these disks, in bytes.
    pub largest_disk: u64,
    /// The secret that init has to send first.
    pub nonce: Nonce,
    /// The agent's port, of vsock and of TCP in the guest, to which [`AGENT_SOCKET`] leads.
    pub agent: Option<u16>,
    /// The inherited socket of a network that it shares with the host.
    pub shared_network: Option<RawFd>,
    /// Whether the guest reaches its network, at [`NETWORK_SOCKET`].
    pub has_network: bool,
    /// Whether init is told what of the host to mount.
    pub has_mounts: bool,
    /// The supervisor's decisions on the jail.
    pub jail: Terms,
}

/// The descriptors of a box's blobs, the same number in both processes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BlobFds {
    kernel: RawFd,
    init: RawFd,
    /// The size of init that the box names, in bytes.
    init_size: u64,
    /// The parts of the rootfs, in their order.
    rootfs: Vec<Part>,
}

impl BlobFds {
    /// Names the open files of a box.
    pub fn of(opened: &OpenBox) -> Self {
        let part = |it: &Blob| Part { fd: it.file.as_raw_fd(), size: it.descriptor.size };
        Self {
            kernel: opened.kernel.file.as_raw_fd(),
            init: opened.init.file.as_raw_fd(),
            init_size: opened.init.descriptor.size,
            rootfs: opened.rootfs.parts().iter().map(part).collect(),
        }
    }

    /// Returns those that libkrun opens again: the kernel and the parts of the rootfs.
    fn opened_again(&self) -> Vec<RawFd> {
        let parts = self.rootfs.iter().map(|it| it.fd);
        [self.kernel].into_iter().chain(parts).collect()
    }
}

/// The running VMM process; killed when dropped.
#[derive(Debug)]
pub struct Vmm {
    process: Process,
    /// Removed after the process.
    group: Option<ControlGroup>,
    /// The layers of the jail that the supervisor could not put up, until the process has named the others.
    pub(crate) missing: Vec<Missing>,
    stdin: Option<PipeWriter>,
    /// The report on its jail.
    report: Option<PipeReader>,
    log: Option<PipeReader>,
}

impl Vmm {
    /// Starts `program` as a VMM that waits for its configuration, with a box's blobs, its disks and the socket of a network
    /// device open.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn spawn(
        program: &Path,
        opened: &OpenBox,
        disks: &[&File],
        network: Option<BorrowedFd<'_>>,
    ) -> Result<Self, LaunchError> {
        let blobs = opened.boot_blobs().map(|blob| blob.file.as_raw_fd());
        let disks = disks.iter().map(|it| it.as_raw_fd());
        let network = network.map(|it| it.as_raw_fd());
        let stack = if network.is_some() { NETWORK_STACK } else { STACK };
        let files: Vec<_> = blobs.chain(disks).chain(network).collect();
        let program =
            Program { path: program, argument: SUBCOMMAND, environment: &[stack], files: &files };
        Self::start(&program)
    }

    /// Starts `program` with an argument, as a process that the jail is put up around, with some files open.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub(crate) fn spawn_as(
        program: &Path,
        argument: &str,
        files: &[RawFd],
    ) -> Result<Self, LaunchError> {
        Self::start(&Program { path: program, argument, environment: &[STACK], files })
    }

    fn start(program: &Program<'_>) -> Result<Self, LaunchError> {
        let started =
            process::start(program).map_err(LaunchError::system("start the VMM process"))?;
        let Started { process, stdin, stdout, stderr, missing } = started;
        let (stdin, report, log) = (Some(stdin), Some(stdout), Some(stderr));
        Ok(Self { process, group: None, missing, stdin, report, log })
    }

    /// Puts the process into a control group that goes with it.
    ///
    /// # Errors
    /// Why that is not possible.
    pub(crate) fn join(&mut self, group: ControlGroup) -> Result<(), String> {
        group.take(self.process.pid())?;
        self.group = Some(group);
        Ok(())
    }

    /// Tells the process what to run, once; it waits for [`Vmm::go`] before it starts.
    ///
    /// # Errors
    /// When the process is gone, or has been started.
    pub(crate) fn configure(&mut self, config: &impl Serialize) -> Result<(), LaunchError> {
        let action = "configure the VMM process";
        let json = serde_json::to_vec(config).map_err(LaunchError::system(action))?;
        match &mut self.stdin {
            Some(pipe) => pipe.write_all(&json).map_err(LaunchError::system(action)),
            None => Err(LaunchError::system(action)(io::Error::other("it has been started"))),
        }
    }

    /// Lets the configured process become the machine.
    pub(crate) fn go(&mut self) {
        self.stdin = None;
    }

    /// Returns the process's id.
    pub fn pid(&self) -> u32 {
        self.id().as_raw().unsigned_abs()
    }

    /// Returns the process's id, as calls of the kernel take it.
    pub(crate) const fn id(&self) -> Pid {
        self.process.pid()
    }

    /// Returns a descriptor that is readable once the process has ended.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn watch(&self) -> io::Result<OwnedFd> {
        let pid = rustix::process::Pid::from_raw(self.process.pid().as_raw());
        let pid = pid.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(pidfd_open(pid, PidfdFlags::empty())?)
    }

    /// Returns what libkrun and the guest's console say, once. Its end comes with that of an honest process.
    pub(crate) fn take_log(&mut self) -> Option<OwnedFd> {
        self.log.take().map(OwnedFd::from)
    }

    /// Waits until the process has said what its jail is, once: it does so before [`Vmm::go`]. `None` where it has ended
    /// instead.
    ///
    /// # Errors
    /// [`LaunchError::Signal`], [`LaunchError::NoJail`] at the deadline, and the kernel's.
    pub(crate) fn await_report(
        &mut self,
        deadline: Instant,
        signals: &StopSignals,
    ) -> Result<Option<Report>, LaunchError> {
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
                Ok(0) if Instant::now() >= deadline => return Err(LaunchError::NoJail),
                polled => polled.map_err(LaunchError::system(action))?,
            };
            if let Some(signal) = signals.next()? {
                return Err(LaunchError::Signal(signal));
            }
            if fds[0].any() == Some(true) {
                match (&pipe).read(&mut text[length..]).map_err(LaunchError::system(action))? {
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
    /// When the kernel refuses.
    pub fn wait(&mut self) -> Result<ExitStatus, LaunchError> {
        self.process.wait().map_err(LaunchError::system("wait for the VMM process"))
    }
}

impl Drop for Vmm {
    fn drop(&mut self) {
        self.kill();
        // Fails only where the kernel does.
        drop(self.wait());
    }
}

/// Reads a `VmmConfig` and becomes the machine that it describes. Returns only on failure.
pub fn enter(config: impl Read) -> LaunchError {
    match prepare(config) {
        Ok(vm) => LaunchError::Krun(vm.start()),
        Err(error) => error,
    }
}

/// Reads a `VmmConfig`, confines this process, and returns the machine that it describes, which only has to be started.
///
/// # Errors
/// When the configuration is malformed, libkrun refuses it, or the jail lacks a layer that is required.
pub fn prepare(config: impl Read) -> Result<Vm, LaunchError> {
    let mut input = config;
    let config: VmmConfig = configuration(&mut input)?;
    let BlobFds { kernel, init, .. } = config.blobs;
    let blobs = config.blobs.opened_again();
    let disks: Vec<_> = config.disks.iter().chain(&config.volumes).copied().collect();
    let network = config.shared_network;
    close_all_but(&[&*blobs, &[init], &*disks, network.as_slice()].concat())?;
    let init_bytes = map_init(&config.blobs)?;
    close(init).map_err(LaunchError::system("close init"))?;
    confine()?;
    // The jail forbids to write to files, and so to make it. It needs no rule of Landlock, which has none for files in
    // memory and leaves them alone.
    let root_disk = RootDisk::of(&config.blobs.rootfs);
    let root_disk = root_disk.map_err(LaunchError::system("make the disk of the rootfs"))?;
    let files = Files {
        blobs: &blobs,
        disks: &disks,
        largest: config.largest_disk,
        has_network: network.is_some(),
    };
    let shares = config.jail.shares.clone();
    let jail = Jail::enter(config.jail, files)?;
    // After the change of the user, which undoes it.
    follow_reader()?;
    krun::log_to_stderr()?;
    let mut vm = Vm::new(config.size.cpus, config.size.memory_mib)?;
    vm.set_kernel(&fd_path(kernel))?;
    root_disk.attach(&mut vm)?;
    for (id, disk) in SCRATCH.iter().zip(&config.disks) {
        vm.add_disk(id, &fd_path(*disk), DiskMode::ReadWrite)?;
    }
    for (id, disk) in VOLUMES.iter().zip(&config.volumes) {
        vm.add_disk(id, &fd_path(*disk), DiskMode::Kept)?;
    }
    add_shares(&mut vm, &shares)?;
    if let Some(socket) = network {
        vm.add_network(socket, GUEST_MAC)?;
    }
    let nonce = (config.nonce.text(), config.has_mounts);
    add_first_root(&mut vm, init_bytes, config.config.as_bytes(), nonce)?;
    vm.add_vsock()?;
    let socket = |name| jail.sockets.join(name);
    vm.add_vsock_port(CONTROL_PORT, &socket(CONTROL_SOCKET), PortMode::GuestConnects)?;
    if config.has_network {
        vm.add_vsock_port(NETWORK_PORT, &socket(NETWORK_SOCKET), PortMode::GuestConnects)?;
    }
    if let Some(port) = config.agent {
        vm.add_vsock_port(port.into(), &socket(AGENT_SOCKET), PortMode::HostConnects)?;
    }
    jail.close(report_stream()?)?;
    await_go(&mut input)?;
    Ok(vm)
}

/// Reads the configuration that the supervisor has written, after which [`await_go`] can wait.
pub(crate) fn configuration<T: DeserializeOwned>(input: &mut impl Read) -> Result<T, LaunchError> {
    let config = serde_json::Deserializer::from_reader(input).into_iter().next();
    let config = config.unwrap_or_else(|| Err(serde::de::Error::custom("it is empty")));
    config.map_err(LaunchError::system("read the configuration from standard input"))
}

/// Waits until the supervisor hangs up, which has the report on the jail then.
pub(crate) fn await_go(input: &mut impl Read) -> Result<(), LaunchError> {
    let waited = io::copy(input, &mut io::sink());
    waited.map(drop).map_err(LaunchError::system("wait for the supervisor"))
}

/// Returns the stream for the report on the jail. Standard output belongs to the log afterwards.
pub(crate) fn report_stream() -> Result<File, LaunchError> {
    let action = "report the jail";
    let stream = io::stdout().as_fd().try_clone_to_owned().map_err(LaunchError::system(action))?;
    dup2_stdout(io::stderr()).map_err(LaunchError::system(action))?;
    Ok(stream.into())
}

/// Maps init from the file that was verified: as with the rootfs, no copy of it takes time and memory. The file can have
/// changed since then, so it must have the size that the box names.
fn map_init(blobs: &BlobFds) -> Result<&'static [u8], LaunchError> {
    let (path, size) = (fd_path(blobs.init), blobs.init_size);
    let read = |error: io::Error| LaunchError::file("read", &path)(error);
    let file = open_regular(&path, Links::Follow).map_err(|error| read(error.into()))?;
    let found = file.metadata().map_err(read)?.len();
    if found != size {
        return Err(OpenError::size(path, size, found).into());
    }
    krun::map_file(&file, size).map_err(read)
}

/// Gives the machine the devices of shared directories.
fn add_shares(vm: &mut Vm, shares: &[Shared]) -> Result<(), LaunchError> {
    if shares.iter().any(|it| !it.is_writable) {
        vm.add_share(READ_ONLY_TAG, Path::new(shares::READ_ONLY), ShareMode::ReadOnly)?;
    }
    for (source, place) in shares::places(shares) {
        if let MountSource::Writable(number) = source {
            vm.add_share(&writable_tag(number), &place, ShareMode::ReadWrite)?;
        }
    }
    Ok(())
}

/// Gives the machine its first root: init, a file with the nonce, whether mounts of the host follow and the config, and mount
/// points, each in memory. The file is never freed, since libkrun reads it as long as the machine lives. It is one and not two,
/// since init asks the VMM six times for a file that can be opened once.
///
/// # Errors
/// When libkrun refuses.
pub fn add_first_root(
    vm: &mut Vm,
    init: &'static [u8],
    config: &[u8],
    (nonce, has_mounts): (&str, bool),
) -> Result<(), LaunchError> {
    let mark = if has_mounts { MOUNTS_FOLLOW } else { NO_MOUNTS };
    let given = [nonce.as_bytes(), &[mark], config].concat();
    vm.add_memory_root()?;
    for path in KERNEL_DIRECTORIES.into_iter().chain([NEW_ROOT]) {
        vm.add_root_dir(path.as_ref(), 0o755)?;
    }
    // Init keeps its own file, as the program by which an agent asks it for commands.
    vm.add_root_file(INIT_PATH.as_ref(), PROGRAM, init, false)?;
    vm.add_root_file(NONCE_PATH.as_ref(), SECRET, given.leak(), true)?;
    Ok(())
}

/// Becomes another program that ends with its supervisor: `PID PROGRAM ARGUMENT…`. Returns only where
/// that fails.
pub fn follow_as(arguments: &[OsString]) -> LaunchError {
    let [pid, program, arguments @ ..] = arguments else {
        return LaunchError::system::<nix::Error>("follow the supervisor")(nix::Error::EINVAL);
    };
    let pid = pid.to_str().and_then(|pid| pid.parse().ok()).map_or(Pid::from_raw(0), Pid::from_raw);
    if let Err(error) = follow(pid) {
        return error;
    }
    LaunchError::file("start", program)(Command::new(program).args(arguments).exec())
}

/// Ties the life of this process to the supervisor's.
pub(crate) fn follow(supervisor: Pid) -> Result<(), LaunchError> {
    let system = LaunchError::system::<nix::Error>;
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(system("follow the supervisor"))?;
    if getppid() != supervisor {
        return Err(system("follow the supervisor")(nix::Error::ESRCH));
    }
    Ok(())
}

/// Ties the life of this process to that of the supervisor, which reads its standard error, and which a process in a PID
/// namespace cannot name.
fn follow_reader() -> Result<(), LaunchError> {
    let system = LaunchError::system::<nix::Error>;
    // The change of the user has set what `fs.suid_dumpable` says.
    prctl::set_dumpable(false).map_err(system("hide the memory"))?;
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(system("follow the supervisor"))?;
    let stderr = io::stderr();
    let mut watched = [PollFd::new(stderr.as_fd(), PollFlags::empty())];
    let ended = poll(&mut watched, PollTimeout::ZERO).map_err(system("follow the supervisor"))?;
    if ended > 0 { Err(system("follow the supervisor")(nix::Error::ESRCH)) } else { Ok(()) }
}

/// Closes what this process has inherited from whoever started it, but for its standard streams and `kept`. Nothing
/// of its own may be open yet.
///
/// # Errors
/// When the open files cannot be listed.
pub fn close_all_but(kept: &[RawFd]) -> Result<(), LaunchError> {
    match close_between(kept) {
        // Before Linux 5.9.
        Err(nix::Error::ENOSYS) => close_listed(kept),
        closed => closed.map_err(LaunchError::system("close inherited files")),
    }
}

/// Closes all files between two that are kept at once: a box can have hundreds, and to list them takes far longer.
fn close_between(kept: &[RawFd]) -> nix::Result<()> {
    let mut kept: Vec<u32> = kept.iter().filter_map(|fd| u32::try_from(*fd).ok()).collect();
    kept.sort_unstable();
    let mut next = 3;
    for fd in kept.into_iter().filter(|fd| *fd > 2) {
        if fd > next {
            process::close_range(next, fd - 1)?;
        }
        next = fd + 1;
    }
    process::close_range(next, u32::MAX)
}

fn close_listed(kept: &[RawFd]) -> Result<(), LaunchError> {
    let action = LaunchError::file("list", "/proc/self/fd");
    let names = std::fs::read_dir("/proc/self/fd")
        .and_then(|entries| {
            entries.map(|entry| Ok(entry?.file_name())).collect::<Result<Vec<_>, _>>()
        })
        .map_err(action)?;
    let open = names.iter().filter_map(|name| name.to_str()?.parse::<RawFd>().ok());
    for fd in open.filter(|fd| *fd > 2 && !kept.contains(fd)) {
        match close(fd) {
            // The listing's own descriptor is closed already.
            Ok(()) | Err(nix::Error::EBADF) => {}
            Err(error) => return Err(LaunchError::system("close inherited files")(error)),
        }
    }
    Ok(())
}

/// Takes from this process what a VMM does not need.
pub(crate) fn confine() -> Result<(), LaunchError> {
    let system = LaunchError::system::<nix::Error>;
    signals::unblock()?;
    prctl::set_no_new_privs().map_err(system("give up new privileges"))?;
    // Nobody but root reads or traces its memory, which is the guest's.
    prctl::set_dumpable(false).map_err(system("hide the memory"))?;
    // A core file would hold the guest's memory.
    setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(system("forbid core files"))?;
    // Whatever the caller's is: the root directory of the jail is for another user.
    umask(Mode::S_IWGRP | Mode::S_IWOTH);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    use nix::fcntl::{FcntlArg, FdFlag, fcntl};

    use crate::jail::{Layer, Policy};
    use testkit::test_box::{TestBox, config};

    /// A program that runs until it is killed, whatever its argument is.
    const PATIENT: &str = "/usr/bin/yes";

    /// Waits until the process runs another program than this test.
    fn await_exec(vmm: &Vmm) {
        let name = |id: &str| fs::read_to_string(format!("/proc/{id}/comm")).unwrap();
        while name(&vmm.pid().to_string()) != "yes\n" {
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_process_has_the_blobs_and_nothing_else() {
        let made = TestBox::new(&config());
        let opened = crate::opened::open(made.path()).unwrap();
        let other = File::open(made.path().join("index.json")).unwrap();
        let vmm = Vmm::spawn(Path::new(PATIENT), &opened, &[], None).unwrap();
        await_exec(&vmm);
        let proc = PathBuf::from(format!("/proc/{}", vmm.pid()));
        let inherited = |fd: RawFd| fs::read_link(proc.join(format!("fd/{fd}"))).ok();
        for blob in opened.boot_blobs() {
            assert_eq!(inherited(blob.file.as_raw_fd()), Some(blob.path.clone()));
        }
        // Its number may serve the program's loader meanwhile, which opens libraries.
        let others = fs::canonicalize(made.path().join("index.json")).unwrap();
        assert_ne!(inherited(other.as_raw_fd()), Some(others));
        let environment = format!("{STACK}\0");
        assert_eq!(fs::read_to_string(proc.join("environ")).unwrap(), environment);
        assert_eq!(fs::read(proc.join("cmdline")).unwrap(), b"/usr/bin/yes\0vmm\0");
        let flags = |file| FdFlag::from_bits_retain(fcntl(file, FcntlArg::F_GETFD).unwrap());
        assert!(opened.boot_blobs().all(|blob| flags(&blob.file) == FdFlag::FD_CLOEXEC));
    }

    #[test]
    fn the_process_ends_with_its_handle() {
        let made = TestBox::new(&config());
        let vmm =
            Vmm::spawn(Path::new(PATIENT), &crate::opened::open(made.path()).unwrap(), &[], None)
                .unwrap();
        let proc = PathBuf::from(format!("/proc/{}", vmm.pid()));
        assert!(proc.exists());
        drop(vmm);
        assert!(!proc.exists());
    }

    #[test]
    fn a_configuration_reads_back_and_is_sent_once() {
        let made = TestBox::new(&config());
        let opened = crate::opened::open(made.path()).unwrap();
        let sent = VmmConfig {
            size: config().plan.vm,
            blobs: BlobFds::of(&opened),
            config: String::from_utf8(opened.config_bytes.clone()).unwrap(),
            disks: Vec::new(),
            volumes: Vec::new(),
            largest_disk: 0,
            nonce: Nonce::random().unwrap(),
            agent: Some(4088),
            shared_network: Some(9),
            has_network: true,
            has_mounts: true,
            jail: Terms {
                shares: Vec::new(),
                policy: Policy::Require,
                runtime: "/run/b".into(),
                is_root: true,
                ids: None,
                missing: vec![Missing::new(Layer::ControlGroup, "x")],
            },
        };
        let json = serde_json::to_string(&sent).unwrap();
        let read: VmmConfig = serde_json::from_str(&json).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), json);
        assert!(json.contains(sent.nonce.text()));
        assert_eq!(read.config.as_bytes(), opened.config_bytes);
        assert_eq!(read.blobs.rootfs.len(), 3);
        let mut vmm = Vmm::spawn(Path::new(PATIENT), &opened, &[], None).unwrap();
        vmm.configure(&sent).unwrap();
        vmm.go();
        assert!(vmm.configure(&sent).unwrap_err().to_string().contains("has been started"));
    }

    #[test]
    fn init_is_mapped_with_the_size_that_the_box_names() {
        let made = TestBox::new(&config());
        let opened = crate::opened::open(made.path()).unwrap();
        let blobs = BlobFds::of(&opened);
        let init = fs::read(&opened.init.path).unwrap();
        assert_eq!(map_init(&blobs).unwrap(), init);
        let refused = |size| {
            File::options().write(true).open(&opened.init.path).unwrap().set_len(size).unwrap();
            map_init(&blobs).unwrap_err().to_string()
        };
        for size in [3, 1 << 40] {
            let expected = format!("has {size} bytes, but its manifest says {}", init.len());
            let refused = refused(size);
            assert!(refused.contains(&expected), "{refused}");
        }
    }

    #[test]
    fn libkrun_takes_the_first_root() {
        let mut vm = Vm::new(1, 256).unwrap();
        add_first_root(&mut vm, b"init", b"{}", ("nonce", false)).unwrap();
    }

    #[test]
    fn a_configuration_of_noise_is_refused() {
        for noise in ["", "{}", "[1,2", "\0"] {
            let error = enter(noise.as_bytes()).to_string();
            assert!(error.starts_with("cannot read the configuration"), "{error}");
        }
    }
}
