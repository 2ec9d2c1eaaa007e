//! Reads files with boxes: finds the boxes, and reads their blobs.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use box_cache::{Attachment, AttachmentInfo};
use box_contract::manifest::{INDEX_FILE, LAYOUT_FILE, MANIFEST_TYPES, blob_name};
use box_digest::Digest;
use box_layout::{Listed, MAX_DOCUMENT, MAX_MANIFESTS, check_layout_file, listed};
use box_registry::{
    AT_ONCE, BoxRegistryError, Deltas, FillError, Found, Inflating, Origin, Referrer, Remote,
    Targets, each,
};
use download::DraftError;
use host_fs::FileError;
use host_fs::read::{Links, Section, open_regular};
use oci_layer::{Compression, MemberIndex, START, decompressed};

use crate::ArchiveError;
use crate::attached;
use crate::stream::Stream;

/// The maximum number of names of a box. Each is a file in the store.
const MAX_NAMES: usize = 16;
/// The maximum size of all manifests of a file, in bytes. A real manifest has a few thousand bytes.
pub(crate) const MAX_MANIFESTS_BYTES: u64 = 16 << 20;
/// A file or directory with boxes, or a stream.
#[derive(Debug)]
pub struct Archive {
    /// The path, or another description of the file, for messages.
    title: String,
    place: FileSource,
    /// The manifests in `index.json`.
    listed: Vec<Listed>,
}

/// The source of the files of the image layout.
enum FileSource {
    Tar(File, MemberIndex),
    Directory(PathBuf),
    Stream(Box<Stream>),
}

impl fmt::Debug for FileSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tar(..) => "Tar",
            Self::Directory(_) => "Directory",
            Self::Stream(_) => "Stream",
        })
    }
}

/// A box in a file.
#[derive(Debug, Clone)]
pub struct Boxed {
    /// The manifest of the box, and its blobs as the file stores them.
    pub remote: Remote,
    /// The names of the box in the file, in the order of the index.
    pub names: Vec<String>,
    /// The attachments of the box, such as its signatures. They are verified only against the digests in the file.
    pub attachments: Vec<Attachment>,
    /// The deltas in the file, if it is for hosts that have an older box.
    pub deltas: Option<Deltas>,
    /// The digests of the attachments by which a policy has accepted the box, if one was asked. A load always keeps them.
    pub needed: Vec<Digest>,
}

impl Boxed {
    /// Returns the blobs of the box, and the deltas that make some of them, as the file may store them.
    pub(crate) fn stored(&self) -> impl Iterator<Item = (Digest, u64)> {
        let deltas = self.deltas.iter().flat_map(|it| it.all.values()).map(|it| &it.blob);
        self.remote.blobs.iter().chain(deltas).map(|it| (it.digest(), it.size()))
    }

    /// Returns the first name and the digest of the box, or only the digest if it has no name, for messages.
    pub fn called(&self) -> String {
        let digest = self.remote.digest;
        self.names.first().map_or_else(|| digest.to_string(), |name| format!("{name} ({digest})"))
    }
}

