//! Skills that are not part of the box: a layer over the skills of the rootfs, made when the first skill is loaded into the
//! running box, or at the start if the host mounts skills that the plan does not have.
//!
//! ```text
//! /run/skills               tmpfs, an eighth as large as the agent's memory limit
//! /run/skills/upper         the loaded skills, and the mount points of the host's
//! /run/skills/work          the work directory of overlayfs
//! /run/skills/root          overlayfs over /a3s of the rootfs
//! /run/skills/root/skills   all skills; `store` describes the directories next to it
//! /run/skills/shown         the same, read-only; components get copies of this mount over their skills
//! ```
//!
//! All of these mounts are in init's mount namespace, which no component reaches. A task of the host, such as loading a
//! skill, runs in a process in the agent's cgroup, so that its files are charged to the agent's memory. The process is
//! not in the agent's namespaces. It drops all capabilities before it reads the host's data.

mod show;
mod store;

use std::error::Error;
use std::ffi::OsString;
use std::fs::{File, create_dir};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use box_contract::plan::{RUN_PATH, SKILLS_PATH};
use box_contract::rules::is_name;
use box_contract::wire::SkillTask;
use box_contract::{RunPlan, SkillMode, SkillPlan};
use nix::mount::{MntFlags, umount2};
use nix::sys::prctl::set_no_new_privs;
use nix::sys::stat::{Mode, umask};
use nix::unistd::{chdir, chroot};

use crate::boot::{NO_SUID_DEV, mount_fs};
use crate::component::rootfs::bind_read_only;
use crate::component::spawn::{Streams, connect_streams};
use crate::component::{Component, caps, seccomp};
use crate::error::{InitError, Step as _};
use crate::sys;
use store::Store;

pub(crate) use show::show_layer;

/// The agent's memory limit divided by this is the size of the tmpfs for loaded skills. Together with a writable layer in memory
/// and `/dev/shm`, which have three quarters of the limit, the tmpfs is smaller than the limit.
const MEMORY_DIVISOR: u64 = 8;
/// The OOM score with which the kernel's out-of-memory killer ends a process first.
const KILL_FIRST: &str = "1000";
/// The exit status of a failed task.
const FAILED: i32 = 1;

/// Adds the skills that the host mounts to the plan, and makes the layer with a mount point for each. Without such skills, it is a
/// no-op. Returns whether the layer exists.
///
/// # Errors
/// The step that failed. A name that is malformed, or that a skill of the plan has, is an error.
pub(crate) fn add(plan: &mut RunPlan, names: Vec<String>) -> Result<bool, InitError> {
    if names.is_empty() {
        return Ok(false);
    }
    prepare(plan)?;
    let root = place("root");
    for name in names {
        let step = || format!("make a place for the host's skill {name:?}");
        if !is_name(&name) || plan.skills.iter().any(|it| it.name == name) {
            return Err("the launcher has sent something else").step_with(step);
        }
        Store::new(&root).make_mount_point(&name).step_with(step)?;
        plan.skills.push(SkillPlan { name, mode: SkillMode::Mounted, ..SkillPlan::default() });
    }
    Ok(true)
}

/// Makes the layer. If a step fails, removes it again.
///
/// # Errors
/// The step that failed.
pub(crate) fn prepare(plan: &RunPlan) -> Result<(), InitError> {
    let made = make(&place(""), plan.agent.limits.memory_bytes / MEMORY_DIVISOR);
    if made.is_err() {
        // An error of the clean-up is ignored: `made` has the error of the failed step.
        let _ = umount2(&place(""), MntFlags::MNT_DETACH);
        drop(std::fs::remove_dir(place("")));
    }
    made
}

