//! The options of `boxlaunch run`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use box_cache::Held;
use box_contract::permissions::cpus;
use box_contract::{ComponentName, Phase, RunPlan, Vm};
use box_digest::Digest;
use box_layout::OpenBox;
use boxlaunch::host::error::{PolicyError, Resource};
use boxlaunch::host::policy::{Most, check_scratch, most_scratch};
use boxlaunch::mounts::shares::ShareRecord;
use boxlaunch::network::Given;
use boxlaunch::network::given::{Choice, NetworkRefusal};
use boxlaunch::supervisor::Restart;
use clap::ValueEnum;
use cli_registry::RegistryOptions;
use egress_proxy::is_own;
use vmm::jail::Policy;

use nix::unistd::geteuid;

use super::again::Replaces;
use super::given::GivenOptions;
use super::ssh_agent::AgentChoice;
use super::values::{entry_name, lifetime, mebibytes, seconds, whole_number};
use crate::cli::command::CommandOptions;
use crate::cli::environment::GITCONFIG;
use crate::cli::error::Failure;
use crate::cli::found;
use crate::cli::pull::PullPolicy;
use crate::cli::shares::{ShareArg, parse_record};
use crate::cli::stored;
use crate::cli::terminal::is_quiet;
use crate::cli::variables::Assigned;
use cli_common::size_between;
use cli_common::store::BoxArgument;

/// Boots a box and runs its agent, or a command beside the agent.
///
/// Without CMD, the box runs until its agent ends, and boxlaunch exits with the agent's status. With CMD, the command runs
/// once the agent is ready, and the box stops after it. With --detach, boxlaunch prints the box's name as soon as the agent
/// is ready, and the box keeps running.
///
/// A signal (SIGINT, SIGTERM, SIGHUP) shuts the box down; a second one kills it. With CMD, a first signal goes to CMD, and the box stops
/// after it, or after --grace. A box with declarations that this version does not support is not started.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(override_usage = "boxlaunch run [OPTIONS] <BOX> [-- <CMD>...]\n       \
    boxlaunch run [OPTIONS] --image <IMAGE> -- <CMD>...")]
