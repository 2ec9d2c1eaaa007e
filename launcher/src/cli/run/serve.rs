//! Serves a started box: runs the command or waits for the agent, stops the box, and prints the messages and the report.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use box_contract::signals::TERM;
use box_contract::wire::{Exited, Follow, Question, Verification};
use box_contract::{ComponentName, ErrorCode, exit};
use box_layout::OpenBox;
use boxlaunch::boxes::task::{EndedTask, Task};
use boxlaunch::boxes::{Boxes, Entry, Record, Updated, since_epoch};
use boxlaunch::client::{Client, ClientError, CommandSetup, Predecessor};
use boxlaunch::machine::because;
use boxlaunch::machine::report::{
    CommandReport, RunFacts, budget_table, run_report, shown_duration,
};
use boxlaunch::streams::StreamError;
use boxlaunch::streams::output::Route;
use boxlaunch::supervisor::{Idle, Served, Started, Terms};
use cli_common::Problem;
use host_fs::named::FileSlot;
use nix::sys::signal::Signal;
use safe_text::{shown, shown_lines};
use serde_json::json;
use vmm::signals::{StopSignals, Stopped};

use super::note_failure;
use super::options::{BudgetPolicy, RunArgs};
use super::replaced::Replaced;
use super::restart::Again;
use crate::cli::asker::{Asker, has_terminal};
use crate::cli::error::{Failure, of_run, signal_code};
use crate::cli::launch_error::{FailedRun, LaunchError};
use crate::cli::memory::{disk_full, out_of_memory};
use crate::cli::screen::Screen;
use crate::cli::terminal::{is_quiet, json_line, painted};
use crate::cli::variables::Assigned;
use crate::cli::{detach, notify, paths, task};

/// The signal that ends a VM whose agent does not end.
const KILL: i32 = Signal::SIGKILL as i32;
/// How many lines of the output of a failed verification are shown. `boxlaunch task` has the others.
const SHOWN_LINES: usize = 20;

/// How a run ended after its start.
enum Ending {
    OverBudget(Problem),
    Ready,
    Agent(u8),
    Command(Box<CommandReport>),
    Signal(i32),
}

impl Ending {
    /// Returns the exit code of the run.
    fn code(&self) -> u8 {
        match self {
            Self::OverBudget(error) => error.code.exit(),
            Self::Ready => exit::DONE,
            Self::Agent(status) => *status,
            Self::Signal(signal) => signal_code(*signal),
            Self::Command(report) => report.code(),
        }
    }
}

/// A started box and its run.
pub(super) struct Run<'a> {
    pub(super) args: &'a RunArgs,
    pub(super) opened: &'a OpenBox,
    pub(super) component: ComponentName,
    /// The variables for the command.
    pub(super) env: Vec<Assigned>,
    pub(super) signals: &'a StopSignals,
    pub(super) screen: &'a Screen,
    /// The file for the result of the task.
    pub(super) result: Option<Arc<FileSlot>>,
    /// What a restart needs.
    pub(super) again: Again<'a>,
}

