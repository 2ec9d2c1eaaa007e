//! Checks the command line against the box, before the run changes anything on the host.

use box_contract::{ComponentName, ErrorCode, RunPlan};
use box_layout::OpenBox;
use boxlaunch::machine::variables::GivenVariable;
use boxlaunch::mounts::shares::HostShare;
use boxlaunch::network::Published;
use safe_text::readable;

use super::options::RunArgs;
use super::{network, origins, publish, restart, ssh_agent, volumes};
use crate::cli::command::component;
use crate::cli::error::Failure;
use crate::cli::lacks::Lack;
use crate::cli::launch_error::LaunchError;
use crate::cli::shares::FoundSkills;
use crate::cli::variables::{self, Assigned};
use crate::cli::{paths, secrets, shares};

/// The checked options for an opened box.
pub(super) struct Checked {
    /// The component in which a command runs.
    pub(super) component: ComponentName,
    /// The variables of `--env` and `--env-file`, for the command.
    pub(super) env: Vec<Assigned>,
    /// The variables that the box declares for its components, with the values of the command line.
    pub(super) given: Vec<GivenVariable>,
    /// The skills of `--skills`.
    pub(super) skills: FoundSkills,
}

/// The failures of checks that do not depend on each other. They are reported together.
#[derive(Default)]
struct Failures(Vec<Failure>);

impl Failures {
    /// Returns the result of a check, or notes its failure.
    fn ok<T>(&mut self, checked: Result<T, impl Into<Failure>>) -> Option<T> {
        checked.map_err(|it| self.0.push(it.into())).ok()
    }
}

/// Checks the command line against the box before the run changes anything on the host.
pub(super) fn checked(args: &RunArgs, opened: &OpenBox) -> Result<Checked, Failure> {
    // The start repeats this check.
    boxlaunch::opened::check_enforced(opened)?;
    let plan = opened.plan();
    let has = |name| plan.component(name).is_some();
    let mut failures = Failures::default();
    let secrets = failures.ok(secrets::checked(args, plan));
    failures.ok(restart::check(args, plan, secrets.as_deref().unwrap_or_default()));
    let skills = failures.ok(shares::checked(args, plan));
    let network = failures.ok(network::lacking(args, plan));
    let agent = failures.ok(ssh_agent::lacking(args, plan));
    failures.ok(volumes::checked(args, plan));
    failures.ok(check_agent_socket(args, plan));
    failures.ok(check_memory(args, plan));
    failures.ok(check_published(&publish::of_run(args, plan), has));
    let env = failures
        .ok(variables::resolved(&args.given.env_files, &args.given.env))
        .unwrap_or_default();
    let given =
        failures.ok(variables::given(&env, &args.given.env, !args.command.is_empty(), plan));
    let lacks = secrets.and_then(|it| secrets::lacking(&it, plan)).into_iter();
    let lacks = lacks.chain(skills.iter().flat_map(|it| shares::lacking(args, plan, it)));
    let lacks = lacks.chain(network.into_iter().flatten()).chain(agent.into_iter().flatten());
    let of_variables = given.as_ref().map(|it| variables::lacking(it, &args.given.env, plan));
    let lacks: Vec<_> = lacks.chain(of_variables.into_iter().flatten()).collect();
    failures.ok(Lack::check(&lacks));
    let component = failures.ok(component(args.component, has));
    let component = component.unwrap_or(ComponentName::Agent);
    Failure::all(failures.0)?;
    let (given, skills) = (given.unwrap_or_default(), skills.unwrap_or_default());
    Ok(Checked { component, env, given, skills })
}

fn check_agent_socket(args: &RunArgs, plan: &RunPlan) -> Result<(), Failure> {
    if args.agent_socket.is_none() || plan.agent.port.is_some() {
        return Ok(());
    }
    let help = "declare the agent's `port` in the Boxfile, and build the box again";
    let message = "--agent-socket has no effect: the agent of this box has no port";
    Err(Failure::new((ErrorCode::Usage, help), message))
}

fn check_memory(args: &RunArgs, plan: &RunPlan) -> Result<(), Failure> {
    let limits = plan.memory_limits();
    if args.given.memory.is_none_or(|mib| u64::from(mib) << 20 > limits) {
        return Ok(());
    }
    let help = "the VM needs more memory than its components may take together";
    let message =
        format!("--memory is too little: the components' limits are {}", readable(limits));
    Err(Failure::new((ErrorCode::Usage, help), message))
}

/// Checks a start of `opened` that another process will make. Returns the directories that the box would see.
pub(in crate::cli) fn check(args: &RunArgs, opened: &OpenBox) -> Result<Vec<HostShare>, Failure> {
    let plan = opened.plan();
    let Checked { skills, .. } = checked(args, opened)?;
    network::given(args, plan)?;
    args.check_scratch(plan, &paths::state()?)?;
    Ok(shares::resolved(args, plan, &skills)?.directories)
}

/// Checks that `opened` may have the volumes that it declares, for a start that another process will make.
pub(in crate::cli) fn check_volumes(args: &RunArgs, opened: &OpenBox) -> Result<(), Failure> {
    let (plan, state) = (opened.plan(), paths::state()?);
    let left = args.check_scratch(plan, &state)?;
    volumes::sized(args, plan, || origins::claim(args, &opened.digest), (left, &state)).map(drop)
}

/// Checks that the component of each published port exists, and that no port of the host is published twice.
fn check_published(
    published: &[Published],
    has: impl Fn(ComponentName) -> bool,
) -> Result<(), Failure> {
    if let Some(absent) = published.iter().find(|it| !has(it.component)) {
        return Err(LaunchError::NoSuchPort { published: *absent }.into());
    }
    let hosts = || published.iter().map(|it| it.host).filter(|it| it.port() != 0);
    let twice =
        hosts().enumerate().find(|(number, host)| hosts().take(*number).any(|it| it == *host));
    let Some((_, host)) = twice else { return Ok(()) };
    let help = "a port of the host leads to one port of one component; the box may declare one of them, which `-p none` leaves out";
    Err(Failure::new((ErrorCode::Usage, help), format!("two ports are published at {host}")))
}
