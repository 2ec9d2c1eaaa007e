//! The gate before commands: the policy of the plan (`sandbox`), and the commands that wait for an answer.
//!
//! A command that the policy asks about waits here, and the host gets a [`Question`]. Its input is kept until it starts. Its time limit
//! begins when it starts.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::time::{Duration, Instant};

use box_contract::wire::{
    Answer, Asked, Caller, Denial, Exec, Exited, GuestEvent, GuestMessage, INPUT_WINDOW,
    MAX_QUESTIONS, ProgramId, Question, QuestionEnded, Refused, Reply, TerminalSize,
};
use box_contract::{ComponentName, SandboxPlan};
use command_policy::{Circumstances, Classifier, Decision, Ruling};
use nix::sys::signal::Signal;

use super::Server;
use super::command::not_started;
use crate::error::InitError;

/// How many bytes the waiting commands may have together, because the memory of init has no limit.
const MAX_WAITING_BYTES: usize = 4 << 20;
/// How many commands are remembered, and how many bytes they may have together. Further commands are asked about each time.
const MAX_REMEMBERED: usize = 1000;
const MAX_REMEMBERED_BYTES: usize = 1 << 20;
/// The signals that cancel a waiting command.
const CANCELLING: [Signal; 5] =
    [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGKILL, Signal::SIGTERM];
/// The character by which a terminal sends SIGINT ([termios(3)](https://man7.org/linux/man-pages/man3/termios.3.html), `VINTR`).
const INTERRUPT: u8 = 3;

/// The policy, the commands that wait for an answer, and the commands that were approved for the rest of the run.
#[derive(Debug)]
pub(super) struct Approvals {
    /// `None` if the plan has no policy.
    classifier: Option<Classifier>,
    timeout: Duration,
    waiting: BTreeMap<ProgramId, Waiting>,
    remembered: BTreeSet<Remembered>,
    remembered_bytes: usize,
    /// The number of the last question.
    last: u32,
}

/// A command that waits for an answer.
#[derive(Debug)]
struct Waiting {
    exec: Exec,
    question: Question,
    deadline: Instant,
    /// The input that has arrived.
    input: Vec<u8>,
    /// Whether the input has ended.
    input_ends: bool,
    /// The last size of the caller's terminal.
    size: Option<TerminalSize>,
}

/// What makes two commands the same one: everything but their time limits. A command with an input is never the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Remembered {
    component: ComponentName,
    argv: Vec<OsString>,
    env: Vec<OsString>,
    workdir: Option<OsString>,
    user: Option<String>,
}

impl Remembered {
    fn of(exec: &Exec) -> Self {
        Self {
            component: exec.component,
            argv: exec.argv.clone(),
            env: exec.env.clone(),
            workdir: exec.workdir.clone(),
            user: exec.user.clone(),
        }
    }
}

/// Returns the number of bytes of a command, including what its words need in memory.
fn size(exec: &Exec) -> usize {
    let words = exec.argv.iter().chain(&exec.env).chain(&exec.workdir);
    words.map(|it| it.len() + size_of::<OsString>()).sum()
}

/// Returns the decision of the policy on a program in its circumstances.
fn classified(classifier: &Classifier, exec: &Exec, by: Caller, workdir: Option<&str>) -> Ruling {
    let own = exec.workdir.as_ref().map(|it| it.to_string_lossy());
    let set: Vec<_> = exec.env.iter().map(|it| it.to_string_lossy()).collect();
    let variables: Vec<&str> = set.iter().filter_map(|it| it.split('=').next()).collect();
    let around = Circumstances {
        directory: own.as_deref().or(workdir),
        variables: &variables,
        has_user: exec.user.is_some(),
        is_of_agent: by == Caller::Agent,
    };
    classifier.classify_in(&exec.argv, &around)
}

impl Approvals {
    /// Creates the gate of a plan. Without a policy, all commands run.
    pub(super) fn new(plan: Option<&SandboxPlan>) -> Self {
        let seconds = plan.map_or(0, |it| it.ask_timeout_seconds);
        Self {
            classifier: plan.map(Classifier::new),
            timeout: Duration::from_secs(seconds.into()),
            waiting: BTreeMap::new(),
            remembered: BTreeSet::new(),
            remembered_bytes: 0,
            last: 0,
        }
    }

