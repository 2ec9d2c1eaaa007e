#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

pub mod boot;
mod bridge;
pub mod cap_http;
mod cgroup;
pub mod channel;
mod component;
mod connection;
pub mod console;
mod disks;
pub mod error;
mod exec_helper;
mod fill;
mod id_map;
mod inside;
pub mod isolation;
mod logs;
mod mounts;
mod network;
pub mod plan;
mod sandboxed;
mod secrets;
mod serve;
mod skills;
mod sockets;
pub mod sys;
mod task;
pub mod time;
mod variables;
mod wait;

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use box_contract::wire::INIT_MARK;
use box_contract::{ComponentName, TaskPlan};
use nix::sys::prctl::set_dumpable;
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Gid, setresgid};

use boot::Given;
use channel::Channel;
use component::Starter;
use error::{InitError, Step as _};
use logs::Logs;
use mounts::HostMounts;
use serve::autostart::Autostart;
use task::TaskFiles;
use time::Clock;

/// The nice value of init and the holders. With it, neither a busy workload nor the kernel's deferred work, which
/// continues while init starts, delays a command or a stop.
const FIRST_IN_LINE: i32 = -20;
/// The saved group of init, the holders and the health checks: by convention, `nogroup`. If all three of their groups
/// were the same as those of a workload that runs as root, the workload could change their limits
/// ([prlimit(2)](https://man7.org/linux/man-pages/man2/prlimit.2.html)), and so end them. A workload can still lower
/// the priority of its component's holder, which delays only this component.
const SAVED_GROUP: u32 = 65_534;
/// The OOM score with which the kernel's out-of-memory killer spares a process.
const NEVER_KILL: &str = "-1000";

/// Runs the box, or a command for the agent if the program's name is `box-exec`. `clock` must have been started by the
/// program's first instruction.
pub fn main(clock: Clock) -> ExitCode {
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    let is_helper = std::path::Path::new(&name).file_name() == Some(exec_helper::NAME.as_ref());
    if is_helper && std::process::id() != 1 {
        return exec_helper::main(arguments);
    }
    run_as_init(|channel| run(clock, channel, Given::read))
}

/// Runs `body` as PID 1, and then ends the VM, even if `body` fails or panics.
///
/// `body` stores its channel in the argument, so that a failure can be sent through it. If the program is not PID 1,
/// the function only prints [`INIT_MARK`] and returns. So the mark is in the program, where `boxbuild` looks for it.
pub fn run_as_init(body: impl FnOnce(&mut Option<Channel>) -> Result<(), InitError>) -> ExitCode {
    if std::process::id() != 1 {
        // In a separate call, so that the mark is in the program unchanged.
        drop(std::io::stderr().write_all(INIT_MARK.as_bytes()));
        drop(std::io::stderr().write_all(b": it runs as the first process of a box\n"));
        return ExitCode::from(2);
    }
    console::print_panics();
    let mut channel = None;
    let result = catch_unwind(AssertUnwindSafe(|| body(&mut channel)));
    let error = result.map_or_else(|panic| Some(panicked(panic.as_ref())), Result::err);
    if let Some(error) = error {
        console::say(&error.to_string());
        // If the launcher is gone, the console has the error.
        channel.as_mut().map(|channel| channel.send_failed(&error).ok());
    }
    // The launcher may end the VM as soon as the channel is closed.
    nix::unistd::sync();
    // Dropping the channel closes it, and waits until the VMM has received all messages.
    drop(channel);
    power_off()
}

/// Ends the VM.
///
/// Under libkrun a *reboot* ends the VMM (the kernel resets through the keyboard controller, `reboot=k`). Powering off
/// would only halt the virtual CPU.
fn power_off() -> ! {
    let error: nix::Result<Infallible> = reboot(RebootMode::RB_AUTOBOOT);
    console::say(&format!("power off: {error:?}"));
    // Reached only without CAP_SYS_BOOT, so never as PID 1. The end of PID 1 makes the kernel panic, and the kernel's
    // command line makes a panic reboot at once.
    std::process::abort()
}

