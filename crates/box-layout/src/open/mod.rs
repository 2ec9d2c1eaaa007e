//! An open box.

use std::fs::File;
use std::io::ErrorKind;
use std::iter;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use box_contract::manifest::{
    ARTIFACT_TYPE, CONFIG_TYPE, INDEX_FILE, INIT_TYPE, KERNEL_TYPE, LAYOUT_FILE, LAYOUT_VERSION,
    MAX_CONFIG, OCI_MANIFEST_TYPE, READABLE_EPOCHS, SEGMENTED_EPOCH, blob_name,
};
use box_contract::plan::{MAX_PLAN, PLAN_PATH};
use box_contract::rules::{MAX_INIT, MAX_KERNEL};
use box_contract::{BoxConfig, Descriptor, Manifest, OciLayout, RunPlan};
use box_digest::Digest;
use erofs_writer::ReadError;
use host_fs::read::Section;

use crate::blob_path;
use crate::error::{OpenError, place};
use crate::index;
use crate::places::Places;
use crate::read::{Document, MAX_DOCUMENT};
use crate::rootfs::Rootfs;

/// An open box: its documents are verified, and its kernel, init and rootfs are open. It derefs to its documents.
#[derive(Debug)]
pub struct OpenBox {
    /// The verified manifest and config.
    pub documents: Documents,
    /// The root file system, an EROFS image.
    pub rootfs: Rootfs,
    /// The guest's PID 1, a static ELF program.
    pub init: Blob,
    /// The guest's kernel, an ELF file.
    pub kernel: Blob,
}

/// An open blob of a box. Neither its size nor its digest has been checked.
#[derive(Debug)]
pub struct Blob {
    /// The path at the time of opening, for messages.
    pub path: PathBuf,
    /// The blob's digest and size in the manifest.
    pub descriptor: Descriptor,
    /// The file, open for reading. Its bytes are not verified.
    pub file: File,
    /// Whether the file is in a store instead of the directory of the box.
    pub is_stored: bool,
}

/// The verified manifest and config of a box. No other blob is opened.
#[derive(Debug)]
pub struct Documents {
    /// The directories with the files of the box.
    pub places: Places,
    /// The box digest: sha256 of the manifest.
    pub digest: Digest,
    /// Whether only root and this user can change `index.json`, which contains the manifest's digest.
    pub has_private_index: bool,
    /// The manifest, verified against the digest in the index. It has exactly one init, one kernel, and a rootfs of the config's
    /// epoch.
    pub manifest: Manifest,
    /// The config, verified against the digest in the manifest.
    pub config: BoxConfig,
    /// The bytes of the config, which are UTF-8. The init reads them.
    pub config_bytes: Vec<u8>,
}

impl Documents {
    /// Reads the documents of the box in a directory. Files that are missing there are looked up in the store, if `places` has
    /// one.
    ///
    /// # Errors
    /// If a document is missing, too long, malformed or does not match its digest, or if the plan cannot be carried out (see
    /// [`RunPlan::check`]).
    pub fn read(places: impl Into<Places>) -> Result<Self, OpenError> {
        let places = places.into();
        check_layout(&places.directory)?;
        let (named, has_private_index) = index::find(&places)?;
        let document = Document::named(&places, &named, MAX_DOCUMENT)?;
        Self::of(places, (&document, named.digest), has_private_index)
    }

    /// Reads the documents of a box whose manifest has these bytes. `places` needs neither an index nor the manifest.
    ///
    /// # Errors
    /// The errors of [`Self::read`] for a manifest and a config.
    pub fn of_manifest(places: Places, bytes: &[u8]) -> Result<Self, OpenError> {
        let digest = Digest::of(bytes);
        let document = Document::of(&blob_path(&places.directory, &digest), bytes.to_vec());
        Self::of(places, (&document, digest), false)
    }