    /// Returns the decision on a command. `workdir` is the working directory of its component. The agent cannot run built-in commands,
    /// because the policy has no rules for them.
    fn ruling(&self, exec: &Exec, by: Caller, workdir: Option<&str>) -> Ruling {
        let run = Ruling { decision: Decision::Run, rule: None, reason: String::new() };
        let Some(classifier) = &self.classifier else { return run };
        match (exec.builtin, by) {
            (Some(_), Caller::Host) => run,
            (Some(_), Caller::Agent) => {
                let reason = "the agent can run programs only".to_owned();
                Ruling { decision: Decision::Forbid, rule: None, reason }
            }
            // The Boxfile declares what init runs by itself.
            (_, Caller::Init) => run,
            (None, _) => classified(classifier, exec, by, workdir),
        }
    }

    /// Returns whether the command was approved for the rest of the run. A command with an input was not: nobody has seen the input.
    fn is_remembered(&self, exec: &Exec) -> bool {
        !exec.has_input() && self.remembered.contains(&Remembered::of(exec))
    }

    /// Remembers a command without an input, if there is room.
    fn remember(&mut self, exec: &Exec) {
        let bytes = self.remembered_bytes + size(exec);
        if !exec.has_input()
            && self.remembered.len() < MAX_REMEMBERED
            && bytes <= MAX_REMEMBERED_BYTES
            && self.remembered.insert(Remembered::of(exec))
        {
            self.remembered_bytes = bytes;
        }
    }

    /// Returns whether a further command may wait. The agent leaves a quarter of the room to callers on the host.
    fn has_room(&self, exec: &Exec, by: Caller) -> bool {
        let (questions, bytes) = (MAX_QUESTIONS, MAX_WAITING_BYTES);
        let is_agent = by == Caller::Agent;
        self.fits(exec, false, (questions, bytes))
            && (!is_agent || self.fits(exec, true, (questions / 4 * 3, bytes / 4 * 3)))
    }

    /// Returns whether a further command is not too much for so many commands and bytes, counted over all commands that wait or over
    /// those of the agent.
    fn fits(&self, exec: &Exec, of_agent: bool, (questions, bytes): (usize, usize)) -> bool {
        let counts = |it: &&Waiting| !of_agent || it.question.by == Caller::Agent;
        let waiting = self.waiting.values().filter(counts);
        let sizes: Vec<usize> = waiting.map(|it| size(&it.exec)).collect();
        sizes.len() < questions && sizes.iter().sum::<usize>() + size(exec) <= bytes
    }

    /// Returns the question with its number, its time and the id of its command.
    fn numbered(&mut self, id: ProgramId, question: Question) -> Question {
        self.last = self.last.wrapping_add(1).max(1);
        Question {
            question: self.last,
            id: id.is_known_to_host().then_some(id),
            timeout_ms: u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX),
            ..question
        }
    }

    /// Keeps a command until its question ends.
    fn keep(&mut self, id: ProgramId, exec: Exec, question: Question) {
        let deadline = Instant::now() + self.timeout;
        let (input, input_ends, size) = (Vec::new(), false, None);
        let waiting = Waiting { exec, question, deadline, input, input_ends, size };
        self.waiting.insert(id, waiting);
    }

    /// Returns whether a command waits.
    pub(super) fn has(&self, id: ProgramId) -> bool {
        self.waiting.contains_key(&id)
    }

    /// Returns the waiting commands, of one component or of both.
    fn ids(&self, component: Option<ComponentName>) -> Vec<ProgramId> {
        let is_of = |it: &Waiting| component.is_none_or(|of| it.exec.component == of);
        self.waiting.iter().filter(|(_, it)| is_of(it)).map(|(id, _)| *id).collect()
    }

    /// Returns the command of a question.
    fn asked(&self, question: u32) -> Option<ProgramId> {
        self.waiting.iter().find(|(_, it)| it.question.question == question).map(|(id, _)| *id)
    }

    /// Returns the commands that have waited for too long.
    fn late(&self, now: Instant) -> Vec<ProgramId> {
        self.waiting.iter().filter(|(_, it)| it.deadline <= now).map(|(id, _)| *id).collect()
    }

    /// Returns when the next waiting command is denied.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.waiting.values().map(|it| it.deadline).min()
    }

    /// Keeps input of a waiting command. Returns the signal that cancels the command, if the input has the interrupt key of a terminal or
    /// is longer than the window.
    fn keep_input(&mut self, id: ProgramId, data: &[u8]) -> Option<Signal> {
        let waiting = self.waiting.get_mut(&id)?;
        if waiting.exec.terminal.is_some() && data.contains(&INTERRUPT) {
            return Some(Signal::SIGINT);
        }
        if waiting.input.len() + data.len() > INPUT_WINDOW as usize {
            return Some(Signal::SIGKILL);
        }
        waiting.input.extend_from_slice(data);
        None
    }
}

