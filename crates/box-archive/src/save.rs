//! Writes boxes to a file or a directory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, BufWriter, Read, Seek as _, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use box_cache::Attachment;
use box_contract::manifest::{
    ARTIFACT_TYPE, BLOBS, INDEX_FILE, LAYOUT_FILE, OCI_INDEX_TYPE, OCI_MANIFEST_TYPE, blob_name,
};
use box_contract::{Descriptor, Index, OciLayout};
use box_copy::Archive;
use box_delta::Made;
use box_digest::{Digest, Hasher, Sha256};
use box_layout::{Blob, Documents, MAX_MANIFESTS, REF_NAME, layout_above};
use box_registry::{Deltas, EMPTY, empty};
use host_fs::FileError;
use host_fs::publish::{DirectoryDraft, FileDraft, PublishError, new_directories, new_file};
use host_fs::read::Section;

use crate::ArchiveError;
use crate::attached::Attached;

/// The permissions of each file in an archive.
const MODE: u32 = 0o444;
/// The size of a write, in bytes.
const PIECE: usize = 1 << 20;

/// Boxes that are written to one file.
#[derive(Debug)]
pub struct Bundle<'a> {
    /// The digest of each box and its name, sorted.
    entries: BTreeSet<(Digest, Option<&'a str>)>,
    /// The manifests of the boxes.
    manifests: BTreeMap<Digest, Vec<u8>>,
    /// The other blobs, each with one of the boxes that have it.
    blobs: BTreeMap<Digest, (&'a Descriptor, &'a Documents)>,
    attachments: Attached,
    /// What the reader of the file has already.
    since: Option<Since>,
}

/// The older box that the reader of a file has.
#[derive(Debug)]
struct Since {
    /// The blobs of that box.
    held: BTreeSet<Digest>,
    /// The manifest of the deltas, with the descriptor in the index.
    manifest: (Descriptor, Vec<u8>),
    /// The deltas, by the blobs that they make.
    deltas: BTreeMap<Digest, Made>,
}

/// The result of a save.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Saved {
    /// The number of blobs, including manifests.
    pub blobs: usize,
    /// The size of the blobs, in bytes.
    pub bytes: u64,
    /// The number of attachments of the boxes.
    pub attachments: usize,
    /// The number of blobs that are in the file as deltas.
    pub deltas: usize,
}

impl<'a> Bundle<'a> {
    /// Collects boxes, each with its name in the file. Their order does not matter. Their blobs are not read yet.
    ///
    /// # Errors
    /// [`ArchiveError::TooMany`], and the errors of reading a manifest.
    pub fn of(
        boxes: impl IntoIterator<Item = (&'a Documents, Option<&'a str>)>,
    ) -> Result<Self, ArchiveError> {
        let (entries, manifests, blobs) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
        let attachments = Attached::default();
        let mut bundle = Self { entries, manifests, blobs, attachments, since: None };
        for (documents, name) in boxes {
            bundle.add(documents, name)?;
        }
        if bundle.manifests.len() > MAX_MANIFESTS {
            return Err(ArchiveError::TooMany { what: "the command line".to_owned() });
        }
        Ok(bundle)
    }

    fn add(&mut self, documents: &'a Documents, name: Option<&'a str>) -> Result<(), ArchiveError> {
        let digest = documents.digest;
        self.entries.insert((digest, name));
        if self.manifests.contains_key(&digest) {
            return Ok(());
        }
        self.manifests.insert(digest, documents.places.read_manifest(digest)?);
        for blob in documents.manifest.blobs() {
            let held = self.blobs.entry(blob.digest).or_insert((blob, documents));
            if held.0.size != blob.size {
                let found = format!("manifests name it with {} and {}", held.0.size, blob.size);
                return Err(ArchiveError::Damaged { digest: blob.digest, found });
            }
        }
        Ok(())
    }

    /// Adds the attachments of a box, such as its signatures.
    ///
    /// # Errors
    /// [`ArchiveError::TooMany`] and [`ArchiveError::Attachments`].
    pub fn attach(
        &mut self,
        digest: &Digest,
        attachments: Vec<Attachment>,
    ) -> Result<(), ArchiveError> {
        let Some(manifest) = self.manifests.get(digest) else { return Ok(()) };
        let subject = Descriptor::new(OCI_MANIFEST_TYPE, *digest, manifest.len() as u64);
        self.attachments.add(&subject, attachments)?;
        if self.manifests.len() + self.attachments.manifests.len() > MAX_MANIFESTS {
            return Err(ArchiveError::TooMany { what: "the command line".to_owned() });
        }
        Ok(())
    }

