//! Volumes: disks of this user that outlive the boxes that use them.
//!
//! ```text
//! <state>/volumes/                    0700
//! <state>/volumes/.lock               locked while a volume is created, examined, taken or removed
//! <state>/volumes/NAME/record.json    its size, and the last box that used it
//! <state>/volumes/NAME/disk           an ext4 file system; locked while a VM uses it
//! ```
//!
//! The lock of a disk ([flock(2)](https://man7.org/linux/man-pages/man2/flock.2.html)) belongs to the open file
//! description, which the VMM process inherits. The kernel releases the lock when both the supervisor and the VMM
//! process have ended, even after a crash. Only guests read the content of a disk: the file system of a volume is never
//! mounted or parsed on the host.

mod claim;
mod disk;
mod error;
mod place;
mod record;

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Instant;

use box_contract::Scope;
use box_contract::wire::{Mount, MountSource};
use host_fs::OsError;
use host_fs::publish::{DirectoryDraft, PublishError};

use crate::host::state_dir::{self, absent, is_entry_name, names};
use crate::mounts::disk_file::{self, DISK, LOOK, PATIENCE};
use crate::mounts::scratch::SHARED_ROOT;
use crate::streams::log::since_epoch;

pub use claim::{Claim, repository};
pub use error::{MAX_SIZE, MIN_SIZE, VolumeError};
pub use place::{VolumePlace, check_once};
use record::VolumeRecord;
pub use record::VolumeState;

/// The directory of the volumes in the state directory.
const NAME: &str = "volumes";
/// The default size of a volume, in bytes.
pub const DEFAULT_SIZE: u64 = 10 << 30;

/// A volume that this process has locked for a VM. The lock is released when this value is dropped and the VMM process
/// has ended.
#[derive(Debug)]
pub struct Volume {
    /// The locked disk.
    pub(crate) disk: File,
    /// The path at which the components of the box see the volume.
    pub(crate) guest: String,
    scope: Scope,
    directory: PathBuf,
    record: VolumeRecord,
    is_new: bool,
}

impl Volume {
    /// Returns whether [`Volumes::take`] had to create the volume.
    pub const fn is_new(&self) -> bool {
        self.is_new
    }

    /// Returns the size of the disk, in bytes.
    pub const fn size_bytes(&self) -> u64 {
        self.record.size_bytes
    }

    /// Records that the VM of the box that took the volume now starts. Until this call, the record still names the box
    /// that used the volume before, and not the origin of this one.
    ///
    /// # Errors
    /// Errors of the operating system.
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
    /// Uses the volumes in `<state>/volumes`, which is created with the first volume.
    pub fn new(state: &Path) -> Self {
        Self { directory: state.join(NAME) }
    }

    /// Creates an empty volume. `size_bytes` is rounded down to whole blocks of 4096 bytes.
    ///
    /// # Errors
    /// [`VolumeError::Exists`], [`VolumeError::BadName`], [`VolumeError::BadSize`], or errors of the operating system.
    pub fn create(&self, name: &str, size_bytes: u64) -> Result<(), VolumeError> {
        check_name(name)?;
        state_dir::make(&self.directory)?;
        let _guard = state_dir::lock(&self.directory)?;
        self.make(name, size_bytes, None)
    }

    /// Locks a volume for the box `name`. A missing volume is created. The author of a box chooses its name, and so the names of
    /// the volumes that it declares. So such a volume must have been made as a declared one.
    ///
    /// # Errors
    /// [`VolumeError::InUse`] if another VM uses the volume, [`VolumeError::NotDeclared`], [`VolumeError::OfAnother`],
    /// [`VolumeError::Damaged`], [`VolumeError::BadName`], or errors of the operating system.
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

    /// Checks that a box may use a volume, before another box is ended for it. A missing volume is no error.
    ///
    /// # Errors
    /// [`VolumeError::OfAnother`], [`VolumeError::Damaged`], or errors of the operating system.
    pub fn check(&self, place: &VolumePlace) -> Result<(), VolumeError> {
        let directory = self.directory.join(&place.volume);
        if place.claim.is_none() || self.is_absent()? || !disk_file::is_there(&directory)? {
            return Ok(());
        }
        check_claim(place, &VolumeRecord::read(&directory, &place.volume)?)
    }

