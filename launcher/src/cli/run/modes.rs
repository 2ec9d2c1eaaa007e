//! Refuses options of `boxlaunch run` that have no effect on the requested kind of run, because the caller expects an effect.
//!
//! clap's `requires` is not enough: clap does not demand a required argument that conflicts with another argument of the command
//! line.

use safe_text::shell_word;

use crate::cli::error::{Failure, usage};

use super::RunArgs;

/// Refuses options that would have no effect.
///
/// # Errors
/// The first such option, and the alternative.
pub(super) fn check(args: &RunArgs) -> Result<(), Failure> {
    if args.host_kernel.is_some() && !args.emulated {
        let help = "add --emulated, or leave it out";
        return Err(usage("--host-kernel is for --emulated, and this run is not emulated", help));
    }
    if args.as_supervisor && !args.detach {
        return Err(usage("--as-supervisor is for boxlaunch's own use", "leave it out"));
    }
    let is_repeated = !args.shared_before.is_empty() || args.replaces.is_some();
    if (is_repeated || args.drain.is_some()) && !args.detach {
        let message = "--replaces and --shared-before are for boxlaunch's own use";
        return Err(usage(message, "leave them out"));
    }
    if (args.again || args.parent.is_some()) && !args.detach {
        return Err(usage("--again and --parent are for boxlaunch's own use", "leave them out"));
    }
    if args.project.is_some() && !args.detach {
        return Err(usage("--project is for boxlaunch's own use", "leave it out: `boxlaunch up`"));
    }
    check_restart(args)?;
    check_subject(args)?;
    if !args.command.is_empty() {
        return Ok(());
    }
    let options = args.options.used();
    let used = args.component.map(|_| "--component").into_iter().chain(options).next();
    let Some(option) = used else { return Ok(()) };
    let help = if args.detach {
        let command = format!("boxlaunch exec {option}");
        format!("leave it out; once the box runs, `{command} … NAME CMD` runs a command in it")
    } else if args.until_ready || args.task.is_some() || args.result.is_some() {
        "leave it out: the box runs for its agent alone".to_owned()
    } else {
        "add the command, after --".to_owned()
    };
    Err(usage(&format!("{option} is for a command, and this run has none"), &help))
}

/// Refuses a run of nothing, of a box and an image, and of an image without a command: the agent of such a box only waits.
fn check_subject(args: &RunArgs) -> Result<(), Failure> {
    let has_purpose = !args.command.is_empty() || args.detach || args.until_ready;
    let (message, help) = match (&args.image, args.names_box()) {
        (None, true) => return Ok(()),
        (None, false) => (
            "no box is named",
            "name a box: `boxlaunch images` lists those of the store; or an image: `--image IMAGE -- CMD`".to_owned(),
        ),
        (Some(_), true) => {
            let word = args.subject.word().to_string_lossy();
            let help = format!("a command to run in the image comes after `--`: `-- {}`", shell_word(&*word));
            ("--image takes the place of BOX", help)
        }
        (Some(_), false) if has_purpose => return Ok(()),
        (Some(_), false) => (
            "a box of --image starts no program by itself",
            "add the command after `--`, as in `-it -- sh`; with --detach, the box runs until `boxlaunch stop`, and \
             `boxlaunch exec` runs commands in it; a box that starts the image's own program needs a Boxfile: \
             `boxbuild init IMAGE`"
                .to_owned(),
        ),
    };
    Err(usage(message, &help))
}

