//! A safe wrapper for the part of libkrun's C API that a box needs, and for mapping files into memory.
//!
//! Each unsafe block is one call. Each pointer argument comes from a `CStr` or a slice that outlives the call. Every
//! resource is named explicitly; libkrun's implicit console, vsock and init are switched off in [`Vm::new`].
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, IntoRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::{ptr, slice};

use rustix::mm::{MapFlags, ProtFlags, mmap};

/// The tag of the virtio-fs device that the guest's kernel mounts as its first root.
const ROOT_TAG: &CStr = c"/dev/root";
/// `KRUN_KERNEL_FORMAT_ELF`.
const KERNEL_FORMAT_ELF: u32 = 1;
/// `KRUN_DISK_FORMAT_RAW`, the format of every file of a disk: files in other formats can refer to files of the host.
const DISK_FORMAT_RAW: u32 = 0;
/// `KRUN_DISK_FORMAT_VMDK`, only for a VMDK descriptor that this program has written.
const DISK_FORMAT_VMDK: u32 = 2;
/// `KRUN_SYNC_NONE`: the guest sees a disk without a write cache, and sends no flushes.
const SYNC_NONE: u32 = 0;
/// `KRUN_SYNC_FULL`: libkrun passes a flush of the guest to the host's disk with fsync(2).
const SYNC_FULL: u32 = 2;
/// `KRUN_LOG_LEVEL_ERROR`. If the VM has no terminal, libkrun logs the guest's console at this level.
const LOG_ERROR: u32 = 1;
/// `KRUN_LOG_STYLE_NEVER`: no colours.
const LOG_PLAIN: u32 = 2;
/// `KRUN_LOG_OPTION_NO_ENV`: `RUST_LOG` does not change what is logged.
const LOG_NO_ENV: u32 = 1;
/// The value for an absent file descriptor.
const NO_FD: i32 = -1;
const STDERR: i32 = 2;
/// The kernel parameter that mounts devtmpfs on `/dev` of the first root (`drivers/base/devtmpfs.c`).
const MOUNT_DEVICES: &CStr = c"devtmpfs.mount=1";
/// The number of pointers that `krun_set_env` reads from its array (libkrun's private `MAX_ARGS`). libkrun adds the
/// strings to the kernel's command line.
const MAX_WORDS: usize = 4096;
/// None of libkrun's `NET_FEATURE_…` bits.
const NO_FEATURES: u32 = 0;
/// None of libkrun's `NET_FLAG_…` bits, which ask libkrun's init for DHCP.
const NO_FLAGS: u32 = 0;

/// A failed call of libkrun.
#[derive(Debug, thiserror::Error)]
#[error("libkrun refused {call}: {source}")]
pub struct KrunError {
    /// The name of libkrun's function.
    pub call: &'static str,
    /// libkrun's negative result, as an error number of the operating system.
    #[source]
    pub source: io::Error,
}

/// The side that opens the connections of a vsock port which libkrun ties to a Unix socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortMode {
    /// The guest connects to the port, and libkrun then connects to the socket.
    GuestConnects,
    /// A program of the host connects to the socket, which libkrun makes and listens on.
    HostConnects,
}

/// The access of a VM to a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskMode {
    /// The guest reads the disk.
    ReadOnly,
    /// The guest reads and writes the disk, whose content need not outlive the VM.
    ReadWrite,
    /// The guest reads and writes the disk, and the guest's flushes reach the host's disk.
    Kept,
}

/// The access of a VM to a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareMode {
    /// The guest reads the directory. libkrun refuses every change.
    ReadOnly,
    /// The guest reads and writes the directory.
    ReadWrite,
}

/// Sends libkrun's log (errors only) and the guest's console to standard error.
///
/// # Errors
/// If libkrun refuses.
///
/// # Panics
/// libkrun panics if the process has a logger already.
pub fn log_to_stderr() -> Result<(), KrunError> {
    // SAFETY: standard error is a descriptor that libkrun does not take ownership of.
    let code = unsafe { krun::krun_init_log(STDERR, LOG_ERROR, LOG_PLAIN, LOG_NO_ENV) };
    checked("krun_init_log", code).map(drop)
}

/// Maps the first `size` bytes of a file into memory until the process ends.
///
/// # Errors
/// If the kernel refuses, or `size` is zero.
pub fn map_file(file: &File, size: u64) -> io::Result<&'static [u8]> {
    let size = usize::try_from(size).map_err(io::Error::other)?;
    let (anywhere, read, own) = (ptr::null_mut(), ProtFlags::READ, MapFlags::PRIVATE);
    // SAFETY: the kernel chooses an unused address range.
    let start = unsafe { mmap(anywhere, size, read, own, file.as_fd(), 0) }?;
    // SAFETY: the mapping is never unmapped, and it is read-only. If another process writes to the file, the bytes
    // change, and no code relies on their values. If it truncates the file, an access ends this process.
    Ok(unsafe { slice::from_raw_parts(start.cast(), size) })
}

/// A virtual machine that is being configured.
#[derive(Debug)]
pub struct Vm {
    context: u32,
}

