//! Starts one workload: a program in the component's cgroup, as the plan's user, without privileges.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IsTerminal as _, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use box_contract::wire::{Builtin, Exec, Failed};
use box_contract::{ComponentPlan, User};
use command_policy::Subject;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_no_new_privs;
use nix::sys::stat::{Mode, SFlag, fstat, umask};
use nix::unistd::{
    Gid, Pid, Uid, dup2_stderr, dup2_stdin, dup2_stdout, fchown, setgroups, setresgid, setresuid,
    setsid,
};

use super::fence::{self, Policy};
use super::{account, builtin, caps, exec, rlimits, seccomp, workdir};
use crate::cgroup::{Leaf, Tree};
use crate::error::{InitError, Step as _};
use crate::{sys, time};

/// The default of `TERM`, if neither the plan nor the command sets it.
const TERM: &str = "TERM=xterm-256color";
/// The exit status that is reported for a program that could not be started.
pub(crate) const CANNOT_START: u8 = 126;

/// The properties that all workloads of a component share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Base<'a> {
    /// The component's part of the plan.
    pub(crate) plan: &'a ComponentPlan,
    pub(crate) leaf: &'a Leaf,
    /// The null device, opened before the component's first program ran.
    pub(crate) null: &'a File,
    /// The policy of the box, if it has one.
    pub(crate) policy: Option<&'a Policy>,
}

/// One workload of a component: a program, and how its settings differ from the plan's.
#[derive(Debug, Clone)]
pub(crate) struct Workload<'a> {
    /// The program and its arguments.
    pub(crate) argv: Cow<'a, [OsString]>,
    /// Variables that take precedence over the plan's.
    pub(crate) env: &'a [OsString],
    /// The working directory, if it is not the plan's.
    pub(crate) workdir: Option<&'a OsStr>,
    /// The user, if it is not the plan's.
    pub(crate) user: Option<&'a str>,
    /// Whether its standard streams are a terminal.
    pub(crate) has_terminal: bool,
    /// The task that init's program performs instead of executing `argv`.
    pub(crate) builtin: Option<Builtin>,
    /// What it is under the policy of the box. `None` if the policy does not apply to it.
    pub(crate) subject: Option<Subject>,
}

impl Workload<'_> {
    /// Returns a workload with the plan's settings.
    pub(crate) fn planned(argv: &[String], subject: Option<Subject>) -> Self {
        let argv = of_plan(argv).into();
        Self {
            argv,
            env: &[],
            workdir: None,
            user: None,
            has_terminal: false,
            builtin: None,
            subject,
        }
    }
}

impl<'a> From<&'a Exec> for Workload<'a> {
    fn from(exec: &'a Exec) -> Self {
        Self {
            argv: exec.argv.as_slice().into(),
            env: &exec.env,
            workdir: exec.workdir.as_deref(),
            user: exec.user.as_deref(),
            has_terminal: exec.terminal.is_some(),
            builtin: exec.builtin,
            subject: match exec.builtin {
                Some(Builtin::Check) => Some(Subject::Program),
                // It reads what the image has.
                Some(Builtin::Hidden) => None,
                _ => Some(Subject::Command),
            },
        }
    }
}

