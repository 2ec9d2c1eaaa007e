//! Lists directories as the component sees them.

use std::fs::{self, FileType};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Prints a line for each entry below a directory: its type, as `ls` shows it, its mode in octal, and its path. A mount point has a line
/// `mount PATH`, and what is mounted there is not listed.
pub(crate) fn list(directory: &str) {
    if let Err(error) = try_list(directory.into()) {
        println!("{error}");
    }
}

fn try_list(directory: PathBuf) -> io::Result<()> {
    let mounts = mount_points()?;
    let mut pending = vec![directory];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if mounts.contains(&path) {
                println!("mount {}", path.display());
                continue;
            }
            println!("{}", line(&path)?);
            if path.symlink_metadata()?.is_dir() {
                pending.push(path);
            }
        }
    }
    Ok(())
}

fn line(path: &Path) -> io::Result<String> {
    let found = path.symlink_metadata()?;
    let (kind, mode) = (letter(found.file_type()), found.mode() & 0o7777);
    Ok(format!("{kind}{mode:04o} {}", path.display()))
}

/// Returns the mount points of the component, which are the fifth fields of proc_pid_mountinfo(5).
fn mount_points() -> io::Result<Vec<PathBuf>> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    Ok(mounts.lines().filter_map(|line| line.split(' ').nth(4)).map(PathBuf::from).collect())
}

fn letter(kind: FileType) -> char {
    match kind {
        kind if kind.is_dir() => 'd',
        kind if kind.is_symlink() => 'l',
        kind if kind.is_char_device() => 'c',
        kind if kind.is_block_device() => 'b',
        kind if kind.is_fifo() => 'p',
        kind if kind.is_socket() => 's',
        _ => '-',
    }
}
