//! Reads an archive once, from its beginning to its end.
//!
//! The first files of the archive must be `oci-layout`, `index.json`, all manifests of the index, and the blobs of the
//! attachments. So these, whose size is limited, are in memory before the first blob of a box arrives, and the wanted blobs are
//! known. A file that is no blob of a box is an error, because its data would have to be read, whatever its size is.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use box_contract::manifest::{BLOBS, INDEX_FILE, LAYOUT_FILE};
use box_digest::Digest;
use box_layout::{Listed, MAX_DOCUMENT, check_layout_file, listed};
use box_registry::{BoxRegistryError, Referrer, Targets, empty};
use oci_layer::{Limits, Member, MemberKind, member};
use safe_text::shown;

use crate::ArchiveError;
use crate::attached;
use crate::read::{checked, fill, into, not_tar, too_long};

/// The maximum number of bytes that are read after the end of an archive: programs pad the last record to some kilobytes. If the
/// padding were not read, a program that writes it to a pipe would find the pipe closed.
const REST: u64 = 1 << 20;
/// The maximum size of all headers before a member's data, in bytes.
const HEADERS: u64 = 4 << 20;
/// The maximum number of directories in an archive.
const DIRECTORIES: usize = 1024;

/// A stream whose manifests have been read.
pub(crate) struct Stream {
    title: String,
    /// The manifests, and the blobs of the attachments.
    documents: BTreeMap<Digest, Vec<u8>>,
    members: Mutex<Members>,
}

/// The members of the archive that have not been read.
struct Members {
    from: BufReader<Box<dyn Read + Send>>,
    /// The number of bytes that were read.
    offset: u64,
    /// The offset of the next member's headers.
    next: u64,
    directories: usize,
    /// The names of the previous files. They are few, because unwanted files are errors.
    seen: BTreeSet<Vec<u8>>,
}

/// A file of an archive. The reader is at the beginning of its data.
struct File {
    name: String,
    size: u64,
}

impl File {
    /// Returns the digest in the file's name, if the file is a blob.
    fn digest(&self) -> Option<Digest> {
        Digest::from_hex(self.name.strip_prefix(BLOBS)?.strip_prefix('/')?)
    }
}

impl Stream {
    /// Reads the index and the manifests.
    pub(crate) fn open(
        title: String,
        from: Box<dyn Read + Send>,
    ) -> Result<(Self, Vec<Listed>), ArchiveError> {
        let mut members = Members::new(from);
        let at = |name: &str| Path::new(&title).join(name);
        check_layout_file(&at(LAYOUT_FILE), members.document(&title, LAYOUT_FILE)?)?;
        let index = members.document(&title, INDEX_FILE)?;
        let listed = checked(&title, listed(&at(INDEX_FILE), index)?)?;
        let sizes = listed.iter().map(|it| (it.digest, it.size)).collect();
        let mut documents = members.documents(&title, sizes, "manifests")?;
        let referrers: Vec<_> = documents.values().filter_map(|it| Referrer::of(it)).collect();
        let attached = attached::blobs(&referrers);
        let mut attached =
            attached.map_err(|reason| ArchiveError::Malformed { what: title.clone(), reason })?;
        attached.retain(|digest, _| !documents.contains_key(digest));
        documents.extend(members.documents(&title, attached, "attachments")?);
        Ok((Self { title, documents, members: Mutex::new(members) }, listed))
    }

    /// Returns the manifest or the attachment with this digest.
    pub(crate) fn document(&self, digest: &Digest) -> Result<Vec<u8>, ArchiveError> {
        let absent = || BoxRegistryError::Absent { what: self.title.clone(), digest: *digest };
        Ok(self.documents.get(digest).cloned().ok_or_else(absent)?)
    }

    /// Reads to the end of the archive. Reads the `wanted` blobs into their targets, and skips the other blobs, which must be in
    /// `named`.
    pub(crate) fn fetch<'s>(
        &self,
        named: &[(Digest, u64)],
        wanted: &[(Digest, u64)],
        target: Targets<'_, 's>,
    ) -> Result<(), BoxRegistryError> {
        let mut named: BTreeMap<_, _> = named.iter().copied().collect();
        // The config of the manifest of deltas.
        named.insert(empty().digest, empty().size);
        let mut wanted: BTreeSet<_> = wanted.iter().map(|(digest, _)| *digest).collect();
        // A blob of a box may have the same bytes as an attachment.
        for (digest, bytes) in
            self.documents.iter().filter(|(it, _)| wanted.contains(it)).collect::<Vec<_>>()
        {
            wanted.remove(digest);
            if let Some(target) = into(target, digest)? {
                fill(&self.title, &target, &mut &**bytes, (*digest, bytes.len() as u64))?;
            }
        }
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(file) = members.file().map_err(|error| self.failed(error))? {
            let what = || self.title.clone();
            let blob = file.digest().and_then(|it| Some((it, *named.get(&it)?)));
            let Some((digest, size)) = blob else {
                let reason = format!("it has {}, which no box names", shown(&file.name));
                return Err(BoxRegistryError::Malformed { what: what(), reason });
            };
            if file.size != size {
                let reason = format!("it has {} bytes, and its manifest says {size}", file.size);
                return Err(BoxRegistryError::Content { what: what(), digest, reason });
            }
            let target = if wanted.remove(&digest) { into(target, &digest)? } else { None };
            if let Some(target) = target {
                fill(&self.title, &target, &mut members.from, (digest, size))?;
                members.offset += size;
            } else {
                members.skip(size).map_err(|error| self.failed(error))?;
            }
        }
        members.drain();
        match wanted.pop_first() {
            Some(digest) => Err(BoxRegistryError::Absent { what: self.title.clone(), digest }),
            None => Ok(()),
        }
    }

    fn failed(&self, error: Failed) -> BoxRegistryError {
        let what = self.title.clone();
        match error {
            Failed::Unsound(_, reason) => BoxRegistryError::Malformed { what, reason },
            Failed::Read(source) => BoxRegistryError::Read { what, source },
        }
    }
}

