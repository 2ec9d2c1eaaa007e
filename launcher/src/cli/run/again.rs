//! The options with which a run can be repeated: `boxlaunch update` starts another box with them.

use std::path::{Path, PathBuf, absolute};
use std::str::FromStr;

use box_contract::{RunPlan, size};
use box_digest::Digest;
use boxlaunch::boxes::Record;
use clap::{Args as _, FromArgMatches as _, ValueEnum};
use serde_json::json;

use super::RunArgs;
use super::given::GivenOptions;
use super::publish::PublishOption;
use super::ssh_agent::AgentChoice;
use crate::cli::error::Failure;
use crate::cli::secrets;
use crate::cli::variables::Assigned;

/// The box that a run replaces: `DIGEST/NAME` if it runs, `DIGEST+NAME` if it has ended, and `DIGEST` if it has no record any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct Replaces {
    /// The digest of the replaced box.
    pub(in crate::cli) from: Digest,
    /// The name of the replaced box: the name that the new box gets if the replaced one runs, and otherwise the name under
    /// which its record is kept.
    pub(in crate::cli) name: Option<String>,
    /// Whether the replaced box runs. If it has ended meanwhile, this one must not start in its place.
    pub(in crate::cli) runs: bool,
}

impl FromStr for Replaces {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (digest, name) = match text.split_once(['/', '+']) {
            Some((digest, name)) => (digest, Some(name.to_owned())),
            None => (text, None),
        };
        let from = digest.parse().map_err(|_| "write DIGEST, DIGEST/NAME or DIGEST+NAME")?;
        Ok(Self { from, name, runs: text.contains('/') })
    }
}

impl Replaces {
    /// Returns the option's value.
    pub(in crate::cli) fn word(&self) -> String {
        let mark = if self.runs { '/' } else { '+' };
        let name = self.name.iter().map(|name| format!("{mark}{name}"));
        self.from.to_string() + &name.collect::<String>()
    }
}

/// Returns the options that start a box as `args` has started this one, from any directory: without the box itself, its name,
/// and the options that other fields of the record have. `skill_dirs` are the paths of the directories of `--skills` without links.
/// `None` if one of the options cannot be written as text.
pub(super) fn options(
    args: &RunArgs,
    plan: &RunPlan,
    env: &[Assigned],
    skill_dirs: &[PathBuf],
) -> Result<Option<Vec<String>>, Failure> {
    let secrets = secrets::checked(args, plan)?;
    let secrets = secrets.iter().map(|it| Some(format!("--secret={}", it.word()?)));
    let shares =
        args.given.shares.iter().map(|it| Some(format!("--share={}", it.word(&plan.shares)?)));
    let skills =
        args.given.skills.iter().map(|(name, host)| path(&format!("--skill={name}="), host));
    let skill_dirs = skill_dirs.iter().map(|it| path("--skills=", it));
    let skills = skills.chain(skill_dirs);
    let files = args.given.env_files.iter().map(|it| path("--env-file=", it));
    let written = secrets.chain(shares).chain(skills).chain(files).chain(paths(args));
    let written: Option<Vec<_>> = written.collect();
    let env = env.iter().filter_map(Assigned::repeated);
    Ok(written.map(|it| plain(args).into_iter().chain(env).chain(it).collect()))
}

/// Returns the options whose values are paths of this host.
fn paths(args: &RunArgs) -> impl Iterator<Item = Option<String>> {
    // Destructures the struct, so that a new option does not compile until it is handled.
    let RunArgs {
        console,
        agent_socket,
        // The caller of `options` has the box, its name and the store.
        subject: _,
        image: _,
        built: _,
        name: _,
        replace: _,
        // The caller of an update is another process.
        with_parent: _,
        parent: _,
        again: _,
        expect: _,
        pull: _,
        registries: _,
        // The record has these.
        rm: _,
        shared_before: _,
        // `options` and `plain` add these, and the record has the ports and the volumes.
        given:
            GivenOptions {
                idle: _,
                cpus: _,
                memory: _,
                disk: _,
                env: _,
                env_files: _,
                secrets: _,
                ssh_agent,
                shares: _,
                skills: _,
                skill_dirs: _,
                volumes: _,
                network: _,
                network_local: _,
                proxy: _,
                published: _,
            },
        // `plain` adds these.
        project: _,
        writable_git: _,
        boxfile: _,
        verify: _,
        max_cpus: _,
        max_memory: _,
        max_scratch: _,
        lifetime: _,
        budget: _,
        jail: _,
        startup_timeout: _,
        grace: _,
        restart: _,
        health_interval: _,
        // An update is refused.
        task: _,
        result: _,
        // Not in a detached run, or the options of each start.
        json: _,
        raw: _,
        detach: _,
        as_supervisor: _,
        replaces: _,
        from: _,
        afresh: _,
        drain: _,
        component: _,
        clean_stop: _,
        emulated: _,
        host_kernel: _,
        nested: _,
        until_ready: _,
        options: _,
        command: _,
    } = args;
    let console = console.as_deref().map(|it| path("--console=", it));
    let socket = agent_socket.as_deref().map(|it| path("--agent-socket=", it));
    let agent = ssh_agent.as_ref().and_then(AgentChoice::path);
    let agent = agent.map(|it| path("--ssh-agent=", it));
    console.into_iter().chain(socket).chain(agent)
}

