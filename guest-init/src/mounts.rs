//! Mounts of the host in the components: directories by virtio-fs, and disks that stay.
//!
//! ```text
//! /run/shares/0    a directory of the device that has all read-only ones
//! /run/share-0     a device of a writable one
//! /run/disk-0      a disk
//! ```
//!
//! Each is mounted there, where no component sees it, and then a copy of the mount is put into each component. Files of a
//! directory belong to one user of the host, who is the component's user through that copy: whoever else writes there is
//! another user to the kernel, and the same one to the host.

use std::fs::{create_dir, metadata};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use box_contract::plan::RUN_PATH;
use box_contract::rules::is_inside;
use box_contract::wire::{HostMessage, Mount, MountSource, Mounts, READ_ONLY_TAG, writable_tag};
use box_contract::{ComponentName, RunPlan};
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::mount::{MsFlags, mount};
use nix::sys::stat::{Mode, mkdirat};

use crate::boot::NO_SUID_DEV;
use crate::channel::Channel;
use crate::disks;
use crate::error::{InitError, Step as _};
use crate::id_map::IdMap;
use crate::sys::mounts::{self, Attributes};

/// How a directory is opened that something is mounted on.
const DIRECTORY: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);

/// The mounts of the host, ready to be shown.
#[derive(Debug, Default)]
pub(crate) struct HostMounts {
    mounts: Vec<Mount>,
    /// Those of the components for which the owner is not their user already.
    id_maps: Vec<(ComponentName, IdMap)>,
}

/// Waits for the mounts of the host.
///
/// # Errors
/// When the launcher sends anything else.
pub(crate) fn receive(channel: &mut Channel) -> Result<Mounts, InitError> {
    let step = "receive the mounts of the host";
    match channel.receive().step(step)? {
        Some(HostMessage::Mounts(mounts)) => Ok(mounts),
        _ => Err("the launcher has sent something else").step(step),
    }
}

impl HostMounts {
    /// Mounts everything below [`RUN_PATH`].
    ///
    /// # Errors
    /// The step that failed.
    pub(crate) fn prepare(host: Mounts, plan: &RunPlan) -> Result<Self, InitError> {
        let has =
            |wanted: fn(&MountSource) -> bool| host.mounts.iter().any(|it| wanted(&it.source));
        if has(|it| matches!(it, MountSource::ReadOnly(_))) {
            mount_share(READ_ONLY_TAG, MsFlags::MS_RDONLY)?;
        }
        for Mount { source, guest, .. } in &host.mounts {
            match *source {
                // Mounted by that, once for all components.
                MountSource::ReadOnly(_) => {
                    let step = || format!("find what is shared at {guest}");
                    metadata(base(*source).join(".")).step_with(step)?;
                }
                MountSource::Writable(number) => {
                    mount_share(&writable_tag(number), MsFlags::empty())?;
                }
                MountSource::Disk(number) => {
                    let at = u8::try_from(plan.scratch.len()).unwrap_or(u8::MAX);
                    disks::mount_disk(at.saturating_add(number), &base(*source))
                        .step_with(|| format!("mount the volume for {guest}"))?;
                }
            }
        }
        let mut id_maps = Vec::new();
        if has(|it| !matches!(it, MountSource::Disk(_))) {
            for (name, component) in plan.components() {
                let user = (component.user.uid, component.user.gid);
                let map =
                    IdMap::between((host.uid, host.gid), user).step("map the users of shares")?;
                id_maps.extend(map.map(|map| (name, map)));
            }
        }
        Ok(Self { mounts: host.mounts, id_maps })
    }

    /// Returns the files of it that a holder needs.
    pub(crate) fn files(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.id_maps.iter().map(|(_, map)| map.as_fd())
    }

    /// Puts the mounts of a component into its root.
    ///
    /// # Errors
    /// The mount's, naming its place.
    pub(crate) fn show(
        &self,
        root: &Path,
        plan: &RunPlan,
        component: ComponentName,
    ) -> Result<(), InitError> {
        let own = self.mounts.iter().filter(|it| it.scope.includes(component));
        let own: Vec<_> = own.collect();
        let disks = plan.scratch.iter().filter(|it| it.scope.includes(component));
        let disks = disks.map(|it| it.guest.as_str());
        let map = self.id_maps.iter().find(|(name, _)| *name == component);
        let map = map.map(|(_, map)| map.as_fd());
        own.iter().enumerate().try_for_each(|(at, it)| {
            let step = || format!("show something of the host at {}", it.guest);
            let copy = prepared(it, map).step_with(step)?;
            let mut mounted = disks.clone().chain(own[..at].iter().map(|it| it.guest.as_str()));
            let outer = mounted.find(|outer| is_inside(&it.guest, outer));
            let target = place(root, &it.guest, outer).map_err(|it| why_no_place(it, outer));
            mounts::place(&copy, target.step_with(step)?).step_with(step)
        })
    }
}

/// Opens the place of a mount, and makes it where it is missing. In another mount no link is followed: its host, or the agent
/// that runs already, decides what is in it.
fn place(root: &Path, path: &str, outer: Option<&str>) -> nix::Result<OwnedFd> {
    let free = ResolveFlag::empty();
    let Some(outer) = outer else { return open_or_make_in(root, Path::new(path), free) };
    let inside = path.strip_prefix(outer).unwrap_or(path);
    let outer = open_or_make_in(root, Path::new(outer), free)?;
    open_or_make_at(outer, Path::new(inside), ResolveFlag::RESOLVE_NO_SYMLINKS)
}

