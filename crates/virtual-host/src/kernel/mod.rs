//! The emulated machine's kernel, made ready once: Debian's cloud kernel.
//!
//! ```text
//! CACHE/5-6.12.117+deb12-cloud-amd64/
//!     about.json            the version, and whether KVM leaves the guest where it must
//!     kernel                the ELF kernel, or Debian's bzImage where it cannot be unpacked
//!     modules/00-NAME.ko    the modules, numbered in the order in which they are loaded
//! ```

mod choice;
mod kvm_amd;
mod lighten;
mod package;
mod vmlinux;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use host_fs::trust::Trusted;
use host_fs::user_directory;
use lzma_rust2::XzReader;
use serde::{Deserialize, Serialize};

use self::kvm_amd::Exits;
use crate::{HostError, Result};
pub use choice::choose;
pub use package::{fetch, newest_package, prepare_package};

/// The kernel modules that the machine needs: hardware virtualization, memory-backed disks, and EROFS.
const MODULES: [&str; 6] = ["kvm-amd", "libnvdimm", "nd_btt", "nd_pmem", "nfit", "erofs"];
/// The module that [`kvm_amd`] changes.
const CHANGED: &str = "kvm_amd";
/// No module is larger than this, in bytes.
const MODULE_LIMIT: u64 = 1 << 26;
/// The form of a prepared kernel, which changes with what [`lighten`] and [`kvm_amd`] change. A directory of another form is not
/// looked at.
const FORM: &str = "5-";
const ABOUT: &str = "about.json";
/// Where prepared kernels are kept, below the user's cache directory.
const CACHE: &str = "boxbuild/virtual-host";

/// A kernel that is ready for a [`crate::VirtualHost`].
#[derive(Debug, Clone)]
pub struct HostKernel {
    directory: PathBuf,
    about: About,
}

/// The facts about a prepared kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct About {
    version: String,
    exits: Exits,
}

impl HostKernel {
    /// Opens the newest kernel that was prepared in a cache directory; `None` if it has no kernel.
    ///
    /// # Errors
    /// [`HostError::Stranger`] if another user could have changed the kernel: it sees the box, and says
    /// how long it took.
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
        let about = serde_json::from_slice(&fs::read(directory.join(ABOUT)).ok()?).ok()?;
        let kernel = Self { directory, about };
        (fs::metadata(kernel.kernel()).ok()?.len() > 0).then_some(kernel)
    }

    fn check_owner(&self) -> Result<()> {
        let files = [self.directory.clone(), self.kernel()].into_iter().chain(self.modules()?);
        for path in files {
            let stranger = Trusted::this_user().stranger(&path);
            if let Some(stranger) = stranger.map_err(HostError::file("look at", &path))? {
                return Err(HostError::Stranger { path, stranger });
            }
        }
        Ok(())
    }

    /// Returns the version, such as `6.12.117+deb12-cloud-amd64`.
    pub fn version(&self) -> &str {
        &self.about.version
    }

    /// Returns whether KVM leaves the guest after each interrupt that it injects, and at each PAUSE.
    pub fn exits_where_needed(&self) -> bool {
        self.about.exits == Exits::BOTH
    }

    /// Returns what people should know before they use the kernel; `None` for a known one.
    pub const fn warning(&self) -> Option<&'static str> {
        let Exits { after_injection, at_pause } = self.about.exits;
        match (after_injection, at_pause) {
            // The emulator then delivers some interrupts twice.
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
        self.directory.join("kernel")
    }

    /// Returns the modules' files in the order in which they are loaded.
    pub(crate) fn modules(&self) -> Result<Vec<PathBuf>> {
        let folder = self.directory.join("modules");
        let entries = fs::read_dir(&folder).map_err(HostError::file("list", &folder))?;
        let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        Ok(paths)
    }
}

/// Returns the directory of the user's prepared kernels, by a function that returns a variable's value; `None` where
/// neither `XDG_CACHE_HOME` nor `HOME` names one.
pub fn cache(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    user_directory("XDG_CACHE_HOME", ".cache", variable).map(|it| it.join(CACHE))
}

