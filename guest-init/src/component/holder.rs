//! The holder of a component: its supervisor, a fork of init that stays in it.
//!
//! It enters the component's namespaces, of which it is PID 1, and builds its root. Then it starts programs when init asks,
//! reaps everything and reports how it ended. Init itself never enters a component, and no workload ever sees init.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use box_contract::wire::{Exec, ProgramId, TerminalSize};
use box_contract::{ComponentName, ComponentPlan, RunPlan};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sched::CloneFlags;
use nix::sys::prctl::{set_child_subreaper, set_name};
use nix::sys::signal::{self, Signal};
use nix::sys::signalfd::SignalFd;
use nix::unistd::{Pid, sethostname};

use super::protocol::{Event, Link, Request};
use super::spawn::{self, Base, CANNOT_START, Outcome, Report, Spawned, Streams, Workload};
use super::{dev, readiness, rootfs};
use crate::cgroup::Leaf;
use crate::error::{InitError, Step as _};
use crate::mounts::HostMounts;
use crate::secrets::SecretFile;
use crate::wait::{self, Ended};
use crate::{boot, console, sys, time};

/// How long a process may take to execute its program. A workload with the same user can stop it before that.
const TO_START: Duration = Duration::from_secs(5);

/// The arguments of a holder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HolderArgs<'a> {
    /// Which component it holds.
    pub(crate) name: ComponentName,
    /// How the box runs.
    pub(crate) run: &'a RunPlan,
    /// How the component runs.
    pub(crate) plan: &'a ComponentPlan,
    /// The cgroup of its workloads.
    pub(crate) leaf: &'a Leaf,
    /// The connection to init.
    pub(crate) link: &'a Link,
    /// Whether there are skills to show.
    pub(crate) skills: bool,
    /// The files of all secrets, until they are written.
    pub(crate) secrets: &'a RefCell<Vec<SecretFile>>,
    /// Whether its programs can run commands in the business component.
    pub(crate) calls: bool,
    /// The mounts of the host.
    pub(crate) host: &'a HostMounts,
}

/// The whole life of a holder; returns its exit status.
pub(crate) fn run(args: HolderArgs<'_>) -> i32 {
    let result = Holder::prepare(args).and_then(|mut holder| {
        holder.report(&Event::Prepared)?;
        holder.serve()
    });
    let Err(error) = result else { return 0 };
    // Where this cannot be sent, init sees the end of the link.
    drop(args.link.send(&Event::Failed(error.report()), &[]));
    1
}

struct Holder<'a> {
    args: HolderArgs<'a>,
    /// Readable when a child has ended.
    signals: SignalFd,
    null: File,
    /// Where pseudo-terminals are made.
    pts: dev::Terminals,
    /// The running programs by process.
    programs: BTreeMap<Pid, ProgramId>,
    /// Those that have not executed their programs yet, as far as is known.
    starting: Vec<Starting>,
    /// The process that checks the health.
    health: Option<Pid>,
}

/// A process on its way to its program.
struct Starting {
    pid: Pid,
    id: ProgramId,
    report: Report,
    deadline: Instant,
}

/// A source of work for a holder.
#[derive(Debug, Clone, Copy)]
enum Source {
    Children,
    Init,
    Starting(Pid),
}

impl<'a> Holder<'a> {
    /// Enters the component. From then on nothing is opened by a path: what is there may be a
    /// workload's.
    fn prepare(args: HolderArgs<'a>) -> Result<Self, InitError> {
        let HolderArgs { name, plan, leaf, link, .. } = args;
        let own = [link.as_fd(), leaf.as_fd()];
        let kept: Vec<_> = own.into_iter().chain(args.host.files()).collect();
        sys::close_all_but(&kept).step("close init's files")?;
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
        rootfs::enter(&args)?;
        let (null, pts) = (dev::open_null()?, dev::Terminals::open()?);
        let signals =
            wait::child_signals().step_with(|| format!("watch the {}'s processes", name.name()))?;
        let (programs, starting) = (BTreeMap::new(), Vec::new());
        Ok(Self { args, signals, null, pts, programs, starting, health: None })
    }

