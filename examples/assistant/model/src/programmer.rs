//! A programmer who repairs slug.js. The next message depends only on the conversation.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::shell;

const PROGRAM: &str = "slug.js";
const TEST: &str = "test.js";
const CHANGES: &str = "CHANGES.md";
/// The path that a hasty programmer tries first. It is outside the project.
const WRONG_CHANGES: &str = "../CHANGES.md";
/// The mistake in the program, an incomplete repair, and a complete one.
const MISTAKE: &str = r#".replace(" ", "-")"#;
const HASTY: &str = r#".replaceAll(" ", "-")"#;
const RIGHT: &str = r#".replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "")"#;
const CHANGE: &str =
    "- slug: only the first space of a title became a hyphen, and other signs stayed.\n";
/// The tool of a skill that returns such a line, and its arguments.
const ENTRY: &str = "changelog_entry";
const PART: &str = "slug";
const DESCRIBED: &str = "only the first space of a title became a hyphen, and other signs stayed";
/// The agent begins its messages about skills with this. The other messages of the user are tasks.
const NOTICE: &str = "The skill ";

/// The tools of the agent that make a difference to the programmer. Without a shell, the agent has `read_file`, `write_file` and
/// `run_tests`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Offered {
    /// Whether the agent has a shell, and nothing else.
    shell: bool,
    /// Whether a skill has the tool [`ENTRY`].
    entry: bool,
}

impl Offered {
    /// Returns what the tools with these names are.
    pub(crate) fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        names.into_iter().fold(Self::default(), |offered, name| Self {
            shell: offered.shell || name == shell::TOOL,
            entry: offered.entry || name == ENTRY,
        })
    }
}

/// A message of a conversation.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Message {
    role: String,
    content: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tool_calls: Vec<Call>,
    /// The call that has this message as its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
}

/// A call of a tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Call {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    function: Function,
}

/// A tool's name, and its arguments as the text of a JSON object.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Function {
    name: String,
    arguments: String,
}

/// The next message, and its reason.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) message: Message,
    pub(crate) reason: &'static str,
    /// Whether a run of the tests has failed.
    pub(crate) has_seen_failure: bool,
}

/// A finished call of a tool.
#[derive(Debug)]
struct Used {
    tool: String,
    path: String,
    content: String,
    result: String,
}

impl Used {
    fn new(tool: &str, arguments: &Value, result: String) -> Self {
        let text = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
        Self { tool: tool.to_owned(), path: text("path"), content: text("content"), result }
    }
}

/// A call to make: the tool and its arguments.
type Wanted = (&'static str, Value);

/// Returns the next message of a conversation.
pub(crate) fn next(messages: &[Message], offered: Offered) -> Turn {
    let used = used(messages);
    let tests: Vec<_> = used.iter().filter(|it| it.tool == "run_tests").collect();
    let has_failed = |it: &&Used| !it.result.starts_with("exit status 0\n");
    let has_seen_failure = tests.iter().any(has_failed);
    let (reason, wanted, words) = match is_next_task(messages) {
        true => ("remembers its repair", vec![], "The repair of the task before covers this, too."),
        false => choose(messages, &used, tests.last().is_some_and(has_failed), offered),
    };
    let content = wanted.is_empty().then(|| words.to_owned());
    let tool_calls = calls(&wanted, used.len(), offered.shell);
    let message = Message { role: "assistant".to_owned(), content, tool_calls, tool_call_id: None };
    Turn { message, reason, has_seen_failure }
}

/// Returns the reason for the next message, its tool calls, and its text. The text is used only if there are no calls.
fn choose(
    messages: &[Message],
    used: &[Used],
    failed: bool,
    offered: Offered,
) -> (&'static str, Vec<Wanted>, &'static str) {
    let Some(program) = result_of(used, "read_file", PROGRAM) else {
        return ("asks for the files", vec![read(PROGRAM), read(TEST)], "");
    };
    let repaired = |by: &str| program.replace(MISTAKE, by);
    let has_written = |by: &str| used.iter().any(|it| it.content.contains(by));
    if !program.contains(MISTAKE) {
        return ("does not know this program", vec![], "I do not see what is wrong.");
    }
    if !has_written(HASTY) {
        let wanted = vec![write(PROGRAM, &repaired(HASTY)), run_tests()];
        return ("proposes a repair", wanted, "");
    }
    if failed && !has_written(RIGHT) {
        let mut wanted = vec![write(PROGRAM, &repaired(RIGHT)), run_tests()];
        if rules_want_changes(messages) {
            wanted.push(if offered.entry { entry() } else { write(WRONG_CHANGES, CHANGE) });
        }
        return ("has seen the tests fail, and proposes another repair", wanted, "");
    }
    if failed {
        return ("gives up", vec![], "I cannot repair it.");
    }
    describe(used, offered).unwrap_or((
        "has seen the tests pass",
        vec![],
        "Only the first space of a title became a hyphen.",
    ))
}

/// Returns the step that is left of describing the repair. Returns `None` if there is none, or if no rule wants a description.
fn describe(used: &[Used], offered: Offered) -> Option<(&'static str, Vec<Wanted>, &'static str)> {
    let made = result_of(used, ENTRY, "");
    let Some(wrong) = result_of(used, "write_file", WRONG_CHANGES) else {
        let wanted = vec![write(WRONG_CHANGES, made?)];
        return Some(("has a line for the changes, and writes it", wanted, ""));
    };
    if !is_refused(wrong) || result_of(used, "write_file", CHANGES).is_some() {
        return None;
    }
    if offered.entry && made.is_none() {
        return Some(("is offered the tool of a skill, and uses it", vec![entry()], ""));
    }
    let wanted = vec![write(CHANGES, made.unwrap_or(CHANGE))];
    Some(("was refused a place, and takes the right one", wanted, ""))
}

/// Returns whether a task follows an earlier one, as in a session of the agent.
fn is_next_task(messages: &[Message]) -> bool {
    let is_task = |it: &Message| {
        let is_notice = it.content.as_ref().is_some_and(|text| text.starts_with(NOTICE));
        it.role == "user" && !is_notice
    };
    let is_answer = |it: &Message| it.role == "assistant" && it.tool_calls.is_empty();
    messages.iter().any(is_answer) && messages.last().is_some_and(is_task)
}

fn is_refused(result: &str) -> bool {
    result.starts_with("error: ")
}

fn rules_want_changes(messages: &[Message]) -> bool {
    let given = messages.iter().filter(|it| ["system", "user"].contains(&it.role.as_str()));
    given.filter_map(|it| it.content.as_ref()).any(|text| text.contains(CHANGES))
}

/// Returns the last result of a tool for a path.
fn result_of<'a>(used: &'a [Used], tool: &str, path: &str) -> Option<&'a str> {
    let found = used.iter().rev().find(|it| it.tool == tool && it.path == path);
    found.map(|it| it.result.as_str())
}

