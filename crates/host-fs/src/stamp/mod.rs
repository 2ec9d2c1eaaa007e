//! Recognizes a file that has not changed since it was hashed.
//!
//! The kernel sets the time of a file's last change (ctime) at each `write(2)` from its clock, and no program can set
//! it back. So a file with the same device, inode, size, mtime and ctime has the same content, within these limits:
//!
//! - Only the file systems in [`LASTING`] and [`IMAGES`] guarantee that. On others (vfat, exFAT, NFS, CIFS, 9p, FUSE,
//!   and overlayfs, which may be mounted over any of them) a program or a server can set the time. A file there gets
//!   no record and is hashed each time.
//! - A change within one tick of the clock leaves no trace. So a file must have been unchanged for a while before it
//!   was hashed: two ticks, or two seconds if the file system stores whole seconds (ext4 with inodes of 128 bytes).
//! - Device numbers with major number 0 are assigned in the order of mounting (btrfs, tmpfs, ZFS), and a disk image
//!   with arbitrary times can be attached to a device. A stamp there is valid only for this mount and this boot.
//! - The file is flushed before its record is written, because after a power failure a file can have its times and
//!   not its data.
//! - The ctime is the time of the beginning of a write. If the kernel throttles a write because of too many dirty
//!   pages, its last bytes can arrive after the file was considered unchanged.
//! - A page that is mapped for writing and already dirty can change without a trace, and so can a disk that is
//!   written to bypassing its file system, for example from another computer. Only the file's owner, root, and a
//!   person with access to the disk can do that.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, FsWord, StatxFlags, fstatfs, major, statx};

use crate::read::{Links, read_file};

/// The file systems whose ctime only the kernel sets, by their magic numbers
/// ([statfs(2)](https://man7.org/linux/man-pages/man2/statfs.2.html), linux/magic.h and the headers of the file systems).
///
/// overlayfs is not included: it passes on the ctime of the lower file, which may be on FUSE or NFS, and no call
/// inside a container identifies that file system. So a box in a container's writable layer is hashed at each start,
/// and a box in a volume is not. Hashing takes some 0.6 s per GiB on one core with SHA instructions.
pub const LASTING: [FsWord; 8] = [
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683E, // btrfs
    0xF2F5_2010, // F2FS
    0xCA45_1A4E, // bcachefs
    0x2FC1_2FC1, // ZFS
    0x0102_1994, // tmpfs
    0x8584_58F6, // ramfs
];
/// The file systems that are read-only as long as they are mounted.
pub const IMAGES: [FsWord; 2] = [
    0xE0F5_E1E2, // EROFS
    0x7371_7368, // SquashFS
];
/// Two ticks of the slowest kernel clock (100 Hz).
const TWO_TICKS: Duration = Duration::from_millis(20);
/// The wait for file systems that store whole seconds.
const TWO_SECONDS: Duration = Duration::from_secs(2);
/// The file with the id of this boot ([random(4)](https://man7.org/linux/man-pages/man4/random.4.html)).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// Requests a mount id from [statx(2)](https://man7.org/linux/man-pages/man2/statx.2.html) that is not reused before
/// the next boot (since Linux 6.8).
const MNT_ID_UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// The state of a file at one moment. Two equal stamps belong to the same file, and its file system has recorded no
/// write in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// Device, inode, size, mtime, ctime and, on an anonymous device, boot and mount.
    text: String,
    changed: SystemTime,
    /// The time for which the file must have been unchanged. Zero if it cannot change.
    wait: Duration,
    lasting: bool,
}

impl Stamp {
    /// Takes the stamp of an open file. To record a file's content, take the stamp before hashing it.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn of(file: &File) -> io::Result<Self> {
        let found = file.metadata()?;
        let (stamp, kind) = (Self::new(&found), fstatfs(file)?.f_type);
        let image = IMAGES.contains(&kind);
        if !image && !LASTING.contains(&kind) {
            return Ok(stamp);
        }
        if !image && major(found.dev()) != 0 {
            return Ok(Self { lasting: true, ..stamp });
        }
        let Some(mount) = mount(file) else { return Ok(stamp) };
        let wait = if image { Duration::ZERO } else { stamp.wait };
        Ok(Self { text: format!("{} {mount}", stamp.text), wait, lasting: true, ..stamp })
    }

    /// Makes a stamp without any guarantee.
    fn new(found: &Metadata) -> Self {
        let nanoseconds =
            |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        let mtime = nanoseconds(found.mtime(), found.mtime_nsec());
        let ctime = nanoseconds(found.ctime(), found.ctime_nsec());
        // A time before 1970 is treated as 1970.
        let since_epoch = Duration::from_nanos(u64::try_from(ctime).unwrap_or(0));
        Self {
            text: format!("{} {} {} {mtime} {ctime}", found.dev(), found.ino(), found.size()),
            changed: UNIX_EPOCH + since_epoch,
            wait: if found.ctime_nsec() == 0 { TWO_SECONDS } else { TWO_TICKS },
            lasting: false,
        }
    }

    /// Returns `true` if the file had been unchanged for long enough at the time `at`: any later change then gives it
    /// another stamp.
    pub fn is_settled(&self, at: SystemTime) -> bool {
        self.wait.is_zero() || at.duration_since(self.changed).is_ok_and(|age| age >= self.wait)
    }

    /// Returns the line to remember for a file. `began` is the time when its hashing began, after this stamp was
    /// taken. Flushes the file's data to the disk.
    ///
    /// Returns `None` if a later change might not be visible: on a file system that is not listed, if the file had
    /// just been changed, or if it cannot be flushed.
    pub fn record(&self, file: &File, began: SystemTime) -> Option<String> {
        if !self.lasting || !self.is_settled(began) {
            return None;
        }
        // Read-only file systems have no data to flush, and return EINVAL.
        let is_flushed = self.wait.is_zero() || file.sync_data().is_ok();
        is_flushed.then(|| self.text.clone())
    }

    /// Returns `true` if `line` is the record of this stamp, so that the file has the same content as when it was recorded.
    pub fn is_recorded(&self, line: &str) -> bool {
        self.lasting && self.text == line
    }
}

/// Returns the boot id and the mount id of a file, if the kernel supports both.
fn mount(file: &File) -> Option<String> {
    let boot = boot_id()?;
    let wanted = StatxFlags::MNT_ID | MNT_ID_UNIQUE;
    let found = statx(file.as_fd(), c"", AtFlags::EMPTY_PATH, wanted).ok()?;
    (found.stx_mask & wanted.bits() != 0).then(|| format!("{boot} {}", found.stx_mnt_id))
}

/// Returns the id of this boot, if the kernel supports it.
pub fn boot_id() -> Option<&'static str> {
    // The id is constant for the life of a process. It is cached because a box can have hundreds of files, and each is stamped.
    static READ: LazyLock<Option<String>> = LazyLock::new(|| {
        let boot = read_file(Path::new(BOOT_ID), Links::Refuse, 64).ok()?;
        Some(String::from_utf8(boot).ok()?.trim().to_owned())
    });
    READ.as_deref()
}

#[cfg(test)]
mod tests;
