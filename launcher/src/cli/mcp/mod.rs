//! `boxlaunch mcp`: serves the [Model Context Protocol](https://modelcontextprotocol.io) on standard input and output, for agents that
//! run on this host and work in a box.
//!
//! The main thread reads the requests. Each call of a tool has its own thread and its own connection to the box's supervisor. The end of
//! the connection kills the command of the call.

mod arguments;
mod rpc;
mod tools;

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder, Scope};

use box_contract::exit;
use boxlaunch::boxes::Boxes;
use boxlaunch::streams::StreamError;
use host_fs::OsError;
use serde_json::{Map, Value, json};

use super::environment::record_or_tip;
use super::error::Failure;
use super::paths;
use super::terminal::json_line;
use arguments::{Tool, Wrong};
use rpc::{
    BATCHES, INVALID_PARAMS, INVALID_REQUEST, Line, METHOD_NOT_FOUND, Message, Received, Request,
    negotiated, next_line, parse, refusal, result,
};

/// Serves the Model Context Protocol on standard input and output, so that an agent on this host can work in a running box.
///
/// The tools are exec, read_file, write_file, list_directory and logs: docs/mcp.md.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  claude mcp add box -- boxlaunch mcp hello
  codex mcp add box -- boxlaunch mcp hello")]
pub(crate) struct McpArgs {
    /// The box's name, or . for the environment of the current directory.
    #[arg(value_name = "NAME")]
    name: String,
}

/// How many calls of tools can run at the same time.
const MAX_CALLS: usize = 32;

/// What a client that runs a model is told about the server.
const INSTRUCTIONS: &str = "These tools work in a microVM, the box. Its files and programs are not those of this host. Paths are \
    paths in the box, and a component of the box is `agent` or `business`.";

pub(crate) fn mcp(args: &McpArgs) -> Result<u8, Failure> {
    let boxes = Boxes::new(&paths::state()?);
    let record = record_or_tip(&boxes, Some(&args.name), |word| format!("boxlaunch mcp . {word}"))?;
    let server = Server { name: record.name, calls: Mutex::default(), output: Mutex::default() };
    thread::scope(|scope| {
        let served = serve(&server, scope, io::stdin().lock());
        // The scope waits for all calls. Their commands end now, because nobody reads the answers.
        server.cancel_all();
        served
    })?;
    Ok(exit::DONE)
}

/// Handles all messages until the input ends.
fn serve<'scope, 'env: 'scope>(
    server: &'env Server,
    scope: &'scope Scope<'scope, 'env>,
    mut input: impl BufRead,
) -> Result<(), Failure> {
    let mut session = Session { server, revision: None };
    while let Some(line) = next_line(&mut input).map_err(StreamError::Input)? {
        let received = match line {
            Line::Text(text) if text.trim_ascii().is_empty() => continue,
            Line::Text(text) => parse(&text, session.revision == Some(BATCHES)),
            Line::TooLong => {
                let message = format!("a message has at most {} bytes", rpc::MAX_MESSAGE);
                Received::One(Err(refusal(Value::Null, INVALID_REQUEST, &message)))
            }
        };
        let (messages, is_batch) = match received {
            Received::One(one) => (vec![one], false),
            Received::Batch(all) => (all, true),
        };
        let tasks: Vec<_> = messages.into_iter().map(|it| session.task(it)).collect();
        if tasks.iter().any(|it| matches!(it, Task::Call { .. })) {
            let thread = Builder::new().spawn_scoped(scope, move || server.finish(tasks, is_batch));
            thread.map_err(OsError::system("start a thread for a call"))?;
        } else {
            server.finish(tasks, is_batch);
        }
    }
    Ok(())
}

/// What remains to be done for a message.
enum Task {
    /// Sends an answer. `None` if the message gets none.
    Answer(Option<Value>),
    /// Calls a tool.
    Call { id: Value, tool: Tool, cancelled: Arc<AtomicBool> },
}

/// What all threads share.
struct Server {
    /// The name of the box.
    name: String,
    /// The calls that run, by the text of their IDs, each with whether it is cancelled.
    calls: Mutex<BTreeMap<String, Arc<AtomicBool>>>,
    /// Locked while a message is written to standard output.
    output: Mutex<()>,
}

