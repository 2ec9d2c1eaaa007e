//! The virtual host's kernel, Debian's cloud kernel, prepared once.
//!
//! ```text
//! CACHE/6-6.12.117+deb12-cloud-amd64/
//!     about.json            the version, the exits of its KVM, and the other files with their lengths
//!     kernel                the ELF kernel, or Debian's bzImage if it cannot be unpacked
//!     modules/00-NAME.ko    the modules, numbered in the order of loading
//! ```

mod choice;
mod kvm_amd;
mod lighten;
mod package;
mod vmlinux;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use host_fs::publish::DirectoryDraft;
use host_fs::read::{Links, read_file};
use host_fs::trust::Trusted;
use host_fs::user_directory;
use serde::{Deserialize, Serialize};

use self::kvm_amd::Exits;
use self::package::Package;
use crate::{HostError, Result};
pub use choice::choose;
pub use package::{fetch, newest_package, prepare_package};

/// The kernel modules that the virtual host needs: hardware virtualization, memory-backed disks, and EROFS.
const MODULES: [&str; 6] = ["kvm-amd", "libnvdimm", "nd_btt", "nd_pmem", "nfit", "erofs"];
/// The module that [`kvm_amd`] changes.
const CHANGED: &str = "kvm_amd";
/// The version of the prepared form, which changes with [`lighten`] and [`kvm_amd`]. Directories of another version are ignored.
const FORM: &str = "6-";
const ABOUT: &str = "about.json";
/// The largest [`ABOUT`], in bytes.
const MAX_ABOUT: u64 = 1 << 16;
const KERNEL: &str = "kernel";
const MODULES_FOLDER: &str = "modules/";
/// The directory of prepared kernels, below the user's cache directory.
const CACHE: &str = "boxbuild/virtual-host";

/// A kernel that is ready for a [`crate::VirtualHost`].
#[derive(Debug, Clone)]
pub struct HostKernel {
    directory: PathBuf,
    about: About,
}

/// The metadata of a prepared kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct About {
    version: String,
    exits: Exits,
    /// The other files, and their lengths in bytes. A kernel with a file of another length is not used: a power failure may
    /// have truncated it.
    files: BTreeMap<String, u64>,
}

impl HostKernel {
    /// Opens the newest prepared kernel in a cache directory. `None` if there is no kernel.
    ///
    /// # Errors
    /// [`HostError::Stranger`] if another user could have changed the kernel. The kernel can read the box and reports its
    /// timing, so it must be trusted.
    pub fn find(cache: &Path) -> Result<Option<Self>> {
        let found = Self::newest(cache);
        found.iter().try_for_each(Self::check_owner)?;
        Ok(found)
    }

    fn newest(cache: &Path) -> Option<Self> {
        let entries = fs::read_dir(cache).ok()?;
        let mut ready: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        ready.retain(|path| {
            path.file_name().is_some_and(|it| it.to_string_lossy().starts_with(FORM))
        });
        ready.sort_by_cached_key(|path| numbers(path));
        ready.into_iter().rev().find_map(Self::open)
    }

    fn open(directory: PathBuf) -> Option<Self> {
        let about = read_file(&directory.join(ABOUT), Links::Refuse, MAX_ABOUT).ok()?;
        let kernel = Self { directory, about: serde_json::from_slice(&about).ok()? };
        kernel.is_whole().then_some(kernel)
    }

    /// Returns whether all files exist with their lengths.
    fn is_whole(&self) -> bool {
        let is_whole = |(name, length): (&String, &u64)| {
            fs::symlink_metadata(self.directory.join(name))
                .is_ok_and(|found| found.is_file() && found.len() == *length)
        };
        is_version(&self.about.version) && self.about.files.iter().all(is_whole)
    }

    fn check_owner(&self) -> Result<()> {
        let files = self.about.files.keys().map(|name| self.directory.join(name));
        let about = [self.directory.clone(), self.directory.join(ABOUT)];
        about.into_iter().chain(files).try_for_each(|path| of_this_user(&path))
    }

    /// Returns the version, such as `6.12.117+deb12-cloud-amd64`.
    pub fn version(&self) -> &str {
        &self.about.version
    }

    /// Returns whether KVM leaves the guest after each injected interrupt, and at each PAUSE.
    pub fn exits_where_needed(&self) -> bool {
        self.about.exits == Exits::BOTH
    }