/// Returns an option with the absolute form of a path.
fn path(option: &str, path: &Path) -> Option<String> {
    Some(option.to_owned() + absolute(path).ok()?.to_str()?)
}

/// Returns the options whose values are words and numbers.
fn plain(args: &RunArgs) -> Vec<String> {
    let name = |value: &dyn Fn() -> Option<clap::builder::PossibleValue>| {
        value().map(|it| it.get_name().to_owned())
    };
    let values = [
        ("--budget", name(&|| args.budget.to_possible_value())),
        ("--jail", name(&|| args.jail.and_then(|it| it.to_possible_value()))),
        ("--network", name(&|| args.given.network.to_possible_value())),
        ("--proxy", args.given.proxy.as_ref().map(ToString::to_string)),
        (
            "--ssh-agent",
            args.given.ssh_agent.as_ref().and_then(AgentChoice::keyword).map(str::to_owned),
        ),
        ("--startup-timeout", Some(args.startup_timeout.to_string())),
        ("--grace", Some(args.grace.to_string())),
        ("--cpus", args.given.cpus.map(|it| it.to_string())),
        ("--memory", args.given.memory.map(|it| it.to_string())),
        ("--max-cpus", args.max_cpus.map(|it| it.to_string())),
        ("--max-memory", args.max_memory.map(|it| it.to_string())),
        ("--max-scratch", args.max_scratch.map(size::written)),
        ("--disk", args.given.disk.map(|it| it.to_string())),
        ("--lifetime", args.lifetime.map(|it| it.to_string())),
        ("--idle", args.given.idle.map(|it| it.to_string())),
        ("--restart", args.restart.map(|it| it.to_string())),
        ("--health-interval", args.health_interval.map(|it| it.to_string())),
        // The path of a project is UTF-8.
        ("--project", args.project.as_ref().map(|it| it.display().to_string())),
        ("--boxfile", args.boxfile.map(|it| it.to_string())),
    ];
    let values = values.into_iter().filter_map(|(name, it)| Some(format!("{name}={}", it?)));
    let local = args.given.network_local.iter().map(|it| format!("--network-local={it}"));
    let flags = [("--verify", args.verify), ("--writable-git", args.writable_git)];
    let flags = flags.into_iter().filter(|it| it.1).map(|it| it.0.to_owned());
    // The record has the ports themselves.
    let undeclare = args.given.published.iter().find(|it| **it == PublishOption::Undeclare);
    let undeclare = undeclare.map(|it| format!("--publish={it}"));
    values.chain(local).chain(flags).chain(undeclare).collect()
}

/// Returns the options with which the box of a record can be started again, or `None` if the record has none.
pub(in crate::cli) fn options_of(record: &Record) -> Option<Vec<String>> {
    let mut words = record.options.clone()?;
    let ports = record.published.iter().map(|it| PublishOption::again(*it));
    words.extend(ports.map(|it| format!("--publish={it}")));
    // The box declares the others, or a newer one does not.
    let volumes = record.volumes.iter().filter(|it| !it.declared);
    words.extend(volumes.map(|it| format!("--volume={}:{}", it.volume, it.guest)));
    // Whatever the paths of the options lead to now, the box gets nothing else than before.
    words.extend(record.shares.iter().map(|it| format!("--shared-before={}", json!(it))));
    words.extend(record.remove.then(|| "--rm".to_owned()));
    Some(words)
}

impl RunArgs {
    /// Parses the options of [`options_of`], for a detached run of the box `name`. The caller sets the box.
    pub(in crate::cli) fn of_options(name: &str, options: &[String]) -> clap::error::Result<Self> {
        let run = ["--detach", "--name", name, "box"].map(str::to_owned);
        Self::of_words(options.iter().chain(&run))
    }

    /// Parses the words after `boxlaunch run`.
    pub(in crate::cli) fn of_words<'w>(
        words: impl IntoIterator<Item = impl AsRef<str> + 'w>,
    ) -> clap::error::Result<Self> {
        let words = words.into_iter().map(|it| it.as_ref().to_owned());
        let command = Self::augment_args(clap::Command::new("run"));
        let matches = command.try_get_matches_from(std::iter::once("run".to_owned()).chain(words));
        Self::from_arg_matches(&matches?)
    }
}

#[cfg(test)]
mod tests {
    use box_contract::{Access, Scope, SecretDelivery, SecretPlan, SharePlan};
    use serde_json::json;

    use super::*;
    use crate::cli::variables;

    fn plan() -> RunPlan {
        let mut plan = testkit::test_box::config().plan;
        let (name, scope) = ("KEY".to_owned(), Scope::Agent);
        plan.secrets = vec![SecretPlan { name, scope, delivery: SecretDelivery::Env }];
        let share =
            r#"{"name":"project","guest":"/work","access":"rw","scope":"both","host":"src"}"#;
        plan.shares = vec![serde_json::from_str::<SharePlan>(share).unwrap()];
        assert_eq!(plan.shares[0].access, Access::ReadWrite);
        plan
    }

