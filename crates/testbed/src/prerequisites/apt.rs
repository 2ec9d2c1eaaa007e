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
    /// Reads EROFS, for checking the images of erofs-writer.
    Erofs,
    /// Unpacks OCI images, for comparison with the trees of this project.
    Umoci,
    /// Reads and copies OCI images, for checking the images of the tests.
    Skopeo,
    /// Makes images from Dockerfiles.
    Buildah,
    /// Makes root file systems from Debian packages.
    Mmdebstrap,
    /// Reads tar archives with another implementation than GNU tar, for checking this project's archives and reader.
    Bsdtar,
    /// Fetches the guest's kernel.
    Pip,
    /// Compiles the C++ code of the fuzzer.
    Cxx,
    /// Inflates as fast as possible, for the benchmark.
    Libdeflate,
    /// Measures the resources of a program, for the benchmark.
    Time,
    /// Records the paths in a program's system calls.
    Strace,
    /// Reads tar archives with Python's library, for checking this project's reader.
    Python,
    /// Compiles a program that reads tar archives with Go's library, for checking this project's reader. It is GCC's
    /// Go compiler, half as large as the official one.
    Go,
    /// Mounts a directory through FUSE, with times that can be set back.
    Bindfs,
    /// Runs a program with another clock.
    Faketime,
    /// Connects to an agent through its socket on the host.
    Curl,
    /// Forwards the network that a box shares with its host.
    Passt,
    /// Starts the image of a box as a container.
    Runc,
    /// Makes a file system for the benchmark of starts, and checks the images of ext4-image.
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
    /// Reads JSON in the scripts of the action.
    Jq,
    /// Checks the scripts of the action.
    Shellcheck,
    /// Shows pages of `boxbuild report`.
    Chromium,
    /// Has an agent with keys, and logs in with them.
    OpensshClient,
    /// Runs a program in a terminal, for the package of sdk/typescript.
    Bsdutils,
    /// Fetches the agents of examples/agents, as their pages do.
    Npm,
    /// Clones and pushes through OpenSSH.
    Git,
    /// A library of OpenSSH's server, which is unpacked and not installed.
    Libwrap,
    /// Searches a project that a hostile box has prepared.
    Ripgrep,
    /// Opens the files of such a project.
    Vim,
    /// Reads the settings for editors of such a project.
    Editorconfig,
    /// Signs the checksums of a release.
    Openssl,
}

impl Package {
    /// The packages for compiling a kernel.
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

    /// Returns the name of the package.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Qemu => "qemu-system-x86",
            Self::Busybox => "busybox-static",
            Self::Erofs => "erofs-utils",
            Self::Umoci => "umoci",
            Self::Skopeo => "skopeo",
            Self::Buildah => "buildah",
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
            Self::Runc => "runc",
            Self::E2fs => "e2fsprogs",
            Self::Gcc => "gcc",
            Self::Make => "make",
            Self::Flex => "flex",
            Self::Bison => "bison",
            Self::Bc => "bc",
            Self::Libelf => "libelf-dev",
            Self::Xz => "xz-utils",
            Self::Patch => "patch",
            Self::Jq => "jq",
            Self::Shellcheck => "shellcheck",
            Self::Chromium => "chromium-headless-shell",
            Self::OpensshClient => "openssh-client",
            Self::Npm => "npm",
            Self::Bsdutils => "bsdutils",
            Self::Git => "git",
            Self::Libwrap => "libwrap0",
            Self::Ripgrep => "ripgrep",
            Self::Vim => "vim-tiny",
            Self::Editorconfig => "editorconfig",
            Self::Openssl => "openssl",
        }
    }

    /// Returns the name of the program that the package is for.
    const fn program(self) -> &'static str {
        match self {
            Self::Qemu => "qemu-system-x86_64",
            Self::Busybox => "busybox",
            Self::Erofs => "mkfs.erofs",
            Self::Umoci => "umoci",
            Self::Skopeo => "skopeo",
            Self::Buildah => "buildah",
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
            Self::Runc => "runc",
            Self::E2fs => "mke2fs",
            Self::Gcc => "gcc",
            Self::Make => "make",
            Self::Flex => "flex",
            Self::Bison => "bison",
            Self::Bc => "bc",
            Self::Xz => "xz",
            Self::Libelf => "libelf-dev",
            Self::Patch => "patch",
            Self::Jq => "jq",
            Self::Shellcheck => "shellcheck",
            Self::Chromium => "chromium-headless-shell",
            Self::OpensshClient => "ssh-agent",
            Self::Npm => "npm",
            Self::Bsdutils => "script",
            Self::Git => "git",
            Self::Libwrap => "libwrap0",
            Self::Ripgrep => "rg",
            Self::Vim => "vim.tiny",
            Self::Editorconfig => "editorconfig",
            Self::Openssl => "openssl",
        }
    }

    /// Returns the path of the program, or of a header for a library.
    ///
    /// # Errors
    /// The program or header is missing. The error contains the command that installs it.
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
            // Debian installs these in a directory that is only in root's PATH.
            Self::E2fs => found.or_else(|| at("/usr/sbin/mke2fs")),
            Self::Runc => found.or_else(|| at("/usr/sbin/runc")),
            Self::Libelf => at("/usr/include/gelf.h"),
            Self::Libwrap => at("/usr/lib/x86_64-linux-gnu/libwrap.so.0"),
            _ => found,
        }
    }
}

/// The arguments of apt-get for installing packages.
const INSTALL: [&str; 3] = ["install", "--yes", "--no-install-recommends"];

/// Installs the packages of `wanted` whose programs are missing.
///
/// # Errors
/// A program is missing and cannot be installed. The error contains the command that installs it.
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

/// Returns the command with which the user can install packages.
fn by_hand(names: &[&str]) -> String {
    format!("apt-get {} {}", INSTALL.join(" "), names.join(" "))
}

/// Checks that this process can install packages: apt-get exists, and the process runs as root.
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

/// Calls `attempt`. If it fails, runs `apt-get update` and calls it again, because the lists of a new system are empty, and
/// old lists contain packages that no longer exist.
pub(super) fn with_fresh_lists<T>(say: Say<'_>, attempt: impl Fn() -> Result<T>) -> Result<T> {
    attempt().or_else(|_| {
        say("refreshing the package lists: apt-get update");
        program::run(apt_get().arg("update"))?;
        attempt()
    })
}

/// Returns an apt-get command that asks no questions and waits for the lock.
pub(super) fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command
        .env("DEBIAN_FRONTEND", "noninteractive")
        .args(["--quiet=2", "-oDPkg::Lock::Timeout=600"]);
    command
}

/// Returns whether this process runs as root. The owner of its directory in /proc is its effective user
/// ([proc(5)](https://man7.org/linux/man-pages/man5/proc.5.html)).
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(Path::new("/proc/self")).is_ok_and(|process| process.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_left_alone() {
        let mut output = Vec::new();
        let wanted: Vec<_> =
            [Package::Busybox, Package::Qemu].into_iter().filter(|it| it.path().is_ok()).collect();
        packages(&wanted, &mut |line| output.push(line.to_owned())).unwrap();
        assert_eq!(output, Vec::<String>::new());
    }

    #[test]
    fn the_lists_are_refreshed_only_after_a_failure() {
        let mut output = Vec::new();
        let outcome = with_fresh_lists(&mut |line| output.push(line.to_owned()), || Ok(7));
        assert_eq!((outcome.unwrap(), output.len()), (7, 0));
    }
}
