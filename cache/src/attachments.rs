//! The attachments of boxes: documents about a box, such as its signature.
//!
//! The bytes of an attachment are a blob. The file `attached/<box digest>` lists the attachments of one box, in the order in
//! which they were added. It is a record ([`crate::action`]) whose blobs are the attachments. Its value has these fields for each of
//! them; numbers have 64 bits and are little-endian, and a text follows its length in bytes:
//!
//! ```text
//! size          the size of the blob in bytes
//! media type    a text
//! annotations   their number, then a key and a value for each: texts
//! ```
//!
//! A [collection](crate::collect) treats the attachments as blobs of the box, so that they are kept and removed with it. They
//! never keep a box. The attachments of a box that the store does not have are removed like content without references, but not
//! within an hour after the last of them was added. A damaged file is treated as absent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use box_digest::Digest;
use host_fs::read::read_open;

use crate::action::Record;
use crate::error::IoContext;
use crate::store::{open_existing, write_whole};
use crate::{Base, KeyHasher, Refers, Store, StoreError, StoredBoxes};

/// The maximum number of attachments of a box.
pub const MAX_ATTACHMENTS: usize = 64;
/// The maximum size of an attachment, in bytes.
pub const MAX_ATTACHMENT: u64 = 16 << 20;
/// The maximum size of all attachments of a box together, in bytes.
pub const MAX_ATTACHED: u64 = 64 << 20;
/// The maximum number of annotations of an attachment.
const MAX_ANNOTATIONS: usize = 16;
/// The maximum size of all keys and values of an attachment's annotations together, in bytes.
const MAX_ANNOTATED: usize = 4096;
/// The maximum size of a media type, in bytes.
const MAX_MEDIA_TYPE: usize = 255;
/// The directory of the lists.
pub(crate) const DIRECTORY: &str = "attached";

/// A document about a box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The media type, such as `application/vnd.dev.sigstore.bundle.v0.3+json`.
    pub media_type: String,
    /// Annotations of its manifest in a registry, such as `dev.sigstore.bundle.content`.
    pub annotations: BTreeMap<String, String>,
    /// The content.
    pub bytes: Vec<u8>,
}

impl Attachment {
    /// Creates an attachment without annotations.
    pub fn new(media_type: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self { media_type: media_type.into(), annotations: BTreeMap::new(), bytes }
    }

    /// Returns the description of the attachment, without its bytes.
    pub fn info(&self) -> AttachmentInfo {
        AttachmentInfo {
            media_type: self.media_type.clone(),
            annotations: self.annotations.clone(),
            digest: Digest::of(&self.bytes),
            size: self.bytes.len() as u64,
        }
    }
}

/// The description of an attachment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachmentInfo {
    /// The media type.
    pub media_type: String,
    /// The annotations.
    pub annotations: BTreeMap<String, String>,
    /// The digest of the bytes.
    pub digest: Digest,
    /// The size in bytes.
    pub size: u64,
}

impl AttachmentInfo {
    /// Returns what identifies the attachment among those of its box: its digest, its media type and its size. The same bytes under
    /// another media type are another document, and no bytes have the digest together with another size. So nobody can hide a
    /// signature by adding its bytes under another type, or by listing its digest with another size.
    pub fn identity(&self) -> (Digest, &str, u64) {
        (self.digest, &self.media_type, self.size)
    }

    /// Checks the limits of a single attachment: its size, its media type and its annotations. Returns the violated rule as a
    /// clause, such as `its media type is not valid`.
    ///
    /// # Errors
    /// The rule.
    pub fn check(&self) -> Result<(), String> {
        let Self { media_type, annotations, size, .. } = self;
        if *size > MAX_ATTACHMENT {
            return Err(format!("it has {size} bytes, and at most {MAX_ATTACHMENT} are allowed"));
        }
        let is_type =
            media_type.contains('/') && media_type.bytes().all(|it| it.is_ascii_graphic());
        if !is_type || media_type.len() > MAX_MEDIA_TYPE {
            return Err("its media type is not valid".to_owned());
        }
        let bytes: usize = annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
        if annotations.len() > MAX_ANNOTATIONS || bytes > MAX_ANNOTATED {
            return Err(format!(
                "at most {MAX_ANNOTATIONS} annotations with {MAX_ANNOTATED} bytes are allowed"
            ));
        }
        Ok(())
    }

