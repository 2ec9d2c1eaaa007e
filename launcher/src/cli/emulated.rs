//! `boxlaunch run --emulated`: the same run on the virtual host, which needs no KVM.

use std::env;
use std::io::{stderr, stdout};
use std::time::Duration;

use box_contract::{ErrorCode, NetworkMode, RunPlan, SkillMode};
use box_layout::OpenBox;
use virtual_host::{HostError, VirtualHost, kernel, require_qemu};

use super::error::Failure;
use super::given_file;
use super::paths;
use super::run::{AgentChoice, NetworkChoice, PublishOption, RunArgs};
use super::terminal::{foreign, is_quiet, notice};
use super::variables::Assigned;

/// The path of the box on the virtual host.
const BOX: &str = "/box";
/// The limit of a run in real time, which is longer than any useful run.
const MAX_TIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The notice before the start.
const SLOW: &str = "boxlaunch: running on an emulated CPU: slow, and its times are virtual, one nanosecond for \
    each instruction\n";

/// Runs an opened box with the options `args`, and returns the exit code.
pub(super) fn run(args: &RunArgs, opened: &OpenBox, env: &[Assigned]) -> Result<u8, Failure> {
    refuse_what_has_no_host(args)?;
    refuse_bytes(args, env)?;
    let named = args.host_kernel.as_deref();
    if let Some(path) = named {
        given_file::open(path, |error| given_file::unread("the kernel", path, &error))?;
    }
    let cache = paths::cache()?;
    require_qemu()?;
    let kernel = kernel::choose(named, &cache, |command| {
        notice(&format!("boxlaunch: fetching the virtual host's kernel: {command}\n"));
    })?;
    let host = VirtualHost::new(&kernel, paths::SELF)
        .for_guest(args.size(opened.plan()).memory_mib)
        .time_limit(MAX_TIME)
        .disk_of(opened.files(), BOX);
    if let Some(warning) = kernel.warning() {
        notice(&format!("boxlaunch: {warning}\n"));
    }
    if !is_quiet() {
        notice(&format!("{SLOW}boxlaunch: {}\n", host.machine()?));
    }
    let (mut out, mut err) = (foreign(stdout(), args.raw), foreign(stderr(), args.raw));
    let output = host.run_live(&args.words(BOX, env), &mut out, &mut err).map_err(by_name)?;
    Ok(u8::try_from(output.status).unwrap_or(u8::MAX))
}

/// Replaces `/proc/self/exe` in an error by the real path of this program.
fn by_name(error: HostError) -> HostError {
    match (error, env::current_exe()) {
        (HostError::Dynamic(_), Ok(own)) => HostError::Dynamic(own),
        (error, _) => error,
    }
}

/// Whether a run works with `--emulated`, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Emulation {
    /// The command that starts the same box with `--emulated`.
    Command(String),
    /// The option or the declaration that `--emulated` excludes.
    Excluded(&'static str),
}

/// Returns whether the run works with `--emulated`, too. `None` within the virtual host.
pub(super) fn emulation(args: &RunArgs, plan: &RunPlan) -> Option<Emulation> {
    if args.nested {
        return None;
    }
    let command = || format!("boxlaunch run --emulated {}", args.subject.shell_words());
    Some(excluded(args, plan).map_or_else(|| Emulation::Command(command()), Emulation::Excluded))
}

/// Returns the first option or declaration of a run that `--emulated` excludes.
fn excluded(args: &RunArgs, plan: &RunPlan) -> Option<&'static str> {
    let parsed = parsed(args);
    let lead_out = lead_out(args).map(|(option, is_used, _)| (option, is_used));
    let declared = [
        ("secrets", refuse_secrets(plan).is_err()),
        ("shares", refuse_shares(args, plan).is_err()),
        ("a network", refuse_network(args, plan).is_err()),
        ("an SSH agent", refuse_ssh_agent(args, plan).is_err()),
        ("volumes or ports", refuse_declared(plan).is_err()),
    ];
    let all = parsed.into_iter().chain(lead_out).chain(declared);
    all.into_iter().find(|(_, is_used)| *is_used).map(|(what, _)| what)
}