/// Returns words of the plan as those of a command.
fn of_plan(words: &[String]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// The standard streams of a workload.
#[derive(Debug)]
pub(crate) struct Streams {
    /// Standard input. `None` is the null device.
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

impl Streams {
    /// Returns streams that discard output and have no input.
    ///
    /// # Errors
    /// The kernel's error, for example because this process has too many files open.
    pub(crate) fn discard(null: &File) -> io::Result<Self> {
        let null = || null.try_clone().map(OwnedFd::from);
        Ok(Self { stdin: None, stdout: null()?, stderr: null()? })
    }

    /// Returns the same terminal for all three streams.
    ///
    /// # Errors
    /// The kernel's error, for example because this process has too many files open.
    pub(crate) fn terminal(terminal: OwnedFd) -> io::Result<Self> {
        let [stdin, stdout] = [terminal.try_clone()?, terminal.try_clone()?];
        Ok(Self { stdin: Some(stdin), stdout, stderr: terminal })
    }
}

/// A process that was started.
#[derive(Debug)]
pub(crate) struct Spawned {
    /// The process. It has to be reaped even if its program cannot be executed.
    pub(crate) pid: Pid,
    /// Reports whether the process has executed its program.
    pub(crate) report: Report,
    /// The process and everything that it starts.
    pub(crate) tree: Tree,
}

/// The outcome of a process's start.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The process executed its program.
    Executed {
        /// The time on the clock of [`time::now_ns`].
        at_ns: u64,
        /// Whether the policy was applied without Landlock, which the kernel lacks.
        lacks_landlock: bool,
    },
    /// The program could not be executed. Its standard error and its status have the reason.
    NotExecuted,
    /// A step before the execution failed.
    Failed(Failed),
}

/// The report of a started process, up to the execution of its program.
///
/// It is read without blocking, because a workload of the same user can stop the process in between.
#[derive(Debug)]
pub(crate) struct Report {
    pipe: PipeReader,
    received: Vec<u8>,
}

impl Report {
    /// Reads the available part of the report. Returns the outcome once the process has closed the report, and `None`
    /// before.
    pub(crate) fn read(&mut self) -> Option<Outcome> {
        let mut chunk = [0; 512];
        loop {
            match self.pipe.read(&mut chunk) {
                Ok(length @ 1..) => self.received.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                // After an error the report is truncated, which `decode` turns into a failure.
                Ok(_) | Err(_) => return Some(decode(&self.received)),
            }
        }
    }
}

impl AsFd for Report {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

/// Starts a workload.
///
/// # Errors
/// The kernel's error if no process can be made, for example because the component has reached its limit.
pub(crate) fn spawn(
    base: Base<'_>,
    workload: Workload<'_>,
    streams: &Streams,
) -> Result<Spawned, InitError> {
    let (pipe, writer) = io::pipe().step("make a pipe")?;
    fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).step("make a pipe")?;
    let tree = Tree::create(base.leaf).step("make the cgroup of a program")?;
    let child = move || run(base, workload, streams, writer);
    let forked = sys::fork(CloneFlags::empty(), Some(tree.as_fd()), child);
    match forked {
        Ok(pid) => Ok(Spawned { pid, report: Report { pipe, received: Vec::new() }, tree }),
        Err(error) => {
            tree.into_name().remove(base.leaf);
            let why = match error {
                Errno::EAGAIN => "the component has as many processes as it may have".to_owned(),
                _ => error.to_string(),
            };
            Err(why).step("start a process")
        }
    }
}

/// Runs in the new process. Writes to `report` in the format of [`decode`].
fn run(base: Base<'_>, workload: Workload<'_>, streams: &Streams, mut report: PipeWriter) -> i32 {
    let (env, is_whole) = match become_workload(base, &workload, streams, &report) {
        Ok(ready) => ready,
        Err(error) => {
            let Failed { step, message } = error.report();
            drop(report.write_all(format!("F{step}\0{message}").as_bytes()));
            return CANNOT_START.into();
        }
    };
    let executed = if is_whole { EXECUTED } else { EXECUTED_WITHOUT_LANDLOCK };
    drop(report.write_all(&[&[executed][..], &time::now_ns().to_le_bytes()].concat()));
    let argv = match workload.builtin.map(|it| (it, builtin::program(it, base.plan))) {
        None => workload.argv,
        Some((_, Some(argv))) => of_plan(argv).into(),
        Some((task, None)) => {
            // Closes the report: the task has begun.
            drop(report);
            return builtin::run(task, workload.argv.get(1..).unwrap_or_default(), base.plan)
                .into();
        }
    };
    let failed = exec::execute(&argv, &env);
    drop(report.write_all(b"N"));
    drop(writeln!(io::stderr(), "{}", failed.message));
    failed.status.into()
}

/// The first byte of a report: the program is being executed. The time follows.
const EXECUTED: u8 = b'E';
/// The same, if the policy was applied without Landlock.
const EXECUTED_WITHOUT_LANDLOCK: u8 = b'W';

fn decode(report: &[u8]) -> Outcome {
    match report {
        [first @ (EXECUTED | EXECUTED_WITHOUT_LANDLOCK), at @ ..] if at.len() == 8 => {
            let at_ns = at.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
            Outcome::Executed { at_ns, lacks_landlock: *first == EXECUTED_WITHOUT_LANDLOCK }
        }
        [EXECUTED | EXECUTED_WITHOUT_LANDLOCK, .., b'N'] => Outcome::NotExecuted,
        [b'F', text @ ..] => {
            let text = String::from_utf8_lossy(text);
            let (step, message) = text.split_once('\0').unwrap_or((&text, ""));
            Outcome::Failed(Failed { step: step.to_owned(), message: message.to_owned() })
        }
        _ => Outcome::Failed(Failed {
            step: "prepare a process".to_owned(),
            message: "it was killed before its program began".to_owned(),
        }),
    }
}

/// Turns this process, a copy of the holder, into a workload. Returns the environment of its program, and whether the whole
/// policy was applied to it. The order
/// matters: a step that needs a privilege comes before the privilege is dropped, and the system call filter comes last.
///
/// Other workloads can already have run as root of this root. So before the first [`caps::reduce`] no file is opened by
/// a path that they can redirect.
fn become_workload(
    base: Base<'_>,
    workload: &Workload<'_>,
    streams: &Streams,
    report: &PipeWriter,
) -> Result<(Vec<OsString>, bool), InitError> {
    let plan = base.plan;
    setsid().step("make a session")?;
    // Makes the tree the root of the cgroup hierarchy as the workload sees it.
    unshare(CloneFlags::CLONE_NEWCGROUP).step("make a cgroup namespace")?;
    connect_streams(streams, base.null).step("connect the standard streams")?;
    // The most important one is the leaf's directory, which is in init's mounts and outside of this root.
    sys::close_all_but(&[report.as_fd()]).step("close the holder's files")?;
    if workload.has_terminal {
        sys::terminal::take_control_by(io::stdin().as_fd()).step("take the terminal")?;
    }
    // Workloads cannot replace this file: /proc is a mount point, which cannot be renamed or removed, and mounting over
    // it requires CAP_SYS_ADMIN, which they have in no namespace.
    std::fs::write("/proc/self/oom_score_adj", "0").step("reset the OOM score")?;
    sys::set_nice(0).step("reset the priority")?;
    let policy = base.policy.zip(workload.subject);
    let fences =
        policy.map(|(policy, subject)| (policy.fences(subject, workload.user), policy.fallback));
    if let Some((fences, _)) = &fences {
        fence::cover(fences)?;
    }
    rlimits::set(plan.rlimits, fences.as_ref().and_then(|(it, _)| it.limits))?;
    let capabilities = plan.capabilities.bits();
    caps::bound(capabilities)?;
    caps::reduce(capabilities | caps::TO_CHANGE_USER)?;
    let named = workload.user.map(account::find).transpose()?;
    let user = named.as_ref().map_or(&plan.user, |account| &account.user);
    give_streams_to(user).step("give the standard streams away")?;
    become_user(user)?;
    caps::reduce(capabilities)?;
    workdir::enter(workload.workdir.unwrap_or(OsStr::new(&plan.workdir)))?;
    set_no_new_privs().step("set no_new_privs")?;
    sys::reset_signals().step("reset the signals")?;
    umask(Mode::from_bits_truncate(0o022));
    let is_whole = match &fences {
        Some((fences, fallback)) => fence::confine(fences, *fallback)?,
        None => true,
    };
    seccomp::install()?;
    let home = named.map(|account| format!("HOME={}", account.home()).into());
    let has_term = plan.env.iter().any(|it| it.starts_with("TERM="));
    let term = (workload.has_terminal && !has_term).then(|| TERM.into());
    let given = term.iter().chain(&home).chain(workload.env);
    Ok((environment(of_plan(&plan.env), given), is_whole))
}

/// Returns the variables of both lists, each as `NAME=VALUE`. The last variable with a name takes precedence. For
/// example, `A=1` in `plan` and `A=2` in `given` result in `A=2`.
fn environment<'a>(
    plan: Vec<OsString>,
    given: impl Iterator<Item = &'a OsString>,
) -> Vec<OsString> {
    let all: Vec<_> = plan.into_iter().chain(given.cloned()).collect();
    let mut named = HashSet::new();
    let name =
        |it: &'_ OsString| it.as_bytes().split(|byte| *byte == b'=').next().map(<[u8]>::to_vec);
    let mut env: Vec<_> = all.into_iter().rev().filter(|it| named.insert(name(it))).collect();
    env.reverse();
    env
}

