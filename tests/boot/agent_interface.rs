//! `boxlaunch agent` with the example agents, and with agents that do not serve the A3S agent interface.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::{Value, json};
use testbed::debian::GrpcImage;

use crate::page::{self, assert_page};
use crate::scenario::{Ran, Scenario, Step, bake, tools};
use crate::schema::assert_fits;

const PAGE: &str = include_str!("../../docs/agents.md");
/// An agent that accepts connections, and never answers.
const SILENT: &str = "entrypoint \"/bin/nc\" \"-ll\" \"-p\" \"4088\" \"-e\" \"/bin/sleep\" \"100\"";
/// An agent that answers as an HTTP/1 server does.
const HTTP: &str = "file \"answer\" to=\"/answer\" mode=\"0755\"\n    \
    entrypoint \"/bin/nc\" \"-ll\" \"-p\" \"4088\" \"-e\" \"/answer\"";
const ANSWER: &str = "#!/bin/sh\nprintf 'HTTP/1.1 400 Bad Request\\r\\n\\r\\n'; sleep 5\n";
/// An agent that answers the health check of `opencode serve`, `GET /global/health` on port 4096.
const OPENCODE: &str = "file \"health\" to=\"/www/global/health\"\n    \
    entrypoint \"/bin/httpd\" \"-f\" \"-p\" \"127.0.0.1:4096\" \"-h\" \"/www\"";
/// The agent in Python with the standard health check of gRPC for its service `echo`, too: it is not serving while the file `/tmp/ill`
/// exists. The messages are bytes: the name of the service is the first field of the request, and the status is that of the answer.
const STANDARD: &str = r#"
import os
from concurrent import futures

import grpc
import server


def check(request, context):
    if request != b"\x0a\x04echo":
        context.abort(grpc.StatusCode.NOT_FOUND, "there is no such service")
    return b"\x08\x02" if os.path.exists("/tmp/ill") else b"\x08\x01"


health = {"Check": grpc.unary_unary_rpc_method_handler(check)}
agent = grpc.server(futures.ThreadPoolExecutor(max_workers=16))
for service, methods in (server.SERVICE, server.METHODS), ("grpc.health.v1.Health", health):
    agent.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
agent.add_insecure_port("127.0.0.1:4088")
agent.start()
agent.wait_for_termination()
"#;
/// Declares [`STANDARD`] as the agent of the image, which has the messages and the program `server.py` in `/agent`.
const PYTHON: &str = "file \"standard.py\" to=\"/standard.py\"\n    \
    entrypoint \"/bin/sh\" \"-c\" \"protoc --proto_path=/agent --python_out=/tmp /agent/code_agent.proto && PYTHONPATH=/tmp:/agent exec python3 /standard.py\"\n    \
    health \"grpc\" service=\"echo\"";