impl Run<'_> {
    /// Runs the command, or waits for the end of the agent, and stops the box. A detached box keeps running. A start over the budget has
    /// failed: the box is stopped, and the one that it was to replace has its name again. Returns the exit code.
    pub(super) fn serve(
        &self,
        (mut started, predecessor): (Started, Option<Predecessor>),
        replaced: Option<Replaced>,
        mut entry: Entry,
        agent_output: Route,
    ) -> Result<u8, Failure> {
        let facts = &started.machine.facts;
        if let Some(problem) = self.over_budget(facts) {
            let reason = over_budget_reason(facts);
            entry.update(|record| record.exceed_budget(reason))?;
            let name = entry.record.name.clone();
            let code = self.serve_ready(started, entry, agent_output, Some(problem));
            self.give_up(&name, replaced)?;
            return code;
        }
        replaced.map_or(Ok(()), Replaced::remove)?;
        if let Err(error) = self.replace(&mut started, &mut entry, predecessor) {
            drop(started);
            let failure = FailedRun::from(error);
            note_failure(self.args, entry, &failure);
            return Err(of_run(failure, None));
        }
        self.serve_ready(started, entry, agent_output, None)
    }

    /// Frees the name of a start over the budget, which has ended: for the box that it was to replace, or for the next start.
    fn give_up(&self, name: &str, replaced: Option<Replaced>) -> Result<(), Failure> {
        if let Some(replaced) = replaced {
            return replaced.restore();
        }
        if !self.args.again {
            // Without a disk, the next start takes the name. An error leaves the name to `boxlaunch rm`.
            drop(Boxes::new(self.again.state).remove_disk(name));
        }
        Ok(())
    }

    /// Serves a box that is ready, or stops one whose start is over the budget, `over`.
    fn serve_ready(
        &self,
        started: Started,
        entry: Entry,
        mut agent_output: Route,
        over: Option<Problem>,
    ) -> Result<u8, Failure> {
        let (args, mut facts) = (self.args, started.machine.facts.clone());
        let record = entry.record.clone();
        let terms = Terms {
            ends_with_agent: args.command.is_empty(),
            grace: args.grace(),
            result: self.result.clone(),
            given: record.network_local.clone(),
            restart: args.restart,
            health_interval: args.health_interval(),
            idle: args.given.idle.map(|it| Idle::new(Duration::from_secs(it.into()))),
            waits_for_answers: args.as_supervisor || (has_terminal() && !args.json),
        };
        if args.as_supervisor && over.is_none() {
            if !args.json {
                self.screen.print(&format!("{}\n", record.name));
            }
            self.report((&record, &facts, None), &agent_output, Ending::Ready)?;
            notify::ready_here();
            let code = detach::leave(self.screen)?;
            return Ok(self.serve_on(started, entry, terms)?.unwrap_or(code));
        }
        let box_of = (record.name.as_str(), started.machine.protocol());
        let (stream, thread) = started.serve_beside(entry, terms)?;
        let business_ended = |name: &str, exit: Exited| self.say_business_ended(name, exit);
        let client = Client::new(stream, box_of, Follow::Output, self.signals)?;
        let denied = |component: ComponentName, what: &str| self.say_denied(component, what);
        let terminal = (self.screen, self.signals);
        let asker = Asker::new(terminal, &record.name, args.options.tty, args.json);
        let ask = |question: &Question| asker.ask(question);
        let verified = |step: &Verification| self.say_verification(record.task.as_ref(), step);
        let client = client.on_business_end(&business_ended).on_denial(&denied);
        let client = client.on_verification(&verified);
        let mut client = client.on_question(asker.all(), &ask)?;
        let ending = match over {
            Some(problem) => Ok(Ending::OverBudget(problem)),
            None => self.work(&mut client, &record, &facts, &mut agent_output),
        };
        let ending = match ending {
            Err(ClientError::Stopped(Stopped(signal))) => {
                client.let_go();
                Ok(Ending::Signal(signal))
            }
            ending => ending,
        };
        // After the end of its agent, the box ends without a request.
        if !matches!(ending, Ok(Ending::Agent(_))) {
            client.ask_to_stop(args.grace());
        }
        let stopped = ended(&mut client, thread, &mut agent_output);
        facts.agent_status = client.agent_status;
        let ending = match ending {
            // Returns the supervisor's error instead, because it contains the reason.
            Err(ClientError::BoxEnded(_) | ClientError::Refused { .. }) if stopped.is_err() => {
                return stopped.map(|_| exit::FAILED).map_err(|it| of_run(it, None));
            }
            ending => ending?,
        };
        let code = match ending {
            Ending::Signal(_) if self.args.clean_stop => {
                clean_status(facts.agent_status, self.opened.plan().agent.stop_signal)
            }
            _ => ending.code(),
        };
        let (code, ended) = after_stop(code, stopped, self.screen)?;
        let is_agents = matches!(ending, Ending::Agent(_));
        self.say_lacks(&client, &ending, record.disk_bytes);
        self.report((&record, &facts, ended.as_ref()), &agent_output, ending)?;
        // The status of a command is the exit code of the run, even if the agent has failed.
        Ok(if is_agents { self.judged(code, ended.as_ref()) } else { code })
    }

    /// Replaces the box of `--replaces`, now that this one is ready. If that box runs, takes its name, and accepts the clients
    /// of its ports.
    fn replace(
        &self,
        started: &mut Started,
        entry: &mut Entry,
        predecessor: Option<Predecessor>,
    ) -> Result<(), LaunchError> {
        let Some(replaces) = &self.args.replaces else { return Ok(()) };
        let (own, from) = (entry.record.name.clone(), replaces.from);
        let (Some(predecessor), Some(name)) = (predecessor, &replaces.name) else {
            let previous = replaces.name.clone();
            let updated = Some(Updated { time_ms: since_epoch(), from, previous });
            return Ok(entry.update(|record| record.updated = updated)?);
        };
        // Once the other box ends, a signal that has arrived before must not end this one.
        if let Some(signal) = self.signals.next()? {
            return Err(Stopped(signal).into());
        }
        let drain = Duration::from_secs(self.args.drain.unwrap_or_default().into());
        if let Err(error) = predecessor.take_over(&own, drain) {
            // The other supervisor may have exchanged the names, and its answer was lost.
            if !entry.settle_name(name)? {
                return Err(error.into());
            }
        }
        let previous = (!self.args.rm).then_some(own);
        entry.record.updated = Some(Updated { time_ms: since_epoch(), from, previous });
        // Only this box can serve the clients now, even if its record cannot be written at the moment.
        drop(entry.renamed(name));
        started.move_logs(entry);
        Ok(started.open_ports()?)
    }

    /// If the task has failed, prints the reason. Returns the exit code of the run.
    fn judged(&self, code: u8, ended: Option<&EndedTask>) -> u8 {
        let (code, failure) = task::verdict(code, ended);
        if let (Some(reason), false) = (failure, self.args.json || is_quiet()) {
            self.screen.notice(&format!("boxlaunch: the task has failed: {}\n", shown(reason)));
        }
        code
    }

    /// With `--budget report`, prints the durations of the start. If the start overran an enforced budget, prints the durations
    /// and the error, and returns the error.
    fn over_budget(&self, facts: &RunFacts) -> Option<Problem> {
        let budget = &self.opened.plan().budget;
        let over = !facts.is_ready || !budget.overruns(&facts.phases).is_empty();
        match self.args.budget {
            BudgetPolicy::Enforce if over => {
                self.screen.notice(&budget_table(budget, facts));
                let error = over_budget(facts);
                self.screen.notice(&(painted(&error.text()) + "\n"));
                return Some(error);
            }
            BudgetPolicy::Report => self.screen.notice(&budget_table(budget, facts)),
            BudgetPolicy::Enforce | BudgetPolicy::Off => {}
        }
        None
    }

    /// Runs the command until it ends, or waits for the end of the agent. With `--until-ready`, returns at once.
    fn work(
        &self,
        client: &mut Client<'_>,
        record: &Record,
        facts: &RunFacts,
        agent_output: &mut Route,
    ) -> Result<Ending, ClientError> {
        let args = self.args;
        if args.command.is_empty() {
            self.announce(record, facts);
            notify::ready();
        }
        if args.until_ready {
            return Ok(Ending::Ready);
        }
        if args.command.is_empty() {
            return client.wait_for_agent(agent_output).map(Ending::Agent);
        }
        let mut output =
            if args.json { args.options.capture(self.output_limit()) } else { self.screen.route() };
        let argv = args.command.clone();
        let exec = args.options.exec(self.component, argv.clone(), &self.env);
        let (input, tty) = (args.options.input()?, args.options.terminal()?);
        let started = Instant::now();
        let setup = CommandSetup { exec, input, tty, output: &mut output };
        let exit = match client.exec(setup, agent_output) {
            Err(ClientError::Stopped(stopped)) => {
                self.after_signal(client, stopped, &mut output, agent_output)?
            }
            exit => exit?,
        };
        let taken = started.elapsed();
        let report = CommandReport::new(self.component, argv, exit, taken, &output);
        Ok(Ending::Command(Box::new(report.refused(client.take_refusal()))))
    }

    /// Passes a signal on to the command, and waits for its end and its last output. Returns the signal again if another one arrives,
    /// or if the command has not ended after the grace: then it ends with the box.
    fn after_signal(
        &self,
        client: &mut Client<'_>,
        stopped: Stopped,
        output: &mut Route,
        agent_output: &mut Route,
    ) -> Result<Exited, ClientError> {
        self.signals.forget();
        client.ask_to_signal(false, stopped.0);
        client.give_up_after(self.args.grace());
        let ended = client.wait_for_command(output, agent_output);
        client.be_patient();
        match ended {
            Err(ClientError::NoAnswer) => Err(stopped.into()),
            ended => ended,
        }
    }

    /// Returns the limit of the box's policy for the output of a command in a report.
    fn output_limit(&self) -> Option<u64> {
        self.opened.plan().sandbox.as_ref().map(|it| it.max_output_bytes)
    }

    /// Prints the report with `--json`.
    fn report(
        &self,
        (record, facts, task): (&Record, &RunFacts, Option<&EndedTask>),
        agent_output: &Route,
        ending: Ending,
    ) -> Result<(), Failure> {
        if !self.args.json {
            return Ok(());
        }
        let (digest, config) = (self.opened.digest, &self.opened.config);
        let socket = self.agent_socket(record);
        let mut report = run_report(digest, config, facts, agent_output, socket);
        report["name"] = json!(record.name);
        report["shares"] = json!(record.shares);
        report["network"] = json!(record.network);
        report["network_given"] = json!(record.network_given);
        report["network_local"] = json!(record.network_local);
        task.iter().for_each(|it| report["task"] = task::report(it));
        match ending {
            Ending::OverBudget(error) => report["errors"] = json!([error]),
            Ending::Command(command) => {
                let boxes = Boxes::new(&paths::state()?);
                report["command"] = json!(command.under(&boxes, record));
            }
            Ending::Ready | Ending::Agent(_) | Ending::Signal(_) => {}
        }
        self.screen.print(&json_line(&report)?);
        Ok(())
    }

    /// Returns the socket of the agent's port. `None` on the virtual host, because the user cannot reach it there.
    fn agent_socket<'r>(&self, record: &'r Record) -> Option<&'r Path> {
        record.agent_socket.as_deref().filter(|_| !self.args.nested)
    }

    /// Reports the components that ran out of memory or disk space: even with `--quiet`, but not with `--json`.
    fn say_lacks(&self, client: &Client<'_>, ending: &Ending, disk_bytes: Option<u64>) {
        let command = match ending {
            Ending::Command(report) if report.lacked_memory() => Some(report.component()),
            _ => None,
        };
        if let Ending::Command(report) = ending
            && report.found_disk_full()
            && !self.args.json
        {
            self.screen.notice(&disk_full(report.component(), disk_bytes));
        }
        let agent = client.agent_lacked_memory.then_some(ComponentName::Agent);
        let of_agent = agent.filter(|it| Some(*it) != command);
        command.into_iter().chain(of_agent).for_each(|it| self.say_out_of_memory(it));
    }

    fn say_out_of_memory(&self, component: ComponentName) {
        if !self.args.json {
            let plan = self.opened.plan().component(component);
            let limit = plan.map(|it| it.limits.memory_bytes);
            self.screen.notice(&out_of_memory(component, limit));
        }
    }

    /// Reports that the business application's program has ended, and where its output is.
    fn say_business_ended(&self, name: &str, exit: Exited) {
        let status = exit.status;
        if exit.lacked_memory() {
            self.say_out_of_memory(ComponentName::Business);
        }
        // Only the command may write to its terminal.
        if self.args.json || is_quiet() || self.args.options.tty {
            return;
        }
        let restart = self.opened.plan().business.as_ref().map(|it| it.restart);
        let is_restarted = restart.is_some_and(|it| it.applies(status));
        let again = if is_restarted { ", and is started again" } else { "" };
        let output = match self.args.nested || self.args.rm {
            true => String::new(),
            false => format!("; its output: boxlaunch logs --component business {name}"),
        };
        self.screen.notice(&format!(
            "boxlaunch: the business application has ended with status {status}{again}{output}\n"
        ));
    }

    /// Reports a denied connection of the box, and the rule that would allow it.
    fn say_denied(&self, component: ComponentName, what: &str) {
        // Only the command may write to its terminal.
        if self.args.json || is_quiet() || self.args.options.tty {
            return;
        }
        let (component, what) = (component.name(), shown(what));
        self.screen.notice(&format!("boxlaunch: the {component} component: {what}\n"));
    }

    /// Reports that the task is being verified, and how that ended. The reason of a failure follows with the verdict.
    fn say_verification(&self, task: Option<&Task>, step: &Verification) {
        let verification = task.and_then(|it| it.verification.as_ref());
        // Only the command may write to its terminal.
        let is_told = !self.args.json && !is_quiet() && !self.args.options.tty;
        let Some(verification) = verification.filter(|_| is_told) else { return };
        let text = match step {
            Verification::Started => format!("verifying: {}", shown(&verification.command())),
            Verification::Ended(end) if end.has_passed() => {
                let taken = shown_duration(Duration::from_millis(end.duration_ms));
                format!("the verification has succeeded after {taken}")
            }
            Verification::Ended(end) => match last_lines(&end.output) {
                "" => return,
                lines => format!("the end of the verification's output:\n{}", shown_lines(lines)),
            },
        };
        self.screen.notice(&format!("boxlaunch: {text}\n"));
    }

    /// Reports that the agent is ready, and the path of its socket.
    fn announce(&self, record: &Record, facts: &RunFacts) {
        if self.args.json || is_quiet() {
            return;
        }
        let socket = self.agent_socket(record);
        let socket = socket
            .map_or_else(String::new, |path| format!("; the agent's socket is {}", path.display()));
        let (name, total) = (&record.name, facts.phases.total);
        self.screen.notice(&format!("boxlaunch: {name} is ready after {total:.0} ms{socket}\n"));
    }
}