/// Returns the calls of the conversation that have a result.
fn used(messages: &[Message]) -> Vec<Used> {
    let result = |id: &str| messages.iter().find(|it| it.tool_call_id.as_deref() == Some(id));
    let calls = messages.iter().flat_map(|message| &message.tool_calls);
    let used = |call: &Call| {
        let arguments: Value = serde_json::from_str(&call.function.arguments).unwrap_or_default();
        let answer = result(&call.id)?.content.clone()?;
        Some(match call.function.name.as_str() {
            shell::TOOL => {
                let (tool, arguments) = shell::to_tool(&arguments);
                Used::new(tool, &arguments, shell::to_result(tool, &answer))
            }
            tool => Used::new(tool, &arguments, answer),
        })
    };
    calls.filter_map(used).collect()
}

fn read(path: &str) -> Wanted {
    ("read_file", json!({ "path": path }))
}

fn write(path: &str, content: &str) -> Wanted {
    ("write_file", json!({ "path": path, "content": content }))
}

fn run_tests() -> Wanted {
    ("run_tests", json!({}))
}

fn entry() -> Wanted {
    (ENTRY, json!({ "part": PART, "mistake": DESCRIBED }))
}

/// Builds tool calls. `before` is the number of earlier calls, so that the new identifiers are unique in the conversation.
fn calls(wanted: &[Wanted], before: usize, has_shell: bool) -> Vec<Call> {
    let function = |tool: &str, arguments: &Value| match has_shell {
        true => (shell::TOOL.to_owned(), shell::from_tool(tool, arguments).to_string()),
        false => (tool.to_owned(), arguments.to_string()),
    };
    let call = |(number, (tool, arguments)): (usize, &Wanted)| {
        let (name, arguments) = function(tool, arguments);
        Call {
            id: format!("call-{}", before + number + 1),
            kind: "function".to_owned(),
            function: Function { name, arguments },
        }
    };
    wanted.iter().enumerate().map(call).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = include_str!("../../project/slug.js");
    const RULES: &str = include_str!("../../skills/house-rules/SKILL.md");

    fn text(role: &str, content: &str) -> Message {
        Message { role: role.to_owned(), content: Some(content.to_owned()), ..Message::default() }
    }

    /// Plays a conversation to its end, and returns the reasons and the last message.
    fn play(rules: &str, result: impl Fn(&str, &Value) -> String) -> (Vec<&'static str>, String) {
        converse(rules, Offered::default(), |call| {
            result(&call.name, &serde_json::from_str(&call.arguments).unwrap())
        })
    }

    fn converse(
        rules: &str,
        offered: Offered,
        result: impl Fn(&Function) -> String,
    ) -> (Vec<&'static str>, String) {
        let mut messages = vec![text("system", rules), text("user", "Make it pass.")];
        let mut reasons = Vec::new();
        loop {
            let Turn { message, reason, .. } = next(&messages, offered);
            reasons.push(reason);
            messages.push(message.clone());
            if message.tool_calls.is_empty() {
                return (reasons, message.content.unwrap());
            }
            for Call { id, function, .. } in message.tool_calls {
                let content = result(&function);
                messages.push(Message { tool_call_id: Some(id), ..text("tool", &content) });
            }
        }
    }

    /// A project whose tests pass after the complete repair.
    fn project() -> impl Fn(&str, &Value) -> String {
        let is_right = std::cell::Cell::new(false);
        move |tool, arguments| {
            let content = arguments["content"].as_str().unwrap_or_default();
            is_right.set(is_right.get() || content.contains(RIGHT));
            match (tool, arguments["path"].as_str()) {
                ("read_file", Some(PROGRAM)) => SOURCE.to_owned(),
                ("run_tests", _) if !is_right.get() => "exit status 1\n1 failed\n".to_owned(),
                ("run_tests", _) => "exit status 0\n0 failed\n".to_owned(),
                (_, Some(WRONG_CHANGES)) => "error: outside".to_owned(),
                (ENTRY, _) => format!("- {PART}: {DESCRIBED}.\n"),
                _ => "written".to_owned(),
            }
        }
    }

    #[test]
    fn the_second_repair_follows_from_the_failure_of_the_first() {
        let (reasons, words) = play("", project());
        assert_eq!(
            reasons,
            [
                "asks for the files",
                "proposes a repair",
                "has seen the tests fail, and proposes another repair",
                "has seen the tests pass",
            ]
        );
        assert!(words.contains("hyphen"), "{words}");
    }

    #[test]
    fn the_rules_of_a_skill_are_followed() {
        let (reasons, _) = play(RULES, project());
        assert_eq!(
            reasons[3..],
            ["was refused a place, and takes the right one", "has seen the tests pass"]
        );
    }

    #[test]
    fn a_tool_of_a_skill_is_used() {
        let with_tools = project();
        let written = std::cell::RefCell::new(String::new());
        let with_entry = |call: &Function| {
            let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
            if arguments["path"] == CHANGES {
                arguments["content"].as_str().unwrap().clone_into(&mut written.borrow_mut());
            }
            with_tools(&call.name, &arguments)
        };
        let offered = Offered::new(["read_file", ENTRY]);
        let (reasons, _) = converse(RULES, offered, with_entry);
        assert_eq!(
            reasons[3..],
            [
                "has a line for the changes, and writes it",
                "was refused a place, and takes the right one",
                "has seen the tests pass",
            ]
        );
        assert_eq!(written.into_inner(), CHANGE);
    }

    #[test]
    fn a_tool_that_is_offered_late_is_used_too() {
        let refused = |path: &str| {
            Used::new("write_file", &json!({ "path": path }), "error: outside".to_owned())
        };
        let offered = Offered::new([ENTRY]);
        let mut used = vec![refused(WRONG_CHANGES)];
        assert_eq!(describe(&used, offered).unwrap().1, [entry()]);
        used.push(Used::new(ENTRY, &json!({}), "- a: b.\n".to_owned()));
        for offered in [offered, Offered::default()] {
            assert_eq!(describe(&used, offered).unwrap().1, [write(CHANGES, "- a: b.\n")]);
        }
        used.push(refused(CHANGES));
        assert_eq!(describe(&used, offered), None);
    }

    #[test]
    fn the_next_task_of_a_session_is_not_done_again() {
        let answer = text("assistant", "It was so.");
        let mut messages = vec![text("system", RULES), text("user", "Make it pass."), answer];
        messages.push(text("user", "The skill notes was loaded."));
        assert_ne!(next(&messages, Offered::default()).reason, "remembers its repair");
        messages.push(text("user", "Some titles have spaces."));
        let turn = next(&messages, Offered::default());
        assert_eq!((turn.reason, turn.message.tool_calls.len()), ("remembers its repair", 0));
    }

    #[test]
    fn an_agent_with_a_shell_is_led_to_the_same_end() {
        let with_tools = project();
        let in_shell = |call: &Function| {
            assert_eq!(call.name, shell::TOOL);
            let (tool, arguments) = shell::to_tool(&serde_json::from_str(&call.arguments).unwrap());
            let answer = with_tools(tool, &arguments);
            let failed = ["exit status 1\n", "error: "].iter().any(|it| answer.starts_with(it));
            let output = answer.trim_start_matches("error: ");
            json!({ "output": output, "metadata": { "exit_code": i32::from(failed) } }).to_string()
        };
        let offered = Offered::new([shell::TOOL]);
        assert_eq!(converse(RULES, offered, in_shell), play(RULES, project()));
    }

    #[test]
    fn a_project_that_stays_broken_is_given_up() {
        let broken = |tool: &str, _: &Value| match tool {
            "read_file" => SOURCE.to_owned(),
            _ => "exit status 1\n".to_owned(),
        };
        assert_eq!(play("", broken).1, "I cannot repair it.");
        let other = |_: &str, _: &Value| "another program".to_owned();
        assert_eq!(
            play("", other).0.len(),
            2,
            "nothing is written to a program that it does not know"
        );
    }
}
