//! Asks the person at the terminal about commands that the policy of a box asks about, or shows how to answer from elsewhere.

use std::cell::Cell;
use std::fs::File;
use std::io::{IsTerminal as _, Read as _, stderr, stdin};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use box_contract::wire::{Caller, FollowQuestions, Question, Reply};
use boxlaunch::client::ClientError;
use host_fs::OsError;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use rustix::termios::{QueueSelector, tcflush};
use safe_text::{shell_word, shown};
use vmm::signals::{StopSignals, Stopped};

use super::command::own_input;
use super::screen::Screen;
use super::terminal::{is_quiet, notice};

/// How many questions are shown to a person who answers them elsewhere. The agent of a box could fill the terminal with more.
const MAX_SHOWN: u32 = 100;
/// The longest answer that is read, in bytes.
const MAX_LINE: usize = 256;
/// The key of a terminal in raw mode that would send SIGINT otherwise.
const INTERRUPT: u8 = 3;

/// How a person answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// With a line of text at the terminal.
    Line,
    /// With a key, because the terminal is in raw mode for the command of this process. Questions about other commands are shown.
    Key,
    /// With `boxlaunch approve` from elsewhere.
    Elsewhere,
    /// Not through this process, which prints JSON or nothing.
    Silent,
}

/// Asks about the commands of one box.
pub(super) struct Asker<'a> {
    screen: &'a Screen,
    signals: &'a StopSignals,
    /// The name of the box.
    name: &'a str,
    way: Way,
    shown: Cell<u32>,
}

impl<'a> Asker<'a> {
    /// Creates the asker of a command line. `has_tty` is whether the command of this process has the terminal. With `is_silent`, the
    /// person cannot be asked.
    pub(super) fn new(
        (screen, signals): (&'a Screen, &'a StopSignals),
        name: &'a str,
        has_tty: bool,
        is_silent: bool,
    ) -> Self {
        let way = way(has_terminal(), has_tty, is_silent);
        Self { screen, signals, name, way, shown: Cell::new(0) }
    }

    /// Returns the questions that a client gets about its own command.
    pub(super) fn own(&self) -> Option<FollowQuestions> {
        match self.way {
            Way::Line | Way::Key => Some(FollowQuestions::Own),
            Way::Elsewhere => Some(FollowQuestions::Shown),
            Way::Silent => None,
        }
    }

    /// Returns the questions that the client of a box in the foreground gets.
    pub(super) fn all(&self) -> Option<FollowQuestions> {
        match self.own() {
            Some(FollowQuestions::Own) => Some(FollowQuestions::All),
            own => own,
        }
    }

    /// Asks about a command. Returns `None` if the question is left to others, or has waited for too long.
    ///
    /// # Errors
    /// A signal, or the terminal cannot be read.
    pub(super) fn ask(&self, question: &Question) -> Result<Option<Reply>, ClientError> {
        match self.way {
            Way::Line => self.ask_here(question, false),
            Way::Key if question.id.is_some() => self.ask_here(question, true),
            Way::Key | Way::Elsewhere => {
                self.show(question);
                Ok(None)
            }
            Way::Silent => Ok(None),
        }
    }

    /// Shows how a question is answered from elsewhere.
    fn show(&self, question: &Question) {
        let shown = self.shown.get();
        if shown >= MAX_SHOWN || is_quiet() {
            return;
        }
        self.shown.set(shown + 1);
        let end = if self.way == Way::Key { "\r\n" } else { "\n" };
        let text = elsewhere(question, self.name);
        self.screen.notice(&format!("{text}{end}"));
    }

    /// Asks on the terminal. `is_raw` is whether the terminal is in raw mode.
    fn ask_here(&self, question: &Question, is_raw: bool) -> Result<Option<Reply>, ClientError> {
        let until = Instant::now().checked_add(Duration::from_millis(question.timeout_ms));
        let mut input = File::from(own_input()?);
        // What was typed before the question was shown is no answer to it. A terminal that is gone has no input.
        let _ = tcflush(&input, QueueSelector::IFlush);
        self.screen.notice(&prompt(question));
        let mut typed = Vec::new();
        while wait(self.signals, until)? {
            let mut bytes = [0; MAX_LINE];
            let limit = if is_raw { 1 } else { MAX_LINE };
            let length = input.read(&mut bytes[..limit]);
            let length = length.map_err(OsError::system("read the answer"))?;
            typed.extend_from_slice(&bytes[..length]);
            if is_raw && typed.contains(&INTERRUPT) {
                self.screen.notice("\r\n");
                return Err(Stopped(Signal::SIGINT as i32).into());
            }
            if length == 0 || is_raw || typed.contains(&b'\n') || typed.len() > MAX_LINE {
                self.screen.notice(if is_raw { "\r\n" } else { "" });
                return Ok(Some(reply(&typed, question)));
            }
        }
        self.screen.notice(if is_raw { "\r\n" } else { "\n" });
        Ok(None)
    }
}