/// Makes `user` the owner of the standard streams, so that it can open them by paths such as `/dev/stdout`. The null
/// device needs no change, because every user can open it.
fn give_streams_to(user: &User) -> nix::Result<()> {
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    for stream in [io::stdin().as_fd(), io::stdout().as_fd(), io::stderr().as_fd()] {
        if stream.is_terminal() {
            fchown(stream, Some(uid), None)?;
        } else if SFlag::from_bits_truncate(fstat(stream)?.st_mode) == SFlag::S_IFIFO {
            fchown(stream, Some(uid), Some(gid))?;
        }
    }
    Ok(())
}

/// Connects the standard streams of this process.
///
/// # Errors
/// The kernel's error.
pub(crate) fn connect_streams(streams: &Streams, null: &File) -> io::Result<()> {
    dup2_stdin(streams.stdin.as_ref().map_or(null.as_fd(), AsFd::as_fd))?;
    dup2_stdout(&streams.stdout)?;
    dup2_stderr(&streams.stderr)?;
    Ok(())
}

/// Becomes `user`, irrevocably.
pub(crate) fn become_user(user: &User) -> Result<(), InitError> {
    let groups: Vec<_> = user.groups.iter().copied().map(Gid::from_raw).collect();
    setgroups(&groups).step("set the supplementary groups")?;
    let gid = Gid::from_raw(user.gid);
    setresgid(gid, gid, gid).step("set the group")?;
    let uid = Uid::from_raw(user.uid);
    setresuid(uid, uid, uid).step("set the user")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_variable_of_a_name_counts() {
        let strings = |all: &[&str]| all.iter().map(OsString::from).collect::<Vec<_>>();
        let (plan, given) =
            (strings(&["A=1", "AB=2", "TERM=dumb"]), strings(&["A=3", "A=4", "E="]));
        assert_eq!(environment(plan, given.iter()), ["AB=2", "TERM=dumb", "A=4", "E="]);
    }

    #[test]
    fn reports_read_back() {
        let executed = [b"E".as_slice(), &77_u64.to_le_bytes()].concat();
        let expected = |lacks_landlock| Outcome::Executed { at_ns: 77, lacks_landlock };
        assert_eq!(decode(&executed), expected(false));
        assert_eq!(decode(&[b"W".as_slice(), &executed[1..]].concat()), expected(true));
        assert_eq!(decode(&[executed.as_slice(), b"N"].concat()), Outcome::NotExecuted);
        let failed = Failed { step: "set the user".into(), message: "EPERM".into() };
        assert_eq!(decode(b"Fset the user\0EPERM"), Outcome::Failed(failed));
    }

    #[test]
    fn a_report_cut_short_is_a_process_killed() {
        for report in [b"".as_slice(), b"E123", b"?"] {
            assert!(matches!(decode(report), Outcome::Failed(it) if it.message.contains("killed")));
        }
    }
}