// `mut_arg` moves the argument to the end, so that both arguments need their numbers.
#[command(mut_arg("box", |it| it.index(1).required(false).default_value(NO_BOX).hide_default_value(true)))]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(in crate::cli) subject: BoxArgument,
    /// Run CMD in this image, such as python:3.12, instead of a box: `boxbuild build --image` makes a box of it first, unless the
    /// store has that box. The box has no network, and starts no program of the image.
    #[arg(long, value_name = "IMAGE")]
    pub(in crate::cli) image: Option<String>,
    /// Be the process that runs the box that was made of the image.
    #[arg(long, hide = true, requires = "image", value_name = "DIGEST")]
    pub(in crate::cli) built: Option<Digest>,
    /// Print one JSON object at the end, which contains the programs' output.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the programs' output unchanged, also to a terminal. By default, a terminal gets text and colours, but no other
    /// control sequences, and each line of the agent begins with `agent | `.
    #[arg(long, conflicts_with_all = ["json", "detach"])]
    pub(in crate::cli) raw: bool,
    /// Keep the box running once its agent is ready, and print its name.
    #[arg(short, long, conflicts_with_all = ["command", "until_ready", "emulated"])]
    pub(in crate::cli) detach: bool,
    /// Be the process that keeps running.
    #[arg(long, hide = true, requires = "detach")]
    pub(in crate::cli) as_supervisor: bool,
    /// Be the process that replaces this box, whose name and ports it gets if that box runs.
    #[arg(long, hide = true, requires = "detach", value_name = "DIGEST[/NAME]")]
    pub(in crate::cli) replaces: Option<Replaces>,
    /// How many seconds the clients of the replaced box may stay connected.
    #[arg(long, hide = true, requires = "replaces", value_name = "SECONDS", value_parser = seconds(0))]
    pub(in crate::cli) drain: Option<u32>,
    /// Start a detached box again after it has failed: with `on-failure` if its agent ends with another status than 0, or if
    /// the VM fails; with `unhealthy` also if three health checks of its agent fail in a row. With :N, at most N times in a row.
    #[arg(long, value_name = "POLICY[:N]", conflicts_with_all = ["task", "result"])]
    pub(in crate::cli) restart: Option<Restart>,
    #[arg(long, value_name = "SECONDS", value_parser = seconds(1), allow_negative_numbers = true)]
    #[arg(help = format!("How many seconds are between two health checks of `--restart unhealthy` [default: {HEALTH_INTERVAL}]"))]
    pub(in crate::cli) health_interval: Option<u32>,
    /// Stop the box after this time: seconds, or a number with a unit, such as 15m, 2h or 1d.
    #[arg(long, value_name = "TIME", value_parser = lifetime(), allow_negative_numbers = true, conflicts_with = "emulated")]
    pub(in crate::cli) lifetime: Option<u32>,
    /// Stop the box when the process that has started boxlaunch ends, such as a script, even if that process is killed.
    #[arg(long, conflicts_with = "emulated")]
    pub(in crate::cli) with_parent: bool,
    /// The process of --with-parent.
    #[arg(long, hide = true, value_name = "PID", requires_all = ["detach", "with_parent"])]
    pub(in crate::cli) parent: Option<u32>,
    /// The name by which other commands address the box [default: the box's own name with a random suffix].
    #[arg(long, value_name = "NAME", value_parser = entry_name, conflicts_with = "emulated")]
    pub(in crate::cli) name: Option<String>,
    /// Remove the box that has the name of --name, with its disk, and take its place. A box that runs is stopped.
    #[arg(long, requires = "name")]
    pub(in crate::cli) replace: bool,
    /// Continue the box of --name, which has ended.
    #[arg(long, hide = true, requires_all = ["detach", "name"], conflicts_with = "replace")]
    pub(in crate::cli) again: bool,
    /// The directory of the project whose environment the box is.
    #[arg(long, hide = true, requires_all = ["detach", "name"], value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
    /// The digest of the declaration by the project's Boxfile.
    #[arg(long, hide = true, requires = "project", value_name = "DIGEST")]
    pub(in crate::cli) boxfile: Option<Digest>,
    /// Begin the disk of the box as a copy of this snapshot.
    #[arg(long, hide = true, requires = "project", conflicts_with = "rm", value_name = "SNAP")]
    pub(in crate::cli) from: Option<String>,
    /// Continue the box without what its last run had of the host.
    #[arg(long, hide = true, requires = "again")]
    pub(in crate::cli) afresh: bool,
    /// Let the box write to all of the git repository of the project.
    #[arg(long, hide = true, requires = "project")]
    pub(in crate::cli) writable_git: bool,
    /// Remove the box's record, logs and disk when it ends.
    #[arg(long)]
    pub(in crate::cli) rm: bool,
    /// The maximum number of virtual CPUs that the box gets [default: as many as this host has, but at least 2].
    #[arg(long, value_name = "N", value_parser = whole_number(1, u8::MAX), allow_negative_numbers = true)]
    pub(in crate::cli) max_cpus: Option<u8>,
    /// The maximum memory that the box may ask for, such as 8GiB; a number alone is in MiB [default: half of this host's, but
    /// at least 1024 if the host has that much].
    #[arg(long, value_name = "SIZE", value_parser = mebibytes(1, MAX_MEMORY_MIB))]
    pub(in crate::cli) max_memory: Option<u32>,
    /// The maximum size of all disks that the box declares, together, such as 20GiB [default: half of the free space where
    /// they lie].
    #[arg(long, value_name = "SIZE", value_parser = size_between(0, u64::MAX, None), conflicts_with = "emulated")]
    pub(in crate::cli) max_scratch: Option<u64>,
    /// Start the box only if it has this digest.
    #[arg(long, value_name = "DIGEST")]
    pub(in crate::cli) expect: Option<Digest>,
    /// When to pull the box of a registry, or to ask the registry of --image which image the tag names [default: missing].
    #[arg(long, value_enum, value_name = "POLICY")]
    pub(in crate::cli) pull: Option<PullPolicy>,
    #[command(flatten)]
    pub(in crate::cli) registries: RegistryOptions,
    /// What to do if the start exceeds the box's budget.
    #[arg(long, value_enum, value_name = "POLICY", default_value_t = BudgetPolicy::Enforce)]
    pub(in crate::cli) budget: BudgetPolicy,
    /// The component to run CMD in [default: business if the box has one, else agent].
    #[arg(long, visible_alias = "in", value_parser = cli_common::component_name(), value_name = "COMPONENT", requires = "command")]
    pub(in crate::cli) component: Option<ComponentName>,
    /// Hash the box's files, even if they have not changed since the last time.
    #[arg(long)]
    pub(in crate::cli) verify: bool,
    /// What to do if this host lacks a layer of the jail around the VM [default: `require` for root, `best-effort` for other
    /// users].
    #[arg(long, value_enum, value_name = "POLICY")]
    pub(in crate::cli) jail: Option<JailPolicy>,
    /// Write the first MiB of the guest's console to this file.
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) console: Option<PathBuf>,
    /// What the box saw of this host when it was started first. A run of it again is refused if a path leads elsewhere now.
    #[arg(long, hide = true, requires = "detach", value_name = "JSON", value_parser = parse_record)]
    pub(in crate::cli) shared_before: Vec<ShareRecord>,
    #[command(flatten)]
    pub(in crate::cli) given: GivenOptions,
    /// Give the agent the task of this file instead of the box's: a JSON object with id, type and description. The box runs
    /// until its agent ends, and boxlaunch exits with 0 if the task is completed.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "until_ready", "idle"])]
    pub(in crate::cli) task: Option<PathBuf>,
    /// Write the result that the agent leaves in /task/result.json to this file.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "until_ready", "idle"])]
    pub(in crate::cli) result: Option<PathBuf>,
    /// Create the Unix socket for the agent's port at this path.
    #[arg(long, value_name = "PATH")]
    pub(in crate::cli) agent_socket: Option<PathBuf>,
    /// How many seconds the agent may take to be ready, unless the budget ends the start earlier.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    #[arg(value_parser = seconds(1), allow_negative_numbers = true)]
    pub(in crate::cli) startup_timeout: u32,
    /// How many seconds programs may take to end when the box is stopped.
    #[arg(long, value_name = "SECONDS", default_value_t = 2)]
    #[arg(value_parser = seconds(0), allow_negative_numbers = true)]
    pub(in crate::cli) grace: u32,
    /// After a signal, exit with the agent's status, or with 0 if the signal has ended the agent, and not with 128 + N. For
    /// services that are stopped by a signal.
    #[arg(long, conflicts_with_all = ["command", "detach", "emulated"])]
    pub(in crate::cli) clean_stop: bool,
    /// Run the box on an emulated CPU, without KVM. This is slow, and needs QEMU.
    #[arg(long, conflicts_with = "proxy")]
    pub(in crate::cli) emulated: bool,
    /// The kernel of the emulated host, which is kept for later runs: a Debian package linux-image-*-cloud-amd64.
    #[arg(long, value_name = "FILE", requires = "emulated")]
    pub(in crate::cli) host_kernel: Option<PathBuf>,
    /// Be the run within the emulated machine, whose sockets lead nowhere.
    #[arg(long, hide = true, conflicts_with = "emulated")]
    pub(in crate::cli) nested: bool,
    /// Stop the box as soon as its agent is ready, and exit with 0.
    #[arg(long, conflicts_with = "command")]
    pub(in crate::cli) until_ready: bool,
    /// The command to run, and its arguments.
    #[arg(last = true, index = 2, value_name = "CMD")]
    pub(in crate::cli) command: Vec<OsString>,
    #[command(flatten)]
    pub(in crate::cli) options: CommandOptions,
}