    /// Checks a manifest, and reads the config that it names.
    fn of(
        places: Places,
        (document, digest): (&Document, Digest),
        has_private_index: bool,
    ) -> Result<Self, OpenError> {
        let manifest = parse_manifest(&places.directory, document)?;
        let (config, config_bytes) = read_config(&places, &manifest.config)?;
        config.plan.check().map_err(|error| OpenError::plan(&error))?;
        for (role, media_type, limit) in IN_MEMORY {
            let reason = match manifest.blob(media_type) {
                None => format!("it does not name exactly one {role} ({media_type})"),
                Some(Descriptor { size, .. }) if *size > limit => {
                    format!("its {role} has {size} bytes, and at most {limit} are allowed")
                }
                Some(_) => continue,
            };
            return Err(document.malformed(reason));
        }
        if let Err(error) = manifest.rootfs(config.epoch) {
            return Err(document.malformed(error.to_string()));
        }
        Ok(Self { places, digest, has_private_index, manifest, config, config_bytes })
    }

    /// Returns the run plan.
    pub const fn plan(&self) -> &RunPlan {
        &self.config.plan
    }

    /// Returns `true` for the descriptor of the init, of the kernel, or of a part of the rootfs.
    pub fn boots(&self, descriptor: &Descriptor) -> bool {
        let mut in_memory =
            IN_MEMORY.iter().map(|(_, media_type, _)| self.manifest.blob(media_type));
        in_memory.any(|it| it == Some(descriptor)) || self.parts().contains(&descriptor)
    }

    /// Returns the descriptors of the parts of the rootfs, in the order of the concatenation.
    pub fn parts(&self) -> Vec<&Descriptor> {
        // Checked when the documents were read.
        self.manifest.rootfs(self.config.epoch).unwrap_or_default()
    }

    /// Opens the files of the root file system.
    ///
    /// # Errors
    /// [`OpenError::Absent`], [`OpenError::File`] or [`OpenError::NotRegular`] of the first file that cannot be opened.
    pub fn open_rootfs(&self) -> Result<Rootfs, OpenError> {
        let parts = self.parts().into_iter().map(|it| self.open_blob(it));
        let malformed = || OpenError::malformed(&self.places.directory, "its rootfs has no parts");
        Rootfs::new(parts.collect::<Result<_, _>>()?).ok_or_else(malformed)
    }

    /// Opens the file of a blob that the manifest names.
    ///
    /// # Errors
    /// [`OpenError::Absent`], [`OpenError::File`] or [`OpenError::NotRegular`].
    pub fn open_blob(&self, descriptor: &Descriptor) -> Result<Blob, OpenError> {
        self.places.open_blob(descriptor)
    }

    /// Reads a blob of at most `limit` bytes that the manifest names, and compares it with its size
    /// and digest.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn read_blob(&self, descriptor: &Descriptor, limit: u64) -> Result<Vec<u8>, OpenError> {
        Document::named(&self.places, descriptor, limit).map(Document::into_bytes)
    }
}

/// The role, the media type and the maximum size in bytes of each boot blob that is in memory while the box runs. The rootfs
/// is not.
const IN_MEMORY: [(&str, &str, u64); 2] =
    [("init", INIT_TYPE, MAX_INIT), ("kernel", KERNEL_TYPE, MAX_KERNEL)];

impl Deref for OpenBox {
    type Target = Documents;

    fn deref(&self) -> &Documents {
        &self.documents
    }
}

impl OpenBox {
    /// Opens the box in a directory. Files that are missing there are looked up in the store, if `places` has one.
    ///
    /// # Errors
    /// The errors of [`Documents::read`], and an error if the kernel, the init or the rootfs cannot be opened.
    pub fn open(places: impl Into<Places>) -> Result<Self, OpenError> {
        let documents = Documents::read(places)?;
        let directory = &documents.places.directory;
        let open = |media_type| {
            let named = documents.manifest.blob(media_type);
            let missing = || OpenError::malformed(directory, "its manifest lacks a blob");
            documents.open_blob(named.ok_or_else(missing)?)
        };
        let (rootfs, [init, kernel]) =
            (documents.open_rootfs()?, [open(INIT_TYPE)?, open(KERNEL_TYPE)?]);
        Ok(Self { documents, rootfs, init, kernel })
    }