impl Archive {
    /// Opens an archive or a directory. An archive that is compressed with gzip or zstd is read as a stream.
    ///
    /// # Errors
    /// [`ArchiveError::Missing`], [`ArchiveError::File`], [`ArchiveError::NoBoxes`] and [`ArchiveError::Malformed`], and the
    /// errors of [`Self::read`].
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        let title = path.display().to_string();
        if path.is_dir() {
            return Self::new(title, FileSource::Directory(path.to_owned()));
        }
        let file = open_regular(path, Links::Follow).map_err(FileError::of("read", path));
        let file = file.map_err(|error| {
            let is_missing = error.source.kind() == io::ErrorKind::NotFound;
            if is_missing { ArchiveError::Missing(error) } else { error.into() }
        })?;
        let failed = || FileError::of("read", path);
        let mut start = Vec::new();
        let first = Section::new(&file, 0, START as u64).read_to_end(&mut start);
        first.map_err(failed())?;
        if Compression::of_start(&start) != Compression::None {
            return Self::read(title, file);
        }
        let length = file.metadata().map_err(failed())?.len();
        let members = MemberIndex::read(&file, length);
        let members = members.map_err(|error| not_tar(&title, error.offset, error.to_string()))?;
        Self::new(title, FileSource::Tar(file, members))
    }

    /// Reads the index and the manifests from the beginning of a stream, which may be compressed with gzip or zstd.
    ///
    /// # Errors
    /// [`ArchiveError::NotAStream`] if they are not at the beginning, and the errors of [`Self::open`].
    pub fn read(title: String, stream: impl Read + Send + 'static) -> Result<Self, ArchiveError> {
        let (stream, listed) = Stream::open(title.clone(), decompressed(stream))?;
        Ok(Self { title, place: FileSource::Stream(Box::new(stream)), listed })
    }

    fn new(title: String, place: FileSource) -> Result<Self, ArchiveError> {
        let mut archive = Self { title, place, listed: Vec::new() };
        let at = |name: &str| Path::new(&archive.title).join(name);
        // ocipkg writes archives without this file.
        if let Some(version) = archive.document(LAYOUT_FILE)? {
            check_layout_file(&at(LAYOUT_FILE), version)?;
        }
        let index = archive.document(INDEX_FILE)?.ok_or_else(|| archive.no_boxes(INDEX_FILE))?;
        archive.listed = checked(&archive.title, listed(&at(INDEX_FILE), index)?)?;
        Ok(archive)
    }

    fn no_boxes(&self, name: &str) -> ArchiveError {
        ArchiveError::NoBoxes { what: self.title.clone(), reason: format!("it has no file {name}") }
    }

    /// Returns the error of a file that is only for hosts with the box `base`.
    pub(crate) fn needs(&self, base: Digest) -> ArchiveError {
        ArchiveError::NeedsBase { what: self.title.clone(), base }
    }

    /// Returns the description for messages.
    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// Reads the manifests of the index, and returns the boxes among them in the order of the index. Of the blobs of a box, reads
    /// only its manifest, its attachments and, for [`Form::Image`](box_registry::Form::Image), the config of the image.
    ///
    /// # Errors
    /// [`ArchiveError::NoBoxes`], [`ArchiveError::NotABox`], and [`ArchiveError::Box`] if one of the boxes is malformed.
    pub fn boxes(&self) -> Result<Vec<Boxed>, ArchiveError> {
        let (mut boxes, mut other, mut referrers) = (Vec::new(), None, Vec::new());
        let mut deltas = Vec::new();
        for listed in &self.listed {
            let found = self.found(listed)?;
            let referrer = Referrer::of(&found.bytes);
            deltas.extend(Deltas::of(&found.bytes));
            match Remote::of(&Early(self), found) {
                Ok(remote) => {
                    let (names, attachments) = (listed.names.clone(), Vec::new());
                    let (deltas, needed) = (None, Vec::new());
                    boxes.push(Boxed { remote, names, attachments, deltas, needed });
                }
                Err(BoxRegistryError::NotABox { found, .. }) => {
                    other.get_or_insert(found);
                    referrers.extend(referrer);
                }
                Err(error) => return Err(error.into()),
            }
        }
        if boxes.is_empty() {
            let what = self.title.clone();
            return Err(match other {
                Some(found) => ArchiveError::NotABox { what, found },
                None => ArchiveError::NoBoxes { what, reason: "its index is empty".to_owned() },
            });
        }
        self.attach(&mut boxes, &referrers)?;
        for it in &mut boxes {
            let of_it = deltas.iter().find(|of| of.subject == it.remote.registry_digest);
            it.deltas = of_it.cloned();
        }
        Ok(boxes)
    }

    /// Reads the attachments of boxes. The manifests of other attachments are ignored.
    fn attach(&self, boxes: &mut [Boxed], referrers: &[Referrer]) -> Result<(), ArchiveError> {
        let malformed = |reason| ArchiveError::Malformed { what: self.title.clone(), reason };
        attached::blobs(referrers).map_err(malformed)?;
        let subjects = boxes.iter().map(|it| it.remote.registry_digest);
        let infos = attached::of_boxes(referrers, subjects).map_err(malformed)?;
        for (it, infos) in boxes.iter_mut().zip(infos) {
            it.attachments =
                infos.into_iter().map(|it| self.attachment(it)).collect::<Result<_, _>>()?;
        }
        Ok(())
    }

    /// Reads and verifies an attachment.
    fn attachment(&self, info: AttachmentInfo) -> Result<Attachment, ArchiveError> {
        let AttachmentInfo { media_type, annotations, digest, size } = info;
        let bytes = match &self.place {
            FileSource::Stream(stream) => stream.document(&digest)?,
            _ => self.whole(digest, size)?,
        };
        Ok(Attachment { media_type, annotations, bytes })
    }

    /// Returns the box with this box digest or digest of the registry's manifest, or, for `None`, the only box of the file.
    ///
    /// # Errors
    /// As [`Self::boxes`]; [`ArchiveError::WhichBox`] and [`ArchiveError::Absent`].
    pub fn one_box(&self, digest: Option<Digest>) -> Result<Boxed, ArchiveError> {
        let mut boxes = self.boxes()?;
        let what = self.title.clone();
        if let Some(digest) = digest {
            let is_it =
                |it: &Boxed| [it.remote.digest, it.remote.registry_digest].contains(&digest);
            let called = boxes.iter().map(Boxed::called).collect();
            let found = boxes.into_iter().find(is_it);
            return found.ok_or(ArchiveError::Absent { what, digest, boxes: called });
        }
        match boxes.pop() {
            Some(only) if boxes.is_empty() => Ok(only),
            last => {
                let boxes = boxes.iter().chain(&last).map(Boxed::called).collect();
                Err(ArchiveError::WhichBox { what, boxes })
            }
        }
    }

    /// Reads and verifies a manifest.
    fn found(&self, listed: &Listed) -> Result<Found, ArchiveError> {
        let &Listed { digest, size, .. } = listed;
        let bytes = match &self.place {
            FileSource::Stream(stream) => stream.document(&digest)?,
            _ => self.whole(digest, size)?,
        };
        let what = format!("the manifest {digest} in {}", self.title);
        // The manifest of a box has one of these types.
        let media_type = listed.media_type.as_deref();
        let media_type = media_type
            .map(|it| MANIFEST_TYPES.into_iter().find(|known| *known == it).unwrap_or("another"));
        Ok(Found { what, media_type, digest, bytes })
    }

    /// Reads and verifies a blob whose size is limited, such as a manifest.
    fn whole(&self, digest: Digest, size: u64) -> Result<Vec<u8>, BoxRegistryError> {
        let (from, found) = self.blob(&digest)?;
        let wrong = |reason: String| self.wrong(digest, reason);
        if found != size {
            return Err(wrong(format!("it has {found} bytes, and the index says {size}")));
        }
        let mut bytes = Vec::new();
        let read = from.take(size).read_to_end(&mut bytes);
        read.map_err(|source| BoxRegistryError::Read { what: self.title.clone(), source })?;
        match Digest::of(&bytes) {
            found if found == digest => Ok(bytes),
            found => Err(wrong(format!("it has the digest {found}"))),
        }
    }

    fn wrong(&self, digest: Digest, reason: String) -> BoxRegistryError {
        BoxRegistryError::Content { what: self.title.clone(), digest, reason }
    }

    /// Opens a blob for reading, and returns its size in bytes.
    fn blob(&self, digest: &Digest) -> Result<(Box<dyn Read + '_>, u64), BoxRegistryError> {
        let what = || self.title.clone();
        let opened = self.open_file(&blob_name(digest));
        let opened = opened.map_err(|source| BoxRegistryError::Read { what: what(), source })?;
        opened.ok_or_else(|| BoxRegistryError::Absent { what: what(), digest: *digest })
    }

    /// Reads a file that is not a blob. Returns `None` if it does not exist.
    fn document(&self, name: &str) -> Result<Option<Vec<u8>>, ArchiveError> {
        let at = Path::new(&self.title).join(name);
        let failed = || FileError::of("read", &at);
        let Some((from, size)) = self.open_file(name).map_err(failed())? else { return Ok(None) };
        if size > MAX_DOCUMENT {
            return Err(too_long(&self.title, name, size));
        }
        let mut bytes = Vec::new();
        from.take(MAX_DOCUMENT).read_to_end(&mut bytes).map_err(failed())?;
        Ok(Some(bytes))
    }

    /// Opens a file of the layout, and returns its size in bytes. Returns `None` if it does not exist, and for a stream. If it is
    /// not a regular file, returns `None` for an archive, and an error for a directory.
    fn open_file(&self, name: &str) -> io::Result<Option<(Box<dyn Read + '_>, u64)>> {
        match &self.place {
            FileSource::Tar(file, members) => Ok(members.file(name).map(|(offset, size)| {
                (Box::new(Section::new(file, offset, size)) as Box<dyn Read>, size)
            })),
            FileSource::Directory(directory) => {
                match open_regular(&directory.join(name), Links::Refuse) {
                    Ok(file) => {
                        let size = file.metadata()?.len();
                        Ok(Some((Box::new(file), size)))
                    }
                    Err(error) if error.is_absent() => Ok(None),
                    Err(error) => Err(error.into()),
                }
            }
            FileSource::Stream(_) => Ok(None),
        }
    }

    /// Returns an origin that reads blobs into their targets. `named` has all blobs of the boxes; a stream must not have others.
    pub(crate) fn origin<'a>(&'a self, named: &'a [(Digest, u64)]) -> impl Origin + 'a {
        Blobs { archive: self, named }
    }

    fn read_blob(
        &self,
        sent: (Digest, u64),
        target: &Inflating<'_>,
    ) -> Result<(), BoxRegistryError> {
        let (mut from, size) = self.blob(&sent.0)?;
        if size != sent.1 {
            let reason = format!("it has {size} bytes, and its manifest says {}", sent.1);
            return Err(self.wrong(sent.0, reason));
        }
        fill(&self.title, target, &mut *from, sent)
    }
}