fn panicked(panic: &(dyn Any + Send)) -> InitError {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    InitError::new("run init", format!("panic: {}", text.unwrap_or("of an unknown kind")))
}

/// Runs the box with the data that `give` returns. `give` is called once the devices exist.
///
/// # Errors
/// The step that failed.
pub fn run(
    clock: Clock,
    slot: &mut Option<Channel>,
    give: impl FnOnce() -> Result<Given, InitError>,
) -> Result<(), InitError> {
    sys::set_nice(FIRST_IN_LINE).step("raise init's priority")?;
    boot::mount_devices()?;
    let given = give()?;
    boot::mount_rootfs()?;
    boot::keep_own_file()?;
    boot::switch_root()?;
    boot::mount_kernel_filesystems()?;
    boot::loopback_up()?;
    let channel = slot.insert(Channel::open(given.nonce)?);
    let mut plan = plan::of_config(&given.config)?;
    variables::receive(channel, &mut plan)?;
    let secrets = RefCell::new(secrets::receive(channel, &mut plan)?);
    let mut host = given.mounts_follow.then(|| mounts::receive(channel)).transpose()?;
    let task = host.as_mut().and_then(|it| it.mounts.task.take());
    plan.task = TaskPlan::of_run(plan.task.as_ref(), task);
    let of_host = host.as_mut().map(|it| std::mem::take(&mut it.mounts.skills));
    protect_init()?;
    let signals = wait::child_signals().step("watch init's children")?;
    cgroup::prepare()?;
    // Must precede `forbid_user_namespaces`, because the id maps of mounts are user namespaces.
    let host = host.map(|it| HostMounts::prepare(it, &plan)).transpose()?.unwrap_or_default();
    let sockets = sockets::listen(host.sockets(), &plan)?;
    boot::forbid_user_namespaces()?;
    boot::restrict_tracing()?;
    boot::raise_limits()?;
    disks::mount_all(&plan)?;
    let before = u8::try_from(plan.scratch.len() + host.volumes()).unwrap_or(u8::MAX);
    let has_disk = disks::mount_roots_disk(before)?;
    network::shared::set_up(&plan.network)?;
    let task = plan.task.as_ref().map(|it| TaskFiles::make(it, &plan.agent.user)).transpose()?;
    let logs = plan.logs.as_ref().map(|it| Logs::make(it, &plan.agent.user)).transpose()?;
    cap_http::make_directories(&plan)?;
    let has_skill_layer = skills::add(&mut plan, of_host.unwrap_or_default())?;
    let calls =
        plan.business.as_ref().map(|_| serve::calls::listen(&plan.agent.user)).transpose()?;
    let starter = Starter { run: &plan, secrets, host, has_disk, has_skill_layer };
    let components = vec![starter.start(ComponentName::Agent, &plan.agent)?];
    serve::run(serve::Machine {
        clock,
        channel,
        plan: &plan,
        components,
        starter: Some(starter),
        carriers: BTreeMap::new(),
        sockets,
        calls,
        task,
        logs: logs.unwrap_or_default(),
        autostart: plan.business.as_ref().and_then(Autostart::of),
        signals,
        has_skill_layer,
    })
}

/// Sets properties that all processes of init inherit: unreadable memory, limits that workloads cannot change,
/// protection from the out-of-memory killer, and no umask.
fn protect_init() -> Result<(), InitError> {
    set_dumpable(false).step("hide init's memory")?;
    let root = Gid::from_raw(0);
    setresgid(root, root, Gid::from_raw(SAVED_GROUP)).step("set the saved group")?;
    std::fs::write("/proc/self/oom_score_adj", NEVER_KILL).step("set the OOM score")?;
    umask(Mode::empty());
    Ok(())
}
