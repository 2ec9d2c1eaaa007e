//! Early boot: mounts the rootfs as `/`, and the kernel's file systems.
//!
//! The kernel starts init from a small virtual root (virtio-fs). It contains only init, one file with the nonce and the
//! box's config, and empty directories. [pivot_root(2)](https://man7.org/linux/man-pages/man2/pivot_root.2.html) works
//! there because this root is mounted on the kernel's internal rootfs. Afterwards, only init's executable is still
//! reachable: it is bound to `/run/box-exec` before the switch.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use box_contract::manifest::MAX_CONFIG;
use box_contract::plan::{INIT_PATH, NEW_ROOT, NONCE_LENGTH, NONCE_PATH, RUN_PATH};
use box_contract::wire::MOUNTS_FOLLOW;
use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::unistd::{chdir, pivot_root};

use crate::cgroup;
use crate::error::{InitError, Step as _};
use crate::sys;

/// The block device of the rootfs: the first virtio disk.
pub const ROOT_DEVICE: &str = "/dev/vda";
/// The file that limits how many user namespaces can be made
/// ([namespaces(7)](https://man7.org/linux/man-pages/man7/namespaces.7.html)).
const MAX_USER_NAMESPACES: &str = "/proc/sys/user/max_user_namespaces";

/// The file that sets which processes a process may trace ([Yama](https://docs.kernel.org/admin-guide/LSM/Yama.html)).
const PTRACE_SCOPE: &str = "/proc/sys/kernel/yama/ptrace_scope";

pub(crate) const NO_SUID_DEV: MsFlags = MsFlags::MS_NOSUID.union(MsFlags::MS_NODEV);
pub(crate) const NO_SUID_DEV_EXEC: MsFlags = NO_SUID_DEV.union(MsFlags::MS_NOEXEC);

/// The path to which init's executable is bound. It is also bound into the agent's root, as `box-exec`.
pub(crate) const SELF: &str = "/run/box-exec";
/// The options of the file system at [`RUN_PATH`]. It contains only [`SELF`], the sockets to which programs
/// of components connect, and mount points, such as the components' roots.
const RUN_OPTIONS: &str = "mode=0700,size=64k";

/// The kernel's file systems that init needs: type, mount point and options. With `nsdelegate`, a workload cannot
/// change the limits of the topmost cgroup of its cgroup namespace, even if it may write to the files of the limits
/// ([cgroup v2](https://docs.kernel.org/admin-guide/cgroup-v2.html)).
const KERNEL_FILESYSTEMS: [(&str, &str, &str); 3] =
    [("proc", "/proc", ""), ("sysfs", "/sys", ""), ("cgroup2", cgroup::MOUNT, "nsdelegate")];

/// Mounts `/dev`. If the kernel has already mounted it, sets the flags of that mount.
///
/// # Errors
/// The error of the mount.
pub fn mount_devices() -> Result<(), InitError> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    match mount(Some("dev"), "/dev", Some("devtmpfs"), flags, None::<&str>) {
        // The kernel has mounted `/dev` already, without these flags.
        Err(Errno::EBUSY) => {
            let again = flags | MsFlags::MS_REMOUNT | MsFlags::MS_BIND;
            mount(None::<&str>, "/dev", None::<&str>, again, None::<&str>)
        }
        mounted => mounted,
    }
    .step("mount devtmpfs on /dev")
}

/// The size of the nonce and the mark, which precede the config in [`NONCE_PATH`].
const HEAD: usize = NONCE_LENGTH + 1;

/// Returns the greatest number of bytes that are read from [`NONCE_PATH`]: one more than the limit, so that a config
/// that is too long is detected.
fn most() -> usize {
    usize::try_from(MAX_CONFIG).map_or(usize::MAX, |limit| HEAD + limit + 1)
}

/// The data that the launcher gives to one boot, in the first root.
#[derive(Debug, PartialEq, Eq)]
pub struct Given {
    /// The secret with which init authenticates itself to the launcher.
    pub nonce: String,
    /// Whether the launcher sends a message with mounts of the host or a task.
    pub mounts_follow: bool,
    /// The JSON of the box's config, whose bytes the launcher has verified.
    pub config: Vec<u8>,
}

impl Given {
    /// Reads the data from the first root. Must be called before the first root is left.
    ///
    /// # Errors
    /// The error of the file.
    pub fn read() -> Result<Self, InitError> {
        // One call reads the whole file. Each further call would make virtio-fs ask the VMM for the file's length
        // again. The unused rest of the buffer is never touched, so it takes no memory.
        let mut bytes = vec![0; most()];
        let length = File::open(NONCE_PATH).and_then(|mut file| file.read(&mut bytes));
        length.and_then(|length| Self::of(&bytes[..length])).step("read the nonce")
    }

    fn of(bytes: &[u8]) -> io::Result<Self> {
        let (head, config) = bytes.split_at_checked(HEAD).ok_or(ErrorKind::UnexpectedEof)?;
        let (nonce, mark) = head.split_at(NONCE_LENGTH);
        Ok(Self {
            nonce: String::from_utf8_lossy(nonce).into_owned(),
            mounts_follow: mark == [MOUNTS_FOLLOW],
            config: config.to_vec(),
        })
    }
}

/// Mounts the rootfs at [`NEW_ROOT`].
///
/// # Errors
/// The error of the mount.
pub fn mount_rootfs() -> Result<(), InitError> {
    let flags = MsFlags::MS_RDONLY | MsFlags::MS_NODEV;
    mount(Some(ROOT_DEVICE), NEW_ROOT, Some("erofs"), flags, None::<&str>).step("mount the rootfs")
}

