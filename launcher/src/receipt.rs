//! Receipts: which files were hashed before, so that a start need not hash them again.
//!
//! ```text
//! <state>/verified/          0700
//! <state>/verified/<sha256>  one line per file with this digest: dev ino size mtime-ns ctime-ns
//! ```
//!
//! A line says that the file with this identity had this digest when it was last hashed. `write(2)`
//! changes a file's ctime, which no program can set back, so an unchanged line stands for unchanged
//! bytes, but for one case: a page that is mapped for writing and dirty already can change without a
//! trace. Only the owner and root could do that, because [`crate::Bundle`] refuses files that others
//! may write; `--verify` hashes whatever the receipts say. A file that changed just before it was hashed gets no line, since a change
//! within one tick of the file system's clock would leave no trace.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use box_image::Digest;

use crate::LaunchError;

/// How many files with one digest are remembered.
const MAX_LINES: usize = 16;
/// More than [`MAX_LINES`] lines never take.
const MAX_BYTES: u64 = 4096;
/// How long a file must have been left alone: two ticks of the slowest kernel clock (100 Hz).
const SETTLED: Duration = Duration::from_millis(20);

/// The identity of a file's content without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    line: String,
    changed: SystemTime,
}

impl Stamp {
    /// Takes the stamp of an open file.
    ///
    /// # Errors
    /// When the file cannot be examined.
    pub fn of(file: &File, path: &Path) -> Result<Self, LaunchError> {
        file.metadata().map(|found| Self::from(&found)).map_err(LaunchError::file("examine", path))
    }

    /// Tells whether the file had been left alone for a while at `now`.
    fn is_settled(&self, now: SystemTime) -> bool {
        now.duration_since(self.changed).is_ok_and(|age| age >= SETTLED)
    }
}

impl From<&Metadata> for Stamp {
    fn from(found: &Metadata) -> Self {
        let nanoseconds =
            |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        let mtime = nanoseconds(found.mtime(), found.mtime_nsec());
        let ctime = nanoseconds(found.ctime(), found.ctime_nsec());
        let line = format!("{} {} {} {mtime} {ctime}", found.dev(), found.ino(), found.size());
        // A ctime before 1970 counts as 1970: long settled.
        let since_epoch = Duration::from_nanos(u64::try_from(ctime).unwrap_or(0));
        Self { line, changed: UNIX_EPOCH + since_epoch }
    }
}

/// The receipts in a state directory.
#[derive(Debug)]
pub struct Receipts {
    dir: PathBuf,
}

impl Receipts {
    /// Uses the receipts in `<state>/verified`, which is made when the first one is written.
    pub fn new(state: &Path) -> Self {
        Self { dir: state.join("verified") }
    }

    /// Tells whether a file with this stamp was found to have this digest. A receipt that cannot
    /// be read is none.
    pub fn holds(&self, digest: &Digest, stamp: &Stamp) -> bool {
        self.lines(digest).contains(&stamp.line)
    }

    /// Notes that a file, whose hashing began at `began`, has this digest. Does nothing for a file
    /// that had just been changed then.
    ///
    /// # Errors
    /// When the receipt cannot be written.
    pub fn note(
        &self,
        digest: &Digest,
        stamp: &Stamp,
        began: SystemTime,
    ) -> Result<(), LaunchError> {
        if !stamp.is_settled(began) {
            return Ok(());
        }
        let mut lines = self.lines(digest);
        lines.retain(|line| *line != stamp.line);
        lines.push(stamp.line.clone());
        let surplus = lines.len().saturating_sub(MAX_LINES);
        lines.drain(..surplus);
        self.write(digest, &(lines.join("\n") + "\n"))
    }

