//! `boxlaunch approvals`, `approve` and `deny`: the commands of a box that wait for a person.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use box_contract::wire::{Answer, Follow, Question, Reply};
use box_contract::{ErrorCode, exit};
use boxlaunch::boxes::{Boxes, Record, State};
use boxlaunch::client::{Client, ClientError, QuestionChange};
use safe_text::{shell_word, shown};
use serde_json::{Value, json};
use vmm::signals::StopSignals;

use super::asker::{command, confirm, details, has_terminal};
use super::environment::record_at;
use super::error::{Failure, usage};
use super::paths;
use super::terminal::{aligned, json_line, pass_on, print};

/// Lists the commands of a box that wait for approval, because the policy of its Boxfile (`sandbox`) asks about them.
///
/// `boxlaunch approve` runs such a command, and `boxlaunch deny` refuses it. A command that nobody answers is denied after the
/// `ask-timeout` of the policy.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch approvals hello
  boxlaunch approvals --follow --json hello | jq -c '.questions[].argv'")]
pub(crate) struct ApprovalsArgs {
    /// The box's name [default: the environment of the current directory].
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// List the commands again after each change, until the box ends. While this runs, commands of a box in the foreground wait for
    /// approval, too.
    #[arg(short, long)]
    follow: bool,
    /// Print one JSON object, with --follow on a line for each change.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Runs a command that waits for approval.
///
/// Without QUESTION, it shows the only command that waits, and asks at the terminal whether it runs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch approve hello 3
  boxlaunch approve hello 3 --always")]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    of: QuestionArgs,
    /// Also run exactly this command without asking until the box ends. A command with standard input or a terminal is asked about
    /// each time.
    #[arg(long)]
    always: bool,
}

/// Refuses a command that waits for approval. Its caller gets the status 126.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  boxlaunch deny hello 3")]
pub(crate) struct DenyArgs {
    #[command(flatten)]
    of: QuestionArgs,
}

/// A command that waits.
#[derive(Debug, clap::Args)]
struct QuestionArgs {
    /// The box's name, or . for the environment of the current directory.
    #[arg(value_name = "NAME")]
    name: String,
    /// The number of the command in `boxlaunch approvals` [default: the only one].
    #[arg(value_name = "QUESTION")]
    question: Option<u32>,
    /// Print one JSON object with the number and the answer.
    #[arg(long)]
    json: bool,
}

impl ApproveArgs {
    /// Returns whether the report is JSON.
    pub(crate) const fn is_json(&self) -> bool {
        self.of.json
    }
}

impl DenyArgs {
    /// Returns whether the report is JSON.
    pub(crate) const fn is_json(&self) -> bool {
        self.of.json
    }
}

pub(crate) fn approvals(args: &ApprovalsArgs) -> Result<u8, Failure> {
    let record = running(args.name.as_deref())?;
    let signals = StopSignals::block()?;
    let mut client = Client::connect(&record, Follow::Nothing, &signals)?;
    if args.follow {
        return follow(client, args.json);
    }
    let questions = client.questions()?;
    let seconds = |it: Question| (it.timeout_ms / 1000, it);
    let questions: Vec<_> = questions.into_iter().map(seconds).collect();
    print(&listed(&questions, args.json)?)?;
    Ok(exit::DONE)
}

pub(crate) fn approve(args: &ApproveArgs) -> Result<u8, Failure> {
    answer(&args.of, if args.always { Reply::ApproveAlways } else { Reply::Approve })
}

pub(crate) fn deny(args: &DenyArgs) -> Result<u8, Failure> {
    answer(&args.of, Reply::Deny)
}

/// Returns the record of a box that has not ended.
fn running(name: Option<&str>) -> Result<Record, Failure> {
    let record = record_at(&Boxes::new(&paths::state()?), name)?;
    match record.state {
        State::Ended => Err(ClientError::NotRunning(record.name).into()),
        State::Starting | State::Running => Ok(record),
    }
}

fn answer(args: &QuestionArgs, reply: Reply) -> Result<u8, Failure> {
    let record = running(Some(&args.name))?;
    let signals = StopSignals::block()?;
    let mut client = Client::connect(&record, Follow::Nothing, &signals)?;
    let waiting = client.questions()?;
    let question = choose(&waiting, args.question, &record.name)?;
    check_always(question, reply)?;
    if args.question.is_none() && reply != Reply::Deny {
        // Another command may wait now than the one that the person has seen.
        confirmed(question, &record.name, args.json, &signals)?;
    }
    client.answer(Answer { question: question.question, reply })?;
    let number = question.question;
    print(&if args.json {
        json_line(&json!({ "question": number, "answer": reply }))?
    } else {
        let done = if reply == Reply::Deny { "denied" } else { "approved" };
        format!("{done} {number}: {}\n", command(question))
    })?;
    Ok(exit::DONE)
}

