//! Checks whether a file has the content of a blob, and remembers large files that passed the check, so that an unchanged build
//! need not hash them again.
//!
//! A blob's name does not prove its content: a disk may damage the file, or a program may write to a box. So each file is hashed
//! before it is used again. For the rootfs of a large box, this would take longer than all other steps. A file that is larger
//! than [`ALWAYS_HASHED`] is therefore hashed only if it has changed since it was last hashed (see [`host_fs::stamp`]), or if it
//! was last hashed more than [`VOUCHED_FOR`] ago. Damage by a disk changes no time of a file, so in a large file it may stay
//! unnoticed for that long.
//!
//! For each digest, the store remembers the last [`MAX_LINES`] files that passed: blobs of the store, and files of the boxes that
//! the store wrote.

use std::fs::File;
use std::io::{self, Read};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use box_digest::Digest;
use host_fs::stamp::Stamp;

use crate::{ActionKey, KeyHasher, Refers, Store, StoreError};

/// Files up to this size in bytes are always hashed, which takes some 3 ms on one core.
const ALWAYS_HASHED: u64 = 4 << 20;
/// How long a large file is not hashed again. During this time, damage by a disk stays unnoticed. With a week, the hashing for a
/// box of 1 GiB that is built each day takes 0.6 s a week.
const VOUCHED_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The number of remembered files for each digest.
const MAX_LINES: usize = 16;

impl Store {
    /// Returns whether the store has a blob undamaged. A large blob that was hashed within a week and has not changed since is
    /// not hashed again.
    pub fn is_whole(&self, blob: &Digest) -> bool {
        self.open_blob(blob).is_ok_and(|file| self.has_bytes_of(blob, &file).unwrap_or(false))
    }

    /// Returns whether an open file, of this store or elsewhere, has the content of a blob.
    ///
    /// If the note about a checked file cannot be written, this is no error, and the file is hashed again the next time.
    ///
    /// # Errors
    /// An I/O error from reading the file.
    pub fn has_bytes_of(&self, blob: &Digest, file: &File) -> io::Result<bool> {
        has_bytes(self, blob, file, ALWAYS_HASHED, SystemTime::now())
    }

    /// Notes that a file has the content of a blob, because this process hashed the bytes as it wrote them. The next command then
    /// need not hash the file. Writes no note if the file's times could not show a later change (see [`host_fs::stamp`]).
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
    // The read is limited, because a file that grows meanwhile does not match, and could be endless.
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

/// Returns a line for each remembered file with this content: the time in seconds since 1970 at which the file was hashed, a
/// space, and the line of [`Stamp::record`]. An unreadable record has no lines.
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
    // The record does not keep the blob, because files outside the store can have the same content.
    store.record_action(key, lines.join("\n").as_bytes(), &Refers::NOTHING)
}

fn vouches(line: &str, stamp: &Stamp, now: SystemTime) -> bool {
    let Some((hashed, line)) = line.split_once(' ') else { return false };
    is_recent(hashed, now) && stamp.is_recorded(line)
}

/// Returns whether a file that was hashed at `hashed` (in seconds since 1970) need not be hashed again. Returns false for a time
/// in the future, because the clock was changed.
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

    /// Longer than a file must be unchanged before its stamp is recorded.
    const A_WHILE: Duration = Duration::from_millis(50);
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    /// A store, and a file next to it with the bytes `content`.
    struct TestStore {
        directory: tempfile::TempDir,
        store: Store,
        blob: Digest,
    }

    impl TestStore {
        fn new() -> Self {
            // On a tmpfs, because files on some other file systems have no reliable stamps and would not be remembered.
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

        /// Damages the file without a change to its stamp, like a disk would.
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
        // The test may be suspended between two calls until the file is old enough to be remembered, but not every time.
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
