//! Recognizes a file that has not changed since it was hashed.
//!
//! `write(2)` sets the time of a file's last change (ctime) from the kernel's clock, and no program
//! can set it back. So a file whose device, inode, size, mtime and ctime are the same has the same
//! bytes, within these limits:
//!
//! - Only the file systems in [`LASTING`] and [`IMAGES`] keep that promise. On others (vfat, exFAT,
//!   NFS, CIFS, 9p, FUSE, and overlayfs, which may be mounted over any of them) the time can be set,
//!   or the other side says what it likes. There a file has no record, and is hashed each time.
//! - A change within one tick of the clock leaves no trace, so a file must have been left alone for
//!   a while before it was hashed: two ticks, and two seconds where the time is in whole seconds
//!   (ext4 with inodes of 128 bytes).
//! - Device numbers with major number 0 are handed out in the order of mounting (btrfs, tmpfs,
//!   ZFS), and an image with any times can be attached to a device. There a stamp is bound to
//!   this mount and this boot.
//! - The bytes are flushed before they are vouched for: after a power failure a file can have its
//!   times and not its data.
//! - The time is that of the beginning of a write. One that the kernel slows down, because very much waits to be written to the disk,
//!   can put its last bytes down after the file was taken for one that is left alone.
//! - A page that is mapped for writing and dirty already can change without a trace, and so can a
//!   disk that is written to past its file system, in another machine for example. Only the file's
//!   owner, root and who can take the disk away can do so.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, FsWord, StatxFlags, fstatfs, major, statx};

use crate::read::{Links, read_file};

/// The file systems whose ctime only the kernel sets, by their magic numbers (linux/magic.h and the
/// file systems' own headers).
///
/// overlayfs is not one of them: it passes on the ctime of the file below, which may be on FUSE or
/// NFS, and nothing that can be asked from inside a container names that file system. So a box in a
/// container's own layer is hashed at each start, and one in a volume is not. Hashing takes some 0.6 s
/// per GiB on one core with SHA instructions.
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
/// The file systems that nobody can write to while they are mounted.
pub const IMAGES: [FsWord; 2] = [
    0xE0F5_E1E2, // EROFS
    0x7371_7368, // SquashFS
];
/// Two ticks of the slowest kernel clock (100 Hz).
const TWO_TICKS: Duration = Duration::from_millis(20);
/// The same where the time of a change is in whole seconds.
const TWO_SECONDS: Duration = Duration::from_secs(2);
/// Where the kernel gives the number of this boot (random(4)).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// Asks statx(2) for a mount's number that is not reused before the next boot (since Linux 6.8).
const MNT_ID_UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// The state of a file at one moment. Two that are equal are of the same file, which has not been
/// written to in between as far as its file system shows that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// Device, inode, size, mtime, ctime and, on an anonymous device, boot and mount.
    text: String,
    changed: SystemTime,
    /// How long the file must have been left alone; zero where it cannot change.
    wait: Duration,
    lasting: bool,
}

impl Stamp {
    /// Takes the stamp of an open file. To vouch for a file's bytes, take it before they are hashed.
    ///
    /// # Errors
    /// The operating system's.
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

    /// Makes a stamp that vouches for nothing.
    fn new(found: &Metadata) -> Self {
        let nanoseconds =
            |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        let mtime = nanoseconds(found.mtime(), found.mtime_nsec());
        let ctime = nanoseconds(found.ctime(), found.ctime_nsec());
        // A time before 1970 is treated as 1970: long ago.
        let since_epoch = Duration::from_nanos(u64::try_from(ctime).unwrap_or(0));
        Self {
            text: format!("{} {} {} {mtime} {ctime}", found.dev(), found.ino(), found.size()),
            changed: UNIX_EPOCH + since_epoch,
            wait: if found.ctime_nsec() == 0 { TWO_SECONDS } else { TWO_TICKS },
            lasting: false,
        }
    }

    /// Returns `true` if the file had been left alone for long enough at a moment: a later change
    /// gives it another stamp.
    pub fn is_settled(&self, at: SystemTime) -> bool {
        self.wait.is_zero() || at.duration_since(self.changed).is_ok_and(|age| age >= self.wait)
    }

    /// Returns the line to remember of a file whose hashing began at `began`, after this stamp was
    /// taken. Flushes the file's bytes to the disk.
    ///
    /// Returns `None` where a later change might not show: on other file systems than those listed,
    /// when the file had just been changed, and when it cannot be flushed.
    pub fn record(&self, file: &File, began: SystemTime) -> Option<String> {
        if !self.lasting || !self.is_settled(began) {
            return None;
        }
        // The file systems of images have nothing to flush, and refuse to (EINVAL).
        let is_flushed = self.wait.is_zero() || file.sync_data().is_ok();
        is_flushed.then(|| self.text.clone())
    }

    /// Returns `true` if this is the stamp that a line of [`Stamp::record`] remembers, so that the
    /// file has the bytes that it had then.
    pub fn is_recorded(&self, line: &str) -> bool {
        self.lasting && self.text == line
    }
}

/// Names the boot and the mount that a file is on, if the kernel gives both.
fn mount(file: &File) -> Option<String> {
    let boot = boot_id()?;
    let wanted = StatxFlags::MNT_ID | MNT_ID_UNIQUE;
    let found = statx(file.as_fd(), c"", AtFlags::EMPTY_PATH, wanted).ok()?;
    (found.stx_mask & wanted.bits() != 0).then(|| format!("{boot} {}", found.stx_mnt_id))
}

/// Returns the number that the kernel gave to this boot of the machine, if it gives one.
pub fn boot_id() -> Option<&'static str> {
    // No process outlives a boot. A box can have hundreds of files, and each is stamped.
    static READ: LazyLock<Option<String>> = LazyLock::new(|| {
        let boot = read_file(Path::new(BOOT_ID), Links::Refuse, 64).ok()?;
        Some(String::from_utf8(boot).ok()?.trim().to_owned())
    });
    READ.as_deref()
}

#[cfg(test)]
mod tests;
