//! Shares: directories of the host that components see.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use box_contract::plan::SKILLS_PATH;
use box_contract::wire::{self, MAX_DEVICES, Mount, MountSource, Mounts};
use box_contract::{Access, NetworkMode, Scope};
use host_fs::kernel;
use host_fs::known::{Known, places};
use host_fs::way::Way;
use rustix::fs::{AtFlags, FileType, fstat, statat};
use serde::{Deserialize, Serialize};

use vmm::jail::shares::{ServedShare, sources};

/// The error for a directory of the host that cannot be shared.
#[derive(Debug, thiserror::Error)]
#[error("cannot share {}: {source}", path.display())]
pub struct ShareError {
    /// The directory.
    pub path: PathBuf,
    /// The error of the operating system.
    pub source: io::Error,
}

/// A directory of the host that components see.
///
/// The directory stays open until the VMM process serves it. If a user meanwhile replaces it or one of its parents, the
/// checks still apply to the open directory, and the VMM process refuses to serve the replacement.
#[derive(Debug, Clone)]
pub struct HostShare {
    pub(crate) directory: ServedShare,
    way: Arc<Way>,
    /// The path that the user or the plan gave, which may contain symbolic links.
    named: PathBuf,
    guest: String,
    scope: Scope,
    is_added_skill: bool,
}

impl HostShare {
    /// Returns the path at which components see the directory, and which components do, if they may write to it.
    pub fn writable(&self) -> Option<(Scope, &str)> {
        self.directory.is_writable.then_some((self.scope, &self.guest))
    }

    /// Opens a directory of the host, which components see at `guest`.
    ///
    /// # Errors
    /// If there is no such directory, or if it contains a file system of the kernel, such as `/proc`, or is in one.
    pub fn new(path: &Path, guest: &str, access: Access, scope: Scope) -> Result<Self, ShareError> {
        let find = || -> io::Result<(Way, ServedShare)> {
            let way = Way::of(path)?;
            let found = fstat(way.open())?;
            if let Some(place) = kernel::around_or_below(way.path())? {
                return Err(kernel::no_files(&place));
            }
            let shared = ServedShare {
                path: way.path().to_owned(),
                identity: way.identity()?.numbers(),
                owner: (found.st_uid, found.st_gid),
                is_writable: access == Access::ReadWrite,
                kept: Vec::new(),
                guarded: Vec::new(),
            };
            Ok((way, shared))
        };
        let (way, directory) =
            find().map_err(|source| ShareError { path: path.to_owned(), source })?;
        let (way, named) = (Arc::new(way), path.to_owned());
        let (guest, is_added_skill) = (guest.to_owned(), false);
        Ok(Self { directory, way, named, guest, scope, is_added_skill })
    }

    /// Returns the share as a skill that the box does not declare. Its path in the box is that of a skill.
    #[must_use]
    pub fn as_added_skill(self) -> Self {
        Self { is_added_skill: true, ..self }
    }

    /// Returns the name of the skill, if the box does not declare this skill.
    pub fn added_skill_name(&self) -> Option<&str> {
        let name = self.guest.strip_prefix(SKILLS_PATH)?.strip_prefix('/')?;
        self.is_added_skill.then_some(name)
    }

    /// Returns the share with files and directories that components may only read, even if they may write to the share. `paths` are
    /// relative to the directory.
    #[must_use]
    pub fn keeping(mut self, paths: Vec<PathBuf>) -> Self {
        self.directory.kept = paths;
        self
    }

    /// Returns the share with directories in which components make no symbolic links, pipes or sockets. `paths` are relative to the
    /// directory; an empty path is the directory itself.
    #[must_use]
    pub fn guarding(mut self, paths: Vec<PathBuf>) -> Self {
        self.directory.guarded = paths;
        self
    }

