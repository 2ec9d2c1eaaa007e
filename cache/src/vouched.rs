//! Whether a file has the bytes of a blob, and which large files were found to have them, so that a build that changes nothing need
//! not hash them again.
//!
//! A blob's name does not prove its content: a disk may damage it, or a program that writes to a box. So each file is hashed
//! before it is served again. For the rootfs of a large box this would take longer than all else, so a file above
//! [`ALWAYS_HASHED`] is hashed only when it has changed since it was hashed last, see [`host_fs::stamp`], and when that was
//! [`VOUCHED_FOR`] ago. Damage by a disk, which changes no time of a file, is therefore found in a large file within that time.
//!
//! The store remembers for each digest the last [`MAX_LINES`] files that had it, in its own blobs and in the boxes that it wrote.

use std::fs::File;
use std::io::{self, Read};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use box_digest::Digest;
use host_fs::stamp::Stamp;

use crate::{ActionKey, KeyHasher, Refers, Store, StoreError};

/// Up to this size in bytes a file is hashed each time: some 3 ms on one core.
const ALWAYS_HASHED: u64 = 4 << 20;
/// How long a large file is not hashed again. A disk can damage it in this time: a week, as a box of 1 GiB
/// that is built each day then costs 0.6 s a week.
const VOUCHED_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How many files with one digest are remembered.
const MAX_LINES: usize = 16;

impl Store {
    /// Returns whether the store has a blob, undamaged. A large one that was hashed within a week and has not changed since is not
    /// hashed again.
    pub fn is_whole(&self, blob: &Digest) -> bool {
        self.open_blob(blob).is_ok_and(|file| self.has_bytes_of(blob, &file).unwrap_or(false))
    }

    /// Returns whether an open file, of this store or elsewhere, has the bytes of a blob.
    ///
    /// A note that cannot be written costs the time to hash the file again, and is no error.
    ///
    /// # Errors
    /// What reading the file met.
    pub fn has_bytes_of(&self, blob: &Digest, file: &File) -> io::Result<bool> {
        has_bytes(self, blob, file, ALWAYS_HASHED, SystemTime::now())
    }

    /// Notes that a file has the bytes of a blob. This process wrote the file and hashed its bytes on the way, so that the next
    /// command need not hash it. If a change since then might leave no trace, nothing is noted.
    pub fn note_written(&self, blob: &Digest, file: &File) {
        let Some(stamp) = Stamp::of(file).ok().filter(|_| is_large(file)) else { return };
        let now = SystemTime::now();
        let key = key(blob);
        let lines = lines(self, &key);
        if !lines.iter().any(|line| vouches(line, &stamp, now))
            && let Some(line) = stamp.record(file, now)
        {
            note(self, &key, lines, &line, now).ok();
        }
    }
}

fn is_large(file: &File) -> bool {
    file.metadata().is_ok_and(|found| found.len() > ALWAYS_HASHED)
}

fn has_bytes(
    store: &Store,
    blob: &Digest,
    file: &File,
    always_hashed: u64,
    now: SystemTime,
) -> io::Result<bool> {
    let size = file.metadata()?.len();
    // A file that grows while it is read has other bytes, and may be endless.
    let hash = || Ok::<_, io::Error>(Digest::of_reader(file.take(size + 1))?.0 == *blob);
    if size <= always_hashed {
        return hash();
    }
    let Ok(stamp) = Stamp::of(file) else { return hash() };
    let key = key(blob);
    let lines = lines(store, &key);
    if lines.iter().any(|line| vouches(line, &stamp, now)) {
        return Ok(true);
    }
    let is_it = hash()?;
    if let Some(line) = stamp.record(file, now).filter(|_| is_it) {
        note(store, &key, lines, &line, now).ok();
    }
    Ok(is_it)
}

fn key(blob: &Digest) -> ActionKey {
    KeyHasher::new("vouched", 2).part(blob.as_bytes()).finish()
}

