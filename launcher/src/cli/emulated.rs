//! `boxlaunch run --emulated`: the same run on the virtual host, for machines without KVM.

use std::io::{stderr, stdout};
use std::time::Duration;

use box_image::{ErrorCode, NetworkMode, RunPlan, SkillMode};
use box_layout::OpenBox;
use virtual_host::{VirtualHost, kernel, require_qemu};

use super::error::CommandError;
use super::paths;
use super::run::RunArgs;
use super::terminal::{is_quiet, notice};

/// Where the virtual host has the box.
const BOX: &str = "/box";
/// How long a run may take in real time: as good as for ever.
const TIME_LIMIT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
const INTERACTIVE: &str = "--interactive";
const JAIL: &str = "--jail";
const VOLUME: &str = "--volume";
const PUBLISH: &str = "--publish";
const TASK: &str = "--task";
const RESULT: &str = "--result";
/// The notice before the wait.
const SLOW: &str = "boxlaunch: running on an emulated CPU: slow, and its times are virtual, one nanosecond for \
    each instruction\n";

/// Runs an opened box as `args` say, and returns the exit code.
pub(super) fn run(args: &RunArgs, opened: &OpenBox) -> Result<u8, CommandError> {
    refuse_what_has_no_host(args)?;
    let cache = paths::cache()?;
    require_qemu()?;
    let named = args.host_kernel.as_deref();
    let kernel = kernel::choose(named, &cache, |command| {
        notice(&format!("boxlaunch: fetching the virtual host's kernel: {command}\n"));
    })?;
    let host = VirtualHost::new(&kernel, paths::SELF)
        .for_guest(args.size(opened.plan()).memory_mib)
        .time_limit(TIME_LIMIT)
        .disk_of(&opened.directory, opened.files(), BOX);
    if let Some(warning) = kernel.warning() {
        notice(&format!("boxlaunch: {warning}\n"));
    }
    if !is_quiet() {
        notice(SLOW);
    }
    let output = host.run_live(&args.words(BOX), &mut stdout(), &mut stderr())?;
    Ok(u8::try_from(output.status).unwrap_or(u8::MAX))
}

/// Refuses a box with secrets, which have no way into the virtual host.
pub(super) fn refuse_secrets(plan: &RunPlan) -> Result<(), CommandError> {
    if plan.secrets.is_empty() {
        return Ok(());
    }
    let help = "start it on a machine with KVM; or put `secret` into a profile, and build a box without that";
    let message =
        "a box with secrets cannot be started with --emulated, which has no way to hand them over";
    Err(CommandError::new((ErrorCode::Usage, help), message))
}

/// Refuses directories of this host, which the virtual host does not see.
pub(super) fn refuse_shares(args: &RunArgs, plan: &RunPlan) -> Result<(), CommandError> {
    let is_mounted = plan.skills.iter().any(|it| it.mode == SkillMode::Mounted);
    if args.shares.is_empty() && plan.shares.is_empty() && !is_mounted {
        return Ok(());
    }
    let help = "start it on a machine with KVM; or leave --share out, or put `share` into a profile, and build a box \
                without that";
    let message = "a box that sees directories of this host cannot be started with --emulated";
    Err(CommandError::new((ErrorCode::Usage, help), message))
}

/// Refuses a box with a network, which the virtual host does not have.
pub(super) fn refuse_network(plan: &RunPlan) -> Result<(), CommandError> {
    if plan.network.mode == NetworkMode::None {
        return Ok(());
    }
    let help = "start it on a machine with KVM; or put `network` into a profile, and build a box without that";
    let message =
        "a box with a network cannot be started with --emulated: the emulated machine has none";
    Err(CommandError::new((ErrorCode::Usage, help), message))
}

/// Refuses the options that lead out of the virtual host.
fn refuse_what_has_no_host(args: &RunArgs) -> Result<(), CommandError> {
    let used = [
        ("--agent-socket", args.agent_socket.is_some()),
        ("--console", args.console.is_some()),
        (VOLUME, !args.volumes.is_empty()),
        (PUBLISH, !args.published.is_empty()),
        (TASK, args.task.is_some()),
        (RESULT, args.result.is_some()),
        (JAIL, args.jail.is_some()),
        (INTERACTIVE, args.options.interactive),
    ];
    let Some((option, _)) = used.into_iter().find(|(_, is_used)| *is_used) else { return Ok(()) };
    if option == INTERACTIVE {
        let help =
            "let the command produce its input, as in `-- sh -c 'printf \"b\\na\\n\" | sort'`";
        let message = "--interactive cannot be used with --emulated: standard input does not reach the \
                       emulated machine";
        return Err(CommandError::new((ErrorCode::Usage, help), message));
    }
    let help = if option == JAIL {
        "leave it out; the jail is around the machine within QEMU, and QEMU itself has all your rights: do not start \
         boxes of strangers so"
    } else if [PUBLISH, TASK, RESULT].contains(&option) {
        "start it on a machine with KVM; or leave it out"
    } else if option == VOLUME {
        "start it on a machine with KVM; or leave it out: then nothing that the box writes is kept"
    } else {
        "leave it out; with --json the report has what the programs wrote"
    };
    let message = format!(
        "{option} cannot be used with --emulated: the box runs in a machine within a machine"
    );
    Err(CommandError::new((ErrorCode::Usage, help), message))
}