    /// Returns a warning for the user before the kernel is used. `None` for a known kernel.
    pub const fn warning(&self) -> Option<&'static str> {
        let Exits { after_injection, at_pause } = self.about.exits;
        match (after_injection, at_pause) {
            // QEMU then delivers some interrupts twice.
            (false, _) => Some(
                "the kvm_amd of the virtual host's kernel is not known: about one start in a hundred hangs",
            ),
            (true, false) => Some(
                "the kvm_amd of the virtual host's kernel is not known: the CPUs of a box wait for each other's turn",
            ),
            (true, true) => None,
        }
    }

    pub(crate) fn kernel(&self) -> PathBuf {
        self.directory.join(KERNEL)
    }

    /// Returns the modules' files in the order of loading.
    pub(crate) fn modules(&self) -> Vec<PathBuf> {
        let names = self.about.files.keys().filter(|name| name.starts_with(MODULES_FOLDER));
        names.map(|name| self.directory.join(name)).collect()
    }
}

/// Refuses a file or directory that another user could have changed.
fn of_this_user(path: &Path) -> Result<()> {
    match Trusted::this_user()
        .untrusted_user_on_path(path)
        .map_err(HostError::file("look at", path))?
    {
        Some(stranger) => Err(HostError::Stranger { path: path.to_owned(), stranger }),
        None => Ok(()),
    }
}

/// Returns whether a text is a valid kernel version. A version is used as a directory's name and printed.
fn is_version(text: &str) -> bool {
    text.starts_with(|it: char| it.is_ascii_digit())
        && text.chars().all(|it| it.is_ascii_alphanumeric() || ".+~_-".contains(it))
}

/// Returns the directory of the user's prepared kernels. `variable` returns the value of an environment variable.
/// Returns `None` if neither `XDG_CACHE_HOME` nor `HOME` is usable.
///
/// # Examples
/// ```
/// let cache = virtual_host::kernel::cache(|name| (name == "HOME").then(|| "/home/ada".into()));
/// assert_eq!(cache.unwrap().to_str(), Some("/home/ada/.cache/boxbuild/virtual-host"));
/// ```
pub fn cache(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    user_directory("XDG_CACHE_HOME", ".cache", variable).map(|it| it.join(CACHE))
}

/// Returns the numbers in a path's last component. Comparing them shows that 6.1.0-9 is older than 6.1.0-56.
fn numbers(path: &Path) -> Vec<u64> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split(|it: char| !it.is_ascii_digit()).filter_map(|it| it.parse().ok()).collect()
}

/// Prepares the kernel of a package in a cache directory. Replaces a prepared kernel of the same version.
fn prepare(package: &Package, cache: &Path) -> Result<HostKernel> {
    let into = cache.join(format!("{FORM}{}", package.version));
    let draft = DirectoryDraft::beside(&into, 0o755).map_err(published(&into))?;
    // The draft is filled by its path, which another user with write access to the cache could redirect.
    of_this_user(draft.path())?;
    fill(package, draft.path())?;
    draft.finish_over(|_| Ok(())).map_err(published(&into))?;
    let kernel = HostKernel::open(into)
        .ok_or_else(|| HostError::malformed("the prepared kernel", "it is incomplete"))?;
    kernel.check_owner().map(|()| kernel)
}

/// Writes the files of a prepared kernel into an empty directory.
fn fill(package: &Package, draft: &Path) -> Result<()> {
    let folder = draft.join(MODULES_FOLDER);
    fs::create_dir(&folder).map_err(HostError::file("make", &folder))?;
    let mut about =
        About { version: package.version.clone(), exits: Exits::default(), files: BTreeMap::new() };
    let unpacked = vmlinux::extract(&package.image)?;
    let mut put = |name: String, bytes: &[u8]| {
        write(&draft.join(&name), bytes)?;
        about.files.insert(name, bytes.len() as u64);
        Ok(())
    };
    put(KERNEL.to_owned(), unpacked.as_ref().unwrap_or(&package.image))?;
    for (number, (name, mut bytes)) in load_order(package)?.into_iter().enumerate() {
        lighten::lighten(&mut bytes);
        if name == CHANGED {
            about.exits = kvm_amd::add_exits(&mut bytes);
        }
        put(format!("{MODULES_FOLDER}{number:02}-{name}.ko"), &bytes)?;
    }
    let about = serde_json::to_vec(&about).map_err(|error| HostError::malformed(ABOUT, error))?;
    write(&draft.join(ABOUT), &about)
}

