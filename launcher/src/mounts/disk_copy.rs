//! Copies of disks. On a file system with reflinks, such as btrfs or XFS, a copy shares its bytes with the original until one of them
//! changes. On another one, only data is copied, so that the copy is sparse as well.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::Range;

use rustix::fs::{SeekFrom as Next, ioctl_ficlone, seek};
use rustix::io::Errno;
use vmm::signals::{StopSignals, Stopped};

/// How much is copied between two looks at the signals, in bytes.
const STEP: u64 = 16 << 20;

/// Copies a disk to an empty file. A signal ends the copy early.
///
/// # Errors
/// Errors of the operating system.
pub(super) fn copy(
    from: &File,
    to: &File,
    signals: &StopSignals,
) -> io::Result<Result<(), Stopped>> {
    // The file system may lack reflinks, or the files may be in different ones: ioctl_ficlone(2).
    if ioctl_ficlone(to, from).is_ok() {
        return Ok(Ok(()));
    }
    copy_data(from, to, signals)
}

/// Copies the ranges of a disk that have data. The others stay holes.
fn copy_data(from: &File, to: &File, signals: &StopSignals) -> io::Result<Result<(), Stopped>> {
    to.set_len(from.metadata()?.len())?;
    let mut at = 0;
    while let Some(range) = data_after(from, at)? {
        at = range.end;
        if let Err(stopped) = copy_range(from, to, range, signals)? {
            return Ok(Err(stopped));
        }
    }
    Ok(Ok(()))
}

/// Returns the first range with data that ends after the offset `at`, or `None` if only a hole follows:
/// [lseek(2)](https://man7.org/linux/man-pages/man2/lseek.2.html).
fn data_after(file: &File, at: u64) -> io::Result<Option<Range<u64>>> {
    let start = match seek(file, Next::Data(at)) {
        Err(Errno::NXIO) => return Ok(None),
        start => start?,
    };
    Ok(Some(start..seek(file, Next::Hole(start))?))
}

/// Copies a range to the same offset. The kernel copies, if both file systems permit it:
/// [copy_file_range(2)](https://man7.org/linux/man-pages/man2/copy_file_range.2.html).
fn copy_range(
    mut from: &File,
    mut to: &File,
    range: Range<u64>,
    signals: &StopSignals,
) -> io::Result<Result<(), Stopped>> {
    from.seek(SeekFrom::Start(range.start))?;
    to.seek(SeekFrom::Start(range.start))?;
    let mut left = range.end - range.start;
    while left > 0 {
        if let Some(signal) = signals.next().map_err(io::Error::other)? {
            return Ok(Err(Stopped(signal)));
        }
        let copied = io::copy(&mut from.take(left.min(STEP)), &mut to)?;
        if copied == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        left -= copied;
    }
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{FileExt as _, MetadataExt as _};

    use nix::sys::pthread::{pthread_kill, pthread_self};
    use nix::sys::signal::Signal;

    use super::*;

    /// Returns a sparse file with data at its beginning, in its middle and before a hole at its end.
    fn sparse() -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(24 << 20).unwrap();
        for (at, text) in [(0, "first"), (8 << 20, "second"), ((20 << 20) + 5, "third")] {
            file.write_all_at(text.as_bytes(), at).unwrap();
        }
        file
    }

    fn content(file: &File) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(file.metadata().unwrap().len()).unwrap()];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    #[test]
    fn a_copy_has_the_same_bytes_and_holes() {
        let (from, signals) = (sparse(), StopSignals::block().unwrap());
        for copy in [copy, copy_data] {
            let to = tempfile::tempfile().unwrap();
            copy(&from, &to, &signals).unwrap().unwrap();
            assert!(content(&to) == content(&from));
            assert!(to.metadata().unwrap().blocks() * 512 < 4 << 20, "it is sparse");
        }
        let (nothing, to) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        nothing.set_len(1 << 20).unwrap();
        copy_data(&nothing, &to, &signals).unwrap().unwrap();
        assert_eq!((to.metadata().unwrap().len(), content(&to)), (1 << 20, vec![0; 1 << 20]));
    }

    #[test]
    fn a_signal_ends_a_copy() {
        let directory = tempfile::tempdir().unwrap();
        let to = File::create_new(directory.path().join("copy")).unwrap();
        let signals = StopSignals::block().unwrap();
        pthread_kill(pthread_self(), Signal::SIGTERM).unwrap();
        let stopped = copy_data(&sparse(), &to, &signals).unwrap();
        assert_eq!(stopped, Err(Stopped(Signal::SIGTERM as i32)));
        assert_eq!(fs::metadata(directory.path().join("copy")).unwrap().blocks(), 0);
    }
}