/// Waits for input. Returns `false` if the question has waited for too long.
fn wait(signals: &StopSignals, until: Option<Instant>) -> Result<bool, ClientError> {
    let stdin = stdin();
    loop {
        let left = until.map(|it| it.saturating_duration_since(Instant::now()));
        if left.is_some_and(|it| it.is_zero()) {
            return Ok(false);
        }
        let left = left.and_then(|it| PollTimeout::try_from(it.as_millis() + 1).ok());
        let mut fds = [stdin.as_fd(), signals.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        match poll(&mut fds, left.unwrap_or(PollTimeout::MAX)) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(OsError::system("wait for the answer")(error).into()),
        }
        let [on_input, on_signal] = fds.map(|fd| fd.any().unwrap_or(false));
        if on_signal && let Some(signal) = signals.next()? {
            return Err(Stopped(signal).into());
        }
        if on_input {
            return Ok(true);
        }
    }
}

/// Returns whether a person can be asked at this program's terminal.
pub(super) fn has_terminal() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// Chooses how a person answers.
const fn way(has_terminal: bool, has_tty: bool, is_silent: bool) -> Way {
    match (is_silent, has_terminal, has_tty) {
        (true, ..) => Way::Silent,
        (_, false, _) => Way::Elsewhere,
        (_, true, true) => Way::Key,
        (_, true, false) => Way::Line,
    }
}

/// Returns the answer in what was typed: `y`, `yes`, and `a` or `always` if the prompt offers it. Anything else denies.
fn reply(typed: &[u8], question: &Question) -> Reply {
    let line = String::from_utf8_lossy(typed).trim().to_ascii_lowercase();
    match line.as_str() {
        "y" | "yes" => Reply::Approve,
        "a" | "always" if !question.has_input => Reply::ApproveAlways,
        _ => Reply::Deny,
    }
}

/// Returns a command as words of a shell, on one line.
pub(super) fn command(question: &Question) -> String {
    let words: Vec<_> = question.argv.iter().map(shell_word).collect();
    let cut = if question.is_cut { " … (too long to be shown as a whole)" } else { "" };
    shown(&words.join(" ")) + cut
}

/// Returns the rule that asks, the reason, and what else distinguishes the command, as a list on one line. It can be empty.
pub(super) fn details(question: &Question) -> String {
    let Question { rule, reason, workdir, user, env, by, has_input, .. } = question;
    let rule = match (rule, reason.as_str()) {
        (Some(rule), "") => Some(rule.clone()),
        (Some(rule), reason) => Some(format!("{rule}: {reason}")),
        (None, "") => None,
        (None, reason) => Some(reason.to_owned()),
    };
    let by = (*by == Caller::Agent).then(|| "for the agent".to_owned());
    let workdir = workdir.as_ref().map(|it| format!("in {}", shell_word(it)));
    let user = user.as_ref().map(|it| format!("as {}", shell_word(it)));
    let variables: Vec<_> = env.iter().map(shell_word).collect();
    let env = (!env.is_empty()).then(|| format!("with {}", variables.join(", ")));
    let input = has_input.then(|| "with an input that is not shown".to_owned());
    let all: Vec<_> = [rule, by, workdir, user, env, input].into_iter().flatten().collect();
    shown(&all.join("; "))
}

/// Returns the details in brackets, with a blank before them. Empty if there are none.
fn in_brackets(question: &Question) -> String {
    match details(question).as_str() {
        "" => String::new(),
        details => format!(" ({details})"),
    }
}

/// Asks at the terminal whether a command runs that the command line does not name by its number. What was typed before is no answer.
/// Returns `false` for any answer but a clear yes, also for none.
///
/// # Errors
/// A signal, or the terminal cannot be read.
pub(super) fn confirm(question: &Question, signals: &StopSignals) -> Result<bool, ClientError> {
    let until = Instant::now().checked_add(Duration::from_millis(question.timeout_ms));
    let mut input = File::from(own_input()?);
    // A terminal that is gone has no input.
    let _ = tcflush(&input, QueueSelector::IFlush);
    notice(&confirmation(question));
    if !wait(signals, until)? {
        notice("\n");
        return Ok(false);
    }
    let mut bytes = [0; MAX_LINE];
    let length = input.read(&mut bytes).map_err(OsError::system("read the answer"))?;
    Ok(reply(&bytes[..length], question) == Reply::Approve)
}

