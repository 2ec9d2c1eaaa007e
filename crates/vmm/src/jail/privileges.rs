//! The user, the capabilities and the limits of the VMM process.

use box_contract::rules::MAX_FILES;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;

use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{Gid, Uid, geteuid, getpid, setgroups, setresgid, setresuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};
use serde::{Deserialize, Serialize};

/// The first user id for VMs. [systemd's table of ids](https://systemd.io/UIDS-GIDS/) lists no use of the range from
/// here to 2^31.
const FIRST_ID: u32 = 0x7000_0000;
/// The capabilities of a process that serves writable directories, in a user namespace that has one user. With them,
/// libkrun tries to become the guest's users. The filter turns these calls into no-ops, so all files that the guest
/// writes belong to that one user.
const KEPT: CapabilitySet = CapabilitySet::SETUID.union(CapabilitySet::SETGID);
/// The permission bits of a file's group to read and write.
const GROUP_MAY: u32 = 0o060;
/// The permission bits of all other users to read and write.
const OTHERS_MAY: u32 = 0o006;
const OTHERS_MAY_READ: u32 = 0o004;

/// The user and the group of a VMM process: ids that no other visible process has, or the owner of the shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ids {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The group that may use the device of KVM. `None` if all users may.
    device_group: Option<u32>,
}

impl Ids {
    /// Chooses the ids of the VM that this process supervises. Returns `None` if this process does not run as root,
    /// because it then cannot change ids. If the shares have an `owner`, chooses its ids, so that the owner also owns
    /// the files that the guest writes there.
    ///
    /// # Errors
    /// The reason why no other user can run the VM.
    pub fn choose<'a>(
        device: &File,
        blobs: impl IntoIterator<Item = &'a File>,
        owner: Option<(u32, u32)>,
    ) -> Result<Option<Self>, String> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        let device_group = device_group(device)?;
        for blob in blobs {
            let mode = blob.metadata().map_err(|error| error.to_string())?.mode();
            if mode & OTHERS_MAY_READ == 0 {
                return Err("the box's files can be read by their owner only".to_owned());
            }
        }
        let own = FIRST_ID + getpid().as_raw().unsigned_abs();
        let (uid, gid) = owner.unwrap_or((own, own));
        Ok(Some(Self { uid, gid, device_group }))
    }

    /// Changes this process's user and group. Keeps the capability CAP_SYS_ADMIN, which some hosts require for the next
    /// step: making a user namespace.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn take(self) -> nix::Result<()> {
        let (user, group) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        let groups: Vec<Gid> = self.device_group.map(Gid::from_raw).into_iter().collect();
        setgroups(&groups)?;
        setresgid(group, group, group)?;
        prctl::set_keepcaps(true)?;
        setresuid(user, user, user)?;
        let (none, admin) = (CapabilitySet::empty(), CapabilitySet::SYS_ADMIN);
        let kept = CapabilitySets { effective: admin, permitted: admin, inheritable: none };
        // An error is ignored: a process in a container may lack the capability.
        set_capabilities(None, kept).ok();
        Ok(())
    }
}

/// The users who may use a device in addition to its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Users {
    /// Every user.
    Everybody,
    /// The members of a group, by its number.
    Group(u32),
    /// No user but root.
    Nobody,
}

impl Users {
    /// Determines the users from the mode of `device`.
    pub fn of(device: &Metadata) -> Self {
        if device.mode() & OTHERS_MAY == OTHERS_MAY {
            Self::Everybody
        } else if device.mode() & GROUP_MAY == GROUP_MAY {
            Self::Group(device.gid())
        } else {
            Self::Nobody
        }
    }
}

/// Returns the group that is needed to use a device. `None` if all users may.
fn device_group(device: &File) -> Result<Option<u32>, String> {
    let found = device.metadata().map_err(|error| error.to_string())?;
    match Users::of(&found) {
        Users::Everybody => Ok(None),
        Users::Group(group) if group != 0 => Ok(Some(group)),
        Users::Group(_) | Users::Nobody => Err("only root can use /dev/kvm".to_owned()),
    }
}

/// Returns the number of files that a VMM process may have open: for root the kernel's maximum per process, and
/// otherwise the user's hard limit. The number is at most a quarter of the host's maximum (`fs.file-max`), because the
/// guest decides how many files of shares are open, and other programs of the host need files, too.
pub fn most_files() -> u64 {
    let own = || getrlimit(Resource::RLIMIT_NOFILE).map_or(MAX_FILES, |(_, most)| most);
    let most = if geteuid().is_root() { MAX_FILES } else { own().min(MAX_FILES) };
    let of_host = fs::read_to_string("/proc/sys/fs/file-max").ok();
    let of_host = of_host.and_then(|it| it.trim().parse::<u64>().ok());
    of_host.map_or(most, |all| most.min(all / 4))
}

/// Sets the resource limits of this process: the size of a file in bytes (`largest`, if set), and the number of open
/// files. `enter::confine` has forbidden core files already.
///
/// # Errors
/// The kernel's error.
pub(super) fn limit(largest: Option<u64>, files: u64) -> nix::Result<()> {
    // libkrun keeps a descriptor for each file of a share that the guest has looked up, and panics if none is left for
    // a connection.
    if setrlimit(Resource::RLIMIT_NOFILE, files, files).is_err() {
        // Root in a container may not be allowed to raise its limit.
        let (_, own) = getrlimit(Resource::RLIMIT_NOFILE)?;
        let files = own.min(files);
        setrlimit(Resource::RLIMIT_NOFILE, files, files)?;
    }
    // Without writable shares, libkrun writes only to disks, pipes and sockets.
    if let Some(largest) = largest {
        setrlimit(Resource::RLIMIT_FSIZE, largest, largest)?;
    }
    setrlimit(Resource::RLIMIT_MSGQUEUE, 0, 0)
}

/// Drops all capabilities from the bounding set
/// ([capabilities(7)](https://man7.org/linux/man-pages/man7/capabilities.7.html)).
///
/// # Errors
/// The kernel's error.
fn bound() -> io::Result<()> {
    clear_ambient_capability_set()?;
    for capability in CapabilitySet::all().iter() {
        match remove_capability_from_bounding_set(capability) {
            // The kernel does not know this capability.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Drops all capabilities, including those that a new user namespace has given the process. With `keeps`, the
/// capabilities [`KEPT`] remain.
///
/// # Errors
/// The kernel's error.
pub(super) fn give_up(keeps: bool) -> io::Result<()> {
    // An error is ignored unless the user is root: only root may gain capabilities from the bounding set.
    let bounded = bound();
    let none = CapabilitySet::empty();
    let kept = if keeps { KEPT } else { none };
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: none })?;
    bounded.or_else(|error| if geteuid().is_root() { Err(error) } else { Ok(()) })
}
