//! The fences of a workload by the box's policy (`sandbox`), in two layers.
//!
//! 1. **Mounts**, in a mount namespace that only this workload and its children have. All mounts are read-only except those
//!    of the writable paths, and a denied path is covered. A read-only mount also keeps modes, owners and times, which
//!    Landlock does not.
//! 2. **Landlock**. It allows writing below the same paths, and it keeps the workload away from other processes: a process
//!    of the component that has no fences would be a way around the mounts, by `/proc/PID/root`.
//!
//! The mounts come first, because they need privileges, and Landlock forbids every further mount.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use box_contract::accounts::homes;
use box_contract::{ComponentName, ComponentPlan, RunPlan, SandboxFallback, SandboxPlan};
use command_policy::{Denied, Fences, Subject, Surroundings};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{SFlag, fstat};

use super::{account, dev};
use crate::boot::{self, NO_SUID_DEV_EXEC};
use crate::error::{InitError, Step as _};
use crate::mounts::HostMounts;
use crate::sys::mounts;

/// The policy of a box for one component, with paths that have no symbolic links.
#[derive(Debug)]
pub(crate) struct Policy {
    /// The fences of commands.
    command: Fences,
    /// The fences of the agent's own program, and of health checks.
    program: Fences,
    /// What happens if the kernel has no Landlock.
    pub(crate) fallback: SandboxFallback,
    /// The plan and the facts from which the fences are made.
    source: (SandboxPlan, Surroundings),
    /// The content of `passwd` before a program of the component ran.
    passwd: String,
}

impl Policy {
    /// Returns the policy, if the box has one. Must be called before a program of the component runs, which could redirect the
    /// paths.
    pub(crate) fn resolve(
        (run, name): (&RunPlan, ComponentName),
        plan: &ComponentPlan,
        host: &HostMounts,
    ) -> Option<Self> {
        let mut sandbox = run.sandbox.clone()?;
        let mut around = Surroundings::of(run, name, plan);
        around.writable_mounts.extend(host.writable(name).map(str::to_owned));
        let passwd = account::users();
        around = around.with_homes(&homes(&plan.user.uid.to_string(), &passwd));
        let roots = Fences::of(&sandbox, Subject::Program, &around);
        let roots: Vec<_> = roots.writable_roots().into_iter().map(str::to_owned).collect();
        // A path in a writable directory can be a link that a program of an earlier run has made there.
        let resolve_root = |path: &mut String| {
            if roots.contains(path) {
                *path = real(path);
            }
        };
        resolve_root(&mut around.workdir);
        around.writable_mounts.iter_mut().for_each(resolve_root);
        sandbox.writable.iter_mut().for_each(resolve_root);
        for path in sandbox.deny_read.iter_mut().chain(&mut sandbox.deny_write) {
            *path = real_parent(path);
        }
        let of = |subject| Fences::of(&sandbox, subject, &around);
        let (command, program) = (of(Subject::Command), of(Subject::Program));
        let fallback = sandbox.fallback;
        Some(Self { command, program, fallback, source: (sandbox, around), passwd })
    }

    /// Returns the fences of a workload. `user` is its user, if it is not the plan's.
    pub(crate) fn fences(&self, subject: Subject, user: Option<&str>) -> Cow<'_, Fences> {
        let homes = user.map(|it| homes(it, &self.passwd)).unwrap_or_default();
        if !homes.is_empty() {
            let (sandbox, around) = &self.source;
            return Cow::Owned(Fences::of(sandbox, subject, &around.clone().with_homes(&homes)));
        }
        Cow::Borrowed(match subject {
            Subject::Command => &self.command,
            Subject::Program => &self.program,
        })
    }
}

/// Returns a path without symbolic links, or the same path if it does not exist.
fn real(path: &str) -> String {
    let real = std::fs::canonicalize(path).ok();
    real.and_then(|it| it.into_os_string().into_string().ok()).unwrap_or_else(|| path.to_owned())
}

/// Returns a path without symbolic links in its directory.
fn real_parent(path: &str) -> String {
    match path.rsplit_once('/') {
        Some((parent @ "", name)) => format!("{parent}/{name}"),
        Some((parent, name)) => format!("{}/{name}", real(parent).trim_end_matches('/')),
        None => path.to_owned(),
    }
}

/// Lets the mounts that the component gets later, such as those of skills, appear in the mount namespaces of its
/// workloads.
///
/// # Errors
/// The kernel's error.
pub(crate) fn share_mounts() -> Result<(), InitError> {
    set_propagation(MsFlags::MS_SHARED).step("share the component's mounts")
}

fn set_propagation(how: MsFlags) -> nix::Result<()> {
    mount(None::<&str>, "/", None::<&str>, how | MsFlags::MS_REC, None::<&str>)
}

/// Enters a mount namespace in which the denied paths are covered, and, if the policy denies the network, a network
/// namespace. Needs privileges. Opens paths that other workloads can redirect, and does nothing with them but to cover them.
///
/// # Errors
/// The step that failed. A declared path that cannot be protected is an error.
pub(crate) fn cover(fences: &Fences) -> Result<(), InitError> {
    unshare(CloneFlags::CLONE_NEWNS).step("make a mount namespace")?;
    set_propagation(MsFlags::MS_SLAVE).step("separate the mounts")?;
    protect_all_but(&fences.writable_roots()).step("make the mounts read-only")?;
    for path in fences.fixed() {
        fix(path).step_with(|| format!("fix the directory {path}"))?;
    }
    for denied in &fences.deny_write {
        protect(denied, fences, keep)?;
    }
    for denied in &fences.deny_read {
        protect(denied, fences, hide)?;
    }
    if !fences.has_network {
        unshare(CloneFlags::CLONE_NEWNET).step("make a network namespace")?;
        boot::loopback_up()?;
    }
    Ok(())
}