/// The reason why the next member cannot be read.
enum Failed {
    /// The member's headers are invalid, or an archive of boxes must not have such a member. Contains the offset of the headers.
    Unsound(u64, String),
    Read(io::Error),
}

impl Failed {
    fn named(self, title: &str) -> ArchiveError {
        match self {
            Self::Unsound(offset, reason) => not_tar(title, offset, reason),
            Self::Read(source) => BoxRegistryError::Read { what: title.to_owned(), source }.into(),
        }
    }
}

impl Members {
    fn new(from: Box<dyn Read + Send>) -> Self {
        let from = BufReader::with_capacity(128 << 10, from);
        Self { from, offset: 0, next: 0, directories: 0, seen: BTreeSet::new() }
    }

    /// Returns the next file, or `None` at the end.
    fn file(&mut self) -> Result<Option<File>, Failed> {
        loop {
            self.skip(self.next - self.offset)?;
            let here = self.offset;
            let unsound =
                |reason: String| Failed::Unsound(here, format!("at byte {here}: {reason}"));
            let headers = self.from.by_ref().take(HEADERS);
            let found = member(headers, here, &Limits::default());
            let Some(member) = found.map_err(|error| unsound(error.to_string()))? else {
                return Ok(None);
            };
            let Member { path, kind, next } = member;
            let name = String::from_utf8_lossy(&path).into_owned();
            self.next = next;
            match kind {
                MemberKind::File { offset, size } => {
                    self.offset = offset;
                    if self.seen.insert(path) {
                        return Ok(Some(File { name, size }));
                    }
                    return Err(unsound(format!("it has two files named {:?}", shown(&name))));
                }
                MemberKind::Other if self.directories < DIRECTORIES => {
                    (self.directories, self.offset) = (self.directories + 1, next);
                }
                MemberKind::Other => return Err(unsound("it has too many directories".to_owned())),
                MemberKind::Symlink(_) | MemberKind::HardLink(_) => {
                    return Err(unsound(format!("{:?} is a link", shown(&name))));
                }
            }
        }
    }

    /// Reads the next file, which must be `name`.
    fn document(&mut self, title: &str, name: &str) -> Result<Vec<u8>, ArchiveError> {
        match self.file().map_err(|error| error.named(title))? {
            None if self.seen.is_empty() => Err(ArchiveError::NoBoxes {
                what: title.to_owned(),
                reason: "it is empty".to_owned(),
            }),
            None => Err(not_a_stream(title, &format!("it ends before {name}"))),
            Some(file) if file.name != name => {
                let found = shown(&file.name);
                Err(not_a_stream(title, &format!("{found} comes before {name}")))
            }
            Some(file) if file.size > MAX_DOCUMENT => Err(too_long(title, name, file.size)),
            Some(file) => self.content(file.size).map_err(|error| error.named(title)),
        }
    }

    /// Reads the next files, which must be the blobs `sizes`, in any order. `plural` is what they are, for messages.
    fn documents(
        &mut self,
        title: &str,
        mut sizes: BTreeMap<Digest, u64>,
        plural: &str,
    ) -> Result<BTreeMap<Digest, Vec<u8>>, ArchiveError> {
        let mut documents = BTreeMap::new();
        while !sizes.is_empty() {
            let Some(file) = self.file().map_err(|error| error.named(title))? else {
                return Err(not_a_stream(title, &format!("it ends before its {plural}")));
            };
            let digest = file.digest();
            let Some((digest, size)) = digest.and_then(|it| Some((it, sizes.remove(&it)?))) else {
                let name = shown(&file.name);
                return Err(not_a_stream(title, &format!("{name} comes before its {plural}")));
            };
            let wrong = |reason| {
                let what = title.to_owned();
                BoxRegistryError::Content { what, digest, reason }
            };
            if file.size != size {
                let reason = format!("it has {} bytes, and the index says {size}", file.size);
                return Err(wrong(reason).into());
            }
            let bytes = self.content(size).map_err(|error| error.named(title))?;
            match Digest::of(&bytes) {
                found if found == digest => drop(documents.insert(digest, bytes)),
                found => return Err(wrong(format!("it has the digest {found}")).into()),
            }
        }
        Ok(documents)
    }

    /// Reads the data of a small file.
    fn content(&mut self, size: u64) -> Result<Vec<u8>, Failed> {
        let mut bytes = Vec::new();
        let read = self.from.by_ref().take(size).read_to_end(&mut bytes).map_err(Failed::Read)?;
        self.passed(read as u64, size)?;
        Ok(bytes)
    }

    /// Skips `size` bytes.
    fn skip(&mut self, size: u64) -> Result<(), Failed> {
        let skipped = io::copy(&mut self.from.by_ref().take(size), &mut io::sink());
        let skipped = skipped.map_err(Failed::Read)?;
        self.passed(skipped, size)
    }

    fn passed(&mut self, read: u64, wanted: u64) -> Result<(), Failed> {
        self.offset += read;
        if read == wanted {
            return Ok(());
        }
        Err(Failed::Read(io::ErrorKind::UnexpectedEof.into()))
    }

    /// Reads the padding after the end of the archive. Errors are ignored.
    fn drain(&mut self) {
        drop(io::copy(&mut self.from.by_ref().take(REST), &mut io::sink()));
    }
}

fn not_a_stream(title: &str, reason: &str) -> ArchiveError {
    ArchiveError::NotAStream { what: title.to_owned(), reason: reason.to_owned() }
}