    fn lines(&self, digest: &Digest) -> Vec<String> {
        let mut text = String::new();
        let opened = File::open(self.path(digest));
        match opened.and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text)) {
            Ok(_) => text.lines().map(str::to_owned).collect(),
            Err(_) => Vec::new(),
        }
    }

    /// Writes a receipt under a name of this process's own and renames it.
    fn write(&self, digest: &Digest, text: &str) -> Result<(), LaunchError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.dir)
            .map_err(LaunchError::file("make", &self.dir))?;
        let draft = self.dir.join(format!("{}.{}", digest.hex(), std::process::id()));
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&draft)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(LaunchError::file("write", &draft))?;
        fs::rename(&draft, self.path(digest)).map_err(LaunchError::file("rename", &draft))
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.dir.join(digest.hex())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: Digest = Digest::from_bytes([9; 32]);

    struct Fixture {
        dir: tempfile::TempDir,
        receipts: Receipts,
        file: PathBuf,
    }

    fn fixture() -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("blob");
        fs::write(&file, b"bytes").unwrap();
        Fixture { receipts: Receipts::new(&dir.path().join("state")), file, dir }
    }

    fn stamp(path: &Path) -> Stamp {
        Stamp::of(&File::open(path).unwrap(), path).unwrap()
    }

    fn later() -> SystemTime {
        SystemTime::now() + Duration::from_secs(60)
    }

    #[test]
    fn a_receipt_holds_until_the_file_changes() {
        let fixture = fixture();
        let before = stamp(&fixture.file);
        assert!(!fixture.receipts.holds(&DIGEST, &before));
        fixture.receipts.note(&DIGEST, &before, later()).unwrap();
        assert!(fixture.receipts.holds(&DIGEST, &stamp(&fixture.file)));
        assert!(!fixture.receipts.holds(&Digest::from_bytes([8; 32]), &before));
        fs::write(&fixture.file, b"other bytes").unwrap();
        assert!(!fixture.receipts.holds(&DIGEST, &stamp(&fixture.file)));
    }

    #[test]
    fn a_copy_of_the_same_bytes_needs_its_own_line_and_both_are_kept() {
        let fixture = fixture();
        let copy = fixture.dir.path().join("copy");
        fs::copy(&fixture.file, &copy).unwrap();
        fixture.receipts.note(&DIGEST, &stamp(&fixture.file), later()).unwrap();
        assert!(!fixture.receipts.holds(&DIGEST, &stamp(&copy)));
        fixture.receipts.note(&DIGEST, &stamp(&copy), later()).unwrap();
        assert!(fixture.receipts.holds(&DIGEST, &stamp(&copy)));
        assert!(fixture.receipts.holds(&DIGEST, &stamp(&fixture.file)));
    }

    #[test]
    fn a_file_that_just_changed_gets_none() {
        let fixture = fixture();
        let fresh = stamp(&fixture.file);
        fixture.receipts.note(&DIGEST, &fresh, fresh.changed + SETTLED / 2).unwrap();
        assert!(!fixture.receipts.holds(&DIGEST, &fresh));
        fixture.receipts.note(&DIGEST, &fresh, fresh.changed - SETTLED).unwrap();
        assert!(!fixture.receipts.holds(&DIGEST, &fresh));
    }

    #[test]
    fn the_directory_is_private_and_old_lines_go() {
        let fixture = fixture();
        for size in 0..40 {
            let line = format!("1 2 {size} 4 5");
            let stamp = Stamp { line, changed: UNIX_EPOCH };
            fixture.receipts.note(&DIGEST, &stamp, later()).unwrap();
        }
        let lines = fixture.receipts.lines(&DIGEST);
        assert_eq!((lines.len(), lines[0].as_str()), (MAX_LINES, "1 2 24 4 5"));
        let mode = fs::metadata(&fixture.receipts.dir).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn a_receipt_of_noise_is_none() {
        let fixture = fixture();
        let stamp = stamp(&fixture.file);
        fixture.receipts.note(&DIGEST, &stamp, later()).unwrap();
        fs::write(fixture.receipts.path(&DIGEST), [0xff; 64]).unwrap();
        assert!(!fixture.receipts.holds(&DIGEST, &stamp));
    }
}
