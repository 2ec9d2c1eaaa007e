//! The record of the last two different builds of a Boxfile, with which `boxbuild why` finds out which inputs changed.
//!
//! The store keeps it as a small record of an action, and a collection removes it like every other record that is not used for a
//! long time. It keeps no box: if the earlier box is collected, only the inputs of the two builds can be compared.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use box_cache::{ActionKey, KeyHasher, Refers, Store, StoreError};
use box_contract::manifest::FORMAT_EPOCH;
use box_digest::{Blake3Digest, Digest};
use serde::{Deserialize, Serialize};

use crate::Sealed;
use crate::project::lock::Lock;

/// A build, with its inputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// The box digest.
    #[serde(rename = "box")]
    pub digest: Digest,
    /// The digest of the box's config, which contains the plan.
    pub config: Digest,
    /// The digest of the box's listing. `None` if the box has none.
    pub listing: Option<Digest>,
    /// The format epoch of the box.
    pub epoch: u32,
    /// The digest of the boxbuild that built the box.
    pub builder: Blake3Digest,
    /// The text of a lock with the inputs of this build only: those of its profile and platform.
    pins: String,
}

impl Made {
    /// Describes a build by its result, and by the pins of all its inputs.
    pub fn new(sealed: &Sealed, pins: &Lock, builder: Blake3Digest) -> Self {
        Self {
            digest: sealed.manifest,
            config: sealed.config.0,
            // The listing is the last layer.
            listing: sealed.layers.last().map(|(digest, _)| *digest),
            epoch: FORMAT_EPOCH,
            builder,
            pins: pins.write(),
        }
    }

    /// Returns the pins of the inputs. `None` if the record is of a version with another form of the lock.
    pub fn pins(&self) -> Option<Lock> {
        Lock::parse(&self.pins).ok()
    }
}

/// The last two different builds of a Boxfile with one profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// The last build.
    pub last: Made,
    /// The last build before it that had other inputs or made another box. `None` if the record has none.
    pub before: Option<Made>,
    /// The number of builds after the first one that was as `last`, all with the same inputs and the same box.
    #[serde(default)]
    pub repeats: u64,
}

impl History {
    /// Reads the record of the Boxfile with this absolute path. `None` if the store has no record.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn read(
        store: &Store,
        boxfile: &Path,
        profile: Option<&str>,
    ) -> Result<Option<Self>, StoreError> {
        let record = store.action(&key(boxfile, profile))?;
        Ok(record.and_then(|it| serde_json::from_slice(&it).ok()))
    }

    /// Records a build. If it differs from the build that was the last one, that is then the one before it.
    ///
    /// # Errors
    /// [`StoreError::File`] and [`StoreError::Full`].
    pub fn add(
        store: &Store,
        boxfile: &Path,
        profile: Option<&str>,
        made: Made,
    ) -> Result<(), StoreError> {
        let key = key(boxfile, profile);
        let _lock = store.lock_action(&key)?;
        let history = match Self::read(store, boxfile, profile)? {
            Some(old) if old.last == made => Self { repeats: old.repeats.saturating_add(1), ..old },
            old => Self { last: made, before: old.map(|it| it.last), repeats: 0 },
        };
        // A record of two builds is representable in JSON.
        let record = serde_json::to_vec(&history).unwrap_or_default();
        store.record_action(&key, &record, &Refers::NOTHING)
    }
}

/// Returns the key of a record. A Boxfile is identified by its path, as in a box's name.
fn key(boxfile: &Path, profile: Option<&str>) -> ActionKey {
    let key = KeyHasher::new("history", 1).part(boxfile.as_os_str().as_bytes());
    key.text(profile.unwrap_or_default()).finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(number: u8) -> Made {
        let digest = Digest::from_bytes([number; 32]);
        let sealed = Sealed {
            manifest: digest,
            manifest_size: 7,
            config: (digest, 7),
            tree: Blake3Digest::from_bytes([number; 32]),
            rootfs_size: 0,
            layers: vec![(digest, 7)],
        };
        Made::new(&sealed, &Lock::new(FORMAT_EPOCH), Blake3Digest::from_bytes([7; 32]))
    }

    #[test]
    fn the_last_two_different_builds_of_each_boxfile_and_profile_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let read = |file: &str, profile| History::read(&store, Path::new(file), profile).unwrap();
        assert_eq!(read("/a/Boxfile", None), None);
        for number in 1..4 {
            History::add(&store, Path::new("/a/Boxfile"), None, made(number)).unwrap();
        }
        History::add(&store, Path::new("/a/Boxfile"), Some("ci"), made(9)).unwrap();
        let two = History { last: made(3), before: Some(made(2)), repeats: 0 };
        assert_eq!(read("/a/Boxfile", None), Some(two.clone()));
        for repeats in 1..3 {
            History::add(&store, Path::new("/a/Boxfile"), None, made(3)).unwrap();
            assert_eq!(read("/a/Boxfile", None), Some(History { repeats, ..two.clone() }));
        }
        let one = History { last: made(9), before: None, repeats: 0 };
        assert_eq!(read("/a/Boxfile", Some("ci")), Some(one));
        assert_eq!(read("/b/Boxfile", None), None);
        assert_eq!(made(1).pins(), Some(Lock::new(FORMAT_EPOCH)));
    }
}
