//! `boxlaunch mcp` with a client of a few lines of shell, whose messages and answers are checked with the types of the official package,
//! and `boxlaunch ls`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::{Value, json};
use testbed::prerequisites::mcp_types;

use crate::scenario::{Scenario, Step, UNHURRIED, bake, hello_checkout, tools};
use crate::schema::assert_fits;

/// Starts the box and the server. `tell` sends a message, `ask` also waits for the answer, and `call` calls a tool.
const START: &str = r#"
boxlaunch run -q -d --name mcp /mcp || exit
mkfifo /tmp/in; touch /out/answers; boxlaunch mcp mcp </tmp/in >/out/answers 2>/out/errors & server=$!
exec 3>/tmp/in
tell() { printf '%s\n' "$1" >>/out/requests; printf '%s\n' "$1" >&3; }
ask() {
    tell "{\"jsonrpc\":\"2.0\",\"id\":$1,\"method\":\"$2\",\"params\":$3}"
    until grep -q "\"id\":$1," /out/answers; do sleep 0.1; done
}
call() { ask $1 tools/call "{\"name\":\"$2\",\"arguments\":$3}"; }
ask 1 initialize '{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}'
tell '{"jsonrpc":"2.0","method":"notifications/initialized"}'
ask 2 tools/list '{}'
"#;
/// Calls each tool, also with errors.
const CALLS: &str = r#"
call 3 exec '{"command":"echo out; echo err >&2; exit 3"}'
call 4 exec '{"command":"mkdir -p dir/sub; echo hello >dir/file; ln -s file dir/link; pwd","workdir":"/tmp"}'
call 5 write_file '{"path":"/tmp/dir/written","content":"first\nsecond\n"}'
call 6 read_file '{"path":"/tmp/dir/written"}'
call 7 list_directory '{"path":"/tmp/dir"}'
call 8 read_file '{"path":"/none"}'
call 12 exec '{"command":"sleep 60","timeout":0.2}'
call 13 logs '{}'
call 14 reboot '{}'
call 15 exec '{"command":["/agent/none"],"component":"agent"}'
call 16 read_file '{"path":"/tmp/dir/link","encoding":"base64"}'
boxlaunch ls mcp:/tmp/dir; boxlaunch ls --json mcp:/tmp/dir >/out/listing
boxlaunch ls mcp:/none; echo "exit $?"
"#;
/// A time limit of less than a second, and variables that are on no command line.
const COMMANDS: &str = r#"
boxlaunch exec --timeout 300ms mcp sleep 60 2>/dev/null; echo "exit $?"
echo A=piped | boxlaunch exec --env-file - mcp -- sh -c 'echo $A'
"#;
/// Cancels a command that would run forever, while another one runs.
const CANCELLATION: &str = r#"
tell '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"exec","arguments":{"command":["tail","-f","/dev/null"]}}}'
call 10 exec '{"command":"until pidof tail >/dev/null; do sleep 0.1; done; echo started"}'
tell '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9,"reason":"enough"}}'
call 11 exec '{"command":"while pidof tail >/dev/null; do sleep 0.1; done; echo gone"}'
"#;
/// Stops the box, and then the server.
const END: &str = r#"
boxlaunch stop -t 0 mcp >/dev/null; call 17 exec '{"command":"true"}'
exec 3>&-; wait $server; echo "exit $?"
boxlaunch rm -f mcp >/dev/null; boxlaunch mcp nobody </dev/null; echo "exit $?"
"#;

/// The step, and the files that it left in `/out`.
type Ran = (Step, BTreeMap<PathBuf, Vec<u8>>);

static RAN: LazyLock<Ran> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let (boxfile, bundle) = (dir.path().join("Boxfile"), dir.path().join("mcp.box"));
    fs::write(&boxfile, hello_checkout(dir.path())).unwrap();
    bake(&boxfile, &tools.programs.box_init, &bundle);
    let script = [START, CALLS, COMMANDS, CANCELLATION, END].concat();
    let (steps, files) = Scenario::default()
        .script(UNHURRIED, "mcp", &script)
        .start_for_files(&tools.host.clone().disk(bundle, "/mcp"));
    println!("{:?}", steps["mcp"]);
    (steps["mcp"].clone(), files)
});

