//! Compiles the lean kernel of `kernel/` from Debian's source package. Its bytes depend only on the source, the
//! configuration, the patches and the compiler, and not on the directory.
//!
//! `kernel/lean.lock` has the digest of these inputs and of the compiled kernel. Whoever has a kernel with this digest need not
//! compile it: it is kept in the [`Cache`], and `cargo xtask kernel --from` adds one to it.

mod compile;
mod config;
mod locked;
pub(crate) mod source;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use box_digest::Digest;
use serde::{Deserialize, Serialize};

use crate::cache::note_use;
use crate::prerequisites::{Package, Say, lock, packages};
use crate::{Cache, KitError, Result, Workspace, digest, program};
use compile::Compilation;
pub use compile::Jobs;
pub use locked::Locked;
use source::Source;

/// The version of the build procedure. Change it together with the procedure, so that kernels of the old one are not reused.
const FORM: &str = "1";
const ABOUT: &str = "about.json";
/// The files of a compiled kernel, beside [`ABOUT`].
const ELF: &str = "vmlinux";
const CONFIG: &str = "config";

/// The kind of these directories in the cache.
const KIND: &str = "kernel";
/// The prefix of the kernel's directories, before the digest of its inputs.
const NAME: &str = "lean";
/// The kernel's configuration, below `kernel`.
const CONFIGURATION: &str = "guest.config";
/// The patches of the source, below `kernel`.
const PATCHES: [&str; 2] = ["ask-again.patch", "owners-below-mounts.patch"];

/// A compiled kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeanKernel {
    /// The kernel's directory.
    pub directory: PathBuf,
    /// The kernel's metadata.
    pub about: About,
}

/// The metadata of a compiled kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The package of the kernel's source and its version: `linux-source-6.12 6.12.117-1~deb12u1`.
    pub source: String,
    /// The sha256 of the source package's file, in hexadecimal.
    pub source_sha256: String,
    /// The first lines of the version output of the compiler and the linker.
    pub compiler: String,
    /// The sha256 of the kernel, in hexadecimal.
    pub sha256: String,
}

impl LeanKernel {
    /// Returns the path of the kernel, an ELF file.
    pub fn elf(&self) -> PathBuf {
        self.directory.join(ELF)
    }

    fn open(directory: PathBuf) -> Option<Self> {
        let about = serde_json::from_slice(&fs::read(directory.join(ABOUT)).ok()?).ok()?;
        let kernel = Self { directory, about };
        // A truncated or changed kernel is compiled again.
        let sha256 = digest::of_file(&kernel.elf()).ok()?.hex();
        (sha256 == kernel.about.sha256).then_some(kernel)
    }
}

/// Returns the kernel of `kernel/lean.lock`, or else the one of the current configuration, patches and compiler, if it is kept.
///
/// # Errors
/// The lock, the configuration or a patch cannot be read.
pub fn find(workspace: &Workspace) -> Result<Option<LeanKernel>> {
    let locked = Locked::current(workspace)?;
    if let Some(locked) = &locked
        && let Some(kernel) = kept(workspace, &locked.inputs)?
    {
        return Ok(Some(kernel));
    }
    let Ok(compiler) = compiler() else { return Ok(None) };
    let source = Source::known(&folder(workspace));
    kept(workspace, &inputs(workspace, &source.sha256, &compiler)?)
}

/// Returns the kernel of these inputs, if it is kept and whole. If the inputs are those of `kernel/lean.lock`, it must have the digest
/// there.
fn kept(workspace: &Workspace, inputs: &str) -> Result<Option<LeanKernel>> {
    let place = place(workspace, inputs);
    let Some(kernel) = LeanKernel::open(place.clone()) else { return Ok(None) };
    let locked = Locked::current(workspace)?.filter(|locked| locked.inputs == inputs);
    if locked.is_some_and(|locked| locked.sha256() != kernel.about.sha256) {
        return Ok(None);
    }
    note_use(&place);
    Ok(Some(kernel))
}

/// Returns the kernel. A missing one is compiled first, which takes some six minutes on two processors.
///
/// # Errors
/// A tool or the source is missing and unavailable, the kernel does not compile, or the same inputs have made another kernel than the
/// one of `kernel/lean.lock`.
pub fn build(workspace: &Workspace, say: Say<'_>) -> Result<LeanKernel> {
    if let Some(kernel) = find(workspace)? {
        return Ok(kernel);
    }
    packages(&Package::TO_COMPILE_KERNELS, say)?;
    let source = {
        let _lock = lock(&folder(workspace))?;
        Source::get(&folder(workspace), say)?
    };
    let inputs = inputs(workspace, &source.sha256, &compiler()?)?;
    let locked = Locked::current(workspace)?.filter(|locked| locked.inputs == inputs);
    keep(workspace, &inputs, |draft| {
        compile(workspace, &source, Jobs::of_machine(), draft, say)?;
        locked.map_or(Ok(()), |locked| locked.check(&draft.join(ELF)))
    })
}