/// Returns the last [`SHOWN_LINES`] lines of a text, without the last line end.
fn last_lines(text: &str) -> &str {
    let text = text.trim_end();
    let start = text.rmatch_indices('\n').nth(SHOWN_LINES - 1);
    start.map_or(text, |(at, _)| &text[at + 1..])
}

/// Waits until the supervisor has closed the connection. A signal ends the box at once.
fn wait_for_end(client: &mut Client<'_>, agent_output: &mut Route) -> Result<(), ClientError> {
    loop {
        match client.wait_for_end(agent_output) {
            Err(ClientError::Stopped(_)) => client.ask_to_stop(Duration::ZERO),
            waited => return waited,
        }
    }
}

/// Returns the exit code of `--clean-stop`: the status of the agent, or 0 if the signal that asked it to end has ended it.
fn clean_status(agent: Option<u8>, stop_signal: Option<u8>) -> u8 {
    let asked = [TERM, stop_signal.unwrap_or(TERM)];
    match agent {
        Some(status) if asked.iter().any(|it| signal_code((*it).into()) == status) => exit::DONE,
        Some(status) => status,
        // The VM was killed before the agent had ended.
        None => signal_code(KILL),
    }
}

/// How a box ended: its task, or `None` if it had none; or why the run failed.
type Ended = Result<Option<EndedTask>, FailedRun>;