/// Lists the options that the parser refuses beside `--emulated`, and whether they are used. Hidden ones are left out.
const fn parsed(args: &RunArgs) -> [(&'static str, bool); 7] {
    [
        ("--detach", args.detach),
        ("--name", args.name.is_some()),
        ("--max-scratch", args.max_scratch.is_some()),
        ("--lifetime", args.lifetime.is_some()),
        ("--with-parent", args.with_parent),
        ("--clean-stop", args.clean_stop),
        ("--proxy", args.given.proxy.is_some()),
    ]
}

/// Refuses a box with secrets, which cannot be passed to the virtual host.
pub(super) fn refuse_secrets(plan: &RunPlan) -> Result<(), Failure> {
    if plan.secrets.is_empty() {
        return Ok(());
    }
    let help = "start it on a host with KVM; or put `secret` and `service` into a profile, and build a box without that";
    let message =
        "a box with secrets cannot be started with --emulated, which has no way to hand them over";
    Err(Failure::new((ErrorCode::Usage, help), message))
}

/// Refuses words that are not UTF-8, because the command line of the virtual host is text.
fn refuse_bytes(args: &RunArgs, env: &[Assigned]) -> Result<(), Failure> {
    let has_bytes = args.command.iter().any(|it| it.to_str().is_none())
        || args.options.has_bytes()
        || env.iter().any(Assigned::has_bytes);
    if !has_bytes {
        return Ok(());
    }
    let message = "--emulated passes on a command of UTF-8 alone, and this one has other bytes";
    Err(Failure::new((ErrorCode::Usage, "start it on a host with KVM"), message))
}

/// Refuses shares, because the virtual host has none of this host's directories.
pub(super) fn refuse_shares(args: &RunArgs, plan: &RunPlan) -> Result<(), Failure> {
    let is_mounted = plan.skills.iter().any(|it| it.mode == SkillMode::Mounted);
    let are_given = !args.given.shares.is_empty() || !args.given.skill_dirs.is_empty();
    if !are_given && plan.shares.is_empty() && !is_mounted {
        return Ok(());
    }
    let help = "start it on a host with KVM; or leave --share and --skills out, or put `share` into a profile, and build a box \
                without that";
    let message = "a box that sees directories of this host cannot be started with --emulated";
    Err(Failure::new((ErrorCode::Usage, help), message))
}

/// Refuses the volumes and the published ports that a box declares, because nothing outside of the virtual host has them.
pub(super) fn refuse_declared(plan: &RunPlan) -> Result<(), Failure> {
    let (what, declaration) = match (plan.volumes.is_empty(), plan.publish.is_empty()) {
        (false, _) => ("a volume", "volume"),
        (true, false) => ("a published port", "publish"),
        (true, true) => return Ok(()),
    };
    let help = format!(
        "start it on a host with KVM; or put `{declaration}` into a profile, and build a box without that"
    );
    let message = format!("a box that declares {what} cannot be started with --emulated");
    Err(Failure::new((ErrorCode::Usage, help), message))
}

/// Refuses a box with a network, because the virtual host has none. With `--network none`, the box is accepted.
pub(super) fn refuse_network(args: &RunArgs, plan: &RunPlan) -> Result<(), Failure> {
    let has_none = plan.network.mode == NetworkMode::None && plan.services.is_empty();
    if has_none || args.given.network == NetworkChoice::None {
        return Ok(());
    }
    let help = "start it on a host with KVM; or without its network: `--network none`";
    let message =
        "a box with a network cannot be started with --emulated: the emulated host has none";
    Err(Failure::new((ErrorCode::Usage, help), message))
}

/// Refuses a box with the SSH agent of its host, to which the virtual host has no connection. With `--ssh-agent=none`, the box is
/// accepted.
pub(super) fn refuse_ssh_agent(args: &RunArgs, plan: &RunPlan) -> Result<(), Failure> {
    if plan.ssh_agent.is_none() || args.given.ssh_agent == Some(AgentChoice::None) {
        return Ok(());
    }
    let help = "start it on a host with KVM; or without the agent: `--ssh-agent=none`";
    let message = "a box with the SSH agent of its host cannot be started with --emulated";
    Err(Failure::new((ErrorCode::Usage, help), message))
}

/// Refuses the options that need something outside the virtual host, such as a socket or a terminal.
pub(super) fn refuse_what_has_no_host(args: &RunArgs) -> Result<(), Failure> {
    let used = lead_out(args).into_iter().find(|(_, is_used, _)| *is_used);
    let Some((option, _, help)) = used else { return Ok(()) };
    let message = format!(
        "{option} cannot be used with --emulated: the box runs in a VM within the emulated host"
    );
    Err(Failure::new((ErrorCode::Usage, help), message))
}

/// Lists the options that need something outside the virtual host: the name, whether it is used, and the alternative.
fn lead_out(args: &RunArgs) -> [(&'static str, bool, &'static str); 9] {
    let reported = "leave it out; with --json the report has what the programs wrote";
    let elsewhere = "start it on a host with KVM; or leave it out";
    [
        ("--agent-socket", args.agent_socket.is_some(), elsewhere),
        ("--console", args.console.is_some(), reported),
        (
            "--volume",
            !args.given.volumes.is_empty(),
            "start it on a host with KVM; or leave it out: then nothing that the box writes is kept",
        ),
        (
            "--publish",
            args.given.published.iter().any(|it| *it != PublishOption::Undeclare),
            elsewhere,
        ),
        (
            "--ssh-agent",
            args.given.ssh_agent.as_ref().is_some_and(|it| *it != AgentChoice::None),
            elsewhere,
        ),
        ("--task", args.task.is_some(), elsewhere),
        ("--result", args.result.is_some(), elsewhere),
        (
            "--jail",
            args.jail.is_some(),
            "leave it out; the jail surrounds the VM inside QEMU, but QEMU itself has all your rights: do not run \
             boxes of strangers this way",
        ),
        (
            "--interactive",
            args.options.interactive,
            "let the command produce its input, as in `-- sh -c 'printf \"b\\na\\n\" | sort'`: standard input does not \
             reach that VM",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use box_contract::{Scope, SecretDelivery, SecretPlan, SshAgentPlan};
    use clap::{Args as _, Command};

    use super::*;

    fn args(options: &[&str]) -> RunArgs {
        let words = ["--emulated", "x.box"].iter().chain(options);
        RunArgs::of_words(words).unwrap()
    }

    #[test]
    fn every_option_that_leads_out_is_refused_by_name_and_stands_on_the_page() {
        let page = include_str!("../../../docs/commands.md");
        let (_, page) = page.split_once("\n## Without KVM\n").unwrap();
        let values: [&[&str]; 9] = [
            &["--agent-socket", "s"],
            &["--console", "c"],
            &["--volume", "work:/w"],
            &["--publish", "8080:80"],
            &["--ssh-agent"],
            &["--task", "t.json"],
            &["--task", "t.json", "--result", "r.json"],
            &["--jail", "require"],
            &["--interactive", "--", "cat"],
        ];
        let names: Vec<_> = lead_out(&args(&[])).into_iter().map(|(name, ..)| name).collect();
        for (name, options) in names.iter().zip(values) {
            assert!(page.contains(&format!("`{name}`")), "{name}");
            let error = refuse_what_has_no_host(&args(options)).unwrap_err();
            assert_eq!(error.exit, 2);
            let named = options.iter().find(|it| names.contains(it)).unwrap();
            let start = format!("error: {named} cannot be used with --emulated");
            assert!(error.text().starts_with(&start), "{}", error.text());
        }
        refuse_what_has_no_host(&args(&["--json"])).unwrap();
        let command = RunArgs::augment_args(Command::new("run"));
        let emulated = command.get_arguments().find(|it| it.get_id() == "emulated").unwrap();
        let beside = command.get_arguments().filter(|it| {
            let conflicts = command.get_arg_conflicts_with(it);
            !it.is_hide_set() && (conflicts.contains(&emulated))
        });
        let of_emulated = command.get_arg_conflicts_with(emulated);
        let all: BTreeSet<_> =
            beside.chain(of_emulated).map(|it| format!("--{}", it.get_long().unwrap())).collect();
        let listed = parsed(&args(&[])).map(|it| it.0.to_owned());
        assert_eq!(all, BTreeSet::from(listed));
        for option in all {
            assert!(page.contains(&format!("`{option}`")), "{option}");
        }
    }

    #[test]
    fn emulation_is_proposed_only_where_it_is_not_refused() {
        let plan = testkit::test_box::config().plan;
        let of = |options: &[&str], plan: &RunPlan| {
            emulation(&RunArgs::of_words(["my box"].iter().chain(options)).unwrap(), plan)
        };
        let command = Some(Emulation::Command("boxlaunch run --emulated 'my box'".to_owned()));
        assert_eq!(of(&["--", "true"], &plan), command);
        for (options, excluded) in [
            (&["--detach"][..], "--detach"),
            (&["--name", "n"], "--name"),
            (&["--max-scratch", "1GiB"], "--max-scratch"),
            (&["-v", "./a:/a"], "shares"),
            (&["-p", "1:1"], "--publish"),
        ] {
            assert_eq!(of(options, &plan), Some(Emulation::Excluded(excluded)), "{options:?}");
        }
        assert_eq!(of(&["--nested"], &plan), None);
        let mut filtered = plan;
        filtered.network.mode = NetworkMode::Filtered;
        assert_eq!(of(&[], &filtered), Some(Emulation::Excluded("a network")));
        assert_eq!(of(&["--network=none"], &filtered), command);
        let ssh_agent = Some(SshAgentPlan { scope: Scope::Both });
        let with_agent = RunPlan { ssh_agent, ..testkit::test_box::config().plan };
        assert_eq!(of(&[], &with_agent), Some(Emulation::Excluded("an SSH agent")));
        assert_eq!(of(&["--ssh-agent"], &with_agent), Some(Emulation::Excluded("--ssh-agent")));
        assert_eq!(of(&["--ssh-agent=none"], &with_agent), command);
    }

    type Change = fn(&mut RunPlan);

    #[test]
    fn a_box_that_needs_its_host_is_refused_by_what_it_declares() {
        let with = |change: Change| {
            let mut plan = testkit::test_box::config().plan;
            change(&mut plan);
            let no_options = args(&[]);
            refuse_secrets(&plan)
                .and_then(|()| refuse_shares(&no_options, &plan))
                .and_then(|()| refuse_network(&no_options, &plan))
                .and_then(|()| refuse_ssh_agent(&no_options, &plan))
                .err()
                .map(|error| (error.exit, error.text()))
        };
        assert_eq!(with(|_| ()), None);
        let cases: [(Change, &str); 4] = [
            (
                |plan| {
                    let (name, scope) = ("TOKEN".to_owned(), Scope::Agent);
                    plan.secrets.push(SecretPlan { name, scope, delivery: SecretDelivery::Env });
                },
                "a box with secrets",
            ),
            (
                |plan| {
                    let skill = r#"{"name":"notes","mode":"mounted"}"#;
                    plan.skills.push(serde_json::from_str(skill).unwrap());
                },
                "a box that sees directories of this host",
            ),
            (|plan| plan.network.mode = NetworkMode::Filtered, "a box with a network"),
            (
                |plan| plan.ssh_agent = Some(SshAgentPlan { scope: Scope::Agent }),
                "a box with the SSH agent of its host",
            ),
        ];
        for (change, what) in cases {
            let (exit, text) = with(change).unwrap();
            let refused = format!("error: {what} cannot be started with --emulated");
            assert!(exit == 2 && text.starts_with(&refused), "{text}");
        }
    }
}
