//! A component's `/dev`: the devices that every program may expect, and no others.

use std::os::unix::fs::symlink;
use std::path::Path;

use nix::mount::{MsFlags, mount};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};

use crate::error::{InitError, Step as _};

/// The character devices: name, major and minor number (the kernel's `devices.txt`). All are
/// readable and writable for everyone.
const NODES: [(&str, u64, u64); 6] = [
    ("null", 1, 3),
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

/// Fills `/dev` at `dev`; `shm_bytes` is the size of `/dev/shm`.
///
/// # Errors
/// The step that failed, naming the entry.
pub(crate) fn build(dev: &Path, shm_bytes: u64) -> Result<(), InitError> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    mount_at(dev, "tmpfs", flags, "mode=0755,size=64k")?;
    for (name, major, minor) in NODES {
        mknod(&dev.join(name), SFlag::S_IFCHR, everyone(), makedev(major, minor))
            .step_with(|| format!("make /dev/{name}"))?;
    }
    for (name, target) in LINKS {
        symlink(target, dev.join(name)).step_with(|| format!("link /dev/{name}"))?;
    }
    let pts = dev.join("pts");
    std::fs::create_dir(&pts).step("make /dev/pts")?;
    mount_at(&pts, "devpts", flags, "newinstance,ptmxmode=0666,mode=0620,gid=5")?;
    let shm = dev.join("shm");
    std::fs::create_dir(&shm).step("make /dev/shm")?;
    let options = format!("mode=1777,size={shm_bytes}");
    mount_at(&shm, "tmpfs", flags | MsFlags::MS_NODEV, &options)
}

const fn everyone() -> Mode {
    Mode::from_bits_truncate(0o666)
}

fn mount_at(target: &Path, fs: &str, flags: MsFlags, options: &str) -> Result<(), InitError> {
    mount(Some(fs), target, Some(fs), flags, Some(options))
        .step_with(|| format!("mount {fs} on {}", target.display()))
}