/// Runs all `boxlaunch agent` commands with an agent that echoes, also with an unknown session.
const ECHO: &str = r#"
boxlaunch run -q -d --name $box /$box || exit
boxlaunch agent health $box; echo "exit $?"
boxlaunch agent capabilities $box; boxlaunch agent skills $box
boxlaunch agent generate $box 'one two  three'; echo "exit $?"
echo 'by standard input' | boxlaunch agent generate $box -
boxlaunch agent generate $box --session unknown hello; echo "exit $?"
for it in health capabilities skills; do boxlaunch agent $it --json $box >/out/$box-$it; done
boxlaunch agent generate --json $box "$(printf 'a\033[2Jb c')" >/out/$box-generate
boxlaunch agent generate --json $box --session unknown hello >/out/$box-refused
boxlaunch agent generate $box "$(printf 'a\033[2Jb')" | od -c | head -n 1
boxlaunch rm -f $box
"#;
/// Uses sessions of the agent in Python. The events are watched from before the first session until the end.
const SESSIONS: &str = r#"
boxlaunch run -q -d --name talk /python || exit
boxlaunch agent session events --json talk >/out/events & events=$!
until [ -s /out/events ]; do boxlaunch agent session create talk --session probe; boxlaunch agent session close talk probe; done >/dev/null
boxlaunch agent session create talk --session review
boxlaunch agent session create talk --session review; echo "exit $?"
boxlaunch agent session send talk review 'one two'
boxlaunch agent session send talk review 'run it' --events >/out/lines & send=$!
until grep -q confirmation-required /out/events; do sleep 0.2; done
tool=$(sed -n 's/.*"tool_id":"\([^"]*\)".*/\1/p' /out/events | head -n 1)
boxlaunch agent session confirm talk review no-tool; echo "exit $?"
boxlaunch agent session confirm talk review $tool --json >/out/confirmed; wait $send; echo "exit $?"
boxlaunch agent session send talk review "$(yes word | head -n 1000 | tr '\n' ' ')" >/dev/null & send=$!
until boxlaunch agent session cancel talk review 2>/dev/null; do sleep 0.2; done; wait $send; echo "exit $?"
boxlaunch agent session cancel talk review; echo "exit $?"
boxlaunch agent session list talk; boxlaunch agent session list --json talk >/out/sessions
boxlaunch agent session close talk review; boxlaunch agent session ls talk
until grep review /out/events | grep -q session-destroyed; do sleep 0.2; done
kill $events
{ boxlaunch health talk; boxlaunch exec --in agent talk touch /tmp/ill; boxlaunch health talk; boxlaunch inspect /python | grep 'health '; } >/out/standard
boxlaunch rm -f talk >/dev/null
"#;
/// Prints the health, the port and the health check of two agents whose kind sets the port and the check.
const KINDS: &str = r#"
for box in opencode rust; do
    boxlaunch run -q -d --name $box-kind /$box; boxlaunch health $box-kind; boxlaunch inspect $box-kind | grep port
    boxlaunch inspect /$box | grep 'health '; boxlaunch rm -f $box-kind
done
"#;
/// Runs commands with agents that do not serve the interface.
const OTHERS: &str = r#"
for box in http silent; do boxlaunch run -q -d --name $box /$box || exit; done
boxlaunch agent health http; echo "exit $?"; boxlaunch agent generate http hello; echo "exit $?"
boxlaunch agent health silent --timeout 2; echo "exit $?"; boxlaunch agent skills silent --timeout 1; echo "exit $?"
boxlaunch exec http true && echo 'the box runs on'
boxlaunch rm -f http silent >/dev/null; boxlaunch agent health http; echo "exit $?"
"#;

/// Returns the Boxfile of a box with only an agent. `rest` has further declarations of the agent; `memory` is its limit in MiB.
fn boxfile((name, kind): (&str, &str), image: &Path, rest: &str, memory: u32) -> String {
    let (image, machine) = (image.display(), memory + 128);
    format!(
        "box \"{name}\"\nagent kind=\"{kind}\" {{\n    image \"oci:{image}\"\n    {rest}\n    limits memory=\"{memory}MiB\"\n}}\n\
         vm cpus=1 memory=\"{machine}MiB\"\n"
    )
}

/// Returns the Boxfile of the page's box: the agent in Rust, which is the file `echo`, in the image `images/business`.
pub(crate) fn echo_boxfile() -> String {
    let declared = page::blocks(PAGE, "kdl").join("\n");
    let declared = declared.split_inclusive("\n}\n").next().unwrap().replace("/base", "/business");
    declared + "vm cpus=1 memory=\"192MiB\"\n"
}

static STEPS: LazyLock<Ran> = LazyLock::new(|| {
    let tools = tools();
    let say = &mut |line: &str| println!("{line}");
    let GrpcImage(python) = GrpcImage::make(&tools.workspace, say).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let images = dir.path().join("images");
    testbed::hello::write_images(&tools.programs.hello_agent, &images).unwrap();
    fs::write(dir.path().join("answer"), ANSWER).unwrap();
    fs::write(dir.path().join("standard.py"), STANDARD).unwrap();
    fs::write(dir.path().join("health"), "{\"healthy\":true}").unwrap();
    fs::copy(&tools.programs.example_agent, dir.path().join("echo")).unwrap();
    let mut host = tools.host.clone().memory(2048);
    for (name, text) in [
        ("rust", echo_boxfile()),
        ("python", boxfile(("python", "a3s_code"), &python, PYTHON, 256)),
        ("http", boxfile(("http", "oci_image"), &images.join("business"), HTTP, 64)),
        ("silent", boxfile(("silent", "oci_image"), &images.join("business"), SILENT, 64)),
        ("opencode", boxfile(("opencode", "opencode"), &images.join("business"), OPENCODE, 64)),
    ] {
        let (file, bundle) = (dir.path().join(name), dir.path().join(format!("{name}.box")));
        fs::write(&file, text).unwrap();
        bake(&file, &tools.programs.box_init, &bundle);
        host = host.disk(bundle, format!("/{name}"));
    }
    Scenario::default()
        .script(60, "rust", &format!("box=rust\n{ECHO}"))
        .script(90, "python", &format!("box=python\n{ECHO}"))
        .script(120, "sessions", SESSIONS)
        .script(60, "kinds", KINDS)
        .script(60, "others", OTHERS)
        .script(60, "page", &page::script(PAGE, "ln -s /rust echo.box"))
        .start_for_files(&host)
});

