//! Tests of `mcp`, `agents` and `hook`: the file that the agent reads, and what is checked when the box is built.

use serde_json::json;
use testkit::images::{Config, Image, Layer};

use crate::checkout::{BOXFILE, Checkout};

const DECLARED: &str = r#"
mcp "github" {
    command "github-mcp" "--stdio"
    env LOG_LEVEL="info"
    secret "CERT" "GITHUB_TOKEN"
}
mcp "remote" {
    url "https://mcp.example.com/v1"
    header "authorization" secret="GITHUB_TOKEN" prefix="Bearer "
}
agents dir="agents"
hook "before-command" "/opt/guard" "--strict"
secret "GITHUB_TOKEN"
secret "CERT" path="/run/secrets/cert"
network "filtered" { allow "mcp.example.com"; }
"#;
const REVIEWER: &str =
    "---\nname: reviewer\ndescription: Reviews a change.\ntools: Read, Grep\n---\nReview it.\n";

/// Makes a checkout with these declarations, whose agent's image has two programs.
fn with(declared: &str) -> Checkout {
    let checkout = Checkout::new();
    let layer = Layer::new()
        .file("/agent", 0o755, "a")
        .file("/usr/local/bin/github-mcp", 0o755, "m")
        .file("/opt/guard", 0o755, "g")
        .file("/opt/notes", 0o644, "n");
    let entrypoint = vec!["/agent".to_owned()];
    let image = Image::new(Config { entrypoint, ..Config::default() }).with(layer.to_tar());
    checkout.image("agent", &image);
    checkout.write("agents/reviewer.md", REVIEWER);
    checkout.write("agents/notes.txt", "carried along");
    checkout.write("Boxfile", format!("{BOXFILE}{declared}"));
    checkout
}