/// Refuses a policy of restarts, and --idle, where nothing would apply them.
fn check_restart(args: &RunArgs) -> Result<(), Failure> {
    if args.restart.is_some() && !args.detach {
        let help = "add --detach, or let the program that starts this run start it again";
        return Err(usage("--restart is for a detached run", help));
    }
    // clap does not ask for --detach beside a command, because these conflict.
    if args.given.idle.is_some() && !args.detach {
        let help = "add --detach; --lifetime limits any run";
        return Err(usage("--idle is for a detached run", help));
    }
    if args.health_interval.is_some() && !args.restart.is_some_and(|it| it.unhealthy) {
        let help = "add it, or leave --health-interval out";
        return Err(usage("--health-interval is for --restart unhealthy", help));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use box_contract::{RunPlan, Scope, SecretDelivery, SecretPlan};
    use clap::Args as _;

    use crate::cli::emulated::{
        refuse_network, refuse_secrets, refuse_shares, refuse_what_has_no_host,
    };
    use crate::cli::variables;

    use super::*;

    /// A kind of run: its name, its words before the tested option, and its words after that option.
    type Mode = (&'static str, &'static [&'static str], &'static [&'static str]);

    const MODES: [Mode; 9] = [
        ("agent", &[], &[]),
        ("command", &[], &["--", "true"]),
        ("detach", &["--detach"], &[]),
        ("until-ready", &["--until-ready"], &[]),
        ("task", &["--task", "t.json"], &[]),
        ("result", &["--result", "r.json"], &[]),
        ("emulated", &["--emulated"], &[]),
        ("emulated command", &["--emulated"], &["--", "true"]),
        ("emulated until-ready", &["--emulated", "--until-ready"], &[]),
    ];

    /// All kinds of run without a command.
    const NO_COMMAND: &[&str] =
        &["agent", "detach", "until-ready", "task", "result", "emulated", "emulated until-ready"];
    /// All kinds of run with a command.
    const COMMAND: &[&str] = &["command", "emulated command"];
    const NOT_DETACHED: &[&str] = &["agent", "until-ready", "task", "result"];
    /// All kinds of run on the virtual host.
    const EMULATED: &[&str] = &["emulated", "emulated command", "emulated until-ready"];
    const NONE: &[&str] = &[];

    /// An option, the words that set it, the kinds of run that refuse it, and whether it is applied outside the virtual host.
    struct Decision {
        id: &'static str,
        words: &'static [&'static str],
        refused: &'static [&'static [&'static str]],
        outside: bool,
    }

    const fn decision(
        id: &'static str,
        words: &'static [&'static str],
        refused: &'static [&'static [&'static str]],
    ) -> Decision {
        Decision { id, words, refused, outside: false }
    }

    /// Returns the decision for an option that is not passed to the virtual host, because it is applied outside.
    const fn outside(id: &'static str, words: &'static [&'static str]) -> Decision {
        Decision { id, words, refused: &[NONE], outside: true }
    }

    /// Each option. A new option needs an entry here, with the kinds of run that refuse it.
    const DECISIONS: &[Decision] = &[
        decision("json", &["--json"], &[NONE]),
        decision("raw", &["--raw"], &[&["detach"]]),
        decision("detach", &["--detach"], &[COMMAND, EMULATED, &["until-ready"]]),
        // For boxlaunch's internal use.
        decision("as_supervisor", &["--as-supervisor"], &[COMMAND, EMULATED, NOT_DETACHED]),
        decision("replaces", &["--replaces", DIGEST], &[COMMAND, EMULATED, NOT_DETACHED]),
        decision("lifetime", &["--lifetime", "9"], &[EMULATED]),
        decision("idle", &["--idle", "9"], &[COMMAND, EMULATED, NOT_DETACHED]),
        decision("with_parent", &["--with-parent"], &[EMULATED]),
        decision("parent", &["--with-parent", "--parent", "1"], &[COMMAND, EMULATED, NOT_DETACHED]),
        decision("replace", &["--name", "n", "--replace"], &[EMULATED]),
        decision("again", &["--name", "n", "--again"], &[COMMAND, EMULATED, NOT_DETACHED]),
        decision(
            "project",
            &["--name", "n", "--project", "/p"],
            &[COMMAND, EMULATED, NOT_DETACHED],
        ),
        decision(
            "writable_git",
            &["--name", "n", "--project", "/p", "--writable-git"],
            &[COMMAND, EMULATED, NOT_DETACHED],
        ),
        decision(
            "boxfile",
            &["--name", "n", "--project", "/p", "--boxfile", DIGEST],
            &[COMMAND, EMULATED, NOT_DETACHED],
        ),
        decision(
            "from",
            &["--name", "n", "--project", "/p", "--from", "s"],
            &[COMMAND, EMULATED, NOT_DETACHED],
        ),
        decision(
            "afresh",
            &["--name", "n", "--again", "--afresh"],
            &[COMMAND, EMULATED, NOT_DETACHED],
        ),
        decision(
            "drain",
            &["--replaces", DIGEST, "--drain", "1"],
            &[COMMAND, EMULATED, NOT_DETACHED],
        ),
        decision(
            "shared_before",
            &["--shared-before", r#"{"host":"/x","guest":"/y","writable":false}"#],
            &[COMMAND, EMULATED, NOT_DETACHED],
        ),
        decision("restart", &["--restart", "on-failure"], &[COMMAND, EMULATED, NOT_DETACHED]),
        decision(
            "health_interval",
            &["--restart", "unhealthy", "--health-interval", "5"],
            &[COMMAND, EMULATED, NOT_DETACHED],
        ),
        decision("nested", &["--nested"], &[EMULATED]),
        decision("name", &["--name", "n"], &[EMULATED]),
        // A run on the virtual host leaves no record.
        outside("rm", &["--rm"]),
        decision("cpus", &["--cpus", "2"], &[NONE]),
        decision("memory", &["--memory", "999"], &[NONE]),
        outside("max_cpus", &["--max-cpus", "2"]),
        outside("max_memory", &["--max-memory", "9999"]),
        decision("max_scratch", &["--max-scratch", "1GiB"], &[EMULATED]),
        decision("disk", &["--disk", "1GiB"], &[NONE]),
        outside("expect", &["--expect", DIGEST]),
        // The virtual host gets the box that was made of the image.
        Decision {
            refused: &[&["agent", "task", "result", "emulated"]],
            ..outside("image", &["--image", "i"])
        },
        Decision {
            refused: &[&["agent", "task", "result", "emulated"]],
            ..outside("built", &["--image", "i", "--built", DIGEST])
        },
        // The virtual host gets the whole box, so it needs neither a store nor a registry.
        outside("store", &["--store", "s"]),
        outside("pull", &["--pull", "never"]),
        outside("registry_config", &["--registry-config", "r"]),
        decision("budget", &["--budget", "off"], &[NONE]),
        decision("component", &["--component", "agent"], &[NO_COMMAND]),
        // The virtual host has no receipts of earlier runs, so it always verifies.
        outside("verify", &["--verify"]),
        decision("jail", &["--jail", "require"], &[EMULATED]),
        decision("console", &["--console", "c"], &[EMULATED]),
        decision("env", &["-e", "A=1"], &[NONE]),
        decision("env_files", &["--env-file", "/dev/null"], &[NONE]),
        decision("secrets", &["--secret", "KEY=-"], &[EMULATED]),
        decision("ssh_agent", &["--ssh-agent"], &[EMULATED]),
        decision("shares", &["-v", "/x:/y"], &[EMULATED]),
        decision("skills", &["--skill", "notes=/x"], &[EMULATED]),
        decision("skill_dirs", &["--skills", "/x"], &[EMULATED]),
        decision("volumes", &["--volume", "v:/v"], &[EMULATED]),
        decision("task", &["--task", "t.json"], &[COMMAND, EMULATED, &["until-ready"]]),
        decision("result", &["--result", "r.json"], &[COMMAND, EMULATED, &["until-ready"]]),
        decision("network", &["--network", "none"], &[NONE]),
        decision("network_local", &["--network-local", "10.0.0.1"], &[EMULATED]),
        decision("proxy", &["--proxy", "http://proxy:3128"], &[EMULATED]),
        decision("published", &["-p", "80:80"], &[EMULATED]),
        decision("agent_socket", &["--agent-socket", "s"], &[EMULATED]),
        decision("startup_timeout", &["--startup-timeout", "7"], &[NONE]),
        decision("grace", &["--grace", "7"], &[NONE]),
        decision("clean_stop", &["--clean-stop"], &[COMMAND, EMULATED, &["detach"]]),
        decision("emulated", &["--emulated"], &[&["detach", "task", "result"]]),
        Decision {
            refused: &[&["agent", "command", "detach", "until-ready", "task", "result"]],
            ..outside("host_kernel", &["--host-kernel", "k"])
        },
        decision("until_ready", &["--until-ready"], &[COMMAND, &["detach", "task", "result"]]),
        decision("interactive", &["-i"], &[NO_COMMAND, EMULATED]),
        decision("tty", &["-i", "-t"], &[NO_COMMAND, EMULATED]),
        decision("workdir", &["-w", "/tmp"], &[NO_COMMAND]),
        decision("user", &["-u", "app"], &[NO_COMMAND]),
        decision("timeout", &["--timeout", "7"], &[NO_COMMAND]),
        decision("max_output", &["--json", "--max-output", "7"], &[NO_COMMAND]),
    ];

    const DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

    fn command() -> clap::Command {
        RunArgs::augment_args(clap::Command::new("run"))
    }

    fn parsed(mode: &Mode, words: &[&str]) -> Option<RunArgs> {
        let (_, before, after) = *mode;
        let subject: &[&str] = if words.contains(&"--image") { &[] } else { &["x.box"] };
        RunArgs::of_words(subject.iter().chain(before).chain(words).chain(after)).ok()
    }

    /// Returns a plan with the declaration that the option `id` needs. For example, `secrets` needs a declared secret.
    fn plan(id: &str) -> RunPlan {
        let mut plan = testkit::test_box::config().plan;
        match id {
            "secrets" => {
                let (name, scope) = ("KEY".to_owned(), Scope::Agent);
                plan.secrets = vec![SecretPlan { name, scope, delivery: SecretDelivery::Env }];
            }
            "network_local" => {
                let network = r#"{"mode":"filtered","allow":[{"peer":"10.0.0.1"}]}"#;
                plan.network = serde_json::from_str(network).unwrap();
            }
            "skills" => {
                let skill = r#"{"name":"notes","mode":"mounted"}"#;
                plan.skills = vec![serde_json::from_str(skill).unwrap()];
            }
            _ => {}
        }
        plan
    }

    /// Returns the command line on the virtual host, or `None` if the options are refused.
    fn accepted(mode: &Mode, decision: &Decision, words: &[&str]) -> Option<Vec<String>> {
        let args = parsed(mode, words)?;
        check(&args).ok()?;
        let plan = plan(decision.id);
        args.network(&plan).ok()?;
        if args.emulated {
            refuse_network(&args, &plan).ok()?;
            refuse_what_has_no_host(&args).ok()?;
            refuse_secrets(&plan).ok()?;
            refuse_shares(&args, &plan).ok()?;
        }
        let env = variables::resolved(&args.given.env_files, &args.given.env).unwrap();
        Some(args.words("x.box", &env))
    }

    #[test]
    fn every_option_has_an_effect_on_every_kind_of_run_or_is_refused() {
        let mut options: Vec<_> = command()
            .get_arguments()
            .map(|it| it.get_id().to_string())
            .filter(|it| !["box", "command"].contains(&it.as_str()))
            .collect();
        let mut decided: Vec<_> = DECISIONS.iter().map(|it| it.id.to_owned()).collect();
        options.sort();
        decided.sort();
        assert_eq!(options, decided, "decide which kinds of run a new option has an effect on");
        let plain = decision("json", &[], &[]);
        for mode in &MODES {
            let without = accepted(mode, &plain, &[]);
            for decision in DECISIONS {
                let what = format!("{} of a run {}", decision.id, mode.0);
                let is_refused = decision.refused.iter().any(|it| it.contains(&mode.0));
                // Skips an option that this kind of run already sets.
                if mode.1.iter().any(|it| decision.words.contains(it)) {
                    continue;
                }
                let with = accepted(mode, decision, decision.words);
                assert_eq!(with.is_none(), is_refused, "{what}: {with:?}");
                let (Some(with), Some(without)) = (with, &without) else { continue };
                let is_silent = mode.1.contains(&"--emulated")
                    && !decision.outside
                    && with == *without
                    && decision.id != "env_files";
                assert!(!is_silent, "{what} does not reach the emulated machine");
            }
        }
    }

    #[test]
    fn what_has_no_effect_is_refused_with_what_to_do() {
        let refused = |words: &[&str]| {
            let args = parsed(&MODES[0], words).unwrap();
            let error = check(&args).unwrap_err();
            assert_eq!(error.exit, 2);
            error.text()
        };
        insta::assert_snapshot!(refused(&["--detach", "-w", "/tmp", "-u", "app"]), @"
        error: --workdir is for a command, and this run has none
          = help: leave it out; once the box runs, `boxlaunch exec --workdir … NAME CMD` runs a command in it
        ");
        insta::assert_snapshot!(refused(&["--until-ready", "--timeout", "5"]), @"
        error: --timeout is for a command, and this run has none
          = help: leave it out: the box runs for its agent alone
        ");
        let without =
            |words: &[&str]| check(&RunArgs::of_words(words).unwrap()).unwrap_err().text();
        insta::assert_snapshot!(without(&["--image", "python:3.12"]), @"
        error: a box of --image starts no program by itself
          = help: add the command after `--`, as in `-it -- sh`; with --detach, the box runs until `boxlaunch stop`, and `boxlaunch exec` runs commands in it; a box that starts the image's own program needs a Boxfile: `boxbuild init IMAGE`
        ");
        insta::assert_snapshot!(without(&["--image", "python:3.12", "sh"]), @"
        error: --image takes the place of BOX
          = help: a command to run in the image comes after `--`: `-- sh`
        ");
        insta::assert_snapshot!(without(&["--rm"]), @"
        error: no box is named
          = help: name a box: `boxlaunch images` lists those of the store; or an image: `--image IMAGE -- CMD`
        ");
        insta::assert_snapshot!(refused(&["--name", "n", "--host-kernel", "k"]), @"
        error: --host-kernel is for --emulated, and this run is not emulated
          = help: add --emulated, or leave it out
        ");
    }
}
