//! A box on disk: an OCI image layout directory.
//!
//! ```text
//! oci-layout               {"imageLayoutVersion":"1.0.0"}
//! index.json               names the one manifest                      ≤ 1 MiB
//! blobs/sha256/<manifest>  names the config and the three blobs        ≤ 1 MiB
//! blobs/sha256/<config>    BoxConfig: the run plan                     ≤ 4 MiB
//! blobs/sha256/<blob>      rootfs (EROFS), init and kernel (ELF)
//! ```
//!
//! Whoever hands over a box may be hostile. Documents are read up to a limit and checked against
//! their digests here; the blobs are only opened, and [`crate::verify`] checks them. A file that is a
//! symbolic link or not regular is refused, a blob that another user could change, too, and a name
//! in the store is always the hexadecimal form of a parsed digest.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use box_image::manifest::{
    ARTIFACT_TYPE, CONFIG_TYPE, FORMAT_EPOCH, INIT_TYPE, KERNEL_TYPE, OCI_INDEX_TYPE,
    OCI_MANIFEST_TYPE, ROOTFS_TYPE,
};
use box_image::{BoxConfig, Descriptor, Digest, Index, Manifest, OciLayout, RunPlan};
use nix::fcntl::OFlag;
use nix::libc;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use crate::LaunchError;

const INDEX_LIMIT: u64 = 1 << 20;
const MANIFEST_LIMIT: u64 = 1 << 20;
const CONFIG_LIMIT: u64 = 4 << 20;

/// An opened box: its documents are verified, its blobs are open.
#[derive(Debug)]
pub struct Bundle {
    /// The box digest: sha256 of the manifest.
    pub digest: Digest,
    /// The manifest.
    pub manifest: Manifest,
    /// The config.
    pub config: BoxConfig,
    /// The root file system, an EROFS image.
    pub rootfs: Blob,
    /// The guest's PID 1, a static ELF program.
    pub init: Blob,
    /// The guest's kernel, an ELF file.
    pub kernel: Blob,
}

/// A blob that boots: opened, and not yet verified.
#[derive(Debug)]
pub struct Blob {
    /// `rootfs`, `init` or `kernel`.
    pub name: &'static str,
    /// Where it lies.
    pub path: PathBuf,
    /// What the box says that it is.
    pub descriptor: Descriptor,
    /// Its open file.
    pub file: File,
}

impl Bundle {
    /// Opens the box in the directory `dir`.
    ///
    /// # Errors
    /// When a document is missing, too long, malformed or not the one that the box names, when a
    /// blob cannot be opened, or when no start could carry out the plan (see [`RunPlan::check`]).
    pub fn open(dir: &Path) -> Result<Self, LaunchError> {
        let manifest = Document::manifest(dir)?;
        let config = Document::config(dir, &manifest)?;
        // What init would refuse, or libkrun trip over.
        let plan = &config.value.plan;
        plan.check().map_err(|error| LaunchError::Plan(error.to_string()))?;
        Ok(Self {
            digest: manifest.digest,
            rootfs: open_blob(dir, &manifest, "rootfs", ROOTFS_TYPE)?,
            init: open_blob(dir, &manifest, "init", INIT_TYPE)?,
            kernel: open_blob(dir, &manifest, "kernel", KERNEL_TYPE)?,
            config: config.value,
            manifest: manifest.value,
        })
    }

    /// Returns the run plan.
    pub const fn plan(&self) -> &RunPlan {
        &self.config.plan
    }

    /// Refuses a box that relies on what this version does not do; see [`RunPlan::unsupported`].
    ///
    /// # Errors
    /// [`LaunchError::Unsupported`], with all that it declares.
    pub fn check_enforced(&self) -> Result<(), LaunchError> {
        match self.plan().unsupported() {
            nothing if nothing.is_empty() => Ok(()),
            unsupported => Err(LaunchError::Unsupported(unsupported)),
        }
    }

    /// Returns the three blobs that boot.
    pub const fn blobs(&self) -> [&Blob; 3] {
        [&self.rootfs, &self.init, &self.kernel]
    }
}

/// A document with the place that it was read from, for messages.
struct Document<T> {
    path: PathBuf,
    digest: Digest,
    value: T,
}

impl<T: DeserializeOwned> Document<T> {
    /// Reads the document that a descriptor names.
    fn named(dir: &Path, descriptor: &Descriptor, limit: u64) -> Result<Self, LaunchError> {
        let path = blob_path(dir, &descriptor.digest);
        let bytes = read(&path, limit)?;
        let found = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if found != descriptor.size {
            return Err(LaunchError::Size { path, expected: descriptor.size, found });
        }
        let digest = Digest::from_bytes(Sha256::digest(&bytes).into());
        if digest != descriptor.digest {
            return Err(LaunchError::Digest { path, expected: descriptor.digest, found: digest });
        }
        let value = parse(&path, &bytes)?;
        Ok(Self { path, digest, value })
    }
}

