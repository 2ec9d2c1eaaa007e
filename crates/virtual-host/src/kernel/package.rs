//! Fetches and reads the kernel's Debian package. The package is not extracted to disk, so links in it have no effect.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str;

use lzma_rust2::XzReader;
use tar::{Archive, Entry};

use super::{HostKernel, canonical, is_version, prepare};
use crate::{HostError, Result, programs};

/// The packages that depend on the newest kernel package of a series, in the order of preference. Debian 12 has Linux 6.12 in
/// addition to its default 6.1, and a box starts on it with a tenth fewer emulated instructions. Debian 13's default is 6.12.
const METAPACKAGES: [&str; 2] = ["linux-image-6.12-cloud-amd64", "linux-image-cloud-amd64"];
/// The prefix of the names of kernel packages.
const IMAGE: &str = "linux-image-";
/// The maximum size of a module and of a compressed kernel, in bytes.
const MAX_MEMBER: u64 = 1 << 26;
/// The maximum size of an unpacked package, in bytes. Its modules are kept in memory. The package of Linux 6.12 has 36 MB.
const MAX_PACKAGE: u64 = 1 << 29;
/// The first bytes of a package: see [deb(5)](https://man7.org/linux/man-pages/man5/deb.5.html).
const AR_MAGIC: &[u8] = b"!<arch>\n";
/// The name of the package's file in messages.
const PACKAGE: &str = "the virtual host's kernel package";

/// Returns the name of the newest kernel package in apt's lists.
///
/// # Errors
/// There is no apt, or its lists contain no such package. `apt-get update` refreshes the lists.
pub fn newest_package() -> Result<String> {
    let [first, other] = METAPACKAGES;
    dependency_of(first).or_else(|_| dependency_of(other))
}

/// Returns the kernel package that a metapackage depends on.
fn dependency_of(metapackage: &str) -> Result<String> {
    let text = programs::run_apt(Command::new("apt-cache").args(["depends", metapackage]))?;
    parse_depends(&String::from_utf8_lossy(&text))
        .ok_or_else(|| HostError::malformed(metapackage, "it depends on no kernel package"))
}

/// Parses the kernel package from the output of `apt-cache depends`.
fn parse_depends(text: &str) -> Option<String> {
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    names.into_iter().find(|name| name.starts_with(IMAGE)).map(str::to_owned)
}

/// Downloads a kernel package and prepares its kernel in a cache directory. The package is not installed, so the user
/// need not be root. apt verifies the package with Debian's signatures.
///
/// # Errors
/// The package cannot be downloaded, read or prepared.
pub fn fetch(package: &str, cache: &Path) -> Result<HostKernel> {
    let scratch = tempfile::tempdir().map_err(HostError::file("make", Path::new("a directory")))?;
    let mut download = Command::new("apt-get");
    download.args(["--quiet=2", "download", package]).current_dir(scratch.path());
    programs::run_apt(&mut download)?;
    prepare_package(&only_file(scratch.path())?, cache)
}

fn only_file(folder: &Path) -> Result<PathBuf> {
    let mut entries = fs::read_dir(folder).map_err(HostError::file("list", folder))?;
    let file = entries.find_map(|entry| Some(entry.ok()?.path()));
    file.ok_or_else(|| HostError::malformed("the download", "apt-get left no file"))
}

/// Reads the kernel of the Debian package `file`, and prepares it in a cache directory. Replaces a prepared kernel of the same version.
///
/// # Errors
/// The file is no package, the package has no kernel of the expected form, or another user can change the cache directory.
pub fn prepare_package(file: &Path, cache: &Path) -> Result<HostKernel> {
    fs::create_dir_all(cache).map_err(HostError::file("make", cache))?;
    prepare(&Package::open(file)?, cache)
}

/// The parts of a kernel package that the virtual host uses.
#[derive(Debug, Default)]
pub(super) struct Package {
    /// The kernel's version, which is safe to print and to use as a directory's name.
    pub(super) version: String,
    /// The bzImage.
    pub(super) image: Vec<u8>,
    /// The modules by their [`canonical`] names.
    pub(super) modules: BTreeMap<String, Module>,
}

/// The file of a module. Debian 13 compresses modules, Debian 12 does not.
#[derive(Debug)]
pub(super) struct Module {
    bytes: Vec<u8>,
    is_xz: bool,
}

/// The type of an archive member that the virtual host uses.
#[derive(Debug, PartialEq, Eq)]
enum Member {
    /// `/boot/vmlinuz-VERSION`.
    Image { version: String },
    /// `/lib/modules/VERSION/kernel/…/NAME.ko` or `.ko.xz`.
    Module { version: String, name: String, is_xz: bool },
}

