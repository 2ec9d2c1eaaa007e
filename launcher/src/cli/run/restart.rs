//! `--restart`: starts a box again after it has failed, in the process that supervises it.

use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::{Duration, Instant};

use box_contract::{ErrorCode, RunPlan, exit};
use boxlaunch::boxes::{Entry, Record};
use boxlaunch::machine::variables::GivenVariable;
use boxlaunch::streams::output::Route;
use boxlaunch::supervisor::{Ended, Started, Terms, delay};
use host_fs::OsError;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use vmm::runtime_dir::RuntimeDir;

use super::given::GivenOptions;
use super::options::{BudgetPolicy, RunArgs};
use super::serve::Run;
use super::{Asked, Boot};
use crate::cli::error::{Failure, of_run, usage};
use crate::cli::paths;
use crate::cli::repeat::{not_repeatable, options, parsed};
use crate::cli::secrets::{self, GivenSecret};
use crate::cli::shares;

/// What a restart needs in addition to the options.
pub(super) struct Again<'a> {
    /// The state directory.
    pub(super) state: &'a Path,
    /// The variables that the components got at the first start.
    pub(super) given: Vec<GivenVariable>,
}

/// Refuses `--restart` for a box that could not be started again as it was started first.
pub(super) fn check(
    args: &RunArgs,
    plan: &RunPlan,
    secrets: &[GivenSecret],
) -> Result<(), Failure> {
    let Some(policy) = args.restart else { return Ok(()) };
    if plan.task.is_some() {
        let message = "--restart is not for a box with a task, which would begin again";
        return Err(usage(message, "leave it out"));
    }
    if policy.unhealthy && plan.agent.health.is_none() {
        let help = "declare `health` for the agent in the Boxfile, and build the box again";
        let message =
            "--restart unhealthy has no effect: the agent of this box has no health check";
        return Err(Failure::new((ErrorCode::Usage, help), message));
    }
    let Some(name) = secrets.iter().find_map(GivenSecret::only_once) else { return Ok(()) };
    let message = format!("--restart has to read the secret {name} at each start");
    Err(usage(&message, &format!("give it as `--secret {name}=file:PATH`")))
}

impl Run<'_> {
    /// Serves a detached box until it ends for good. Returns the exit code of the agent, if it has ended by itself.
    pub(super) fn serve_on(
        &self,
        started: Started,
        entry: Entry,
        mut terms: Terms,
    ) -> Result<Option<u8>, Failure> {
        let mut ended = started.serve_here(entry, terms.clone(), self.signals);
        while let Some(entry) = ended.again.take() {
            let Some((started, entry)) = self.start_again(entry)? else {
                return Ok(Some(exit::DONE));
            };
            // An agent that fails again and again does not use the box.
            terms.idle = ended.idle;
            ended = started.serve_here(entry, terms.clone(), self.signals);
        }
        let Ended { served, status, .. } = ended;
        served.map_err(|failure| of_run(failure, None))?;
        Ok(status)
    }

    /// Waits, and starts the box again, until a start succeeds. `None` if the box is stopped meanwhile.
    fn start_again(&self, mut entry: Entry) -> Result<Option<(Started, Entry)>, Failure> {
        loop {
            let in_row = entry.record.restarted.as_ref().map_or(1, |it| it.in_row);
            if self.is_stopped_within(delay(in_row))? {
                let status = entry.record.status;
                entry.end(status, None)?;
                return Ok(None);
            }
            let failure = match self.boot_again(&mut entry) {
                Ok(started) => return Ok(Some((started, entry))),
                Err(failure) => failure,
            };
            if self.signals.any_taken() {
                entry.end(None, None)?;
                return Ok(None);
            }
            let reason = failure.message();
            // What was refused once may lead elsewhere again at the next try.
            let policy = self.args.restart.filter(|_| !failure.has(ErrorCode::NotRepeatable));
            match policy.and_then(|it| it.next(&entry.record, &reason)) {
                Some(next) => entry.rest(None, next),
                None => {
                    entry.end(None, Some(reason))?;
                    return Err(failure);
                }
            }
        }
    }

    /// Waits for `time`. Returns whether a signal has arrived.
    fn is_stopped_within(&self, time: Duration) -> Result<bool, OsError> {
        let until = Instant::now() + time;
        loop {
            if self.signals.next()?.is_some() {
                return Ok(true);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            // After an error, such as another signal, the loop looks again.
            let _ = poll(&mut [PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)], left);
        }
    }

    /// Starts the box again with the options of its first start.
    fn boot_again(&self, entry: &mut Entry) -> Result<Started, Failure> {
        let (args, plan) = (self.repeated(&entry.record)?, self.opened.plan());
        let secrets = secrets::take_again(&secrets::checked(&args, plan)?, plan)?;
        let name = &entry.record.name;
        let given = self.again.given.clone();
        let skills = shares::checked(&args, plan)?;
        let asked = Asked::of(&args, plan, given, secrets, &skills);
        // A link that is refused is one that a box may have put there.
        let mut asked =
            asked.map_err(|it| if it.has(ErrorCode::Usage) { refused(name, &it) } else { it })?;
        // A hostile agent must not get back what the user has denied it.
        let record = &entry.record;
        asked.network = asked.network.with_changes(&record.network, &record.network_local);
        asked.disk_bytes = record.disk_bytes;
        let Self { opened, signals, screen, again: Again { state, .. }, .. } = *self;
        let boot = Boot { args: &args, opened, state, signals, screen };
        boot.check(&asked).map_err(|it| refused(name, &it))?;
        let runtime = RuntimeDir::create(&paths::runtime_base())?;
        let fresh = boot.record(&asked, &runtime);
        entry.update(|record| *record = renewed(record, fresh))?;
        let captured = &mut Route::capture();
        let started = boot.start(asked, (runtime, entry), captured, Instant::now());
        started.map_err(|failure| of_run(failure, None))
    }

    /// Returns the options of this run as they were given, with absolute paths. The budget of the start has been checked once: a
    /// host that is busy now is no reason to give a box up.
    fn repeated(&self, record: &Record) -> Result<RunArgs, Failure> {
        // Without its options, the box would have no limits but those of every box.
        let parsed = parsed(&record.name, &options(record)?)?;
        let Self { args, .. } = self;
        Ok(RunArgs {
            subject: args.subject.clone(),
            name: args.name.clone(),
            given: GivenOptions { env: args.given.env.clone(), ..parsed.given.clone() },
            budget: BudgetPolicy::Off,
            ..parsed
        })
    }
}