    /// Checks the limits of all attachments of a box: [`MAX_ATTACHMENTS`] and [`MAX_ATTACHED`]. Returns the violated rule as a
    /// clause.
    ///
    /// # Errors
    /// The rule.
    pub fn check_all<'a>(all: impl IntoIterator<Item = &'a Self>) -> Result<(), String> {
        Self::check_sizes(all.into_iter().map(|it| it.size))
    }

    /// Checks the limits of all attachments of a box, as [`Self::check_all`] does, by their sizes.
    ///
    /// # Errors
    /// The rule.
    pub fn check_sizes(sizes: impl IntoIterator<Item = u64>) -> Result<(), String> {
        let (mut count, mut bytes) = (0, 0_u64);
        for size in sizes {
            (count, bytes) = (count + 1, bytes.saturating_add(size));
        }
        if count > MAX_ATTACHMENTS {
            return Err(format!("a box has at most {MAX_ATTACHMENTS} attachments"));
        }
        if bytes > MAX_ATTACHED {
            return Err(format!("the attachments of a box have at most {MAX_ATTACHED} bytes"));
        }
        Ok(())
    }
}

impl Store {
    /// Adds an attachment to a box. Returns `false` if the box has this attachment ([`AttachmentInfo::identity`]) already; that one
    /// keeps its annotations.
    ///
    /// If only the base has the box, its documents are copied to this store first, because a collection would otherwise remove
    /// the attachment. If neither store has the box, a collection removes the attachment later.
    ///
    /// # Errors
    /// [`StoreError::Attachment`] if a limit is exceeded, [`StoreError::File`] and [`StoreError::Full`].
    pub fn attach(&self, digest: &Digest, attachment: &Attachment) -> Result<bool, StoreError> {
        let info = attachment.info();
        let refused = |reason| StoreError::Attachment { digest: *digest, reason };
        info.check().map_err(refused)?;
        self.put(&attachment.bytes)?;
        // The gate comes before the lock: a process that publishes a box holds the gate, and may then wait for the lock.
        let _gate = self.session().publish_once()?;
        self.own_box(digest)?;
        let _lock = self.lock_attachments(digest)?;
        let all = self.attachments(digest)?;
        if all.iter().any(|it| it.identity() == info.identity()) {
            return Ok(false);
        }
        AttachmentInfo::check_all(all.iter().chain([&info])).map_err(refused)?;
        let mut own = read(self.root(), digest)?;
        own.retain(|it| it.identity() != info.identity());
        own.push(info);
        self.write_attachments(digest, &own).map(|()| true)
    }

    /// Adds attachments that a box cannot do without, such as the signature for which a policy has accepted it. If the limits of the
    /// box are exceeded, other attachments of this store make room: first those of `spare`, then the oldest. Returns how many are
    /// new. The other rules of [`Self::attach`] apply.
    ///
    /// # Errors
    /// [`StoreError::Attachment`] if `needed` alone exceeds a limit, [`StoreError::File`] and [`StoreError::Full`].
    pub fn attach_needed(
        &self,
        digest: &Digest,
        needed: &[&Attachment],
        spare: &[AttachmentInfo],
    ) -> Result<usize, StoreError> {
        if needed.is_empty() {
            return Ok(0);
        }
        let infos: Vec<_> = needed.iter().map(|it| it.info()).collect();
        let refused = |reason| StoreError::Attachment { digest: *digest, reason };
        infos.iter().try_for_each(AttachmentInfo::check).map_err(refused)?;
        for it in needed {
            self.put(&it.bytes)?;
        }
        let _gate = self.session().publish_once()?;
        self.own_box(digest)?;
        let _lock = self.lock_attachments(digest)?;
        let all = self.attachments(digest)?;
        let is_new =
            |it: &&AttachmentInfo| all.iter().all(|known| known.identity() != it.identity());
        let new = infos.iter().filter(is_new).count();
        if new > 0 {
            let mut own = read(self.root(), digest)?;
            own.retain(|it| infos.iter().all(|info| info.identity() != it.identity()));
            make_room(&mut own, &infos, spare).map_err(refused)?;
            own.extend(infos);
            self.write_attachments(digest, &own)?;
        }
        Ok(new)
    }

