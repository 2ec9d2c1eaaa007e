//! The disks of the box, in the order of their devices:
//!
//! ```text
//! /dev/vda       the rootfs
//! /dev/vdb …     the scratch disks of the plan
//!          …     the volumes
//!          …     the disk for the components' roots, if the launcher has given one
//! ```
//!
//! Each scratch disk is mounted once and then bound in the roots of the components in its scope. [`mount_disk`] mounts
//! volumes, too.

use std::fs::create_dir;
use std::path::{Path, PathBuf};

use box_contract::plan::RUN_PATH;
use box_contract::{ComponentName, RunPlan};
use nix::mount::{MsFlags, mount};

use crate::boot::NO_SUID_DEV;
use crate::error::{InitError, Step as _};

/// The letter of the first scratch disk's device, `/dev/vdb`. The rootfs is `/dev/vda`.
const FIRST: u8 = b'b';
/// The mount point of the disk for the components' roots, which no component sees.
pub(crate) const ROOTS_DISK: &str = "/run/disk";
/// After an error the file system becomes read-only. So programs get an error, and the VM continues.
/// Nothing is read in advance: most disks are new and empty.
const OPTIONS: &str = "errors=remount-ro,no_prefetch_block_bitmaps";

/// Mounts the scratch disks below [`RUN_PATH`], which no component sees.
///
/// # Errors
/// The error of the mount, with the disk.
pub(crate) fn mount_all(plan: &RunPlan) -> Result<(), InitError> {
    for (at, disk) in (0..).zip(&plan.scratch) {
        let step = || format!("mount the scratch disk {:?}", disk.name);
        mount_disk(at, &place(at)).step_with(step)?;
    }
    Ok(())
}

/// Mounts the disk for the components' roots at [`ROOTS_DISK`]. `number` is the number of disks before it. Returns whether
/// the launcher has given one.
///
/// # Errors
/// The error of the mount.
pub(crate) fn mount_roots_disk(number: u8) -> Result<bool, InitError> {
    let is_there = Path::new(&device(number)).exists();
    if is_there {
        mount_disk(number, Path::new(ROOTS_DISK)).step("mount the box's disk")?;
    }
    Ok(is_there)
}

/// Mounts the disk with this number at `place`, a new directory. The numbers of the volumes follow those of the scratch
/// disks.
pub(crate) fn mount_disk(number: u8, place: &Path) -> std::io::Result<()> {
    let device = device(number);
    create_dir(place)?;
    let flags = NO_SUID_DEV | MsFlags::MS_NOATIME;
    Ok(mount(Some(device.as_str()), place, Some("ext4"), flags, Some(OPTIONS))?)
}

/// Mounts the scratch disks of a component in its root. The mount points are in `/boxbuild/system`.
///
/// # Errors
/// The error of the mount, with the disk.
pub(crate) fn show(root: &Path, plan: &RunPlan, component: ComponentName) -> Result<(), InitError> {
    let own = (0..).zip(&plan.scratch).filter(|(_, it)| it.scope.includes(component));
    for (at, disk) in own {
        let target = root.join(disk.guest.trim_start_matches('/'));
        mount(Some(&place(at)), &target, None::<&str>, MsFlags::MS_BIND, None::<&str>)
            .step_with(|| format!("mount the scratch disk {:?} on {}", disk.name, disk.guest))?;
    }
    Ok(())
}

fn device(number: u8) -> String {
    format!("/dev/vd{}", char::from(FIRST.saturating_add(number)))
}

fn place(at: u8) -> PathBuf {
    Path::new(RUN_PATH).join(format!("scratch-{at}"))
}
