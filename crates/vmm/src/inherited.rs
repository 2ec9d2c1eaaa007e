//! Closing the files that a process has inherited.

use std::os::fd::RawFd;

use nix::unistd::close;

use crate::jail::process;
use host_fs::OsError;
/// Closes all inherited files except the standard streams and `kept`. The process must not have opened any file itself yet.
///
/// # Errors
/// If the open files cannot be listed.
pub fn close_all_but(kept: &[RawFd]) -> Result<(), OsError> {
    match close_between(kept) {
        // Linux before 5.9 has no close_range(2).
        Err(nix::Error::ENOSYS) => close_listed(kept),
        closed => closed.map_err(OsError::system("close inherited files")),
    }
}

/// Closes each range of numbers between two kept files with one call. A box can have hundreds of files, and listing
/// them takes far longer.
fn close_between(kept: &[RawFd]) -> nix::Result<()> {
    let mut kept: Vec<u32> = kept.iter().filter_map(|fd| u32::try_from(*fd).ok()).collect();
    kept.sort_unstable();
    let mut next = 3;
    for fd in kept.into_iter().filter(|fd| *fd > 2) {
        if fd > next {
            process::close_range(next, fd - 1)?;
        }
        next = fd + 1;
    }
    process::close_range(next, u32::MAX)
}

fn close_listed(kept: &[RawFd]) -> Result<(), OsError> {
    let action = OsError::file("list", "/proc/self/fd");
    let names = std::fs::read_dir("/proc/self/fd")
        .and_then(|entries| {
            entries.map(|entry| Ok(entry?.file_name())).collect::<Result<Vec<_>, _>>()
        })
        .map_err(action)?;
    let open = names.iter().filter_map(|name| name.to_str()?.parse::<RawFd>().ok());
    for fd in open.filter(|fd| *fd > 2 && !kept.contains(fd)) {
        match close(fd) {
            // The descriptor of the directory listing is closed already.
            Ok(()) | Err(nix::Error::EBADF) => {}
            Err(error) => return Err(OsError::system("close inherited files")(error)),
        }
    }
    Ok(())
}