    /// Lists the attachments of a box in the order in which they were added, and then the further ones of the base, as far as the
    /// limits of a box allow. An attachment whose bytes are missing is left out.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn attachments(&self, digest: &Digest) -> Result<Vec<AttachmentInfo>, StoreError> {
        list(self.root(), self.base(), digest)
    }

    /// Reads an attachment, and verifies it.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Damaged`] and [`StoreError::File`].
    pub fn read_attachment(&self, info: &AttachmentInfo) -> Result<Attachment, StoreError> {
        // Notes the use of the blob.
        self.open_blob(&info.digest)?;
        read_bytes(self.root(), self.base(), info)
    }

    fn lock_attachments(&self, digest: &Digest) -> Result<crate::ActionLock, StoreError> {
        self.lock_action(&KeyHasher::new("attached", 1).part(digest.as_bytes()).finish())
    }

    fn write_attachments(&self, digest: &Digest, all: &[AttachmentInfo]) -> Result<(), StoreError> {
        let blobs: Vec<_> = all.iter().map(|it| it.digest).collect();
        let record = Record::encode(&encode(all), &Refers::to(&blobs));
        write_whole(self.root(), &path(self.root(), digest), &record)
    }
}

impl StoredBoxes {
    /// Lists the attachments of a box; see [`Store::attachments`].
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn attachments(&self, digest: &Digest) -> Result<Vec<AttachmentInfo>, StoreError> {
        list(self.root(), self.base(), digest)
    }

    /// Reads an attachment, and verifies it.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Damaged`] and [`StoreError::File`].
    pub fn read_attachment(&self, info: &AttachmentInfo) -> Result<Attachment, StoreError> {
        read_bytes(self.root(), self.base(), info)
    }
}

/// Returns the file with the list of a box's attachments.
pub(crate) fn path(root: &Path, digest: &Digest) -> PathBuf {
    root.join(DIRECTORY).join(digest.hex())
}

fn blob(root: &Path, digest: &Digest) -> PathBuf {
    root.join("blobs").join(digest.hex())
}

/// Removes as many attachments of `own` as `needed` takes the place of.
fn make_room(
    own: &mut Vec<AttachmentInfo>,
    needed: &[AttachmentInfo],
    spare: &[AttachmentInfo],
) -> Result<(), String> {
    while let Err(reason) = AttachmentInfo::check_all(own.iter().chain(needed)) {
        let is_spare =
            |it: &AttachmentInfo| spare.iter().any(|spare| spare.identity() == it.identity());
        let at = own.iter().position(is_spare);
        match at.or((!own.is_empty()).then_some(0)) {
            Some(at) => own.remove(at),
            None => return Err(reason),
        };
    }
    Ok(())
}

/// Lists the attachments of a box in a store and its base. Another process may change the base at any time, so its errors are
/// ignored.
fn list(
    own: &Path,
    base: Option<&Base>,
    digest: &Digest,
) -> Result<Vec<AttachmentInfo>, StoreError> {
    let mut all = read(own, digest)?;
    let more = base.and_then(|it| read(it.root(), digest).ok()).unwrap_or_default();
    for info in more {
        let is_known = all.iter().any(|it| it.identity() == info.identity());
        // Those of this store come first: the user needs them.
        if !is_known && AttachmentInfo::check_all(all.iter().chain([&info])).is_ok() {
            all.push(info);
        }
    }
    let is_there = |root: &Path, info: &AttachmentInfo| {
        blob(root, &info.digest).symlink_metadata().is_ok_and(|it| it.len() == info.size)
    };
    let roots = || [own].into_iter().chain(base.map(Base::root));
    all.retain(|info| roots().any(|root| is_there(root, info)));
    Ok(all)
}

fn read_bytes(
    own: &Path,
    base: Option<&Base>,
    info: &AttachmentInfo,
) -> Result<Attachment, StoreError> {
    let mut found = Err(StoreError::Missing(info.digest));
    for root in [own].into_iter().chain(base.map(Base::root)) {
        let path = blob(root, &info.digest);
        let Some(file) = open_existing(&path)? else { continue };
        let bytes = read_open(&file, MAX_ATTACHMENT).map_err(std::io::Error::from);
        let bytes = bytes.context("read", &path)?;
        if Digest::of(&bytes) == info.digest {
            let (media_type, annotations) = (info.media_type.clone(), info.annotations.clone());
            return Ok(Attachment { media_type, annotations, bytes });
        }
        found = Err(StoreError::Damaged { blob: info.digest, path });
    }
    found
}