fn make(base: &Path, size: u64) -> Result<(), InitError> {
    create_dir(base).step("make a place for skills")?;
    mount_fs("tmpfs", base, NO_SUID_DEV, &format!("mode=0755,size={size}"))?;
    let all = ["upper", "work", "root", "shown"].map(|name| base.join(name));
    for directory in &all {
        create_dir(directory).step("make a place for skills")?;
    }
    let [upper, work, root, shown] = &all;
    let below = Path::new(SKILLS_PATH).parent().unwrap_or(Path::new("/"));
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        below.display(),
        upper.display(),
        work.display()
    );
    mount_fs("overlay", root, NO_SUID_DEV, &options)?;
    let store = Store::make(root).step("make a place for skills")?;
    bind_read_only(&store.skills(), shown, NO_SUID_DEV)
}

/// Removes the unfinished files of a task that was killed.
pub(crate) fn clear() {
    // If this fails, the next task tries again.
    drop(Store::new(&place("root")).clear());
}

fn place(name: &str) -> PathBuf {
    Path::new(RUN_PATH).join("skills").join(name)
}

/// A task of the host.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    /// The task.
    pub(crate) task: SkillTask,
    /// Its arguments.
    pub(crate) arguments: &'a [OsString],
    /// The run plan.
    pub(crate) plan: &'a RunPlan,
    /// The components in which loaded skills are visible.
    pub(crate) components: &'a [Component],
}

impl Job<'_> {
    /// Performs the task. Must be called in a new process, a fork of init. Returns the exit status.
    pub(crate) fn run(&self, streams: &Streams) -> i32 {
        let done = self.connect(streams).map_err(Into::into).and_then(|()| self.perform());
        done.map_or_else(
            |error| {
                drop(writeln!(io::stderr(), "{error}"));
                FAILED
            },
            |()| 0,
        )
    }

    /// Connects the streams, and closes all of init's files.
    fn connect(&self, streams: &Streams) -> Result<(), InitError> {
        let null = File::open("/dev/null").step("open the null device")?;
        connect_streams(streams, &null).step("connect the standard streams")?;
        sys::close_all_but(&[]).step("close init's files")?;
        std::fs::write("/proc/self/oom_score_adj", KILL_FIRST).step("set the OOM score")?;
        sys::set_nice(0).step("reset the priority")?;
        umask(Mode::from_bits_truncate(0o022));
        Ok(())
    }

    fn perform(&self) -> Result<(), Box<dyn Error>> {
        if self.task == SkillTask::List {
            confine()?;
            return Ok(Store::new(Path::new("/")).list(io::stdout().lock())?);
        }
        // The lock is held until this process ends.
        let lock = File::open(place(""))?;
        lock.try_lock().map_err(|_| "another command is loading or unloading a skill")?;
        if self.task == SkillTask::Load {
            self.show()?;
        }
        confine()?;
        self.change()
    }

    /// Mounts the layer in the components that do not have it yet.
    fn show(&self) -> Result<(), InitError> {
        for component in self.components.iter().filter(|it| !it.is_lost) {
            show::show(&place("shown"), component, self.plan)
                .step_with(|| format!("show it in the {}", component.name.name()))?;
        }
        Ok(())
    }

    fn change(&self) -> Result<(), Box<dyn Error>> {
        let store = Store::new(Path::new("/"));
        let argument = self.arguments.first().map_or(Some(""), |it| it.to_str());
        let argument = argument.ok_or("its argument is not UTF-8")?;
        if self.task == SkillTask::Unload {
            return Ok(store.unload(argument)?);
        }
        let plan: SkillPlan = serde_json::from_slice(argument.as_bytes())?;
        Ok(store.load(&plan, io::stdin().lock())?)
    }
}

/// Confines this process to the layer. The process keeps only the rights of user 0 to the files there.
fn confine() -> Result<(), InitError> {
    chdir(&place("root")).step("enter the skills")?;
    chroot(".").step("enter the skills")?;
    caps::bound(0)?;
    caps::reduce(0)?;
    set_no_new_privs().step("set no_new_privs")?;
    seccomp::install()
}
