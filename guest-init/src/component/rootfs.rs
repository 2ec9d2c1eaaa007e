//! A component's root: an overlay of the image, the box's system files and a writable layer, with the kernel's file
//! systems in it.
//!
//! ```text
//! /run/disk           the box's disk; it has a directory for each component
//! /run/disk/agent     the agent's writable layer
//!                upper    the component's changes
//!                work     the work directory of overlayfs
//! /run/agent/root     overlayfs over /boxbuild/system/agent over /roots/agent: becomes the component's /
//! ```
//!
//! Without a disk, the writable layer is in `/run/agent`, a tmpfs that is half as large as the component's memory limit.
//! In the layout "merged" both components share the lower layer `/roots/merged`. Each has a separate writable layer, so
//! neither sees the other's changes.
//!
//! The component in which a task is verified has its writable layer in `/run/verification`, always in memory.
//!
//! Files on a tmpfs are charged to the component's memory and cannot be reclaimed. If they could fill the memory limit,
//! a program that writes too much would not get "no space left". The kernel would kill one process after the other
//! without freeing memory. So the writable layer in memory and `/dev/shm` together are smaller than the limit.
//!
//! Everything is mounted before the component's first program runs, so that the component cannot replace a path
//! meanwhile. Mounts that are shared with the agent, which already runs, are reached without following a link (see
//! `mounts`). The mount points are in `/boxbuild/system`, which `boxbuild build` makes. `boxbuild build` refuses an
//! image that has a symbolic link at one of them.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use box_contract::plan::{BOX_EXEC_PATH, EXEC_SOCKET_PATH, RUN_PATH, SKILLS_PATH, system_path};
use box_contract::{ComponentName, ComponentPlan, SystemDirectories};
use nix::fcntl::ResolveFlag;
use nix::mount::{MsFlags, mount};
use nix::unistd::{chdir, chroot};

use super::holder::HolderArgs;
use super::{FreshRoot, Skills, dev, system, workdir};
use crate::boot::{self, NO_SUID_DEV, NO_SUID_DEV_EXEC, mount_fs};
use crate::disks::{self, ROOTS_DISK};
use crate::error::{InitError, Step as _};
use crate::mounts::open_or_make_in;
use crate::secrets;
use crate::serve::{calls, impartial};
use crate::sys::mounts;
use crate::{cap_http, logs, skills, task};

/// Paths of `/proc` that workloads can read but not write. Paths that do not exist are skipped.
const READ_ONLY: [&str; 5] = ["proc/sys", "proc/sysrq-trigger", "proc/irq", "proc/bus", "proc/fs"];

/// Paths that are hidden from workloads because they show the kernel or other components. Paths that do not exist are
/// skipped.
const MASKED: [&str; 9] = [
    "proc/acpi",
    "proc/kcore",
    "proc/keys",
    "proc/key-users",
    "proc/latency_stats",
    "proc/sched_debug",
    "proc/scsi",
    "proc/timer_list",
    "sys/firmware",
];

/// The memory limit divided by this is the size of a writable layer in memory.
const LAYER_DIVISOR: u64 = 2;
/// The memory limit divided by this is the size of `/dev/shm`.
const SHM_DIVISOR: u64 = 4;
/// The memory limit divided by this is the size of the home of a verification. The two above and [loaded skills](skills) have seven
/// eighths of the limit.
const HOME_DIVISOR: u64 = 16;

/// The options of the overlay. They switch off all features with which the writable layer refers to the inodes of the layers
/// below, so that these may be those of another box when the layer is used again
/// ([overlayfs](https://docs.kernel.org/filesystems/overlayfs.html#changes-to-underlying-filesystems)).
const OVERLAY_OPTIONS: &str = ",metacopy=off,index=off,xino=off,redirect_dir=off";

