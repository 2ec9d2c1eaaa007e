//! The holder: the process that stays in a component, starts its programs and reaps everything.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};

use box_image::{ComponentName, ComponentPlan};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::CloneFlags;
use nix::sys::prctl::{set_child_subreaper, set_name};
use nix::sys::signal::{self, Signal};
use nix::sys::signalfd::SignalFd;
use nix::unistd::{Pid, sethostname};

use super::protocol::{Event, Link, Request};
use super::spawn::{self, Base, CANNOT_START, Outcome, Spawned, Streams};
use super::{dev, health, rootfs};
use crate::cgroup::Leaf;
use crate::error::{InitError, Step as _};
use crate::wait::{self, Ended};
use crate::{boot, console, sys, time};

/// The arguments of a holder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting<'a> {
    /// Which component it holds.
    pub(crate) name: ComponentName,
    /// How the component runs.
    pub(crate) plan: &'a ComponentPlan,
    /// The cgroup of its workloads.
    pub(crate) leaf: &'a Leaf,
    /// The connection to init.
    pub(crate) link: &'a Link,
    /// Whether there are skills to show.
    pub(crate) skills: bool,
}

/// The whole life of a holder; returns its exit status.
pub(crate) fn run(setting: Setting<'_>) -> i32 {
    let result = Holder::prepare(setting).and_then(|mut holder| {
        holder.report(&Event::Prepared)?;
        holder.serve()
    });
    let Err(error) = result else { return 0 };
    // Where this cannot be sent, init sees the end of the link.
    drop(setting.link.send(&Event::Failed(error.report()), &[]));
    1
}

struct Holder<'a> {
    setting: Setting<'a>,
    /// Readable when a child has ended.
    signals: SignalFd,
    null: File,
    /// The running programs by process.
    programs: BTreeMap<Pid, u8>,
    /// The process that checks the health.
    health: Option<Pid>,
}

impl<'a> Holder<'a> {
    /// Enters the component. From then on nothing is opened by a path: what is there may be a
    /// workload's.
    fn prepare(setting: Setting<'a>) -> Result<Self, InitError> {
        let Setting { name, plan, leaf, link, .. } = setting;
        sys::close_all_but(&[link.as_fd(), leaf.as_fd()]).step("close init's files")?;
        // The console would be opened by its path.
        console::speak_of_panics_on_stderr();
        set_name(c"box-holder").step("name the holder")?;
        if !plan.namespaces.pid {
            // Only the first process of a PID namespace gets its orphans by itself.
            set_child_subreaper(true).step("become the reaper")?;
        }
        if plan.namespaces.uts {
            sethostname(&plan.hostname).step("set the host name")?;
        }
        if plan.namespaces.net {
            boot::loopback_up()?;
        }
        rootfs::enter(&setting)?;
        let null = dev::open_null()?;
        let signals =
            wait::child_signals().step_with(|| format!("watch the {}'s processes", name.name()))?;
        Ok(Self { setting, signals, null, programs: BTreeMap::new(), health: None })
    }

    /// Serves until init hangs up.
    fn serve(&mut self) -> Result<(), InitError> {
        loop {
            let mut fds = [
                PollFd::new(self.setting.link.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut fds, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error).step("wait for requests"),
            }
            let [asked, ended] = fds.map(|fd| fd.any().unwrap_or(false));
            if ended {
                wait::clear(&self.signals);
                self.reap()?;
            }
            if asked && !self.serve_request()? {
                return Ok(());
            }
        }
    }

    /// Serves one request; false where init has hung up.
    fn serve_request(&mut self) -> Result<bool, InitError> {
        let received = self.setting.link.receive::<Request>().step("receive a request")?;
        let Some((request, fds)) = received else { return Ok(false) };
        match request {
            Request::Start => self.start(streams(fds)?)?,
            Request::Exec { id, argv } => self.exec(id, &argv, &streams(fds)?)?,
            Request::Signal { id, signal } => self.signal(id, signal),
        }
        Ok(true)
    }