/// Returns the reason of a denial, for the command's standard error.
fn reason(question: &Question, denial: Denial) -> String {
    let rule = question.rule.as_ref().map_or_else(String::new, |it| format!(" ({it})"));
    let clause = match question.reason.as_str() {
        "" => String::new(),
        reason => format!(": {reason}"),
    };
    let why = match denial {
        Denial::Forbidden => return format!("forbidden by the policy{rule}{clause}"),
        Denial::Person => "a person said no".to_owned(),
        Denial::TimedOut => format!("nobody answered within {}", time(question.timeout_ms)),
        Denial::Nobody => "nobody is there to ask".to_owned(),
        Denial::TooMany => "too many commands wait for an answer".to_owned(),
        Denial::Cancelled => "its caller has cancelled it".to_owned(),
        Denial::Stopped => "the box or its component ends".to_owned(),
    };
    format!("denied: {why}; the policy asks about this command{rule}{clause}")
}

/// Returns a number of milliseconds in whole minutes or seconds: `2m`, `90s`.
fn time(ms: u64) -> String {
    match ms / 1000 {
        seconds if seconds > 0 && seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        seconds => format!("{seconds}s"),
    }
}

impl Server<'_> {
    /// Starts a command, refuses it, or keeps it until a person has answered: as the policy decides.
    pub(super) fn admit(&mut self, id: ProgramId, exec: Exec, by: Caller) {
        let plan = self.machine.plan.component(exec.component);
        let workdir = plan.map(|it| it.workdir.as_str());
        let Ruling { decision, rule, reason } = self.approvals.ruling(&exec, by, workdir);
        let is_run = match decision {
            Decision::Run => true,
            Decision::Ask => self.approvals.is_remembered(&exec),
            Decision::Forbid => false,
        };
        if is_run {
            return self.launch(id, exec, by);
        }
        let question = Question::about(&exec, by, (rule.as_deref(), &reason));
        if decision == Decision::Forbid {
            self.deny(id, (&exec, &question), Denial::Forbidden);
        } else if self.approvals.has_room(&exec, by) {
            self.ask(id, exec, question);
        } else {
            self.deny(id, (&exec, &question), Denial::TooMany);
        }
    }

    /// Keeps a command, and asks the host about it.
    fn ask(&mut self, id: ProgramId, exec: Exec, question: Question) {
        let question = self.approvals.numbered(id, question);
        self.log(GuestEvent::of_question(id, &exec, &question, Asked::Waits));
        self.approvals.keep(id, exec, question.clone());
        self.send(&GuestMessage::Question(question));
    }

    /// Handles the host's answer.
    pub(super) fn answer(&mut self, Answer { question, reply }: Answer) {
        let Some(id) = self.approvals.asked(question) else { return };
        match reply {
            Reply::Approve => self.approve(id, false),
            Reply::ApproveAlways => self.approve(id, true),
            Reply::Deny => self.deny_waiting(id, Denial::Person),
            Reply::Nobody => self.deny_waiting(id, Denial::Nobody),
        }
    }

    /// Starts a waiting command with the input that has arrived.
    fn approve(&mut self, id: ProgramId, always: bool) {
        let Some(waiting) = self.approvals.waiting.remove(&id) else { return };
        let Waiting { exec, question, input, input_ends, size, .. } = waiting;
        if always {
            self.approvals.remember(&exec);
        }
        self.log(GuestEvent::of_question(id, &exec, &question, Asked::Approved));
        self.end_question(&question, None);
        self.launch(id, exec, question.by);
        size.into_iter().for_each(|it| self.resize(id, it));
        self.take_input(id, &input);
        if input_ends {
            self.end_input(id);
        }
    }

    fn end_question(&mut self, question: &Question, denial: Option<Denial>) {
        let ended = QuestionEnded { question: question.question, denial };
        self.send(&GuestMessage::QuestionEnded(ended));
    }

    /// Reports to the caller that a command does not run, and why.
    fn deny(&mut self, id: ProgramId, (exec, question): (&Exec, &Question), denial: Denial) {
        self.log(GuestEvent::of_question(id, exec, question, Asked::Denied(denial)));
        if id.is_known_to_host() {
            let Question { rule, reason, .. } = question.clone();
            self.send(&GuestMessage::Refused(Refused { id, denial, rule, reason }));
        }
        self.refuse(id, &reason(question, denial));
    }

    /// Denies a waiting command.
    fn deny_waiting(&mut self, id: ProgramId, denial: Denial) {
        let Some(waiting) = self.approvals.waiting.remove(&id) else { return };
        self.end_question(&waiting.question, Some(denial));
        self.deny(id, (&waiting.exec, &waiting.question), denial);
    }

    /// Denies all waiting commands, of one component or of both, because they can no longer run.
    pub(super) fn deny_stopped(&mut self, component: Option<ComponentName>) {
        for id in self.approvals.ids(component) {
            self.deny_waiting(id, Denial::Stopped);
        }
    }

    /// Denies the commands that have waited for too long.
    pub(super) fn deny_late_commands(&mut self) {
        for id in self.approvals.late(Instant::now()) {
            self.deny_waiting(id, Denial::TimedOut);
        }
    }

    /// Sends a signal to a program. A waiting command is cancelled by the signals in [`CANCELLING`], and ignores others.
    pub(super) fn pass_signal(&mut self, id: ProgramId, signal: i32) -> Result<(), InitError> {
        if !self.approvals.has(id) {
            return self.signal(id, signal);
        }
        if let Some(signal) = CANCELLING.into_iter().find(|it| *it as i32 == signal) {
            self.cancel(id, signal);
        }
        Ok(())
    }

    /// Ends a waiting command as if a signal had ended it.
    pub(super) fn cancel(&mut self, id: ProgramId, signal: Signal) {
        let Some(waiting) = self.approvals.waiting.remove(&id) else { return };
        let denied = Asked::Denied(Denial::Cancelled);
        self.log(GuestEvent::of_question(id, &waiting.exec, &waiting.question, denied));
        self.end_question(&waiting.question, Some(Denial::Cancelled));
        let usual = not_started(id);
        let status = u8::try_from(128 + signal as i32).unwrap_or(usual.status);
        self.reply(id, |id| GuestMessage::Exited(Exited { id, status, ..usual }));
    }

    /// Keeps input for a waiting command.
    pub(super) fn keep_input(&mut self, id: ProgramId, data: &[u8]) {
        if let Some(signal) = self.approvals.keep_input(id, data) {
            self.cancel(id, signal);
        }
    }

    /// Notes the end of a waiting command's input.
    pub(super) fn note_input_end(&mut self, id: ProgramId) {
        self.approvals.waiting.get_mut(&id).into_iter().for_each(|it| it.input_ends = true);
    }

    /// Notes the size of the terminal of a waiting command.
    pub(super) fn note_size(&mut self, id: ProgramId, size: TerminalSize) {
        self.approvals.waiting.get_mut(&id).into_iter().for_each(|it| it.size = Some(size));
    }
}