/// Confines this process to what it may write. Returns `false` if the kernel has no Landlock, and the policy's fallback is to
/// continue without it.
///
/// # Errors
/// The kernel's error, or that it has no Landlock although the policy is strict.
pub(crate) fn confine(fences: &Fences, fallback: SandboxFallback) -> Result<bool, InitError> {
    let step = "apply the policy";
    let is_enforced = command_fence::restrict(&fences.writable_roots()).step(step)?;
    if is_enforced || fallback == SandboxFallback::Warn {
        return Ok(is_enforced);
    }
    Err("the kernel has no Landlock; boot the box with `kernel \"lean\"`, or declare `fallback=\"warn\"`").step(step)
}

/// Makes all mounts read-only except those at and below `writable`. Paths that do not exist are skipped.
fn protect_all_but(writable: &[&str]) -> nix::Result<()> {
    if writable.contains(&"/") {
        return Ok(());
    }
    // A path that was missing when the policy was resolved can be a link now.
    let open = |path: &&str| open(path, ResolveFlag::RESOLVE_NO_SYMLINKS).ok().flatten();
    let places: Vec<_> = writable.iter().filter_map(open).collect();
    // Copied before the mounts become read-only.
    let copies: Vec<_> = places.iter().map(mounts::copy_all).collect::<nix::Result<_>>()?;
    let root = open_root()?;
    mounts::make_all_read_only(&root)?;
    copies.into_iter().zip(&places).try_for_each(|(copy, place)| mounts::place(copy, place))
}

fn open_root() -> nix::Result<OwnedFd> {
    open("/", ResolveFlag::empty())?.ok_or(Errno::ENOENT)
}

/// Makes a directory a mount point, so that it cannot be renamed.
///
/// A link is not followed: a command could make one to the root, whose copy would be above all other mounts.
fn fix(path: &str) -> nix::Result<()> {
    match open(path, ResolveFlag::RESOLVE_NO_SYMLINKS) {
        Ok(Some(at)) => mounts::place(mounts::copy_all(&at)?, &at),
        // No file has such a path. If the Boxfile declares the denied path in the directory, `protect` refuses it.
        Ok(None) | Err(Errno::ELOOP | Errno::ENAMETOOLONG | Errno::EINVAL) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Covers a denied path, if it exists.
fn protect(
    denied: &Denied,
    fences: &Fences,
    cover: fn(&OwnedFd) -> nix::Result<()>,
) -> Result<(), InitError> {
    let step = || format!("protect {}, which the policy denies", denied.path);
    // A command could replace a link in a directory that it can write to.
    let is_replaceable = fences.is_writable(&denied.path);
    let links = if is_replaceable {
        ResolveFlag::RESOLVE_NO_SYMLINKS
    } else {
        ResolveFlag::RESOLVE_NO_MAGICLINKS
    };
    match open(&denied.path, links) {
        Ok(Some(at)) => cover(&at).step_with(step),
        Ok(None) => Ok(()),
        // No file has a path that is too long or has a zero byte, for example one in the home directory of a user.
        Err(Errno::ELOOP | Errno::ENAMETOOLONG | Errno::EINVAL) if !denied.is_declared => Ok(()),
        Err(Errno::ELOOP) => {
            Err("it is a symbolic link, or behind one, which a command could replace")
                .step_with(step)
        }
        Err(error) => Err(error).step_with(step),
    }
}

/// Opens a path only as a place in the file system. `None` if it does not exist.
fn open(path: &str, links: ResolveFlag) -> nix::Result<Option<OwnedFd>> {
    let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC).resolve(links);
    match openat2(AT_FDCWD, Path::new(OsStr::from_bytes(path.as_bytes())), how) {
        Err(Errno::ENOENT | Errno::ENOTDIR) => Ok(None),
        opened => opened.map(Some),
    }
}

/// Makes a path and everything mounted below it read-only.
fn keep(at: &OwnedFd) -> nix::Result<()> {
    let copy = mounts::copy_all(at)?;
    mounts::make_all_read_only(&copy)?;
    mounts::place(copy, at)
}

/// Shows a directory as an empty one, and any other file as the null device.
fn hide(at: &OwnedFd) -> nix::Result<()> {
    let target = format!("/proc/self/fd/{}", at.as_raw_fd());
    if SFlag::from_bits_truncate(fstat(at)?.st_mode & SFlag::S_IFMT.bits()) == SFlag::S_IFDIR {
        let flags = NO_SUID_DEV_EXEC | MsFlags::MS_RDONLY;
        return mount(
            Some("tmpfs"),
            target.as_str(),
            Some("tmpfs"),
            flags,
            Some("size=0,mode=0555"),
        );
    }
    // Not the open null device of the holder, whose mount is in another namespace.
    let null = open("/dev/null", ResolveFlag::RESOLVE_NO_SYMLINKS)?.ok_or(Errno::ENOENT)?;
    if !dev::is_null(&null)? {
        return Err(Errno::ENODEV);
    }
    mounts::place(mounts::copy_all(&null)?, at)
}
