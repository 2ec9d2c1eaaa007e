//! `boxlaunch update`: replaces the box of a detached run by another one, with the same options.
//!
//! The box of a tag is pulled beside the tag, which moves only to a permitted box ([`permitted`]): whoever starts the tag later, such as
//! systemd, asks nobody.
//!
//! If both boxes can run at the same time, the new one starts first. Its supervisor then takes the name and the published ports
//! from the supervisor of the old one ([`Predecessor`](boxlaunch::client::Predecessor)), so the end of this command in the middle
//! changes nothing. Otherwise the old box is stopped first, and started again if the new one does not become ready.

mod permitted;

use std::process;
use std::thread::sleep;
use std::time::{Duration, Instant};

use box_cache::Pulled;
use box_contract::{ErrorCode, exit};
use box_digest::Digest;
use box_layout::OpenBox;
use boxlaunch::boxes::{Boxes, Record, RecordError, State};
use boxlaunch::client::ClientError;
use boxlaunch::streams::attached::MAX_ATTACHED;
use cli_common::store::{BoxArgument, CommandFault};
use cli_registry::RegistryOptions;
use serde_json::{Value, json};
use vmm::signals::StopSignals;

use super::error::Failure;
use super::launch_error::LaunchError;
use super::lifecycle::{LOOK, PATIENCE, end, has_ended};
use super::paths;
use super::pull::PullPolicy;
use super::repeat::{box_of, check_sources, command, exactly, not_repeatable, options, parsed};
use super::run::{self, Replaces, RunArgs, seconds};
use super::stored::PROGRAM;
use super::terminal::{is_quiet, json_line, notice, painted, print};
use super::{credentials, detach, notify};

use permitted::{Accepted, Candidate, plan_before};

/// Replaces the box of a run by another one, with the same name, options and published ports.
///
/// The new box starts first. Once its agent is ready, it accepts the clients of the published ports, and the old box is stopped.
/// No client is refused meanwhile. The old box is stopped first if the new one has a volume, a writable share, `--agent-socket`,
/// `--console`, or more than 253 published ports. If the new box does not become ready, the old one goes on, or is started
/// again, and boxlaunch exits with 6.
///
/// A box that asks for more than the one that runs is refused before anything is changed, unless --accept permits it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct UpdateArgs {
    /// The name of the box that runs, which the new box gets.
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    subject: BoxArgument,
    /// Print one JSON object instead.
    #[arg(long)]
    pub(crate) json: bool,
    /// Update only if the new box has this digest.
    #[arg(long, value_name = "DIGEST")]
    expect: Option<Digest>,
    /// Update even to a box that did not become ready when it was to replace this one before.
    #[arg(long)]
    retry: bool,
    /// Update even if the new box asks for more than the one that runs, for example for another host. With a digest, only if the new
    /// box has it.
    #[arg(long, value_name = "DIGEST", num_args = 0..=1, require_equals = true, default_missing_value = permitted::ANY)]
    accept: Option<Accepted>,
    /// Replace no box that runs, but the one that the store starts next under the reference. For a service that does not run.
    #[arg(long, conflicts_with = "json")]
    next: bool,
    /// When to pull the new box from a registry [default: missing].
    #[arg(long, value_enum, value_name = "POLICY")]
    pull: Option<PullPolicy>,
    #[command(flatten)]
    registries: RegistryOptions,
    /// How many seconds the clients of published ports may stay connected to the old box before it is stopped.
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    #[arg(value_parser = seconds(0), allow_negative_numbers = true)]
    drain: u32,
}

const EXAMPLES: &str = "\
Examples:
  boxlaunch update hello ./hello.box
  boxlaunch update hello registry.example.com/hello:2 --json
  boxlaunch update --accept hello ./hello.box";

/// The help if a secret would go by another way.
const OTHER_WAY: &str = "if that is right, stop the box, and start the new one with its options: `boxlaunch run --replace`";

/// How an update ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The box already runs.
    Unchanged,
    /// The new box runs.
    Updated,
    /// The new box did not become ready, and the old one goes on.
    Kept,
    /// The new box did not become ready, and the old one was started again.
    Restored,
    /// Neither runs.
    Stopped,
}

impl Outcome {
    const fn name(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Updated => "updated",
            Self::Kept => "kept",
            Self::Restored => "restored",
            Self::Stopped => "stopped",
        }
    }
}

/// The result of an update.
#[derive(Debug)]
struct Report {
    outcome: Outcome,
    /// The name under which the record and the logs of the old run are, if they are kept under another name.
    previous: Option<String>,
    /// The name under which the record and the logs of a start that failed are.
    failed: Option<String>,
    /// The errors of starts that failed, as JSON.
    errors: Vec<Value>,
}