impl Vm {
    /// Makes a VM without libkrun's implicit devices. The VM's console is written to libkrun's log: without a terminal,
    /// libkrun offers the kernel no other console.
    ///
    /// # Errors
    /// If libkrun refuses the size.
    pub fn new(cpus: u8, memory_mib: u32) -> Result<Self, KrunError> {
        let context = checked("krun_create_ctx", krun::krun_create_ctx())?;
        checked("krun_set_vm_config", krun::krun_set_vm_config(context, cpus, memory_mib))?;
        checked("krun_disable_implicit_init", krun::krun_disable_implicit_init(context))?;
        checked("krun_disable_implicit_console", krun::krun_disable_implicit_console(context))?;
        checked("krun_disable_implicit_vsock", krun::krun_disable_implicit_vsock(context))?;
        // Leaves out KVM's timer chip (PIT): a guest with KVM's clock does not use it, and making it takes 14 ms, a
        // grace period of the host's RCU. This process then emulates the interrupt controller.
        checked("krun_split_irqchip", krun::krun_split_irqchip(context, true))?;
        // SAFETY: no descriptor is passed, so none can be closed or used twice.
        let code = unsafe { krun::krun_add_virtio_console_default(context, NO_FD, NO_FD, NO_FD) };
        checked("krun_add_virtio_console_default", code)?;
        Ok(Self { context })
    }

    /// Sets the ELF kernel at `path`, with libkrun's default command line and the parameter that
    /// [`Self::add_memory_root`] adds.
    ///
    /// # Errors
    /// If libkrun refuses the path.
    pub fn set_kernel(&mut self, path: &Path) -> Result<(), KrunError> {
        let path = c_path("krun_set_kernel", path)?;
        // SAFETY: the path is a C string for the call; null stands for no initramfs and the default command line.
        let code = unsafe {
            krun::krun_set_kernel(
                self.context,
                path.as_ptr(),
                KERNEL_FORMAT_ELF,
                ptr::null(),
                ptr::null(),
            )
        };
        checked("krun_set_kernel", code).map(drop)
    }

    /// Attaches the raw disk at `path` as the next virtio-blk disk.
    ///
    /// # Errors
    /// If libkrun refuses the path.
    pub fn add_disk(&mut self, id: &CStr, path: &Path, mode: DiskMode) -> Result<(), KrunError> {
        self.add_image(id, path, DISK_FORMAT_RAW, mode)
    }

    /// Attaches the files that the VMDK descriptor at `path` lists, concatenated, as the next virtio-blk disk,
    /// read-only. libkrun opens every path in the descriptor, so this program must have written the descriptor.
    ///
    /// # Errors
    /// If libkrun refuses the path.
    pub fn add_extents(&mut self, id: &CStr, path: &Path) -> Result<(), KrunError> {
        self.add_image(id, path, DISK_FORMAT_VMDK, DiskMode::ReadOnly)
    }

    fn add_image(
        &mut self,
        id: &CStr,
        path: &Path,
        format: u32,
        mode: DiskMode,
    ) -> Result<(), KrunError> {
        let path = c_path("krun_add_disk3", path)?;
        let sync = if mode == DiskMode::Kept { SYNC_FULL } else { SYNC_NONE };
        // SAFETY: both strings are C strings for the call; libkrun copies them.
        let code = unsafe {
            krun::krun_add_disk3(
                self.context,
                id.as_ptr(),
                path.as_ptr(),
                format,
                mode == DiskMode::ReadOnly,
                false,
                sync,
            )
        };
        checked("krun_add_disk3", code).map(drop)
    }

    /// Adds the directory at `path` as a virtio-fs device without a window of shared memory (DAX). The guest mounts the
    /// device by `tag`.
    ///
    /// # Errors
    /// If libkrun refuses.
    pub fn add_share(&mut self, tag: &str, path: &Path, mode: ShareMode) -> Result<(), KrunError> {
        let (tag, path) =
            (c_path("krun_add_virtiofs3", Path::new(tag))?, c_path("krun_add_virtiofs3", path)?);
        let is_read_only = mode == ShareMode::ReadOnly;
        // SAFETY: both strings are C strings for the call; libkrun copies them.
        let code = unsafe {
            krun::krun_add_virtiofs3(self.context, tag.as_ptr(), path.as_ptr(), 0, is_read_only)
        };
        checked("krun_add_virtiofs3", code).map(drop)
    }

    /// Makes the kernel's first root: a file system in the VMM's memory, without a directory of the host. If this root
    /// has a directory `/dev`, the kernel mounts devtmpfs there before it starts init.
    ///
    /// Init needs that mount: the kernel starts init without standard streams if the console, which a thread of the VMM
    /// sets up, is not ready yet. Rust's runtime then opens `/dev/null`, and aborts if the file is absent.
    ///
    /// # Errors
    /// If libkrun refuses.
    pub fn add_memory_root(&mut self) -> Result<(), KrunError> {
        let mut words = [ptr::null(); MAX_WORDS];
        words[0] = MOUNT_DEVICES.as_ptr();
        // SAFETY: the array has the length that libkrun reads, and ends with null. Its one word is a C string, which
        // libkrun copies.
        let code = unsafe { krun::krun_set_env(self.context, words.as_ptr()) };
        checked("krun_set_env", code)?;
        // SAFETY: the tag is a C string; a null path asks for a file system without a directory.
        let code = unsafe {
            krun::krun_add_virtiofs3(self.context, ROOT_TAG.as_ptr(), ptr::null(), 0, false)
        };
        checked("krun_add_virtiofs3", code).map(drop)
    }