#[cfg(test)]
mod tests {
    use box_contract::wire::Builtin;

    use super::*;

    fn command(argv: &[&str]) -> Exec {
        Exec::new(ComponentName::Business, argv)
    }

    /// Makes a command wait, as [`Server::ask`] does. Returns the number of its question.
    fn wait(approvals: &mut Approvals, id: u16, exec: Exec) -> u32 {
        let about = Question::about(&exec, Caller::Agent, (Some("touch *"), ""));
        let question = approvals.numbered(ProgramId(id), about);
        let number = question.question;
        approvals.keep(ProgramId(id), exec, question);
        number
    }

    fn policy() -> Approvals {
        let strings = |it: &str| vec![it.to_owned()];
        let plan = SandboxPlan {
            ask: strings("touch *"),
            forbid: strings("rm *"),
            ask_timeout_seconds: 5,
            ..SandboxPlan::default()
        };
        Approvals::new(Some(&plan))
    }

    #[test]
    fn the_policy_is_about_programs() {
        let decision = |approvals: &Approvals, exec: &Exec, by| {
            approvals.ruling(exec, by, Some("/work")).decision
        };
        let (approvals, none) = (policy(), Approvals::new(None));
        for (argv, expected) in [
            (["touch", "/a"], Decision::Ask),
            (["rm", "/a"], Decision::Forbid),
            (["echo", "/a"], Decision::Run),
        ] {
            let exec = command(&argv);
            assert_eq!(decision(&approvals, &exec, Caller::Agent), expected, "{argv:?}");
            assert_eq!(decision(&approvals, &exec, Caller::Host), expected, "{argv:?}");
            assert_eq!(decision(&none, &exec, Caller::Agent), Decision::Run);
            let in_agent = Exec { component: ComponentName::Agent, ..exec.clone() };
            assert_eq!(decision(&approvals, &in_agent, Caller::Host), expected);
            let builtin = Exec { builtin: Some(Builtin::Unpack), ..exec };
            assert_eq!(decision(&approvals, &builtin, Caller::Host), Decision::Run);
            assert_eq!(decision(&approvals, &builtin, Caller::Agent), Decision::Forbid);
            assert_eq!(decision(&none, &builtin, Caller::Agent), Decision::Run);
        }
    }