    const fn base(&self) -> Base<'_> {
        Base { plan: self.setting.plan, leaf: self.setting.leaf, null: &self.null }
    }

    /// Starts the plan's own program.
    fn start(&mut self, streams: Streams) -> Result<(), InitError> {
        let Spawned { pid, outcome } =
            spawn::spawn(self.base(), &self.setting.plan.argv, &streams)?;
        drop(streams);
        self.programs.insert(pid, 0);
        match outcome {
            Outcome::Executed(at_ns) => {
                self.report(&Event::Started { at_ns })?;
                self.check_health(at_ns)
            }
            Outcome::NotExecuted => Ok(()),
            Outcome::Failed(failed) => Err(failed.into()),
        }
    }

    /// Starts the process that checks the health; without a check the program is ready at once.
    fn check_health(&mut self, started_ns: u64) -> Result<(), InitError> {
        let base = self.base();
        let Some(check) = &base.plan.health else {
            return self.report(&Event::Healthy { at_ns: started_ns });
        };
        let child = || {
            health::wait_until_healthy(check, base);
            0
        };
        let pid = sys::fork(CloneFlags::empty(), None, child).step("start the health check")?;
        self.health = Some(pid);
        Ok(())
    }

    /// Runs a command. That it cannot be started is its own failure, not the component's.
    fn exec(&mut self, id: u8, argv: &[String], streams: &Streams) -> Result<(), InitError> {
        let message = match spawn::spawn(self.base(), argv, streams) {
            Ok(Spawned { pid, outcome }) => {
                self.programs.insert(pid, id);
                let Outcome::Failed(failed) = outcome else { return Ok(()) };
                explain(streams, &InitError::from(failed).to_string());
                return Ok(());
            }
            Err(error) => error.to_string(),
        };
        explain(streams, &message);
        self.report(&Event::Exited { id, status: CANNOT_START })
    }

    /// Passes a signal on. A program that has just ended needs none.
    fn signal(&self, id: u8, number: i32) {
        let found = self.programs.iter().find(|(_, program)| **program == id);
        if let (Some((pid, _)), Ok(signal)) = (found, Signal::try_from(number)) {
            let _ = signal::kill(*pid, signal);
        }
    }

    /// Reaps whatever has ended: programs, the health check, and orphans.
    fn reap(&mut self) -> Result<(), InitError> {
        while let Some(Ended { pid, status }) = wait::next_ended() {
            if self.health == Some(pid) {
                self.health = None;
                self.health_checked(status)?;
            }
            let Some(id) = self.programs.remove(&pid) else { continue };
            if id == 0 {
                self.stop_health_check();
            }
            self.report(&Event::Exited { id, status })?;
        }
        Ok(())
    }

    /// Reports that the check passed; it ends with another status only where it broke down.
    fn health_checked(&self, status: u8) -> Result<(), InitError> {
        if status != 0 {
            let message = format!("its process ended with status {status}");
            return Err(InitError::new("check the health", message));
        }
        self.report(&Event::Healthy { at_ns: time::now_ns() })
    }

    /// Ends the health check of a program that has ended.
    fn stop_health_check(&mut self) {
        if let Some(pid) = self.health.take() {
            let _ = signal::kill(pid, Signal::SIGKILL);
        }
    }

    fn report(&self, event: &Event) -> Result<(), InitError> {
        self.setting.link.send(event, &[]).step("report to init")
    }
}

/// Takes the two streams that come with a request to start something.
fn streams(fds: Vec<OwnedFd>) -> Result<Streams, InitError> {
    let [stdout, stderr] = <[OwnedFd; 2]>::try_from(fds)
        .map_err(|fds| format!("{} files came with it instead of 2", fds.len()))
        .step("receive a request")?;
    Ok(Streams { stdout, stderr })
}

/// Writes to a command's standard error why it was not started.
fn explain(streams: &Streams, message: &str) {
    let stderr = streams.stderr.try_clone().map(File::from);
    // Where this cannot be written, the status still tells that the command did not start.
    drop(stderr.and_then(|mut stderr| writeln!(stderr, "{message}")));
}
