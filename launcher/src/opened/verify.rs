//! Verifies blobs by the SHA-256 of the open files, or by the receipt of an earlier verification. The digests are [OCI
//! digests](https://github.com/opencontainers/image-spec/blob/main/descriptor.md#digests).

use std::fs::File;
use std::io::{self, Read};
use std::time::{Duration, Instant, SystemTime};

use box_digest::Digest;
use box_layout::{Blob, OpenBox, OpenError};
use host_fs::OsError;
use host_fs::read::Section;
use host_fs::stamp::Stamp;
use serde::Serialize;
use vmm::signals::Stopped;

use super::OpenBoxError;
use crate::opened::receipt::Receipts;
use vmm::signals::StopSignals;

/// How a blob was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verified {
    /// By a receipt: the file has not changed since it was hashed.
    Receipt,
    /// By hashing all bytes of the file.
    Hashed,
}

/// Whether receipts are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// A file with a receipt is not hashed if it has not changed.
    Receipts,
    /// All blobs are hashed.
    Nothing,
}

/// The result of verifying the boot blobs of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verification {
    /// [`Verified::Hashed`] if any blob was hashed.
    pub verified: Verified,
    /// How long the hashing took; zero if nothing was hashed. The time for looking up receipts is part of the start
    /// instead.
    pub hashing: Duration,
}

impl Verification {
    /// The result if receipts cover all blobs.
    const RECEIPT: Self = Self { verified: Verified::Receipt, hashing: Duration::ZERO };
}

/// Verifies the boot blobs of a box and the metadata in its rootfs. For a box of epoch 3, the rootfs must contain the
/// config's plan, which init reads. For other boxes, the rootfs must be as large as its parts.
///
/// # Errors
/// [`OpenError::RootfsPlan`], [`OpenError::Superblock`], or the error of the first blob that differs or cannot be read;
/// [`Stopped`] if one of `signals` arrives.
pub fn boot_blobs(
    opened: &OpenBox,
    receipts: &Receipts,
    trust: Trust,
    signals: &StopSignals,
) -> Result<Verification, OpenBoxError> {
    let found = if trust == Trust::Receipts && has_receipt(opened, receipts)? {
        Verification::RECEIPT
    } else {
        each(opened, receipts, trust, signals)?
    };
    // A receipt covers neither the config that names the files nor the relation of the files to each other.
    opened.check_plan()?;
    opened.check_superblock()?;
    Ok(found)
}

/// Returns whether one receipt covers all boot blobs of a box.
fn has_receipt(opened: &OpenBox, receipts: &Receipts) -> Result<bool, OpenBoxError> {
    opened.boot_blobs().try_for_each(Blob::check_size)?;
    let stamps = opened.boot_blobs().map(stamp).collect::<Result<Vec<_>, _>>()?;
    Ok(receipts.holds_box(&opened.digest, &stamps))
}

/// Verifies the boot blobs of a box one by one, and then writes one receipt for all of them.
fn each(
    opened: &OpenBox,
    receipts: &Receipts,
    trust: Trust,
    signals: &StopSignals,
) -> Result<Verification, OpenBoxError> {
    let (mut sum, mut records) = (Verification::RECEIPT, Some(Vec::new()));
    for blob in opened.boot_blobs() {
        let began = Instant::now();
        let (verified, record) = recorded(blob, receipts, trust, Some(signals))?;
        if verified == Verified::Hashed {
            sum.verified = Verified::Hashed;
            sum.hashing += began.elapsed();
        }
        records = records.zip(record).map(|(mut all, record)| {
            all.push(record);
            all
        });
    }
    if let Some(records) = records {
        drop(receipts.note_box(&opened.digest, &records));
    }
    Ok(sum)
}

/// Verifies one blob. A failure to write a receipt is not an error: the next start hashes the blob again.
///
/// # Errors
/// If the blob differs from its descriptor in size or content, changes while it is hashed, or cannot be read; or if one
/// of `signals` arrives.
pub fn blob(
    blob: &Blob,
    receipts: &Receipts,
    trust: Trust,
    signals: Option<&StopSignals>,
) -> Result<Verified, OpenBoxError> {
    recorded(blob, receipts, trust, signals).map(|(verified, _)| verified)
}