/// Builds the component's root and enters it.
///
/// If the component has a mount namespace, the root becomes the namespace's root and nothing else stays reachable.
/// Otherwise the component is confined by `chroot`, and init and the other component see its mounts under `/run`.
///
/// # Errors
/// The step that failed.
pub(crate) fn enter(args: &HolderArgs<'_>) -> Result<(), InitError> {
    let plan = args.plan;
    if plan.namespaces.mount {
        let flags = MsFlags::MS_PRIVATE | MsFlags::MS_REC;
        change_mount(Path::new("/"), flags, "make the mounts private")?;
    }
    let root = mount_overlay(args)?;
    fill(&root, args)?;
    chdir(&root).step("enter the component's root")?;
    if plan.namespaces.mount {
        boot::enter_root()?;
    } else {
        chroot(".").step("confine the component to its root")?;
    }
    // The working directory is made before the secrets, because it belongs to the component's user, and the file of a
    // secret can be in it.
    workdir::make(&plan.workdir, &plan.user)?;
    // `take` moves the secrets out of this process's copy of them. Dropping them clears their values.
    secrets::write(&args.secrets.take(), args.name, &plan.user, args.has_disk)?;
    // The directories and files above are made before this, because they can be in the system.
    match plan.system {
        SystemDirectories::Writable => Ok(()),
        SystemDirectories::ReadOnly => system::make_read_only(),
    }
}

/// Mounts the overlay of the image, the box's system files and the writable layer. Returns the overlay's path.
fn mount_overlay(args: &HolderArgs<'_>) -> Result<PathBuf, InitError> {
    let (name, plan) = (args.name, args.plan);
    let base = Path::new(RUN_PATH).join(args.place);
    std::fs::create_dir(&base).step("make the component's directory")?;
    let layer = if args.has_disk {
        Path::new(ROOTS_DISK).join(name.name())
    } else {
        let size = format!("mode=0700,size={}", plan.limits.memory_bytes / LAYER_DIVISOR);
        mount_fs("tmpfs", &base, NO_SUID_DEV, &size)?;
        base.clone()
    };
    let [upper, work] = ["upper", "work"].map(|directory| layer.join(directory));
    make_layer(&upper, &work, plan).step("make the writable layer")?;
    let root = base.join("root");
    std::fs::create_dir(&root).step("make the root's mount point")?;
    let below = format!("{}:{}", system_path(name), plan.root);
    let (upper, work) = (upper.display(), work.display());
    let options = format!("lowerdir={below},upperdir={upper},workdir={work}{OVERLAY_OPTIONS}");
    mount_fs("overlay", &root, MsFlags::MS_NODEV, &options)?;
    Ok(root)
}

/// Makes the directories of the writable layer, unless an earlier run of the box has.
fn make_layer(upper: &Path, work: &Path, plan: &ComponentPlan) -> std::io::Result<()> {
    // The last directory that is made, so a layer with it is whole.
    if work.exists() {
        return Ok(());
    }
    std::fs::create_dir_all(upper)?;
    copy_owner_and_mode(Path::new(&plan.root), upper)?;
    std::fs::create_dir(work)
}

/// Copies the attributes of the image's root to the upper layer, from which overlayfs takes the attributes of its root.
fn copy_owner_and_mode(from: &Path, to: &Path) -> std::io::Result<()> {
    let attributes = std::fs::metadata(from)?;
    chown(to, Some(attributes.uid()), Some(attributes.gid()))?;
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(attributes.mode() & 0o7777))
}

/// Mounts all file systems inside the root.
fn fill(root: &Path, args: &HolderArgs<'_>) -> Result<(), InitError> {
    let shm_bytes = args.plan.limits.memory_bytes / SHM_DIVISOR;
    dev::build(&root.join("dev"), shm_bytes)?;
    mount_fs("proc", &root.join("proc"), NO_SUID_DEV_EXEC, "")?;
    let flags = NO_SUID_DEV_EXEC | MsFlags::MS_RDONLY;
    mount_fs("sysfs", &root.join("sys"), flags, "")?;
    bind_read_only(args.leaf.path(), &root.join("sys/fs/cgroup"), NO_SUID_DEV_EXEC)?;
    let below = |path: &str| root.join(path.trim_start_matches('/'));
    disks::show(root, args.run, args.name)?;
    match args.skills {
        Skills::None => {}
        Skills::OfBox => {
            bind_read_only(Path::new(SKILLS_PATH), &below(SKILLS_PATH), NO_SUID_DEV)?;
        }
        Skills::Layer => skills::show_layer(root)?,
    }
    // After the mounts above, whose paths the kept directory must not redirect.
    let kept = args.fresh.map(|it| keep_workdir(root, it)).transpose()?.flatten();
    args.host.show(root, (args.run, args.name), kept)?;
    match args.fresh {
        None => show_work(root, args)?,
        Some(_) => make_home(root, args.plan)?,
    }
    if args.calls {
        for (source, path) in [(boot::SELF, BOX_EXEC_PATH), (calls::SOCKET, EXEC_SOCKET_PATH)] {
            bind_read_only(Path::new(source), &below(path), NO_SUID_DEV)?;
        }
    }
    for path in READ_ONLY {
        protect(&root.join(path))?;
    }
    MASKED.into_iter().try_for_each(|path| mask(root, &root.join(path)))
}

