//! Compiles the lean kernel of `kernel/` from Debian's source package. Its bytes depend only on the source, the
//! configuration and the compiler, and not on the directory.

mod compile;
mod config;
mod source;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use box_digest::Digest;
use serde::{Deserialize, Serialize};

use crate::prerequisites::{Package, Say, lock, packages};
use crate::{KitError, Result, Workspace, digest, program};
use compile::Compilation;
pub use compile::Jobs;
use source::Source;

/// The version of the build procedure. Change it together with the procedure, so that kernels of the old one are not reused.
const FORM: &str = "1";
const ABOUT: &str = "about.json";
/// The prefix of the directories in which a kernel is being compiled.
const DRAFT: &str = "draft-";

/// The prefix of the kernel's directories below `target/kernel`, before the digest of its inputs.
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
        self.directory.join("vmlinux")
    }

    fn open(directory: PathBuf) -> Option<Self> {
        let about = serde_json::from_slice(&fs::read(directory.join(ABOUT)).ok()?).ok()?;
        let kernel = Self { directory, about };
        // A truncated or changed kernel is compiled again.
        let sha256 = digest::of_file(&kernel.elf()).ok()?.hex();
        (sha256 == kernel.about.sha256).then_some(kernel)
    }
}

/// Returns the kernel if it was already compiled from the current configuration and patches and with the current compiler.
///
/// # Errors
/// The configuration or a patch cannot be read.
pub fn find(workspace: &Workspace) -> Result<Option<LeanKernel>> {
    let Ok(compiler) = compiler() else { return Ok(None) };
    let source = Source::known(&folder(workspace));
    Ok(LeanKernel::open(kept(workspace, &source, &compiler)?))
}

/// Returns the kernel. A missing one is compiled first, which takes some six minutes on two processors.
///
/// # Errors
/// A tool or the source is missing and unavailable, or the kernel does not compile.
pub fn build(workspace: &Workspace, say: Say<'_>) -> Result<LeanKernel> {
    if let Some(kernel) = find(workspace)? {
        return Ok(kernel);
    }
    let folder = folder(workspace);
    let _lock = lock(&folder)?;
    remove_drafts(&folder)?;
    packages(&Package::TO_COMPILE_KERNELS, say)?;
    let source = Source::get(&folder, say)?;
    let place = kept(workspace, &source, &compiler()?)?;
    // Another process may have compiled the kernel before this one got the lock.
    if let Some(kernel) = LeanKernel::open(place.clone()) {
        return Ok(kernel);
    }
    let draft = compile(workspace, &source, Jobs::of_machine(), say)?;
    if place.exists() {
        fs::remove_dir_all(&place).map_err(KitError::file("remove", &place))?;
    }
    let draft = draft.keep();
    fs::rename(&draft, &place).map_err(KitError::file("rename", &draft))?;
    LeanKernel::open(place).ok_or_else(|| KitError::malformed(ABOUT, "it is incomplete"))
}

/// Compiles the kernel twice, in two directories and with different numbers of parallel processes. Returns the sha256 of
/// each result.
///
/// # Errors
/// The errors of [`build`].
pub fn build_twice(workspace: &Workspace, say: Say<'_>) -> Result<[String; 2]> {
    let _lock = lock(&folder(workspace))?;
    remove_drafts(&folder(workspace))?;
    packages(&Package::TO_COMPILE_KERNELS, say)?;
    let source = Source::get(&folder(workspace), say)?;
    let mut once = |jobs| -> Result<String> {
        let draft = compile(workspace, &source, jobs, say)?;
        Ok(digest::of_file(&draft.path().join("vmlinux"))?.hex())
    };
    Ok([once(Jobs::of_machine())?, once(Jobs::other())?])
}

/// Compiles the kernel into a new temporary directory.
fn compile(
    workspace: &Workspace,
    source: &Source,
    jobs: Jobs,
    say: Say<'_>,
) -> Result<tempfile::TempDir> {
    let folder = folder(workspace);
    let draft = tempfile::Builder::new().prefix(DRAFT).tempdir_in(&folder);
    let draft = draft.map_err(KitError::file("make", &folder))?;
    let patches = PATCHES.iter().map(|name| input(workspace, name)).collect();
    let configuration = configuration(workspace)?;
    let compilation = Compilation { source, configuration, patches, jobs };
    compilation.run(draft.path(), say)?;
    let elf = draft.path().join("vmlinux");
    let about = About {
        source: source.name(),
        source_sha256: source.sha256.clone(),
        compiler: compiler()?,
        sha256: digest::of_file(&elf)?.hex(),
    };
    let path = draft.path().join(ABOUT);
    let about =
        serde_json::to_vec_pretty(&about).map_err(|error| KitError::malformed(ABOUT, error))?;
    fs::write(&path, about).map_err(KitError::file("write", &path))?;
    Ok(draft)
}

fn configuration(workspace: &Workspace) -> Result<String> {
    read(&input(workspace, CONFIGURATION))
}

/// Returns the directory of the kernel. Its name has a digest of all inputs that affect the bytes.
fn kept(workspace: &Workspace, source: &Source, compiler: &str) -> Result<PathBuf> {
    let mut key = [FORM, &source.sha256, compiler].join("\n");
    key.push_str(&configuration(workspace)?);
    for patch in PATCHES {
        key.push_str(&read(&input(workspace, patch))?);
    }
    let key = Digest::of(key.as_bytes()).hex();
    Ok(folder(workspace).join(format!("{NAME}-{}", &key[..16])))
}

/// Removes the directories of interrupted compilations. The caller must have locked `folder`.
fn remove_drafts(folder: &Path) -> Result<()> {
    let entries = fs::read_dir(folder).map_err(KitError::file("list", folder))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    for name in names.filter(|name| name.starts_with(DRAFT)) {
        let path = folder.join(name);
        fs::remove_dir_all(&path).map_err(KitError::file("remove", &path))?;
    }
    Ok(())
}

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