    #[test]
    fn the_policy_is_also_about_the_circumstances_of_a_command() {
        let plan = SandboxPlan { allow: vec!["git push *".to_owned()], ..SandboxPlan::default() };
        let approvals = Approvals::new(Some(&plan));
        let ruling = |exec: &Exec, by| approvals.ruling(exec, by, Some("/work")).decision;
        let both = |exec: &Exec| [ruling(exec, Caller::Host), ruling(exec, Caller::Agent)];
        let remove = command(&["rm", "-rf", "usr"]);
        assert_eq!(both(&remove), [Decision::Run; 2]);
        let in_root = Exec { workdir: Some("/".into()), ..remove.clone() };
        assert_eq!(both(&in_root), [Decision::Forbid; 2]);
        assert_eq!(approvals.ruling(&remove, Caller::Host, Some("/")).decision, Decision::Forbid);
        let push = command(&["git", "push"]);
        assert_eq!(both(&push), [Decision::Run; 2]);
        for variable in ["PATH=/tmp/x", "LD_PRELOAD=x", "BASH_ENV=x", "GIT_EXTERNAL_DIFF=x"] {
            let env = vec!["A=PATH".into(), variable.into()];
            let list = Exec { env: env.clone(), ..command(&["ls"]) };
            assert_eq!(both(&list), [Decision::Run, Decision::Ask], "{variable}");
            assert_eq!(both(&Exec { env, ..push.clone() }), [Decision::Ask; 2], "{variable}");
        }
        let env = vec!["GIT_AUTHOR_NAME=x".into(), "A=PATH".into()];
        assert_eq!(both(&Exec { env, ..push }), [Decision::Run; 2]);
        let as_root = Exec { user: Some("root".to_owned()), ..command(&["ls"]) };
        assert_eq!(both(&as_root), [Decision::Run, Decision::Ask]);
    }

    #[test]
    fn so_many_commands_wait_and_so_many_bytes() {
        let mut approvals = policy();
        let long = command(&["touch", &"x".repeat(MAX_WAITING_BYTES / 2)]);
        wait(&mut approvals, 300, long.clone());
        let short = command(&["touch", "a"]);
        assert!(!approvals.has_room(&long, Caller::Host));
        assert!(approvals.has_room(&short, Caller::Host));
        let mut approvals = policy();
        for id in 0..MAX_QUESTIONS {
            assert!(approvals.has_room(&short, Caller::Host), "{id}");
            let is_free = id < MAX_QUESTIONS / 4 * 3;
            assert_eq!(approvals.has_room(&short, Caller::Agent), is_free, "{id}");
            wait(&mut approvals, 300 + u16::try_from(id).unwrap(), command(&["touch", "a"]));
        }
        assert!(!approvals.has_room(&short, Caller::Host));
        assert_eq!(approvals.ids(Some(ComponentName::Business)).len(), MAX_QUESTIONS);
        assert_eq!(approvals.ids(Some(ComponentName::Agent)), []);
    }