    /// Adds an empty directory to the first root, by its path in the guest.
    ///
    /// # Errors
    /// If there is no first root, or the parent directory does not exist.
    pub fn add_root_dir(&mut self, path: &Path, mode: u32) -> Result<(), KrunError> {
        let path = c_path("krun_fs_add_overlay_dir", path)?;
        // SAFETY: both strings are C strings for the call; libkrun copies them.
        let code = unsafe {
            krun::krun_fs_add_overlay_dir(self.context, ROOT_TAG.as_ptr(), path.as_ptr(), mode)
        };
        checked("krun_fs_add_overlay_dir", code).map(drop)
    }

    /// Adds a file to the first root, by its path in the guest; `mode` is an `st_mode`. With `goes`, the guest can look
    /// up and open the file only once.
    ///
    /// # Errors
    /// If there is no first root.
    pub fn add_root_file(
        &mut self,
        path: &Path,
        mode: u32,
        data: &'static [u8],
        goes: bool,
    ) -> Result<(), KrunError> {
        let path = c_path("krun_fs_add_overlay_file", path)?;
        // SAFETY: the strings are C strings for the call; the data, which libkrun does not copy,
        // lives as long as the process.
        let code = unsafe {
            krun::krun_fs_add_overlay_file(
                self.context,
                ROOT_TAG.as_ptr(),
                path.as_ptr(),
                data.as_ptr(),
                data.len(),
                mode,
                goes,
            )
        };
        checked("krun_fs_add_overlay_file", code).map(drop)
    }

    /// Adds the vsock device without socket impersonation (TSI), so that it gives the guest no network.
    ///
    /// # Errors
    /// If the VM has a vsock device already.
    pub fn add_vsock(&mut self) -> Result<(), KrunError> {
        checked("krun_add_vsock", krun::krun_add_vsock(self.context, 0)).map(drop)
    }

    /// Ties a vsock port of the host to a Unix socket.
    ///
    /// # Errors
    /// If there is no vsock device, or libkrun is to make a socket that exists already.
    pub fn add_vsock_port(
        &mut self,
        port: u32,
        socket: &Path,
        mode: PortMode,
    ) -> Result<(), KrunError> {
        let socket = c_path("krun_add_vsock_port2", socket)?;
        let listen = mode == PortMode::HostConnects;
        // SAFETY: the path is a C string for the call; libkrun copies it.
        let code =
            unsafe { krun::krun_add_vsock_port2(self.context, port, socket.as_ptr(), listen) };
        checked("krun_add_vsock_port2", code).map(drop)
    }

    /// Adds a network device that exchanges frames over the stream socket `socket`. The length of each frame precedes
    /// it.
    ///
    /// The device offers no optional features: with checksum or segmentation offload, the guest would accept received
    /// packets unchecked, and keep buffers of 64 KiB instead of 1.5 KiB.
    ///
    /// # Errors
    /// If libkrun refuses.
    pub fn add_network(&mut self, socket: RawFd, mac: [u8; 6]) -> Result<(), KrunError> {
        // SAFETY: the hardware address has six bytes, and libkrun copies it. Null stands for no path. libkrun takes
        // ownership of the descriptor, which this process has inherited for this purpose.
        let code = unsafe {
            krun::krun_add_net_unixstream(
                self.context,
                ptr::null(),
                socket,
                mac.as_ptr(),
                NO_FEATURES,
                NO_FLAGS,
            )
        };
        checked("krun_add_net_unixstream", code).map(drop)
    }

    /// Adds the first serial port (COM1), for output only. libkrun writes each byte to `output` at once.
    ///
    /// # Errors
    /// If libkrun refuses.
    pub fn add_serial_output(&mut self, output: OwnedFd) -> Result<(), KrunError> {
        // SAFETY: libkrun takes ownership of the descriptor.
        let code = unsafe {
            krun::krun_add_serial_console_default(self.context, NO_FD, output.into_raw_fd())
        };
        checked("krun_add_serial_console_default", code).map(drop)
    }

    /// Turns this process into the VM. The process ends when the guest powers off. Returns only on failure.
    pub fn start(self) -> KrunError {
        let code = krun::krun_start_enter(self.context);
        KrunError { call: "krun_start_enter", source: errno(code) }
    }
}

fn errno(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code.saturating_neg())
}

/// Converts a result of libkrun, which is a value or a negative error number.
fn checked(call: &'static str, code: i32) -> Result<u32, KrunError> {
    u32::try_from(code).map_err(|_| KrunError { call, source: errno(code) })
}

fn c_path(call: &'static str, path: &Path) -> Result<CString, KrunError> {
    CString::new(path.as_os_str().as_encoded_bytes())
        .map_err(|nul| KrunError { call, source: nul.into() })
}