impl Package {
    /// Reads a package's file.
    ///
    /// # Errors
    /// The file is not a package or cannot be read, `dpkg-deb` is missing or refuses the file, or the package has no kernel or is too
    /// large.
    fn open(file: &Path) -> Result<Self> {
        check_format(file)?;
        // An absolute path cannot be mistaken for an option.
        let file = std::path::absolute(file).map_err(HostError::file("find", file))?;
        let mut command = Command::new("dpkg-deb");
        command.arg("--fsys-tarfile").arg(&file).env("LC_ALL", "C").stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| programs::not_started(&command, error))?;
        let output = child.stdout.take().ok_or_else(|| malformed("it has no output"))?;
        let mut output = output.take(MAX_PACKAGE);
        let read = Self::read(&mut output);
        // `dpkg-deb` ends by itself only after all its output was read.
        drop(io::copy(&mut output, &mut io::sink()));
        if output.limit() == 0 {
            drop(child.kill());
            drop(child.wait());
            return Err(malformed("it is too large"));
        }
        ended(child, &command).and(read)
    }

    /// Reads a package's archive of files.
    fn read(archive: impl Read) -> Result<Self> {
        let failed = |error| HostError::file("read", Path::new(PACKAGE))(error);
        let mut package = Self::default();
        for entry in Archive::new(archive).entries().map_err(failed)? {
            let mut entry = entry.map_err(failed)?;
            if let Some(member) = Member::of(&entry) {
                package.add(member, contents(&mut entry, MAX_MEMBER)?)?;
            }
        }
        if package.image.is_empty() { Err(malformed("it has no kernel")) } else { Ok(package) }
    }

    fn add(&mut self, member: Member, bytes: Vec<u8>) -> Result<()> {
        let (Member::Image { version } | Member::Module { version, .. }) = &member;
        if !is_version(version) {
            return Err(malformed("its version is not the name of a directory"));
        }
        if self.version.is_empty() {
            self.version.clone_from(version);
        } else if self.version != *version {
            return Err(malformed("it has files of two kernels"));
        }
        match member {
            Member::Image { .. } => self.image = bytes,
            Member::Module { name, is_xz, .. } => {
                self.modules.insert(name, Module { bytes, is_xz });
            }
        }
        Ok(())
    }

    /// Returns the bytes of a module.
    ///
    /// # Errors
    /// The package has no such module, or it does not decompress.
    pub(super) fn module(&self, name: &str) -> Result<Vec<u8>> {
        let module =
            self.modules.get(name).ok_or_else(|| malformed(&format!("it has no {name}.ko")))?;
        if !module.is_xz {
            return Ok(module.bytes.clone());
        }
        let broken = |reason: &str| HostError::malformed(format!("{name}.ko.xz"), reason);
        let mut bytes = Vec::new();
        let mut reader = XzReader::new(&*module.bytes, true).take(MAX_MEMBER + 1);
        reader.read_to_end(&mut bytes).map_err(|error| broken(&error.to_string()))?;
        if bytes.len() as u64 > MAX_MEMBER {
            return Err(broken("it is too long for a kernel module"));
        }
        Ok(bytes)
    }
}

impl Member {
    /// Returns the type of an archive's entry. `None` for an entry that is not used, such as a link.
    fn of(entry: &Entry<'_, impl Read>) -> Option<Self> {
        let path = entry.path_bytes();
        let path = str::from_utf8(&path).ok()?;
        entry.header().entry_type().is_file().then(|| Self::at(path))?
    }

    fn at(path: &str) -> Option<Self> {
        let path = path.strip_prefix("./").unwrap_or(path);
        if let Some(version) = path.strip_prefix("boot/vmlinuz-") {
            return Some(Self::Image { version: version.to_owned() });
        }
        // Since Debian 13, packages have `usr/lib` instead of `/lib`.
        let path = path.strip_prefix("usr/").unwrap_or(path).strip_prefix("lib/modules/")?;
        let (version, path) = path.split_once("/kernel/")?;
        let file = path.rsplit('/').next()?;
        let (file, is_xz) = file.strip_suffix(".xz").map_or((file, false), |file| (file, true));
        let name = canonical(file.strip_suffix(".ko")?);
        Some(Self::Module { version: version.to_owned(), name, is_xz })
    }
}

/// Checks that a file begins as a Debian package.
fn check_format(file: &Path) -> Result<()> {
    let mut magic = Vec::new();
    let opened = fs::File::open(file).map_err(HostError::file("read", file))?;
    let read = opened.take(AR_MAGIC.len() as u64).read_to_end(&mut magic);
    read.map_err(HostError::file("read", file))?;
    if magic == AR_MAGIC { Ok(()) } else { Err(HostError::NotAPackage(file.to_owned())) }
}

/// Reads a member of at most `limit` bytes.
fn contents(entry: &mut Entry<'_, impl Read>, limit: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = entry.take(limit + 1).read_to_end(&mut bytes);
    read.map_err(|error| HostError::file("read", Path::new(PACKAGE))(error))?;
    if bytes.len() as u64 > limit { Err(malformed("it is too large")) } else { Ok(bytes) }
}

/// Waits for a program, and returns an error if it has failed.
fn ended(child: Child, command: &Command) -> Result<()> {
    let failed = |source| HostError::Start { program: programs::shown(command), source };
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    Err(HostError::Failed {
        command: programs::shown(command),
        status: output.status.to_string(),
        output: programs::tail(&output.stderr, programs::SHOWN),
    })
}