    /// Leaves out what a host that has the box `base` does not need: its blobs, and those that `deltas` make of them. The file is then
    /// only for such hosts. `digest` is the only box of the bundle.
    pub fn since(&mut self, base: &Documents, digest: &Digest, deltas: Vec<Made>) {
        let size = self.manifests.get(digest).map_or(0, |it| it.len() as u64);
        let subject = Descriptor::new(OCI_MANIFEST_TYPE, *digest, size);
        let listed = |(descriptor, bytes)| {
            // The annotations are in the manifest.
            (Descriptor { annotations: BTreeMap::new(), ..descriptor }, bytes)
        };
        let manifest = listed(Deltas::manifest(&subject, &base.digest, &deltas));
        // The config of the manifest.
        self.attachments.content.insert(empty().digest, EMPTY.to_vec());
        let held = base.manifest.blobs().iter().map(|it| it.digest).collect();
        let deltas = deltas.into_iter().map(|it| (it.target.0, it)).collect();
        self.since = Some(Since { held, manifest, deltas });
    }

    /// Returns the digest of each box.
    pub fn digests(&self) -> impl Iterator<Item = Digest> {
        self.manifests.keys().copied()
    }

    /// Returns the result that a save will have.
    pub fn saved(&self) -> Saved {
        let documents = self.in_memory().map(|(_, it)| it.len() as u64);
        let deltas: Vec<_> = self.deltas().map(|it| it.size).collect();
        let others = self.others().map(|it| it.1.0.size).chain(deltas.iter().copied());
        let sizes: Vec<_> = documents.chain(others).collect();
        let bytes = sizes.iter().copied().fold(0, u64::saturating_add);
        let attachments = self.attachments.manifests.len();
        Saved { blobs: sizes.len(), bytes, attachments, deltas: deltas.len() }
    }

    /// Writes the boxes as an archive.
    ///
    /// # Errors
    /// [`ArchiveError::Damaged`] if a blob does not match its manifest, [`ArchiveError::Open`] and [`ArchiveError::Write`]. The
    /// output is then not a complete archive.
    pub fn write_archive(&self, out: &mut dyn Write) -> Result<Saved, ArchiveError> {
        let mut archive = Archive::new(out);
        for (name, bytes) in self.documents() {
            archive.file(name.as_bytes(), MODE, &bytes).map_err(ArchiveError::Write)?;
        }
        for (digest, bytes) in self.in_memory() {
            let name = blob_name(digest);
            archive.file(name.as_bytes(), MODE, bytes).map_err(ArchiveError::Write)?;
        }
        for (digest, (named, documents)) in self.others() {
            let blob = open(documents, named)?;
            let mut from = Hashing::of(&blob);
            let name = blob_name(digest);
            archive.copy(name.as_bytes(), MODE, named.size, &mut from).map_err(|error| {
                from.failed.take().map_or(ArchiveError::Write(error), |error| read(&blob, error))
            })?;
            check(*digest, from.hasher.digest())?;
        }
        for made in self.deltas() {
            let mut from = Section::new(&made.file, 0, made.size);
            let name = blob_name(&made.digest);
            let copied = archive.copy(name.as_bytes(), MODE, made.size, &mut from);
            copied.map_err(ArchiveError::Write)?;
        }
        archive.finish().map_err(ArchiveError::Write)?;
        Ok(self.saved())
    }

    /// Writes the boxes to a new file.
    ///
    /// # Errors
    /// The errors of [`Self::write_archive`], [`ArchiveError::Within`], [`PublishError::Exists`], and errors of the operating
    /// system. The file then does not exist.
    pub fn write_file(&self, to: &Path) -> Result<Saved, ArchiveError> {
        check_place(to)?;
        let draft = FileDraft::beside(to, 0o666).map_err(FileError::of("write", to))?;
        let mut out = BufWriter::with_capacity(PIECE, draft.file());
        let saved = self.write_archive(&mut out).map_err(|error| match error {
            ArchiveError::Write(source) => FileError::of("write", to)(source).into(),
            error => error,
        })?;
        out.flush().map_err(FileError::of("write", to))?;
        drop(out);
        match draft.finish_new(to) {
            Ok(()) => Ok(saved),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(exists(to)),
            Err(error) => Err(FileError::of("write", to)(error).into()),
        }
    }