/// Waits until the box has ended, and passes on the remaining output of its agent.
fn ended(
    client: &mut Client<'_>,
    supervisor: JoinHandle<Served>,
    agent_output: &mut Route,
) -> Ended {
    let mut waited = wait_for_end(client, agent_output);
    if waited.is_err() {
        // Either the reader of the output has closed its pipe, or the supervisor has reported a failure. Waits again, without
        // passing output on, because the supervisor still has to end.
        waited = waited.and(wait_for_end(client, &mut Route::Nowhere));
    }
    let served = supervisor.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let task = served.map_err(|failure| failure.with_output(agent_output))?;
    waited?;
    Ok(task)
}

/// Returns the exit code of a stopped run, and its task. If the last output cannot be written, a status other than 0 remains the
/// exit code. [`Screen::close`] follows the same rule.
fn after_stop(
    code: u8,
    stopped: Ended,
    screen: &Screen,
) -> Result<(u8, Option<EndedTask>), Failure> {
    match stopped {
        Err(failure)
            if code != 0
                && matches!(failure.error, LaunchError::Stream(StreamError::Output(_))) =>
        {
            screen.report(&of_run(failure, None), false);
            Ok((code, None))
        }
        stopped => stopped.map(|task| (code, task)).map_err(|it| of_run(it, None)),
    }
}