    /// Returns the box's files: for each, its path in a box directory that has all blobs, and its current path, which may be in the store.
    pub fn files(&self) -> Vec<(PathBuf, PathBuf)> {
        let named = self.manifest.blobs();
        let digests = iter::once(self.digest).chain(named.into_iter().map(|it| it.digest));
        let blobs = digests.map(|it| (PathBuf::from(blob_name(&it)), self.places.find(&it)));
        let own = |name| (PathBuf::from(name), self.places.directory.join(name));
        [LAYOUT_FILE, INDEX_FILE].map(own).into_iter().chain(blobs).collect()
    }

    /// Returns the boot blobs: the kernel, the init, and the parts of the rootfs in their order.
    pub fn boot_blobs(&self) -> impl Iterator<Item = &Blob> + Clone {
        [&self.kernel, &self.init].into_iter().chain(self.rootfs.parts())
    }

    /// Checks that the size in the superblock of the rootfs equals the size of all parts together; see [`Rootfs::check_superblock`]. A no-op for
    /// a box of epoch 3, whose rootfs is one blob.
    ///
    /// # Errors
    /// [`OpenError::Superblock`], [`OpenError::Different`] or [`OpenError::File`].
    pub fn check_superblock(&self) -> Result<(), OpenError> {
        if self.config.epoch < SEGMENTED_EPOCH {
            return Ok(());
        }
        self.rootfs.check_superblock()
    }

    /// Checks the plan in the rootfs of a box of epoch 3, whose init reads it; see [`Blob::check_plan`]. The rootfs of a box of a
    /// later epoch has no plan.
    ///
    /// # Errors
    /// [`OpenError::RootfsPlan`], or [`OpenError::File`].
    pub fn check_plan(&self) -> Result<(), OpenError> {
        if self.config.epoch >= SEGMENTED_EPOCH {
            return Ok(());
        }
        self.rootfs.metadata().check_plan(&self.config.plan)
    }

    /// Opens the files of the rootfs once more, so that the result shares no file position with `self.rootfs`.
    ///
    /// # Errors
    /// The errors of [`Documents::open_rootfs`] and of [`Rootfs::check_size`].
    pub fn open_rootfs(&self) -> Result<Rootfs, OpenError> {
        let rootfs = self.documents.open_rootfs()?;
        rootfs.check_size()?;
        Ok(rootfs)
    }
}

impl Blob {
    /// Returns the role of the blob in the box; see [`Descriptor::role`].
    pub fn role(&self) -> &str {
        self.descriptor.role()
    }

    /// Compares the file with its size and its digest in the manifest.
    ///
    /// # Errors
    /// [`OpenError::Different`], or [`OpenError::File`].
    pub fn verify(&self) -> Result<(), OpenError> {
        self.check_size()?;
        // Reads at offsets, because duplicates of the descriptor share the file position.
        let hashed = Digest::of_reader(Section::new(&self.file, 0, u64::MAX));
        let (found, _) = hashed.map_err(|error| OpenError::File {
            action: "read",
            path: self.path.clone(),
            error,
        })?;
        let expected = self.descriptor.digest;
        if found == expected {
            return Ok(());
        }
        Err(OpenError::digest(self.path.clone(), expected, found))
    }

    /// Checks that the plan in this rootfs, which init reads, equals the config's plan, which all other programs read. Reads only
    /// the plan and the metadata on the path to it, and hashes nothing.
    ///
    /// # Errors
    /// [`OpenError::RootfsPlan`], or [`OpenError::File`].
    pub fn check_plan(&self, plan: &RunPlan) -> Result<(), OpenError> {
        let failed = |reason| OpenError::RootfsPlan { path: self.path.clone(), reason };
        let names = PLAN_PATH.as_bytes().split(|byte| *byte == b'/').skip(1);
        let text = match erofs_writer::read_file(&self.file, names, MAX_PLAN) {
            Ok(text) => text,
            Err(ReadError::Io(error)) => {
                let path = self.path.clone();
                return Err(OpenError::File { action: "read", path, error });
            }
            Err(error) => return Err(failed(Some(error.to_string()))),
        };
        match serde_json::from_slice::<RunPlan>(&text) {
            Ok(found) if found == *plan => Ok(()),
            Ok(_) => Err(failed(None)),
            Err(error) => Err(failed(Some(error.to_string()))),
        }
    }