/// Checks that a command which is approved for the rest of the run has no input.
fn check_always(question: &Question, reply: Reply) -> Result<(), Failure> {
    if reply != Reply::ApproveAlways || !question.has_input {
        return Ok(());
    }
    let number = question.question;
    let message =
        format!("the command {number} has an input, which another start of it may not have");
    let help = "approve it without `--always`";
    Err(Failure::new((ErrorCode::Refused, help), shown(&message)))
}

/// Returns the question with a number, or the only one.
fn choose<'q>(
    waiting: &'q [Question],
    number: Option<u32>,
    name: &str,
) -> Result<&'q Question, Failure> {
    let list = format!("`boxlaunch approvals {}` lists the commands that wait", shell_word(name));
    let (message, help) = match (waiting, number) {
        ([only], None) => return Ok(only),
        ([], _) => {
            let help = "a command may have been answered, or have waited for too long";
            (format!("no command of the box {name} waits for approval"), help.to_owned())
        }
        (_, Some(number)) => match waiting.iter().find(|it| it.question == number) {
            Some(question) => return Ok(question),
            None => (format!("no command of the box {name} waits with the number {number}"), list),
        },
        (several, None) => return Err(which(several, name)),
    };
    Err(Failure::new((ErrorCode::Refused, shown(&help)), shown(&message)))
}

/// Asks whether the only command that waits runs.
///
/// # Errors
/// The answer is no, or no terminal is there for it.
fn confirmed(
    question: &Question,
    name: &str,
    as_json: bool,
    signals: &StopSignals,
) -> Result<(), Failure> {
    if as_json || !has_terminal() {
        return Err(which(std::slice::from_ref(question), name));
    }
    if confirm(question, signals)? {
        return Ok(());
    }
    let message = format!("the command {} of the box {name} was not approved", question.question);
    let help = format!("`boxlaunch deny {} {}` refuses it", shell_word(name), question.question);
    Err(Failure::new((ErrorCode::Refused, shown(&help)), shown(&message)))
}

/// Returns the error of a command line that does not say which command is meant.
fn which(waiting: &[Question], name: &str) -> Failure {
    let line = |it: &Question| format!("{} ({})", it.question, command(it));
    let all: Vec<_> = waiting.iter().take(MAX_NAMED).map(line).collect();
    let more = if waiting.len() > MAX_NAMED { ", …" } else { "" };
    let (subject, help) = match waiting {
        [_] => ("a command", "name it by its number, so that no other one runs in its place"),
        _ => ("several commands", "name one by its number"),
    };
    let wait = if waiting.len() == 1 { "waits" } else { "wait" };
    usage(&format!("{subject} of the box {name} {wait}: {}{more}", all.join(", ")), help)
}

/// How many commands an error lists.
const MAX_NAMED: usize = 5;

/// Lists the commands after each change, until the box ends.
fn follow(mut client: Client<'_>, as_json: bool) -> Result<u8, Failure> {
    client.follow_questions()?;
    let mut waiting: BTreeMap<u32, (Instant, Question)> = BTreeMap::new();
    let mut is_listed = false;
    loop {
        match client.next_question() {
            Ok(QuestionChange::Asked(question)) => {
                let until = Instant::now().checked_add(Duration::from_millis(question.timeout_ms));
                let until = until.unwrap_or_else(Instant::now);
                waiting.insert(question.question, (until, question));
            }
            Ok(QuestionChange::Listed) => is_listed = true,
            Ok(QuestionChange::Ended(ended)) => drop(waiting.remove(&ended.question)),
            Err(ClientError::BoxEnded(_)) => return Ok(exit::DONE),
            Err(error) => return Err(error.into()),
        }
        if is_listed {
            let now = Instant::now();
            let left = |(until, question): &(Instant, Question)| {
                (until.saturating_duration_since(now).as_secs(), question.clone())
            };
            let questions: Vec<_> = waiting.values().map(left).collect();
            let end = if as_json { "" } else { "\n" };
            let text = listed(&questions, as_json)? + end;
            pass_on(&mut io::stdout(), text.as_bytes())?;
        }
    }
}