/// Runs `boxlaunch update`.
pub(crate) fn update(args: &UpdateArgs) -> Result<u8, Failure> {
    let boxes = Boxes::new(&paths::state()?);
    let alone = boxes.updating(&args.name);
    if args.next {
        // A service that has never started has no record.
        let _alone = match alone {
            Err(RecordError::NoBox(_)) => None,
            alone => Some(alone?),
        };
        return args.next();
    }
    let _alone = alone?;
    let old = boxes.find(&args.name)?;
    let options = repeatable(&old)?;
    let mut run = args.run(&options)?;
    check_sources(&run)?;
    let before = args.reference_before()?;
    let aside = match args.bring(&mut run)? {
        Ok(aside) => aside,
        Err(code) => return Ok(code),
    };
    run.load()?;
    let (opened, _held) = run.open()?;
    let to = opened.digest;
    let candidate = Candidate { args, opened: &opened, aside, is_service: old.service };
    if to == old.digest {
        candidate.move_reference()?;
        let report =
            Report { outcome: Outcome::Unchanged, previous: None, failed: None, errors: vec![] };
        return args.end(&report, (old.digest, to));
    }
    if !args.retry && boxes.refused(&args.name) == Some(to) {
        return Err(not_retried(&args.name, to));
    }
    credentials::check((&old.name, &old.services), opened.plan(), OTHER_WAY)?;
    candidate.check(plan_before(args, &old).as_ref())?;
    let has_writable = run::check(&run, &opened)?.iter().any(|it| it.is_writable());
    candidate.move_reference()?;
    // Its origins are known now. A refusal must not cost the box that runs.
    run.replaces = Some(Replaces { from: old.digest, name: None, runs: false });
    if let Err(refused) = run::check_volumes(&run, &opened) {
        put_back(args, before.as_ref(), &to)?;
        return Err(refused);
    }
    let signals = StopSignals::block()?;
    let is_down = old.state == State::Starting;
    let alone =
        is_down.then_some("failed before").or_else(|| why_alone(&run, &opened, has_writable));
    // Another box may be at the path by the time that the new one starts.
    let directory = opened.places.directory.to_string_lossy();
    let new = exactly(to, &directory, &args.subject.store);
    let new = new.map_or_else(|| args.subject.clone(), |it| it.subject);
    let update = Update { args, boxes, old, run, options, new, to, signals };
    let report = match alone {
        None => update.beside()?,
        Some(reason) => {
            if !args.json && !is_quiet() {
                let name = &args.name;
                notice(&format!("boxlaunch: {name} is stopped first, because it has {reason}\n"));
            }
            update.in_turn()?
        }
    };
    if report.outcome != Outcome::Updated {
        if report.outcome != Outcome::Stopped {
            update.boxes.refuse(&args.name, &to)?;
        }
        put_back(args, before.as_ref(), &to)?;
    }
    args.end(&report, (update.old.digest, to))
}

/// Gives a reference of the store back to the box that had it before this command pulled `to`, which did not become ready. So
/// whoever runs the reference later, for example when the host starts, gets the box that works.
fn put_back(args: &UpdateArgs, before: Option<&Pulled>, to: &Digest) -> Result<(), Failure> {
    let Some(before) = before.filter(|it| it.digest != *to) else { return Ok(()) };
    let store = args.subject.store.open(&PROGRAM)?;
    Ok(store.give_back(before, to).map_err(CommandFault::from)?)
}

/// Returns the error of an update to a box that did not become ready before.
fn not_retried(name: &str, to: Digest) -> Failure {
    let message = format!("{name} was not updated: {to} did not become ready before");
    Failure::new((ErrorCode::NotUpdated, "--retry tries it again"), message)
}

/// Returns the options of a run that can be repeated.
fn repeatable(old: &Record) -> Result<Vec<String>, Failure> {
    let name = old.name.clone();
    match old.state {
        // A box that waits for its restart needs another version most.
        State::Starting if old.restarted.is_some() => {}
        State::Starting => return Err(LaunchError::StillStarting(name).into()),
        State::Ended => return Err(ClientError::NotRunning(name).into()),
        State::Running => {}
    }
    if old.service && !notify::is_command_of_service(process::id()) {
        let help = "reload the service, for example with `systemctl reload boxbuild@NAME`";
        return Err(not_repeatable(&name, "it is a service, which would end with it", help));
    }
    if old.project.is_some() {
        let help = "stop it, and start it with another box: `boxlaunch down`, then `boxlaunch up --box BOX`";
        return Err(not_repeatable(&name, "it is the environment of a project", help));
    }
    options(old)
}

