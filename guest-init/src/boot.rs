//! From the kernel's hand-over to a running system: the rootfs as `/`, and the kernel's own
//! filesystems.
//!
//! The kernel starts init from a small virtual root (virtio-fs) that holds only init, one file with the nonce and
//! the box's config, and empty directories. `pivot_root` works from it, as it is mounted on the kernel's internal
//! rootfs and not that rootfs itself; so nothing of it stays reachable but init's own file, which is
//! bound to `/run/box-exec` before.

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
/// How many user namespaces there may be beside the first (`user_namespaces(7)`).
const MAX_USER_NAMESPACES: &str = "/proc/sys/user/max_user_namespaces";

/// Whom a process may trace (Documentation/admin-guide/LSM/Yama.rst).
const PTRACE_SCOPE: &str = "/proc/sys/kernel/yama/ptrace_scope";

pub(crate) const NO_SUID_DEV: MsFlags = MsFlags::MS_NOSUID.union(MsFlags::MS_NODEV);
pub(crate) const NO_SUID_DEV_EXEC: MsFlags = NO_SUID_DEV.union(MsFlags::MS_NOEXEC);

/// Init's own file, from which `box-exec` is bound into the agent's root.
pub(crate) const SELF: &str = "/run/box-exec";
/// The options of the filesystem at [`RUN_PATH`], which holds mount points only: of the components' roots, and [`SELF`].
const RUN_OPTIONS: &str = "mode=0700,size=64k";

/// The kernel's filesystems that init itself needs: type, mount point and options. `nsdelegate` keeps
/// a workload from the limits at the top of its own cgroup namespace, however it came to write there.
const KERNEL_FILESYSTEMS: [(&str, &str, &str); 3] =
    [("proc", "/proc", ""), ("sysfs", "/sys", ""), ("cgroup2", cgroup::MOUNT, "nsdelegate")];

/// Mounts `/dev`, or gives its flags to the mount that the kernel has made.
///
/// # Errors
/// The mount's.
pub fn mount_devices() -> Result<(), InitError> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    match mount(Some("dev"), "/dev", Some("devtmpfs"), flags, None::<&str>) {
        // The kernel has mounted it, without the flags.
        Err(Errno::EBUSY) => {
            let again = flags | MsFlags::MS_REMOUNT | MsFlags::MS_BIND;
            mount(None::<&str>, "/dev", None::<&str>, again, None::<&str>)
        }
        mounted => mounted,
    }
    .step("mount devtmpfs on /dev")
}

/// The size of what precedes the config in [`NONCE_PATH`].
const HEAD: usize = NONCE_LENGTH + 1;

/// Returns how many bytes are read: one more than there may be, so that a config that is too long is seen to be so.
fn most() -> usize {
    usize::try_from(MAX_CONFIG).map_or(usize::MAX, |limit| HEAD + limit + 1)
}

/// What the launcher gives to one boot, in the first root.
#[derive(Debug, PartialEq, Eq)]
pub struct Given {
    /// It proves to the launcher that this is the init that it started.
    pub nonce: String,
    /// Whether the launcher sends mounts of the host.
    pub mounts_follow: bool,
    /// The JSON of the box's config, whose bytes the launcher has verified.
    pub config: Vec<u8>,
}

impl Given {
    /// Reads it, before the first root is left.
    ///
    /// # Errors
    /// The file's.
    pub fn read() -> Result<Self, InitError> {
        // In one call, which ends before the buffer's end only at the file's: with each further one virtio-fs would ask the VMM
        // again how long the file is. Memory that nothing is read into is never touched.
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
/// The mount's.
pub fn mount_rootfs() -> Result<(), InitError> {
    let flags = MsFlags::MS_RDONLY | MsFlags::MS_NODEV;
    mount(Some(ROOT_DEVICE), NEW_ROOT, Some("erofs"), flags, None::<&str>).step("mount the rootfs")
}

/// Mounts the filesystem at [`RUN_PATH`] of the rootfs, and keeps init's own file there.
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

/// Makes the mounted rootfs `/`, taking `/dev` along.
///
/// # Errors
/// The step that failed.
pub(crate) fn switch_root() -> Result<(), InitError> {
    chdir(NEW_ROOT).step("enter the rootfs")?;
    mount(Some("/dev"), "dev", None::<&str>, MsFlags::MS_MOVE, None::<&str>)
        .step("move /dev into the rootfs")?;
    enter_root()
}

/// Makes the current directory, which is a mount point, the root, and lets the old root go.
pub(crate) fn enter_root() -> Result<(), InitError> {
    pivot_root(".", ".").step("make the new root the root")?;
    umount2(".", MntFlags::MNT_DETACH).step("let the old root go")?;
    chdir("/").step("enter the new root")
}

/// Mounts what the kernel shows as files.
///
/// # Errors
/// The mount's, naming the filesystem.
pub(crate) fn mount_kernel_filesystems() -> Result<(), InitError> {
    KERNEL_FILESYSTEMS.into_iter().try_for_each(|(fs, target, options)| {
        mount_fs(fs, Path::new(target), NO_SUID_DEV_EXEC, options)
    })
}

/// Mounts a filesystem that needs no device.
///
/// # Errors
/// The mount's, naming the filesystem.
pub(crate) fn mount_fs(
    fs: &str,
    target: &Path,
    flags: MsFlags,
    options: &str,
) -> Result<(), InitError> {
    mount(Some(fs), target, Some(fs), flags, Some(options))
        .step_with(|| format!("mount {fs} on {}", target.display()))
}

/// Forbids new user namespaces, for good: nobody but init may write here.
///
/// In one of its own a workload would be root with all capabilities, could mount, and so get at
/// its own limits and at much of the kernel that is otherwise out of its reach.
///
/// # Errors
/// The file's.
pub(crate) fn forbid_user_namespaces() -> Result<(), InitError> {
    std::fs::write(MAX_USER_NAMESPACES, "0").step("forbid user namespaces")
}

/// Lets a process trace only those that it has started, on kernels that have Yama: Debian's source has it off.
///
/// # Errors
/// The file's, where it is there.
pub(crate) fn restrict_tracing() -> Result<(), InitError> {
    match std::fs::write(PTRACE_SCOPE, "1") {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        written => written.step("restrict tracing"),
    }
}

/// Brings loopback up in the current network namespace.
///
/// # Errors
/// The kernel's.
pub(crate) fn loopback_up() -> Result<(), InitError> {
    network_socket().and_then(|it| sys::loopback_up(it.as_fd())).step("bring loopback up")
}

/// Returns a socket by which the current network namespace can be set up.
///
/// # Errors
/// The kernel's.
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