/// Mounts the agent's task and logs, and the files of requests.
fn show_work(root: &Path, args: &HolderArgs<'_>) -> Result<(), InitError> {
    if args.run.task.is_some() && args.name == ComponentName::Agent {
        task::show(root)?;
    }
    if let (Some(logs), ComponentName::Agent) = (&args.run.logs, args.name) {
        logs::show(logs, root)?;
    }
    cap_http::show(root, args.run, args.name)
}

/// Mounts the empty directory of a verification for the files of its command.
fn make_home(root: &Path, plan: &ComponentPlan) -> Result<(), InitError> {
    let home = root.join(impartial::HOME.trim_start_matches('/'));
    std::fs::create_dir_all(&home).step("make a home for the verification")?;
    let size = plan.limits.memory_bytes / HOME_DIVISOR;
    let options = format!("mode=0700,uid={},gid={},size={size}", plan.user.uid, plan.user.gid);
    mount_fs("tmpfs", &home, NO_SUID_DEV, &options)
}

/// Mounts the working directory that a verification takes over from the agent's work. Returns its path.
fn keep_workdir<'a>(root: &Path, fresh: &'a FreshRoot) -> Result<Option<&'a str>, InitError> {
    let Some((path, mount)) = &fresh.workdir else { return Ok(None) };
    let step = || format!("keep the working directory {}", path.display());
    let at = open_or_make_in(root, path, ResolveFlag::empty()).step_with(step)?;
    mounts::place(mount, at).step_with(step)?;
    Ok(path.to_str())
}

/// Binds `source` to `target`, read-only.
///
/// # Errors
/// The error of the mount, with both paths.
pub(crate) fn bind_read_only(
    source: &Path,
    target: &Path,
    flags: MsFlags,
) -> Result<(), InitError> {
    mount(Some(source), target, None::<&str>, MsFlags::MS_BIND, None::<&str>)
        .step_with(|| format!("bind {} to {}", source.display(), target.display()))?;
    let flags = flags | MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    change_mount(target, flags, "make a mount read-only")
}

/// Changes the flags of a mount, or its propagation.
///
/// # Errors
/// The error of the mount, with the step and the path.
pub(super) fn change_mount(target: &Path, flags: MsFlags, step: &str) -> Result<(), InitError> {
    mount(None::<&str>, target, None::<&str>, flags, None::<&str>)
        .step_with(|| format!("{step}: {}", target.display()))
}

/// Makes a path of a kernel file system read-only, if it exists.
fn protect(path: &Path) -> Result<(), InitError> {
    if path.exists() { bind_read_only(path, path, NO_SUID_DEV_EXEC) } else { Ok(()) }
}

/// Hides a path of a kernel file system, if it exists: a file under the null device, a directory under an empty tmpfs.
fn mask(root: &Path, path: &Path) -> Result<(), InitError> {
    if !path.exists() {
        return Ok(());
    }
    let covered = if path.is_dir() {
        let flags = NO_SUID_DEV_EXEC | MsFlags::MS_RDONLY;
        mount(Some("tmpfs"), path, Some("tmpfs"), flags, Some("size=0"))
    } else {
        let null = root.join("dev/null");
        mount(Some(&null), path, None::<&str>, MsFlags::MS_BIND, None::<&str>)
    };
    covered.step_with(|| format!("hide {}", path.display()))
}