/// The argument BOX of a command line that has none. No command line can have this word.
const NO_BOX: &str = "\0";
/// The maximum of `--max-memory`: 16 TiB.
const MAX_MEMORY_MIB: u32 = 16 << 20;
/// The default of `--health-interval`, in seconds.
const HEALTH_INTERVAL: u32 = 10;

impl RunArgs {
    /// Returns the guest paths of the shares that the box does not declare.
    pub(super) fn own_shares(&self) -> impl Iterator<Item = &str> {
        let project = self.project.iter().filter_map(|it| it.to_str());
        self.given.shares.iter().filter_map(ShareArg::place).chain(project)
    }

    /// Returns whether the command line gives the box a file for the settings of git.
    pub(super) fn has_gitconfig(&self) -> bool {
        self.own_shares().any(|it| it == GITCONFIG)
    }

    /// Returns whether the box's disk outlives the run.
    pub(super) const fn keeps_disk(&self) -> bool {
        self.detach && !self.rm
    }

    /// Returns whether the command line has BOX.
    pub(super) fn names_box(&self) -> bool {
        self.subject.word() != NO_BOX
    }

    /// Returns the policy for a missing layer of the jail.
    pub(in crate::cli) fn jail(&self) -> Policy {
        match self.jail {
            Some(JailPolicy::Require) => Policy::Require,
            Some(JailPolicy::Trace) => Policy::Trace,
            Some(JailPolicy::BestEffort) => Policy::BestEffort,
            None => Policy::default_of(geteuid().is_root()),
        }
    }

