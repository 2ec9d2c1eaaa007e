//! Errors in `mcp`, `agents` and `hook`.

use insta::assert_snapshot;

use crate::{errors, file_errors};

/// Returns the errors of a server with these lines in its block, after the declarations `before`.
fn server(before: &str, lines: &str) -> String {
    file_errors(&format!("{before}\nmcp \"m\" {{\n    {lines}\n}}"))
}

/// Asserts that the first error of a text is `message`, and that the text has each of `parts`.
fn assert_found(found: &str, message: &str, parts: &[&str]) {
    assert!(found.starts_with(&format!("error: {message}\n")), "{found}");
    parts.iter().for_each(|part| assert!(found.contains(part), "no {part}: {found}"));
}

#[test]
fn a_server_is_either_a_program_or_a_url() {
    assert_found(
        &file_errors("mcp \"github\""),
        "the MCP server `github` has no program and no URL",
        &["Boxfile:3:1", "neither `command` nor `url`", "= help: for example"],
    );
    let both = server("", "command \"/m\"; url \"http://127.0.0.1:1\"");
    let message = "an MCP server is a program or a URL, not both";
    assert_found(&both, message, &["also a URL", "a program", "remove one of them"]);
    for (lines, message) in [
        (
            "url \"http://127.0.0.1:1\"; env A=\"1\"",
            "`env` is for a program, and this MCP server is a URL",
        ),
        (
            "url \"http://127.0.0.1:1\"; secret \"KEY\"",
            "`secret` is for a program, and this MCP server is a URL",
        ),
        (
            "command \"/m\"; header \"x-key\" secret=\"KEY\"",
            "`header` is for a URL, and this MCP server is a program",
        ),
        ("command \"\"", "`command` is empty"),
        ("command", "`command` needs a program"),
        ("command \"/m\"; stdio", "unknown declaration `stdio`"),
        ("command \"/m\"; env A=1", "`A` takes a string, not the number 1"),
        ("command \"/m\"; env", "`env` needs a variable"),
        ("command \"/m\"; env A=\"1\"; env A=\"2\"", "`A` is given twice"),
        ("url \"ftp://a.example\"", "`ftp://a.example` is not a URL that can be used"),
        ("url \"a.example\"", "`a.example` is not a URL"),
    ] {
        assert_found(&server("secret KEY", lines), message, &[]);
    }
    let found = server("", "command \"/m\"; env A launch=#true");
    assert!(found.starts_with("error: "), "{found}");
    assert_found(
        &file_errors("mcp \"A\" { command \"/m\"; }"),
        "`A` is not a valid name",
        &["write \"a\""],
    );
    assert_snapshot!(file_errors("mcp \"m\" { command \"/a\"; }\nmcp \"m\" { command \"/b\"; }"), @r#"
    error: the mcp `m` is declared twice
      --> Boxfile:4:5
       |
     3 | mcp "m" { command "/a"; }
       |     --- declared first
     4 | mcp "m" { command "/b"; }
       |     ^^^ declared again
       |
       = help: give one of them another name, or remove it
    "#);
    let many: String = (0..65).map(|it| format!("mcp m{it} {{ command \"/m\"; }}\n")).collect();
    assert_found(&file_errors(&many), "a box has at most 64 MCP servers", &["one too many"]);
}

#[test]
fn a_server_that_the_network_does_not_reach() {
    assert_snapshot!(server("network none", "url \"https://mcp.example.com/v1\""), @r#"
    error: the box cannot reach `mcp.example.com:443`
      --> Boxfile:5:9
       |
     3 | network none
       |         ---- the box has no network
    ...
     5 |     url "https://mcp.example.com/v1"
       |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ no network reaches it
       |
       = help: write `allow "mcp.example.com"` in `network "filtered" { … }`
    "#);
    let filtered = "network filtered { allow \"mcp.example.com\"; deny \"bad.example.com\" \"10.0.0.8\"; allow \"*.example.com\" \"10.0.0.0/8\"; }";
    let cannot = |host: &str| format!("the box cannot reach `{host}`");
    for (network, url, host, label, help) in [
        ("", "https://a.example", "a.example:443", "no network reaches it", "allow \"a.example\"`"),
        (
            "service s to=\"https://s.example\"\nnetwork cap-only",
            "https://s.example",
            "s.example:443",
            "the box reaches its services alone",
            "allow \"s.example\"`",
        ),
        (
            filtered,
            "https://a.example",
            "a.example:443",
            "it is not allowed",
            "allow \"a.example\"`",
        ),
        (
            filtered,
            "https://mcp.example.com:8443",
            "mcp.example.com:8443",
            "it is allowed, but not its port 8443",
            "allow \"mcp.example.com\" port=8443`",
        ),
        (
            filtered,
            "https://bad.example.com",
            "bad.example.com:443",
            "the rules deny bad.example.com",
            "allow \"bad.example.com\"`",
        ),
        (filtered, "https://10.0.0.8", "10.0.0.8:443", "the rules deny 10.0.0.8", "allow"),
    ] {
        let found = server(network, &format!("url \"{url}\""));
        // Addresses of private networks have a warning, too.
        let found = found.split("\n\n").find(|it| it.contains("cannot reach")).unwrap();
        assert_found(found, &cannot(host), &[label, help]);
    }
    assert_found(
        &server("", "url \"http://a.example\""),
        "`http://a.example` is not encrypted",
        &["write `https://`: `http://` is for a server in the box"],
    );
}

#[test]
fn a_secret_that_the_agent_does_not_get() {
    let business = "business { image \"oci:i\"; }\n";
    for (before, lines, message, part) in [
        (
            "",
            "command \"/m\"; secret \"KEY\"",
            "the secret `KEY` is not declared",
            "declare it at the top level: `secret \"KEY\"`",
        ),
        (
            "",
            "url \"http://127.0.0.1:1\"; header \"x-key\" secret=\"KEY\"",
            "the secret `KEY` is not declared",
            "named here",
        ),
        (
            "secret \"KEY\" component=\"business\"",
            "command \"/m\"; secret \"KEY\"",
            "the agent does not get the secret `KEY`",
            "for the business application alone",
        ),
        (
            "secret \"KEY\" path=\"/run/key\"",
            "url \"http://127.0.0.1:1\"; header \"x-key\" secret=\"KEY\"",
            "the secret `KEY` is a file, and a header needs a variable",
            "its file",
        ),
        (
            "secret \"KEY\"",
            "command \"/m\"; env KEY=\"/a/b\"; secret \"KEY\"",
            "`KEY` is a secret and a plain value at once",
            "a secret here",
        ),
    ] {
        assert_found(&server(&format!("{business}{before}"), lines), message, &[part]);
    }
}

#[test]
fn a_secret_as_a_plain_value_is_not_shown() {
    let token = "sk-ant-api03-0123456789abcdef";
    for lines in [
        format!("mcp m {{ command \"/m\"; env API_KEY=\"{token}\"; }}"),
        format!("mcp m {{ command \"/m\" \"--token\" \"{token}\"; }}"),
        format!("hook session-end \"/h\" \"--token={token}\""),
    ] {
        let found = file_errors(&lines);
        assert!(found.contains("looks like"), "{lines}: {found}");
        assert!(!found.contains(token), "{found}");
        assert!(found.contains("declare it by name alone"), "{found}");
    }
}

#[test]
fn a_hook_has_an_event_and_a_program() {
    for (hook, message) in [
        ("hook", "`hook` needs an event"),
        ("hook \"before-comand\" \"/h\"", "`hook` cannot be `before-comand`"),
        ("hook \"session-end\"", "the hook `session-end` has no program"),
        ("hook \"session-end\" \"\"", "the hook `session-end` has no program"),
        (
            "hook session-end \"/a\"\nhook session-end \"/b\"",
            "the hook `session-end` is declared twice",
        ),
    ] {
        assert_found(&file_errors(hook), message, &["= help: "]);
    }
}

#[test]
fn a_directory_of_definitions_has_a_name_and_a_place_of_its_own() {
    assert_found(&file_errors("agents"), "`agents` needs `dir`", &[]);
    assert_found(
        &file_errors("agents dir=\".\""),
        "`.` cannot be put into the box as a whole",
        &[],
    );
    let found = file_errors("agents dir=\"../agents\"");
    assert!(found.starts_with("error: a file of the box"), "{found}");
    assert_snapshot!(file_errors("agents dir=\"agents\"\nshare \"s\" guest=\"/a3s/agents\""), @r#"
    error: `/a3s/agents` is used twice
      --> Boxfile:3:12
       |
     3 | agents dir="agents"
       |            ^^^^^^^^ the place of this `agents`
     4 | share "s" guest="/a3s/agents"
       |                 ------------- the place of this `share`
       |
       = help: give one of them another path, or remove it
    "#);
    let file = "box \"b\"\nagent {\n    image \"oci:i\"\n    file \"f\" to=\"/a3s/agents\"\n}\nagents dir=\"agents\"\n";
    assert_found(&errors(file), "`/a3s/agents` is used twice", &["the place of this `file`"]);
    let config = errors(&file.replace("/a3s/agents", "/a3s/config/agent.json"));
    assert_found(&config, "no file can be at `/a3s/config/agent.json`", &[]);
}