impl Server {
    fn calls(&self) -> MutexGuard<'_, BTreeMap<String, Arc<AtomicBool>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cancel_all(&self) {
        self.calls().values().for_each(|it| it.store(true, Ordering::Relaxed));
    }

    /// Finishes the tasks of a message or of a batch, and sends the answers.
    fn finish(&self, tasks: Vec<Task>, is_batch: bool) {
        let mut answers: Vec<_> = tasks.into_iter().filter_map(|it| self.answer(it)).collect();
        if is_batch && !answers.is_empty() {
            answers = vec![Value::Array(answers)];
        }
        answers.iter().for_each(|it| self.send(it));
    }

    /// Returns the answer to a message. A cancelled call gets none.
    fn answer(&self, task: Task) -> Option<Value> {
        let (id, tool, cancelled) = match task {
            Task::Answer(answer) => return answer,
            Task::Call { id, tool, cancelled } => (id, tool, cancelled),
        };
        let called = tools::call(&tool, &self.name, &cancelled);
        self.calls().remove(&id.to_string());
        called.map(|it| result(&id, &it))
    }

    /// Writes a message to standard output. An error is ignored: if the client is gone, the input ends as well.
    fn send(&self, message: &Value) {
        let _alone = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(line) = json_line(message) {
            let mut stdout = io::stdout().lock();
            drop(stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush()));
        }
    }
}

/// A client.
struct Session<'s> {
    server: &'s Server,
    /// The revision of the protocol, once it is negotiated.
    revision: Option<&'static str>,
}

/// The error of a request: its code and its message.
type Refused = (i32, String);

/// Why a call does not begin.
enum NotCalled {
    /// The arguments are wrong, for this reason, which the model gets as the result.
    Wrong(String),
    Refused(Refused),
}