    /// Returns the command line that runs the same box on the virtual host, where its path is `bundle`.
    pub(in crate::cli) fn words(&self, bundle: &str, env: &[Assigned]) -> Vec<String> {
        // Destructures the struct, so that a new option does not compile until it is handled.
        let Self {
            subject: _,
            given:
                GivenOptions {
                    idle: _,
                    cpus,
                    memory,
                    disk,
                    env: _,
                    env_files: _,
                    secrets: _,
                    ssh_agent,
                    shares: _,
                    skills: _,
                    skill_dirs: _,
                    volumes: _,
                    network,
                    network_local: _,
                    proxy: _,
                    published: _,
                },
            image: _,
            built: _,
            verify: _,
            console: _,
            agent_socket: _,
            shared_before: _,
            task: _,
            result: _,
            emulated: _,
            host_kernel: _,
            nested: _,
            jail: _,
            max_cpus: _,
            max_memory: _,
            max_scratch: _,
            clean_stop: _,
            restart: _,
            health_interval: _,
            expect: _,
            pull: _,
            registries: _,
            detach: _,
            as_supervisor: _,
            replaces: _,
            drain: _,
            lifetime: _,
            with_parent: _,
            parent: _,
            replace: _,
            again: _,
            project: _,
            writable_git: _,
            boxfile: _,
            from: _,
            afresh: _,
            name: _,
            rm: _,
            json,
            raw,
            budget,
            component,
            startup_timeout,
            grace,
            until_ready,
            options,
            command,
        } = self;
        let budget = budget.to_possible_value().map(|it| it.get_name().to_owned());
        let values = [
            ("--budget", budget),
            ("--component", component.map(|it| it.name().to_owned())),
            ("--startup-timeout", Some(startup_timeout.to_string())),
            ("--grace", Some(grace.to_string())),
            ("--cpus", cpus.map(|it| it.to_string())),
            ("--memory", memory.map(|it| it.to_string())),
            ("--network", network.to_possible_value().map(|it| it.get_name().to_owned())),
            ("--disk", disk.map(|it| it.to_string())),
        ];
        let flags = [
            ("--json", *json),
            ("--raw", *raw),
            ("--until-ready", *until_ready),
            ("--quiet", is_quiet()),
        ];
        let mut words = ["boxlaunch", "run", "--nested"].map(str::to_owned).to_vec();
        words.extend(flags.iter().filter(|(_, is_set)| *is_set).map(|(it, _)| (*it).to_owned()));
        for (option, value) in values {
            words.extend(value.into_iter().flat_map(|it| [option.to_owned(), it]));
        }
        words.extend(env.iter().map(Assigned::word));
        let agent = ssh_agent.as_ref().and_then(AgentChoice::keyword);
        words.extend(agent.map(|it| format!("--ssh-agent={it}")));
        words.extend(options.words());
        words.push(bundle.to_owned());
        if !command.is_empty() {
            words.push("--".to_owned());
            words.extend(command.iter().map(|it| it.to_string_lossy().into_owned()));
        }
        words
    }

    /// Returns how long the start may take before the box is stopped. `None` if the box has no budget for the total, or if
    /// `--budget` does not enforce it.
    pub(in crate::cli) fn enforced_total(&self, plan: &RunPlan) -> Option<Duration> {
        let total = plan.budget.limit(Phase::Total).map(Duration::from_millis);
        total.filter(|_| self.budget == BudgetPolicy::Enforce)
    }

