//! The things that a host gives a box for one run: directories, disks that stay, and a task.

use serde::{Deserialize, Serialize};

use crate::{NetworkMode, Scope, TaskPlan};

/// The byte after the nonce, in its file, of a boot in which [`Mounts`] come.
pub const MOUNTS_FOLLOW: u8 = b'+';
/// The byte there of any other.
pub const NO_MOUNTS: u8 = b'-';
/// The tag of the virtio-fs device with all read-only shares, each a directory named by its number.
pub const READ_ONLY_TAG: &str = "shares";
/// The devices that a machine can have beside those of every box, of its eleven interrupt lines: one is left.
pub const MAX_DEVICES: usize = 4;

/// Returns how many of them a box takes: one for each disk, one for each share that is written to, one for all others
/// together, mounted skills included, and one for a network that it shares with the host.
pub const fn devices(disks: usize, written: usize, are_read: bool, mode: NetworkMode) -> usize {
    disks + written + are_read as usize + matches!(mode, NetworkMode::Shared) as usize
}

/// Returns the tag of the virtio-fs device of a writable share.
pub fn writable_tag(number: u8) -> String {
    format!("share-{number}")
}

/// The mounts and the task that a host gives to a box for one run. A mount inside another one comes after it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Mounts {
    /// The user to whom files of shares belong, as the VMM process sees it.
    pub uid: u32,
    /// Their group.
    pub gid: u32,
    /// The mounts.
    pub mounts: Vec<Mount>,
    /// The task, instead of that of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskPlan>,
}

/// A directory or a disk of the host in components.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Mount {
    /// The directory or disk.
    pub source: MountSource,
    /// Where, absolute.
    pub guest: String,
    /// The components that see it.
    pub scope: Scope,
}

/// The device of a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum MountSource {
    /// The directory with this number of [`READ_ONLY_TAG`].
    ReadOnly(u16),
    /// The device [`writable_tag`].
    Writable(u8),
    /// The disk with this number after the scratch disks, with an ext4 file system on it.
    Disk(u8),
}