/// Returns the list of commands, each with the seconds that it waits on.
fn listed(questions: &[(u64, Question)], as_json: bool) -> Result<String, Failure> {
    if as_json {
        let all: Vec<_> = questions.iter().map(as_value).collect();
        return json_line(&json!({ "questions": all }));
    }
    if questions.is_empty() {
        return Ok("no command waits for approval\n".to_owned());
    }
    let heads = ["QUESTION", "COMPONENT", "LEFT", "RULE", "COMMAND"].map(str::to_owned);
    let row = |(seconds, question): &(u64, Question)| {
        let (number, component) = (question.question.to_string(), question.component.name());
        let left = format!("{seconds} s");
        [number, component.to_owned(), left, details(question), command(question)]
    };
    let rows: Vec<_> = [heads].into_iter().chain(questions.iter().map(row)).collect();
    Ok(aligned(&rows))
}

fn as_value((seconds, question): &(u64, Question)) -> Value {
    let Question {
        question,
        component,
        by,
        argv,
        is_cut,
        env,
        has_input,
        user,
        workdir,
        rule,
        reason,
        ..
    } = question;
    json!({
        "question": question,
        "component": component,
        "by": by,
        "argv": argv,
        "truncated": is_cut,
        "env": env,
        "input": has_input,
        "user": user,
        "workdir": workdir,
        "rule": rule,
        "reason": reason,
        "seconds_left": seconds,
    })
}

#[cfg(test)]
mod tests {
    use box_contract::ComponentName;
    use box_contract::wire::{Caller, Exec};

    use super::*;

    fn question(number: u32) -> Question {
        let exec = Exec::new(ComponentName::Business, ["touch", "/a"]);
        let about = Question::about(&exec, Caller::Agent, (Some("touch *"), ""));
        Question { question: number, ..about }
    }

    #[test]
    fn approving_the_only_command_without_its_number_needs_a_terminal() {
        let error = which(&[question(7)], "x");
        assert_eq!(error.exit, exit::USAGE);
        insta::assert_snapshot!(error.text(), @"
        error: a command of the box x waits: 7 (touch /a)
          = help: name it by its number, so that no other one runs in its place
        ");
    }

    #[test]
    fn the_only_command_is_chosen_without_its_number() {
        let (one, two) = ([question(7)], [question(7), question(9)]);
        assert_eq!(choose(&one, None, "x").unwrap().question, 7);
        assert_eq!(choose(&two, Some(9), "x").unwrap().question, 9);
        let text = |waiting: &[Question], number| choose(waiting, number, "x").unwrap_err().text();
        let texts = [text(&[], None), text(&[], Some(7)), text(&one, Some(8)), text(&two, None)];
        insta::assert_snapshot!(texts.concat(), @"
        error: no command of the box x waits for approval
          = help: a command may have been answered, or have waited for too long
        error: no command of the box x waits for approval
          = help: a command may have been answered, or have waited for too long
        error: no command of the box x waits with the number 8
          = help: `boxlaunch approvals x` lists the commands that wait
        error: several commands of the box x wait: 7 (touch /a), 9 (touch /a)
          = help: name one by its number
        ");
        assert_eq!(choose(&two, None, "x").unwrap_err().exit, exit::USAGE);
    }

    #[test]
    fn a_command_with_an_input_is_not_approved_for_good() {
        let with_input = Question { has_input: true, ..question(7) };
        let error = check_always(&with_input, Reply::ApproveAlways).unwrap_err();
        insta::assert_snapshot!(error.text(), @"
        error: the command 7 has an input, which another start of it may not have
          = help: approve it without `--always`
        ");
        assert!(check_always(&with_input, Reply::Approve).is_ok());
        assert!(check_always(&question(7), Reply::ApproveAlways).is_ok());
    }

    #[test]
    fn the_list_has_a_line_for_each_command() {
        let text = |questions: &[(u64, Question)]| listed(questions, false).unwrap();
        assert_eq!(text(&[]), "no command waits for approval\n");
        insta::assert_snapshot!(text(&[(98, question(3)), (5, question(12))]), @"
        QUESTION   COMPONENT   LEFT   RULE                     COMMAND
        3          business    98 s   touch *; for the agent   touch /a
        12         business    5 s    touch *; for the agent   touch /a
        ");
        let json = listed(&[(98, question(3))], true).unwrap();
        let value: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["questions"][0]["argv"], json!(["touch", "/a"]));
        assert_eq!(value["questions"][0]["seconds_left"], 98);
    }
}