fn malformed(reason: &str) -> HostError {
    HostError::malformed(PACKAGE, reason)
}

#[cfg(test)]
impl Module {
    pub(super) fn plain(bytes: Vec<u8>) -> Self {
        Self { bytes, is_xz: false }
    }

    pub(super) fn xz(bytes: Vec<u8>) -> Self {
        Self { bytes, is_xz: true }
    }
}

#[cfg(test)]
mod tests {
    use tar::{Builder, EntryType, Header};

    use super::*;

    /// Returns an archive of members: the type, the path, and the content or the target of a link.
    fn archive(members: &[(EntryType, &str, &str)]) -> Vec<u8> {
        let mut archive = Builder::new(Vec::new());
        for (kind, path, text) in members {
            let mut header = Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(0o644);
            if kind.is_file() {
                header.set_size(text.len() as u64);
                archive.append_data(&mut header, path, text.as_bytes()).unwrap();
            } else {
                header.set_size(0);
                archive.append_link(&mut header, path, text).unwrap();
            }
        }
        archive.into_inner().unwrap()
    }

    fn read(members: &[(EntryType, &str, &str)]) -> Result<Package> {
        Package::read(archive(members).as_slice())
    }

    const FILE: EntryType = EntryType::Regular;
    const KERNEL: (EntryType, &str, &str) = (FILE, "./boot/vmlinuz-6.1-amd64", "image");

    #[test]
    fn the_kernel_and_the_modules_of_a_package_are_read() {
        let members = [
            KERNEL,
            (FILE, "./boot/config-6.1-amd64", "CONFIG"),
            (FILE, "./lib/modules/6.1-amd64/kernel/arch/x86/kvm/kvm-amd.ko", "one"),
            (FILE, "./usr/lib/modules/6.1-amd64/kernel/fs/erofs.ko.xz", "two"),
            (FILE, "./lib/modules/6.1-amd64/modules.order", "none"),
        ];
        let package = read(&members).unwrap();
        assert_eq!((&*package.version, &*package.image), ("6.1-amd64", &b"image"[..]));
        assert_eq!(package.modules.keys().collect::<Vec<_>>(), ["erofs", "kvm_amd"]);
        assert_eq!(package.module("kvm_amd").unwrap(), b"one");
        assert!(package.modules["erofs"].is_xz);
    }

    #[test]
    fn links_of_a_package_lead_nowhere() {
        let link = EntryType::Symlink;
        let erofs = "./lib/modules/6.1-amd64/kernel/fs/erofs.ko";
        let members = [KERNEL, (link, erofs, "/etc/shadow"), (EntryType::Link, erofs, "boot/x")];
        assert_eq!(read(&members).unwrap().modules.len(), 0);
        let error = read(&[(link, KERNEL.1, "/dev/zero")]).unwrap_err().to_string();
        assert_eq!(error, "the virtual host's kernel package is malformed: it has no kernel");
    }

    #[test]
    fn a_package_of_another_form_is_refused() {
        let module = "./lib/modules/6.2-amd64/kernel/fs/erofs.ko";
        for (members, reason) in [
            (vec![KERNEL, (FILE, module, "")], "it has files of two kernels"),
            (vec![(FILE, "./boot/vmlinuz-6\n", "")], "its version is not the name of a directory"),
            (vec![(FILE, "./boot/vmlinuz-../x", "")], "its version is not the name of a directory"),
            (vec![], "it has no kernel"),
        ] {
            let error = read(&members).unwrap_err().to_string();
            assert!(error.ends_with(reason), "{error}");
        }
    }

    #[test]
    fn a_member_that_is_too_large_is_refused() {
        let bytes = archive(&[KERNEL]);
        let mut entry = Archive::new(bytes.as_slice());
        let mut entry = entry.entries().unwrap().next().unwrap().unwrap();
        assert!(contents(&mut entry, 4).unwrap_err().to_string().ends_with("too large"));
    }

    #[test]
    fn a_file_that_is_no_package_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let refused = || Package::open(file.path()).unwrap_err().to_string();
        assert_eq!(refused(), format!("{} is not a Debian package", file.path().display()));
        fs::write(file.path(), AR_MAGIC).unwrap();
        assert!(refused().contains("dpkg-deb --fsys-tarfile"), "{}", refused());
        let missing = Package::open(Path::new("/no/package")).unwrap_err().to_string();
        assert_eq!(missing, "cannot read /no/package: No such file or directory (os error 2)");
    }

    #[test]
    fn the_kernel_package_is_found() {
        let text = "linux-image-cloud-amd64\n  Depends: linux-image-6.1.0-56-cloud-amd64\n";
        assert_eq!(parse_depends(text).as_deref(), Some("linux-image-6.1.0-56-cloud-amd64"));
        assert_eq!(parse_depends("linux-image-cloud-amd64\n"), None);
    }
}
