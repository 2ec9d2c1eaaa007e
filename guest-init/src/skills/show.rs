//! Mounts the layer in a component: before it starts, or while it runs. Programs of a running component can have replaced
//! directories of the mount point's path.

use std::fs::{File, read_dir};
use std::os::fd::OwnedFd;
use std::path::Path;

use box_contract::plan::SKILLS_PATH;
use box_contract::{RunPlan, SkillMode, SkillPlan};
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, ResolveFlag, open, openat};
use nix::sched::{CloneFlags, setns};
use nix::sys::stat::{Mode, fstat, mkdirat};

use crate::component::Component;
use crate::error::{InitError, Step as _};
use crate::mounts::open_or_make_in;
use crate::sys::mounts;

/// The flags for opening a directory as a mount point.
const PLACE: OFlag =
    OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// Mounts a copy of the layer in the root of a component that has not started. The layer exists since the start.
///
/// # Errors
/// The kernel's error, or that the image has files in that directory, which the skills would hide.
pub(crate) fn show_layer(root: &Path) -> Result<(), InitError> {
    let step = || format!("show the host's skills at {SKILLS_PATH}");
    let rule = ResolveFlag::RESOLVE_NO_SYMLINKS;
    let place = open_or_make_in(root, Path::new(SKILLS_PATH), rule).step_with(step)?;
    // `boxbuild` refuses such files only in a box that has skills itself. They are in the rootfs, so this directory is empty in
    // every other box.
    let mut own = read_dir(SKILLS_PATH).step_with(step)?;
    if own.next().is_none() && !is_empty(&place).step_with(step)? {
        return Err(own_files()).step_with(step);
    }
    let copy = mounts::copy(&super::place("shown")).step_with(step)?;
    mounts::place(&copy, place).step_with(step)
}

/// Returns the reason why nothing is mounted over files of the component.
fn own_files() -> String {
    format!("it has files of its own in {SKILLS_PATH}, which skills would hide")
}

/// Mounts a copy of the mount at `shown` over the skills of a component, unless the component has it already.
///
/// # Errors
/// A text: the kernel's error, or that the component has files in that directory.
pub(super) fn show(shown: &Path, component: &Component, plan: &RunPlan) -> Result<(), String> {
    let reason = |errno: Errno| errno.desc().to_owned();
    let own = open_namespace("self").map_err(reason)?;
    let copy = mounts::copy(shown).map_err(reason)?;
    let process = component.holder.to_string();
    // Opened while this process is in init's mount namespace. A component without a mount namespace is confined to this
    // root only by chroot(2).
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let root =
        open(format!("/proc/{process}/root").as_str(), flags, Mode::empty()).map_err(reason)?;
    let theirs = open_namespace(&process).map_err(reason)?;
    setns(&theirs, CloneFlags::CLONE_NEWNS).map_err(reason)?;
    let mounted = mount(&copy, root, plan);
    // Returns to init's mount namespace, in which the paths of the layer and of the next component are valid.
    setns(&own, CloneFlags::CLONE_NEWNS).map_err(reason)?;
    mounted
}

fn open_namespace(process: &str) -> nix::Result<OwnedFd> {
    let path = format!("/proc/{process}/ns/mnt");
    File::open(path)
        .map(OwnedFd::from)
        .map_err(|error| Errno::try_from(error).unwrap_or(Errno::EIO))
}

fn mount(copy: &OwnedFd, root: OwnedFd, plan: &RunPlan) -> Result<(), String> {
    let reason = |errno: Errno| format!("{SKILLS_PATH}: {}", errno.desc());
    let place = reach(root).map_err(reason)?;
    if is_same(copy, &place).map_err(reason)? {
        return Ok(());
    }
    if plan.skills.is_empty() && !is_empty(&place).map_err(reason)? {
        return Err(own_files());
    }
    let is_mounted = |skill: &&SkillPlan| skill.mode == SkillMode::Mounted;
    let mounted = plan.skills.iter().filter(is_mounted).map(|it| it.name.as_str());
    let kept: Vec<_> = mounted
        .map(|name| Ok((name, mounts::copy_at(&place, Path::new(name))?)))
        .collect::<Result<_, _>>()
        .map_err(reason)?;
    mounts::place(copy, &place).map_err(reason)?;
    for (name, mount) in kept {
        let below = openat(copy, name, PLACE, Mode::empty()).map_err(reason)?;
        mounts::place(&mount, &below).map_err(reason)?;
    }
    Ok(())
}

/// Opens the directory of the skills, and makes its missing parts. Follows no link.
fn reach(root: OwnedFd) -> nix::Result<OwnedFd> {
    SKILLS_PATH.split('/').filter(|name| !name.is_empty()).try_fold(root, |directory, name| {
        match mkdirat(&directory, name, Mode::from_bits_truncate(0o755)) {
            Ok(()) | Err(Errno::EEXIST) => openat(&directory, name, PLACE, Mode::empty()),
            Err(error) => Err(error),
        }
    })
}

fn is_same(one: &OwnedFd, other: &OwnedFd) -> nix::Result<bool> {
    let [one, other] = [fstat(one)?, fstat(other)?];
    Ok((one.st_dev, one.st_ino) == (other.st_dev, other.st_ino))
}

fn is_empty(directory: &OwnedFd) -> nix::Result<bool> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let mut directory = Dir::openat(directory, ".", flags, Mode::empty())?;
    // Every directory has the entries `.` and `..`.
    Ok(directory.iter().nth(2).is_none())
}
