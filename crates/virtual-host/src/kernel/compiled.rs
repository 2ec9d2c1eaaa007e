//! A kernel that was compiled for the virtual host: everything is built in, and KVM leaves the guest where it must by
//! its source.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use super::kvm_amd::Exits;
use super::package::prepare_package;
use super::{About, HostKernel, publish, read as read_whole, write, write_about};
use crate::{HostError, Result};

/// The end of the release of a kernel that was compiled for the virtual host, as `uname -r` prints it.
pub const COMPILED_RELEASE: &str = "-boxbuild-host";
/// The first bytes of an ELF file.
const MAGIC: &[u8] = b"\x7fELF";

/// Prepares a kernel in a cache directory, in place of one of the same release: an uncompressed ELF file that was
/// compiled for the virtual host, or the file of a Debian package.
///
/// # Errors
/// It cannot be read or unpacked, or has no kernel of the expected form; or it is an ELF file of another release,
/// which would lack what the emulated machine needs.
pub fn prepare_file(file: &Path, cache: &Path) -> Result<HostKernel> {
    let mut start = [0; MAGIC.len()];
    let opened = File::open(file).map_err(HostError::file("read", file))?;
    if (&opened).read_exact(&mut start).is_err() || start != MAGIC {
        return prepare_package(file, cache);
    }
    let elf = read_whole(file)?;
    let version = guest_kernel::extract(&elf).map_or_else(|_| String::new(), |it| it.version);
    let release = version.rsplit(' ').next().unwrap_or_default();
    if !release.ends_with(COMPILED_RELEASE) {
        let what = format!("{} ({version:?})", file.display());
        return Err(HostError::malformed(what, "it was not compiled for the virtual host"));
    }
    prepare_elf(&elf, release, cache)
}

fn prepare_elf(elf: &[u8], release: &str, cache: &Path) -> Result<HostKernel> {
    fs::create_dir_all(cache).map_err(HostError::file("make", cache))?;
    let scratch = tempfile::tempdir_in(cache).map_err(HostError::file("make", cache))?;
    let draft = scratch.path().join("ready");
    let modules = draft.join("modules");
    fs::create_dir_all(&modules).map_err(HostError::file("make", &modules))?;
    write(&draft.join("kernel"), elf)?;
    write_about(&draft, &About { version: release.to_owned(), exits: Exits::BOTH })?;
    publish(&draft, release, scratch.path(), cache, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_kernel_for_the_virtual_host_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let (elf, cache) = (directory.path().join("vmlinux"), directory.path().join("cache"));
        let write_elf = |release: &str| {
            fs::write(&elf, testkit::small_kernel::bytes(release)).unwrap();
        };
        write_elf("6.12.1-boxbuild");
        let error = prepare_file(&elf, &cache).unwrap_err().to_string();
        assert!(
            error.contains("6.12.1-boxbuild\"") && error.contains("not compiled for"),
            "{error}"
        );
        write_elf("6.12.1-boxbuild-host");
        let kernel = prepare_file(&elf, &cache).unwrap();
        assert!(kernel.modules().unwrap().is_empty());
        let found = HostKernel::find(&cache).unwrap().unwrap();
        assert_eq!(found.version(), "6.12.1-boxbuild-host");
        assert!(found.exits_where_needed());
    }
}