/// Refuses `--restart` for a run whose options cannot be recorded: a restart would lose what they restrict.
pub(super) fn check_options(args: &RunArgs, options: Option<&Vec<String>>) -> Result<(), Failure> {
    if args.restart.is_none() || options.is_some() {
        return Ok(());
    }
    let message =
        "--restart has to record the options of the run, but one of their paths is not UTF-8";
    Err(usage(message, "rename that file or directory, or leave --restart out"))
}

/// Returns the failure of a restart that would give the box what no box may have.
fn refused(name: &str, failure: &Failure) -> Failure {
    let help = "a box may have put a link there: look at what it has left before you run it anew";
    not_repeatable(name, &failure.message(), help)
}

/// Returns the record of a run that begins again, from the record of the box and that of a first start.
fn renewed(record: &Record, fresh: Record) -> Record {
    Record {
        name: record.name.clone(),
        created_ms: record.created_ms,
        published: record.published.clone(),
        options: record.options.clone(),
        denied: record.denied,
        updated: record.updated.clone(),
        restarted: record.restarted.clone(),
        ..fresh
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::rc::Rc;

    use box_contract::ComponentName;
    use boxlaunch::boxes::Boxes;
    use boxlaunch::mounts::shares::ShareRecord;
    use testkit::test_box::{TestBox, config};
    use vmm::signals::StopSignals;

    use super::*;
    use crate::cli::screen::Screen;

    /// Returns why a box is not started again whose options are `options`, and which saw `shares` before.
    fn refusal(state: &Path, options: Option<Vec<String>>, shares: Vec<ShareRecord>) -> Failure {
        let made = TestBox::new(&config());
        let opened = boxlaunch::opened::open(made.path()).unwrap();
        let record = Record::new(&opened, opened.plan().vm, &state.join("none"));
        let record = Record { options, shares, ..record };
        let mut entry = Boxes::new(state).create(None, record).unwrap();
        let args = ["x.box", "--detach", "--restart", "on-failure"];
        let args = RunArgs::of_words(args).unwrap();
        let signals = Rc::new(StopSignals::block().unwrap());
        let screen = Screen::new(&signals, false).unwrap();
        let again = Again { state, given: Vec::new() };
        let run = Run {
            args: &args,
            opened: &opened,
            component: ComponentName::Agent,
            env: Vec::new(),
            signals: &signals,
            screen: &screen,
            result: None,
            again,
        };
        run.boot_again(&mut entry).err().unwrap()
    }

    /// The box may have made what the paths of its shares lead to.
    #[test]
    fn a_restart_gives_a_box_nothing_that_its_first_start_would_not() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().canonicalize().unwrap();
        let (state, project, keys) = (home.join("state"), home.join("project"), home.join("keys"));
        for directory in [&state, &project, &keys] {
            fs::create_dir(directory).unwrap();
        }
        let refusal = |host: &Path, before: &Path| {
            let options = Some(vec![format!("--share={}:/w", host.display())]);
            let (host, guest) = (before.into(), "/w".into());
            let before = ShareRecord { host, guest, writable: false, socket: false };
            let failure = refusal(&state, options, vec![before]);
            assert!(failure.has(ErrorCode::NotRepeatable), "{}", failure.text());
            failure.text()
        };
        let text = refusal(&state, &state);
        assert!(text.contains("boxlaunch keeps its files in"), "{text}");
        symlink(&keys, project.join("link")).unwrap();
        let text = refusal(&project.join("link"), &project.join("link"));
        assert!(text.contains("keys of this host at /w: it was "), "{text}");
        let none = super::tests::refusal(&state, None, Vec::new());
        assert!(none.has(ErrorCode::NotRepeatable), "{}", none.text());
    }

    #[test]
    fn only_a_run_with_recorded_options_is_restarted() {
        let args = |words: &[&str]| RunArgs::of_words(["x.box", "--detach"].iter().chain(words));
        let (plain, again) = (args(&[]).unwrap(), args(&["--restart", "on-failure"]).unwrap());
        assert!(check_options(&plain, None).is_ok());
        assert!(check_options(&again, Some(&Vec::new())).is_ok());
        insta::assert_snapshot!(check_options(&again, None).unwrap_err().text(), @"
        error: --restart has to record the options of the run, but one of their paths is not UTF-8
          = help: rename that file or directory, or leave --restart out
        ");
    }
}
