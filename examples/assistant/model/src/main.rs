//! The model of the example: a chat completions server that plays a programmer whose first repair is wrong.
//!
//! `assistant-model ADDRESS KEY_FILE` answers `POST /v1/chat/completions` over TLS for clients that send the key. Its certificate is
//! that of the tests' servers, for 127.0.0.1. It prints `ready` when
//! it listens, and then for each request the time in milliseconds since 1970 and the reason for its response. With `--stall` as
//! a third argument, it answers a conversation in which tests have failed only when the file `answer` is in its working directory,
//! and removes the file. Tests use this to change a box at a known point of its task, or to interrupt the task.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program for tests")]

mod programmer;
mod shell;

use std::fs;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use programmer::{Message, Offered, Turn};
use serde::Deserialize;
use serde_json::{Value, json};
use test_server::{Identity, Reply, Request, Server, length, reply};

/// The file that a stalled model waits for, and the time between two looks for it.
const MAY_ANSWER: &str = "answer";
const LOOK_AGAIN: Duration = Duration::from_millis(50);
const PLACE: &str = "POST /v1/chat/completions ";

/// The used fields of a [request](https://platform.openai.com/docs/api-reference/chat/create).
#[derive(Debug, Deserialize)]
struct Question {
    model: String,
    messages: Vec<Message>,
    #[serde(default)]
    stream: bool,
    #[serde(default)]
    tools: Vec<Tool>,
}

/// A tool that the agent offers to the model.
#[derive(Debug, Deserialize)]
struct Tool {
    function: Named,
}

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let (address, key, stalls) = match &arguments[..] {
        [address, key] => (address, key, false),
        [address, key, option] if option == "--stall" => (address, key, true),
        other => panic!("{other:?}"),
    };
    let address: SocketAddr = address.parse().unwrap();
    let key = fs::read_to_string(key).unwrap().trim().to_owned();
    let _server = Server::start_at(address, Identity::Valid, |_| {
        move |request: &Request| answer(&key, stalls, request)
    });
    println!("ready");
    loop {
        thread::park();
    }
}

fn answer(key: &str, stalls: bool, request: &Request) -> Reply {
    if !request.head.starts_with(PLACE) {
        return refusal("404 Not Found", "there is nothing here");
    }
    if request.header("authorization") != Some(&format!("Bearer {key}")) {
        return refusal("401 Unauthorized", "the key is not valid");
    }
    let question: Question = match serde_json::from_str(&request.body) {
        Ok(question) => question,
        Err(error) => return refusal("400 Bad Request", &error.to_string()),
    };
    let offered = Offered::new(question.tools.iter().map(|it| it.function.name.as_str()));
    let turn = programmer::next(&question.messages, offered);
    say(turn.reason);
    while stalls && turn.has_seen_failure && fs::remove_file(MAY_ANSWER).is_err() {
        thread::sleep(LOOK_AGAIN);
    }
    match question.stream {
        false => json_reply("200 OK", &completion(&question.model, &turn)),
        true => stream(&question.model, &turn),
    }
}

fn completion(model: &str, turn: &Turn) -> Value {
    json!({
        "object": "chat.completion",
        "model": model,
        "choices": [{ "index": 0, "message": turn.message, "finish_reason": reason(turn) }],
    })
}

/// Returns the completion as a stream of events, with the whole message in the first event.
fn stream(model: &str, turn: &Turn) -> Reply {
    let mut delta = json!(turn.message);
    for (index, call) in delta["tool_calls"].as_array_mut().into_iter().flatten().enumerate() {
        call["index"] = json!(index);
    }
    let chunk = json!({
        "object": "chat.completion.chunk",
        "model": model,
        "choices": [{ "index": 0, "delta": delta, "finish_reason": reason(turn) }],
    });
    let events = format!("data: {chunk}\n\ndata: [DONE]\n\n");
    reply("200 OK", &["Content-Type: text/event-stream"], events.as_bytes())
}

fn reason(turn: &Turn) -> &'static str {
    if turn.message.tool_calls.is_empty() { "stop" } else { "tool_calls" }
}

fn refusal(status: &str, why: &str) -> Reply {
    say(&format!("refused: {why}"));
    json_reply(status, &json!({ "error": { "message": why } }))
}

fn json_reply(status: &str, body: &Value) -> Reply {
    let body = body.to_string();
    reply(status, &["Content-Type: application/json", &length(body.len())], body.as_bytes())
}

fn say(line: &str) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    println!("{} {line}", now.as_millis());
}

#[cfg(test)]
mod tests {
    use test_server::Step;

    use super::*;

    fn ask(head: &str, body: &str) -> String {
        let request = Request {
            head: head.to_owned(),
            body: body.to_owned(),
            bytes: body.as_bytes().to_vec(),
        };
        let sent = |step: Step| match step {
            Step::Send(bytes) => String::from_utf8(bytes).unwrap(),
            other => panic!("{other:?}"),
        };
        answer("right", false, &request).into_iter().map(sent).collect()
    }

    #[test]
    fn only_who_has_the_key_gets_an_answer() {
        let body = r#"{"model": "m", "messages": [{"role": "user", "content": "hello"}]}"#;
        let with = |key: &str| {
            ask(&format!("{PLACE}HTTP/1.1\r\nAuthorization: Bearer {key}\r\n\r\n"), body)
        };
        let answer = with("right");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains(r#""finish_reason":"tool_calls""#), "{answer}");
        assert!(with("wrong").starts_with("HTTP/1.1 401 "), "{}", with("wrong"));
        assert!(ask(&format!("{PLACE}HTTP/1.1\r\n\r\n"), body).contains("the key is not valid"));
    }

    #[test]
    fn who_asks_for_a_stream_and_has_a_shell_gets_both() {
        let body = r#"{"model": "m", "stream": true, "messages": [{"role": "user", "content": "hello"}],
            "tools": [{"type": "function", "function": {"name": "shell"}}]}"#;
        let answer = ask(&format!("{PLACE}HTTP/1.1\r\nAuthorization: Bearer right\r\n\r\n"), body);
        let events: Vec<_> = answer.lines().filter_map(|it| it.strip_prefix("data: ")).collect();
        let [first, "[DONE]"] = events[..] else { panic!("{answer}") };
        let choice = serde_json::from_str::<Value>(first).unwrap()["choices"][0].take();
        assert_eq!(choice["finish_reason"], "tool_calls");
        assert_eq!(choice["delta"]["tool_calls"][1]["index"], 1);
        assert_eq!(choice["delta"]["tool_calls"][1]["function"]["name"], "shell");
    }

    #[test]
    fn a_request_that_is_no_question_is_refused() {
        let head = format!("{PLACE}HTTP/1.1\r\nAuthorization: Bearer right\r\n\r\n");
        assert!(ask(&head, "{}").starts_with("HTTP/1.1 400 "));
        assert!(ask("GET / HTTP/1.1\r\n\r\n", "").starts_with("HTTP/1.1 404 "));
    }
}