/// Keeps the kernel that `make` writes into an empty directory, in the place of a damaged or wrong one.
fn keep(
    workspace: &Workspace,
    inputs: &str,
    make: impl FnOnce(&Path) -> Result<()>,
) -> Result<LeanKernel> {
    let old = place(workspace, inputs);
    if old.exists() && kept(workspace, inputs)?.is_none() {
        fs::remove_dir_all(&old).map_err(KitError::file("remove", &old))?;
    }
    Cache::of_user(workspace).made((KIND, &name(inputs)), |_, draft| {
        fs::create_dir(draft).map_err(KitError::file("make", draft))?;
        make(draft)
    })?;
    kept(workspace, inputs)?.ok_or_else(|| KitError::malformed(ABOUT, "it is for another kernel"))
}

/// Compiles the kernel twice, in two directories and with different numbers of parallel processes. Returns the sha256 of
/// each result.
///
/// # Errors
/// The errors of [`build`].
pub fn build_twice(workspace: &Workspace, say: Say<'_>) -> Result<[String; 2]> {
    let folder = folder(workspace);
    let _lock = lock(&folder)?;
    packages(&Package::TO_COMPILE_KERNELS, say)?;
    let source = Source::get(&folder, say)?;
    let mut once = |jobs| -> Result<String> {
        let draft = tempfile::tempdir_in(&folder).map_err(KitError::file("make", &folder))?;
        compile(workspace, &source, jobs, draft.path(), say)?;
        Ok(digest::of_file(&draft.path().join(ELF))?.hex())
    };
    Ok([once(Jobs::of_machine())?, once(Jobs::other())?])
}

/// Adds the kernel in the directory `from` to the cache. It must be the one of `kernel/lean.lock`.
///
/// # Errors
/// The kernel has another digest, `kernel/lean.lock` is for other inputs, or a file cannot be read or written.
pub fn take(workspace: &Workspace, from: &Path) -> Result<LeanKernel> {
    let locked = Locked::current(workspace)?
        .ok_or_else(|| KitError::malformed(locked::FILE, "it is for other inputs"))?;
    keep(workspace, &locked.inputs, |draft| {
        for name in [ELF, CONFIG, ABOUT] {
            let source = from.join(name);
            fs::copy(&source, draft.join(name)).map_err(KitError::file("copy", &source))?;
        }
        locked.check(&draft.join(ELF))
    })
}

/// Compiles the kernel into an empty directory.
fn compile(
    workspace: &Workspace,
    source: &Source,
    jobs: Jobs,
    draft: &Path,
    say: Say<'_>,
) -> Result<()> {
    let patches = PATCHES.iter().map(|name| input(workspace, name)).collect();
    let configuration = configuration(workspace)?;
    let compilation = Compilation { source, configuration, patches, jobs };
    compilation.run(draft, say)?;
    let about = About {
        source: source.name(),
        source_sha256: source.sha256.clone(),
        compiler: compiler()?,
        sha256: digest::of_file(&draft.join(ELF))?.hex(),
    };
    let path = draft.join(ABOUT);
    let about =
        serde_json::to_vec_pretty(&about).map_err(|error| KitError::malformed(ABOUT, error))?;
    fs::write(&path, about).map_err(KitError::file("write", &path))
}

fn configuration(workspace: &Workspace) -> Result<String> {
    read(&input(workspace, CONFIGURATION))
}

/// Returns the digest of all inputs that affect the bytes, in hexadecimal.
fn inputs(workspace: &Workspace, source_sha256: &str, compiler: &str) -> Result<String> {
    let mut key = [FORM, source_sha256, compiler].join("\n");
    key.push_str(&configuration(workspace)?);
    for patch in PATCHES {
        key.push_str(&read(&input(workspace, patch))?);
    }
    Ok(Digest::of(key.as_bytes()).hex())
}

/// Returns the name of the kernel's directory.
fn name(inputs: &str) -> String {
    format!("{NAME}-{}", &inputs[..16])
}

/// Returns the kernel's directory, which may not exist.
fn place(workspace: &Workspace, inputs: &str) -> PathBuf {
    Cache::of_user(workspace).folder(KIND).join(name(inputs))
}

/// Returns the directory of the source package.
fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target("kernel")
}

fn input(workspace: &Workspace, name: &str) -> PathBuf {
    workspace.path("kernel").join(name)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(KitError::file("read", path))
}

/// Returns the first lines of the version output of the compiler and the linker.
fn compiler() -> Result<String> {
    let first = |name: &str| -> Result<String> {
        let text = program::run(Command::new(name).arg("--version"))?;
        Ok(String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned())
    };
    Ok(format!("{}; {}", first("gcc")?, first("ld")?))
}