/// Like [`blob`], but also returns the [`Stamp::record`] of its file, if the file has one.
fn recorded(
    blob: &Blob,
    receipts: &Receipts,
    trust: Trust,
    signals: Option<&StopSignals>,
) -> Result<(Verified, Option<String>), OpenBoxError> {
    let digest = &blob.descriptor.digest;
    if trust == Trust::Receipts {
        blob.check_size()?;
        let held = receipts.record(digest, &stamp(blob)?);
        if held.is_some() {
            return Ok((Verified::Receipt, held));
        }
    }
    let record = hashed(blob, signals)?;
    if let Some(record) = &record {
        // If the receipt cannot be written, the next start hashes the blob again.
        drop(receipts.note(digest, record.clone()));
    }
    Ok((Verified::Hashed, record))
}

/// Hashes one blob, and returns the record of its file; see [`Stamp::record`].
///
/// # Errors
/// The errors of [`blob`].
pub fn hashed(blob: &Blob, signals: Option<&StopSignals>) -> Result<Option<String>, OpenBoxError> {
    blob.check_size()?;
    let stamp = self::stamp(blob)?;
    let began = SystemTime::now();
    let found = digest(blob, signals)?;
    let expected = blob.descriptor.digest;
    if found != expected {
        return Err(OpenError::digest(blob.path.clone(), expected, found).into());
    }
    if self::stamp(blob)? != stamp {
        let changed = io::Error::other("it changed meanwhile");
        return Err(OsError::file("verify", &blob.path)(changed).into());
    }
    Ok(stamp.record(&blob.file, began))
}

/// Computes the digest of a blob, which takes seconds for a large blob.
fn digest(blob: &Blob, signals: Option<&StopSignals>) -> Result<Digest, OpenBoxError> {
    // Other processes share the position of the descriptor, so this reads by offset.
    let section = Section::new(&blob.file, 0, u64::MAX);
    let mut content = Interruptible { section, signals, signal: None };
    let read = Digest::of_reader(&mut content);
    if let Some(signal) = content.signal {
        return Err(Stopped(signal).into());
    }
    Ok(read.map(|(digest, _)| digest).map_err(OsError::file("read", &blob.path))?)
}

/// A reader of a file that fails when one of the signals arrives. The signals are blocked, so they would otherwise wait
/// until the whole file was read.
struct Interruptible<'a> {
    section: Section<&'a File>,
    signals: Option<&'a StopSignals>,
    /// The signal that arrived.
    signal: Option<i32>,
}

impl Read for Interruptible<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(signals) = self.signals {
            self.signal = signals.next().map_err(io::Error::other)?;
        }
        match self.signal {
            // Not `Interrupted`, because readers retry after that.
            Some(_) => Err(io::Error::other("a signal arrived")),
            None => self.section.read(buffer),
        }
    }
}

