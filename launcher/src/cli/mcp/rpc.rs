//! The messages of the [Model Context Protocol](https://modelcontextprotocol.io/specification/2025-06-18/basic), which are those of
//! [JSON-RPC 2.0](https://www.jsonrpc.org/specification), each on one line. Does no I/O but to read lines.

use std::io::{self, BufRead, Read as _};

use serde_json::{Map, Value, json};

/// The supported revisions of the protocol, the newest first.
pub(super) const REVISIONS: [&str; 3] = ["2025-06-18", BATCHES, "2024-11-05"];
/// The only revision in which a message can be a batch of messages.
pub(super) const BATCHES: &str = "2025-03-26";
/// The maximum length of a message, in bytes.
pub(super) const MAX_MESSAGE: usize = 8 << 20;

/// The codes of errors.
pub(super) const PARSE_ERROR: i32 = -32_700;
pub(super) const INVALID_REQUEST: i32 = -32_600;
pub(super) const METHOD_NOT_FOUND: i32 = -32_601;
pub(super) const INVALID_PARAMS: i32 = -32_602;

/// A line of the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Text(Vec<u8>),
    /// The line was longer than [`MAX_MESSAGE`], and was skipped.
    TooLong,
}

/// Reads the next line. `None` at the end of the input.
///
/// # Errors
/// The errors of the input.
pub(super) fn next_line(input: &mut impl BufRead) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let most = MAX_MESSAGE as u64 + 1;
    if input.by_ref().take(most).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.ends_with(b"\n") || line.len() <= MAX_MESSAGE {
        return Ok(Some(Line::Text(line)));
    }
    input.skip_until(b'\n')?;
    Ok(Some(Line::TooLong))
}

/// A message of the client.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    Request(Request),
    Notification {
        method: String,
        params: Map<String, Value>,
    },
    /// An answer to a request of the server, which makes none.
    Answer,
}

/// A request, which gets an answer.
#[derive(Debug, PartialEq)]
pub(super) struct Request {
    /// A text or an integer.
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Map<String, Value>,
}

/// What a line has. A message that is refused is the answer to it.
#[derive(Debug, PartialEq)]
pub(super) enum Received {
    One(Result<Message, Value>),
    Batch(Vec<Result<Message, Value>>),
}

/// Parses a line. `has_batches` is whether a batch is allowed.
pub(super) fn parse(line: &[u8], has_batches: bool) -> Received {
    let refused = |code, message: &str| Received::One(Err(refusal(Value::Null, code, message)));
    match serde_json::from_slice(line) {
        Err(error) => refused(PARSE_ERROR, &format!("the message is not JSON: {error}")),
        Ok(Value::Array(_)) if !has_batches => {
            refused(INVALID_REQUEST, "this revision of the protocol has no batches")
        }
        Ok(Value::Array(all)) if all.is_empty() => refused(INVALID_REQUEST, "the batch is empty"),
        Ok(Value::Array(all)) => Received::Batch(all.into_iter().map(message).collect()),
        Ok(one) => Received::One(message(one)),
    }
}

fn message(value: Value) -> Result<Message, Value> {
    let Value::Object(mut fields) = value else {
        return Err(refusal(Value::Null, INVALID_REQUEST, "a message is an object"));
    };
    let id = fields.remove("id");
    let known_id = id.clone().filter(is_id).unwrap_or(Value::Null);
    let refused = |message: &str| Err(refusal(known_id.clone(), INVALID_REQUEST, message));
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return refused("the field `jsonrpc` has to be \"2.0\"");
    }
    if id.as_ref().is_some_and(|it| !is_id(it)) {
        return refused("the field `id` has to be a text or an integer");
    }
    let params = match fields.remove("params") {
        None => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return refused("the field `params` has to be an object"),
    };
    match (fields.remove("method"), id) {
        (Some(Value::String(method)), Some(id)) => {
            Ok(Message::Request(Request { id, method, params }))
        }
        (Some(Value::String(method)), None) => Ok(Message::Notification { method, params }),
        (None, Some(_)) if fields.contains_key("result") || fields.contains_key("error") => {
            Ok(Message::Answer)
        }
        _ => refused("the field `method` has to be a text"),
    }
}