/// Returns the lines of the files that had these bytes: the second since 1970 in which they were hashed, a space, and the
/// line of [`Stamp::record`]. What cannot be read vouches for nothing.
fn lines(store: &Store, key: &ActionKey) -> Vec<String> {
    let record = store.action(key).ok().flatten();
    let text = record.and_then(|it| String::from_utf8(it).ok()).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn note(
    store: &Store,
    key: &ActionKey,
    mut lines: Vec<String>,
    line: &str,
    now: SystemTime,
) -> Result<(), StoreError> {
    lines.retain(|it| it.split_once(' ').is_none_or(|(_, known)| known != line));
    lines.push(format!("{} {line}", seconds(now)));
    lines.drain(..lines.len().saturating_sub(MAX_LINES));
    // It does not keep the blob: also files elsewhere have its bytes.
    store.record_action(key, lines.join("\n").as_bytes(), &Refers::NOTHING)
}

fn vouches(line: &str, stamp: &Stamp, now: SystemTime) -> bool {
    let Some((hashed, line)) = line.split_once(' ') else { return false };
    is_recent(hashed, now) && stamp.is_recorded(line)
}

/// Returns whether a file that was hashed in this second need not be hashed again. A second that is still to
/// come says nothing: the clock was changed.
fn is_recent(hashed: &str, now: SystemTime) -> bool {
    let age = hashed.parse().ok().and_then(|hashed| seconds(now).checked_sub(hashed));
    age.is_some_and(|age| age < VOUCHED_FOR.as_secs())
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::thread::sleep;

    use super::*;

    /// Longer than a file must have been left alone.
    const A_WHILE: Duration = Duration::from_millis(50);
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    /// A store, and a file beside it of the bytes `content`.
    struct TestStore {
        directory: tempfile::TempDir,
        store: Store,
        blob: Digest,
    }

    impl TestStore {
        fn new() -> Self {
            // Where stamps mean nothing, as on some file systems, no file would have one.
            let directory = tempfile::tempdir_in("/dev/shm").unwrap();
            let store = Store::open(&directory.path().join("store")).unwrap();
            let place = Self { directory, store, blob: Digest::of(b"content") };
            fs::write(place.path(), "content").unwrap();
            place
        }

        fn path(&self) -> PathBuf {
            self.directory.path().join("file")
        }

        fn is_it(&self, always_hashed: u64, now: SystemTime) -> bool {
            let file = File::open(self.path()).unwrap();
            has_bytes(&self.store, &self.blob, &file, always_hashed, now).unwrap()
        }

        fn lines(&self) -> Vec<String> {
            lines(&self.store, &key(&self.blob))
        }

        /// Damages the file so that its stamp stays that of the whole one, as a disk would.
        fn damage_without_a_trace(&self, hashed: SystemTime) {
            fs::write(self.path(), "c0ntent").unwrap();
            sleep(A_WHILE);
            let file = File::open(self.path()).unwrap();
            let line = Stamp::of(&file).unwrap().record(&file, SystemTime::now()).unwrap();
            note(&self.store, &key(&self.blob), self.lines(), &line, hashed).unwrap();
        }
    }

    #[test]
    fn a_large_file_is_hashed_again_when_it_has_changed() {
        let place = TestStore::new();
        sleep(A_WHILE);
        assert!(place.is_it(0, SystemTime::now()));
        let first = place.lines();
        assert_eq!(first.len(), 1);
        assert!(place.is_it(0, SystemTime::now()));
        assert_eq!(place.lines(), first, "it was not hashed again");
        fs::write(place.path(), "c0ntent").unwrap();
        assert!(!place.is_it(0, SystemTime::now()));
        fs::write(place.path(), "content and more").unwrap();
        assert!(!place.is_it(0, SystemTime::now()));
        assert_eq!(place.lines(), first);
    }

    #[test]
    fn what_a_disk_damaged_is_found_within_a_week() {
        let (place, now) = (TestStore::new(), SystemTime::now());
        place.damage_without_a_trace(now);
        assert!(place.is_it(0, now + 6 * DAY));
        assert!(!place.is_it(0, now + 7 * DAY));
        assert!(!place.is_it(0, now - DAY), "the clock was changed");
    }

    #[test]
    fn a_small_file_is_hashed_each_time() {
        let (place, now) = (TestStore::new(), SystemTime::now());
        place.damage_without_a_trace(now);
        assert!(place.is_it(6, now));
        assert!(!place.is_it(7, now));
    }

    #[test]
    fn a_file_that_was_just_written_is_not_remembered() {
        // A machine can stop for longer than that between two calls, though not each time.
        let fresh = (0..20).any(|_| {
            let place = TestStore::new();
            place.is_it(0, SystemTime::now()) && place.lines().is_empty()
        });
        assert!(fresh);
    }

    #[test]
    fn the_newest_files_of_one_digest_are_remembered() {
        let (place, now) = (TestStore::new(), SystemTime::now());
        let write = |at: usize| {
            let lines = place.lines();
            note(&place.store, &key(&place.blob), lines, &format!("file {at}"), now).unwrap();
        };
        (0..20).for_each(write);
        write(10);
        let lines = place.lines();
        let ends = |at: usize, name: &str| lines[at].ends_with(name);
        assert!(ends(0, " file 4") && ends(14, " file 19") && ends(15, " file 10"), "{lines:?}");
    }
}
