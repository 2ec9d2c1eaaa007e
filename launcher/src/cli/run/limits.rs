//! `--lifetime` and `--with-parent`: the run stops itself, as if it had got SIGTERM.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::parent_id;
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use host_fs::OsError;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::process::{PidfdFlags, pidfd_open};

use super::RunArgs;

/// The process whose end ends the run, and when the run ends at the latest.
#[derive(Debug)]
pub(super) struct Limits {
    parent: Option<OwnedFd>,
    lifetime: Option<Duration>,
}

impl Limits {
    /// Opens the parent of this process or, in the supervisor of a detached run, the one of `--parent`. Must be called first: a
    /// process whose parent ends later has another parent.
    ///
    /// # Errors
    /// If that process has ended already.
    pub(super) fn of(args: &RunArgs) -> Result<Self, OsError> {
        let parent = args.with_parent.then(|| args.parent.unwrap_or_else(parent_id));
        let open = |pid: u32| -> io::Result<OwnedFd> {
            let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
            let pid = pid.ok_or_else(|| io::Error::other("it has ended"))?;
            Ok(pidfd_open(pid, PidfdFlags::empty())?)
        };
        let action = "watch the process that started this one (--with-parent)";
        let parent = parent.map(open).transpose().map_err(OsError::system(action))?;
        let lifetime = args.lifetime.map(|it| Duration::from_secs(it.into()));
        Ok(Self { parent, lifetime })
    }

    /// Watches the limits in another thread, which inherits the blocked signals of this one.
    pub(super) fn watch(self) {
        if self.parent.is_none() && self.lifetime.is_none() {
            return;
        }
        thread::spawn(move || {
            self.wait();
            // The signal is pending until the run asks for it.
            let own = i32::try_from(process::id()).map(Pid::from_raw);
            let _ = own.map(|pid| kill(pid, Signal::SIGTERM));
        });
    }

    /// Waits until one of the limits is reached.
    fn wait(&self) {
        let until = self.lifetime.map(|it| Instant::now() + it);
        loop {
            let left = until.map(|it| it.saturating_duration_since(Instant::now()));
            if left.is_some_and(|it| it.is_zero()) {
                return;
            }
            let timeout = left.map_or(PollTimeout::NONE, |it| {
                PollTimeout::try_from(it).unwrap_or(PollTimeout::MAX)
            });
            let mut fds: Vec<_> =
                self.parent.iter().map(|it| PollFd::new(it.as_fd(), PollFlags::POLLIN)).collect();
            // An error, such as an interruption, is no limit.
            if poll(&mut fds, timeout).is_ok_and(|ready| ready > 0) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_end_of_a_process_and_the_end_of_a_time_are_limits() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let args = |words: &[&str]| RunArgs::of_words(["x.box"].iter().chain(words)).unwrap();
        let pid = child.id().to_string();
        let of_child = args(&["--detach", "--with-parent", "--parent", &pid]);
        let limits = Limits::of(&of_child).unwrap();
        child.kill().unwrap();
        limits.wait();
        child.wait().unwrap();
        let error = Limits::of(&of_child).unwrap_err().to_string();
        assert!(error.contains("--with-parent"), "{error}");
        Limits::of(&args(&["--lifetime", "1", "--with-parent"])).unwrap().wait();
    }
}
