//! The VMM process from inside: from reading its configuration to becoming the VM.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

use box_contract::network::NETWORK_PORT;
use box_contract::plan::{CONTROL_PORT, INIT_PATH, MAX_SCRATCH, NEW_ROOT, NONCE_PATH};
use box_contract::rules::KERNEL_DIRECTORIES;
use box_contract::wire::{
    MAX_DEVICES, MOUNTS_FOLLOW, MountSource, NO_MOUNTS, READ_ONLY_TAG, WRITABLE_TAG, writable_tag,
};
use box_layout::OpenError;
use host_fs::OsError;
use host_fs::read::{Links, open_regular};
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{close, dup2_stdout};
use serde::de::DeserializeOwned;

use crate::follow::follow_reader;
use crate::jail::shares::{self, ServedShare};
use crate::jail::{Files, Jail, fd_path};
use crate::krun::{DiskMode, PortMode, ShareMode, Vm, log_to_stderr, map_file};
use crate::root_disk::RootDisk;
use crate::{
    AGENT_SOCKET, BlobFds, CONTROL_SOCKET, GUEST_MAC, NETWORK_SOCKET, RootsDisk, VmmConfig,
    VmmError, close_all_but, signals,
};

/// libkrun's ids of the scratch disks.
const SCRATCH: [&CStr; MAX_SCRATCH] = [c"scratch-0", c"scratch-1", c"scratch-2"];
/// libkrun's ids of the volumes.
const VOLUMES: [&CStr; MAX_DEVICES] = [c"volume-0", c"volume-1", c"volume-2", c"volume-3"];
/// libkrun's id of the disk for the components' roots.
const ROOTS_DISK: &CStr = c"roots";
/// A regular file that every user may execute (`S_IFREG | 0755`).
const PROGRAM: u32 = 0o100_755;
/// A regular file that only root may read (`S_IFREG | 0400`).
const SECRET: u32 = 0o100_400;
/// Reads a `VmmConfig` and becomes the VM that it describes. Returns only on failure.
pub fn enter(config: impl Read) -> VmmError {
    match prepare(config) {
        Ok(vm) => VmmError::Krun(vm.start()),
        Err(error) => error,
    }
}

/// Reads a `VmmConfig`, confines this process, and returns the VM, ready to start.
///
/// # Errors
/// If the configuration is malformed, libkrun refuses it, or the jail lacks a required layer.
pub fn prepare(config: impl Read) -> Result<Vm, VmmError> {
    let mut input = config;
    let config: VmmConfig = configuration(&mut input)?;
    let BlobFds { kernel, init, .. } = config.blobs;
    let blobs = config.blobs.opened_again();
    let roots = config.roots_disk.as_ref().map(|it| &it.fd);
    let disks = config.disks.iter().chain(&config.volumes).chain(roots);
    let disks: Vec<_> = disks.copied().collect();
    let network = config.shared_network;
    close_all_but(&[&*blobs, &[init], &*disks, network.as_slice()].concat())?;
    let init_bytes = map_init(&config.blobs)?;
    close(init).map_err(OsError::system("close init"))?;
    confine()?;
    // The disk is made before the jail, because the jail forbids writing to files. Landlock needs no rule for the
    // disk's descriptor: Landlock does not restrict files in memory (memfd_create(2)).
    let root_disk = RootDisk::of(&config.blobs.rootfs);
    let root_disk = root_disk.map_err(OsError::system("make the disk of the rootfs"))?;
    let files = Files {
        blobs: &blobs,
        disks: &disks,
        largest: config.largest_disk,
        has_network: network.is_some(),
    };
    let shares = config.jail.shares.clone();
    let jail = Jail::enter(config.jail, files)?;
    // Must follow the change of the user, which resets the parent-death signal.
    follow_reader()?;
    log_to_stderr()?;
    let mut vm = Vm::new(config.size.cpus, config.size.memory_mib)?;
    vm.set_kernel(&fd_path(kernel))?;
    root_disk.attach(&mut vm)?;
    for (id, disk) in SCRATCH.iter().zip(&config.disks) {
        vm.add_disk(id, &fd_path(*disk), DiskMode::ReadWrite)?;
    }
    for (id, disk) in VOLUMES.iter().zip(&config.volumes) {
        vm.add_disk(id, &fd_path(*disk), DiskMode::Kept)?;
    }
    if let Some(RootsDisk { fd, is_kept }) = config.roots_disk {
        let mode = if is_kept { DiskMode::Kept } else { DiskMode::ReadWrite };
        vm.add_disk(ROOTS_DISK, &fd_path(fd), mode)?;
    }
    add_shares(&mut vm, &shares, config.shares_together)?;
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

/// Reads the configuration from the supervisor. [`await_go`] can wait on the same input afterwards.
pub fn configuration<T: DeserializeOwned>(input: &mut impl Read) -> Result<T, OsError> {
    let config = serde_json::Deserializer::from_reader(input).into_iter().next();
    let config = config.unwrap_or_else(|| Err(serde::de::Error::custom("it is empty")));
    config.map_err(OsError::system("read the configuration from standard input"))
}

/// Waits until the supervisor closes the pipe. It does so after it has received the report on the jail.
pub fn await_go(input: &mut impl Read) -> Result<(), OsError> {
    let waited = io::copy(input, &mut io::sink());
    waited.map(drop).map_err(OsError::system("wait for the supervisor"))
}

/// Returns a duplicate of standard output, to which the report on the jail is written. Afterwards, standard output is
/// the log.
pub fn report_stream() -> Result<File, OsError> {
    let action = "report the jail";
    let stream = io::stdout().as_fd().try_clone_to_owned().map_err(OsError::system(action))?;
    dup2_stdout(io::stderr()).map_err(OsError::system(action))?;
    Ok(stream.into())
}

/// Maps init from its verified file, because a copy would take time and memory. The file can have changed after the
/// verification, so its size is compared with the size in the box's manifest.
pub(crate) fn map_init(blobs: &BlobFds) -> Result<&'static [u8], VmmError> {
    let (path, size) = (fd_path(blobs.init), blobs.init_size);
    let read = |error: io::Error| OsError::file("read", &path)(error);
    let file = open_regular(&path, Links::Follow).map_err(|error| read(error.into()))?;
    let found = file.metadata().map_err(read)?.len();
    if found != size {
        return Err(OpenError::size(path, size, found).into());
    }
    Ok(map_file(&file, size).map_err(read)?)
}

