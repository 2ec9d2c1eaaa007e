//! Starts one workload: a program in the component's cgroup, as the plan's user, without
//! privileges.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};

use box_image::wire::Failed;
use box_image::{ComponentPlan, User};
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_no_new_privs;
use nix::sys::signal::SigSet;
use nix::sys::stat::{Mode, umask};
use nix::unistd::{
    Gid, Pid, Uid, dup2_stderr, dup2_stdin, dup2_stdout, setgroups, setresgid, setresuid, setsid,
};

use super::{caps, exec, rlimits, seccomp, workdir};
use crate::cgroup::Leaf;
use crate::error::{InitError, Step as _};
use crate::{sys, time};

/// The status of a program that could not be started.
pub(crate) const CANNOT_START: u8 = 126;

/// The properties that all workloads of a component share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Base<'a> {
    /// How the component runs.
    pub(crate) plan: &'a ComponentPlan,
    pub(crate) leaf: &'a Leaf,
    /// The null device, opened before the first of them ran.
    pub(crate) null: &'a File,
}

/// Where a workload writes to; it reads from the null device.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

impl Streams {
    /// Returns streams that lead nowhere.
    ///
    /// # Errors
    /// The kernel's, where this process has too many files open.
    pub(crate) fn discard(null: &File) -> io::Result<Self> {
        let null = || null.try_clone().map(OwnedFd::from);
        Ok(Self { stdout: null()?, stderr: null()? })
    }
}

/// A process that was started, and how far it came.
#[derive(Debug)]
pub(crate) struct Spawned {
    /// The process; it is there to be waited for in any case.
    pub(crate) pid: Pid,
    /// How far it came.
    pub(crate) outcome: Outcome,
}

/// How far a started process came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It became the program, at this time on the clock of [`time::now_ns`].
    Executed(u64),
    /// The program could not be executed; its standard error and its status say why.
    NotExecuted,
    /// A step before that failed.
    Failed(Failed),
}

/// Starts `argv` and waits until it is executed, or is not.
///
/// # Errors
/// The kernel's, where no process could be made, as when the component has reached its limit.
pub(crate) fn spawn(
    base: Base<'_>,
    argv: &[String],
    streams: &Streams,
) -> Result<Spawned, InitError> {
    let (reader, writer) = io::pipe().step("make a pipe")?;
    let child = move || run(base, argv, streams, writer);
    let pid = sys::fork(CloneFlags::empty(), Some(base.leaf.as_fd()), child)
        .map_err(|error| match error {
            Errno::EAGAIN => "the component has as many processes as it may have".to_owned(),
            _ => error.to_string(),
        })
        .step("start a process")?;
    Ok(Spawned { pid, outcome: read_outcome(reader) })
}

/// Runs in the new process; writes to `report` as [`decode`] reads it.
fn run(base: Base<'_>, argv: &[String], streams: &Streams, mut report: PipeWriter) -> i32 {
    if let Err(error) = become_workload(base, streams, &report) {
        let Failed { step, message } = error.report();
        drop(report.write_all(format!("F{step}\0{message}").as_bytes()));
        return CANNOT_START.into();
    }
    drop(report.write_all(&[b"E".as_slice(), &time::now_ns().to_le_bytes()].concat()));
    let failed = exec::execute(argv, &base.plan.env);
    drop(report.write_all(b"N"));
    drop(writeln!(io::stderr(), "{}", failed.message));
    failed.status.into()
}

fn read_outcome(mut reader: PipeReader) -> Outcome {
    let mut report = Vec::new();
    // An error leaves a report cut short, and that says what is to be said.
    drop(reader.read_to_end(&mut report));
    decode(&report)
}

fn decode(report: &[u8]) -> Outcome {
    match report {
        [b'E', at @ ..] if at.len() == 8 => Outcome::Executed(
            at.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)),
        ),
        [b'E', .., b'N'] => Outcome::NotExecuted,
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

/// Turns this process, a copy of the holder, into one of a workload's. The order matters: what
/// needs a privilege comes before that privilege goes, and the system call filter comes last.
///
/// Other workloads may have run before, as root of this root: up to [`caps::reduce`] nothing is
/// opened by a path that they can redirect, and the working directory only after it.
fn become_workload(
    base: Base<'_>,
    streams: &Streams,
    report: &PipeWriter,
) -> Result<(), InitError> {
    let plan = base.plan;
    setsid().step("make a session")?;
    // From inside, the leaf is then the top of the cgroups.
    unshare(CloneFlags::CLONE_NEWCGROUP).step("make a cgroup namespace")?;
    connect_streams(streams, base.null).step("connect the standard streams")?;
    // Above all the leaf: its directory lies in init's mounts, out of this root.
    sys::close_all_but(&[report.as_fd()]).step("close the holder's files")?;
    // Workloads cannot replace this one: /proc is a mount point, which nobody can rename or remove,
    // and to mount over it takes CAP_SYS_ADMIN, which they have in no namespace.
    std::fs::write("/proc/self/oom_score_adj", "0").step("reset the OOM score")?;
    sys::set_nice(0).step("reset the priority")?;
    rlimits::set(plan.rlimits)?;
    caps::bound(caps::kept())?;
    become_user(&plan.user)?;
    caps::reduce(caps::kept())?;
    workdir::enter(&plan.workdir)?;
    set_no_new_privs().step("set no_new_privs")?;
    sys::reset_signal_dispositions().step("reset the signals' dispositions")?;
    SigSet::empty().thread_set_mask().step("unblock all signals")?;
    umask(Mode::from_bits_truncate(0o022));
    seccomp::install()
}

fn connect_streams(streams: &Streams, null: &File) -> io::Result<()> {
    dup2_stdin(null)?;
    dup2_stdout(&streams.stdout)?;
    dup2_stderr(&streams.stderr)?;
    Ok(())
}

/// Becomes `user`, for good.
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
    fn reports_read_back() {
        let executed = [b"E".as_slice(), &77_u64.to_le_bytes()].concat();
        assert_eq!(decode(&executed), Outcome::Executed(77));
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
