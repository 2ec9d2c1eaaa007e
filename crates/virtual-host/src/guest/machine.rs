//! Prepares the virtual host: file systems, kernel modules, disks, and the root directory for commands.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rustix::mount::{
    MountFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, mount_move, unmount,
};
use rustix::process::{chdir, chroot, setpriority_process};
use thread_priority::unix::{set_thread_priority_and_policy, thread_native_id};
use thread_priority::{NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy};

use crate::plan::{CONTENT, HOME, MODULES, Mount, OUT};
use crate::{HostError, Result};

/// The file systems of the kernel: type and mount point.
const SYSTEM: [(&str, &str); 5] = [
    ("devtmpfs", "/dev"),
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("cgroup2", "/sys/fs/cgroup"),
    ("devpts", "/dev/pts"),
];
/// The mount point of debugfs, which has the scheduler's settings.
const DEBUG: &str = "/sys/kernel/debug";
const TURNS: [(&str, &str); 2] = [("sched/features", "HRTICK"), ("sched/base_slice_ns", "300000")];
/// The device, the group and the mode for KVM. On other hosts, udev sets the same.
const KVM: (&str, u32, u32) = ("/dev/kvm", 104, 0o660);
/// The directories that programs expect.
const DIRECTORIES: [&str; 6] = ["/dev/shm", "/tmp", "/run", "/root", "/usr/bin", OUT];
/// The interval and the number of attempts for finding the disks.
const POLL: (Duration, u32) = (Duration::from_millis(1), 5000);

/// Mounts the kernel's file systems and makes the usual directories.
pub(super) fn mount_system() -> Result<()> {
    for (kind, at) in SYSTEM {
        make_directory(Path::new(at))?;
        mount(kind, at, kind, MountFlags::empty(), None)
            .map_err(HostError::guest(format!("mount {at}")))?;
    }
    for directory in DIRECTORIES {
        make_directory(Path::new(directory))?;
    }
    ["/tmp", "/dev/shm"].into_iter().try_for_each(open_to_all)
}

/// Sets the mode of a directory to 1777, like that of `/tmp`.
fn open_to_all(directory: &str) -> Result<()> {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o1777))
        .map_err(HostError::guest(format!("change the mode of {directory}")))
}

/// Loads all modules of the initramfs in the order of their names.
pub(super) fn load_modules() -> Result<()> {
    for path in children(Path::new(MODULES))? {
        let module = fs::read(&path).map_err(HostError::guest("read a module"))?;
        rustix::system::init_module(&module, c"")
            .map_err(HostError::guest(format!("load {}", path.display())))?;
    }
    Ok(())
}

/// Gives a group access to KVM, if the device exists.
pub(super) fn share_kvm() -> Result<()> {
    let (device, group, mode) = KVM;
    if !Path::new(device).exists() {
        return Ok(());
    }
    chown(device, None, Some(group))
        .and_then(|()| fs::set_permissions(device, fs::Permissions::from_mode(mode)))
        .map_err(HostError::guest("share KVM"))
}

/// Sets the policy `SCHED_BATCH` ([sched(7)](https://man7.org/linux/man-pages/man7/sched.7.html)) for this thread and
/// all processes that it starts: a thread that is woken runs when the running one waits or its time slice ends.
/// Otherwise a thread of a VMM interrupts the box's CPU or not, depending on the elapsed part of a time slice, and
/// the starts of one box differ by a millisecond or two.
pub(super) fn schedule_as_batch() -> Result<()> {
    let batch = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Batch);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, batch)
        .map_err(|error| HostError::guest("schedule as batch")(io::Error::other(error)))?;
    // `set_thread_priority_and_policy` also sets the nice value, and cannot set it to 0.
    setpriority_process(None, 0).map_err(HostError::guest("set its nice value"))?;
    shorten_turns()
}