/// Fills a target with the blob of the digest and size `sent` from a reader.
pub(crate) fn fill(
    title: &str,
    target: &Inflating<'_>,
    from: &mut dyn Read,
    sent: (Digest, u64),
) -> Result<(), BoxRegistryError> {
    let (what, digest) = (title.to_owned(), sent.0);
    target.fill(from, sent).map_err(|error| match error {
        FillError::Read(source) => BoxRegistryError::Read { what, source },
        FillError::Draft(DraftError::Content(reason)) => {
            BoxRegistryError::Content { what, digest, reason }
        }
        FillError::Draft(DraftError::Io(source)) => BoxRegistryError::Sink { digest, source },
        FillError::Draft(DraftError::Store(error)) => {
            BoxRegistryError::Sink { digest, source: io::Error::other(error) }
        }
    })
}

/// An archive while its manifests are read. In a stream, no other blob can be read yet.
struct Early<'a>(&'a Archive);

impl Origin for Early<'_> {
    fn fetch<'s>(
        &self,
        wanted: &[(Digest, u64)],
        target: Targets<'_, 's>,
    ) -> Result<(), BoxRegistryError> {
        if let (FileSource::Stream(_), Some((digest, _))) = (&self.0.place, wanted.first()) {
            let (what, digest) = (self.0.title.clone(), *digest);
            return Err(BoxRegistryError::Later { what, digest });
        }
        self.0.origin(&[]).fetch(wanted, target)
    }
}

