//! Pseudo-terminals ([pty(7)](https://man7.org/linux/man-pages/man7/pty.7.html),
//! [ioctl_tty(2)](https://man7.org/linux/man-pages/man2/ioctl_tty.2.html)).

use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use box_contract::wire::TerminalSize;
use nix::errno::Errno;
use nix::libc;
use nix::unistd::Pid;

/// Opens the other end of a pseudo-terminal whose `ptmx` was just opened. Uses no path, so that a workload cannot
/// replace the file.
///
/// # Errors
/// The kernel's error.
pub fn open_peer(ptmx: BorrowedFd<'_>) -> nix::Result<OwnedFd> {
    let unlocked: libc::c_int = 0;
    // SAFETY: TIOCSPTLCK reads one int.
    let result = unsafe { libc::ioctl(ptmx.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlocked) };
    Errno::result(result)?;
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: TIOCGPTPEER takes its flags by value.
    let peer = Errno::result(unsafe { libc::ioctl(ptmx.as_raw_fd(), libc::TIOCGPTPEER, flags) })?;
    // SAFETY: the kernel has just made this descriptor, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(peer) })
}

/// Sets the size of a terminal. The programs that it controls get SIGWINCH.
///
/// # Errors
/// The kernel's error.
pub fn set_size(terminal: BorrowedFd<'_>, size: TerminalSize) -> nix::Result<()> {
    let TerminalSize { rows, columns } = size;
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCSWINSZ reads a whole `winsize`.
    let result = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
    Errno::result(result).map(drop)
}

/// Returns the foreground process group of the session that a terminal controls. `terminal` is the end that was opened as `ptmx`.
///
/// # Errors
/// The kernel's error. `ESRCH` if there is no such group.
pub fn foreground(terminal: BorrowedFd<'_>) -> nix::Result<Pid> {
    let mut group: libc::pid_t = 0;
    // SAFETY: TIOCGPGRP writes one pid_t.
    let result = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCGPGRP, &raw mut group) };
    Errno::result(result)?;
    if group > 0 { Ok(Pid::from_raw(group)) } else { Err(Errno::ESRCH) }
}

/// Makes a terminal the controlling terminal of this process's session, which must not have one yet.
///
/// # Errors
/// The kernel's error.
pub fn take_control_by(terminal: BorrowedFd<'_>) -> nix::Result<()> {
    // SAFETY: TIOCSCTTY takes a number. With 0 it does not steal the terminal from another session.
    Errno::result(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY, 0) }).map(drop)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read as _, Write as _};
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn what_is_typed_at_one_end_arrives_as_a_line_at_the_other() {
        let mut ptmx = File::options().read(true).write(true).open("/dev/ptmx").unwrap();
        let mut peer = File::from(open_peer(ptmx.as_fd()).unwrap());
        set_size(ptmx.as_fd(), TerminalSize { rows: 24, columns: 80 }).unwrap();
        ptmx.write_all(b"line\n").unwrap();
        let mut got = [0; 16];
        let length = peer.read(&mut got).unwrap();
        assert_eq!(&got[..length], b"line\n");
        drop(peer);
        // The echo, and then the end, which is an error.
        let length = ptmx.read(&mut got).unwrap();
        assert_eq!(&got[..length], b"line\r\n");
        assert_eq!(ptmx.read(&mut got).unwrap_err().raw_os_error(), Some(libc::EIO));
    }

    #[test]
    fn what_is_no_terminal_is_refused() {
        let null = File::open("/dev/null").unwrap();
        assert_eq!(open_peer(null.as_fd()).unwrap_err(), Errno::ENOTTY);
        assert_eq!(take_control_by(null.as_fd()), Err(Errno::ENOTTY));
    }
}