    fn repeated(words: &[&str]) -> Vec<String> {
        let args = RunArgs::of_words(["x.box", "--detach"].iter().chain(words)).unwrap();
        let env = variables::resolved(&args.given.env_files, &args.given.env).unwrap();
        options(&args, &plan(), &env, &args.given.skill_dirs).unwrap().unwrap()
    }

    #[test]
    fn options_are_repeated_from_any_directory_and_without_secrets() {
        let here = std::env::current_dir().unwrap();
        let at = |path: &str| format!("{}", here.join(path).display());
        let words = repeated(&[
            "--cpus",
            "2",
            "--memory",
            "999",
            "--grace",
            "7",
            "--restart",
            "unhealthy:5",
            "--health-interval",
            "3",
            "--budget",
            "off",
            "--proxy",
            "env",
            "--ssh-agent",
            "--verify",
            "-e",
            "LOG=debug",
            "-e",
            "agent/URL=https://me:hunter2hunter2@a.example/",
            "--secret",
            "KEY=file:key.pem",
            "-v",
            "project",
            "-v",
            "./data:/data:rw",
            "--console",
            "console.txt",
            "-p",
            "0:80",
            "--skills",
            "skills",
            "--volume",
            "v:/v",
            "--rm",
            "--name",
            "n",
        ]);
        let expected = [
            "--budget=off",
            "--network=box",
            "--proxy=env",
            "--ssh-agent=env",
            "--startup-timeout=60",
            "--grace=7",
            "--cpus=2",
            "--memory=999",
            "--restart=unhealthy:5",
            "--health-interval=3",
            "--verify",
            "--env=LOG=debug",
            "--env=agent/URL",
            &format!("--secret=KEY=file:{}", at("key.pem")),
            &format!("--share=project={}", at("src")),
            &format!("--share={}:/data:rw", at("data")),
            &format!("--skills={}", at("skills")),
            &format!("--console={}", at("console.txt")),
        ];
        assert_eq!(words, expected);
        // What they are parsed to gives the same options again.
        let again: Vec<_> =
            words.iter().map(String::as_str).filter(|it| !it.contains("URL")).collect();
        assert_eq!(repeated(&again), again);
        let agent = |value: &str| {
            let words = repeated(&[&format!("--ssh-agent={value}")]);
            words.into_iter().find(|it| it.starts_with("--ssh-agent")).unwrap()
        };
        assert_eq!(agent("agent.sock"), format!("--ssh-agent={}", at("agent.sock")));
        assert_eq!(agent("none"), "--ssh-agent=none");
    }

    /// Returns the record of a run with the option `--grace=7`, and with `value` in the field `name`.
    fn record(name: &str, value: serde_json::Value) -> Record {
        let mut record = json!({
            "name": "n", "box": format!("sha256:{}", "0".repeat(64)), "directory": "/n.box",
            "components": ["agent"], "vm": { "cpus": 1, "memory-mib": 256 }, "state": "ended",
            "supervisor": 1, "runtime": "/none", "created_ms": 1, "remove": false,
            "options": ["--grace=7"],
        });
        record[name] = value;
        serde_json::from_value(record).unwrap()
    }

    #[test]
    fn what_the_box_saw_is_among_the_options_of_its_next_start() {
        let share = json!({ "host": "/home/a:/b", "guest": "/w", "writable": true });
        let record = record("shares", json!([share]));
        let args = RunArgs::of_options("n", &options_of(&record).unwrap()).unwrap();
        assert_eq!(args.shared_before, record.shares);
    }

    #[test]
    fn ports_are_repeated_with_whether_the_box_declares_them() {
        let port = |host: &str| json!({ "host": host, "guest": 80, "component": "agent" });
        let mut declared = port("127.0.0.1:9");
        declared["declared"] = true.into();
        // The first one is as an earlier boxlaunch has recorded it.
        let record = record("published", json!([port("0.0.0.0:8"), declared]));
        let words = options_of(&record).unwrap();
        let ports = ["--publish=0.0.0.0:8:80/agent", "--publish=declared:127.0.0.1:9:80/agent"];
        assert_eq!(words, [&["--grace=7"], &ports[..]].concat());
        let again = RunArgs::of_options("n", &words).unwrap().given.published;
        let expected: Vec<_> = record.published.into_iter().map(PublishOption::again).collect();
        assert_eq!(again, expected);
    }

    #[test]
    fn what_is_replaced_is_a_digest_and_a_name() {
        let digest = format!("sha256:{}", "0".repeat(64));
        for text in [digest.clone(), format!("{digest}/hello-3f2a"), format!("{digest}+hello")] {
            assert_eq!(text.parse::<Replaces>().unwrap().word(), text);
        }
        "hello".parse::<Replaces>().unwrap_err();
    }
}
