//! Mounts of the host in the components: directories by virtio-fs, volumes, copies of files, and [`sockets`].
//!
//! ```text
//! /run/shares/0    a directory of the device with all read-only directories
//! /run/share-0     the device of a writable directory
//! /run/writable/0  a directory of the device with all writable directories
//! /run/disk-0      a volume
//! /run/files       the copies of files, in memory
//! /run/socket-…    the sockets
//! ```
//!
//! Init mounts each of them at this path, which no component sees, and then attaches a copy of the mount in each
//! component of its scope. Through the copy, the files of the host's user belong to the component's user. Files that
//! another user of the guest writes have another owner in the guest, but the same owner on the host.

use std::fs::{self, Permissions, create_dir, metadata};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Component, Path, PathBuf};

use box_contract::plan::{RUN_PATH, SKILLS_PATH};
use box_contract::rules::is_inside;
use box_contract::wire::{
    FilePart, HostFile, HostMessage, HostSocket, MAX_FILES_BYTES, Mount, MountSource, Mounts,
    READ_ONLY_TAG, WRITABLE_TAG, writable_tag,
};
use box_contract::{ComponentName, RunPlan, User};
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::mount::{MsFlags, mount};
use nix::sys::stat::{Mode, SFlag, fchmod, fstat, mkdirat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, unlinkat};

use crate::boot::{NO_SUID_DEV, mount_fs};
use crate::channel::Channel;
use crate::disks;
use crate::error::{InitError, Step as _};
use crate::fill::fill;
use crate::id_map::IdMap;
use crate::sockets;
use crate::sys::mounts::{self, Attributes};

/// The flags for opening a directory as a mount point.
const DIRECTORY: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);

/// The mounts of the host, ready to be attached in components.
#[derive(Debug, Default)]
pub(crate) struct HostMounts {
    mounts: Vec<Mount>,
    files: Vec<HostFile>,
    sockets: Vec<HostSocket>,
    /// The map of each component whose user differs from the host's user.
    id_maps: Vec<(ComponentName, IdMap)>,
}

/// The directory of the copies of files, which no component sees.
const FILES: &str = "/run/files";
/// The space on the file system of the copies for the directory and for the unused part of each file's last page, in bytes.
const ROOM: u64 = 64 << 10;
/// The permissions of a file that is left at the path of a copy after the run.
const LEFT: Mode = Mode::S_IRUSR.union(Mode::S_IWUSR).union(Mode::S_IRGRP).union(Mode::S_IROTH);

/// What the host has sent.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) mounts: Mounts,
    /// The contents of the files.
    contents: Vec<Vec<u8>>,
}

/// Receives the mounts of the host, and the contents of its files.
///
/// # Errors
/// The connection failed, or the launcher has sent another message.
pub(crate) fn receive(channel: &mut Channel) -> Result<Received, InitError> {
    let step = "receive the mounts of the host";
    let Some(HostMessage::Mounts(mounts)) = channel.receive().step(step)? else {
        return Err("the launcher has sent something else").step(step);
    };
    let total: u64 = mounts.files.iter().map(|it| u64::from(it.size)).sum();
    if total > MAX_FILES_BYTES {
        return Err("the files are too large").step(step);
    }
    let content = |it: &HostFile| {
        let step = || format!("receive the file for {}", it.guest);
        let (size, mut content) = (usize::try_from(it.size).unwrap_or(usize::MAX), Vec::new());
        while content.len() < size {
            match channel.receive().step_with(step)? {
                Some(HostMessage::FilePart(FilePart { data })) if !data.is_empty() => {
                    content.extend_from_slice(&data);
                }
                _ => return Err("the launcher has sent something else").step_with(step),
            }
        }
        if content.len() > size { Err("it has more bytes").step_with(step) } else { Ok(content) }
    };
    let contents = mounts.files.iter().map(content).collect::<Result<_, _>>()?;
    Ok(Received { mounts, contents })
}