    /// Writes the boxes to a new directory. On btrfs and XFS the copied blobs share their disk blocks with the originals.
    ///
    /// # Errors
    /// As for [`Self::write_file`].
    pub fn write_directory(&self, to: &Path) -> Result<Saved, ArchiveError> {
        // A slash at the end would follow a symbolic link.
        let to: &Path = &to.components().collect::<PathBuf>();
        check_place(to)?;
        let draft = DirectoryDraft::beside(to, 0o777)?;
        self.fill(&draft, to)?;
        draft.finish_new()?;
        Ok(self.saved())
    }

    fn fill(&self, draft: &DirectoryDraft, to: &Path) -> Result<(), ArchiveError> {
        let failed = || FileError::of("write", to);
        for (name, bytes) in self.documents() {
            let file = new_file(draft, name, 0o666);
            file.and_then(|mut it| it.write_all(&bytes)).map_err(failed())?;
        }
        let directory = new_directories(draft, BLOBS).map_err(failed())?;
        for (digest, bytes) in self.in_memory() {
            let file = new_file(&directory, &digest.hex(), 0o666);
            file.and_then(|mut it| it.write_all(bytes)).map_err(failed())?;
        }
        for (digest, (named, documents)) in self.others() {
            let blob = open(documents, named)?;
            let mut file = new_file(&directory, &digest.hex(), 0o666).map_err(failed())?;
            // The kernel copies ([copy_file_range(2)](https://man7.org/linux/man-pages/man2/copy_file_range.2.html)), so the
            // result is hashed afterwards.
            io::copy(&mut (&blob.file).take(named.size), &mut file).map_err(failed())?;
            file.seek(SeekFrom::Start(0)).map_err(failed())?;
            let (found, _) = Digest::of_reader(&file).map_err(failed())?;
            check(*digest, found)?;
            file.set_permissions(fs::Permissions::from_mode(MODE)).map_err(failed())?;
        }
        for made in self.deltas() {
            let mut file = new_file(&directory, &made.digest.hex(), 0o666).map_err(failed())?;
            io::copy(&mut Section::new(&made.file, 0, made.size), &mut file).map_err(failed())?;
        }
        Ok(())
    }

    /// Returns the blobs that come first, so that a reader of a stream knows all boxes and their attachments before it gets the
    /// other blobs: the manifests of the boxes, and the manifests and the content of the attachments.
    fn in_memory(&self) -> impl Iterator<Item = (&Digest, &[u8])> {
        let Attached { manifests, content, .. } = &self.attachments;
        let deltas = self.since.iter().map(|it| &it.manifest);
        let listed =
            manifests.values().chain(deltas).map(|(listed, bytes)| (&listed.digest, bytes));
        let content = content.iter().filter(|(it, _)| !self.manifests.contains_key(it));
        self.manifests.iter().chain(listed).chain(content).map(|(digest, bytes)| (digest, &**bytes))
    }

    /// Returns the other blobs.
    fn others(&self) -> impl Iterator<Item = (&Digest, &(&'a Descriptor, &'a Documents))> {
        let is_left_out = |digest: &Digest| {
            let since = self.since.as_ref();
            since.is_some_and(|it| it.held.contains(digest) || it.deltas.contains_key(digest))
        };
        let others = self.blobs.iter().filter(move |(digest, _)| !is_left_out(digest));
        others.filter(|(digest, _)| !self.attachments.content.contains_key(digest))
    }

    fn deltas(&self) -> impl Iterator<Item = &Made> {
        self.since.iter().flat_map(|it| it.deltas.values())
    }