    /// Opens the box, and checks it against `--expect`, the policy of this host and the size limits. The store keeps the box until
    /// the returned [`Held`] is dropped.
    pub(in crate::cli) fn open(&self) -> Result<(OpenBox, Option<Held>), Failure> {
        let start = stored::find(&self.subject, self.is_told())?;
        let (opened, held) = found::open_to_run(start.found.expect(self.expect))?;
        // Also for a nested run, which anybody can start on a host. The virtual host has no policy.
        if !start.is_accepted {
            stored::check_policy(&self.subject, &opened.digest, self.names_digest())?;
        }
        // For a nested run, the run that started the virtual host has checked the size.
        if !self.nested {
            self.most().check(self.size(opened.plan()), |resource| self.sets(resource))?;
        }
        Ok((opened, held))
    }

    /// Returns the digest of `--expect`.
    pub(in crate::cli) const fn expected(&self) -> Option<Digest> {
        self.expect
    }

    /// If the command line names a file, loads its box into the store, unless the store already contains the box.
    pub(in crate::cli) fn load(&self) -> Result<(), Failure> {
        stored::in_store(&self.subject, self.is_told()).map(drop)
    }

    /// Returns whether notices are printed.
    fn is_told(&self) -> bool {
        !self.json && !is_quiet()
    }

    /// Returns whether the command line names the box by its digest.
    pub(in crate::cli) fn names_digest(&self) -> bool {
        self.expect.is_some() || self.subject.names_digest()
    }

    /// Returns the network that the box gets.
    ///
    /// # Errors
    /// [`NetworkRefusal`] if `--network` or `--network-local` does not fit the plan.
    pub(in crate::cli) fn network(&self, plan: &RunPlan) -> Result<Given, NetworkRefusal> {
        Given::decide(
            plan.into(),
            self.given.network.into(),
            self.given.network_local.clone(),
            is_own,
        )
    }

    /// Checks that the disks of a box fit into `--max-scratch`. The default of that limit depends on the free space in
    /// `directory`. Returns how much the limit leaves, in bytes.
    ///
    /// # Errors
    /// [`PolicyError::TooMuchScratch`].
    pub(in crate::cli) fn check_scratch(
        &self,
        plan: &RunPlan,
        directory: &Path,
    ) -> Result<u64, PolicyError> {
        let most = self.max_scratch.or_else(|| most_scratch(directory)).unwrap_or(u64::MAX);
        // Disks on the virtual host leave no files on this host.
        let most = if self.nested { u64::MAX } else { most };
        // A disk that is there already has its space.
        let declared = plan.disk_bytes.filter(|_| self.given.disk.is_none() && !self.again);
        check_scratch(plan.scratch.iter().map(|it| it.size_bytes).chain(declared), most)
    }

    fn most(&self) -> Most {
        let host = Most::of_host();
        Most {
            cpus: self.max_cpus.unwrap_or(host.cpus),
            memory_mib: self.max_memory.unwrap_or(host.memory_mib),
        }
    }

    /// Returns whether the command line sets the amount of this resource, instead of the box.
    const fn sets(&self, resource: Resource) -> bool {
        match resource {
            Resource::Cpus => self.given.cpus.is_some(),
            Resource::Memory => self.given.memory.is_some(),
        }
    }

    /// Returns the size of the VM. A box that declares more virtual CPUs than it may have gets as many as it may have, because
    /// it works with fewer, too, only slower.
    pub(in crate::cli) fn size(&self, plan: &RunPlan) -> Vm {
        let Vm { cpus, memory_mib } = plan.vm;
        // The run that started the virtual host has applied its limit.
        let most = if self.nested { cpus } else { self.most().cpus };
        Vm {
            cpus: self.given.cpus.unwrap_or_else(|| cpus.min(most)),
            memory_mib: self.given.memory.unwrap_or(memory_mib),
        }
    }

    /// Returns the notice that the VM gets fewer virtual CPUs than the box declares.
    pub(super) fn fewer_cpus(&self, plan: &RunPlan) -> Option<String> {
        let (asked, has) = (plan.vm.cpus, self.size(plan).cpus);
        (self.given.cpus.is_none() && has < asked).then(|| {
            format!(
                "boxlaunch: the box declares {}, and gets {has}: this host has no more, or --max-cpus allows no more\n",
                cpus(asked)
            )
        })
    }