/// Returns a function that adds the directory `path` to an error of [`DirectoryDraft`].
fn published<E: std::error::Error + Send + Sync + 'static>(
    path: &Path,
) -> impl FnOnce(E) -> HostError {
    let failed = HostError::file("prepare", path);
    move |error| failed(io::Error::other(error))
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).map_err(HostError::file("write", path))
}

/// Returns a module's name with `_` for `-`. The kernel treats them as equal.
fn canonical(name: &str) -> String {
    name.replace('-', "_")
}

/// Returns [`MODULES`] and their dependencies in an order in which the kernel can load them.
fn load_order(package: &Package) -> Result<Vec<(String, Vec<u8>)>> {
    let mut order = Order { package, begun: Vec::new(), modules: Vec::new() };
    MODULES.iter().try_for_each(|name| order.add_with_dependencies(name))?;
    Ok(order.modules)
}

/// The order of loading: each module follows its dependencies.
struct Order<'a> {
    package: &'a Package,
    /// The names of modules that are in [`Self::modules`] or wait for their dependencies.
    begun: Vec<String>,
    modules: Vec<(String, Vec<u8>)>,
}

impl Order<'_> {
    /// Adds a module after its dependencies. If modules depend on each other, the one that was requested first is last.
    fn add_with_dependencies(&mut self, name: &str) -> Result<()> {
        let name = canonical(name);
        if self.begun.contains(&name) {
            return Ok(());
        }
        self.begun.push(name.clone());
        let bytes = self.package.module(&name)?;
        for dependency in dependencies(&bytes) {
            self.add_with_dependencies(&dependency)?;
        }
        self.modules.push((name, bytes));
        Ok(())
    }
}