    /// Returns all volumes, sorted by name, and an error for each volume that cannot be read.
    ///
    /// # Errors
    /// If the volumes cannot be listed.
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
                // The directory is left from an interrupted removal.
                Err(VolumeError::Missing(_)) => {}
                Err(error) => unreadable.push(error),
            }
        }
        Ok((found, unreadable))
    }

    /// Returns the volume with this name.
    ///
    /// # Errors
    /// [`VolumeError::Missing`], [`VolumeError::Damaged`], or errors of the operating system.
    pub fn find(&self, name: &str) -> Result<VolumeState, VolumeError> {
        let _guard = self.guard_of(name)?;
        self.look(name)
    }

    /// Removes a volume with its content, even if the volume is damaged.
    ///
    /// # Errors
    /// [`VolumeError::InUse`], [`VolumeError::Missing`], or errors of the operating system.
    pub fn remove(&self, name: &str) -> Result<(), VolumeError> {
        let _guard = self.guard_of(name)?;
        let locked = disk::open(&self.directory.join(name), name)
            .and_then(|disk| self.lock_disk(name, &disk).map(|()| disk));
        // Remove the disk first. If this command is then killed, what is left is not a volume.
        let _locked = locked?;
        let directory = self.directory.join(name);
        absent(&directory.join(DISK), |path| fs::remove_file(path))?;
        Ok(absent(&directory, |path| fs::remove_dir_all(path))?)
    }

    /// Locks the directory of the volumes. Returns [`VolumeError::Missing`] if that directory is absent or `name` is
    /// invalid.
    fn guard_of(&self, name: &str) -> Result<File, VolumeError> {
        if !is_entry_name(name) || self.is_absent()? {
            return Err(VolumeError::Missing(name.to_owned()));
        }
        Ok(state_dir::lock(&self.directory)?)
    }

    /// Returns whether the directory of the volumes is absent, as before the first volume.
    fn is_absent(&self) -> Result<bool, OsError> {
        let exists = self.directory.try_exists();
        exists.map(|it| !it).map_err(OsError::file("read", &self.directory))
    }

    /// Creates a volume atomically. The caller has locked the directory of the volumes.
    fn make(
        &self,
        name: &str,
        size_bytes: u64,
        declared_as: Option<String>,
    ) -> Result<(), VolumeError> {
        if !(MIN_SIZE..=MAX_SIZE).contains(&size_bytes) {
            return Err(VolumeError::BadSize(size_bytes));
        }
        let directory = self.directory.join(name);
        if disk_file::is_there(&directory)? {
            return Err(VolumeError::Exists(name.to_owned()));
        }
        // Remove what an interrupted removal has left.
        absent(&directory, |path| fs::remove_dir_all(path))?;
        let publish = |error: PublishError| {
            OsError::file("make the volume", &directory)(io::Error::other(error))
        };
        let draft = DirectoryDraft::beside(&directory, 0o700).map_err(publish)?;
        let size_bytes = disk_file::make_kept(draft.path(), size_bytes, SHARED_ROOT)?;
        VolumeRecord::new(size_bytes, declared_as).write(draft.path())?;
        Ok(draft.finish_new().map_err(publish)?)
    }

    fn try_take(&self, place: &VolumePlace, name: &str) -> Result<Volume, VolumeError> {
        let VolumePlace { volume, guest, scope, new_bytes, declared, claim } = place;
        let _guard = state_dir::lock(&self.directory)?;
        let directory = self.directory.join(volume);
        let is_new = !disk_file::is_there(&directory)?;
        if is_new {
            self.make(volume, *new_bytes, declared.then(|| volume.clone()))?;
        }
        let disk = disk::open(&directory, volume)?;
        self.lock_disk(volume, &disk)?;
        let mut record = VolumeRecord::read(&directory, volume)?;
        if *declared && record.declared_as.as_ref() != Some(volume) {
            return Err(VolumeError::NotDeclared { name: volume.clone(), guest: guest.clone() });
        }
        check_claim(place, &record)?;
        disk::check_size(&disk, volume, record.size_bytes)?;
        disk_file::take_back(&disk).map_err(OsError::file("take", directory.join(DISK)))?;
        record.taker = Some(name.to_owned());
        record.write(&directory)?;
        // Written when the VM starts: a box that never ran has no claim.
        claim.iter().for_each(|it| it.add_to(&mut record.origins, record.used_ms.is_some()));
        Ok(Volume { disk, guest: guest.clone(), scope: *scope, directory, record, is_new })
    }

    /// Locks a disk until the last process that has `disk` open closes it. The caller has locked the directory of the
    /// volumes.
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

    /// Returns the state of a volume. The caller has locked the directory of the volumes, so no other command tries to
    /// take a disk while this function tests the disk's lock.
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
            origin: record.origins.first().cloned(),
            user: if in_use { record.holder() } else { record.user },
            disk: directory.join(DISK),
            allocated_bytes: found.blocks().saturating_mul(512),
            in_use,
        })
    }
}

/// Returns the mounts of volumes for init. The volumes' disks must be attached to the VM in the same order.
pub(crate) fn mounts(volumes: &[Volume]) -> impl Iterator<Item = Mount> {
    let mount = |(number, volume): (u8, &Volume)| {
        let (source, guest) = (MountSource::Disk(number), volume.guest.clone());
        Mount { source, guest, scope: volume.scope }
    };
    (0..).zip(volumes).map(mount)
}

/// Checks that the box which declares a volume is of an origin that has used the volume before.
fn check_claim(place: &VolumePlace, record: &VolumeRecord) -> Result<(), VolumeError> {
    let Some(claim) = place.claim.as_ref().filter(|it| !it.permits(&record.origins)) else {
        return Ok(());
    };
    let of = record.origins.first().cloned().unwrap_or_default();
    let (name, guest) = (place.volume.clone(), place.guest.clone());
    Err(VolumeError::OfAnother { name, guest, of, by: claim.shown().to_owned() })
}

fn check_name(name: &str) -> Result<(), VolumeError> {
    if is_entry_name(name) { Ok(()) } else { Err(VolumeError::BadName(name.to_owned())) }
}

#[cfg(test)]
mod tests;
