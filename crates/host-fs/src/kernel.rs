//! The file systems of the kernel, which have no files that anybody keeps.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The file systems by which a kernel is asked and told, and those of devices. Who may write there as root changes the
/// host, and who reads there learns of its processes.
const KERNELS: [&str; 19] = [
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nsfs",
    "proc",
    "pstore",
    "rpc_pipefs",
    "securityfs",
    "sysfs",
    "tracefs",
];

/// Returns where a path without links lies in such a file system.
///
/// # Errors
/// The operating system's: `/proc` is not mounted, for example.
pub fn around(path: &Path) -> io::Result<Option<PathBuf>> {
    mounted(|place| path.starts_with(place) && place != Path::new("/"))
}

/// Returns where a directory without links has, or lies in, such a file system.
///
/// # Errors
/// As [`around`].
pub fn around_or_below(directory: &Path) -> io::Result<Option<PathBuf>> {
    mounted(|place| {
        place.starts_with(directory) || directory.starts_with(place) && place != Path::new("/")
    })
}

fn mounted(is_meant: impl Fn(&Path) -> bool) -> io::Result<Option<PathBuf>> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    Ok(mounts
        .lines()
        .filter_map(mount)
        .find_map(|(place, kind)| (KERNELS.contains(&kind) && is_meant(&place)).then_some(place)))
}

/// Returns the error that a file system at a place has no files.
pub fn no_files(place: &Path) -> io::Error {
    io::Error::other(format!("{} is not of files: it is the kernel's", place.display()))
}

/// Reads a line of proc_pid_mountinfo(5): where something is mounted, and of which kind it is.
fn mount(line: &str) -> Option<(PathBuf, &str)> {
    let (own, device) = line.split_once(" - ")?;
    let place = own.split(' ').nth(4)?;
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    let place = escapes.iter().fold(place.to_owned(), |text, (from, to)| text.replace(from, to));
    Some((place.into(), device.split(' ').next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_kernels_is_known_by_its_file_system() {
        let proc = || Some(PathBuf::from("/proc"));
        for path in ["/proc", "/proc/self/environ", "/proc/1/root/etc"] {
            assert_eq!(around(Path::new(path)).unwrap(), proc(), "{path}");
        }
        assert_eq!(around(Path::new("/")).unwrap(), None);
        assert_eq!(around(Path::new("/processes")).unwrap(), None);
        assert!(around_or_below(Path::new("/")).unwrap().is_some());
        assert_eq!(around_or_below(Path::new("/proc/sys")).unwrap(), proc());
        assert_eq!(
            no_files(Path::new("/sys")).to_string(),
            "/sys is not of files: it is the kernel's"
        );
    }

    #[test]
    fn a_mount_has_a_place_and_a_kind() {
        let line =
            r"36 35 98:0 /mnt1 /mnt\0402 rw,noatime master:1 - ext4 /dev/root rw,errors=continue";
        assert_eq!(mount(line), Some(("/mnt 2".into(), "ext4")));
    }
}
