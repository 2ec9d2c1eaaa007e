//! Makes a kernel of less than a hundred bytes, for builds of boxes that are not booted. With libkrunfw's kernel, such a
//! build would spend most of its time on reading and searching 21 MB.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::NamedTempFile;

use crate::{FileError, Result};

/// The bytes before a kernel's compressed configuration (`kernel/configs.c` of Linux).
const CONFIG_START: &[u8] = b"IKCFG_ST";

/// Returns an ELF file for x86-64 without code. It has the text by which boxbuild finds a kernel's release.
pub fn bytes(release: &str) -> Vec<u8> {
    let mut file = vec![0; 64];
    file[..6].copy_from_slice(b"\x7fELF\x02\x01");
    // The fields of an executable for x86-64 that has only a header.
    (file[6], file[16], file[18], file[20], file[52]) = (1, 2, 62, 1, 64);
    file.extend(format!("Linux version {release} (x)").bytes());
    file
}

/// Returns the kernel of [`bytes`], with a configuration that enables `options`. The options have no prefix `CONFIG_`.
///
/// # Errors
/// None in practice, because compressing to memory cannot fail.
pub fn configured<'a>(
    release: &str,
    options: impl IntoIterator<Item = &'a str>,
) -> io::Result<Vec<u8>> {
    let text: String = options.into_iter().map(|it| format!("CONFIG_{it}=y\n")).collect();
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(text.as_bytes())?;
    Ok([&bytes(release), CONFIG_START, &packed.finish()?].concat())
}

/// Writes a kernel without a configuration to a directory, which several tests may share, and returns its path.
///
/// # Errors
/// The file cannot be written.
pub fn file(folder: &Path) -> Result<PathBuf> {
    let path = folder.join("small-kernel");
    let kernel = bytes("6.12.1");
    if fs::read(&path).ok().as_ref() != Some(&kernel) {
        write(&path, &kernel).map_err(FileError::about("write", &path))?;
    }
    Ok(path)
}

/// Writes a file atomically, because other test programs may read it at the same time.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut draft = NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    draft.write_all(bytes)?;
    draft.persist(path).map(drop).map_err(|error| error.error)
}
