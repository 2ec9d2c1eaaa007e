//! What a start mounts in a box: directories and sockets of the host, volumes and scratch disks.

mod disk_copy;
mod disk_file;
pub mod files;
pub mod guest_paths;
pub mod roots_disk;
pub mod scratch;
pub mod shares;
pub mod sockets;
pub mod volumes;

use std::io;
use std::path::Path;

use host_fs::known::Known;
use host_fs::way::Way;

/// Returns whether the file at `path`, which has no links, is in `directory` or its subdirectories, also through bind mounts.
fn is_file_in(path: &Path, directory: &Path) -> io::Result<bool> {
    let way = path.parent().map(Way::to).transpose()?;
    Ok(way.is_some_and(|it| it.is_in(&Known::of([directory.to_owned()]))))
}
