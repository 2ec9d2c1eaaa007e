//! The APIs of models, as the agents of examples/agents use them. Each answers every request with the same sentence, as a stream of
//! [server-sent events](https://html.spec.whatwg.org/multipage/server-sent-events.html) or, if a chat is asked for none, as one object.

use std::net::Ipv4Addr;
use std::thread;

use test_server::{Identity, Reply, Request, Server, length, reply};

/// The headers that can have the key of an API.
const CREDENTIALS: [&str; 3] = ["authorization", "x-api-key", "x-goog-api-key"];
/// The header of a stream of events.
const EVENTS: &str = "Content-Type: text/event-stream";

/// [Anthropic's messages](https://docs.anthropic.com/en/docs/build-with-claude/streaming).
const MESSAGES: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"example","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello from the model."}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5}}

event: message_stop
data: {"type":"message_stop"}

"#;

/// [Google's contents](https://ai.google.dev/api/generate-content).
const CONTENTS: &str = r#"data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Hello from the model."}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":5,"totalTokenCount":6}}

"#;

/// [OpenAI's responses](https://platform.openai.com/docs/api-reference/responses-streaming).
const RESPONSES: &str = r#"event: response.created
data: {"type":"response.created","response":{"id":"resp_1","object":"response","created_at":1,"status":"in_progress","model":"example","output":[]}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"msg_1","status":"in_progress","role":"assistant","content":[]}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hello from the model."}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello from the model.","annotations":[]}]}}

event: response.completed
data: {"type":"response.completed","response":{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"example","output":[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello from the model.","annotations":[]}]}],"usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":0},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":6}}}

"#;

/// [OpenAI's chat completions](https://platform.openai.com/docs/api-reference/chat-streaming).
const CHUNKS: &str = r#"data: {"id":"chat_1","object":"chat.completion.chunk","created":1,"model":"example","choices":[{"index":0,"delta":{"role":"assistant","content":"Hello from the model."},"finish_reason":null}]}

data: {"id":"chat_1","object":"chat.completion.chunk","created":1,"model":"example","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":5,"total_tokens":6}}

data: [DONE]

"#;

/// The same as one object, for a request without a stream.
const COMPLETION: &str = r#"{"id":"chat_1","object":"chat.completion","created":1,"model":"example","choices":[{"index":0,"message":{"role":"assistant","content":"Hello from the model."},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":5,"total_tokens":6}}"#;

/// Serves the APIs until the process is killed.
pub(crate) fn serve(port: u16) {
    let _server = Server::start_at((Ipv4Addr::LOCALHOST, port).into(), Identity::Valid, |_| answer);
    println!("ready");
    loop {
        thread::park();
    }
}

/// Answers a request as the API of its path does.
fn answer(request: &Request) -> Reply {
    let credential = |name: &str| Some(format!(", {name}: {}", request.header(name)?));
    let credentials: String = CREDENTIALS.into_iter().filter_map(credential).collect();
    println!("{} {}{credentials}", request.method(), request.path());
    let path = request.path().split('?').next().unwrap_or_default();
    let is_stream = request.body.contains("\"stream\":true");
    let (kind, text) = match path {
        "/v1/messages" => (EVENTS, MESSAGES),
        "/v1/responses" => (EVENTS, RESPONSES),
        "/v1/chat/completions" if is_stream => (EVENTS, CHUNKS),
        "/v1/chat/completions" => ("Content-Type: application/json", COMPLETION),
        _ if path.ends_with(":streamGenerateContent") => (EVENTS, CONTENTS),
        _ => return reply("404 Not Found", &["Content-Length: 0"], b""),
    };
    reply("200 OK", &[kind, &length(text.len())], text.as_bytes())
}
