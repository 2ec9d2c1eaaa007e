//! Makes file systems, and runs the programs of e2fsprogs on them.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use ext4_image::{Options, format};
use tempfile::NamedTempFile;

pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;
pub(crate) const TIB: u64 = 1 << 40;
/// The bytes of a group.
pub(crate) const GROUP: u64 = 128 * MIB;
/// The bytes of a block.
pub(crate) const BLOCK: u64 = 4 * KIB;

/// The UUID of all file systems here, as e2fsprogs writes it.
pub(crate) const UUID: &str = "12345678-9abc-def0-1234-56789abcdef0";

pub(crate) fn options(journal: bool) -> Options {
    let uuid = 0x1234_5678_9abc_def0_1234_5678_9abc_def0_u128.to_be_bytes();
    Options { uuid, journal, root_owner: (0, 0), root_mode: 0o755 }
}

/// Makes a file system in a file that is deleted when the value is dropped.
pub(crate) fn made(size: u64, options: &Options) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    format(file.as_file(), size, options).unwrap();
    file
}

/// Runs a program of e2fsprogs and returns its output. The program must succeed.
pub(crate) fn run(program: &str, arguments: &[&OsStr]) -> String {
    let mut command = Command::new(program);
    // On Debian, these programs are in directories that only root's PATH includes.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    command.env("PATH", path).env("LC_ALL", "C").env("TZ", "UTC").args(arguments);
    let output = command.output().unwrap_or_else(|error| {
        panic!("{program} could not be run ({error}): install e2fsprogs 1.47 or later")
    });
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {}\n{text}", output.status);
    text
}

/// Checks a file system with `e2fsck`, which must succeed and print only its passes and the summary.
pub(crate) fn check(image: &Path) {
    let text = run("e2fsck", &["-fn".as_ref(), image.as_os_str()]);
    let plain = |line: &str| {
        line.starts_with("Pass ") || line.starts_with("e2fsck ") || line.contains(" blocks")
    };
    assert!(text.lines().all(plain), "{text}");
}

/// Returns the output of `dumpe2fs` for the superblock.
pub(crate) fn header(image: &Path) -> String {
    run("dumpe2fs", &["-h".as_ref(), image.as_os_str()])
}

/// Returns a value in the output of `dumpe2fs`.
pub(crate) fn value<'a>(text: &'a str, name: &str) -> &'a str {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.unwrap_or_else(|| panic!("{name} is missing: {text}")).trim()
}

/// Runs a command of `debugfs` and returns its output.
pub(crate) fn debugfs(image: &Path, command: &str) -> String {
    run("debugfs", &["-w".as_ref(), "-R".as_ref(), command.as_ref(), image.as_os_str()])
}
