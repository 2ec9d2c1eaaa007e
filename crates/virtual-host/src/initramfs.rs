//! The initramfs of the virtual host.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::cpio::Archive;
use crate::kernel::HostKernel;
use crate::plan::{MODULES, PLAN, Plan};
use crate::{HostError, Result};

/// The path at which commands can run the init's program.
const PROGRAM: &str = "/bin/boxlaunch";

/// Builds the archive of the init, the modules, the plan and `files`.
pub(crate) fn build(
    init: &Path,
    kernel: &HostKernel,
    files: &[(PathBuf, String)],
    plan: &Plan,
) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    archive.file("init", 0o755, &program(init)?);
    archive.symlink(PROGRAM, "/init");
    let plan = serde_json::to_vec(plan).map_err(|error| HostError::malformed("the plan", error))?;
    archive.file(PLAN, 0o644, &plan);
    archive.dir(MODULES);
    for module in kernel.modules() {
        let name = module.file_name().unwrap_or_default().to_string_lossy();
        archive.file(&format!("{MODULES}/{name}"), 0o644, &read(&module)?);
    }
    for (source, guest) in files {
        let source = fs::canonicalize(source).map_err(HostError::file("find", source))?;
        add_tree(&mut archive, &source, guest)?;
    }
    Ok(archive.finish())
}

/// Reads the init, which must be static: the virtual host has no shared libraries.
fn program(path: &Path) -> Result<Vec<u8>> {
    let bytes = read(path)?;
    if needs_loader(&bytes) {
        return Err(HostError::Dynamic(path.to_owned()));
    }
    Ok(bytes)
}

/// Returns whether a 64-bit little-endian ELF file needs a dynamic loader
/// ([elf(5)](https://man7.org/linux/man-pages/man5/elf.5.html): it has a segment of type `PT_INTERP`).
pub fn needs_loader(file: &[u8]) -> bool {
    const PT_INTERP: u32 = 3;
    let types = || {
        let start = usize::try_from(u64::from_le_bytes(*file.get(0x20..)?.first_chunk()?)).ok()?;
        let size = usize::from(u16::from_le_bytes(*file.get(0x36..)?.first_chunk()?));
        let count = usize::from(u16::from_le_bytes(*file.get(0x38..)?.first_chunk()?));
        Some(file.get(start..)?.chunks(size.max(1)).take(count))
    };
    let kind = |header: &[u8]| Some(u32::from_le_bytes(*header.first_chunk()?));
    file.starts_with(b"\x7fELF\x02\x01")
        && types().is_some_and(|mut types| types.any(|it| kind(it) == Some(PT_INTERP)))
}

fn add_tree(archive: &mut Archive, source: &Path, guest: &str) -> Result<()> {
    let metadata = fs::symlink_metadata(source).map_err(HostError::file("read", source))?;
    if metadata.is_dir() {
        archive.dir(guest);
        for child in sorted_children(source)? {
            let name = child.file_name().unwrap_or_default().to_string_lossy().into_owned();
            add_tree(archive, &child, &format!("{}/{name}", guest.trim_end_matches('/')))?;
        }
    } else if metadata.is_symlink() {
        let target = fs::read_link(source).map_err(HostError::file("read", source))?;
        archive.symlink(guest, &target.to_string_lossy());
    } else {
        archive.file(guest, metadata.permissions().mode() & 0o7777, &read(source)?);
    }
    Ok(())
}

/// Returns the paths of a directory's entries, sorted by name.
pub(crate) fn sorted_children(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(HostError::file("list", folder))?;
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(HostError::file("read", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_static_program_can_be_the_init() {
        let own = std::env::current_exe().unwrap();
        let bytes = fs::read(&own).unwrap();
        assert!(needs_loader(&bytes));
        assert!(matches!(program(&own), Err(HostError::Dynamic(path)) if path == own));
        assert!(!needs_loader(b"#!/bin/sh\n"));
        assert!((0..64).all(|length| !needs_loader(&bytes[..length])));
    }
}
