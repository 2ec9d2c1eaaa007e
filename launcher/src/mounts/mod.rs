//! What a start mounts in a box: directories of the host, volumes and scratch disks.

pub mod guest_paths;
pub mod scratch;
pub mod shares;
pub mod volumes;
