//! Where tests have their temporary files: in memory, where the machine has enough of it.
//!
//! Tests make and remove trees of thousands of files. ext4 without a journal looks at every inode that was freed in the
//! last minute before it takes one (Linux, fs/ext4/ialloc.c, `recently_deleted`): that was more work than the tests'.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, id};

use rustix::fs::{StatVfsMountFlags, XattrFlags, setxattr, statvfs};
use tempfile::TempDir;

/// A file system in memory, on every Linux with POSIX shared memory (shm_overview(7)).
const MEMORY: &str = "/dev/shm";
/// The start of the directory's name; the rest is the number of the process that made it.
const PREFIX: &str = "boxbuild-test.";
/// The bytes that must be free in it. The tests of one run use a tenth of that at a time.
const FREE: u64 = 4 << 30;
/// The memory in bytes that must be available beside what compilers and virtual hosts take.
const AVAILABLE: u64 = 8 << 30;
/// The programs whose tests make many files. A path below `/dev` is one of the kernel's to some of the others, as it is
/// to the code that they test.
const MAKING_FILES: [&str; 10] = [
    "boxbuild-tests --test build",
    "boxbuild-tests --test export",
    "boxbuild-tests --test hostile",
    "boxbuild-tests --test merged",
    "boxbuild-tests --test oracle",
    "boxbuild-tests --test registry",
    "boxbuild-tests --test show",
    "boxbuild-tests --test sources",
    "erofs-writer --test it",
    "testkit --test debian",
];

/// A directory in memory, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Temporary(Option<TempDir>);

impl Temporary {
    /// Makes one; none where `TMPDIR` names another place, or there is too little memory.
    pub(super) fn new() -> Self {
        if std::env::var_os("TMPDIR").is_some() || available() < Some(AVAILABLE) {
            return Self(None);
        }
        remove_abandoned(Path::new(MEMORY));
        Self(made(Path::new(MEMORY)).filter(|made| is_suitable(made.path())))
    }

    /// Lets a test program make its temporary files here, if it makes many.
    pub(super) fn pass_to(&self, command: &mut Command, program: &str) {
        if let Some(directory) = self.0.as_ref().filter(|_| MAKING_FILES.contains(&program)) {
            command.env("TMPDIR", directory.path());
        }
    }
}

fn made(memory: &Path) -> Option<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(&format!("{PREFIX}{}", id())).rand_bytes(0).tempdir_in(memory).ok()
}

/// Returns the memory in bytes that programs could still take (proc(5), `MemAvailable`).
fn available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

/// Returns whether a directory has room, and whether programs and extended attributes work there. Containers have
/// 64 MiB without programs; Linux before 6.6 has no attributes of users in memory.
fn is_suitable(directory: &Path) -> bool {
    let has_room = statvfs(directory).is_ok_and(|it| {
        it.f_bavail * it.f_frsize >= FREE && !it.f_flag.contains(StatVfsMountFlags::NOEXEC)
    });
    has_room && setxattr(directory, "user.test", b"", XattrFlags::empty()).is_ok()
}

/// Removes the directories of runs that were killed.
fn remove_abandoned(memory: &Path) {
    let Ok(entries) = fs::read_dir(memory) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if owner(&path).is_some_and(|owner| !Path::new("/proc").join(owner).exists()) {
            // What another user left is theirs to remove.
            drop(fs::remove_dir_all(path));
        }
    }
}

/// Returns the number of the process that made a directory; `None` of another directory.
fn owner(path: &Path) -> Option<PathBuf> {
    let number = path.file_name()?.to_str()?.strip_prefix(PREFIX)?;
    number.bytes().all(|it| it.is_ascii_digit()).then(|| PathBuf::from(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_of_processes_that_ended_are_removed() {
        let memory = tempfile::tempdir().unwrap();
        let ours = made(memory.path()).unwrap();
        // Process numbers end at 2^22 (proc(5), pid_max).
        let [ended, other] =
            ["boxbuild-test.99999999", "boxbuild-test.x"].map(|it| memory.path().join(it));
        [&ended, &other].into_iter().for_each(|it| fs::create_dir(it).unwrap());
        remove_abandoned(memory.path());
        assert!(ours.path().exists() && other.exists() && !ended.exists());
    }

    #[test]
    fn memory_is_measured() {
        assert!(available().unwrap() > 1 << 20);
        assert!(!is_suitable(Path::new("/proc")), "no room, and no attributes");
    }
}