/// Reads the list of a box's attachments in one store.
fn read(root: &Path, digest: &Digest) -> Result<Vec<AttachmentInfo>, StoreError> {
    let path = path(root, digest);
    let Some(file) = open_existing(&path)? else { return Ok(Vec::new()) };
    let record = Record::read(&file, &path)?;
    Ok(record.and_then(|it| decode(&it)).unwrap_or_default())
}

fn encode(all: &[AttachmentInfo]) -> Vec<u8> {
    let mut value = Vec::new();
    let text = |value: &mut Vec<u8>, text: &str| {
        value.extend((text.len() as u64).to_le_bytes());
        value.extend(text.as_bytes());
    };
    for AttachmentInfo { media_type, annotations, size, .. } in all {
        value.extend(size.to_le_bytes());
        text(&mut value, media_type);
        value.extend((annotations.len() as u64).to_le_bytes());
        for (key, annotation) in annotations {
            text(&mut value, key);
            text(&mut value, annotation);
        }
    }
    value
}

fn decode(record: &Record) -> Option<Vec<AttachmentInfo>> {
    let mut rest = record.value.as_slice();
    let mut all = Vec::new();
    for digest in &record.blobs {
        let size = number(&mut rest)?;
        let media_type = text(&mut rest)?;
        let mut annotations = BTreeMap::new();
        for _ in 0..number(&mut rest)? {
            annotations.insert(text(&mut rest)?, text(&mut rest)?);
        }
        all.push(AttachmentInfo { media_type, annotations, digest: *digest, size });
    }
    rest.is_empty().then_some(all)
}

/// Splits off a number.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u64::from_le_bytes(*number))
}