    /// Returns the time between two health checks of `--restart unhealthy`.
    pub(super) fn health_interval(&self) -> Duration {
        Duration::from_secs(self.health_interval.unwrap_or(HEALTH_INTERVAL).into())
    }

    pub(in crate::cli) fn grace(&self) -> Duration {
        Duration::from_secs(self.grace.into())
    }
}

const EXAMPLES: &str = "\
Examples:
  boxlaunch run hello
  boxlaunch run ./hello.box
  boxlaunch run ./hello.box -- sh -c 'echo $((40 + 2))'
  boxlaunch run ./hello.box -it -- sh
  boxlaunch run --image python:3.12 -- python -c 'print(40 + 2)'
  boxlaunch run ./hello.box -i -e LANG=C -w /tmp -u nobody --timeout 60 -- sort <words.txt
  boxlaunch run ./hello.box --budget report -- sh -c 'hostname; ls /a3s/skills'
  boxlaunch run ./NAME.box --component agent -- python3 -c 'print(40 + 2)'
  boxlaunch run ./NAME.box -v ./project:/a3s/workspace:rw -- git -C /a3s/workspace status
  boxlaunch run ./hello.box --skills ~/skills
  boxlaunch run ./NAME.box -e LOG_LEVEL=debug
  boxlaunch run ./NAME.box --secret API_KEY=env:API_KEY --secret CERT=file:key.pem
  boxlaunch run ./hello.box --volume work:/var/work -- sh -c 'date >>/var/work/log'
  boxlaunch run ./hello.box -p 8080:80/business
  boxlaunch run ./NAME.box --network none
  boxlaunch run ./NAME.box --network-local 127.0.0.1:5432 --network-local 10.1.0.0/16
  boxlaunch run ./fixer.box --task task.json --result result.json
  boxlaunch run ./hello.box --json --verify -- true
  boxlaunch run ./hello.box --detach --name hello && boxlaunch exec hello ls /

The records, logs and disks of boxes, volumes, which files were hashed before, and whether this host's KVM works, are kept
in $BOXLAUNCH_STATE, else $XDG_STATE_HOME/boxbuild, else ~/.local/state/boxbuild.";

/// What to do if a start exceeds its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum BudgetPolicy {
    /// Print the time of each phase, and continue.
    Report,
    /// Stop the box when a phase or the total exceeds the budget, and exit with 4.
    Enforce,
    /// Ignore the budget.
    Off,
}

/// What to do if this host lacks a layer of the jail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum JailPolicy {
    /// Refuse to start the box, and list the missing layers.
    Require,
    /// Start the box, and list the missing layers.
    BestEffort,
    /// Start the box, and print the number of a system call that the jail forbids.
    Trace,
}

/// The network of a box, which cannot exceed the one that it declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum NetworkChoice {
    /// No network.
    None,
    /// The hosts on the internet that the box's rules allow.
    Box,
    /// The network of this host, if the box declares that.
    Shared,
}

impl From<NetworkChoice> for Choice {
    fn from(choice: NetworkChoice) -> Self {
        match choice {
            NetworkChoice::None => Self::None,
            NetworkChoice::Box => Self::Box,
            NetworkChoice::Shared => Self::Shared,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_gets_no_more_cpus_than_it_may_have() {
        let mut plan = testkit::test_box::config().plan;
        plan.vm.cpus = 4;
        let of = |words: &[&str]| {
            let args = RunArgs::of_words(["x.box"].iter().chain(words)).unwrap();
            (args.size(&plan).cpus, args.fewer_cpus(&plan))
        };
        let notice = "boxlaunch: the box declares 4 CPUs, and gets 3: this host has no more, or --max-cpus allows no more\n";
        assert_eq!(of(&["--max-cpus", "3"]), (3, Some(notice.to_owned())));
        assert_eq!(of(&["--max-cpus", "4"]), (4, None));
        assert_eq!(of(&["--max-cpus", "3", "--cpus", "4"]), (4, None));
        assert_eq!(of(&["--nested", "--max-cpus", "3"]), (4, None));
    }
}
