//! The configuration that a VMM process reads from its standard input.

use std::os::fd::{AsRawFd, RawFd};

use box_contract::Vm as VmSize;
use box_layout::{Blob, OpenBox};
use serde::{Deserialize, Serialize};

use crate::Nonce;
use crate::jail::Terms;
use crate::root_disk::Part;

/// The configuration of the VMM process.
#[derive(Debug, Serialize, Deserialize)]
pub struct VmmConfig {
    /// The number of virtual CPUs and the memory of the VM.
    pub size: VmSize,
    /// The inherited descriptors of the blobs.
    pub blobs: BlobFds,
    /// The verified config of the box, byte for byte, for init.
    pub config: String,
    /// The inherited descriptors of the scratch disks. They are writable, and their content is lost when the VM ends.
    pub disks: Vec<RawFd>,
    /// The inherited descriptors of the volumes.
    pub volumes: Vec<RawFd>,
    /// The disk for the components' roots.
    pub roots_disk: Option<RootsDisk>,
    /// The size of the largest of these disks, in bytes.
    pub largest_disk: u64,
    /// The secret that init sends first, to authenticate itself.
    pub nonce: Nonce,
    /// The agent's port in the guest, one number for vsock and TCP. libkrun connects
    /// [`AGENT_SOCKET`](crate::AGENT_SOCKET) to it. `None` if the agent has no port.
    pub agent: Option<u16>,
    /// The inherited socket of the network that the VM shares with the host, if it shares one.
    pub shared_network: Option<RawFd>,
    /// Whether the guest reaches its network through [`NETWORK_SOCKET`](crate::NETWORK_SOCKET).
    pub has_network: bool,
    /// Whether the supervisor sends init a message with the mounts of the host (directories and volumes) or a task.
    pub has_mounts: bool,
    /// Whether all writable shares are on one device, because there is no room for one device each.
    pub shares_together: bool,
    /// The supervisor's decisions on the jail.
    pub jail: Terms,
}

/// The disk for the files that components write to their roots. It is the last disk of the VM.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RootsDisk {
    /// The inherited descriptor.
    pub fd: RawFd,
    /// Whether the disk outlives the VM. Then the guest's flushes reach the host's disk.
    pub is_kept: bool,
}

/// The descriptors of a box's blobs. They have the same numbers in the supervisor and in the VMM process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BlobFds {
    pub(crate) kernel: RawFd,
    pub(crate) init: RawFd,
    /// The size of init in the box's manifest, in bytes.
    pub(crate) init_size: u64,
    /// The parts of the rootfs, in their order on its disk.
    pub(crate) rootfs: Vec<Part>,
}

impl BlobFds {
    /// Returns the descriptors of a box's open files.
    pub fn of(opened: &OpenBox) -> Self {
        let part = |it: &Blob| Part { fd: it.file.as_raw_fd(), size: it.descriptor.size };
        Self {
            kernel: opened.kernel.file.as_raw_fd(),
            init: opened.init.file.as_raw_fd(),
            init_size: opened.init.descriptor.size,
            rootfs: opened.rootfs.parts().iter().map(part).collect(),
        }
    }

    /// Returns the descriptors of the files that libkrun opens again: the kernel and the parts of the rootfs.
    pub(crate) fn opened_again(&self) -> Vec<RawFd> {
        let parts = self.rootfs.iter().map(|it| it.fd);
        [self.kernel].into_iter().chain(parts).collect()
    }
}
