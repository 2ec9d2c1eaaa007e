//! The holder of a component: a fork of init that supervises the component from inside.
//!
//! It enters the component's namespaces and builds the component's root. Then it starts programs on init's request, reaps
//! all processes and reports how they ended. Init never enters a component. If the component has a PID namespace, the
//! holder is PID 1 in it, and no workload can see init.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use box_contract::wire::{Exec, ProgramId, TerminalSize};
use box_contract::{ComponentName, ComponentPlan, RunPlan};
use command_policy::Subject;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sched::CloneFlags;
use nix::sys::prctl::{set_child_subreaper, set_name};
use nix::sys::signal::{self, Signal};
use nix::sys::signalfd::SignalFd;
use nix::unistd::{Pid, sethostname};

use super::fence::{self, Policy};
use super::protocol::{Event, Link, Request};
use super::spawn::{self, Base, CANNOT_START, Outcome, Report, Spawned, Streams, Workload};
use super::{FreshRoot, Skills, dev, readiness, rootfs, workdir};
use crate::cgroup::{Leaf, Tree, TreeName};
use crate::error::{InitError, Step as _};
use crate::mounts::HostMounts;
use crate::secrets::SecretFile;
use crate::wait::{self, Ended};
use crate::{boot, console, sys, time};

/// The time limit from fork to exec. A workload of the same user can stop the process in between.
const TO_START: Duration = Duration::from_secs(5);

/// The arguments of a holder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HolderArgs<'a> {
    /// The component that the holder supervises.
    pub(crate) name: ComponentName,
    /// The name of the component's directory in [`RUN_PATH`](box_contract::plan::RUN_PATH).
    pub(crate) place: &'a str,
    /// What the component takes over, if a task is verified in it.
    pub(crate) fresh: Option<&'a FreshRoot>,
    /// The run plan.
    pub(crate) run: &'a RunPlan,
    /// The component's part of the plan.
    pub(crate) plan: &'a ComponentPlan,
    /// The cgroup of the component's workloads.
    pub(crate) leaf: &'a Leaf,
    /// The connection to init.
    pub(crate) link: &'a Link,
    /// The skills that are shown in the component.
    pub(crate) skills: Skills,
    /// The files of all secrets, until they are written.
    pub(crate) secrets: &'a RefCell<Vec<SecretFile>>,
    /// Whether the component's programs can run commands in the business component.
    pub(crate) calls: bool,
    /// The mounts of the host.
    pub(crate) host: &'a HostMounts,
    /// Whether the component's root is on the box's disk, and not in memory.
    pub(crate) has_disk: bool,
}

/// Runs a holder until it ends. Returns its exit status.
pub(crate) fn run(args: HolderArgs<'_>) -> i32 {
    let result = Holder::prepare(args).and_then(|mut holder| {
        holder.report(&Event::Prepared)?;
        holder.serve()
    });
    let Err(error) = result else { return 0 };
    // If the report cannot be sent, init sees the link close.
    drop(args.link.send(&Event::Failed(error.report()), &[]));
    1
}

struct Holder<'a> {
    args: HolderArgs<'a>,
    /// Readable if a child has ended.
    signals: SignalFd,
    null: File,
    /// The component's `/dev/pts`.
    pts: dev::Terminals,
    /// The running programs, by process id.
    programs: BTreeMap<Pid, Running>,
    /// The trees of programs that have ended and have left processes behind.
    left: Vec<TreeName>,
    /// The processes whose reports do not show yet whether they have executed their programs.
    starting: Vec<Starting>,
    /// The process that makes the health check.
    health: Option<Pid>,
    /// The working directory without symbolic links, if a verification takes it over.
    workdir: Option<PathBuf>,
    /// The policy of the box, if it has one.
    policy: Option<Policy>,
}

/// A program that runs.
struct Running {
    id: ProgramId,
    tree: Tree,
}

