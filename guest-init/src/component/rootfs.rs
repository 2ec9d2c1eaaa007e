//! A component's root: an overlay of the image, the box's system files and a scratch layer, with the kernel's file
//! systems in it.
//!
//! ```text
//! /run/agent          tmpfs, half as large as the component's memory limit
//! /run/agent/upper    the component's changes
//! /run/agent/work     the work directory of overlayfs
//! /run/agent/root     overlayfs over /boxbuild/system/agent over /roots/agent: becomes the component's /
//! ```
//!
//! In the layout "merged" both components share the lower layer `/roots/merged`. Each has a separate scratch layer, so
//! neither sees the other's changes.
//!
//! Files on a tmpfs are charged to the component's memory and cannot be reclaimed. If they could fill the memory limit,
//! a program that writes too much would not get "no space left". The kernel would kill one process after the other
//! without freeing memory. So the scratch layer and `/dev/shm` together are smaller than the limit.
//!
//! Everything is mounted before the component's first program runs, so that the component cannot replace a path
//! meanwhile. Mounts that are shared with the agent, which already runs, are reached without following a link (see
//! `mounts`). The mount points are in `/boxbuild/system`, which `boxbuild build` makes. `boxbuild build` refuses an
//! image that has a symbolic link at one of them.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use box_contract::plan::{BOX_EXEC_PATH, EXEC_SOCKET_PATH, RUN_PATH, SKILLS_PATH, system_path};
use box_contract::{ComponentName, ComponentPlan};
use nix::mount::{MsFlags, mount};
use nix::unistd::{chdir, chroot};

use super::holder::HolderArgs;
use super::{dev, workdir};
use crate::boot::{self, NO_SUID_DEV, NO_SUID_DEV_EXEC, mount_fs};
use crate::disks;
use crate::error::{InitError, Step as _};
use crate::secrets;
use crate::serve::calls;
use crate::{logs, task};

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

/// The memory limit divided by this is the size of the scratch layer.
const SCRATCH_DIVISOR: u64 = 2;
/// The memory limit divided by this is the size of `/dev/shm`.
const SHM_DIVISOR: u64 = 4;

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
    let root = mount_overlay(args.name, plan)?;
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
    secrets::write(&args.secrets.take(), args.name, &plan.user)
}

/// Mounts the overlay of the image, the box's system files and the scratch layer. Returns the overlay's path.
fn mount_overlay(name: ComponentName, plan: &ComponentPlan) -> Result<PathBuf, InitError> {
    let base = Path::new(RUN_PATH).join(name.name());
    std::fs::create_dir(&base).step("make the scratch directory")?;
    let size = format!("mode=0700,size={}", plan.limits.memory_bytes / SCRATCH_DIVISOR);
    mount_fs("tmpfs", &base, NO_SUID_DEV, &size)?;
    let [upper, work, root] = ["upper", "work", "root"].map(|directory| base.join(directory));
    for directory in [&upper, &work, &root] {
        std::fs::create_dir(directory).step("make the scratch layer")?;
    }
    copy_owner_and_mode(Path::new(&plan.root), &upper).step("give the root its mode")?;
    let below = format!("{}:{}", system_path(name), plan.root);
    let options =
        format!("lowerdir={below},upperdir={},workdir={}", upper.display(), work.display());
    mount_fs("overlay", &root, MsFlags::MS_NODEV, &options)?;
    Ok(root)
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
    if args.skills {
        bind_read_only(Path::new(SKILLS_PATH), &below(SKILLS_PATH), NO_SUID_DEV)?;
    }
    args.host.show(root, args.run, args.name)?;
    if args.run.task.is_some() && args.name == ComponentName::Agent {
        task::show(root)?;
    }
    if let (Some(logs), ComponentName::Agent) = (&args.run.logs, args.name) {
        logs::show(logs, root)?;
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

fn change_mount(target: &Path, flags: MsFlags, step: &str) -> Result<(), InitError> {
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