/// Mounts a tmpfs at [`RUN_PATH`] of the rootfs, and binds init's executable to a file in it.
///
/// # Errors
/// The step that failed.
pub(crate) fn keep_own_file() -> Result<(), InitError> {
    let below = |path: &str| PathBuf::from(format!("{NEW_ROOT}{path}"));
    mount_fs("tmpfs", &below(RUN_PATH), NO_SUID_DEV_EXEC, RUN_OPTIONS)?;
    let target = below(SELF);
    std::fs::write(&target, "").step("make a place for init's own file")?;
    mount(Some(INIT_PATH), &target, None::<&str>, MsFlags::MS_BIND, None::<&str>)
        .step("keep init's own file")
}

/// Makes the mounted rootfs `/`, and moves `/dev` into it.
///
/// # Errors
/// The step that failed.
pub(crate) fn switch_root() -> Result<(), InitError> {
    chdir(NEW_ROOT).step("enter the rootfs")?;
    mount(Some("/dev"), "dev", None::<&str>, MsFlags::MS_MOVE, None::<&str>)
        .step("move /dev into the rootfs")?;
    enter_root()
}

/// Makes the current directory, which is a mount point, the root, and unmounts the old root.
pub(crate) fn enter_root() -> Result<(), InitError> {
    pivot_root(".", ".").step("make the new root the root")?;
    umount2(".", MntFlags::MNT_DETACH).step("let the old root go")?;
    chdir("/").step("enter the new root")
}

/// Mounts the kernel's file systems: proc, sysfs and cgroup2.
///
/// # Errors
/// The error of the mount, with the file system.
pub(crate) fn mount_kernel_filesystems() -> Result<(), InitError> {
    KERNEL_FILESYSTEMS.into_iter().try_for_each(|(fs, target, options)| {
        mount_fs(fs, Path::new(target), NO_SUID_DEV_EXEC, options)
    })
}

/// Mounts a file system that needs no device.
///
/// # Errors
/// The error of the mount, with the file system.
pub(crate) fn mount_fs(
    fs: &str,
    target: &Path,
    flags: MsFlags,
    options: &str,
) -> Result<(), InitError> {
    mount(Some(fs), target, Some(fs), flags, Some(options))
        .step_with(|| format!("mount {fs} on {}", target.display()))
}

/// Forbids new user namespaces. Only init can write this file, so no workload can allow them again.
///
/// In a new user namespace a workload would have all capabilities. It could mount file systems, change its limits, and
/// reach parts of the kernel that are otherwise closed to it.
///
/// # Errors
/// The error of the file.
pub(crate) fn forbid_user_namespaces() -> Result<(), InitError> {
    std::fs::write(MAX_USER_NAMESPACES, "0").step("forbid user namespaces")
}

/// Lets a process trace only its descendants, if the kernel has Yama. A kernel from Debian's source does not restrict
/// tracing by default.
///
/// # Errors
/// The error of the file, unless the file does not exist.
pub(crate) fn restrict_tracing() -> Result<(), InitError> {
    match std::fs::write(PTRACE_SCOPE, "1") {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        written => written.step("restrict tracing"),
    }
}

/// The kernel's limits that real programs reach, with the values that desktop distributions have: watches of files (editors, bundlers),
/// their users, and the parts of a process's memory (Elasticsearch, JVMs). A cgroup's limit of memory covers what they take.
const LIMITS: [(&str, &str); 3] = [
    ("/proc/sys/fs/inotify/max_user_watches", "524288"),
    ("/proc/sys/fs/inotify/max_user_instances", "1024"),
    ("/proc/sys/vm/max_map_count", "1048576"),
];

/// Raises [`LIMITS`], as far as the kernel has them.
///
/// # Errors
/// The error of the file, unless the file does not exist.
pub(crate) fn raise_limits() -> Result<(), InitError> {
    LIMITS.into_iter().try_for_each(|(path, limit)| match std::fs::write(path, limit) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        written => written.step_with(|| format!("raise {path}")),
    })
}

/// Brings the loopback device of the current network namespace up.
///
/// # Errors
/// The kernel's error.
pub(crate) fn loopback_up() -> Result<(), InitError> {
    network_socket().and_then(|it| sys::loopback_up(it.as_fd())).step("bring loopback up")
}

/// Returns a socket for requests that configure the current network namespace.
///
/// # Errors
/// The kernel's error.
pub(crate) fn network_socket() -> nix::Result<OwnedFd> {
    socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
}

#[cfg(test)]
mod tests {
    use box_contract::wire::NO_MOUNTS;

    use super::*;

    #[test]
    fn what_the_launcher_gives_is_taken_apart() {
        let of = |mark, config: &[u8]| {
            let nonce = "a".repeat(NONCE_LENGTH);
            let given = Given::of(&[nonce.as_bytes(), &[mark], config].concat()).unwrap();
            assert_eq!(given.nonce, nonce);
            (given.mounts_follow, given.config)
        };
        assert_eq!(of(MOUNTS_FOLLOW, b"{}"), (true, b"{}".to_vec()));
        assert_eq!(of(NO_MOUNTS, b""), (false, Vec::new()));
        let cut = Given::of(&[b'a'; NONCE_LENGTH]).unwrap_err();
        assert_eq!(cut.kind(), ErrorKind::UnexpectedEof);
    }
}
