//! The language in TOML: the same models, and the messages for mistakes.

use boxfile_spec::Reach;
use diagnostics::{Source, Sources};
use insta::assert_snapshot;

fn canonical(name: &str, text: &str) -> String {
    let source = Source::new(name, text);
    let reach = Reach { up: Some(1), reason: String::new() };
    let document = boxfile_spec::read_within(source.clone(), None, &reach, |path| {
        assert_eq!(path, "../base.toml");
        Ok(Source::new("../base.toml", "platform = \"linux/amd64\"\nvm.cpus = 4\n"))
    });
    let sources = document.sources.clone();
    document
        .into_result()
        .map_or_else(|errors| panic!("{}", errors.render(&sources)), |boxfile| boxfile.canonical())
}

/// Reads a Boxfile in TOML that must be invalid, and returns its rendered errors.
fn errors(text: &str) -> String {
    let source = Source::new("Boxfile.toml", text);
    let document = boxfile_spec::read(source.clone(), None, |_| Err("no such file".to_owned()));
    let errors = document.into_result().expect_err("the file is wrong");
    errors.render(&Sources::single(source))
}

/// As [`errors`], for lines after a valid box and agent.
fn file_errors(lines: &str) -> String {
    errors(&format!("box = \"b\"\nagent.image = \"oci:i\"\n{lines}\n"))
}

/// As [`errors`], for lines in the table of an otherwise valid agent.
fn agent_errors(lines: &str) -> String {
    errors(&format!("box = \"b\"\n[agent]\nimage = \"oci:i\"\n{lines}\n"))
}

const KDL: &str = r#"
box "rich"
extends "../base.toml"
agent kind="a3s_code" {
    image "oci:images/agent:v1"
    entrypoint "/agent/bin/agent" "--serve"
    args "--port" "4088"
    env LOG_LEVEL="info" LANG="C.UTF-8"
    plain-env CSRF_TOKEN="off"
    env-file "a.env" "b.env"
    file "conf/app.yaml" to="/etc/app/" mode="600" owner="app:app"
    file "static" to="/srv/www"
    workdir "/work"
    user "app:app"
    port 4089
    health "exec" "/bin/check" "--fast"
    tools "bash" "grep"
    namespaces net=#true hostname="my-host"
    limits memory="512MiB" pids=50 cpu-weight=30
    rlimits nofile=1024 address-space="2GiB" cpu="3s"
}
business {
    image "oci:images/business"
    autostart #true restart="always"
}
skill "greet" path="skills/greet"
skill "audit" path="skills/audit" mode="mount"
skills dir="more-skills"
vm memory="4GiB"
layout "merged"
conflict "/etc/motd" policy="prefer-agent"
conflict "/etc/**" policy="drop"
conflict "/etc/passwd" policy="merge"
share "workspace" guest="/a3s/workspace" host="work" access="rw"
scratch "cache" guest="/var/cache" size="2GiB"
network "filtered" {
    allow "api.example.com" "*.example.org"
    allow "db.example.com" port=5432
    deny "uploads.example.com"
    deny "api.example.com" "a.example.org" port=80
    limits connections=64 rate="10MiB" names=100
}
secret "API_KEY" path="/run/secrets/api-key"
task "refactor-1" type="code" description="Split the parser" timeout="600s" input="{\"a\": [1]}" {
    tags "parser" "cleanup"
    verify "npm" "test" component="business" timeout="5m"
}
logs atif=#false
service "model" to="https://model.example.com"
cap "http" timeout="10s"
cap "nostr" {
    relays "wss://relay.example.com"
}
cap "payments"
cap "ws" max-connections=4
sandbox "ci" fallback="warn" {
    writable "/workspace"
    deny-read "/root"
    forbid "git push *"
}
budget total="700ms" kernel="400ms"
kernel "vendor/libkrunfw.so.5"
profile "ci" { vm cpus=1; }
"#;

const TOML: &str = r#"
box = "rich"
extends = "../base.toml"
skills = { dir = "more-skills" }
vm.memory = "4GiB"
layout = "merged"
logs = { atif = false }
budget = { total = "700ms", kernel = "400ms" }
kernel = "vendor/libkrunfw.so.5"

[agent]
kind = "a3s_code"
image = "oci:images/agent:v1"
entrypoint = ["/agent/bin/agent", "--serve"]
args = [
    "--port", # the default, in fact
    '4088',
]
env-file = ["a.env", "b.env"]
workdir = "/work"
user = "app:app"
port = 4_089
health = { kind = "exec", command = ["/bin/check", "--fast"] }
tools = ["bash", "grep"]
plain-env.CSRF_TOKEN = "off"

[agent.file]
static = { to = "/srv/www", owner = "0:0" }
"./conf/app.yaml" = { to = "/etc/app/app.yaml", mode = "0600", owner = "app:app" }

[agent.env]
LOG_LEVEL = "info"
LANG = """C.UTF-8"""

[agent.namespaces]
net = true
hostname = "my-host"

[agent.limits]
memory = "512MiB"
pids = 50
cpu-weight = 30

[agent.rlimits]
nofile = 0x400
address-space = "2GiB"
cpu = "3s"

[business]
image = "oci:images/business"
autostart = { value = true, restart = "always" }

[skill]
greet = { path = "skills/greet" }
audit.path = "skills/audit"
audit.mode = "mount"