/// Says why a mount has no place.
fn why_no_place(error: Errno, outer: Option<&str>) -> String {
    match (error, outer) {
        (Errno::ENOTDIR, _) => "there is a file".to_owned(),
        (Errno::ELOOP, Some(outer)) => format!("what is shown at {outer} has a link there"),
        (Errno::EROFS, Some(outer)) => {
            format!(
                "what is shown at {outer} has no such directory, and can only be read: make it on your host"
            )
        }
        (error, _) => error.desc().to_owned(),
    }
}

/// Returns a copy of what is mounted, as one component sees it.
fn prepared(shown: &Mount, id_map: Option<BorrowedFd<'_>>) -> nix::Result<OwnedFd> {
    let copy = mounts::copy(&base(shown.source).join("."))?;
    let set = |read_only, id_map| mounts::set_attributes(&copy, Attributes { read_only, id_map });
    match shown.source {
        MountSource::Disk(_) => set(false, None)?,
        MountSource::Writable(_) => set(false, id_map)?,
        // Not each kernel maps what is mounted below a device: libkrunfw's does not.
        MountSource::ReadOnly(_) => match set(true, id_map) {
            Err(Errno::EINVAL) => set(true, None)?,
            done => done?,
        },
    }
    Ok(copy)
}

/// Returns where something of the host is mounted first.
fn base(source: MountSource) -> PathBuf {
    let run = Path::new(RUN_PATH);
    match source {
        MountSource::ReadOnly(number) => run.join(READ_ONLY_TAG).join(number.to_string()),
        MountSource::Writable(number) => run.join(writable_tag(number)),
        MountSource::Disk(number) => run.join(format!("disk-{number}")),
    }
}

fn mount_share(tag: &str, flags: MsFlags) -> Result<(), InitError> {
    let (place, step) = (Path::new(RUN_PATH).join(tag), || format!("mount the device {tag:?}"));
    create_dir(&place).step_with(step)?;
    let flags = flags | NO_SUID_DEV;
    mount(Some(tag), &place, Some("virtiofs"), flags, None::<&str>).step_with(step)?;
    // Its answer says whether it takes maps, and is waited for only by those who need it.
    metadata(&place).map(drop).step_with(step)
}

/// Opens a directory below a root, whose links lead nowhere else, and makes it where it is missing. `rule` says where else
/// they may not lead.
///
/// # Errors
/// The kernel's; `EXDEV` with the rule that no mount is crossed.
pub(crate) fn open_or_make_in(root: &Path, path: &Path, rule: ResolveFlag) -> nix::Result<OwnedFd> {
    let root = nix::fcntl::open(root, DIRECTORY, Mode::empty())?;
    open_or_make_at(root, path, rule)
}

/// Opens a file below a root, whose links lead nowhere else, to mount something on it.
///
/// # Errors
/// The kernel's.
pub(crate) fn open_file_in(root: &Path, path: &Path) -> nix::Result<OwnedFd> {
    let root = nix::fcntl::open(root, DIRECTORY, Mode::empty())?;
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    openat2(root, path, how)
}

/// As [`open_or_make_in`], below an open directory.
fn open_or_make_at(root: OwnedFd, path: &Path, rule: ResolveFlag) -> nix::Result<OwnedFd> {
    let how = OpenHow::new()
        .flags(DIRECTORY)
        .resolve(rule | ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    let (mut reached, mut at) = (PathBuf::from("/"), root.try_clone().map_err(|_| Errno::EMFILE)?);
    for name in path.components().filter(|name| *name != Component::RootDir) {
        reached.push(name);
        at = match openat2(&root, &reached, how) {
            Err(Errno::ENOENT) => {
                match mkdirat(&at, Path::new(&name), Mode::from_bits_truncate(0o755)) {
                    // Made by the other component, where both see the place.
                    Ok(()) | Err(Errno::EEXIST) => {}
                    Err(error) => return Err(error),
                }
                openat2(&root, &reached, how)?
            }
            opened => opened?,
        };
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixStream;

    use box_contract::wire::Measure;

    use super::*;

    #[test]
    fn places_are_made_below_the_root_and_links_lead_nowhere_else() {
        let root = std::env::temp_dir().join(format!("box-init-mounts-{}", std::process::id()));
        drop(fs::remove_dir_all(&root));
        fs::create_dir_all(root.join("real")).unwrap();
        symlink("/real", root.join("link")).unwrap();
        symlink("../../../..", root.join("up")).unwrap();
        symlink("/proc/self/root", root.join("magic")).unwrap();
        let open_or_make_in = |root: &Path, path: &str| {
            super::open_or_make_in(root, Path::new(path), ResolveFlag::RESOLVE_NO_XDEV)
        };
        open_or_make_in(&root, "/link/a/b").unwrap();
        assert!(root.join("real/a/b").is_dir());
        open_or_make_in(&root, "/up/c").unwrap();
        assert!(root.join("c").is_dir());
        // That is no link of this root's.
        assert_eq!(open_or_make_in(&root, "/magic/d").unwrap_err(), Errno::ENOENT);
        fs::write(root.join("file"), "").unwrap();
        assert_eq!(open_or_make_in(&root, "/file").unwrap_err(), Errno::ENOTDIR);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn nothing_but_mounts_is_taken_for_them() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        HostMessage::Measure(Measure {}).write(&mut theirs).unwrap();
        let error = receive(&mut Channel::from(OwnedFd::from(ours))).unwrap_err().to_string();
        assert!(error.contains("something else"), "{error}");
    }
}