    /// Returns the paths on the host that [`Self::guarding`] and [`Self::keeping`] have set.
    pub fn protected(&self) -> impl Iterator<Item = PathBuf> {
        let all = self.directory.guarded.iter().chain(&self.directory.kept);
        // An empty path would add a slash.
        all.map(|it| self.host().join(it).components().collect())
    }

    /// Returns whether components may write to the directory.
    pub const fn is_writable(&self) -> bool {
        self.directory.is_writable
    }

    /// Returns the path at which components see the directory.
    pub fn guest(&self) -> &str {
        &self.guest
    }

    /// Returns the path by which the directory was opened, which may contain symbolic links. [`Self::host`] has none.
    pub fn named(&self) -> &Path {
        &self.named
    }

    /// Returns whether the directory contains a regular file `name`. A symbolic link to a file is not one.
    pub fn has_file(&self, name: &str) -> bool {
        statat(self.way.open(), name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::RegularFile)
    }

    /// Returns the path of the directory on the host, without symbolic links.
    pub fn host(&self) -> &Path {
        &self.directory.path
    }

    /// Returns the path of this read-only share relative to the writable share `outer`: for example, `a` if `outer` is
    /// `/src` at `/work`, and this share is `/src/a` at `/work/a`. `None` if `outer` does not contain this share, or if
    /// the box sees it at another relative path.
    fn path_in(&self, outer: &Self) -> Option<&Path> {
        let path = self.host().strip_prefix(outer.host()).ok()?;
        let is_below = Path::new(&self.guest) == Path::new(&outer.guest).join(path);
        let differs = outer.is_writable() && !self.is_writable();
        (differs && is_below && path != Path::new("")).then_some(path)
    }

    /// Like [`Self::path_in`], but only if the path is a single name. With a longer path, such as `a/b`, the box could
    /// move `a` away.
    fn direct_child_of(&self, outer: &Self) -> Option<&Path> {
        self.path_in(outer).filter(|path| path.iter().count() == 1)
    }

    /// Returns the directory that a box must not move because it contains this read-only share: `outer/a` if this share
    /// is `outer/a/b` and `outer` is shared writable. The box can move `outer/a` unless that is shared read-only, too.
    /// `None` if this share is directly in `outer`, or if no writable share contains it at the same relative path.
    pub fn movable_ancestor<'a>(&'a self, all: &'a [Self]) -> Option<PathBuf> {
        let outer = all.iter().find(|it| self.path_in(it).is_some())?;
        let first = self.path_in(outer)?.iter().next()?;
        self.direct_child_of(outer).is_none().then(|| outer.host().join(first))
    }

    /// Returns the share for the box's record.
    pub fn record(&self) -> ShareRecord {
        let (host, guest) = (self.host().to_owned(), self.guest.clone());
        ShareRecord { host, guest, writable: self.is_writable(), socket: false }
    }

    /// Returns whether `path` leads to this directory or into it. Symbolic links, bind mounts and file systems that are
    /// mounted below the directory are followed. Also returns `true` if a symbolic link on the way to `path` is in this
    /// directory, because a box that can replace the link controls its target.
    pub fn contains_path(&self, path: &Path) -> bool {
        let Ok(own) = self.way.identity() else { return true };
        let mounted = kernel::mounted_below(self.host()).unwrap_or_default();
        let seen = Known::of(mounted).and(self.host(), own);
        places(path).iter().any(|it| seen.around(it).is_some())
    }

    /// Returns whether this directory is the directory at `path` or is inside it, also through symbolic links and bind
    /// mounts.
    pub fn is_inside(&self, path: &Path) -> bool {
        self.way.is_in(&Known::of([path.to_owned()]))
    }

    /// Looks at the entries of a directory and its subdirectories, which are shown to a box by a process of the user `user`. Stops
    /// at `most + 1` entries. Ignores directories that cannot be read.
    pub fn survey(directory: &Path, user: u32, most: u64) -> Survey {
        let (mut found, mut left) = (Survey::default(), vec![directory.to_owned()]);
        while let Some(next) = left.pop() {
            for entry in fs::read_dir(next).into_iter().flatten().flatten() {
                found.entries += 1;
                if found.entries > most {
                    return found;
                }
                if entry.file_type().is_ok_and(|it| it.is_dir()) {
                    left.push(entry.path());
                }
                if found.hidden.is_none() && found.entries <= EXAMINED && is_hidden(&entry, user) {
                    found.hidden = Some(entry.path());
                }
            }
        }
        found
    }
}

