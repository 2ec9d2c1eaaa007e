//! The file systems of the kernel, such as `/proc`, which store no files of users.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The types of file systems that are interfaces of the kernel or contain devices. A process that writes to them as root
/// can change the host, and a process that reads them learns about the host's processes.
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

/// Returns the mount point of the kernel's file system that contains `path`, which must have no links. `None` if the
/// innermost mount around `path` stores files of users, such as `/dev/shm` in `/dev`.
///
/// # Errors
/// The operating system's error, for example if `/proc` is not mounted.
pub fn around(path: &Path) -> io::Result<Option<PathBuf>> {
    Ok(innermost(&mounts()?, path))
}

/// Returns the mount point of a file system of the kernel that contains `directory` or is mounted below it. `directory`
/// must have no links.
///
/// # Errors
/// The errors of [`around`].
pub fn around_or_below(directory: &Path) -> io::Result<Option<PathBuf>> {
    let mounts = mounts()?;
    let mut below = mounts.iter().filter(|it| it.is_kernel() && it.place.starts_with(directory));
    let below = below.next().map(|it| it.place.clone());
    Ok(below.or_else(|| innermost(&mounts, directory)))
}

/// Returns the mount points below `directory`, which must have no links. Includes bind mounts of the same file system.
///
/// # Errors
/// The errors of [`around`].
pub fn mounted_below(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let places = mounts()?.into_iter().map(|it| it.place);
    Ok(places.filter(|it| it != directory && it.starts_with(directory)).collect())
}

/// Returns the ids of the mounts at `directory` and below it, as `STATX_MNT_ID` of
/// [statx(2)](https://man7.org/linux/man-pages/man2/statx.2.html) has them. `directory` must have no links.
///
/// # Errors
/// The errors of [`around`].
pub fn mount_ids_in(directory: &Path) -> io::Result<Vec<u64>> {
    let inner = mounts()?.into_iter().filter(|it| it.place.starts_with(directory));
    Ok(inner.map(|it| it.id).collect())
}

/// A mounted file system.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    id: u64,
    place: PathBuf,
    kind: String,
}

impl Mount {
    /// Returns whether the file system stores no files of users. A container has its devices on a tmpfs, so `/dev` is
    /// checked by its path.
    fn is_kernel(&self) -> bool {
        KERNELS.contains(&&*self.kind) || self.place == Path::new("/dev")
    }
}

fn mounts() -> io::Result<Vec<Mount>> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    Ok(mounts.lines().filter_map(mount).collect())
}

fn innermost(mounts: &[Mount], path: &Path) -> Option<PathBuf> {
    let around = mounts.iter().filter(|it| path.starts_with(&it.place));
    // If two mounts have the same mount point, the later one hides the earlier one.
    let innermost = around.max_by_key(|it| it.place.iter().count())?;
    innermost.is_kernel().then(|| innermost.place.clone())
}

/// Returns the error for a path in a file system of the kernel.
pub fn no_files(place: &Path) -> io::Error {
    io::Error::other(format!("{} is a file system of the kernel", place.display()))
}

/// Parses a line of [proc_pid_mountinfo(5)](https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html).
fn mount(line: &str) -> Option<Mount> {
    let (own, device) = line.split_once(" - ")?;
    let id = own.split(' ').next()?.parse().ok()?;
    let place = own.split(' ').nth(4)?;
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    let place = escapes.iter().fold(place.to_owned(), |text, (from, to)| text.replace(from, to));
    Some(Mount { id, place: place.into(), kind: device.split(' ').next()?.to_owned() })
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
        let below = mounted_below(Path::new("/")).unwrap();
        assert!(below.contains(&proc().unwrap()) && !below.contains(&PathBuf::from("/")));
        assert!(!mounted_below(Path::new("/pro")).unwrap().contains(&proc().unwrap()));
        let [ids, inner] = ["/", "/proc"].map(|it| mount_ids_in(Path::new(it)).unwrap());
        assert!(
            !inner.is_empty() && inner.iter().all(|it| ids.contains(it)) && inner.len() < ids.len()
        );
        assert_eq!(no_files(Path::new("/sys")).to_string(), "/sys is a file system of the kernel");
    }

    #[test]
    fn a_mount_has_a_place_and_a_kind() {
        let line =
            r"36 35 98:0 /mnt1 /mnt\0402 rw,noatime master:1 - ext4 /dev/root rw,errors=continue";
        assert_eq!(mount(line), Some(at("/mnt 2", "ext4")));
    }

    #[test]
    fn the_innermost_file_system_counts() {
        let mounts = [
            at("/", "ext4"),
            at("/dev", "tmpfs"),
            at("/dev/shm", "tmpfs"),
            at("/dev/shm/debug", "debugfs"),
            at("/srv", "proc"),
            at("/srv", "ext4"),
        ];
        for (path, expected) in [
            ("/home/Boxfile", None),
            ("/dev/tty", Some("/dev")),
            ("/dev/shm/checkout/Boxfile", None),
            ("/dev/shm/debug/tracing", Some("/dev/shm/debug")),
            ("/srv/checkout", None),
        ] {
            let found = innermost(&mounts, Path::new(path));
            assert_eq!(found.as_deref(), expected.map(Path::new), "{path}");
        }
    }

    fn at(place: &str, kind: &str) -> Mount {
        Mount { id: 36, place: place.into(), kind: kind.to_owned() }
    }
}
