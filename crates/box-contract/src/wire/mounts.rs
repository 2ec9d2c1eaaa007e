//! The directories, files, sockets, volumes and task that the host gives to a box for one run.

use std::io;

use serde::{Deserialize, Serialize};

use super::frame::{Body, put};

use crate::{NetworkMode, Scope, TaskPlan};

/// The byte after the nonce if the host sends [`Mounts`].
pub const MOUNTS_FOLLOW: u8 = b'+';
/// The byte after the nonce if the host sends no [`Mounts`].
pub const NO_MOUNTS: u8 = b'-';
/// The tag of the [virtio-fs](https://docs.kernel.org/filesystems/virtiofs.html) device for all read-only shares. Each
/// share is a directory in it, named by the share's number.
pub const READ_ONLY_TAG: &str = "shares";
/// The tag of the virtio-fs device for all writable shares together. Each share is a directory in it, named by the share's
/// number. It is used if the VM has no room for one device per writable share.
pub const WRITABLE_TAG: &str = "writable";
/// The maximum number of devices in addition to the devices that every box has. The VM has eleven interrupt lines, of
/// which one stays free.
pub const MAX_DEVICES: usize = 4;

/// The maximum length of all files of the host together, of which a box gets copies, in bytes.
pub const MAX_FILES_BYTES: u64 = 1 << 20;

/// Returns the number of devices that a box needs: one per disk, one for all writable shares together (`are_written`), one
/// for all read-only shares and mounted skills together (`are_read`), and one for a shared network.
pub const fn devices(disks: usize, are_written: bool, are_read: bool, mode: NetworkMode) -> usize {
    disks + are_written as usize + are_read as usize + matches!(mode, NetworkMode::Shared) as usize
}

/// Returns the tag of the virtio-fs device of a writable share.
pub fn writable_tag(number: u8) -> String {
    format!("share-{number}")
}

/// The mounts and the task that the host gives to a box for one run. If a mount point is inside another mount, its mount
/// is later in the list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Mounts {
    /// The user id that owns the files of shares, in the user namespace of the VMM process.
    pub uid: u32,
    /// The group id that owns the files of shares, in the same user namespace.
    pub gid: u32,
    /// The mounts.
    pub mounts: Vec<Mount>,
    /// The files of the host of which components get copies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<HostFile>,
    /// The Unix sockets of the host to which components can connect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sockets: Vec<HostSocket>,
    /// The names of the skills among the mounts that the plan does not have. Each is mounted read-only at its name below
    /// [`SKILLS_PATH`](crate::plan::SKILLS_PATH), in all components.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
    /// The task. It takes precedence over the plan's task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskPlan>,
}

impl Mounts {
    /// Returns whether writable shares are on one device.
    pub fn are_together(&self) -> bool {
        self.mounts.iter().any(|it| matches!(it.source, MountSource::Together(_)))
    }
}

/// A file of the host. Each component of its scope gets a read-only copy of the content that the file has when the box starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HostFile {
    /// The path of the copy, absolute.
    pub guest: String,
    /// The components that get a copy.
    pub scope: Scope,
    /// The permissions of the file on the host.
    pub mode: u32,
    /// The length of the file in bytes: the sum of its [`FilePart`]s.
    pub size: u32,
}

/// A Unix stream socket of the host. Each component of its scope has a socket at `guest`, whose connections lead to the host's
/// socket. Its position in [`Mounts::sockets`] is its number in [`OpenSocket`](super::OpenSocket).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HostSocket {
    /// The path of the component's socket, absolute.
    pub guest: String,
    /// The components that can connect.
    pub scope: Scope,
}

/// A part of the content of a file of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePart {
    /// The bytes, at most [`MAX_OUTPUT`](super::MAX_OUTPUT).
    pub data: Vec<u8>,
}

impl Body for FilePart {
    fn encode(&self, frame: &mut Vec<u8>) -> io::Result<()> {
        put(frame, &[], &self.data);
        Ok(())
    }

    fn decode(data: Vec<u8>) -> io::Result<Self> {
        Ok(Self { data })
    }
}

/// A directory or a disk of the host, mounted in components.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Mount {
    /// The mounted directory or disk.
    pub source: MountSource,
    /// The mount point, absolute.
    pub guest: String,
    /// The components that see the mount.
    pub scope: Scope,
}

/// The device of a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum MountSource {
    /// The directory with this number in the device [`READ_ONLY_TAG`].
    ReadOnly(u16),
    /// The device with the tag [`writable_tag`].
    Writable(u8),
    /// The directory with this number in the device [`WRITABLE_TAG`].
    Together(u8),
    /// The disk with this number after the scratch disks. It has an ext4 file system.
    Disk(u8),
}