/// How many entries of a share are examined for their owners. A large share has a hundred times as many.
const EXAMINED: u64 = 10_000;

/// What [`HostShare::survey`] has found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// The number of entries.
    pub entries: u64,
    /// The first of them that belongs to another user and that only this user or a group may read.
    pub hidden: Option<PathBuf>,
}

/// Returns whether an entry is a file or a directory of another user than `user` that only its owner and its group may read.
fn is_hidden(entry: &fs::DirEntry, user: u32) -> bool {
    const READABLE: u32 = 0o004;
    let found = entry.metadata();
    found.is_ok_and(|it| !it.is_symlink() && it.uid() != user && it.mode() & READABLE == 0)
}

/// A share in the record of a started box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareRecord {
    /// The path of the directory, file or socket on the host.
    pub host: PathBuf,
    /// The path at which components see it.
    pub guest: String,
    /// Whether components may write to it.
    pub writable: bool,
    /// Whether it is a socket, to which components connect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub socket: bool,
}

/// Returns the directories that the VMM process serves. If a read-only share `inner` is directly in a writable share
/// `outer`, on the host and in the box, then `outer` has `inner` in `kept`: the VMM process mounts it read-only inside
/// `outer`. Without that mount, only the guest's kernel would prevent writes to `inner` through `outer`.
pub(crate) fn directories(shares: &[HostShare]) -> Vec<ServedShare> {
    let kept = |outer: &HostShare| {
        let inner = shares.iter().filter_map(|inner| inner.direct_child_of(outer));
        inner.map(Path::to_owned).chain(outer.directory.kept.iter().cloned()).collect()
    };
    shares.iter().map(|it| ServedShare { kept: kept(it), ..it.directory.clone() }).collect()
}

/// Returns the number of devices of a VM with `disks` disks, these shares and this network.
pub fn devices(disks: usize, shares: &[HostShare], network: NetworkMode) -> usize {
    let written = written(shares);
    wire::devices(disks, written > 0, written < shares.len(), network)
}

/// Returns the number of devices if each writable share is on a device of its own.
pub fn devices_apart(disks: usize, shares: &[HostShare], network: NetworkMode) -> usize {
    devices(disks, shares, network) + written(shares).saturating_sub(1)
}

/// Returns whether all writable shares are on one device, because there is no room for one device each. On a device of its
/// own, a share can have the component's user as its owner with every kernel.
pub(crate) fn are_together(disks: usize, shares: &[HostShare], network: NetworkMode) -> bool {
    written(shares) > 1 && devices_apart(disks, shares, network) > MAX_DEVICES
}

fn written(shares: &[HostShare]) -> usize {
    shares.iter().filter(|it| it.is_writable()).count()
}

