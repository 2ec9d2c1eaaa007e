//! Volumes: disks of this user that outlive the boxes which use them.
//!
//! ```text
//! <state>/volumes/                    0700
//! <state>/volumes/.lock               held while a volume is made, looked at, taken or removed
//! <state>/volumes/NAME/record.json    its size, and which box had it last
//! <state>/volumes/NAME/disk           an ext4 file system; locked while a machine has it
//! ```
//!
//! The lock of a disk belongs to the open file, which the VMM process inherits: it is free once the supervisor and the
//! machine are both gone, however they end. What is on a disk only guests read: the file system of a volume is never
//! mounted or parsed on the host.

mod disk;
mod error;
mod place;
mod record;

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use box_contract::Scope;
use box_contract::wire::{Mount, MountSource};
use host_fs::OsError;
use host_fs::publish::{DirectoryDraft, PublishError};

use crate::host::state_dir::{self, absent, is_entry_name, names};
use crate::streams::log::since_epoch;

use disk::DISK;
pub use error::{MAX_SIZE, MIN_SIZE, VolumeError};
pub use place::{VolumePlace, check_once};
use record::VolumeRecord;
pub use record::VolumeState;

/// The directory of the volumes in the state directory.
const NAME: &str = "volumes";
/// How long a machine is waited for that may be about to go.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often it is looked for meanwhile.
const LOOK: Duration = Duration::from_millis(10);

/// The size of a volume for which nobody named another, in bytes.
pub const DEFAULT_SIZE: u64 = 10 << 30;

/// A volume that this process has for a machine, until this is dropped.
#[derive(Debug)]
pub struct Volume {
    /// Its disk, which is locked.
    pub(crate) disk: File,
    /// Where the components of the box see it.
    pub(crate) guest: String,
    directory: PathBuf,
    record: VolumeRecord,
    is_new: bool,
}

impl Volume {
    /// Returns whether it was missing, and was made for this machine.
    pub const fn is_new(&self) -> bool {
        self.is_new
    }

    /// Returns the size of its disk, in bytes.
    pub const fn size_bytes(&self) -> u64 {
        self.record.size_bytes
    }

    /// Notes that a machine starts with it now. Before that, the box that took it is not the one that used it last.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn note_use(&self) -> Result<(), OsError> {
        let user = self.record.taker.clone();
        let used = VolumeRecord { user, used_ms: Some(since_epoch()), ..self.record.clone() };
        used.write(&self.directory)
    }
}

/// The volumes in a state directory.
#[derive(Debug, Clone)]
pub struct Volumes {
    directory: PathBuf,
}

impl Volumes {
    /// Uses the volumes in `<state>/volumes`, which is made with the first.
    pub fn new(state: &Path) -> Self {
        Self { directory: state.join(NAME) }
    }

    /// Makes an empty volume of a size in bytes, which is rounded down to whole blocks of 4096.
    ///
    /// # Errors
    /// [`VolumeError::Exists`], [`VolumeError::BadName`], [`VolumeError::BadSize`], and when it cannot be written.
    pub fn create(&self, name: &str, size_bytes: u64) -> Result<(), VolumeError> {
        check_name(name)?;
        state_dir::make(&self.directory)?;
        let _guard = state_dir::lock(&self.directory)?;
        self.make(name, size_bytes)
    }

