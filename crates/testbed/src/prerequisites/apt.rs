//! Debian packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Say;
use virtual_host::needs_loader;

use crate::{KitError, Result, program};

/// A Debian package that this project's tests or examples use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Package {
    /// Emulates the virtual host.
    Qemu,
    /// The virtual host's userland, and the business image of examples/hello.
    Busybox,
    /// Reads EROFS images, to check ours.
    Erofs,
    /// Unpacks OCI images, to check ours.
    Umoci,
    /// Reads OCI images, to check ours.
    Skopeo,
    /// Makes root file systems of Debian packages.
    Mmdebstrap,
    /// Reads tar archives otherwise than GNU tar, to check ours.
    Bsdtar,
    /// Fetches the guest's kernel.
    Pip,
    /// Compiles the fuzzer's own code.
    Cxx,
    /// Inflates as fast as can be, for the benchmark.
    Libdeflate,
    /// Measures what a program takes, for the benchmark.
    Time,
    /// Records the files that a program names to the kernel.
    Strace,
    /// Reads tar archives with its library, to check our reader.
    Python,
    /// Compiles a program that reads tar archives with Go's library, to check our reader: GCC's compiler, half as large
    /// as Go's own.
    Go,
    /// Mounts a directory by FUSE, with times that can be set back.
    Bindfs,
    /// Runs a program by another clock.
    Faketime,
    /// Connects to an agent through its socket on the host.
    Curl,
    /// Carries the network that a box shares with its host.
    Passt,
    /// Makes a file system for the benchmark of starts, and checks ours.
    E2fs,
    /// Compiles kernels.
    Gcc,
    /// Drives the build of kernels.
    Make,
    /// Makes the kernel's tools.
    Flex,
    /// Makes the kernel's tools.
    Bison,
    /// Computes constants of the kernel.
    Bc,
    /// Lets the kernel's tools read object files.
    Libelf,
    /// Unpacks the kernel's source.
    Xz,
    /// Changes the kernel's source.
    Patch,
}

impl Package {
    /// The packages that compile a kernel.
    pub(crate) const TO_COMPILE_KERNELS: [Self; 8] = [
        Self::Gcc,
        Self::Make,
        Self::Flex,
        Self::Bison,
        Self::Bc,
        Self::Libelf,
        Self::Xz,
        Self::Patch,
    ];

    /// Returns the name by which apt knows it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Qemu => "qemu-system-x86",
            Self::Busybox => "busybox-static",
            Self::Erofs => "erofs-utils",
            Self::Umoci => "umoci",
            Self::Skopeo => "skopeo",
            Self::Mmdebstrap => "mmdebstrap",
            Self::Bsdtar => "libarchive-tools",
            Self::Pip => "python3-pip",
            Self::Cxx => "g++",
            Self::Libdeflate => "libdeflate-tools",
            Self::Time => "time",
            Self::Strace => "strace",
            Self::Python => "python3",
            Self::Go => "gccgo",
            Self::Bindfs => "bindfs",
            Self::Faketime => "faketime",
            Self::Curl => "curl",
            Self::Passt => "passt",
            Self::E2fs => "e2fsprogs",
            Self::Gcc => "gcc",
            Self::Make => "make",
            Self::Flex => "flex",
            Self::Bison => "bison",
            Self::Bc => "bc",
            Self::Libelf => "libelf-dev",
            Self::Xz => "xz-utils",
            Self::Patch => "patch",
        }
    }

    /// Returns the program that the package is for.
    const fn program(self) -> &'static str {
        match self {
            Self::Qemu => "qemu-system-x86_64",
            Self::Busybox => "busybox",
            Self::Erofs => "mkfs.erofs",
            Self::Umoci => "umoci",
            Self::Skopeo => "skopeo",
            Self::Mmdebstrap => "mmdebstrap",
            Self::Bsdtar => "bsdtar",
            Self::Pip => "pip3",
            Self::Cxx => "g++",
            Self::Libdeflate => "libdeflate-gunzip",
            Self::Time => "time",
            Self::Strace => "strace",
            Self::Python => "python3",
            Self::Go => "gccgo",
            Self::Bindfs => "bindfs",
            Self::Faketime => "faketime",
            Self::Curl => "curl",
            Self::Passt => "passt",
            Self::E2fs => "mke2fs",
            Self::Gcc => "gcc",
            Self::Make => "make",
            Self::Flex => "flex",
            Self::Bison => "bison",
            Self::Bc => "bc",
            Self::Xz => "xz",
            Self::Libelf => "libelf-dev",
            Self::Patch => "patch",
        }
    }

    /// Returns where its program lies; for a library, where a header of it does.
    ///
    /// # Errors
    /// It is missing; the error names the command that installs it.
    pub fn path(self) -> Result<PathBuf> {
        self.find().ok_or_else(|| KitError::Missing {
            program: self.program().to_owned(),
            remedy: format!("install it: apt-get install {}", self.name()),
        })
    }

    fn find(self) -> Option<PathBuf> {
        let at = |path: &str| Some(PathBuf::from(path)).filter(|it| it.is_file());
        let found = program::find(self.program());
        match self {
            // The package busybox has a program of the same name, which needs shared libraries.
            Self::Busybox => found.filter(|it| fs::read(it).is_ok_and(|file| !needs_loader(&file))),
            // Debian has it where only root's PATH leads.
            Self::E2fs => found.or_else(|| at("/usr/sbin/mke2fs")),
            Self::Libelf => at("/usr/include/gelf.h"),
            _ => found,
        }
    }
}