/// Returns the message to init about the shares. `uid` and `gid` are the ids of the VMM process in its user namespace.
/// With `together`, all writable shares are on one device. `None` if there are too many shares to number.
pub(crate) fn mounts(
    shares: &[HostShare],
    (uid, gid): (u32, u32),
    together: bool,
) -> Option<Mounts> {
    let sources = sources(shares.iter().map(|it| &it.directory))?;
    let sources = sources.into_iter().map(|source| match source {
        MountSource::Writable(number) if together => MountSource::Together(number),
        source => source,
    });
    // If `outer` has another scope than `inner`, a component may see `inner` only through `outer`. Then `inner` is
    // mounted in both components, so that its files have the same owners in both.
    let scope = |inner: &HostShare| {
        let is_wider =
            |outer: &HostShare| inner.path_in(outer).is_some() && outer.scope != inner.scope;
        if shares.iter().any(is_wider) { Scope::Both } else { inner.scope }
    };
    let mount = |(share, source): (&HostShare, _)| Mount {
        source,
        guest: share.guest.clone(),
        scope: scope(share),
    };
    Some(Mounts {
        uid,
        gid,
        mounts: shares.iter().zip(sources).map(mount).collect(),
        skills: shares.iter().filter_map(HostShare::added_skill_name).map(str::to_owned).collect(),
        ..Mounts::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_can_only_be_read_are_on_one_device() {
        let dir = tempfile::tempdir().unwrap();
        let share = |access| HostShare::new(dir.path(), "/a", access, Scope::Both).unwrap();
        let [ro, rw] = [Access::ReadOnly, Access::ReadWrite].map(share);
        assert_eq!(devices(2, &[], NetworkMode::None), 2);
        assert_eq!(devices(2, &[], NetworkMode::Shared), 3);
        assert_eq!(devices(0, &[ro.clone(), ro.clone()], NetworkMode::None), 1);
        assert_eq!(
            devices(1, &[rw.clone(), ro.clone(), rw.clone(), ro.clone()], NetworkMode::None),
            3
        );
        let shares = [rw.clone(), ro.clone(), rw, ro];
        assert!(!are_together(1, &shares, NetworkMode::None));
        assert!(are_together(2, &shares, NetworkMode::None));
        assert!(!are_together(9, &shares[..2], NetworkMode::None));
        let sources = |together| {
            let mounts = mounts(&shares, (0, 0), together).unwrap().mounts;
            mounts.into_iter().map(|it| it.source).collect::<Vec<_>>()
        };
        use wire::MountSource::{ReadOnly, Together, Writable};
        assert_eq!(sources(false), [Writable(0), ReadOnly(0), Writable(1), ReadOnly(1)]);
        assert_eq!(sources(true), [Together(0), ReadOnly(0), Together(1), ReadOnly(1)]);
    }

    #[test]
    fn init_is_told_of_the_skills_that_the_plan_does_not_have() {
        let dir = tempfile::tempdir().unwrap();
        let skill = |name: &str| {
            let guest = format!("{SKILLS_PATH}/{name}");
            HostShare::new(dir.path(), &guest, Access::ReadOnly, Scope::Both).unwrap()
        };
        let (declared, added) = (skill("hot"), skill("notes").as_added_skill());
        assert_eq!((declared.added_skill_name(), added.is_writable()), (None, false));
        let mounts = mounts(&[declared, added], (0, 0), false).unwrap();
        assert_eq!(mounts.skills, ["notes"]);
        assert_eq!(mounts.mounts[1].guest, "/a3s/skills/notes");
    }

    #[test]
    fn what_is_shown_to_read_at_its_own_place_is_kept_there() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        let share = |path: &str, guest: &str, access| {
            HostShare::new(&dir.path().join(path), guest, access, Scope::Both).unwrap()
        };
        let [ro, rw] = [Access::ReadOnly, Access::ReadWrite];
        let outer = share("", "/w", rw);
        let kept = |outer: &HostShare, inner: HostShare| {
            directories(&[outer.clone(), inner]).remove(0).kept
        };
        let inner = share("a", "/w/a", ro);
        assert_eq!(inner.movable_ancestor(&[inner.clone(), outer.clone()]), None);
        assert_eq!(kept(&outer, inner), [Path::new("a")]);
        let deeper = share("a/b", "/w/a/b", ro);
        let around = deeper.movable_ancestor(&[deeper.clone(), outer.clone()]);
        assert_eq!(around, Some(outer.host().join("a")));
        for other in [
            deeper,
            share("a", "/w/a", rw),
            share("a", "/x", ro),
            share("a", "/w/b", ro),
            share("", "/w", ro),
        ] {
            assert!(kept(&outer, other).is_empty());
        }
        assert!(kept(&share("", "/w", ro), share("a", "/w/a", ro)).is_empty());
    }

    #[test]
    fn a_path_that_is_not_there_yet_is_in_a_directory_too() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(dir.path(), dir.path().join("link")).unwrap();
        fs::create_dir(dir.path().join("shared")).unwrap();
        let share =
            HostShare::new(&dir.path().join("shared"), "/a", Access::ReadWrite, Scope::Both);
        let (share, at) = (share.unwrap(), |path: &str| dir.path().join("link").join(path));
        assert!(
            share.contains_path(&at("shared/none/below")) && share.contains_path(&at("shared"))
        );
        assert!(!share.contains_path(&at("none")) && !share.is_inside(&at("none")));
        assert!(share.is_inside(dir.path()) && share.is_inside(&at("shared")));
        assert!(!share.is_inside(&at("shared/none")));
    }

    /// A box can replace a directory if it has a writable share of the directory's parent.
    #[test]
    fn what_was_opened_is_what_is_looked_at_and_served() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        for path in ["outer/a/b", "kept"] {
            fs::create_dir_all(at(path)).unwrap();
        }
        let share = HostShare::new(&at("outer/a/b"), "/a", Access::ReadWrite, Scope::Both).unwrap();
        fs::rename(at("outer/a"), at("outer/moved")).unwrap();
        fs::create_dir_all(at("outer/a/b")).unwrap();
        assert!(
            share.is_inside(&at("outer/moved")) && share.contains_path(&at("outer/moved/b/none"))
        );
        assert!(!share.is_inside(&at("outer/a")) && !share.contains_path(&at("outer/a/b")));
        let refused = |shares: &[ServedShare]| vmm::jail::shares::open(shares).unwrap_err();
        let error = refused(&directories(std::slice::from_ref(&share)));
        assert!(error.to_string().ends_with("its path leads to another directory now"), "{error}");
        fs::remove_dir_all(at("outer/a")).unwrap();
        std::os::unix::fs::symlink("moved", at("outer/a")).unwrap();
        let error = refused(&directories(&[share]));
        assert!(error.to_string().contains("cannot be shared: Not a directory"), "{error}");
    }

    #[test]
    fn a_link_on_the_way_to_a_path_counts_as_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        fs::create_dir_all(at("shared/x")).unwrap();
        fs::create_dir(at("elsewhere")).unwrap();
        std::os::unix::fs::symlink("../elsewhere", at("shared/link")).unwrap();
        let share = HostShare::new(&at("shared"), "/a", Access::ReadWrite, Scope::Both).unwrap();
        assert!(share.contains_path(&at("shared/link/file")));
        assert!(!share.contains_path(&at("elsewhere/file")));
        assert!(!share.contains_path(&at("shared/../elsewhere/file")));
    }

    #[test]
    fn what_is_the_kernels_is_not_shared() {
        let share =
            |path: &str| HostShare::new(Path::new(path), "/a", Access::ReadOnly, Scope::Both);
        for path in ["/proc", "/proc/sys", "/"] {
            let error = share(path).unwrap_err().to_string();
            assert!(error.contains("is a file system of the kernel"), "{path}: {error}");
        }
    }

    #[test]
    fn files_are_counted_up_to_a_limit_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        fs::write(dir.path().join("a/b"), "").unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("root")).unwrap();
        assert_eq!(HostShare::survey(dir.path(), 0, 10).entries, 3);
        assert_eq!(HostShare::survey(dir.path(), 0, 1).entries, 2);
    }

    #[test]
    fn only_directories_are_shared() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = HostShare::new(file.path(), "/a", Access::ReadOnly, Scope::Both).unwrap_err();
        assert!(error.to_string().starts_with("cannot share "), "{error}");
    }
}