    /// Returns the names and the contents of `oci-layout` and `index.json`.
    fn documents(&self) -> [(&'static str, Vec<u8>); 2] {
        let descriptor = |(digest, name): &(Digest, Option<&str>)| {
            let size = self.manifests.get(digest).map_or(0, |it| it.len() as u64);
            let mut descriptor = Descriptor::new(OCI_MANIFEST_TYPE, *digest, size);
            descriptor.artifact_type = Some(ARTIFACT_TYPE.to_owned());
            let names = name.iter().map(|it| (REF_NAME.to_owned(), (*it).to_owned()));
            descriptor.annotations.extend(names);
            descriptor
        };
        let index = Index {
            schema_version: 2,
            media_type: OCI_INDEX_TYPE.to_owned(),
            manifests: self
                .entries
                .iter()
                .map(descriptor)
                .chain(self.attachments.listed())
                .chain(self.since.iter().map(|it| it.manifest.0.clone()))
                .collect(),
        };
        [(LAYOUT_FILE, json(&OciLayout::default())), (INDEX_FILE, json(&index))]
    }
}

/// Opens a blob, and checks its size.
fn open(documents: &Documents, named: &Descriptor) -> Result<Blob, ArchiveError> {
    let blob = documents.open_blob(named)?;
    blob.check_size()?;
    Ok(blob)
}

fn check(digest: Digest, found: Digest) -> Result<(), ArchiveError> {
    if found == digest {
        return Ok(());
    }
    Err(ArchiveError::Damaged { digest, found: format!("it has the digest {found}") })
}

fn read(blob: &Blob, error: io::Error) -> ArchiveError {
    FileError::of("read", &blob.path)(error).into()
}

/// Serializes a document. The documents of this crate have no value that JSON cannot express, so this does not fail.
fn json(document: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(document).unwrap_or_default()
}

/// Hashes a blob while it is read.
struct Hashing<'b> {
    from: Section<&'b fs::File>,
    hasher: Hasher<Sha256>,
    /// An error of the blob's file, as opposed to an error of the output.
    failed: Option<io::Error>,
}

impl<'b> Hashing<'b> {
    fn of(blob: &'b Blob) -> Self {
        let from = Section::new(&blob.file, 0, blob.descriptor.size);
        Self { from, hasher: Hasher::default(), failed: None }
    }
}

impl Read for Hashing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.from.read(buffer) {
            Ok(length) => {
                self.hasher.update(&buffer[..length]);
                Ok(length)
            }
            Err(error) => {
                let kind = error.kind();
                self.failed = Some(error);
                Err(kind.into())
            }
        }
    }
}

/// Refuses a path for new boxes that exists, or that is in a box, in another image layout or in a store.
///
/// # Errors
/// [`PublishError::Exists`] and [`ArchiveError::Within`].
pub fn check_place(to: &Path) -> Result<(), ArchiveError> {
    if fs::symlink_metadata(to).is_ok() {
        return Err(exists(to));
    }
    check_output(to)
}

/// Refuses an output in a box, in another image layout or in a store, which must not contain other files.
///
/// # Errors
/// [`ArchiveError::Within`].
pub fn check_output(to: &Path) -> Result<(), ArchiveError> {
    let within = |within, what| ArchiveError::Within { path: to.to_owned(), within, what };
    if let Some(layout) = layout_above(to) {
        return Err(within(layout, "an OCI image layout"));
    }
    box_cache::store_above(to).map_or(Ok(()), |store| Err(within(store, "a store")))
}

fn exists(path: &Path) -> ArchiveError {
    PublishError::Exists { path: path.to_owned(), what: None }.into()
}

/// Returns whether boxes are written to this path as an archive, and not as a directory: the path ends in `.tar`, without a
/// slash. For example, `boxes.tar` is an archive, and `boxes.tar/` a directory.
pub fn is_tar(output: &Path) -> bool {
    let is_directory = output.as_os_str().as_encoded_bytes().ends_with(b"/");
    !is_directory && output.extension().is_some_and(|it| it == "tar")
}

/// Returns whether `output` has the name of a compressed archive, such as `boxes.tar.gz`. Compressed archives are not written.
pub fn is_compressed(output: &Path) -> bool {
    let extension = output.extension().and_then(|it| it.to_str()).unwrap_or_default();
    let archive =
        output.file_stem().is_some_and(|it| Path::new(it).extension() == Some("tar".as_ref()));
    matches!(extension, "tgz" | "tbz" | "txz") || archive && !extension.is_empty()
}