/// The blobs of an archive.
struct Blobs<'a> {
    archive: &'a Archive,
    named: &'a [(Digest, u64)],
}

impl Origin for Blobs<'_> {
    fn fetch<'s>(
        &self,
        wanted: &[(Digest, u64)],
        target: Targets<'_, 's>,
    ) -> Result<(), BoxRegistryError> {
        if let FileSource::Stream(stream) = &self.archive.place {
            return stream.fetch(self.named, wanted, target);
        }
        let read = |sent: &(Digest, u64)| match into(target, &sent.0)? {
            Some(target) => self.archive.read_blob(*sent, &target),
            None => Ok(()),
        };
        each(wanted, AT_ONCE, read).map(drop)
    }
}

/// Returns the target of a blob, or `None` if the blob is no longer needed.
pub(crate) fn into<'s>(
    target: Targets<'_, 's>,
    digest: &Digest,
) -> Result<Option<Inflating<'s>>, BoxRegistryError> {
    target(digest).map_err(|source| BoxRegistryError::Sink { digest: *digest, source })
}

/// Checks that an index is within its limits.
pub(crate) fn checked(title: &str, listed: Vec<Listed>) -> Result<Vec<Listed>, ArchiveError> {
    let what = || title.to_owned();
    let bytes = listed.iter().fold(0_u64, |all, it| all.saturating_add(it.size));
    if listed.len() > MAX_MANIFESTS {
        return Err(ArchiveError::TooMany { what: what() });
    }
    if listed.iter().any(|it| it.names.len() > MAX_NAMES) {
        let reason = format!("it gives one box more than {MAX_NAMES} names");
        return Err(ArchiveError::Malformed { what: what(), reason });
    }
    if bytes > MAX_MANIFESTS_BYTES {
        let reason = format!(
            "its manifests have {bytes} bytes together, and at most {MAX_MANIFESTS_BYTES} are allowed"
        );
        return Err(ArchiveError::Malformed { what: what(), reason });
    }
    Ok(listed)
}

pub(crate) fn too_long(title: &str, name: &str, size: u64) -> ArchiveError {
    let reason = format!("its {name} has {size} bytes, and at most {MAX_DOCUMENT} are allowed");
    ArchiveError::Malformed { what: title.to_owned(), reason }
}

/// Returns the error of an invalid header. If it is the first header (`offset` 0), the file is not an archive.
pub(crate) fn not_tar(title: &str, offset: u64, reason: String) -> ArchiveError {
    let what = title.to_owned();
    if offset == 0 {
        let reason = "it is neither a directory nor a tar archive".to_owned();
        return ArchiveError::NoBoxes { what, reason };
    }
    ArchiveError::Malformed { what, reason }
}