    #[test]
    fn each_question_has_its_number_and_its_time() {
        let mut approvals = policy();
        assert_eq!(approvals.deadline(), None);
        assert_eq!(wait(&mut approvals, 7, command(&["touch", "a"])), 1);
        assert_eq!(wait(&mut approvals, 300, command(&["touch", "b"])), 2);
        assert_eq!((approvals.asked(2), approvals.asked(3)), (Some(ProgramId(300)), None));
        let of = |id| &approvals.waiting[&ProgramId(id)];
        assert_eq!((of(7).question.id, of(300).question.id), (Some(ProgramId(7)), None));
        assert_eq!(of(7).question.timeout_ms, 5000);
        let due = of(7).deadline;
        assert_eq!((approvals.deadline(), approvals.late(due)[0]), (Some(due), ProgramId(7)));
        assert_eq!(approvals.late(due - Duration::from_secs(1)), []);
    }

    #[test]
    fn exactly_the_same_command_is_remembered() {
        let mut approvals = policy();
        let one = command(&["touch", "a"]);
        assert!(!approvals.is_remembered(&one));
        approvals.remember(&one);
        let later = Exec { timeout_ms: Some(5), ..one.clone() };
        assert!(approvals.is_remembered(&one) && approvals.is_remembered(&later));
        let terminal = Some(TerminalSize { rows: 24, columns: 80 });
        for other in [
            command(&["touch", "a", ""]),
            command(&["touch a"]),
            Exec { env: vec!["PATH=/tmp".into()], ..one.clone() },
            Exec { workdir: Some("/".into()), ..one.clone() },
            Exec { user: Some("root".to_owned()), ..one.clone() },
            Exec { component: ComponentName::Agent, ..one.clone() },
            Exec { stdin: true, ..one.clone() },
            Exec { terminal, ..one },
        ] {
            assert!(!approvals.is_remembered(&other), "{other:?}");
        }
        let script = Exec { stdin: true, ..command(&["psql", "prod"]) };
        approvals.remember(&script);
        let without = Exec { stdin: false, ..script.clone() };
        assert!(!approvals.is_remembered(&script) && !approvals.is_remembered(&without));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut approvals = policy();
        let long = command(&["touch", &"x".repeat(MAX_REMEMBERED_BYTES)]);
        approvals.remember(&long);
        assert!(!approvals.is_remembered(&long));
        for number in 0..=MAX_REMEMBERED {
            approvals.remember(&command(&["touch", &number.to_string()]));
        }
        assert_eq!(approvals.remembered.len(), MAX_REMEMBERED);
        assert!(!approvals.is_remembered(&command(&["touch", &MAX_REMEMBERED.to_string()])));
    }

    #[test]
    fn input_is_kept_up_to_the_window_and_an_interrupt_cancels() {
        let mut approvals = policy();
        wait(&mut approvals, 7, command(&["touch", "a"]));
        let window = INPUT_WINDOW as usize;
        assert_eq!(approvals.keep_input(ProgramId(7), &vec![INTERRUPT; window]), None);
        assert_eq!(approvals.keep_input(ProgramId(7), b"x"), Some(Signal::SIGKILL));
        assert_eq!(approvals.waiting[&ProgramId(7)].input.len(), window);
        let terminal = Some(TerminalSize { rows: 24, columns: 80 });
        wait(&mut approvals, 8, Exec { terminal, ..command(&["touch", "a"]) });
        assert_eq!(approvals.keep_input(ProgramId(8), b"typed early"), None);
        assert_eq!(approvals.keep_input(ProgramId(8), &[INTERRUPT]), Some(Signal::SIGINT));
        assert_eq!(approvals.keep_input(ProgramId(9), b"x"), None);
    }

    #[test]
    fn a_denial_says_why() {
        let about = Question::about(
            &command(&["git", "push"]),
            Caller::Agent,
            (Some("git-write"), "it changes a repository"),
        );
        let question = Question { timeout_ms: 120_000, ..about };
        assert_eq!(
            reason(&question, Denial::Forbidden),
            "forbidden by the policy (git-write): it changes a repository"
        );
        assert_eq!(
            reason(&question, Denial::TimedOut),
            "denied: nobody answered within 2m; the policy asks about this command (git-write): it changes a repository"
        );
        let bare = Question { rule: None, reason: String::new(), ..question };
        assert_eq!(
            reason(&bare, Denial::Person),
            "denied: a person said no; the policy asks about this command"
        );
        assert_eq!([0, 90_000, 3_600_000].map(time), ["0s", "90s", "60m"]);
    }
}