/// Reads the field `depends` of a module's section `.modinfo`: NUL-terminated texts, such as `depends=kvm,irqbypass`.
fn dependencies(module: &[u8]) -> Vec<String> {
    let key = b"\0depends=";
    let Some(at) = module.windows(key.len()).position(|window| window == key) else {
        return Vec::new();
    };
    let value = module[at + key.len()..].split(|byte| *byte == 0).next().unwrap_or_default();
    let names = String::from_utf8_lossy(value);
    names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::package::Module;
    use super::*;

    /// Returns a module with dependencies.
    fn module(depends: &str) -> Module {
        Module::plain(format!("ELF\0license=GPL\0depends={depends}\0name=x\0").into_bytes())
    }

    /// Returns a package with modules, each with its dependencies, and an image that is not compressed.
    fn package(modules: &[(&str, &str)]) -> Package {
        let modules = modules.iter().map(|(name, depends)| (canonical(name), module(depends)));
        let mut image = vec![0; 4096];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        Package { version: "6.1.0-9-cloud-amd64".to_owned(), image, modules: modules.collect() }
    }

    const ALL: [(&str, &str); 9] = [
        ("kvm", "irqbypass"),
        ("kvm-amd", "kvm"),
        ("irqbypass", ""),
        ("libnvdimm", ""),
        ("nd_btt", "libnvdimm"),
        ("nd_pmem", "libnvdimm,nd_btt"),
        ("nfit", "libnvdimm"),
        ("erofs", "libcrc32c"),
        ("libcrc32c", ""),
    ];

    #[test]
    fn the_newest_kernel_that_is_whole_is_found() {
        let cache = tempfile::tempdir().unwrap();
        let mut package = package(&ALL);
        prepare(&package, cache.path()).unwrap();
        package.version = "6.1.0-56-cloud-amd64".to_owned();
        let newest = prepare(&package, cache.path()).unwrap();
        let version = || HostKernel::find(cache.path()).unwrap().unwrap().version().to_owned();
        assert_eq!(version(), "6.1.0-56-cloud-amd64");
        for stranger in [newest.modules()[0].clone(), newest.directory.join(ABOUT)] {
            fs::set_permissions(&stranger, Permissions::from_mode(0o646)).unwrap();
            let error = HostKernel::find(cache.path()).unwrap_err();
            assert!(error.to_string().contains("everybody can write to"), "{error}");
            fs::set_permissions(&stranger, Permissions::from_mode(0o644)).unwrap();
        }
        // A power failure can leave a truncated file.
        for lost in [newest.modules()[3].clone(), newest.kernel()] {
            let bytes = fs::read(&lost).unwrap();
            write(&lost, b"").unwrap();
            assert_eq!(version(), "6.1.0-9-cloud-amd64");
            write(&lost, &bytes).unwrap();
            assert_eq!(version(), "6.1.0-56-cloud-amd64");
        }
    }

    #[test]
    fn a_kernel_replaces_one_of_its_version_and_leaves_nothing_else() {
        let cache = tempfile::tempdir().unwrap();
        let mut package = package(&ALL);
        prepare(&package, cache.path()).unwrap();
        package.image.push(1);
        let kernel = prepare(&package, cache.path()).unwrap();
        assert_eq!(fs::read(kernel.kernel()).unwrap(), package.image);
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 1);
    }

    #[test]
    fn no_kernel_is_made_where_another_user_can_change_it() {
        let cache = tempfile::tempdir().unwrap();
        fs::set_permissions(cache.path(), Permissions::from_mode(0o777)).unwrap();
        let error = prepare(&package(&ALL), cache.path()).unwrap_err();
        assert!(error.to_string().contains("everybody can write to"), "{error}");
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0);
    }

    /// The output of `xz --check=crc32` for a module with two dependencies.
    const COMPRESSED: &[u8] = &[
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x01, 0x69, 0x22, 0xde, 0x36, 0x02, 0x00, 0x21,
        0x01, 0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0x01, 0x00, 0x2f, 0x45, 0x4c, 0x46,
        0x00, 0x6c, 0x69, 0x63, 0x65, 0x6e, 0x73, 0x65, 0x3d, 0x47, 0x50, 0x4c, 0x00, 0x64, 0x65,
        0x70, 0x65, 0x6e, 0x64, 0x73, 0x3d, 0x6c, 0x69, 0x62, 0x6e, 0x76, 0x64, 0x69, 0x6d, 0x6d,
        0x2c, 0x6e, 0x64, 0x5f, 0x62, 0x74, 0x74, 0x00, 0x6e, 0x61, 0x6d, 0x65, 0x3d, 0x78, 0x00,
        0x00, 0x95, 0xe7, 0x33, 0x0b, 0x00, 0x01, 0x44, 0x30, 0x86, 0x0f, 0x4a, 0x92, 0x90, 0x42,
        0x99, 0x0d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x01, 0x59, 0x5a,
    ];

    #[test]
    fn a_compressed_module_is_read() {
        let mut package = package(&ALL);
        let mut put = |bytes: &[u8]| {
            package.modules.insert("nd_pmem".to_owned(), Module::xz(bytes.to_vec()));
            package.module("nd_pmem")
        };
        assert_eq!(dependencies(&put(COMPRESSED).unwrap()), ["libnvdimm", "nd_btt"]);
        let error = put(&COMPRESSED[..40]).unwrap_err();
        assert!(error.to_string().starts_with("nd_pmem.ko.xz is malformed: "), "{error}");
    }

    #[test]
    fn a_module_is_loaded_once_after_its_dependencies() {
        let names = |modules: &[(&str, &str)]| {
            let order = load_order(&package(modules))?;
            Ok::<_, HostError>(order.into_iter().map(|(name, _)| name).collect::<Vec<_>>())
        };
        let error = names(&ALL[..8]).unwrap_err();
        assert!(error.to_string().contains("libcrc32c.ko"), "{error}");
        let order = "irqbypass kvm kvm_amd libnvdimm nd_btt nd_pmem nfit libcrc32c erofs";
        assert_eq!(names(&ALL).unwrap().join(" "), order);
        // Circular dependencies cause no endless recursion.
        let mut circle = ALL;
        circle[2].1 = "kvm-amd,irqbypass";
        assert_eq!(names(&circle).unwrap().join(" "), order);
    }

    #[test]
    fn a_version_is_a_name_that_can_be_printed() {
        assert!(is_version("6.12.117+deb12-cloud-amd64"));
        for wrong in ["", "..", "6/..", "6\x1b[31m", "6\n"] {
            assert!(!is_version(wrong), "{wrong:?}");
        }
    }
}