    /// Takes a volume for a box, by its name, and makes it where it is missing.
    ///
    /// # Errors
    /// [`VolumeError::InUse`] where another machine has it, [`VolumeError::Damaged`], [`VolumeError::BadName`], and when
    /// it cannot be opened.
    pub fn take(&self, place: &VolumePlace, name: &str) -> Result<Volume, VolumeError> {
        check_name(&place.volume)?;
        state_dir::make(&self.directory)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.try_take(place, name) {
                Err(VolumeError::InUse { .. }) if Instant::now() < deadline => {
                    sleep(LOOK);
                }
                taken => return taken,
            }
        }
    }

    /// Returns all volumes, in the order of their names, and for each that cannot be read the reason.
    ///
    /// # Errors
    /// When nobody can tell which volumes there are.
    pub fn all(&self) -> Result<(Vec<VolumeState>, Vec<VolumeError>), VolumeError> {
        let (mut found, mut unreadable) = (Vec::new(), Vec::new());
        if self.is_absent()? {
            return Ok((found, unreadable));
        }
        let _guard = state_dir::lock(&self.directory)?;
        let mut names = names(&self.directory)?;
        names.sort();
        for name in names {
            match self.look(&name) {
                Ok(volume) => found.push(volume),
                // Somebody was killed while removing it.
                Err(VolumeError::Missing(_)) => {}
                Err(error) => unreadable.push(error),
            }
        }
        Ok((found, unreadable))
    }

    /// Returns the volume with this name.
    ///
    /// # Errors
    /// [`VolumeError::Missing`], [`VolumeError::Damaged`], and when it cannot be read.
    pub fn find(&self, name: &str) -> Result<VolumeState, VolumeError> {
        let _guard = self.guard_of(name)?;
        self.look(name)
    }

    /// Removes a volume, with all that is on it. One that is damaged is removed, too.
    ///
    /// # Errors
    /// [`VolumeError::InUse`], [`VolumeError::Missing`], and when it cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), VolumeError> {
        let _guard = self.guard_of(name)?;
        let locked = disk::open(&self.directory.join(name), name)
            .and_then(|disk| self.lock_disk(name, &disk).map(|()| disk));
        // Without its disk it is not a volume any more, so a killed command leaves nothing that looks like one.
        let _locked = locked?;
        let directory = self.directory.join(name);
        absent(&directory.join(DISK), |path| fs::remove_file(path))?;
        Ok(absent(&directory, |path| fs::remove_dir_all(path))?)
    }

    /// Keeps other commands from the volumes, of which there is one with this name.
    fn guard_of(&self, name: &str) -> Result<File, VolumeError> {
        if !is_entry_name(name) || self.is_absent()? {
            return Err(VolumeError::Missing(name.to_owned()));
        }
        Ok(state_dir::lock(&self.directory)?)
    }

    /// Returns whether no volume was made so far.
    fn is_absent(&self) -> Result<bool, OsError> {
        let exists = self.directory.try_exists();
        exists.map(|it| !it).map_err(OsError::file("read", &self.directory))
    }

    /// Makes a volume at once or not at all. The directory is locked.
    fn make(&self, name: &str, size_bytes: u64) -> Result<(), VolumeError> {
        if !(MIN_SIZE..=MAX_SIZE).contains(&size_bytes) {
            return Err(VolumeError::BadSize(size_bytes));
        }
        let directory = self.directory.join(name);
        if disk::is_there(&directory)? {
            return Err(VolumeError::Exists(name.to_owned()));
        }
        // Somebody was killed while removing it.
        absent(&directory, |path| fs::remove_dir_all(path))?;
        let publish = |error: PublishError| {
            OsError::file("make the volume", &directory)(io::Error::other(error))
        };
        let draft = DirectoryDraft::beside(&directory, 0o700).map_err(publish)?;
        let size_bytes = disk::format(draft.path(), size_bytes)?;
        VolumeRecord::new(size_bytes).write(draft.path())?;
        Ok(draft.finish_new().map_err(publish)?)
    }

    fn try_take(&self, place: &VolumePlace, name: &str) -> Result<Volume, VolumeError> {
        let VolumePlace { volume, guest } = place;
        let _guard = state_dir::lock(&self.directory)?;
        let directory = self.directory.join(volume);
        let is_new = !disk::is_there(&directory)?;
        if is_new {
            self.make(volume, DEFAULT_SIZE)?;
        }
        let disk = disk::open(&directory, volume)?;
        self.lock_disk(volume, &disk)?;
        let mut record = VolumeRecord::read(&directory, volume)?;
        disk::check_size(&disk, volume, record.size_bytes)?;
        disk::take_back(&disk).map_err(OsError::file("take", directory.join(DISK)))?;
        record.taker = Some(name.to_owned());
        record.write(&directory)?;
        Ok(Volume { disk, guest: guest.clone(), directory, record, is_new })
    }

    /// Locks a disk, as long as it is open in a process. The directory is locked.
    fn lock_disk(&self, name: &str, disk: &File) -> Result<(), VolumeError> {
        match disk.try_lock() {
            Ok(()) => Ok(()),
            Err(TryLockError::WouldBlock) => {
                let record = VolumeRecord::read(&self.directory.join(name), name);
                let by = record.ok().and_then(VolumeRecord::holder);
                Err(VolumeError::InUse { name: name.to_owned(), by })
            }
            Err(TryLockError::Error(error)) => {
                Err(OsError::file("lock", self.directory.join(name).join(DISK))(error).into())
            }
        }
    }

    /// Describes a volume. The directory is locked, so that nobody wants to take a disk whose lock is tried here.
    fn look(&self, name: &str) -> Result<VolumeState, VolumeError> {
        let directory = self.directory.join(name);
        let disk = disk::open(&directory, name)?;
        let record = VolumeRecord::read(&directory, name)?;
        let found = disk.metadata().map_err(OsError::file("read", directory.join(DISK)))?;
        let in_use = matches!(disk.try_lock(), Err(TryLockError::WouldBlock));
        Ok(VolumeState {
            name: name.to_owned(),
            size_bytes: record.size_bytes,
            created_ms: record.created_ms,
            used_ms: record.used_ms,
            user: if in_use { record.holder() } else { record.user },
            disk: directory.join(DISK),
            allocated_bytes: found.blocks().saturating_mul(512),
            in_use,
        })
    }
}

/// Returns the mounts of volumes for init; their disks come in this order.
pub(crate) fn mounts(volumes: &[Volume]) -> impl Iterator<Item = Mount> {
    let mount = |(number, volume): (u8, &Volume)| {
        let (source, guest) = (MountSource::Disk(number), volume.guest.clone());
        Mount { source, guest, scope: Scope::Both }
    };
    (0..).zip(volumes).map(mount)
}

fn check_name(name: &str) -> Result<(), VolumeError> {
    if is_entry_name(name) { Ok(()) } else { Err(VolumeError::BadName(name.to_owned())) }
}

#[cfg(test)]
mod tests;
