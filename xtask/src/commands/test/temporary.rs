//! Where tests have their temporary files: in memory, where the machine has enough of it.
//!
//! Tests make and remove trees of thousands of files. ext4 without a journal looks at every inode that was freed in the
//! last minutes before it takes one (Linux, fs/ext4/ialloc.c, `recently_deleted`): that was more work than the tests'.

use std::fs;
use std::path::Path;
use std::process::Command;

use host_fs::publish::DirectoryDraft;
use rustix::fs::{StatVfsMountFlags, XattrFlags, setxattr, statvfs};

/// A file system in memory on every Linux with POSIX shared memory (shm_overview(7)).
const MEMORY: &str = "/dev/shm";
/// The name there of a draft that is never finished: with its random name, its lock, and the removal of what killed
/// runs left.
const NAME: &str = "boxbuild-test";
/// The bytes that must be free there. The tests of a run have used 1.7 GiB at a time.
const FREE: u64 = 4 << 30;
/// The memory in bytes that must be available beside what compilers and virtual hosts take.
const AVAILABLE: u64 = 8 << 30;
/// The programs whose tests make many files. A path below `/dev` is one of the kernel's to some of the others, as it is
/// to the code that they test.
pub(super) const MAKING_FILES: [&str; 10] = [
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
pub(super) struct Temporary(Option<DirectoryDraft>);

impl Temporary {
    /// Makes one; none where `TMPDIR` names another place, or there is too little memory.
    pub(super) fn new() -> Self {
        if std::env::var_os("TMPDIR").is_some() {
            return Self(None);
        }
        // Made in any case: that removes what killed runs left, which takes memory.
        let made = DirectoryDraft::beside(&Path::new(MEMORY).join(NAME), 0o700).ok();
        Self(made.filter(|it| available() >= Some(AVAILABLE) && is_suitable(it.path())))
    }

    /// Lets a test program make its temporary files here, if it makes many.
    pub(super) fn pass_to(&self, command: &mut Command, program: &str) {
        if let Some(directory) = self.of(program) {
            command.env("TMPDIR", directory.path());
        }
    }

    /// Returns the command line that repeats tests of a program, with its temporary files in memory again if they were
    /// here.
    pub(super) fn repeat(&self, program: &str, repeats: String) -> String {
        match self.of(program) {
            Some(_) => format!("TMPDIR={MEMORY} {repeats}"),
            None => repeats,
        }
    }

    fn of(&self, program: &str) -> Option<&DirectoryDraft> {
        self.0.as_ref().filter(|_| MAKING_FILES.contains(&program))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_measured() {
        assert!(available().unwrap() > 1 << 20);
        assert!(!is_suitable(Path::new("/proc")), "no room, and no attributes");
    }

    #[test]
    fn only_programs_that_make_many_files_have_them_there() {
        let directory = tempfile::tempdir().unwrap();
        let draft = DirectoryDraft::beside(&directory.path().join("test"), 0o700).unwrap();
        let path = draft.path().to_owned();
        let temporary = Temporary(Some(draft));
        for (program, has) in [(MAKING_FILES[0], true), ("boxlaunch --lib", false)] {
            let mut command = Command::new("test");
            temporary.pass_to(&mut command, program);
            assert_eq!(command.get_envs().any(|(name, _)| name == "TMPDIR"), has, "{program}");
            let repeat = temporary.repeat(program, "cargo test".to_owned());
            assert_eq!(repeat, if has { "TMPDIR=/dev/shm cargo test" } else { "cargo test" });
        }
        drop(temporary);
        assert!(!path.exists());
    }
}