/// Returns the numbers in a path's last part: 6.1.0-9 is older than 6.1.0-56.
fn numbers(path: &Path) -> Vec<u64> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split(|it: char| !it.is_ascii_digit()).filter_map(|it| it.parse().ok()).collect()
}

/// Makes a kernel ready in `draft` from an unpacked package.
fn prepare(package: &Path, version: &str, draft: &Path) -> Result<()> {
    let folder = draft.join("modules");
    fs::create_dir_all(&folder).map_err(HostError::file("make", &folder))?;
    let image = read(&package.join(format!("boot/vmlinuz-{version}")))?;
    write(&draft.join("kernel"), &vmlinux::extract(&image)?.unwrap_or(image))?;
    let tree = package::modules(package).join(version).join("kernel");
    let mut exits = Exits::default();
    for (number, (name, mut bytes)) in load_order(&index(&tree)?)?.into_iter().enumerate() {
        lighten::lighten(&mut bytes);
        if name == CHANGED {
            exits = kvm_amd::add_exits(&mut bytes);
        }
        write(&folder.join(format!("{number:02}-{name}.ko")), &bytes)?;
    }
    let about = About { version: version.to_owned(), exits };
    let about = serde_json::to_vec(&about).map_err(|error| HostError::malformed(ABOUT, error))?;
    write(&draft.join(ABOUT), &about)
}

/// Puts a prepared kernel in its place in a cache directory; what was there goes into `scratch`.
fn publish(
    draft: &Path,
    version: &str,
    scratch: &Path,
    cache: &Path,
    replace: bool,
) -> Result<HostKernel> {
    let into = cache.join(format!("{FORM}{version}"));
    if replace || HostKernel::open(into.clone()).is_none() {
        // There may be none, and what is there is whole or was never used.
        drop(fs::rename(&into, scratch.join("old")));
    }
    // Another process may have been faster; its kernel is the same.
    if let Err(error) = fs::rename(draft, &into)
        && !into.exists()
    {
        return Err(HostError::file("rename", draft)(error));
    }
    HostKernel::open(into)
        .ok_or_else(|| HostError::malformed("the prepared kernel", "it is incomplete"))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(HostError::file("read", path))
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).map_err(HostError::file("write", path))
}

/// Maps the names of all modules below a directory to their files.
fn index(tree: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![tree.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(HostError::file("list", &folder))? {
            let path = entry.map_err(HostError::file("list", &folder))?.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Some(name) = module_name(&path) {
                found.insert(name, path);
            }
        }
    }
    Ok(found)
}

/// Returns the name of the module in a file: Debian 13 compresses them, Debian 12 does not.
fn module_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    name.strip_suffix(".xz").unwrap_or(name).strip_suffix(".ko").map(canonical)
}

fn read_module(path: &Path) -> Result<Vec<u8>> {
    let bytes = read(path)?;
    if path.extension().is_none_or(|it| it != "xz") {
        return Ok(bytes);
    }
    let mut module = Vec::new();
    XzReader::new(&*bytes, true)
        .take(MODULE_LIMIT + 1)
        .read_to_end(&mut module)
        .map_err(HostError::file("decompress", path))?;
    if module.len() as u64 > MODULE_LIMIT {
        return Err(HostError::malformed(
            path.display().to_string(),
            "it is too long for a kernel module",
        ));
    }
    Ok(module)
}

/// The kernel takes `-` and `_` in a module's name for the same.
fn canonical(name: &str) -> String {
    name.replace('-', "_")
}

/// Returns [`MODULES`] and what they depend on, each after its dependencies.
fn load_order(files: &BTreeMap<String, PathBuf>) -> Result<Vec<(String, Vec<u8>)>> {
    let mut order = Vec::new();
    for name in MODULES {
        add_with_dependencies(name, files, &mut order)?;
    }
    Ok(order)
}