/// Splits off a text.
fn text(rest: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(number(rest)?).ok()?;
    let (text, after) = rest.split_at_checked(length)?;
    *rest = after;
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use proptest::prelude::*;

    use super::*;

    const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

    fn attachment(bytes: &[u8]) -> Attachment {
        Attachment::new(BUNDLE, bytes.to_vec())
    }

    fn store(directory: &Path) -> Store {
        Store::open(&directory.join("store")).unwrap()
    }

    #[test]
    fn what_a_box_cannot_do_without_takes_the_place_of_others() {
        let directory = tempfile::tempdir().unwrap();
        let (store, digest) = (store(directory.path()), Digest::of(b"box"));
        let of = |name: &str| attachment(name.as_bytes());
        let others: Vec<_> = (0..MAX_ATTACHMENTS).map(|it| of(&it.to_string())).collect();
        for it in &others {
            store.attach(&digest, it).unwrap();
        }
        let (first, second, third) = (of("first"), of("second"), of("third"));
        assert!(store.attach(&digest, &first).is_err());
        let attach = |needed: &[&Attachment], spare: &[&Attachment]| {
            let spare: Vec<_> = spare.iter().map(|it| it.info()).collect();
            store.attach_needed(&digest, needed, &spare).unwrap()
        };
        assert_eq!(attach(&[&first, &others[3]], &[&others[5]]), 1);
        assert_eq!(attach(&[&first], &[]), 0);
        assert_eq!(attach(&[&second, &third], &[&first]), 2);
        let mut expected: Vec<_> = others.iter().map(Attachment::info).collect();
        for at in [5, 3, 0] {
            expected.remove(at);
        }
        expected.extend([&others[3], &second, &third].map(Attachment::info));
        assert_eq!(store.attachments(&digest).unwrap(), expected);
        // The same bytes under another type are not spare.
        let twin = Attachment::new("text/plain", b"0".to_vec());
        assert_eq!(attach(&[&twin], &[&others[1]]), 1);
        assert_eq!(attach(&[&of("zero")], &[&of("0")]), 1);
        let all = store.attachments(&digest).unwrap();
        assert!(all.contains(&twin.info()) && !all.contains(&others[2].info()));
        // Nobody gains by adding the same bytes as another document first.
        let other = Attachment::new("text/plain", b"fourth".to_vec());
        assert_eq!((attach(&[&other], &[]), attach(&[&of("fourth")], &[])), (1, 1));
        assert_eq!(store.attachments(&digest).unwrap().last(), Some(&of("fourth").info()));
    }

    #[test]
    fn what_a_box_cannot_do_without_comes_before_what_the_base_has() {
        let directory = tempfile::tempdir().unwrap();
        let base = Store::open(&directory.path().join("base")).unwrap();
        let digest = Digest::of(b"box");
        for number in 0..MAX_ATTACHMENTS {
            base.attach(&digest, &attachment(&number.to_le_bytes())).unwrap();
        }
        let base = Base::open(&directory.path().join("base")).unwrap();
        let store = store(directory.path()).with_base(base);
        let one = attachment(b"one");
        assert!(store.attach(&digest, &one).is_err());
        assert_eq!(store.attach_needed(&digest, &[&one], &[]).unwrap(), 1);
        let all = store.attachments(&digest).unwrap();
        assert_eq!((all.len(), &all[0]), (MAX_ATTACHMENTS, &one.info()));
    }

    #[test]
    fn attachments_are_listed_in_their_order_and_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let (store, digest) = (store(directory.path()), Digest::of(b"box"));
        assert_eq!(store.attachments(&digest).unwrap(), []);
        let annotations = BTreeMap::from([("dev.sigstore.bundle.content".into(), "x".into())]);
        let first = Attachment { annotations, ..attachment(b"first") };
        let second = Attachment::new("text/plain;charset=utf-8", b"second".to_vec());
        for it in [&first, &second] {
            assert!(store.attach(&digest, it).unwrap());
            assert!(!store.attach(&digest, it).unwrap(), "it is there");
        }
        // The same bytes under another type are another document, and the one does not hide the other.
        let other = Attachment::new("a/b", b"first".to_vec());
        assert!(store.attach(&digest, &other).unwrap());
        let listed = store.attachments(&digest).unwrap();
        assert_eq!(listed, [first.info(), second.info(), other.info()]);
        assert_eq!(store.read_attachment(&listed[2]).unwrap(), other);
        assert_eq!(store.read_attachment(&listed[0]).unwrap(), first);
        let boxes = StoredBoxes::open(store.root()).unwrap();
        assert_eq!(boxes.attachments(&digest).unwrap(), listed);
        assert_eq!(boxes.read_attachment(&listed[1]).unwrap(), second);
        assert_eq!(store.attachments(&Digest::of(b"other")).unwrap(), []);
    }

    #[test]
    fn what_exceeds_a_limit_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let (store, digest) = (store(directory.path()), Digest::from_bytes([7; 32]));
        let refused = |it: &Attachment| store.attach(&digest, it).unwrap_err().to_string();
        let large = vec![0; usize::try_from(MAX_ATTACHMENT).unwrap() + 1];
        let mut many = attachment(b"x");
        many.annotations = (0..17).map(|it| (it.to_string(), String::new())).collect();
        let mut long = attachment(b"x");
        long.annotations = [("key".into(), "v".repeat(MAX_ANNOTATED))].into();
        let odd = |media_type: &str| Attachment::new(media_type, Vec::new());
        let refusals = [
            attachment(&large),
            odd("bundle"),
            odd("a/b\n"),
            odd("a/\u{e9}"),
            odd(&"a/".repeat(200)),
            many,
            long,
        ];
        let refusals: Vec<_> = refusals.iter().map(refused).collect();
        for number in 0..MAX_ATTACHMENTS {
            assert!(store.attach(&digest, &attachment(&number.to_le_bytes())).unwrap());
        }
        let last = refused(&attachment(b"one more"));
        let named = format!("the box {digest} cannot get an attachment: ");
        let all = refusals.iter().chain([&last]).map(|it| it.strip_prefix(&named).unwrap());
        let all: Vec<_> = all.collect();
        assert_eq!(
            all,
            [
                "it has 16777217 bytes, and at most 16777216 are allowed",
                "its media type is not valid",
                "its media type is not valid",
                "its media type is not valid",
                "its media type is not valid",
                "at most 16 annotations with 4096 bytes are allowed",
                "at most 16 annotations with 4096 bytes are allowed",
                "a box has at most 64 attachments",
            ]
        );
        assert!(!store.attach(&digest, &attachment(&0_usize.to_le_bytes())).unwrap());
        let sizes =
            [MAX_ATTACHMENT; 5].map(|size| AttachmentInfo { size, ..attachment(b"").info() });
        assert!(AttachmentInfo::check_all(&sizes[..4]).is_ok());
        let reason = AttachmentInfo::check_all(&sizes).unwrap_err();
        assert_eq!(reason, "the attachments of a box have at most 67108864 bytes");
    }

    #[test]
    fn a_damaged_list_and_missing_bytes_are_absent() {
        let directory = tempfile::tempdir().unwrap();
        let (store, digest) = (store(directory.path()), Digest::of(b"box"));
        let (one, two) = (attachment(b"one"), attachment(b"two"));
        store.attach(&digest, &one).unwrap();
        store.attach(&digest, &two).unwrap();
        store.remove_blob(&one.info().digest).unwrap();
        assert_eq!(store.attachments(&digest).unwrap(), [two.info()]);
        assert!(!store.attach(&digest, &one).unwrap(), "the list still has it");
        assert_eq!(store.attachments(&digest).unwrap(), [one.info(), two.info()]);
        let blob = store.blobs().join(two.info().digest.hex());
        fs::set_permissions(&blob, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(blob, "2wo").unwrap();
        let damaged = store.read_attachment(&two.info());
        assert!(matches!(damaged, Err(StoreError::Damaged { .. })), "{damaged:?}");
        let list = path(store.root(), &digest);
        let mut bytes = fs::read(&list).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&list, bytes).unwrap();
        assert_eq!(store.attachments(&digest).unwrap(), []);
        // A store of an earlier version has no directory for the lists.
        fs::remove_dir_all(store.root().join(DIRECTORY)).unwrap();
        let boxes = StoredBoxes::open(store.root()).unwrap();
        assert_eq!(boxes.attachments(&digest).unwrap(), []);
        drop((boxes, store));
        assert!(self::store(directory.path()).attach(&digest, &one).unwrap());
    }

    #[test]
    fn the_attachments_of_the_base_are_read_and_its_box_is_copied_for_a_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let base = Store::open(&directory.path().join("base")).unwrap();
        let digest = base.put(b"manifest").unwrap();
        let documents = [("index.json", b"index".to_vec()), ("oci-layout", b"layout".to_vec())];
        base.keep_box(&base.publish(&[]).unwrap(), &digest, &documents).unwrap();
        let (one, two) = (attachment(b"one"), attachment(b"two"));
        base.attach(&digest, &one).unwrap();
        let base = || Base::open(&directory.path().join("base")).unwrap();
        let store = store(directory.path()).with_base(base());
        assert_eq!(store.attachments(&digest).unwrap(), [one.info()]);
        assert!(!store.attach(&digest, &one).unwrap(), "the base has it");
        assert!(store.attach(&digest, &two).unwrap());
        assert!(store.box_directory(&digest).join("oci-layout").exists(), "a collection keeps it");
        let boxes = StoredBoxes::open(store.root()).unwrap().with_base(base());
        let listed = boxes.attachments(&digest).unwrap();
        assert_eq!(listed, [two.info(), one.info()]);
        assert_eq!(boxes.read_attachment(&listed[1]).unwrap(), one);
    }

    #[test]
    fn a_box_gets_attachments_while_it_is_published() {
        let directory = tempfile::tempdir().unwrap();
        let (store, digest) = (store(directory.path()), Digest::of(b"box"));
        let _published = store.publish(&[]).unwrap();
        assert!(store.attach(&digest, &attachment(b"one")).unwrap());
    }

    proptest! {
        #[test]
        fn a_list_reads_back(all in proptest::collection::vec(
            ("[ -~]{0,9}", proptest::collection::btree_map(".{0,5}", ".{0,5}", 0..4), any::<u64>()),
            0..5,
        ), cut in any::<prop::sample::Index>()) {
            let all: Vec<_> = (0..).zip(all).map(|(number, (media_type, annotations, size))| {
                AttachmentInfo { media_type, annotations, digest: Digest::from_bytes([number; 32]), size }
            }).collect();
            let blobs: Vec<_> = all.iter().map(|it| it.digest).collect();
            let mut record = Record { blobs, actions: Vec::new(), value: encode(&all) };
            prop_assert_eq!(decode(&record), Some(all));
            if !record.value.is_empty() {
                record.value.truncate(cut.index(record.value.len()));
                prop_assert_eq!(decode(&record), None);
            }
        }
    }
}