/// Returns why the new box cannot run beside the old one. `None` if it can.
fn why_alone(run: &RunArgs, opened: &OpenBox, has_writable: bool) -> Option<&'static str> {
    if !run::volumes_of(run, opened.plan()).is_empty() {
        Some("a volume")
    } else if has_writable {
        Some("a writable share")
    } else if run.agent_socket.is_some() {
        Some("a socket of `--agent-socket`")
    } else if run.console.is_some() {
        Some("a file of `--console`")
    } else if run::ports_of(run, opened.plan()).len() > MAX_ATTACHED {
        Some("too many published ports to hand over")
    } else {
        None
    }
}

impl UpdateArgs {
    /// Returns the command line that starts the new box.
    fn run(&self, options: &[String]) -> Result<RunArgs, Failure> {
        let parsed = parsed(&self.name, options)?;
        Ok(RunArgs {
            subject: self.subject.clone(),
            json: self.json,
            expect: self.expect,
            pull: self.pull.or(self.pull_again()?),
            registries: self.registries.clone(),
            ..parsed
        })
    }

    /// Returns the policy of `--retry`: after a failed update the store's reference means the old box again.
    fn pull_again(&self) -> Result<Option<PullPolicy>, Failure> {
        let may_move = self.tag()?.is_some();
        Ok((self.retry && may_move).then_some(PullPolicy::Always))
    }

    /// Prints the result, and returns the exit code.
    fn end(&self, report: &Report, (from, to): (Digest, Digest)) -> Result<u8, Failure> {
        let name = &self.name;
        let failure = failure(report, name, from);
        if self.json {
            let Report { outcome, previous, failed, errors } = report;
            let mut object = json!({
                "name": name, "result": outcome.name(), "from": from, "to": to, "previous": previous, "failed": failed,
            });
            if let Some(failure) = &failure {
                let own: Value = serde_json::from_str(&failure.json()).unwrap_or_default();
                let own = own["errors"].as_array().cloned().unwrap_or_default();
                object["errors"] = errors.iter().cloned().chain(own).collect();
            }
            print(&json_line(&object)?)?;
            return Ok(failure.map_or(exit::DONE, |it| it.exit));
        }
        if let Some(failure) = failure {
            notice(&(painted(&failure.text()) + "\n"));
            return Ok(failure.exit);
        }
        print(&match report.outcome {
            Outcome::Unchanged => format!("{name} is unchanged: {to} runs already\n"),
            _ => format!("{name} is updated from {from} to {to}\n"),
        })?;
        Ok(exit::DONE)
    }
}

/// Returns the error of an update after which the new box does not run.
fn failure(report: &Report, name: &str, from: Digest) -> Option<Failure> {
    let logs = match report.failed {
        Some(_) => {
            "`boxlaunch ps -a` lists the start that failed, and `boxlaunch logs` has its output"
        }
        None => "the error of the start has its last output; its record was removed",
    };
    let (code, help, message) = match report.outcome {
        Outcome::Unchanged | Outcome::Updated => return None,
        Outcome::Kept => {
            (ErrorCode::NotUpdated, logs, format!("{name} was not updated: {from} goes on"))
        }
        Outcome::Restored => {
            let message = format!("{name} was not updated: {from} was started again");
            (ErrorCode::NotUpdated, logs, message)
        }
        Outcome::Stopped => {
            let message = format!("{name} was not updated, and does not run any more");
            (ErrorCode::NotRunning, logs, message)
        }
    };
    Some(Failure::new((code, help), message))
}

/// An update whose new box is known to accept the options of the old one.
struct Update<'a> {
    args: &'a UpdateArgs,
    boxes: Boxes,
    /// The box that runs.
    old: Record,
    /// The command line of the new box.
    run: RunArgs,
    options: Vec<String>,
    /// The new box, with its digest.
    new: BoxArgument,
    /// The digest of the new box.
    to: Digest,
    signals: StopSignals,
}