fn add_with_dependencies(
    name: &str,
    files: &BTreeMap<String, PathBuf>,
    order: &mut Vec<(String, Vec<u8>)>,
) -> Result<()> {
    let name = canonical(name);
    if order.iter().any(|(loaded, _)| *loaded == name) {
        return Ok(());
    }
    let path = files.get(&name).ok_or_else(|| {
        HostError::malformed("the virtual host's kernel package", format!("it has no {name}.ko"))
    })?;
    let bytes = read_module(path)?;
    for dependency in dependencies(&bytes) {
        add_with_dependencies(&dependency, files, order)?;
    }
    order.push((name, bytes));
    Ok(())
}

/// Reads the field `depends` of a module's section `.modinfo`: NUL-terminated `KEY=VALUE` texts.
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

    use super::*;

    fn put(tree: &Path, path: &str, depends: &str) {
        let path = tree.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("ELF\0license=GPL\0depends={depends}\0name=x\0")).unwrap();
    }

    #[test]
    fn the_newest_kernel_is_found() {
        let cache = tempfile::tempdir().unwrap();
        for version in ["6.1.0-9-cloud-amd64", "6.1.0-56-cloud-amd64"] {
            let directory = cache.path().join(format!("{FORM}{version}"));
            fs::create_dir(&directory).unwrap();
            let about = About { version: version.to_owned(), exits: Exits::BOTH };
            write(&directory.join(ABOUT), &serde_json::to_vec(&about).unwrap()).unwrap();
            write(&directory.join("kernel"), b"ELF").unwrap();
            fs::create_dir(directory.join("modules")).unwrap();
        }
        let newest = cache.path().join(format!("{FORM}6.1.0-56-cloud-amd64"));
        let version = || HostKernel::find(cache.path()).unwrap().unwrap().version().to_owned();
        assert_eq!(version(), "6.1.0-56-cloud-amd64");
        let module = newest.join("modules/00-kvm.ko");
        write(&module, b"ELF").unwrap();
        fs::set_permissions(&module, Permissions::from_mode(0o646)).unwrap();
        let error = HostKernel::find(cache.path()).unwrap_err();
        assert!(error.to_string().contains("everybody can write to"), "{error}");
        // Half of what a power failure leaves.
        write(&newest.join("kernel"), b"").unwrap();
        assert_eq!(version(), "6.1.0-9-cloud-amd64");
    }

    /// A module as `xz --check=crc32` writes it, which depends on two others.
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
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("nd_pmem.ko.xz");
        write(&file, COMPRESSED).unwrap();
        let files = index(directory.path()).unwrap();
        let module = read_module(&files["nd_pmem"]).unwrap();
        assert_eq!(dependencies(&module), ["libnvdimm", "nd_btt"]);
        write(&file, &COMPRESSED[..40]).unwrap();
        assert!(read_module(&file).unwrap_err().to_string().contains("decompress"));
    }

    #[test]
    fn a_module_is_loaded_once_after_its_dependencies() {
        let directory = tempfile::tempdir().unwrap();
        put(directory.path(), "arch/kvm/kvm.ko", "irqbypass");
        put(directory.path(), "arch/kvm/kvm-amd.ko", "kvm");
        put(directory.path(), "virt/irqbypass.ko", "");
        put(directory.path(), "nvdimm/libnvdimm.ko", "");
        put(directory.path(), "nvdimm/nd_btt.ko", "libnvdimm");
        put(directory.path(), "nvdimm/nd_pmem.ko", "libnvdimm,nd_btt");
        put(directory.path(), "acpi/nfit.ko", "libnvdimm");
        put(directory.path(), "fs/erofs.ko", "libcrc32c");
        let error = load_order(&index(directory.path()).unwrap()).unwrap_err();
        assert!(error.to_string().contains("libcrc32c.ko"), "{error}");
        put(directory.path(), "lib/libcrc32c.ko", "");
        let order = load_order(&index(directory.path()).unwrap()).unwrap();
        let names: Vec<_> = order.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "irqbypass",
                "kvm",
                "kvm_amd",
                "libnvdimm",
                "nd_btt",
                "nd_pmem",
                "nfit",
                "libcrc32c",
                "erofs"
            ]
        );
    }
}