fn confirmation(question: &Question) -> String {
    let (command, details) = (command(question), in_brackets(question));
    format!("{}: {command}{details} waits. Run it? [y]es, [N]o: ", question.question)
}

fn prompt(question: &Question) -> String {
    let (command, details) = (command(question), in_brackets(question));
    let always = if question.has_input { "" } else { "[a]lways, " };
    format!("The policy asks: {command}{details}. Run it? [y]es, {always}[N]o: ")
}

/// Returns the line that shows how a question is answered from elsewhere.
fn elsewhere(question: &Question, name: &str) -> String {
    let (command, details) = (command(question), in_brackets(question));
    let (name, number) = (shell_word(name), question.question);
    format!(
        "boxlaunch: {command}{details} waits for approval: boxlaunch approve {name} {number}, or deny"
    )
}

#[cfg(test)]
mod tests {
    use box_contract::ComponentName;
    use box_contract::wire::Exec;

    use super::*;

    fn question(argv: &[&str], rule: (Option<&str>, &str)) -> Question {
        let exec = Exec::new(ComponentName::Business, argv);
        Question { question: 3, ..Question::about(&exec, Caller::Host, rule) }
    }

    #[test]
    fn only_a_clear_yes_approves() {
        for (typed, expected) in [
            ("y\n", Reply::Approve),
            (" YES \n", Reply::Approve),
            ("a\n", Reply::ApproveAlways),
            ("always\n", Reply::ApproveAlways),
            ("abort\n", Reply::Deny),
            ("yep\n", Reply::Deny),
            ("\n", Reply::Deny),
            ("", Reply::Deny),
            ("\u{1b}", Reply::Deny),
        ] {
            let short = question(&["psql"], (None, ""));
            assert_eq!(reply(typed.as_bytes(), &short), expected, "{typed:?}");
            let with_input = Question { has_input: true, ..short };
            let expected = if expected == Reply::ApproveAlways { Reply::Deny } else { expected };
            assert_eq!(reply(typed.as_bytes(), &with_input), expected, "{typed:?}");
        }
    }

    #[test]
    fn who_has_a_terminal_is_asked_there() {
        assert_eq!(way(true, false, false), Way::Line);
        assert_eq!(way(true, true, false), Way::Key);
        assert_eq!(way(false, true, false), Way::Elsewhere);
        assert_eq!(way(true, false, true), Way::Silent);
    }

    #[test]
    fn a_prompt_has_the_command_and_the_rule() {
        let rule = (Some("git-write"), "it changes a remote repository");
        let push = question(&["git", "push", "a b"], rule);
        assert_eq!(
            prompt(&push),
            "The policy asks: git push 'a b' (git-write: it changes a remote repository). Run it? [y]es, [a]lways, [N]o: "
        );
        assert_eq!(
            elsewhere(&question(&["ls"], (None, "")), "x"),
            "boxlaunch: ls waits for approval: boxlaunch approve x 3, or deny"
        );
        let all = Question {
            by: Caller::Agent,
            workdir: Some("/w".to_owned()),
            user: Some("root".to_owned()),
            env: vec!["PATH=/x y".to_owned(), "A=…".to_owned()],
            has_input: true,
            ..push
        };
        assert_eq!(
            details(&all),
            "git-write: it changes a remote repository; for the agent; in /w; as root; with 'PATH=/x y', 'A=…'; with an input that is not shown"
        );
        let hostile = Question {
            workdir: Some("/w; as nobody".to_owned()),
            user: Some("a b".to_owned()),
            env: vec!["A, B".to_owned()],
            ..question(&["ls"], (None, ""))
        };
        assert_eq!(details(&hostile), "in '/w; as nobody'; as 'a b'; with 'A, B'");
        assert_eq!(
            confirmation(&hostile),
            "3: ls (in '/w; as nobody'; as 'a b'; with 'A, B') waits. Run it? [y]es, [N]o: "
        );
    }

    #[test]
    fn a_hostile_command_moves_no_cursor_and_shows_that_it_is_cut() {
        let hostile = question(&["sh", "-c", "\u{1b}[2Jrm\r\n\u{202e}x"], (Some("\u{7}"), "\n"));
        let text = prompt(&hostile);
        assert!(!text.contains(['\u{1b}', '\r', '\n', '\u{202e}', '\u{7}']), "{text:?}");
        let cut = command(&Question { is_cut: true, ..hostile });
        assert!(cut.ends_with(" … (too long to be shown as a whole)"), "{cut}");
    }
}
