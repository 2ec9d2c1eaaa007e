//! A component's `/dev`: the devices that every program can expect, and no others.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, symlink};
use std::path::Path;

use nix::fcntl::{self, OFlag};
use nix::mount::MsFlags;
use nix::sys::stat::{Mode, SFlag, fstat, makedev, mknod};

use crate::boot::mount_fs;
use crate::error::{InitError, Step as _};
use crate::sys;

/// The null device: major and minor number.
const NULL: (u64, u64) = (1, 3);
/// The character devices: name, major and minor number
/// ([devices.txt](https://docs.kernel.org/admin-guide/devices.html)). Every user can read and write them.
const NODES: [(&str, u64, u64); 6] = [
    ("null", NULL.0, NULL.1),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];

/// The symbolic links: name and target.
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// The options of a component's `/dev/pts`. `max` leaves pseudo-terminals for the other component: the kernel allows
/// 4096 in total (`kernel.pty.max`).
const PTS_OPTIONS: &str = "newinstance,ptmxmode=0666,mode=0620,gid=5,max=1024";

/// Builds a component's `/dev` at `dev`. `shm_bytes` is the size of `/dev/shm`.
///
/// # Errors
/// The step that failed, with the entry.
pub(crate) fn build(dev: &Path, shm_bytes: u64) -> Result<(), InitError> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    mount_fs("tmpfs", dev, flags, "mode=0755,size=64k")?;
    for (name, major, minor) in NODES {
        mknod(&dev.join(name), SFlag::S_IFCHR, everyone(), makedev(major, minor))
            .step_with(|| format!("make /dev/{name}"))?;
    }
    for (name, target) in LINKS {
        symlink(target, dev.join(name)).step_with(|| format!("link /dev/{name}"))?;
    }
    let pts = dev.join("pts");
    std::fs::create_dir(&pts).step("make /dev/pts")?;
    mount_fs("devpts", &pts, flags, PTS_OPTIONS)?;
    let shm = dev.join("shm");
    std::fs::create_dir(&shm).step("make /dev/shm")?;
    let options = format!("mode=1777,size={shm_bytes}");
    mount_fs("tmpfs", &shm, flags | MsFlags::MS_NODEV, &options)
}

/// Opens the null device for reading and writing.
///
/// Must be called before the component's first program runs. Root of the component can replace `/dev/null`, and a later
/// open would open the replacement.
///
/// # Errors
/// The error of the file, or that the file is not the null device.
pub(crate) fn open_null() -> Result<File, InitError> {
    let step = "open the null device";
    let null = OpenOptions::new().read(true).write(true).open("/dev/null").step(step)?;
    let found = null.metadata().step(step)?;
    if found.file_type().is_char_device() && found.rdev() == makedev(NULL.0, NULL.1) {
        return Ok(null);
    }
    Err("/dev/null is something else").step(step)
}

/// Returns whether a file is the null device.
///
/// # Errors
/// The kernel's error.
pub(crate) fn is_null(file: &OwnedFd) -> nix::Result<bool> {
    let found = fstat(file)?;
    let is_device =
        SFlag::from_bits_truncate(found.st_mode & SFlag::S_IFMT.bits()) == SFlag::S_IFCHR;
    Ok(is_device && found.st_rdev == makedev(NULL.0, NULL.1))
}

/// The component's `/dev/pts`, in which pseudo-terminals are made.
#[derive(Debug)]
pub(crate) struct Terminals(OwnedFd);

impl Terminals {
    /// Opens `/dev/pts`. Like [`open_null`], must be called before the component's first program runs.
    ///
    /// # Errors
    /// The error of the directory.
    pub(crate) fn open() -> Result<Self, InitError> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        fcntl::open("/dev/pts", flags, Mode::empty()).map(Self).step("open /dev/pts")
    }

    /// Makes a pseudo-terminal. Returns both ends: init's, which is non-blocking, and the command's.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn make(&self) -> nix::Result<(OwnedFd, OwnedFd)> {
        let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let ours = fcntl::openat(&self.0, "ptmx", flags, Mode::empty())?;
        let theirs = sys::terminal::open_peer(ours.as_fd())?;
        Ok((ours, theirs))
    }
}

const fn everyone() -> Mode {
    Mode::from_bits_truncate(0o666)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};

    #[test]
    fn the_null_device_is_empty_and_takes_everything() {
        let mut null = open_null().unwrap();
        null.write_all(b"anything").unwrap();
        assert_eq!(null.read(&mut [0; 1]).unwrap(), 0);
    }
}