[conflict]
"/etc/motd".policy = "prefer-agent"
"/etc/**".policy = "drop"
'/etc/passwd' = { policy = "merge" }

[share.workspace]
guest = "/a3s/workspace"
host = "work"
access = "rw"

[scratch.cache]
guest = "/var/cache"
size = "2GiB"

[network]
mode = "filtered"
allow = ["api.example.com", "*.example.org", { peer = "db.example.com", port = 5432 }]
deny = [{ peer = "api.example.com", peers = "a.example.org", port = 80 }, "uploads.example.com"]
limits = { connections = 64, rate = "10MiB", names = 100 }

[secret.API_KEY]
path = "/run/secrets/api-key"

[task]
id = "refactor-1"
type = "code"
description = "Split the parser"
timeout = "600s"
input = '{"a": [1]}'
tags = ["parser", "cleanup"]
verify = { program = "npm", arguments = ["test"], component = "business", timeout = "5m" }

[service.model]
to = "https://model.example.com"

[cap.http]
timeout = "10s"

[cap.nostr]
relays = ["wss://relay.example.com"]

[cap.payments]

[cap.ws]
max-connections = 4

[sandbox]
preset = "ci"
fallback = "warn"
writable = ["/workspace"]
deny-read = "/root"
forbid = ["git push *"]

[profile.ci.vm]
cpus = 1
"#;

#[test]
fn a_whole_box_is_the_same_in_both_syntaxes() {
    let kdl = canonical("Boxfile", KDL);
    assert_eq!(kdl, canonical("Boxfile.toml", TOML));
    for part in ["\"rich\"", "\"more-skills\"", "/etc/**", "git push *", "C.UTF-8", "\"cpus\":4"] {
        assert!(kdl.contains(part), "{part} in {kdl}");
    }
}

