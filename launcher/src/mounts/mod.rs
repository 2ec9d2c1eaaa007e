//! What a start mounts in a box: directories and sockets of the host, volumes and scratch disks.

mod disk_file;
pub mod files;
pub mod guest_paths;
pub mod roots_disk;
pub mod scratch;
pub mod shares;
pub mod sockets;
pub mod volumes;
