//! Disks: file systems that the launcher has made, and the scratch disks among them, each mounted once and shown in its
//! components.

use std::fs::create_dir;
use std::path::{Path, PathBuf};

use box_contract::plan::RUN_PATH;
use box_contract::{ComponentName, RunPlan};
use nix::mount::{MsFlags, mount};

use crate::boot::NO_SUID_DEV;
use crate::error::{InitError, Step as _};

/// The virtio disk of the first one: the rootfs comes before it.
const FIRST: u8 = b'b';
/// A failed write is the program's to see, and no reason to end the machine.
const OPTIONS: &str = "errors=remount-ro";

/// Mounts the disks below [`RUN_PATH`], where no component sees them.
///
/// # Errors
/// The mount's, naming the disk.
pub(crate) fn mount_all(plan: &RunPlan) -> Result<(), InitError> {
    for (at, disk) in (0..).zip(&plan.scratch) {
        let step = || format!("mount the scratch disk {:?}", disk.name);
        mount_disk(at, &place(at)).step_with(step)?;
    }
    Ok(())
}

/// Mounts a disk of the box or of the host, by its number, in a new directory.
pub(crate) fn mount_disk(number: u8, place: &Path) -> std::io::Result<()> {
    let device = format!("/dev/vd{}", char::from(FIRST.saturating_add(number)));
    create_dir(place)?;
    let flags = NO_SUID_DEV | MsFlags::MS_NOATIME;
    Ok(mount(Some(device.as_str()), place, Some("ext4"), flags, Some(OPTIONS))?)
}

/// Mounts the disks of a component in its root. Their places are those of `/boxbuild/system`.
///
/// # Errors
/// The mount's, naming the disk.
pub(crate) fn show(root: &Path, plan: &RunPlan, component: ComponentName) -> Result<(), InitError> {
    let own = (0..).zip(&plan.scratch).filter(|(_, it)| it.scope.includes(component));
    for (at, disk) in own {
        let target = root.join(disk.guest.trim_start_matches('/'));
        mount(Some(&place(at)), &target, None::<&str>, MsFlags::MS_BIND, None::<&str>)
            .step_with(|| format!("mount the scratch disk {:?} on {}", disk.name, disk.guest))?;
    }
    Ok(())
}

fn place(at: u8) -> PathBuf {
    Path::new(RUN_PATH).join(format!("scratch-{at}"))
}