fn stamp(blob: &Blob) -> Result<Stamp, OsError> {
    Stamp::of(&blob.file).map_err(OsError::file("examine", &blob.path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use box_contract::manifest::{KERNEL_TYPE, METADATA_TYPE, SEGMENT_TYPE};
    use nix::sys::pthread::{pthread_kill, pthread_self};
    use nix::sys::signal::Signal;
    use std::fs;
    use std::path::Path;
    use std::thread::sleep;
    use testkit::test_box::{TestBox, config, segment, set_blocks};

    struct Fixture {
        made: TestBox,
        receipts: Receipts,
    }

    impl Fixture {
        fn new() -> Self {
            let made = TestBox::new(&config());
            let receipts = Receipts::new(&made.path().join("state"));
            // Wait, because a file that was just written gets no receipt.
            sleep(Duration::from_millis(40));
            Self { made, receipts }
        }

        fn verify(&self, trust: Trust) -> Result<Verified, OpenBoxError> {
            let opened = crate::opened::open(self.made.path()).unwrap();
            let signals = StopSignals::block().unwrap();
            let found = boot_blobs(&opened, &self.receipts, trust, &signals)?;
            let was_hashed = found.verified == Verified::Hashed;
            assert_eq!(found.hashing > Duration::ZERO, was_hashed, "{found:?}");
            Ok(found.verified)
        }
    }

    #[test]
    fn the_second_time_the_receipts_do() {
        let fixture = Fixture::new();
        assert_eq!(fixture.verify(Trust::Receipts).unwrap(), Verified::Hashed);
        assert_eq!(fixture.verify(Trust::Receipts).unwrap(), Verified::Receipt);
        assert_eq!(fixture.verify(Trust::Nothing).unwrap(), Verified::Hashed);
    }

    #[test]
    fn a_changed_blob_is_found_in_spite_of_its_receipt() {
        let fixture = Fixture::new();
        fixture.verify(Trust::Receipts).unwrap();
        let path = fixture.made.blobs(SEGMENT_TYPE)[1].clone();
        testkit::damage::flip(&fixture.made, &path);
        match fixture.verify(Trust::Receipts).unwrap_err() {
            OpenBoxError::Open(OpenError::Different { path: named, .. }) => assert_eq!(named, path),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_segment_that_is_cut_or_exchanged_is_found_in_spite_of_its_receipt() {
        let changes: [fn(&mut Vec<u8>); 2] =
            [|bytes| bytes.truncate(4096), |bytes| *bytes = segment(9, 2)];
        for change in changes {
            let fixture = Fixture::new();
            fixture.verify(Trust::Receipts).unwrap();
            let path = fixture.made.blobs(SEGMENT_TYPE)[1].clone();
            let mut bytes = fs::read(&path).unwrap();
            change(&mut bytes);
            // `fs::write` changes the file in place.
            fs::write(&path, bytes).unwrap();
            let error = fixture.verify(Trust::Receipts).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{} has ", path.display())), "{error}");
        }
    }

    #[test]
    fn one_receipt_does_for_all_blobs_and_each_has_its_own_for_other_boxes() {
        let fixture = Fixture::new();
        fixture.verify(Trust::Receipts).unwrap();
        let directory = fixture.made.path().join("state/verified");
        let names = || fs::read_dir(&directory).unwrap().map(|it| it.unwrap().path());
        let (of_boxes, of_blobs): (Vec<_>, Vec<_>) =
            names().partition(|it| it.extension().is_some());
        assert_eq!((of_boxes.len(), of_blobs.len()), (1, 5));
        of_blobs.iter().for_each(|it| fs::remove_file(it).unwrap());
        assert_eq!(fixture.verify(Trust::Receipts).unwrap(), Verified::Receipt);
        assert_eq!(names().count(), 1, "nothing was written");
        fs::remove_file(&of_boxes[0]).unwrap();
        assert_eq!(fixture.verify(Trust::Receipts).unwrap(), Verified::Hashed);
        // Another box with the same blobs is verified by the receipts of the blobs, and gets a receipt.
        fixture
            .made
            .edit_manifest(|manifest| drop(manifest["layers"].as_array_mut().unwrap().pop()));
        assert_eq!(fixture.verify(Trust::Receipts).unwrap(), Verified::Receipt);
        assert_eq!(names().filter(|it| it.extension().is_some()).count(), 2);
    }

    #[test]
    fn an_image_that_is_not_as_large_as_its_parts_is_refused_in_spite_of_receipts() {
        let fixture = Fixture::new();
        let mut metadata = fs::read(fixture.made.blob(METADATA_TYPE)).unwrap();
        set_blocks(&mut metadata, 260);
        let named = serde_json::to_value(fixture.made.put(METADATA_TYPE, &metadata)).unwrap();
        testkit::damage::edit_layer(&fixture.made, METADATA_TYPE, |it| *it = named);
        for _ in 0..2 {
            sleep(Duration::from_millis(40));
            let error = fixture.verify(Trust::Receipts).unwrap_err();
            let is_named = matches!(
                error,
                OpenBoxError::Open(OpenError::Superblock { found: 260, expected: 259, .. })
            );
            assert!(is_named, "{error}");
        }
    }

    #[test]
    fn a_truncated_blob_is_found_without_hashing() {
        let fixture = Fixture::new();
        let path = fixture.made.blob(KERNEL_TYPE);
        fs::write(&path, b"a ker").unwrap();
        let error = fixture.verify(Trust::Receipts).unwrap_err().to_string();
        assert_eq!(error, format!("{} has 5 bytes, but its manifest says 8", path.display()));
    }

    #[test]
    fn a_state_directory_that_cannot_be_made_costs_only_time() {
        let fixture = Fixture::new();
        let receipts = Receipts::new(Path::new("/proc/no-such-place"));
        let opened = crate::opened::open(fixture.made.path()).unwrap();
        for _ in 0..2 {
            let signals = StopSignals::block().unwrap();
            let verified = boot_blobs(&opened, &receipts, Trust::Receipts, &signals);
            assert_eq!(verified.unwrap().verified, Verified::Hashed);
        }
    }

    #[test]
    fn a_signal_ends_the_hashing() {
        let fixture = Fixture::new();
        let signals = StopSignals::block().unwrap();
        let opened = crate::opened::open(fixture.made.path()).unwrap();
        pthread_kill(pthread_self(), Signal::SIGTERM).unwrap();
        let verified = boot_blobs(&opened, &fixture.receipts, Trust::Receipts, &signals);
        assert!(matches!(verified, Err(OpenBoxError::Stopped(Stopped(15)))), "{verified:?}");
        assert_eq!(
            fixture.verify(Trust::Receipts).unwrap(),
            Verified::Hashed,
            "no receipt is left"
        );
    }
}