/// The words of apt-get that install packages.
const INSTALL: [&str; 3] = ["install", "--yes", "--no-install-recommends"];

/// Installs those of `wanted` whose programs are missing.
///
/// # Errors
/// Something is missing and cannot be installed; the error names the command that mends it.
pub fn packages(wanted: &[Package], say: Say<'_>) -> Result<()> {
    let missing: Vec<_> = wanted.iter().filter(|package| package.find().is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = missing.iter().map(|package| package.name()).collect();
    may_install(missing[0].program(), &names)?;
    say(&format!("installing {}: {}", names.join(", "), by_hand(&names)));
    let install = || program::run(apt_get().args(INSTALL).args(&names));
    with_fresh_lists(say, install).map(drop)
}

/// Returns the command that installs packages, as a person types it.
fn by_hand(names: &[&str]) -> String {
    format!("apt-get {} {}", INSTALL.join(" "), names.join(" "))
}

/// Checks that this process can install packages at all.
fn may_install(program: &str, names: &[&str]) -> Result<()> {
    let missing = |remedy: String| KitError::Missing { program: program.to_owned(), remedy };
    if program::find("apt-get").is_none() {
        let names = names.join(" ");
        return Err(missing(format!(
            "there is no apt-get here: install by hand what Debian calls {names}"
        )));
    }
    if is_root() { Ok(()) } else { Err(missing(format!("install it: sudo {}", by_hand(names)))) }
}

/// Tries, and where that fails tries again after `apt-get update`: the lists of a new machine are
/// empty, and those of an old one name packages that are no longer there.
pub(super) fn with_fresh_lists<T>(say: Say<'_>, attempt: impl Fn() -> Result<T>) -> Result<T> {
    attempt().or_else(|_| {
        say("refreshing the package lists: apt-get update");
        program::run(apt_get().arg("update"))?;
        attempt()
    })
}

/// Returns an apt-get that asks nothing and waits for its turn.
pub(super) fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command
        .env("DEBIAN_FRONTEND", "noninteractive")
        .args(["--quiet=2", "-oDPkg::Lock::Timeout=600"]);
    command
}

/// The owner of a process's directory in /proc is its effective user (proc(5)).
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(Path::new("/proc/self")).is_ok_and(|process| process.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_left_alone() {
        let mut said = Vec::new();
        let wanted: Vec<_> =
            [Package::Busybox, Package::Qemu].into_iter().filter(|it| it.path().is_ok()).collect();
        packages(&wanted, &mut |line| said.push(line.to_owned())).unwrap();
        assert_eq!(said, Vec::<String>::new());
    }

    #[test]
    fn the_lists_are_refreshed_only_after_a_failure() {
        let mut said = Vec::new();
        let outcome = with_fresh_lists(&mut |line| said.push(line.to_owned()), || Ok(7));
        assert_eq!((outcome.unwrap(), said.len()), (7, 0));
    }
}
