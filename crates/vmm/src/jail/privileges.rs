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

/// The first of the users that machines get. systemd's documentation of the range of users has nothing from here
/// to 2^31 ("Users, Groups, UIDs and GIDs on systemd Systems").
const FIRST_ID: u32 = 0x7000_0000;
/// The capabilities of a process that serves writable directories, in a user namespace that has one user. libkrun
/// believes then that it can become the guest's users, which the filter of system calls makes come to nothing: so
/// whoever writes there, the files are that user's.
const KEPT: CapabilitySet = CapabilitySet::SETUID.union(CapabilitySet::SETGID);
/// The permission bits of a file's group to read and write.
const GROUP_MAY: u32 = 0o060;
/// Those of everybody else.
const OTHERS_MAY: u32 = 0o006;
const OTHERS_MAY_READ: u32 = 0o004;

/// A user and a group that no other process has which this one can see; or those whose directories are shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ids {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The group that may use the device of KVM, where everybody may not.
    device_group: Option<u32>,
}

impl Ids {
    /// Returns those of the machine that this process supervises; `None` where it is not root's, and has no others to
    /// give. With an owner of shared directories, it is them: what the machine writes there is theirs.
    ///
    /// # Errors
    /// Why no other user can run the machine.
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

    /// Becomes this user, who keeps the one capability that the next step needs: some hosts let only those make a user
    /// namespace that have it.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn take(self) -> nix::Result<()> {
        let (user, group) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        let groups: Vec<Gid> = self.device_group.map(Gid::from_raw).into_iter().collect();
        setgroups(&groups)?;
        setresgid(group, group, group)?;
        prctl::set_keepcaps(true)?;
        setresuid(user, user, user)?;
        let (none, admin) = (CapabilitySet::empty(), CapabilitySet::SYS_ADMIN);
        let kept = CapabilitySets { effective: admin, permitted: admin, inheritable: none };
        // In a container it may not have been there.
        set_capabilities(None, kept).ok();
        Ok(())
    }
}

/// Those who may use a device beside its owner.
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
    /// Reads them of a device's permissions.
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

/// Returns the group that one has to be in to use a device; `None` where everybody may.
fn device_group(device: &File) -> Result<Option<u32>, String> {
    let found = device.metadata().map_err(|error| error.to_string())?;
    match Users::of(&found) {
        Users::Everybody => Ok(None),
        Users::Group(group) if group != 0 => Ok(Some(group)),
        Users::Group(_) | Users::Nobody => Err("only root may use the device of KVM".to_owned()),
    }
}

/// Returns how many files a machine may have open that this process starts: root's as many as the kernel allows one
/// process, a user's as many as that user may have. The guest decides how many of shared directories it opens, and the
/// host's other programs need some, so that it is at most a quarter of all (`fs.file-max`).
pub fn most_files() -> u64 {
    let own = || getrlimit(Resource::RLIMIT_NOFILE).map_or(MAX_FILES, |(_, most)| most);
    let most = if geteuid().is_root() { MAX_FILES } else { own().min(MAX_FILES) };
    let of_host = fs::read_to_string("/proc/sys/fs/file-max").ok();
    let of_host = of_host.and_then(|it| it.trim().parse::<u64>().ok());
    of_host.map_or(most, |all| most.min(all / 4))
}

/// Sets the limits of this process, which may write files of so many bytes, if there is a limit, and have so many
/// files open; it has no core files already.
///
/// # Errors
/// The kernel's.
pub(super) fn limit(largest: Option<u64>, files: u64) -> nix::Result<()> {
    // libkrun panics where a connection finds no descriptor, and has one for each file of a share that the guest knows.
    if setrlimit(Resource::RLIMIT_NOFILE, files, files).is_err() {
        // A root of a container may not be allowed more than it has.
        let (_, own) = getrlimit(Resource::RLIMIT_NOFILE)?;
        let files = own.min(files);
        setrlimit(Resource::RLIMIT_NOFILE, files, files)?;
    }
    // Beside disks and shares it writes to pipes and sockets only.
    if let Some(largest) = largest {
        setrlimit(Resource::RLIMIT_FSIZE, largest, largest)?;
    }
    setrlimit(Resource::RLIMIT_MSGQUEUE, 0, 0)
}

/// Bounds what this process can ever have to no capability at all.
///
/// # Errors
/// The kernel's.
fn bound() -> io::Result<()> {
    clear_ambient_capability_set()?;
    for capability in CapabilitySet::all().iter() {
        match remove_capability_from_bounding_set(capability) {
            // This kernel does not know it.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Gives up all capabilities, also those that a new user namespace has brought, but for those of [`KEPT`] where
/// `keeps` says so.
///
/// # Errors
/// The kernel's.
pub(super) fn give_up(keeps: bool) -> io::Result<()> {
    // A process without the capability to bound them has no way to get any.
    let bounded = bound();
    let none = CapabilitySet::empty();
    let kept = if keeps { KEPT } else { none };
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: none })?;
    bounded.or_else(|error| if geteuid().is_root() { Err(error) } else { Ok(()) })
}