    /// Serves until init hangs up.
    fn serve(&mut self) -> Result<(), InitError> {
        loop {
            for source in self.wait()? {
                match source {
                    Source::Children => {
                        wait::clear(&self.signals);
                        self.reap()?;
                    }
                    Source::Init if self.serve_request()? => {}
                    Source::Init => return Ok(()),
                    Source::Starting(pid) => self.look_at_start(pid)?,
                }
            }
            self.kill_late_starts();
        }
    }

    /// Waits until there is something to do. Ends come first: they free a component's processes.
    fn wait(&self) -> Result<Vec<Source>, InitError> {
        let fixed =
            [(Source::Children, self.signals.as_fd()), (Source::Init, self.args.link.as_fd())];
        let starting = self.starting.iter().map(|it| (Source::Starting(it.pid), it.report.as_fd()));
        let sources: Vec<_> = fixed.into_iter().chain(starting).collect();
        let mut fds: Vec<_> =
            sources.iter().map(|(_, fd)| PollFd::new(*fd, PollFlags::POLLIN)).collect();
        let deadline = self.starting.iter().map(|it| it.deadline).min();
        match poll(&mut fds, wait::timeout(deadline)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error).step("wait for requests"),
        }
        let ready = sources.iter().zip(&fds).filter(|(_, fd)| fd.any().unwrap_or(false));
        Ok(ready.map(|((source, _), _)| *source).collect())
    }

    /// Serves one request; false where init has hung up.
    fn serve_request(&mut self) -> Result<bool, InitError> {
        let received = self.args.link.receive::<Request>().step("receive a request")?;
        let Some((request, fds)) = received else { return Ok(false) };
        match request {
            Request::Start { id: ProgramId::AGENT } => self.start(ProgramId::AGENT, fds)?,
            Request::Start { id } => {
                self.start(id, fds).or_else(|error| self.refuse(id, &error))?;
            }
            Request::Exec { id, exec } => self.exec(id, &exec, fds)?,
            Request::Signal { id, signal } => self.signal(id, signal),
            Request::Kill { id } => self.kill(id),
        }
        Ok(true)
    }

    const fn base(&self) -> Base<'_> {
        Base { plan: self.args.plan, leaf: self.args.leaf, null: &self.null }
    }

    /// Starts the plan's own program.
    fn start(&mut self, id: ProgramId, fds: Vec<OwnedFd>) -> Result<(), InitError> {
        let streams = streams(fds).step("receive a request")?;
        let workload = Workload::planned(&self.args.plan.argv);
        self.spawn(id, workload, &streams)
    }

    /// Starts a process, whose way is watched from now on.
    fn spawn(
        &mut self,
        id: ProgramId,
        workload: Workload<'_>,
        streams: &Streams,
    ) -> Result<(), InitError> {
        let Spawned { pid, report } = spawn::spawn(self.base(), workload, streams)?;
        self.programs.insert(pid, id);
        self.starting.push(Starting { pid, id, report, deadline: Instant::now() + TO_START });
        Ok(())
    }

    /// Looks whether a process has executed its program.
    fn look_at_start(&mut self, pid: Pid) -> Result<(), InitError> {
        let Some(index) = self.starting.iter().position(|it| it.pid == pid) else { return Ok(()) };
        let Some(outcome) = self.starting[index].report.read() else { return Ok(()) };
        let Starting { id, .. } = self.starting.swap_remove(index);
        match outcome {
            Outcome::Executed(at_ns) if id == ProgramId::AGENT => {
                self.report(&Event::Started { at_ns })?;
                self.check_health(at_ns)
            }
            Outcome::Executed(_) | Outcome::NotExecuted => Ok(()),
            Outcome::Failed(failed) if id == ProgramId::AGENT => Err(failed.into()),
            Outcome::Failed(failed) => self.explain(id, &failed.into()),
        }
    }

    /// Kills the processes that take too long to execute their programs.
    fn kill_late_starts(&self) {
        let now = Instant::now();
        for late in self.starting.iter().filter(|it| it.deadline <= now) {
            let _ = signal::kill(late.pid, Signal::SIGKILL);
        }
    }

    /// Starts the process that checks the health; without a check the program is ready at once.
    fn check_health(&mut self, started_ns: u64) -> Result<(), InitError> {
        let base = self.base();
        let Some(check) = &base.plan.health else {
            return self.report(&Event::Healthy { at_ns: started_ns });
        };
        let child = || {
            readiness::wait_until_healthy(check, base);
            0
        };
        let pid = sys::fork(CloneFlags::empty(), None, child).step("start the health check")?;
        self.health = Some(pid);
        Ok(())
    }

    /// Runs a command. That it cannot be started is its own failure, not the component's.
    fn exec(&mut self, id: ProgramId, exec: &Exec, fds: Vec<OwnedFd>) -> Result<(), InitError> {
        let streams = match exec.terminal {
            Some(size) => self.terminal(id, size),
            None => streams(fds).map_err(|error| InitError::new("receive a request", error)),
        };
        let streams = match streams {
            Ok(streams) => streams,
            Err(error) => return self.refuse(id, &error),
        };
        self.spawn(id, exec.into(), &streams).or_else(|error| self.refuse(id, &error))
    }

    /// Makes a terminal; init gets one end of it, and a command the other.
    fn terminal(&self, id: ProgramId, size: TerminalSize) -> Result<Streams, InitError> {
        let step = "make a terminal";
        let (ours, theirs) = self.pts.make().step(step)?;
        sys::terminal::set_size(ours.as_fd(), size).step(step)?;
        let sent = self.args.link.send(&Event::Terminal { id }, &[ours.as_fd()]);
        sent.step("report to init")?;
        Streams::terminal(theirs).step(step)
    }

    /// Reports a command that was not even started.
    fn refuse(&self, id: ProgramId, reason: &InitError) -> Result<(), InitError> {
        self.explain(id, reason)?;
        self.report(&Event::Exited { id, status: CANNOT_START })
    }

    /// Says why a command was not started. Its standard error would be a file of the workload's, which may never
    /// take it.
    fn explain(&self, id: ProgramId, reason: &InitError) -> Result<(), InitError> {
        self.report(&Event::Explained { id, reason: reason.to_string() })
    }

    /// Passes a signal on. A program that has just ended needs none. SIGKILL, on which a program cannot act itself, is
    /// for its whole group.
    fn signal(&self, id: ProgramId, number: i32) {
        if number == Signal::SIGKILL as i32 {
            self.kill(id);
        } else if let Some(pid) = self.process(id) {
            sys::send_signal(pid, number);
        }
    }

    /// Kills a program and all processes of its group, whose number is the program's.
    fn kill(&self, id: ProgramId) {
        self.process(id).into_iter().for_each(spawn::kill_group);
    }

    fn process(&self, id: ProgramId) -> Option<Pid> {
        self.programs.iter().find(|(_, program)| **program == id).map(|(pid, _)| *pid)
    }

    /// Reaps whatever has ended: programs, the health check, and orphans.
    fn reap(&mut self) -> Result<(), InitError> {
        while let Some(Ended { pid, status }) = wait::next_ended() {
            if self.health == Some(pid) {
                self.health = None;
                self.health_checked(status)?;
            }
            // What it said of its start comes before its end.
            self.look_at_start(pid)?;
            let Some(id) = self.programs.remove(&pid) else { continue };
            if id == ProgramId::AGENT {
                self.stop_health_check();
            }
            if id == ProgramId::BUSINESS && self.args.plan.restart.applies(status) {
                // What is left of this run would hold the ports of the next.
                let _ = signal::killpg(pid, Signal::SIGKILL);
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
        self.args.link.send(event, &[]).step("report to init")
    }
}

/// Takes the streams that come with a request to start something.
fn streams(fds: Vec<OwnedFd>) -> Result<Streams, String> {
    let mut fds = fds.into_iter().rev();
    match (fds.next(), fds.next(), fds.next()) {
        (Some(stderr), Some(stdout), stdin) => Ok(Streams { stdin, stdout, stderr }),
        _ => Err("its files were lost on the way".to_owned()),
    }
}