fn is_id(value: &Value) -> bool {
    value.is_string() || value.is_i64() || value.is_u64()
}

/// Returns the answer with the result of a request.
pub(super) fn result(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Returns the answer with the error of a request. The ID is null if it is unknown.
pub(super) fn refusal(id: Value, code: i32, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

/// Returns the revision that the server uses with a client that wants `wanted`: the same if it is supported, else the newest.
pub(super) fn negotiated(wanted: &str) -> &'static str {
    REVISIONS.into_iter().find(|it| *it == wanted).unwrap_or(REVISIONS[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Result<Message, Value> {
        match parse(line.as_bytes(), false) {
            Received::One(one) => one,
            Received::Batch(_) => panic!("{line}"),
        }
    }

    #[test]
    fn requests_notifications_and_answers_are_told_apart() {
        let params = Map::from_iter([("a".to_owned(), json!(1))]);
        let method = || "x".to_owned();
        let read = one(r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1}}"#).unwrap();
        let expected = Request { id: json!(1), method: method(), params: params.clone() };
        assert_eq!(read, Message::Request(expected));
        let read = one(r#"{"jsonrpc":"2.0","id":"q","method":"x"}"#).unwrap();
        let expected = Request { id: json!("q"), method: method(), params: Map::new() };
        assert_eq!(read, Message::Request(expected));
        let read = one(r#"{"jsonrpc":"2.0","method":"x","params":{"a":1}}"#).unwrap();
        assert_eq!(read, Message::Notification { method: method(), params });
        for answer in ["\"result\":{}", "\"error\":{\"code\":1,\"message\":\"\"}"] {
            let read = one(&format!("{{\"jsonrpc\":\"2.0\",\"id\":1,{answer}}}"));
            assert_eq!(read.unwrap(), Message::Answer);
        }
    }

    #[test]
    fn what_is_no_message_is_refused_with_the_id_that_it_has() {
        let refused = |line: &str| {
            let error = one(line).unwrap_err();
            (error["id"].clone(), error["error"]["code"].as_i64().unwrap())
        };
        for (line, id, code) in [
            ("{", Value::Null, PARSE_ERROR),
            ("[]", Value::Null, INVALID_REQUEST),
            ("7", Value::Null, INVALID_REQUEST),
            (r#"{"id":1,"method":"x"}"#, json!(1), INVALID_REQUEST),
            (r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#, json!(1), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#, Value::Null, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#, Value::Null, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":2}"#, json!(1), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[]}"#, json!(1), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0"}"#, Value::Null, INVALID_REQUEST),
        ] {
            assert_eq!(refused(line), (id, i64::from(code)), "{line}");
        }
        refused(&"[".repeat(100_000));
    }

    #[test]
    fn only_one_revision_has_batches() {
        let line = br#"[{"jsonrpc":"2.0","method":"x"},1]"#;
        let Received::Batch(all) = parse(line, true) else { panic!() };
        assert!(all.len() == 2 && all[0].is_ok() && all[1].is_err());
        assert!(matches!(parse(line, false), Received::One(Err(_))));
        assert!(matches!(parse(b"[]", true), Received::One(Err(_))));
    }

    #[test]
    fn a_line_has_a_greatest_length() {
        let long = vec![b'x'; MAX_MESSAGE];
        let input = [&long[..], b"\n", &long, b"x\nshort\nend"].concat();
        let mut input = input.as_slice();
        let mut next = || next_line(&mut input).unwrap();
        assert_eq!(next(), Some(Line::Text([&long[..], b"\n"].concat())));
        assert_eq!(next(), Some(Line::TooLong));
        assert_eq!(next(), Some(Line::Text(b"short\n".to_vec())));
        assert_eq!(next(), Some(Line::Text(b"end".to_vec())));
        assert_eq!(next(), None);
    }

    #[test]
    fn an_unknown_revision_becomes_the_newest() {
        for (wanted, used) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-03-26", "2025-03-26"),
            ("2099-01-01", "2025-06-18"),
        ] {
            assert_eq!(negotiated(wanted), used);
        }
    }
}
