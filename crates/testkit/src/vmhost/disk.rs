//! The emulated machine's disks: files that it sees as non-volatile memory (NVDIMM).
//!
//! A disk that is memory answers at once. A disk that the emulator reads in the background would
//! answer when the real machine happens to be ready, and no two runs would take the same time.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{KitError, Result, program};

/// The name of a packed file on its disk, for the init; a packed directory is the disk's root.
const CONTENT: &str = "content";
/// Memory devices have sizes that are a multiple of this many bytes.
const GRANULE: u64 = 2 << 20;
/// The room for a result, in bytes. The file is sparse.
const RESULT_SIZE: u64 = 512 << 20;

/// A file that is ready to be one of the machine's disks.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) path: PathBuf,
    pub(super) size: u64,
    pub(super) writable: bool,
}

/// Makes the empty disk on which the result is left.
pub(super) fn for_result(scratch: &Path) -> Result<Disk> {
    let path = scratch.join("result");
    File::create(&path)
        .and_then(|file| file.set_len(RESULT_SIZE))
        .map_err(KitError::file("make", &path))?;
    Ok(Disk { path, size: RESULT_SIZE, writable: true })
}

/// Packs a file or a directory as a read-only EROFS image.
pub(super) fn pack(source: &Path, scratch: &Path, number: usize) -> Result<Disk> {
    let path = scratch.join(format!("disk-{number}"));
    let source = fs::canonicalize(source).map_err(KitError::file("find", source))?;
    if source.is_dir() {
        make_erofs(&source, &path)?;
    } else {
        let staging = scratch.join(format!("staging-{number}"));
        stage(&source, &staging)?;
        make_erofs(&staging, &path)?;
    }
    let size = pad(&path).map_err(KitError::file("resize", &path))?;
    Ok(Disk { path, size, writable: false })
}

/// Puts a file alone into a directory: as a link where the filesystem is the same, else as a copy.
fn stage(source: &Path, staging: &Path) -> Result<()> {
    fs::create_dir(staging).map_err(KitError::file("make", staging))?;
    let staged = staging.join(CONTENT);
    fs::hard_link(source, &staged)
        .or_else(|_| fs::copy(source, &staged).map(drop))
        .map_err(KitError::file("copy", source))
}

fn make_erofs(directory: &Path, image: &Path) -> Result<()> {
    let uuid = "-U00000000-0000-0000-0000-000000000000";
    let mut command = Command::new("mkfs.erofs");
    command.args(["--quiet", "--all-root", "-T0", uuid]).arg(image).arg(directory);
    program::run(&mut command).map(drop)
}

fn pad(path: &Path) -> std::io::Result<u64> {
    let file = File::options().write(true).open(path)?;
    let size = file.metadata()?.len().next_multiple_of(GRANULE);
    file.set_len(size).map(|()| size)
}