impl HostMounts {
    /// Returns the paths of the host's mounts that a component can write to.
    pub(crate) fn writable(&self, component: ComponentName) -> impl Iterator<Item = &str> {
        let is_writable = |it: &&Mount| !matches!(it.source, MountSource::ReadOnly(_));
        let mounts = self.mounts.iter().filter(is_writable);
        mounts.filter(move |it| it.scope.includes(component)).map(|it| it.guest.as_str())
    }

    /// Mounts the sources below [`RUN_PATH`], fills new volumes, writes the copies of files, and makes the id
    /// maps.
    ///
    /// # Errors
    /// The step that failed.
    pub(crate) fn prepare(received: Received, plan: &RunPlan) -> Result<Self, InitError> {
        let Received { mounts: host, contents } = received;
        let has =
            |wanted: fn(&MountSource) -> bool| host.mounts.iter().any(|it| wanted(&it.source));
        if has(|it| matches!(it, MountSource::ReadOnly(_))) {
            mount_share(READ_ONLY_TAG, MsFlags::MS_RDONLY)?;
        }
        if host.are_together() {
            mount_share(WRITABLE_TAG, MsFlags::empty())?;
        }
        for Mount { source, guest, scope } in &host.mounts {
            match *source {
                // The device is mounted already. Checks that it has the directory.
                MountSource::ReadOnly(_) | MountSource::Together(_) => {
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
                    fill(&base(*source), guest, *scope, plan).step_with(|| {
                        format!("copy the image's files to the volume for {guest}")
                    })?;
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
        write_files(&host.files, &contents, plan)?;
        Ok(Self { mounts: host.mounts, files: host.files, sockets: host.sockets, id_maps })
    }

    /// Returns the number of volumes.
    pub(crate) fn volumes(&self) -> usize {
        self.mounts.iter().filter(|it| matches!(it.source, MountSource::Disk(_))).count()
    }

    /// Returns the sockets of the host.
    pub(crate) fn sockets(&self) -> &[HostSocket] {
        &self.sockets
    }

    /// Returns the descriptors of the id maps, which a holder needs to attach the mounts.
    pub(crate) fn files(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.id_maps.iter().map(|(_, map)| map.as_fd())
    }

    /// Returns whether the path of a component is on one of its mounts or scratch disks.
    pub(crate) fn have(&self, plan: &RunPlan, component: ComponentName, path: &str) -> bool {
        let own = self.mounts.iter().filter(|it| it.scope.includes(component));
        let disks = plan.scratch.iter().filter(|it| it.scope.includes(component));
        let mut all = own.map(|it| &it.guest).chain(disks.map(|it| &it.guest));
        all.any(|guest| is_inside(path, guest))
    }

    /// Returns the mounts and scratch disks to which programs of a component could write, apart from its working directory and those
    /// in it.
    pub(crate) fn written_by<'a>(
        &'a self,
        plan: &'a RunPlan,
        component: ComponentName,
        workdir: &'a str,
    ) -> impl Iterator<Item = &'a str> {
        let own = self.mounts.iter().filter(move |it| it.scope.includes(component));
        let writable = own.filter(|it| !matches!(it.source, MountSource::ReadOnly(_)));
        let disks = plan.scratch.iter().filter(move |it| it.scope.includes(component));
        let all = writable.map(|it| it.guest.as_str()).chain(disks.map(|it| it.guest.as_str()));
        all.filter(move |guest| !is_inside(guest, workdir))
    }

    /// Attaches the mounts, copies of files and sockets of a component in its root. `kept` is a directory of the root that has
    /// content of another component, so no link in it is followed.
    ///
    /// # Errors
    /// The error of the mount, with its path.
    pub(crate) fn show(
        &self,
        root: &Path,
        (plan, component): (&RunPlan, ComponentName),
        kept: Option<&str>,
    ) -> Result<(), InitError> {
        // A link of the image must not lead into the kept directory. The skills are on a mount, which is an outer one then.
        let around: Vec<_> = kept.into_iter().chain(kept.map(|_| SKILLS_PATH)).collect();
        let rule = kept.map_or(ResolveFlag::empty(), |_| ResolveFlag::RESOLVE_NO_XDEV);
        let own = self.mounts.iter().filter(|it| it.scope.includes(component));
        let own: Vec<_> = own.collect();
        let disks = plan.scratch.iter().filter(|it| it.scope.includes(component));
        let disks = disks.map(|it| it.guest.as_str());
        let map = self.id_maps.iter().find(|(name, _)| *name == component);
        let map = map.map(|(_, map)| map.as_fd());
        own.iter().enumerate().try_for_each(|(at, it)| {
            let step = || format!("show something of the host at {}", it.guest);
            let copy = prepared(it, map).map_err(|why| why_not_shown(it, why)).step_with(step)?;
            let mounted = own[..at].iter().map(|it| it.guest.as_str());
            let mut mounted = disks.clone().chain(around.iter().copied()).chain(mounted);
            let outer = mounted.find(|outer| is_inside(&it.guest, outer));
            let target = place(root, &it.guest, (outer, rule));
            let target = target.map_err(|it| why_no_place(it, outer));
            mounts::place(&copy, target.step_with(step)?).step_with(step)
        })?;
        let Some(own_plan) = plan.component(component) else { return Ok(()) };
        self.files_of(component).try_for_each(|(what, guest, source)| {
            let step = || format!("show {what} at {guest}");
            let mounted = own.iter().map(|it| it.guest.as_str());
            let mut mounted = disks.clone().chain(around.iter().copied()).chain(mounted);
            let outer = mounted.find(|outer| is_inside(guest, outer));
            let target = file_place(root, guest, (outer, rule), &own_plan.user);
            let target = target.map_err(|it| why_no_file(it, outer)).step_with(step)?;
            mounts::show_copy(&source, true, target).step_with(step)
        })
    }

    /// Returns what each of a component's copies of files and sockets is, with its guest path and init's path of it.
    fn files_of(
        &self,
        component: ComponentName,
    ) -> impl Iterator<Item = (&'static str, &str, PathBuf)> {
        let files = self.files.iter().enumerate();
        let files = files.map(move |(at, it)| {
            ("the copy of a file", (&it.guest, it.scope), copy_of(component, at))
        });
        let sockets = self.sockets.iter().enumerate();
        let sockets = sockets.map(move |(at, it)| {
            ("a socket", (&it.guest, it.scope), sockets::path_of(component, at))
        });
        let all = files.chain(sockets).filter(move |(_, (_, scope), _)| scope.includes(component));
        all.map(|(what, (guest, _), source)| (what, guest.as_str(), source))
    }
}

/// Writes the copies of the host's files: one for each component, because the component's user is its owner.
fn write_files(files: &[HostFile], contents: &[Vec<u8>], plan: &RunPlan) -> Result<(), InitError> {
    if files.is_empty() {
        return Ok(());
    }
    let step = "make the copies of files";
    create_dir(FILES).step(step)?;
    let size = files.iter().map(|it| u64::from(it.size) + ROOM).sum::<u64>() * 2;
    mount_fs("tmpfs", Path::new(FILES), NO_SUID_DEV, &format!("mode=0700,size={size}"))?;
    let write = |path: &Path, file: &HostFile, content: &[u8], user: &User| {
        fs::write(path, content)?;
        chown(path, Some(user.uid), Some(user.gid))?;
        // Nobody can write to the mount.
        fs::set_permissions(path, Permissions::from_mode(file.mode & 0o555))
    };
    for (name, component) in plan.components() {
        for (at, (file, content)) in files.iter().zip(contents).enumerate() {
            if file.scope.includes(name) {
                write(&copy_of(name, at), file, content, &component.user).step(step)?;
            }
        }
    }
    Ok(())
}

/// Returns init's path of the copy of a file for a component.
fn copy_of(component: ComponentName, at: usize) -> PathBuf {
    Path::new(FILES).join(format!("{}-{at}", component.name()))
}

/// Opens the file `path` as a mount point, and makes it for `user` if it is missing. An empty directory at the path is
/// replaced if it is in the root of the box: `boxbuild` makes one at the path of each declared share. In another mount
/// (`outer`, as for [`place`]), it belongs to the host or to a volume, and stays.
fn file_place(
    root: &Path,
    path: &str,
    (outer, rule): (Option<&str>, ResolveFlag),
    user: &User,
) -> nix::Result<OwnedFd> {
    let path = Path::new(path);
    let (Some(parent), Some(name)) = (path.parent().and_then(Path::to_str), path.file_name())
    else {
        return Err(Errno::EINVAL);
    };
    let (parent, name) = (place(root, parent, (outer, rule))?, Path::new(name));
    let how = |flags| {
        let how = OpenHow::new().flags(flags | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW);
        how.resolve(ResolveFlag::RESOLVE_NO_SYMLINKS)
    };
    match openat2(&parent, name, how(OFlag::O_PATH)) {
        Ok(found) if fstat(&found)?.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFDIR.bits() => {
            if outer.is_some() {
                return Err(Errno::EISDIR);
            }
            unlinkat(&parent, name, UnlinkatFlags::RemoveDir)?;
        }
        Err(Errno::ENOENT) => {}
        found => return found,
    }
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
    let made = openat2(&parent, name, how(flags).mode(Mode::empty()))?;
    fchown(&made, Some(Uid::from_raw(user.uid)), Some(Gid::from_raw(user.gid)))?;
    fchmod(&made, LEFT)?;
    Ok(made)
}

/// Returns the reason why there is no place for the copy of a file.
fn why_no_file(error: Errno, outer: Option<&str>) -> String {
    match (error, outer) {
        (Errno::ENOTEMPTY | Errno::EBUSY | Errno::EISDIR, _) => "there is a directory".to_owned(),
        (Errno::ELOOP, None) => "there is a link".to_owned(),
        (Errno::EROFS, Some(outer)) => {
            format!("the read-only directory at {outer} has no such file: create it on your host")
        }
        (error, outer) => why_no_place(error, outer),
    }
}

/// Opens the mount point `path`, and makes it if it is missing. If `path` is inside another mount (`outer`), follows no
/// link in that mount, because the host or the running agent controls its content. Otherwise `rule` restricts the resolution.
fn place(
    root: &Path,
    path: &str,
    (outer, rule): (Option<&str>, ResolveFlag),
) -> nix::Result<OwnedFd> {
    let Some(outer) = outer else { return open_or_make_in(root, Path::new(path), rule) };
    let inside = path.strip_prefix(outer).unwrap_or(path);
    let outer = open_or_make_in(root, Path::new(outer), ResolveFlag::empty())?;
    open_or_make_at(outer, Path::new(inside), ResolveFlag::RESOLVE_NO_SYMLINKS)
}

/// Returns the reason why a mount point cannot be opened.
fn why_no_place(error: Errno, outer: Option<&str>) -> String {
    match (error, outer) {
        (Errno::ENOTDIR, _) => "there is a file".to_owned(),
        (Errno::ELOOP, Some(outer)) => format!("the directory at {outer} has a link at that path"),
        (Errno::EROFS, Some(outer)) => {
            format!(
                "the read-only directory at {outer} has no such subdirectory: create it on your host"
            )
        }
        (error, _) => error.desc().to_owned(),
    }
}

/// Returns a detached copy of a mount, with the attributes for one component.
fn prepared(shown: &Mount, id_map: Option<BorrowedFd<'_>>) -> nix::Result<OwnedFd> {
    let copy = mounts::copy(&base(shown.source).join("."))?;
    let set = |read_only, id_map| mounts::set_attributes(&copy, Attributes { read_only, id_map });
    match shown.source {
        MountSource::Disk(_) => set(false, None)?,
        MountSource::Writable(_) | MountSource::Together(_) => set(false, id_map)?,
        // Not every kernel can map users in a mount below a device's root: libkrunfw's cannot.
        MountSource::ReadOnly(_) => match set(true, id_map) {
            Err(Errno::EINVAL) => set(true, None)?,
            done => done?,
        },
    }
    Ok(copy)
}

/// Returns why a mount cannot be shown, as a text for the user.
fn why_not_shown(shown: &Mount, error: Errno) -> String {
    match (shown.source, error) {
        (MountSource::Together(_), Errno::EINVAL) => {
            "this guest kernel cannot show several writable directories that use one device: build the box with `kernel \"lean\"`, \
             or leave a volume, a disk or a directory out"
                .to_owned()
        }
        _ => error.to_string(),
    }
}

/// Returns init's path of a source, such as `/run/share-0`. No component sees it.
fn base(source: MountSource) -> PathBuf {
    let run = Path::new(RUN_PATH);
    match source {
        MountSource::ReadOnly(number) => run.join(READ_ONLY_TAG).join(number.to_string()),
        MountSource::Writable(number) => run.join(writable_tag(number)),
        MountSource::Together(number) => run.join(WRITABLE_TAG).join(number.to_string()),
        MountSource::Disk(number) => run.join(format!("disk-{number}")),
    }
}

fn mount_share(tag: &str, flags: MsFlags) -> Result<(), InitError> {
    let (place, step) = (Path::new(RUN_PATH).join(tag), || format!("mount the device {tag:?}"));
    create_dir(&place).step_with(step)?;
    let flags = flags | NO_SUID_DEV;
    mount(Some(tag), &place, Some("virtiofs"), flags, None::<&str>).step_with(step)?;
    // Waits for the device's first answer, which shows whether the device supports id maps.
    metadata(&place).map(drop).step_with(step)
}

/// Opens the directory `path` below `root`, and makes it and its missing parents. Links in `path` are resolved as if
/// `root` were `/`. `rule` restricts the resolution further
/// ([openat2(2)](https://man7.org/linux/man-pages/man2/openat2.2.html)).
///
/// # Errors
/// The kernel's error. `EXDEV` if `rule` forbids crossing mounts and the path crosses one.
pub(crate) fn open_or_make_in(root: &Path, path: &Path, rule: ResolveFlag) -> nix::Result<OwnedFd> {
    let root = nix::fcntl::open(root, DIRECTORY, Mode::empty())?;
    open_or_make_at(root, path, rule)
}

/// Opens the file `path` below `root` as a mount point. Links in `path` are resolved as if `root` were `/`.
///
/// # Errors
/// The kernel's error.
pub(crate) fn open_file_in(root: &Path, path: &Path) -> nix::Result<OwnedFd> {
    let root = nix::fcntl::open(root, DIRECTORY, Mode::empty())?;
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    openat2(root, path, how)
}

/// Like [`open_or_make_in`], but below an open directory.
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
                    // The other component may have made it meanwhile, in a directory that both components see.
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
        // The magic link leads out of this root.
        assert_eq!(open_or_make_in(&root, "/magic/d").unwrap_err(), Errno::ENOENT);
        fs::write(root.join("file"), "").unwrap();
        assert_eq!(open_or_make_in(&root, "/file").unwrap_err(), Errno::ENOTDIR);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_file_takes_the_place_of_a_directory_in_the_root_of_the_box_alone() {
        let root = std::env::temp_dir().join(format!("box-init-files-{}", std::process::id()));
        drop(fs::remove_dir_all(&root));
        for path in ["declared", "full/inner", "work/empty"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        let (uid, gid) = (nix::unistd::getuid().as_raw(), nix::unistd::getgid().as_raw());
        let user = User { uid, gid, groups: Vec::new() };
        let place = |path: &str, outer| {
            let placed = file_place(&root, path, (outer, ResolveFlag::empty()), &user);
            placed.map(drop).map_err(|error| why_no_file(error, outer))
        };
        assert_eq!(place("/declared", None), Ok(()));
        assert!(root.join("declared").is_file());
        assert_eq!(place("/work/new", Some("/work")), Ok(()));
        assert!(root.join("work/new").is_file());
        for (path, outer) in [("/full", None), ("/work/empty", Some("/work"))] {
            assert_eq!(place(path, outer), Err("there is a directory".to_owned()));
            assert!(root.join(&path[1..]).is_dir(), "{path}");
        }
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