/// Returns the error of a start over its budget, whether the agent was ready too late or is not ready yet.
fn over_budget(facts: &RunFacts) -> Problem {
    let message = over_budget_reason(facts);
    if facts.is_ready {
        return Problem::new(ErrorCode::OverBudget, message);
    }
    let help = "`--budget report` waits for it, until --startup-timeout, and shows the time of each phase, or what \
                prevents the start; the Boxfile's `budget` sets the limit";
    Problem::new((ErrorCode::OverBudget, help), message)
}

fn over_budget_reason(facts: &RunFacts) -> String {
    if facts.is_ready {
        return "the start took longer than the box's budget allows".to_owned();
    }
    let reason = because(facts.unready.as_deref());
    format!("the box's budget was exceeded before the agent was ready{reason}")
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::rc::Rc;

    use boxlaunch::opened::verify::{Verification, Verified};
    use vmm::jail::Report;

    use super::*;

    #[test]
    fn a_clean_stop_has_the_status_of_the_agent() {
        const QUIT: u8 = 3;
        for (agent, stop_signal, expected) in [
            (Some(0), None, 0),
            (Some(143), None, 0),
            (Some(131), Some(QUIT), 0),
            (Some(131), None, 131),
            (Some(7), None, 7),
            (Some(137), None, 137),
            (None, None, 137),
        ] {
            assert_eq!(clean_status(agent, stop_signal), expected, "{agent:?} {stop_signal:?}");
        }
    }

    #[test]
    fn a_start_over_its_budget_says_what_the_health_check_said() {
        let verification = Verification { verified: Verified::Receipt, hashing: Duration::ZERO };
        let mut facts = RunFacts::new(verification, Report::default());
        let silent = "the box's budget was exceeded before the agent was ready";
        assert_eq!(over_budget_reason(&facts), silent);
        facts.unready = Some("port 80: no answer".to_owned());
        let expected = format!("{silent}; its health check: port 80: no answer");
        assert_eq!(over_budget_reason(&facts), expected);
        facts.is_ready = true;
        assert!(!over_budget_reason(&facts).contains("health"));
    }

    fn code(code: u8, error: LaunchError) -> u8 {
        let signals = Rc::new(StopSignals::block().unwrap());
        let screen = Screen::new(&signals, false).unwrap();
        after_stop(code, Err(error.into()), &screen)
            .map_or_else(|error| error.exit, |(code, _)| code)
    }

    #[test]
    fn lost_output_does_not_hide_the_status_of_a_program_that_failed() {
        let lost = || StreamError::Output(io::ErrorKind::BrokenPipe.into()).into();
        assert_eq!(code(7, lost()), 7);
        assert_eq!(code(0, lost()), 141);
        assert_eq!(code(7, LaunchError::Stopped(Stopped(2))), 130);
    }
}