/// A process between fork and exec.
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
    /// Enters the component. Afterwards, the holder opens no file by path, because a workload can have replaced the
    /// file.
    fn prepare(args: HolderArgs<'a>) -> Result<Self, InitError> {
        let HolderArgs { name, plan, leaf, link, .. } = args;
        let own = [link.as_fd(), leaf.as_fd()];
        let fresh = args.fresh.and_then(FreshRoot::mount);
        let kept: Vec<_> = own.into_iter().chain(args.host.files()).chain(fresh).collect();
        sys::close_all_but(&kept).step("close init's files")?;
        // Not on the console, because `/dev/console` would be opened by path.
        console::speak_of_panics_on_stderr();
        set_name(c"box-holder").step("name the holder")?;
        if !plan.namespaces.pid {
            // Only the first process of a PID namespace inherits orphans by default.
            set_child_subreaper(true).step("become the reaper")?;
        }
        if plan.namespaces.uts {
            sethostname(&plan.hostname).step("set the host name")?;
        }
        if plan.namespaces.net {
            boot::loopback_up()?;
        }
        rootfs::enter(&args)?;
        let policy = Policy::resolve((args.run, name), plan, args.host);
        if policy.is_some() {
            fence::share_mounts()?;
        }
        if let Some((path, _)) = args.fresh.and_then(|it| it.workdir.as_ref())
            && *path != workdir::resolved(&plan.workdir)?
        {
            let why = "it is another directory than that of the image";
            return Err(why).step_with(|| format!("keep the working directory {}", path.display()));
        }
        let is_kept = args.fresh.is_none() && args.run.verification_of(name).is_some();
        let workdir = is_kept.then(|| workdir::resolved(&plan.workdir)).transpose()?;
        let (null, pts) = (dev::open_null()?, dev::Terminals::open()?);
        let signals =
            wait::child_signals().step_with(|| format!("watch the {}'s processes", name.name()))?;
        let (programs, left, starting) = (BTreeMap::new(), Vec::new(), Vec::new());
        let health = None;
        Ok(Self { args, signals, null, pts, programs, left, starting, health, workdir, policy })
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

    /// Waits for work. Ended children are first in the result, because reaping them frees process ids of the component.
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

    /// Serves one request. Returns `false` if init has hung up.
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
            Request::Keep => self.keep()?,
        }
        Ok(true)
    }

    /// Sends the working directory to init, as a detached mount. If that is impossible, sends the reason. All workloads must have
    /// ended.
    fn keep(&self) -> Result<(), InitError> {
        let path = self.workdir.clone().unwrap_or_default();
        let (mount, reason) = match workdir::detached(&path) {
            Ok(mount) => (Some(mount), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let fds: Vec<_> = mount.iter().map(|it| it.as_fd()).collect();
        self.args.link.send(&Event::Kept { path, reason }, &fds).step("report to init")
    }

    const fn base(&self) -> Base<'_> {
        let HolderArgs { plan, leaf, .. } = self.args;
        Base { plan, leaf, null: &self.null, policy: self.policy.as_ref() }
    }

    /// Starts the component's main program, which the plan declares.
    fn start(&mut self, id: ProgramId, fds: Vec<OwnedFd>) -> Result<(), InitError> {
        let streams = streams(fds).step("receive a request")?;
        let workload = Workload::planned(
            &self.args.plan.argv,
            (id == ProgramId::AGENT).then_some(Subject::Program),
        );
        self.spawn(id, workload, &streams)
    }

    /// Starts a process and watches it until it has executed its program.
    fn spawn(
        &mut self,
        id: ProgramId,
        workload: Workload<'_>,
        streams: &Streams,
    ) -> Result<(), InitError> {
        let Spawned { pid, report, tree } = spawn::spawn(self.base(), workload, streams)?;
        self.programs.insert(pid, Running { id, tree });
        self.starting.push(Starting { pid, id, report, deadline: Instant::now() + TO_START });
        Ok(())
    }

    /// Checks whether a process has executed its program.
    fn look_at_start(&mut self, pid: Pid) -> Result<(), InitError> {
        let Some(index) = self.starting.iter().position(|it| it.pid == pid) else { return Ok(()) };
        let Some(outcome) = self.starting[index].report.read() else { return Ok(()) };
        let Starting { id, .. } = self.starting.swap_remove(index);
        if let Outcome::Executed { lacks_landlock: true, .. } = outcome {
            self.report(&Event::LacksLandlock { id })?;
        }
        match outcome {
            Outcome::Executed { at_ns, .. } if id == ProgramId::AGENT => {
                self.report(&Event::Started { at_ns })?;
                self.check_health(at_ns)
            }
            Outcome::Executed { .. } | Outcome::NotExecuted => Ok(()),
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

    /// Starts the process that makes the health check. A program without a health check is ready at once.
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

    /// Runs a command. If it cannot be started, only the command fails, not the component.
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

    /// Makes a terminal. Sends one end to init, and returns the command's end as its streams.
    fn terminal(&self, id: ProgramId, size: TerminalSize) -> Result<Streams, InitError> {
        let step = "make a terminal";
        let (ours, theirs) = self.pts.make().step(step)?;
        sys::terminal::set_size(ours.as_fd(), size).step(step)?;
        let sent = self.args.link.send(&Event::Terminal { id }, &[ours.as_fd()]);
        sent.step("report to init")?;
        Streams::terminal(theirs).step(step)
    }

    /// Reports to init that a command was not started, and why.
    fn refuse(&self, id: ProgramId, reason: &InitError) -> Result<(), InitError> {
        self.explain(id, reason)?;
        self.report(&Event::Exited { id, status: CANNOT_START })
    }

    /// Reports to init why a command was not started. The holder does not write it to the command's standard error,
    /// which a workload controls and can block.
    fn explain(&self, id: ProgramId, reason: &InitError) -> Result<(), InitError> {
        self.report(&Event::Explained { id, reason: reason.to_string() })
    }

    /// Sends a signal to a program. It is a no-op if the program has ended. SIGKILL ends everything that the program has started. A
    /// command is a tree as in a terminal: SIGTERM and SIGHUP go to all of it, SIGINT and SIGQUIT to its process group. A main
    /// program passes its signals on as it likes.
    fn signal(&self, id: ProgramId, number: i32) {
        let Some((pid, tree)) = self.running(id) else { return };
        match Signal::try_from(number) {
            Ok(Signal::SIGKILL) => tree.kill(),
            Ok(signal @ (Signal::SIGTERM | Signal::SIGHUP)) if id.is_command() => {
                tree.signal_all(signal);
            }
            // The command leads a process group with its process id. It has none yet if its process has only begun.
            Ok(signal @ (Signal::SIGINT | Signal::SIGQUIT))
                if id.is_command() && signal::killpg(pid, signal).is_ok() => {}
            _ => sys::send_signal(pid, number),
        }
    }

    /// Kills a program and everything that it has started.
    fn kill(&self, id: ProgramId) {
        self.running(id).into_iter().for_each(|(_, tree)| tree.kill());
    }

    fn running(&self, id: ProgramId) -> Option<(Pid, &Tree)> {
        let found = self.programs.iter().find(|(_, program)| program.id == id);
        found.map(|(pid, program)| (*pid, &program.tree))
    }

    /// Reaps all processes that have ended: programs, the health check, and orphans.
    fn reap(&mut self) -> Result<(), InitError> {
        while let Some(Ended { pid, status }) = wait::next_ended() {
            if self.health == Some(pid) {
                self.health = None;
                self.health_checked(status)?;
            }
            // The report of the start precedes the report of the end.
            self.look_at_start(pid)?;
            let Some(Running { id, tree }) = self.programs.remove(&pid) else { continue };
            if id == ProgramId::AGENT {
                self.stop_health_check();
            }
            if id == ProgramId::BUSINESS && self.args.plan.restart.applies(status) {
                // Processes that this run has left behind could occupy the ports that the next run needs.
                tree.kill();
            }
            self.left.push(tree.into_name());
            self.report(&Event::Exited { id, status })?;
        }
        self.left.retain(|tree| !tree.remove(self.args.leaf));
        Ok(())
    }

    /// Reports that the check passed. Another status than 0 means that the process itself failed, and not that the
    /// agent is unhealthy.
    fn health_checked(&self, status: u8) -> Result<(), InitError> {
        if status != 0 {
            let message = format!("its process ended with status {status}");
            return Err(InitError::new("check the health", message));
        }
        self.report(&Event::Healthy { at_ns: time::now_ns() })
    }

    /// Kills the health check of a program that has ended.
    fn stop_health_check(&mut self) {
        if let Some(pid) = self.health.take() {
            let _ = signal::kill(pid, Signal::SIGKILL);
        }
    }

    fn report(&self, event: &Event) -> Result<(), InitError> {
        self.args.link.send(event, &[]).step("report to init")
    }
}

/// Returns the streams that come with a request to start a program.
fn streams(fds: Vec<OwnedFd>) -> Result<Streams, String> {
    let mut fds = fds.into_iter().rev();
    match (fds.next(), fds.next(), fds.next()) {
        (Some(stderr), Some(stdout), stdin) => Ok(Streams { stdin, stdout, stderr }),
        _ => Err("its files were lost on the way".to_owned()),
    }
}