#[test]
fn the_agent_reads_what_is_declared() {
    let checkout = with(DECLARED);
    let built = checkout.built(&[]);
    let cat = |path: &str| checkout.result(&["cat", "test.box", path]);
    let expected = concat!(
        r#"{"version":1,"mcpServers":{"#,
        r#""github":{"command":"github-mcp","args":["--stdio"],"#,
        r#""env":{"CERT_FILE":"/run/secrets/cert","GITHUB_TOKEN":"${GITHUB_TOKEN}","LOG_LEVEL":"info"}},"#,
        r#""remote":{"type":"http","url":"https://mcp.example.com/v1","#,
        r#""headers":{"authorization":"Bearer ${GITHUB_TOKEN}"}}},"#,
        r#""agents":[{"name":"reviewer","description":"Reviews a change.","#,
        r#""path":"/a3s/agents/reviewer.md","tools":["Read","Grep"]}],"#,
        r#""hooks":[{"event":"before-command","argv":["/opt/guard","--strict"]}]}"#,
        "\n"
    );
    assert_eq!(cat("/boxbuild/system/agent/a3s/config/agent.json"), expected);
    assert_eq!(cat("/roots/agent/a3s/agents/reviewer.md"), REVIEWER);
    assert_eq!(cat("/roots/agent/a3s/agents/notes.txt"), "carried along");
    let entries = checkout.run(&["ls", "test.box", "--json"]).json();
    let entry = |path: &str| {
        let all = entries["entries"].as_array().unwrap();
        all.iter().find(|it| it["path"] == path).unwrap_or_else(|| panic!("no {path}")).clone()
    };
    let definition = entry("/roots/agent/a3s/agents/reviewer.md");
    assert_eq!((&definition["mode"], &definition["uid"]), (&json!("0644"), &json!(0)));
    assert_eq!(definition["origin"]["path"], "agents");
    assert_eq!(entry("/boxbuild/system/agent/a3s/config/agent.json")["mode"], "0644");
    assert!(checkout.read("Boxfile.lock").contains("source = \"agents\""));
    let shown = checkout.result(&["inspect", "test.box"]);
    for line in [
        "the agent runs github-mcp --stdio with $CERT and $GITHUB_TOKEN",
        "the agent sends requests to https://mcp.example.com/v1 with authorization: Bearer $GITHUB_TOKEN",
        "the agent runs /opt/guard --strict",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    checkout.result(&["verify", "test.box"]);
    assert_eq!(checkout.built(&[])["cached"], true);
    checkout.write("agents/reviewer.md", REVIEWER.replace("a change", "it"));
    let changed = checkout.built(&[]);
    assert_ne!(changed["box"], built["box"]);
}

#[test]
fn the_plan_has_the_configuration_and_the_agent_its_path() {
    let plan = with(DECLARED).built_plan();
    let env = plan["agent"]["env"].as_array().unwrap();
    assert!(env.contains(&json!("A3S_AGENT_CONFIG=/a3s/config/agent.json")), "{env:?}");
    assert_eq!(plan["agents"][0]["name"], "reviewer");
    assert_eq!(plan["mcp"][0]["argv"], json!(["github-mcp", "--stdio"]));
    assert_eq!(plan["hooks"][0]["event"], "before-command");
    let plan = with("").built_plan();
    assert!(!plan["agent"]["env"].to_string().contains("A3S_AGENT_CONFIG"));
    assert_eq!(
        (&plan["mcp"], &plan["agents"], &plan["hooks"]),
        (&json!(null), &json!(null), &json!(null))
    );
}

#[test]
fn a_difference_shows_another_server() {
    let checkout = with("");
    checkout.built(&["--output", "old.box"]);
    checkout.write("Boxfile", format!("{BOXFILE}mcp \"m\" {{ command \"github-mcp\"; }}\n"));
    checkout.built(&["--output", "new.box"]);
    let ran = checkout.run(&["diff", "old.box", "new.box"]);
    assert!(ran.result.contains("mcp m"), "{}", ran.result);
}

#[test]
fn a_program_that_the_image_lacks() {
    let refused = |declared: &str| {
        let checkout = with(declared);
        checkout.fails(&["build"])
    };
    insta::assert_snapshot!(refused("mcp \"m\" { command \"github-mpc\"; }\nhook \"session-end\" \"/opt/gard\"\n"), @r#"
    error: the MCP server `m` runs "github-mpc", which is in no directory of its PATH: /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
       --> Boxfile:13:19
        |
     13 | mcp "m" { command "github-mpc"; }
        |                   ^^^^^^^^^^^^ named here
        |
        = help: did you mean "github-mcp"? Or add the program to the image

    error: the hook `session-end` runs "/opt/gard", which is not in the image of `agent`
       --> Boxfile:14:20
        |
     14 | hook "session-end" "/opt/gard"
        |                    ^^^^^^^^^^^ named here
        |
        = help: did you mean "/opt/guard"? Or add the program to the image
    "#);
    let found = refused("hook \"after-tool\" \"/opt/notes\"\n");
    assert!(found.contains("which is not executable"), "{found}");
}

#[test]
fn what_the_boxfile_alone_shows_is_refused_by_a_check() {
    for (declared, message) in [
        (
            DECLARED.replace("allow \"mcp.example.com\"", "allow \"example.com\""),
            "error: the box cannot reach `mcp.example.com:443`",
        ),
        (
            DECLARED.replace("secret \"CERT\" path", "secret \"OTHER\" path"),
            "error: the secret `CERT` is not declared",
        ),
        (
            format!("{DECLARED}hook \"before-command\" \"/opt/guard\"\n"),
            "error: the hook `before-command` is declared twice",
        ),
    ] {
        let checkout = with(&declared);
        let output = checkout.fails(&["check"]);
        assert!(output.contains(message), "{output}");
        assert!(checkout.fails(&["build"]).contains(message));
    }
}

#[test]
fn a_definition_that_is_wrong() {
    let checkout = with("agents dir=\"agents\"\n");
    checkout.write("agents/reviewer.md", "---\nname: tester\n---\n");
    let output = checkout.fails(&["check"]);
    assert_eq!(checkout.fails(&["build"]), output);
    insta::assert_snapshot!(output, @r"
    error: the frontmatter has no `description`
      --> agents/reviewer.md:1:1
       |
     1 | ---
       | ^^^ begins here
       |
       = help: write `description: …`: what the agent does, and when to use it

    error: the agent's name `tester` differs from its file's, `reviewer`
      --> agents/reviewer.md:2:7
       |
     2 | name: tester
       |       ^^^^^^ not the file's name
       |
       = help: write `name: reviewer`, or rename the file to `tester.md`
    ");
    checkout.write("agents/reviewer.md", REVIEWER.replace("Grep", "Gerp"));
    let notes = checkout.notes(&["check"]);
    assert!(notes.contains("warning: `Gerp` is probably not the name of a tool"), "{notes}");
}

#[test]
fn a_directory_without_a_definition() {
    let checkout = with("agents dir=\"none\"\n");
    checkout.write("none/notes.txt", "no definition");
    let output = checkout.fails(&["check"]);
    assert_eq!(checkout.fails(&["build"]), output);
    insta::assert_snapshot!(output, @r#"
    error: the agent definitions in none cannot be read: none has no agent definition, which is a file NAME.md
       --> Boxfile:13:12
        |
     13 | agents dir="none"
        |            ^^^^^^ named here
        |
        = help: name a directory of the checkout with files NAME.md in it: docs/agents.md
    "#);
    checkout.write("none/My Agent.md", REVIEWER);
    let found = checkout.fails(&["check"]);
    assert!(found.contains("the file none/My Agent.md cannot name an agent"), "{found}");
    checkout.edit("Boxfile", "\"none\"", "\"agents/reviewer.md\"");
    let found = checkout.fails(&["check"]);
    assert!(found.contains("agents/reviewer.md is not a directory"), "{found}");
}
