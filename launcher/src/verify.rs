//! Verification of blobs: sha256 over the open files, or a receipt for it.

use std::fs::File;
use std::io::{self, Read};
use std::time::SystemTime;

use box_digest::Digest;
use box_layout::{Blob, OpenBox, OpenError};
use host_fs::read::Section;
use host_fs::stamp::Stamp;
use serde::Serialize;

use crate::LaunchError;
use crate::receipt::Receipts;
use crate::signals::StopSignals;

/// How it was found that a blob is the one that the box names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verified {
    /// The file has not changed since it was hashed.
    Receipt,
    /// All its bytes were hashed now.
    Hashed,
}

/// Whether receipts are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// An unchanged file with a receipt is not hashed.
    Receipts,
    /// Everything is hashed.
    Nothing,
}

/// Verifies the blobs of a box that boot. The result is [`Verified::Hashed`] where any was hashed.
///
/// # Errors
/// The first blob's that differs or cannot be read; [`LaunchError::Signal`] when one of `signals`
/// arrives.
pub fn boot_blobs(
    opened: &OpenBox,
    receipts: &Receipts,
    trust: Trust,
    signals: &StopSignals,
) -> Result<Verified, LaunchError> {
    let mut found = Verified::Receipt;
    for each in opened.boot_blobs() {
        found = found.max(blob(each, receipts, trust, Some(signals))?);
    }
    Ok(found)
}

/// Verifies one blob. Failing to write a receipt is not an error: the next start hashes the blob again.
///
/// # Errors
/// When the blob differs in size or content, changes while it is hashed, or cannot be read; and when
/// one of `signals` arrives.
pub fn blob(
    blob: &Blob,
    receipts: &Receipts,
    trust: Trust,
    signals: Option<&StopSignals>,
) -> Result<Verified, LaunchError> {
    let digest = &blob.descriptor.digest;
    if trust == Trust::Receipts {
        blob.check_size()?;
        if receipts.holds(digest, &stamp(blob)?) {
            return Ok(Verified::Receipt);
        }
    }
    if let Some(record) = hashed(blob, signals)? {
        // A state directory that cannot be written costs time, not safety.
        drop(receipts.note(digest, record));
    }
    Ok(Verified::Hashed)
}

/// Hashes one blob, and returns the record of its file; see [`Stamp::record`].
///
/// # Errors
/// As [`blob`].
pub fn hashed(blob: &Blob, signals: Option<&StopSignals>) -> Result<Option<String>, LaunchError> {
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
        return Err(LaunchError::file("verify", &blob.path)(changed));
    }
    Ok(stamp.record(&blob.file, began))
}

/// Computes the digest of a blob, which takes seconds for a large one.
fn digest(blob: &Blob, signals: Option<&StopSignals>) -> Result<Digest, LaunchError> {
    // Other holders of the descriptor share its position.
    let section = Section::new(&blob.file, 0, u64::MAX);
    let mut content = Interruptible { section, signals, signal: None };
    let read = Digest::of_reader(&mut content);
    if let Some(signal) = content.signal {
        return Err(LaunchError::Signal(signal));
    }
    read.map(|(digest, _)| digest).map_err(LaunchError::file("read", &blob.path))
}

/// The content of a file, until one of the signals arrives: they are blocked, and would otherwise wait
/// until everything was read.
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
            // Not `Interrupted`, which readers answer with another attempt.
            Some(_) => Err(io::Error::other("a signal arrived")),
            None => self.section.read(buffer),
        }
    }
}

fn stamp(blob: &Blob) -> Result<Stamp, LaunchError> {
    Stamp::of(&blob.file).map_err(LaunchError::file("examine", &blob.path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use box_image::manifest::{KERNEL_TYPE, ROOTFS_TYPE};
    use nix::sys::pthread::{pthread_kill, pthread_self};
    use nix::sys::signal::Signal;
    use std::fs;
    use std::path::Path;
    use std::thread::sleep;
    use std::time::Duration;
    use testkit::test_box::{TestBox, config};

    struct Fixture {
        made: TestBox,
        receipts: Receipts,
    }

    impl Fixture {
        fn new() -> Self {
            let made = TestBox::new(&config());
            let receipts = Receipts::new(&made.path().join("state"));
            // A file that was just written gets no receipt.
            sleep(Duration::from_millis(40));
            Self { made, receipts }
        }

        fn verify(&self, trust: Trust) -> Result<Verified, LaunchError> {
            let opened = crate::open(self.made.path()).unwrap();
            boot_blobs(&opened, &self.receipts, trust, &StopSignals::block().unwrap())
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
        let path = fixture.made.blob(ROOTFS_TYPE);
        fs::write(&path, b"a root file SYSTEM").unwrap();
        match fixture.verify(Trust::Receipts).unwrap_err() {
            LaunchError::Open(OpenError::Different { path: named, .. }) => assert_eq!(named, path),
            other => panic!("{other:?}"),
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
        let opened = crate::open(fixture.made.path()).unwrap();
        for _ in 0..2 {
            let signals = StopSignals::block().unwrap();
            let verified = boot_blobs(&opened, &receipts, Trust::Receipts, &signals);
            assert_eq!(verified.unwrap(), Verified::Hashed);
        }
    }

    #[test]
    fn a_signal_ends_the_hashing() {
        let fixture = Fixture::new();
        let signals = StopSignals::block().unwrap();
        let opened = crate::open(fixture.made.path()).unwrap();
        pthread_kill(pthread_self(), Signal::SIGTERM).unwrap();
        let verified = boot_blobs(&opened, &fixture.receipts, Trust::Receipts, &signals);
        assert!(matches!(verified, Err(LaunchError::Signal(15))), "{verified:?}");
        assert_eq!(
            fixture.verify(Trust::Receipts).unwrap(),
            Verified::Hashed,
            "no receipt is left"
        );
    }
}