fn left(name: &str) -> String {
    String::from_utf8(RAN.1[Path::new(name)].clone()).unwrap()
}

/// Returns the answers by their IDs.
fn answers() -> BTreeMap<u64, Value> {
    let answers = left("answers");
    println!("{answers}");
    let answer = |line: &str| {
        let answer: Value = serde_json::from_str(line).unwrap();
        (answer["id"].as_u64().unwrap(), answer)
    };
    answers.lines().map(answer).collect()
}

fn a_client_works_in_a_box() {
    let answers = answers();
    let result = |id: u64| &answers[&id]["result"];
    assert_eq!(result(1)["protocolVersion"], "2025-06-18");
    let names: Vec<_> =
        result(2)["tools"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["exec", "read_file", "write_file", "list_directory", "logs"]);
    let ran = &result(3)["structuredContent"];
    let expected = json!({
        "stdout": "out\n", "stderr": "err\n", "status": 3, "truncated": false, "timed_out": false,
        "oom_killed": false,
    });
    assert_eq!((ran, &result(3)["isError"]), (&expected, &json!(false)));
    assert_eq!(result(4)["structuredContent"]["stdout"], "/tmp\n");
    assert_eq!(result(5)["isError"], false);
    assert_eq!(result(6)["content"], json!([{ "type": "text", "text": "first\nsecond\n" }]));
    let entries = result(7)["structuredContent"]["entries"].as_array().unwrap();
    let listed: Vec<_> = entries.iter().map(|it| [&it["name"], &it["type"]]).collect();
    let expected =
        [["file", "file"], ["link", "symlink"], ["sub", "directory"], ["written", "file"]];
    assert_eq!(listed, expected);
    assert_eq!(result(13)["isError"], false);
    assert_eq!(result(15)["structuredContent"]["status"], 127);
    assert_eq!(result(16)["content"][0]["text"], "aGVsbG8K");
}

fn errors_are_results_that_say_so() {
    let answers = answers();
    for (id, part) in [(8, "/none"), (17, "not running")] {
        let result = &answers[&id]["result"];
        assert_eq!(result["isError"], true, "{result}");
        assert!(result["content"][0]["text"].as_str().unwrap().contains(part), "{result}");
    }
    let late = &answers[&12]["result"];
    assert_eq!(
        (&late["isError"], &late["structuredContent"]["timed_out"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(answers[&14]["error"]["code"], -32_602);
}

fn a_cancelled_command_is_killed_and_not_answered() {
    let answers = answers();
    assert_eq!(answers[&10]["result"]["structuredContent"]["stdout"], "started\n");
    assert_eq!(answers[&11]["result"]["structuredContent"]["stdout"], "gone\n");
    assert_eq!(answers.get(&9), None);
}

fn the_messages_are_those_of_the_official_types() {
    let types = mcp_types(&tools().workspace, &mut |line| println!("{line}")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| {
        let path = dir.path().join(name);
        fs::write(&path, left(name)).unwrap();
        path
    };
    types.check(&at("requests"), &at("answers")).unwrap();
}

fn the_server_ends_with_its_input_and_prints_nothing_else() {
    insta::assert_snapshot!(RAN.0.stdout, @"
    mcp
    file
    link -> file
    sub/
    written
    exit 1
    exit 124
    piped
    exit 0
    exit 1
    ");
    insta::assert_snapshot!(RAN.0.stderr, @"
    error: cannot list the directory: in the box: /none: No such file or directory (os error 2)
    error: no started box has the name nobody
      = help: `boxlaunch ps -a` lists the started boxes
    ");
    assert_eq!(left("errors"), "");
    let listing: Value = serde_json::from_str(&left("listing")).unwrap();
    assert_fits("listing", &listing);
    assert_eq!(listing["entries"][1]["target"], "file");
}

tests![
    a_client_works_in_a_box,
    errors_are_results_that_say_so,
    a_cancelled_command_is_killed_and_not_answered,
    the_messages_are_those_of_the_official_types,
    the_server_ends_with_its_input_and_prints_nothing_else
];
