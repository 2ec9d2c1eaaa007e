//! Processes that end with their supervisor.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use host_fs::OsError;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};

/// Replaces this process with a program that the kernel kills when the supervisor ends. `arguments` are the
/// supervisor's process id, the program and its arguments: `PID PROGRAM ARGUMENT…`. Returns only on failure.
pub fn follow_as(arguments: &[OsString]) -> OsError {
    let [pid, program, arguments @ ..] = arguments else {
        return OsError::system::<nix::Error>("follow the supervisor")(nix::Error::EINVAL);
    };
    let pid = pid.to_str().and_then(|pid| pid.parse().ok()).map_or(Pid::from_raw(0), Pid::from_raw);
    if let Err(error) = follow(pid) {
        return error;
    }
    OsError::file("start", program)(Command::new(program).args(arguments).exec())
}

/// Makes the kernel kill this process when `supervisor`, its parent, ends (`PR_SET_PDEATHSIG`,
/// [prctl(2)](https://man7.org/linux/man-pages/man2/prctl.2.html)). Returns an error if the supervisor has ended
/// already.
pub fn follow(supervisor: Pid) -> Result<(), OsError> {
    let system = OsError::system::<nix::Error>;
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(system("follow the supervisor"))?;
    if getppid() != supervisor {
        return Err(system("follow the supervisor")(nix::Error::ESRCH));
    }
    Ok(())
}

/// Makes the kernel kill this process when its supervisor ends. In a PID namespace, the parent's id does not show
/// whether the supervisor has ended already. So this function checks that standard error still has a reader, which is
/// the supervisor.
pub(crate) fn follow_reader() -> Result<(), OsError> {
    let system = OsError::system::<nix::Error>;
    // The change of the user has set the dumpable attribute to the value of the kernel parameter `fs.suid_dumpable`.
    prctl::set_dumpable(false).map_err(system("hide the memory"))?;
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(system("follow the supervisor"))?;
    let stderr = io::stderr();
    let mut watched = [PollFd::new(stderr.as_fd(), PollFlags::empty())];
    let ended = poll(&mut watched, PollTimeout::ZERO).map_err(system("follow the supervisor"))?;
    if ended > 0 { Err(system("follow the supervisor")(nix::Error::ESRCH)) } else { Ok(()) }
}