    /// Compares the length of the file with its size in the manifest.
    ///
    /// # Errors
    /// [`OpenError::Different`], or [`OpenError::File`].
    pub fn check_size(&self) -> Result<(), OpenError> {
        let (path, expected) = (|| self.path.clone(), self.descriptor.size);
        match self.file.metadata() {
            Err(error) => Err(OpenError::File { action: "examine", path: path(), error }),
            Ok(found) if found.len() == expected => Ok(()),
            Ok(found) => Err(OpenError::size(path(), expected, found.len())),
        }
    }
}

/// Checks that the directory is an OCI image layout of the supported version.
fn check_layout(directory: &Path) -> Result<(), OpenError> {
    let document =
        Document::unnamed(directory, LAYOUT_FILE).map_err(|error| missing(directory, error))?;
    check_version(&document)
}

/// Checks that the bytes of a file `oci-layout` have the supported version. `path` is for messages.
///
/// # Errors
/// [`OpenError::Malformed`].
pub fn check_layout_file(path: &Path, bytes: Vec<u8>) -> Result<(), OpenError> {
    check_version(&Document::of(path, bytes))
}

fn check_version(document: &Document) -> Result<(), OpenError> {
    let layout: OciLayout = document.parse()?;
    document.expect("imageLayoutVersion", &layout.image_layout_version, LAYOUT_VERSION)
}

/// Replaces the error for `oci-layout` if the directory is missing, is no directory, or is not an image layout.
fn missing(directory: &Path, error: OpenError) -> OpenError {
    let path = place(directory);
    let OpenError::File { error: reason, .. } = &error else { return error };
    OpenError::NotALayout(match reason.kind() {
        ErrorKind::NotFound if directory.is_dir() => {
            format!("{path} is not a box: it has no file `oci-layout`")
        }
        ErrorKind::NotFound => format!("there is no {path}"),
        ErrorKind::NotADirectory => format!("{path} is not a box: it is not a directory"),
        _ => return error,
    })
}

/// Parses the manifest of a box. The error for another artifact contains its type.
fn parse_manifest(directory: &Path, document: &Document) -> Result<Manifest, OpenError> {
    let found = &document.value()?["artifactType"];
    if found != ARTIFACT_TYPE {
        let found = found.as_str().map(str::to_owned);
        return Err(OpenError::OtherArtifact { path: directory.to_owned(), found });
    }
    let manifest: Manifest = document.parse()?;
    document.expect("schemaVersion", &manifest.schema_version.to_string(), "2")?;
    document.expect("mediaType", &manifest.media_type, OCI_MANIFEST_TYPE)?;
    document.expect("mediaType of the config", &manifest.config.media_type, CONFIG_TYPE)?;
    Ok(manifest)
}

/// Reads the config, which must be of an epoch that this version reads. Also returns its bytes.
fn read_config(places: &Places, named: &Descriptor) -> Result<(BoxConfig, Vec<u8>), OpenError> {
    let config = Document::named(places, named, MAX_CONFIG)?;
    let parsed = config.parse::<BoxConfig>();
    let epoch = match &parsed {
        Ok(parsed) => Some(parsed.epoch.into()),
        Err(_) => config.value()?["epoch"].as_u64(),
    };
    match epoch {
        Some(found) if !u32::try_from(found).is_ok_and(|it| READABLE_EPOCHS.contains(&it)) => {
            Err(OpenError::Epoch { path: places.directory.clone(), found })
        }
        _ => parsed.map(|parsed| (parsed, config.into_bytes())),
    }
}

#[cfg(test)]
mod tests;