impl Session<'_> {
    /// Returns what is to be done for a message.
    fn task(&mut self, message: Result<Message, Value>) -> Task {
        match message {
            Err(refusal) => Task::Answer(Some(refusal)),
            Ok(Message::Request(request)) => self.requested(request),
            Ok(Message::Notification { method, params }) => {
                if method == "notifications/cancelled" {
                    self.cancel(&params);
                }
                Task::Answer(None)
            }
            Ok(Message::Answer) => Task::Answer(None),
        }
    }

    fn requested(&mut self, request: Request) -> Task {
        let Request { id, method, params } = request;
        let answered = match (method.as_str(), self.revision) {
            ("ping", _) => Ok(json!({})),
            ("initialize", None) => self.initialize(&params),
            ("initialize", Some(_)) => {
                Err((INVALID_REQUEST, "the session is initialized already".to_owned()))
            }
            (_, None) => {
                Err((INVALID_REQUEST, "the first request has to be `initialize`".to_owned()))
            }
            ("tools/list", Some(_)) => Ok(json!({ "tools": arguments::definitions() })),
            ("tools/call", Some(_)) => match self.called(&id, params) {
                Ok(call) => return call,
                Err(NotCalled::Wrong(reason)) => Ok(tools::failed_with(&reason)),
                Err(NotCalled::Refused(refused)) => Err(refused),
            },
            _ => Err((METHOD_NOT_FOUND, format!("there is no method {method}"))),
        };
        Task::Answer(Some(match answered {
            Ok(answer) => result(&id, &answer),
            Err((code, message)) => refusal(id, code, &message),
        }))
    }

    fn initialize(&mut self, params: &Map<String, Value>) -> Result<Value, Refused> {
        let wanted = params.get("protocolVersion").and_then(Value::as_str);
        let wanted = wanted.ok_or_else(|| {
            (INVALID_PARAMS, "the parameter `protocolVersion` has to be a text".to_owned())
        })?;
        let revision = negotiated(wanted);
        self.revision = Some(revision);
        Ok(json!({
            "protocolVersion": revision,
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "boxlaunch", "version": env!("CARGO_PKG_VERSION") },
            "instructions": format!("{INSTRUCTIONS} The name of the box is {}.", self.server.name),
        }))
    }

    /// Registers a call of a tool.
    fn called(&self, id: &Value, params: Map<String, Value>) -> Result<Task, NotCalled> {
        let refused = |code, message| Err(NotCalled::Refused((code, message)));
        let tool = match Tool::parse(params) {
            Ok(tool) => tool,
            Err(Wrong::Arguments(reason)) => return Err(NotCalled::Wrong(reason)),
            Err(Wrong::Tool(message)) => return refused(INVALID_PARAMS, message),
        };
        let mut calls = self.server.calls();
        if calls.contains_key(&id.to_string()) {
            return refused(INVALID_REQUEST, format!("the request {id} is still running"));
        }
        if calls.len() >= MAX_CALLS {
            return refused(INVALID_REQUEST, format!("{MAX_CALLS} calls are running already"));
        }
        let cancelled = Arc::new(AtomicBool::new(false));
        calls.insert(id.to_string(), Arc::clone(&cancelled));
        Ok(Task::Call { id: id.clone(), tool, cancelled })
    }

    /// Cancels a call. One that has ended, or never existed, is no error.
    fn cancel(&self, params: &Map<String, Value>) {
        let id = params.get("requestId").map(Value::to_string).unwrap_or_default();
        if let Some(cancelled) = self.server.calls().get(&id) {
            cancelled.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Server {
        Server { name: "hello".to_owned(), calls: Mutex::default(), output: Mutex::default() }
    }

    /// Returns the task for a request with the ID 1.
    fn task(session: &mut Session<'_>, method: &str, params: Value) -> Task {
        let Value::Object(params) = params else { panic!("{params}") };
        let (id, method) = (json!(1), method.to_owned());
        session.task(Ok(Message::Request(Request { id, method, params })))
    }

    fn answer(session: &mut Session<'_>, method: &str, params: Value) -> Value {
        match task(session, method, params) {
            Task::Answer(answer) => answer.unwrap(),
            Task::Call { .. } => panic!("{method}"),
        }
    }

    #[test]
    fn a_session_begins_with_the_negotiation() {
        let server = server();
        let mut session = Session { server: &server, revision: None };
        assert_eq!(answer(&mut session, "ping", json!({}))["result"], json!({}));
        let early = answer(&mut session, "tools/list", json!({}));
        assert_eq!(early["error"]["code"], INVALID_REQUEST);
        let malformed = answer(&mut session, "initialize", json!({}));
        assert_eq!(malformed["error"]["code"], INVALID_PARAMS);
        let wanted = json!({ "protocolVersion": "2024-11-05" });
        let begun = answer(&mut session, "initialize", wanted.clone());
        assert_eq!(begun["result"]["protocolVersion"], "2024-11-05");
        assert_eq!(begun["result"]["serverInfo"]["name"], "boxlaunch");
        let again = answer(&mut session, "initialize", wanted);
        assert_eq!(again["error"]["code"], INVALID_REQUEST);
        let tools = answer(&mut session, "tools/list", json!({}));
        assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 5);
        let unknown = answer(&mut session, "resources/list", json!({}));
        assert_eq!(unknown["error"]["code"], METHOD_NOT_FOUND);
    }

    #[test]
    fn a_call_can_be_cancelled_while_it_runs() {
        let server = server();
        let mut session = Session { server: &server, revision: Some("2025-06-18") };
        let call = || json!({ "name": "logs" });
        let Task::Call { cancelled, .. } = task(&mut session, "tools/call", call()) else {
            panic!()
        };
        let twice = answer(&mut session, "tools/call", call());
        assert_eq!(twice["error"]["code"], INVALID_REQUEST);
        let cancel = |session: &mut Session<'_>, id: Value| {
            let params = Map::from_iter([("requestId".to_owned(), id)]);
            let method = "notifications/cancelled".to_owned();
            let task = session.task(Ok(Message::Notification { method, params }));
            assert!(matches!(task, Task::Answer(None)));
        };
        cancel(&mut session, json!("1"));
        assert!(!cancelled.load(Ordering::Relaxed), "a text is another ID than a number");
        cancel(&mut session, json!(1));
        assert!(cancelled.load(Ordering::Relaxed));
        let unknown = answer(&mut session, "tools/call", json!({ "name": "reboot" }));
        assert_eq!(unknown["error"]["code"], INVALID_PARAMS);
        let wrong = json!({ "name": "exec", "arguments": { "command": "x", "cwd": "/" } });
        let wrong = answer(&mut session, "tools/call", wrong);
        assert_eq!(wrong["result"]["isError"], true, "{wrong}");
    }
}