fn step(name: &str) -> &'static Step {
    let step = &STEPS.0[name];
    println!("{}\n{}", step.stdout, step.stderr);
    step
}

/// Parses the JSON file `/out/name` that a command has written.
fn left(name: &str) -> Value {
    serde_json::from_slice(&STEPS.1[Path::new(name)]).unwrap()
}

fn the_agent_in_rust_is_asked_with_all_commands() {
    insta::assert_snapshot!(step("rust").stdout, @r"
    rust
    healthy: ready to echo
    exit 0
    name         echo
    version      0.1.0
    description  says what it is told
    features     streaming
    NAME   TOOLS   DESCRIPTION
    echo   -       Says it again
    one two  three
    exit 0
    by standard input
    exit 1
    0000000   a 357 277 275   [   2   J   b  \n
    rust
    ");
    insta::assert_snapshot!(step("rust").stderr, @"
    error: the agent refused StreamGenerate: NOT_FOUND: there is no such session
      = help: `boxlaunch logs NAME` shows what the agent has written
    ");
}

fn the_agent_in_python_is_asked_with_all_commands() {
    insta::assert_snapshot!(step("python").stdout, @r"
    python
    healthy: ready to echo
      sessions: 0
    exit 0
    name         echo
    version      0.1.0
    description  says what it is told
    features     streaming
    limits       8 sessions
    NAME   TOOLS   DESCRIPTION
    echo   -       Says it again
    one two  three
    exit 0
    by standard input
    exit 1
    0000000   a 357 277 275   [   2   J   b  \n
    python
    ");
    insta::assert_snapshot!(step("python").stderr, @"
    error: the agent refused StreamGenerate: NOT_FOUND: there is no such session
      = help: `boxlaunch logs NAME` shows what the agent has written
    ");
}

fn what_the_commands_print_as_json_is_described() {
    for agent in ["rust", "python"] {
        let left = |command: &str| left(&format!("{agent}-{command}"));
        for command in ["health", "capabilities", "skills", "generate"] {
            assert_fits(&format!("agent-{command}"), &left(command));
        }
        assert_fits("failure", &left("refused"));
        assert_eq!(left("health")["status"], "healthy");
        assert_eq!(left("capabilities")["info"]["name"], "echo");
        assert_eq!(left("skills")["skills"][0]["name"], "echo");
        let text = left("generate")["text"].as_str().unwrap().trim_end().to_owned();
        assert_eq!(text, "a\u{1b}[2Jb c");
        assert_eq!(left("generate")["tool_calls"], json!([]));
        // The commands have ended all sessions that they began.
        assert!(left("health")["details"]["sessions"].as_str().is_none_or(|it| it == "0"));
        assert_eq!(left("refused")["errors"][0]["code"], "agent-call-failed");
    }
}

fn a_session_outlives_a_call_and_is_controlled_from_the_host() {
    insta::assert_snapshot!(step("sessions").stdout, @"
    talk
    review
    exit 1
    one two
    exit 1
    exit 0
    review
    exit 1
    exit 1
    SESSION   STATE    MESSAGES   NAME
    review    active   6
    review
    SESSION   STATE   MESSAGES   NAME
    ");
    insta::assert_snapshot!(step("sessions").stderr, @"
    error: the agent refused CreateSession: ALREADY_EXISTS: there is such a session
      = help: `boxlaunch logs NAME` shows what the agent has written
    error: the agent did not carry out ConfirmToolExecution: no such tool waits
      = help: `boxlaunch agent session list NAME` lists the agent's sessions
    error: the agent refused StreamGenerate: CANCELLED: the generation was cancelled
      = help: `boxlaunch logs NAME` shows what the agent has written
    error: the agent did not carry out Cancel
      = help: `boxlaunch agent session list NAME` lists the agent's sessions
    ");
}

/// Parses the lines of JSON of the file `/out/name`, and checks each against the schema's `definition`.
fn lines(name: &str, definition: &str) -> Vec<Value> {
    let text = String::from_utf8(STEPS.1[Path::new(name)].clone()).unwrap();
    println!("{text}");
    let lines: Vec<Value> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    lines.iter().for_each(|it| assert_fits(definition, it));
    lines
}

fn what_happens_in_a_session_is_streamed_as_json() {
    let pieces = lines("lines", "agent-piece");
    let kinds: Vec<_> = pieces.iter().map(|it| it["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["tool-call", "tool-result", "text", "text", "end"]);
    assert_eq!((&pieces[1]["success"], &pieces[1]["output"]), (&json!(true), &json!("ran")));
    assert_eq!(pieces[4], json!({ "kind": "end", "session": "review", "failed": false }));
    let events = lines("events", "agent-event");
    let of_review: Vec<_> = events
        .iter()
        .filter(|it| it["session"] == "review")
        .map(|it| it["event"].as_str().unwrap())
        .collect();
    assert_eq!(
        of_review,
        [
            "session-created",
            "generation-started",
            "generation-completed",
            "generation-started",
            "confirmation-required",
            "confirmation-received",
            "tool-completed",
            "generation-completed",
            "generation-started",
            "session-destroyed",
        ]
    );
    assert_fits("agent-session", &left("confirmed"));
    assert_fits("agent-sessions", &left("sessions"));
    assert_eq!(left("sessions")["sessions"][0]["messages"], 6);
}

fn a_kind_has_its_port_and_its_health_check() {
    insta::assert_snapshot!(step("kinds").stdout, @"
    opencode-kind
    healthy
      health      GET /global/health on port 4096
    opencode-kind
    rust-kind
    healthy
      health      HealthCheck of an A3S agent on port 4088
    rust-kind
    ");
}

fn the_standard_health_check_of_grpc_names_its_service_and_reads_the_status() {
    let seen = String::from_utf8_lossy(&STEPS.1[Path::new("standard")]).into_owned();
    insta::assert_snapshot!(seen, @"
    healthy
    unhealthy: port 4088: its status is NOT_SERVING
      health      the health check of gRPC for echo on port 4088
    ");
}

fn agents_without_the_interface_are_errors() {
    insta::assert_snapshot!(step("others").stdout, @"
    http
    silent
    exit 1
    exit 1
    exit 1
    exit 1
    the box runs on
    exit 1
    ");
    insta::assert_snapshot!(step("others").stderr, @r#"
    error: the agent does not speak gRPC: its answer begins with "HTTP/1.1 400 Bad Request"
      = help: these commands are for agents that serve a3s.code.agent.v1, as docs/agents.md describes it; `boxlaunch port` shows the addresses of others
    error: the agent does not speak gRPC: its answer begins with "HTTP/1.1 400 Bad Request"
      = help: these commands are for agents that serve a3s.code.agent.v1, as docs/agents.md describes it; `boxlaunch port` shows the addresses of others
    error: the agent did not answer HealthCheck within 2 s
      = help: give it more time with --timeout, or look at `boxlaunch logs`
    error: the agent did not answer ListSkills within 1 s
      = help: give it more time with --timeout, or look at `boxlaunch logs`
    error: no started box has the name http
      = help: `boxlaunch ps -a` lists the started boxes
    "#);
}

fn the_commands_of_the_page_do_what_it_shows() {
    assert_page(PAGE, step("page"));
}

tests![
    the_agent_in_rust_is_asked_with_all_commands,
    the_agent_in_python_is_asked_with_all_commands,
    what_the_commands_print_as_json_is_described,
    a_session_outlives_a_call_and_is_controlled_from_the_host,
    what_happens_in_a_session_is_streamed_as_json,
    a_kind_has_its_port_and_its_health_check,
    the_standard_health_check_of_grpc_names_its_service_and_reads_the_status,
    agents_without_the_interface_are_errors,
    the_commands_of_the_page_do_what_it_shows
];