/// Adds the virtio-fs devices of shared directories to the VM.
fn add_shares(vm: &mut Vm, shares: &[ServedShare], together: bool) -> Result<(), VmmError> {
    if shares.iter().any(|it| !it.is_writable) {
        vm.add_share(READ_ONLY_TAG, Path::new(shares::READ_ONLY), ShareMode::ReadOnly)?;
    }
    if together {
        let place = Path::new(shares::WRITABLE);
        return Ok(vm.add_share(WRITABLE_TAG, place, ShareMode::ReadWrite)?);
    }
    for (source, place) in shares::places(shares) {
        if let MountSource::Writable(number) = source {
            vm.add_share(&writable_tag(number), &place, ShareMode::ReadWrite)?;
        }
    }
    Ok(())
}

/// Builds the VM's first root in memory. It contains init, the mount points, and one file with the nonce, the mark for
/// mounts and the config. The memory of this file is leaked, because libkrun reads it until the VM ends. The data is in
/// one file, because init sends the VMM six requests for each file that can be opened only once.
///
/// # Errors
/// If libkrun refuses.
pub fn add_first_root(
    vm: &mut Vm,
    init: &'static [u8],
    config: &[u8],
    (nonce, has_mounts): (&str, bool),
) -> Result<(), VmmError> {
    let mark = if has_mounts { MOUNTS_FOLLOW } else { NO_MOUNTS };
    let given = [nonce.as_bytes(), &[mark], config].concat();
    vm.add_memory_root()?;
    for path in KERNEL_DIRECTORIES.into_iter().chain([NEW_ROOT]) {
        vm.add_root_dir(path.as_ref(), 0o755)?;
    }
    // Init's file can be opened more than once, because the agent runs it to send commands to init.
    vm.add_root_file(INIT_PATH.as_ref(), PROGRAM, init, false)?;
    vm.add_root_file(NONCE_PATH.as_ref(), SECRET, given.leak(), true)?;
    Ok(())
}

/// Unblocks the stop signals, sets `no_new_privs` and the umask, and forbids core files and access to this process's
/// memory.
pub fn confine() -> Result<(), VmmError> {
    let system = OsError::system::<nix::Error>;
    signals::unblock()?;
    prctl::set_no_new_privs().map_err(system("give up new privileges"))?;
    // Only root may read or trace the memory, which is the guest's.
    prctl::set_dumpable(false).map_err(system("hide the memory"))?;
    // A core file would contain the guest's memory.
    setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(system("forbid core files"))?;
    // Replaces the caller's umask, because another user has to access the root directory of the jail.
    umask(Mode::S_IWGRP | Mode::S_IWOTH);
    Ok(())
}
