//! Stamps on real mounts, and on a disk that cannot be flushed.
//!
//! A test that needs such an environment starts itself again in it. The second process gets its directory in [`INSIDE`].
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "it is a test")]

use std::env;
use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use host_fs::stamp::Stamp;

/// Set in the second process: the directory to work in.
const INSIDE: &str = "HOST_FS_TEST_INSIDE";

/// Mounts file systems in the directory of the first argument, and runs the other arguments as a command: `plain` is on a
/// tmpfs, `fuse` shows the files of `plain` with their mtime as ctime, and `over` is an overlayfs over `fuse`.
const MOUNTS: &str = r#"
set -e
mount -t tmpfs none "$1"
cd "$1"; shift
mkdir plain fuse empty over
echo bytes > plain/file
bindfs --ctime-from-mtime plain fuse
mount -t overlay none -o lowerdir=empty:fuse over
exec "$@""#;

/// Panics if a program is missing. `testbed`, which installs programs, depends on this crate.
fn assert_installed(programs: &[&str]) {
    let folders: Vec<_> = env::split_paths(&env::var_os("PATH").unwrap()).collect();
    for name in programs {
        let is_there = folders.iter().any(|folder| folder.join(name).is_file());
        assert!(is_there, "{name} is missing; install it: cargo xtask setup");
    }
}

/// Runs one test of this program again through another program, in a directory with a `file`.
fn again(test: &str, by: &[&str]) {
    assert_installed(&["strace", "bindfs"]);
    // On a tmpfs, which allows records, so that only the tested reason can prevent one.
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    fs::write(directory.path().join("file"), "bytes").unwrap();
    assert!(record(&directory.path().join("file")).is_some());
    let path = directory.path().to_str().unwrap();
    let mut command = Command::new(by[0]);
    command.args(by[1..].iter().map(|word| if *word == "DIRECTORY" { path } else { word }));
    command.arg(env::current_exe().unwrap()).args([test, "--exact", "--nocapture"]);
    let output = command.env(INSIDE, path).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn inside() -> Option<PathBuf> {
    env::var_os(INSIDE).map(PathBuf::from)
}

/// Returns the record of a file as if it had been unchanged for a minute before it was hashed.
fn record(path: &Path) -> Option<String> {
    let file = File::open(path).unwrap();
    Stamp::of(&file).unwrap().record(&file, SystemTime::now() + Duration::from_secs(60))
}

#[test]
fn where_times_can_be_set_back_no_file_has_a_record() {
    let Some(root) = inside() else {
        let mounts = ["unshare", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child"];
        let shell = ["sh", "-c", MOUNTS, "sh", "DIRECTORY"];
        return again(
            "where_times_can_be_set_back_no_file_has_a_record",
            &[mounts.as_slice(), &shell].concat(),
        );
    };
    let file = |mount: &str| root.join(mount).join("file");
    assert!(record(&file("plain")).is_some());
    for mount in ["fuse", "over"] {
        let stamp = || Stamp::of(&File::open(file(mount)).unwrap()).unwrap();
        let before = stamp();
        let then = fs::metadata(file("fuse")).unwrap().modified().unwrap();
        fs::write(file("fuse"), format!("{mount:>5}\n")).unwrap();
        let changed = File::options().write(true).open(file("fuse")).unwrap();
        changed.set_times(FileTimes::new().set_accessed(then).set_modified(then)).unwrap();
        assert_eq!(stamp(), before, "the change on {mount} shows");
        assert_eq!(fs::read_to_string(file(mount)).unwrap(), format!("{mount:>5}\n"));
        assert_eq!(record(&file(mount)), None, "{mount}");
    }
}

#[test]
fn what_cannot_be_flushed_has_no_record() {
    let Some(root) = inside() else {
        let fails = "inject=fsync,fdatasync,sync_file_range,syncfs:error=EIO";
        let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", fails];
        return again("what_cannot_be_flushed_has_no_record", &strace);
    };
    assert_eq!(record(&root.join("file")), None);
}