#[test]
fn variables_that_are_given_at_launch() {
    let kdl = "box b\nagent {\nimage oci:i\nenv A=x\nenv URL\nplain-env launch y launch=#true\n}\n";
    for toml in [
        "box = 'b'\n[agent]\nimage = 'oci:i'\nenv = { A = 'x', URL = { launch = true } }\n\
         plain-env.launch = { default = 'y', launch = true }\n",
        "box = 'b'\n[agent]\nimage = 'oci:i'\n[agent.env]\nA = 'x'\n[agent.env.URL]\nlaunch = true\n\
         [agent.plain-env.launch]\nlaunch = true\ndefault = 'y'\n",
    ] {
        assert_eq!(canonical("Boxfile.toml", toml), canonical("Boxfile", kdl));
    }
    assert_snapshot!(
        agent_errors("env.A = {}\nenv.B = { default = 'x' }\nenv.C = { launch = true, value = 'x' }"),
        @r#"
    error: `env` takes variables
      --> Boxfile.toml:4:5
       |
     4 | env.A = {}
       |     ^ no variable
       |
       = help: write `env = { A = "value" }`

    error: it is unclear whether the value of `B` is fixed or a default
      --> Boxfile.toml:5:21
       |
     5 | env.B = { default = 'x' }
       |                     ^^^ its value
       |
       = help: write `env = { B = "x" }` for a value of every start, or `env = { B = { launch = true, default = "x" } }` for one that `boxlaunch run -e` may replace

    error: `value` stands beside the variable `C`
      --> Boxfile.toml:6:26
       |
     6 | env.C = { launch = true, value = 'x' }
       |                          ^^^^^ no property of a variable
       |
       = help: a variable has `launch` and `default`
    "#
    );
    assert_snapshot!(agent_errors("env = 'URL'"), @r#"
    error: `env` takes variables
      --> Boxfile.toml:4:7
       |
     4 | env = 'URL'
       |       ^^^^^ no variable
       |
       = help: write `env = { URL = "value" }`
    "#);
}

#[test]
fn line_ends_and_a_byte_order_mark_change_nothing() {
    let plain = canonical("Boxfile.toml", TOML);
    let changed = format!("\u{feff}{}", TOML.replace('\n', "\r\n"));
    assert_eq!(plain, canonical("Boxfile.toml", &changed));
}

#[test]
fn patterns_keep_the_order_of_the_file() {
    let swapped = TOML.replace("\"/etc/motd\".policy = \"prefer-agent\"\n", "");
    let swapped = swapped
        .replace("'/etc/passwd' =", "\"/etc/motd\".policy = \"prefer-agent\"\n'/etc/passwd' =");
    assert_ne!(canonical("Boxfile.toml", TOML), canonical("Boxfile.toml", &swapped));
}

#[test]
fn texts_without_their_quotes() {
    assert_snapshot!(file_errors("layout = split # the default"), @r#"
    error: `split` must be in quotes
      --> Boxfile.toml:3:10
       |
     3 | layout = split # the default
       |          ^^^^^ a bare word
       |
       = help: write `"split"`
    "#);
    assert_snapshot!(file_errors("layout = \"split"), @r#"
    error: this string is never closed
      --> Boxfile.toml:3:10
       |
     3 | layout = "split
       |          ^^^^^^ no closing quote on this line
       |
       = help: close it with `"`
    "#);
    assert_snapshot!(file_errors("layout = split\""), @r#"
    error: `split"` must be in quotes
      --> Boxfile.toml:3:10
       |
     3 | layout = split"
       |          ^^^^^^ a bare word
       |
       = help: write `"split"`
    "#);
    assert_snapshot!(file_errors("layout = “split”"), @r#"
    error: typographic quotes cannot enclose a string
      --> Boxfile.toml:3:10
       |
     3 | layout = “split”
       |          ^^^^^^^ not straight quotes
       |
       = help: write `"split"`
    "#);
    assert_snapshot!(agent_errors("entrypoint = [/bin/agent, 'it''s', \"C:\\Users\"]"), @r#"
    error: `/bin/agent` must be in quotes
      --> Boxfile.toml:4:15
       |
     4 | entrypoint = [/bin/agent, 'it''s', "C:\Users"]
       |               ^^^^^^^^^^ a bare word
       |
       = help: write `"/bin/agent"`

    error: there is no `,` before this
      --> Boxfile.toml:4:31
       |
     4 | entrypoint = [/bin/agent, 'it''s', "C:\Users"]
       |                               ^ expected `,` before this
       |
       = help: put a `,` between two strings; in a string in `"…"`, a quote is written `\"`

    error: this string cannot be read
      --> Boxfile.toml:4:36
       |
     4 | entrypoint = [/bin/agent, 'it''s', "C:\Users"]
       |                                    ^^^^^^^^^^ malformed
       |
       = help: a backslash begins an escape such as `\n`; write `\\` for a backslash, or the string in `'…'`, where nothing is an escape
    "#);
    assert_snapshot!(file_errors("layout = \"\"\"\nsplit"), @r#"
    error: this string is never closed
      --> Boxfile.toml:3:10
       |
     3 | layout = """
       |          ^^^ opened here
       |
       = help: close it with `"""`
    "#);
}

#[test]
fn lines_in_another_language() {
    assert_snapshot!(file_errors("layout \"merged\""), @r#"
    error: the `=` after `layout` is missing
      --> Boxfile.toml:3:1
       |
     3 | layout "merged"
       | ^^^^^^ a name without `=`
       |
       = help: write `layout = "merged"`
    "#);
    assert_snapshot!(file_errors("layout: merged"), @r#"
    error: a value is given with `=`, not with `:`
      --> Boxfile.toml:3:7
       |
     3 | layout: merged
       |       ^ not in TOML
       |
       = help: write `layout = "merged"`
    "#);
    assert_snapshot!(file_errors("vm {\n    cpus 2\n}\nlayout = \"splt\""), @r#"
    error: this is not how a table begins in TOML
      --> Boxfile.toml:3:1
       |
     3 | vm {
       | ^^ a block as in KDL
       |
       = help: write `[vm]` above its lines, and no `}` below them

    error: the `=` after `cpus` is missing
      --> Boxfile.toml:4:5
       |
     4 |     cpus 2
       |     ^^^^ a name without `=`
       |
       = help: write `cpus = 2`

    error: this `}` closes nothing
      --> Boxfile.toml:5:1
       |
     5 | }
       | ^ no open bracket
       |
       = help: remove it

    error: `layout` cannot be `splt`
      --> Boxfile.toml:6:10
       |
     6 | layout = "splt"
       |          ^^^^^^ no such choice
       |
       = help: did you mean "split"?
    "#);
    assert_snapshot!(file_errors("skill \"greet\" path=\"skills/greet\""), @r#"
    error: the `=` after `skill` is missing
      --> Boxfile.toml:3:1
       |
     3 | skill "greet" path="skills/greet"
       | ^^^^^ a name without `=`
       |
       = help: for example
             [skill.greet]
             path = "skills/greet"
    "#);
    assert_snapshot!(file_errors("logs = { atif = #false }"), @"
    error: this table is never closed
      --> Boxfile.toml:3:8
       |
     3 | logs = { atif = #false }
       |        ^ opened here
       |
       = help: close it with `}`, and put a `,` between two of its entries; `#` begins a comment
    ");
    assert_snapshot!(agent_errors("namespaces.net = True"), @r#"
    error: `True` is neither a string nor a boolean
      --> Boxfile.toml:4:18
       |
     4 | namespaces.net = True
       |                  ^^^^ a bare word
       |
       = help: write `true`, or `"True"` for the string
    "#);
    assert_snapshot!(file_errors("// vm.cpus = 2"), @"
    error: this is not a comment
      --> Boxfile.toml:3:1
       |
     3 | // vm.cpus = 2
       | ^^ not in TOML
       |
       = help: begin each line of a comment with `#`
    ");
    assert_snapshot!(file_errors("kernel = null"), @r#"
    error: `null` is neither a string nor a boolean
      --> Boxfile.toml:3:10
       |
     3 | kernel = null
       |          ^^^^ a bare word
       |
       = help: leave it out, or `"null"` for the string
    "#);
    assert_snapshot!(errors("// A comment.\nbox \"b\"\nagent {\n    image \"oci:i\"\n}\n"), @"
    error: the file's name says TOML, but it is written in KDL
      --> Boxfile.toml:1:1
       |
     1 | // A comment.
       | ^ KDL from here on
       |
       = help: give it a name that does not end with `.toml`: `Boxfile`, or `Boxfile.kdl`
    ");
}

#[test]
fn parts_that_are_missing() {
    assert_snapshot!(file_errors("layout"), @r#"
    error: `layout` has no value
      --> Boxfile.toml:3:1
       |
     3 | layout
       | ^^^^^^ a name alone
       |
       = help: for example `layout = "split"`
    "#);
    assert_snapshot!(file_errors("layout ="), @r#"
    error: `layout` has no value
      --> Boxfile.toml:3:1
       |
     3 | layout =
       | ^^^^^^ a name alone
       |
       = help: for example `layout = "split"`
    "#);
    assert_snapshot!(file_errors("= \"split\""), @r#"
    error: a name is missing
      --> Boxfile.toml:3:1
       |
     3 | = "split"
       | ^ before this
       |
       = help: write `name = "value"`, or remove it
    "#);
    assert_snapshot!(file_errors("vm = { cpus = 2 memory = \"1GiB\" }"), @r#"
    error: a `,` is missing
      --> Boxfile.toml:3:17
       |
     3 | vm = { cpus = 2 memory = "1GiB" }
       |                 ^^^^^^ expected `,` before this
       |
       = help: put a `,` between two values or entries
    "#);
    assert_snapshot!(file_errors("platform = [\"linux/amd64\" \"linux/arm64\"]"), @r#"
    error: a `,` is missing
      --> Boxfile.toml:3:27
       |
     3 | platform = ["linux/amd64" "linux/arm64"]
       |                           ^ expected `,` before this
       |
       = help: put a `,` between two values or entries
    "#);
    assert_snapshot!(file_errors("platform = \"linux/amd64\" \"linux/arm64\""), @r#"
    error: unexpected `"linux/arm64"` after a value
      --> Boxfile.toml:3:26
       |
     3 | platform = "linux/amd64" "linux/arm64"
       |                          ^^^^^^^^^^^^^ a name has one value
       |
       = help: write several as a list, `["a", "b"]`, and each name on a line of its own
    "#);
    assert_snapshot!(file_errors("platform = [\n    \"linux/amd64\",\n\nlayout = \"split\""), @"
    error: this list is never closed
      --> Boxfile.toml:3:12
       |
     3 | platform = [
       |            ^ opened here
       |
       = help: close it with `]`
    ");
    assert_snapshot!(file_errors("vm = {\n    cpus = 2\n    memory = \"1GiB\"\n}"), @r#"
    error: a `,` is missing
      --> Boxfile.toml:5:5
       |
     5 |     memory = "1GiB"
       |     ^ expected `,` before this
       |
       = help: put a `,` between two values or entries
    "#);
    assert_snapshot!(file_errors("platform = {\"linux/amd64\"}"), @r#"
    error: `linux/amd64` has no value
      --> Boxfile.toml:3:13
       |
     3 | platform = {"linux/amd64"}
       |             ^^^^^^^^^^^^^ a name alone
       |
       = help: write `name = "value"`; a list of values is written `["a", "b"]`
    "#);
    assert_snapshot!(file_errors("platform = [\"linux/amd64\"}"), @r#"
    error: expected `]`
      --> Boxfile.toml:3:26
       |
     3 | platform = ["linux/amd64"}
       |            - opened here
       |                          ^ the other kind
       |
       = help: write `]`
    "#);
    assert_snapshot!(file_errors("platform = [\"linux/amd64\"]]"), @r#"
    error: this `]` closes nothing
      --> Boxfile.toml:3:27
       |
     3 | platform = ["linux/amd64"]]
       |                           ^ no open bracket
       |
       = help: remove it
    "#);
    assert_snapshot!(file_errors("vm = { cpus = 2,, }"), @"
    error: a value is missing before this `,`
      --> Boxfile.toml:3:17
       |
     3 | vm = { cpus = 2,, }
       |                 ^ nothing before it
       |
       = help: remove the `,`
    ");
}

#[test]
fn headers() {
    assert_snapshot!(file_errors("[vm\ncpus = 2"), @"
    error: this header is never closed
      --> Boxfile.toml:3:1
       |
     3 | [vm
       | ^^^ no `]`
       |
       = help: write `[vm]`
    ");
    let list = "network.mode = \"filtered\"\n[[network.allow]]\npeer = \"a.example\"\nport = 22";
    assert_snapshot!(file_errors(list), @r#"
    error: `network.allow` is not a list of tables
      --> Boxfile.toml:4:1
       |
     4 | [[network.allow]]
       | ^^ two brackets
       |
       = help: all of them are the values of one key: write `allow = ["api.example.com", "*.example.org", { peer = "db.example.com", port = 5432 }]`
    "#);
    assert_snapshot!(file_errors("[vm limits]\nmemory = \"1GiB\""), @"
    error: a `.` is missing between two names
      --> Boxfile.toml:3:5
       |
     3 | [vm limits]
       |     ^^^^^^ expected `.` or `]`
       |
       = help: write `[vm.limits]`, or a name with spaces in quotes
    ");
    assert_snapshot!(file_errors("[vm] cpus = 2"), @"
    error: unexpected text after a header
      --> Boxfile.toml:3:6
       |
     3 | [vm] cpus = 2
       |      ^^^^^^^^ not part of it
       |
       = help: begin a new line after the `]`
    ");
    assert_snapshot!(file_errors("[vm.]"), @"
    error: a name is missing in this header
      --> Boxfile.toml:3:1
       |
     3 | [vm.]
       | ^^^^^ not a header
       |
       = help: write names in the brackets, separated by `.`: `[agent.limits]`
    ");
    assert_snapshot!(file_errors("layout = \"merged\"\n[conflict./etc/motd]\npolicy = \"drop\""), @r#"
    error: without `business` there is only one image, and nothing to merge
      --> Boxfile.toml:3:1
       |
     3 | layout = "merged"
       | ^^^^^^ has no effect
       |
       = help: declare `business`, or remove the layout

    error: `/etc/motd` must be in quotes
      --> Boxfile.toml:4:11
       |
     4 | [conflict./etc/motd]
       |           ^^^^^^^^^ a bare name cannot contain this
       |
       = help: write `"/etc/motd"`
    "#);
    assert_snapshot!(file_errors("[skill.\"greet]"), @r#"
    error: this string is never closed
      --> Boxfile.toml:3:8
       |
     3 | [skill."greet]
       |        ^^^^^^^ no closing quote on this line
       |
       = help: close it with `"`
    "#);
}

#[test]
fn names_that_are_written_twice() {
    assert_snapshot!(file_errors("box = \"c\""), @r#"
    error: `box` is given twice
      --> Boxfile.toml:3:1
       |
     1 | box = "b"
       | --- given first
    ...
     3 | box = "c"
       | ^^^ given again
       |
       = help: remove one of them
    "#);
    assert_snapshot!(file_errors("[vm]\ncpus = 2\n[skills]\ndir = \"s\"\n[vm]\ncpus = 1"), @"
    error: `vm` is declared twice
      --> Boxfile.toml:7:2
       |
     3 | [vm]
       |  -- declared first
    ...
     7 | [vm]
       |  ^^ declared again
       |
       = help: write all of it in one declaration
    ");
    assert_snapshot!(file_errors("vm = { cpus = 2 }\n[vm]\nmemory = \"1GiB\""), @"
    error: `vm` is declared twice
      --> Boxfile.toml:4:2
       |
     3 | vm = { cpus = 2 }
       | -- declared first
     4 | [vm]
       |  ^^ declared again
       |
       = help: write all of it in one declaration
    ");
    assert_snapshot!(file_errors("vm = { cpus = 2, cpus = 3 }"), @"
    error: `cpus` is given twice
      --> Boxfile.toml:3:18
       |
     3 | vm = { cpus = 2, cpus = 3 }
       |        ---- given first
       |                  ^^^^ given again
       |
       = help: remove one of them
    ");
    assert_snapshot!(file_errors("layout = \"split\"\nlayout.kind = \"split\""), @r#"
    error: `layout` is given twice
      --> Boxfile.toml:4:1
       |
     3 | layout = "split"
       | ------ given first
     4 | layout.kind = "split"
       | ^^^^^^ given again
       |
       = help: remove one of them
    "#);
}

#[test]
fn characters_and_numbers() {
    assert_snapshot!(file_errors("layout = \"sp\u{7}lit\""), @r#"
    error: the invisible character U+0007 is not allowed
      --> Boxfile.toml:3:13
       |
     3 | layout = "sp�lit"
       |             ^ here
       |
       = help: remove it; in a quoted string it is written `\u0007`
    "#);
    assert_snapshot!(file_errors("layout = \"split\"\rvm.cpus = 2"), @r#"
    error: a line ends with a carriage return alone
      --> Boxfile.toml:3:17
       |
     3 | layout = "split"�vm.cpus = 2
       |                 ^ no line feed
       |
       = help: save the file with LF or CRLF line ends; in a quoted string, write `\r`
    "#);
    assert_snapshot!(agent_errors("port = 4_088_"), @"
    error: `4_088_` is not a number
      --> Boxfile.toml:4:8
       |
     4 | port = 4_088_
       |        ^^^^^^ begins like a number
       |
       = help: write `4088`
    ");
    assert_snapshot!(agent_errors("port = 99999999999999999999999999999999999999999"), @"
    error: this number is too large
      --> Boxfile.toml:4:8
       |
     4 | port = 99999999999999999999999999999999999999999
       |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ too large
       |
       = help: no number in a Boxfile is greater than 4194304; write a string in quotes
    ");
    assert_snapshot!(agent_errors("port = 4088.5"), @"
    error: `port` takes a whole number, not the number 4088.5
      --> Boxfile.toml:4:8
       |
     4 | port = 4088.5
       |        ^^^^^^ expected a whole number
    ");
    assert_snapshot!(agent_errors("workdir = 2024-01-02"), @"
    error: `workdir` takes a string, not a date
      --> Boxfile.toml:4:11
       |
     4 | workdir = 2024-01-02
       |           ^^^^^^^^^^ expected a string
       |
       = help: write one string in quotes
    ");
}

#[test]
fn declarations_that_need_names() {
    assert_snapshot!(file_errors("skill = \"greet\""), @r#"
    error: each `skill` needs a name of its own
      --> Boxfile.toml:3:9
       |
     3 | skill = "greet"
       | ----- declared here
       |         ^^^^^^^ no name in front of this
       |
       = help: for example
             [skill.greet]
             path = "skills/greet"
    "#);
    assert_snapshot!(file_errors("[skill]\npath = \"skills/greet\""), @r#"
    error: each `skill` needs a name of its own
      --> Boxfile.toml:4:1
       |
     3 | [skill]
       |  ----- declared here
     4 | path = "skills/greet"
       | ^^^^ no name in front of this
       |
       = help: for example
             [skill.greet]
             path = "skills/greet"
    "#);
    assert_snapshot!(file_errors("[[skill]]\nname = \"greet\"\npath = \"skills/greet\"\n[[skill]]\nname = \"audit\"\npath = \"skills/audit\""), @r#"
    error: `skill` is not a list of tables
      --> Boxfile.toml:3:1
       |
     3 | [[skill]]
       | ^^ two brackets
       |
       = help: each one has its name in its header: write
             [skill.greet]
             path = "skills/greet"

    error: `skill` is not a list of tables
      --> Boxfile.toml:6:1
       |
     6 | [[skill]]
       | ^^ two brackets
       |
       = help: each one has its name in its header: write
             [skill.greet]
             path = "skills/greet"
    "#);
    assert_snapshot!(file_errors("skill.greet = \"skills/greet\""), @r#"
    error: each `skill` is a table, not the string `skills/greet`
      --> Boxfile.toml:3:15
       |
     3 | skill.greet = "skills/greet"
       |       ----- its name
       |               ^^^^^^^^^^^^^^ not a table
       |
       = help: for example
             [skill.greet]
             path = "skills/greet"
    "#);
    assert_snapshot!(file_errors("[[vm]]\ncpus = 2"), @"
    error: `vm` is not a list of tables
      --> Boxfile.toml:3:1
       |
     3 | [[vm]]
       | ^^ two brackets
       |
       = help: write `[vm]`
    ");
}

#[test]
fn keys_that_are_unknown() {
    assert_snapshot!(file_errors("[platfrom]\nname = \"linux/amd64\""), @"
    error: unknown declaration `platfrom`
      --> Boxfile.toml:3:2
       |
     3 | [platfrom]
       |  ^^^^^^^^ no such declaration here
       |
       = help: did you mean `platform`?
    ");
    assert_snapshot!(agent_errors("imag = \"oci:j\"\nknid = \"opencode\""), @r#"
    error: unknown declaration `imag`
      --> Boxfile.toml:4:1
       |
     4 | imag = "oci:j"
       | ^^^^ no such declaration here
       |
       = help: did you mean `image`?

    error: `agent` has no property `knid`
      --> Boxfile.toml:5:1
       |
     5 | knid = "opencode"
       | ^^^^ no such property
       |
       = help: did you mean `kind`?
    "#);
    assert_snapshot!(file_errors("[network]\nmod = \"none\""), @r#"
    error: `network` has no `mod`
      --> Boxfile.toml:4:1
       |
     4 | mod = "none"
       | ^^^ no such key
       |
       = help: did you mean `mode`?
    "#);
    assert_snapshot!(agent_errors("health = { knd = \"tcp\" }"), @r#"
    error: `health` has no `knd`
      --> Boxfile.toml:4:12
       |
     4 | health = { knd = "tcp" }
       |            ^^^ no such key
       |
       = help: did you mean `kind`?
    "#);
}

#[test]
fn values_of_another_type() {
    assert_snapshot!(file_errors("vm = { cpus = [2], memory = { min = 1 } }"), @r#"
    error: `cpus` takes a whole number, not a list
      --> Boxfile.toml:3:15
       |
     3 | vm = { cpus = [2], memory = { min = 1 } }
       |               ^^^ expected a whole number

    error: `memory` takes a size, not a table
      --> Boxfile.toml:3:29
       |
     3 | vm = { cpus = [2], memory = { min = 1 } }
       |                             ^^^^^^^^^^^ expected a size
       |
       = help: a size is a whole number and one of B, KiB, MiB, GiB, KB, MB, GB: "512MiB"
    "#);
    assert_snapshot!(file_errors("vm = 5"), @"
    error: `vm` takes no value, but got the number 5
      --> Boxfile.toml:3:6
       |
     3 | vm = 5
       |      ^ one too many
       |
       = help: write `vm = { cpus = 5 }`
    ");
    assert_snapshot!(file_errors("layout = [\"split\"]"), @r#"
    error: `layout` takes a string, not a list
      --> Boxfile.toml:3:10
       |
     3 | layout = ["split"]
       |          ^^^^^^^^^ expected a string
       |
       = help: write one string in quotes
    "#);
    assert_snapshot!(file_errors("[vm]\nmemory = 512"), @r#"
    error: `memory` has no unit
      --> Boxfile.toml:4:10
       |
     4 | memory = 512
       |          ^^^ a bare number
       |
       = help: write `memory = "512MiB"`, or `memory = "512B"` for bytes
    "#);
    assert_snapshot!(agent_errors("health = { command = [\"/bin/check\"] }"), @r#"
    error: `health` needs `kind`
      --> Boxfile.toml:4:1
       |
     4 | health = { command = ["/bin/check"] }
       | ^^^^^^ without `kind`
       |
       = help: for example `health = { kind = "http", path = "/health", port = 8080 }`
    "#);
    assert_snapshot!(agent_errors("namespaces.net = \"no\"\nenv.PASSWORD = \"hunter2\""), @r#"
    error: `net` takes a boolean, not the string `no`
      --> Boxfile.toml:4:18
       |
     4 | namespaces.net = "no"
       |                  ^^^^ expected a boolean
       |
       = help: write `true` or `false`, without quotes

    error: `PASSWORD` looks like a secret written as a plain value
      --> Boxfile.toml:5:16
       |
     5 | env.PASSWORD = "*******"
       |                ^^^^^^^^^ it would be in the checkout and in every box
       |
       = help: declare it by name alone, outside of the component: `[secret.PASSWORD]` (`boxlaunch run --secret` gives its value); if it is not a secret, put it under `plain-env` instead of `env`
    "#);
}

#[test]
fn helps_are_in_toml() {
    assert_snapshot!(file_errors("[conflict.\"/etc/motd\"]\npolicy = \"drop\""), @r#"
    error: nothing can conflict in the layout `split`
      --> Boxfile.toml:3:11
       |
     3 | [conflict."/etc/motd"]
       |           ^^^^^^^^^^^ has no effect
       |
       = help: remove it, or write `layout = "merged"`
    "#);
    assert_snapshot!(agent_errors("namespaces = { uts = false, hostname = \"a\" }"), @r#"
    error: a component without its own `uts` namespace cannot have its own host name
      --> Boxfile.toml:4:40
       |
     4 | namespaces = { uts = false, hostname = "a" }
       |                      ----- switched off
       |                                        ^^^ needs `uts = true`
       |
       = help: remove `hostname`, or `uts`
    "#);
    assert_snapshot!(file_errors("budget.kernel = \"10s\""), @r#"
    error: `kernel` is 10s, but the whole start may take only 5s
      --> Boxfile.toml:3:17
       |
     3 | budget.kernel = "10s"
       |                 ^^^^^ impossible
       |
       = help: add `total = "10s"` or more (it is 5s by default), or lower `kernel`
    "#);
    assert_snapshot!(file_errors("[network]\nmode = \"shared\"\nallow = [\"a.example.com\"]"), @r#"
    warning: a box gets the network of its host only with an option of `boxlaunch run`
      --> Boxfile.toml:4:8
       |
     4 | mode = "shared"
       |        ^^^^^^^^ refused without the option
       |
       = help: run the box with `boxlaunch run --network shared`; to reach some hosts on the internet, `filtered` needs no option

    error: `allow` needs the network mode `filtered`
      --> Boxfile.toml:5:1
       |
     5 | allow = ["a.example.com"]
       | ^^^^^ has no effect here
       |
       = help: write `mode = "filtered"`, or remove `allow`
    "#);
    assert_snapshot!(file_errors("[vm]\nmemory = \"64MiB\""), @r#"
    error: the components may take 512MiB, which leaves no memory for the VM itself
      --> Boxfile.toml:4:10
       |
     2 | agent.image = "oci:i"
       | ----- may take 512MiB by default
    ...
     4 | memory = "64MiB"
       |          ^^^^^^^ must be more than 512MiB
       |
       = help: write `memory = "768MiB"`, or lower the limits
    "#);
    assert_snapshot!(agent_errors("health = { kind = \"http\", path = \"health\" }"), @r#"
    error: `health` is not the path of a request
      --> Boxfile.toml:4:34
       |
     4 | health = { kind = "http", path = "health" }
       |                                  ^^^^^^^^ not a path
       |
       = help: write `path = "/health"`
    "#);
    assert_snapshot!(agent_errors("rlimits.cpu = \"1500ms\""), @r#"
    error: the kernel counts CPU time in whole seconds
      --> Boxfile.toml:4:15
       |
     4 | rlimits.cpu = "1500ms"
       |               ^^^^^^^^ not a whole second
       |
       = help: write `cpu = "2s"`
    "#);
    assert_snapshot!(agent_errors("port = \"4088\"\nworkdir = \"work\"\nlimits.memory = \"512mb\""), @r#"
    error: `port` takes a whole number, not the string `4088`
      --> Boxfile.toml:4:8
       |
     4 | port = "4088"
       |        ^^^^^^ expected a whole number
       |
       = help: write it without quotes: 4088

    error: `workdir` takes an absolute path, not `work`
      --> Boxfile.toml:5:11
       |
     5 | workdir = "work"
       |           ^^^^^^ a relative path
       |
       = help: write "/work"

    error: `512mb` is not a size
      --> Boxfile.toml:6:17
       |
     6 | limits.memory = "512mb"
       |                 ^^^^^^^ `memory` takes a size
       |
       = help: write `memory = "512MB"`
    "#);
    assert_snapshot!(file_errors("kernel = { sha256 = \"ABCD\" }\nbudget.total = \"0s\""), @r#"
    error: a sha256 has 64 hexadecimal digits, in lower case
      --> Boxfile.toml:3:21
       |
     3 | kernel = { sha256 = "ABCD" }
       |                     ^^^^^^ 4 characters
       |
       = help: the output of `sha256sum` begins with them

    error: `total` must be at least 1ms
      --> Boxfile.toml:4:16
       |
     4 | budget.total = "0s"
       |                ^^^^ no time at all
       |
       = help: write `total = "1ms"` or more, or leave `total` out
    "#);
}

#[test]
fn nesting_without_end() {
    assert_snapshot!(file_errors(&format!("args = {}", "[".repeat(65))), @"
    error: tables and lists are nested more than 64 deep
      --> Boxfile.toml:3:72
       |
     3 | args = [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[
       |                                                                        ^ one too many
    ");
    assert_snapshot!(file_errors(&format!("[a{}]", ".a".repeat(64))), @"
    error: tables and lists are nested more than 64 deep
      --> Boxfile.toml:3:130
       |
     3 | …a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a]
       |                                                                                                                        ^ one too many
    ");
}

/// Returns the rendered errors of a text in a file with the name `name`.
fn refused(name: &str, text: &str) -> String {
    let source = Source::new(name, text);
    let document = boxfile_spec::read(source.clone(), None, |_| Err("no such file".to_owned()));
    document.into_result().expect_err("the file is wrong").render(&Sources::single(source))
}

#[test]
fn a_comment_does_not_hide_a_declaration() {
    // An editor shows this as `/* } only for debugging begin */ … /* end { */`, with the entrypoint inside a comment.
    let text = "box \"t\"\nagent {\n    image \"oci:img\"\n    /*\u{202e} } \u{2066}only for debugging\u{2069} \u{2066} begin */ entrypoint \"/bin/evil\" /* end \u{202e} { \u{2066}*/\n}\n";
    assert_snapshot!(refused("Boxfile", text), @r#"
    error: the invisible character U+202E is not allowed
      --> Boxfile:4:7
       |
     4 |     /*� } �only for debugging� � begin */ entrypoint "/bin/evil" /* end � { �*/
       |       ^ here
       |
       = help: remove it; in a quoted string it is written `\u{202e}`
    "#);
    let text = "box = \"t\" # \u{2066}a\n[agent]\nimage = \"oci:im\u{200b}g\"\n# tag \u{e0041}\n";
    assert_snapshot!(refused("Boxfile.toml", text), @r#"
    error: the invisible character U+2066 is not allowed
      --> Boxfile.toml:1:13
       |
     1 | box = "t" # �a
       |             ^ here
       |
       = help: remove it; in a quoted string it is written `\u2066`

    error: the invisible character U+200B is not allowed
      --> Boxfile.toml:3:16
       |
     3 | image = "oci:im�g"
       |                ^ here
       |
       = help: remove it; in a quoted string it is written `\u200b`

    error: the invisible character U+E0041 is not allowed
      --> Boxfile.toml:4:7
       |
     4 | # tag �
       |       ^ here
       |
       = help: remove it; in a quoted string it is written `\U000e0041`
    "#);
    // KDL ends a line at each of these characters, but few editors show a line end there.
    for end in ["\r", "\u{85}", "\u{b}", "\u{c}", "\u{2028}", "\u{2029}"] {
        let text = format!(
            "box \"t\"\nagent {{\n    image \"oci:img\" // a comment{end} entrypoint \"/bin/evil\"\n}}\n"
        );
        let shown = refused("Boxfile", &text);
        assert!(shown.contains("Boxfile:3:"), "{end:?}: {shown}");
    }
}

#[test]
fn what_a_page_or_an_editor_leaves_is_named() {
    assert_snapshot!(refused("Boxfile.toml", "box\u{a0}= \"t\"\n[agent]\nimage = \"oci:a\"\n"), @r#"
    error: U+00A0 is not the space that separates words here
      --> Boxfile.toml:1:4
       |
     1 | box = "t"
       |    ^ looks like a space
       |
       = help: write a plain space in its place
    "#);
    // Spaces of KDL, a byte order mark, CRLF, and an emoji of several characters are accepted.
    let text = "\u{feff}box \"t\"\r\nagent {\r\n\u{a0}   image \"oci:img\" // 👩\u{200d}🔬 می\u{200c}خواهم\r\n}\r\n";
    boxfile_spec::parse(text).unwrap();
}

#[test]
fn a_merge_that_is_not_finished_is_called_so() {
    let toml = "box = \"t\"\n[agent]\n<<<<<<< HEAD\nimage = \"oci:a\"\n=======\nimage = \"oci:b\"\n>>>>>>> feature\n";
    assert_snapshot!(refused("Boxfile.toml", toml), @"
    error: there is an unresolved merge conflict
      --> Boxfile.toml:3:1
       |
     3 | <<<<<<< HEAD
       | ^^^^^^^^^^^^ left by the merge
       |
       = help: keep one side or join both, and remove the lines that begin with `<<<<<<<`, `=======` and `>>>>>>>`
    ");
    let kdl = "box \"t\"\nagent {\n<<<<<<< HEAD\n    image \"oci:a\"\n=======\n    image \"oci:b\"\n>>>>>>> feature\n}\n";
    assert_snapshot!(refused("Boxfile", kdl), @"
    error: there is an unresolved merge conflict
      --> Boxfile:3:1
       |
     3 | <<<<<<< HEAD
       | ^^^^^^^^^^^^ left by the merge
       |
       = help: keep one side or join both, and remove the lines that begin with `<<<<<<<`, `=======` and `>>>>>>>`
    ");
    // The other lines of this conflict were removed by hand.
    let shown = refused("Boxfile", "box \"t\"\nagent {\n    image \"oci:a\"\n>>>>>>> feature\n}\n");
    assert!(shown.contains("unresolved merge conflict"), "{shown}");
    // Conflict markers inside a quoted text are no conflict.
    let text = "box \"t\"\nagent {\n    image \"oci:a\"\n    env A=\"\"\"\n<<<<<<< x\n=======\n\"\"\"\n}\n";
    boxfile_spec::parse(text).unwrap();
}