impl Update<'_> {
    /// Starts the new box under another name. Its supervisor exchanges the names once its agent is ready.
    fn beside(&self) -> Result<Report, Failure> {
        let (name, from) = (self.args.name.clone(), self.old.digest);
        let other = self.boxes.free_name(&name)?;
        let replaces = Replaces { from, name: Some(name), runs: true };
        let errors = self.start(&self.new, (&other, false), &replaces)?;
        match self.current()? {
            Some(now) if self.is_old(&now) => {
                // A box that waits for its restart goes on, too.
                let goes_on = now.state != State::Ended;
                let outcome = if goes_on { Outcome::Kept } else { Outcome::Stopped };
                let failed = self.exists(&other).then_some(other);
                Ok(Report { outcome, previous: None, failed, errors })
            }
            Some(now) if now.state == State::Running && now.digest == self.to => {
                self.await_end(&other)?;
                let previous = self.exists(&other).then_some(other);
                self.remove_disk(previous.as_ref());
                Ok(Report { outcome: Outcome::Updated, previous, failed: None, errors: vec![] })
            }
            _ => Ok(Report { outcome: Outcome::Stopped, previous: None, failed: None, errors }),
        }
    }

    /// Stops the old box, starts the new one, and starts the old one again if the new one does not become ready.
    fn in_turn(&self) -> Result<Report, Failure> {
        let (old, name) = (&self.old, &self.args.name);
        // The store keeps the old box until this update ends.
        let again = box_of(old, &self.args.subject.store)?;
        end(&self.boxes, old, self.run.grace())?;
        let previous = self.boxes.set_aside(name)?;
        let replaces = Replaces { from: old.digest, name: previous.clone(), runs: false };
        let mut errors = self.start(&self.new, (name, false), &replaces)?;
        if self.runs(self.to)? {
            self.remove_disk(previous.as_ref());
            return Ok(Report {
                outcome: Outcome::Updated,
                previous,
                failed: None,
                errors: vec![],
            });
        }
        if let Some(failing) = self.current()?.filter(|it| it.state != State::Ended) {
            // It was ready, has failed, and waits for its restart.
            end(&self.boxes, &failing, self.run.grace())?;
        }
        let failed = self.boxes.set_aside(name)?;
        self.remove_disk(failed.as_ref());
        let replaces = Replaces { from: self.to, name: failed.clone(), runs: false };
        // The old box continues with its disk.
        let has_record = previous.as_deref().map(|it| self.boxes.rename(it, name)).transpose()?;
        errors.extend(self.start(&again.subject, (name, has_record.is_some()), &replaces)?);
        let outcome = if self.runs(old.digest)? { Outcome::Restored } else { Outcome::Stopped };
        Ok(Report { outcome, previous: None, failed, errors })
    }

    /// Removes the disk of a box that has ended, whose record is kept. An error is ignored: `boxlaunch rm` removes the disk, too.
    fn remove_disk(&self, name: Option<&String>) {
        drop(name.map(|name| self.boxes.remove_disk(name)));
    }

    /// Starts a box with the options of the old one. With `again`, the box of that name continues. Returns the errors as JSON, if
    /// the start fails.
    fn start(
        &self,
        subject: &BoxArgument,
        (name, again): (&str, bool),
        replaces: &Replaces,
    ) -> Result<Vec<Value>, Failure> {
        let mut start = command(subject, name, &self.options, self.args.json);
        start.args(["--replaces", &replaces.word()]).args(again.then_some("--again"));
        start.args([format!("--drain={}", self.args.drain)]);
        if let Some(path) = &self.args.registries.registry_config {
            start.arg("--registry-config").arg(path);
        }
        start.args((self.args.pull == Some(PullPolicy::Never)).then_some("--pull=never"));
        let (output, code) = detach::follow(&mut start, &self.signals)?;
        if code() == exit::DONE {
            return Ok(Vec::new());
        }
        let report: Value = serde_json::from_slice(&output).unwrap_or_default();
        Ok(report["errors"].as_array().cloned().unwrap_or_default())
    }

    /// Waits until the old box, which has another name now, has ended.
    fn await_end(&self, name: &str) -> Result<(), Failure> {
        let old = Record { name: name.to_owned(), ..self.old.clone() };
        let drain = Duration::from_secs(self.args.drain.into());
        let deadline = Instant::now() + drain + self.run.grace() + PATIENCE;
        while !has_ended(&self.boxes, &old)? {
            if Instant::now() > deadline {
                return Err(RecordError::StillRunning(name.to_owned()).into());
            }
            sleep(LOOK);
        }
        Ok(())
    }

    /// Returns the box that has the name now.
    fn current(&self) -> Result<Option<Record>, Failure> {
        match self.boxes.find(&self.args.name) {
            Err(RecordError::NoBox(_)) => Ok(None),
            found => Ok(Some(found?)),
        }
    }

    /// Returns whether a box with this digest that is ready has the name. Somebody else may have started another one under it.
    fn runs(&self, digest: Digest) -> Result<bool, Failure> {
        let is_it = |it: Record| it.state == State::Running && it.digest == digest;
        Ok(self.current()?.is_some_and(is_it))
    }

    fn is_old(&self, record: &Record) -> bool {
        let run = |it: &Record| (it.created_ms, it.supervisor);
        run(record) == run(&self.old)
    }

    fn exists(&self, name: &str) -> bool {
        self.boxes.find(name).is_ok()
    }
}