/// Ends time slices of 0.3 ms with a timer. Otherwise a time slice ends at a tick of the kernel, every 4 ms, and a CPU of a box
/// that spins until its host answers must wait for the tick. A kernel before 6.6 has no setting for the length.
fn shorten_turns() -> Result<()> {
    let failed = |source| HostError::guest("shorten the scheduler's turns")(source);
    let at = Path::new(DEBUG);
    mount("debugfs", at, "debugfs", MountFlags::empty(), None)
        .map_err(|error| failed(error.into()))?;
    for (file, value) in TURNS {
        match OpenOptions::new().write(true).open(at.join(file)) {
            Ok(mut setting) => setting.write_all(value.as_bytes()).map_err(failed)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
    }
    unmount(at, UnmountFlags::empty()).map_err(|error| failed(error.into()))
}

/// Mounts the disks, and returns the device of the first one, which is for the result.
pub(super) fn mount_disks(mounts: &[Mount]) -> Result<PathBuf> {
    let mut disks = disks(mounts.len() + 1)?.into_iter();
    let result = disks.next().ok_or_else(|| missing("a disk for the result"))?;
    for (number, (disk, to)) in disks.zip(mounts).enumerate() {
        mount_disk(number, &disk, to)?;
    }
    Ok(result)
}

/// Waits for `count` memory-backed disks, which the kernel detects asynchronously after its modules are loaded. Returns
/// their devices, sorted by their addresses, because the kernel numbers them in any order.
fn disks(count: usize) -> Result<Vec<PathBuf>> {
    for _ in 0..POLL.1 {
        let mut found: Vec<_> = children(Path::new("/sys/block"))?
            .into_iter()
            .filter_map(|block| Some((address(&block)?, device(&block)?)))
            .collect();
        if found.len() >= count {
            found.sort();
            return Ok(found.into_iter().map(|(_, device)| device).collect());
        }
        sleep(POLL.0);
    }
    Err(missing("its disks"))
}

fn missing(what: &str) -> HostError {
    HostError::guest(format!("find {what}"))(std::io::Error::from(std::io::ErrorKind::NotFound))
}

/// Returns the physical address of a memory-backed disk. `None` for other disks.
fn address(block: &Path) -> Option<u64> {
    let text = fs::read_to_string(block.join("device/resource")).ok()?;
    u64::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
}

fn device(block: &Path) -> Option<PathBuf> {
    Some(Path::new("/dev").join(block.file_name()?)).filter(|device| device.exists())
}

fn mount_disk(number: usize, disk: &Path, to: &Mount) -> Result<()> {
    let path = Path::new(&to.path);
    if !to.is_file {
        return mount_erofs(disk, path);
    }
    let hidden = Path::new(HOME).join(format!("disk-{number}"));
    mount_erofs(disk, &hidden)?;
    make_directory(path.parent().unwrap_or(path))?;
    fs::write(path, []).map_err(HostError::guest(format!("make {}", path.display())))?;
    mount_bind(hidden.join(CONTENT), path)
        .map_err(HostError::guest(format!("mount {}", path.display())))
}

fn mount_erofs(disk: &Path, at: &Path) -> Result<()> {
    make_directory(at)?;
    mount(disk, at, "erofs", MountFlags::RDONLY, None).map_err(HostError::guest(format!(
        "mount {} at {}",
        disk.display(),
        at.display()
    )))
}

/// Makes a bind mount of the initramfs the root, because
/// [pivot_root(2)](https://man7.org/linux/man-pages/man2/pivot_root.2.html) refuses to replace the initramfs itself.
pub(super) fn enter_root() -> Result<()> {
    let root = Path::new(HOME).join("root");
    make_directory(&root)?;
    let enter = || {
        mount_bind_recursive("/", &root)?;
        chdir(&root)?;
        mount_move(".", "/")?;
        chroot(".")?;
        chdir("/root")
    };
    enter().map_err(HostError::guest("enter its root"))
}

fn make_directory(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(HostError::guest(format!("make {}", path.display())))
}

fn children(folder: &Path) -> Result<Vec<PathBuf>> {
    let what = format!("list {}", folder.display());
    let entries = fs::read_dir(folder).map_err(HostError::guest(what))?;
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    Ok(paths)
}