impl Document<Manifest> {
    /// Finds the box's manifest through its index.
    fn manifest(dir: &Path) -> Result<Self, LaunchError> {
        let path = dir.join("oci-layout");
        let layout: OciLayout = parse(&path, &read(&path, INDEX_LIMIT)?)?;
        expect(&path, "imageLayoutVersion", &layout.image_layout_version, "1.0.0")?;
        let path = dir.join("index.json");
        let index: Index = parse(&path, &read(&path, INDEX_LIMIT)?)?;
        expect(&path, "mediaType", &index.media_type, OCI_INDEX_TYPE)?;
        let [descriptor] = index.manifests.as_slice() else {
            let reason = format!(
                "it names {} manifests, and a box has one; copy one of them into a layout of its own",
                index.manifests.len()
            );
            return Err(LaunchError::Document { path, reason });
        };
        expect(&path, "mediaType of the manifest", &descriptor.media_type, OCI_MANIFEST_TYPE)?;
        let manifest = Self::named(dir, descriptor, MANIFEST_LIMIT)?;
        expect(&manifest.path, "mediaType", &manifest.value.media_type, OCI_MANIFEST_TYPE)?;
        expect(&manifest.path, "artifactType", &manifest.value.artifact_type, ARTIFACT_TYPE)?;
        Ok(manifest)
    }
}

impl Document<BoxConfig> {
    /// Reads the config that a manifest names.
    fn config(dir: &Path, manifest: &Document<Manifest>) -> Result<Self, LaunchError> {
        let descriptor = &manifest.value.config;
        expect(&manifest.path, "mediaType of the config", &descriptor.media_type, CONFIG_TYPE)?;
        let config = Self::named(dir, descriptor, CONFIG_LIMIT)?;
        if config.value.epoch != FORMAT_EPOCH {
            return Err(LaunchError::Plan(format!(
                "its format epoch is {}, and this boxlaunch knows {FORMAT_EPOCH}; \
                 use the boxlaunch of the boxbuild that built it",
                config.value.epoch
            )));
        }
        Ok(config)
    }
}

fn blob_path(dir: &Path, digest: &Digest) -> PathBuf {
    dir.join("blobs").join("sha256").join(digest.hex())
}

fn open_blob(
    dir: &Path,
    manifest: &Document<Manifest>,
    name: &'static str,
    media_type: &str,
) -> Result<Blob, LaunchError> {
    let Some(descriptor) = manifest.value.blob(media_type) else {
        let reason = format!("it does not name exactly one {name} ({media_type})");
        return Err(LaunchError::Document { path: manifest.path.clone(), reason });
    };
    let path = blob_path(dir, &descriptor.digest);
    let file = open_regular(&path)?;
    check_owner(&file, &path)?;
    Ok(Blob { name, path, descriptor: descriptor.clone(), file })
}

/// Opens a regular file for reading. A pipe does not block the opening, and is then refused.
fn open_regular(path: &Path) -> Result<File, LaunchError> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(flags.bits()).open(path) {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
            return Err(LaunchError::NotRegular(path.to_owned()));
        }
        opened => opened.map_err(LaunchError::file("open", path))?,
    };
    match file.metadata().map_err(LaunchError::file("examine", path))?.is_file() {
        true => Ok(file),
        false => Err(LaunchError::NotRegular(path.to_owned())),
    }
}

/// Refuses a file that somebody other than root and this user could change: it is read from this
/// very file as long as the box runs, long after it was hashed.
fn check_owner(file: &File, path: &Path) -> Result<(), LaunchError> {
    let metadata = file.metadata().map_err(LaunchError::file("examine", path))?;
    let trusted = [0, nix::unistd::geteuid().as_raw()].contains(&metadata.uid());
    if trusted && metadata.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(LaunchError::Writable(path.to_owned()))
}

/// Reads a document whole, unless it is longer than `limit`.
fn read(path: &Path, limit: u64) -> Result<Vec<u8>, LaunchError> {
    let file = open_regular(path)?;
    let found = file.metadata().map_err(LaunchError::file("examine", path))?.len();
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(LaunchError::file("read", path))?;
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if length > limit {
        return Err(LaunchError::TooLong {
            path: path.to_owned(),
            limit,
            found: found.max(length),
        });
    }
    Ok(bytes)
}

fn parse<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, LaunchError> {
    serde_json::from_slice(bytes)
        .map_err(|error| LaunchError::Document { path: path.to_owned(), reason: error.to_string() })
}

fn expect(path: &Path, field: &str, found: &str, expected: &str) -> Result<(), LaunchError> {
    if found == expected {
        return Ok(());
    }
    let reason = format!("its {field} is {found:?}, and a box has {expected:?}");
    Err(LaunchError::Document { path: path.to_owned(), reason })
}

#[cfg(test)]
mod tests;
