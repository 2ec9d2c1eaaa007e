//! examples/agents: agents that people use, each in the environment of a project. An agent gets its answer from a server that stands in
//! for its model's, with the key that only the host has.

use std::fs;
use std::path::Path;
use std::process::Command;

use testbed::assistant::link_images;
use testbed::program;

use crate::page;
use crate::scenario::{Scenario, bake, tools};

/// The image to which the Boxfiles add their agents.
const BASE: &str = "docker://docker.io/library/python:3.12-bookworm";
/// The sizes of the Boxfiles' VMs and components, and sizes that the small host of the test has.
const SIZES: [(&str, &str); 2] =
    [("memory=\"1536MiB\"", "memory=\"1GiB\""), ("memory=\"2GiB\"", "memory=\"1280MiB\"")];

/// The agents, each with its API.
const AGENTS: [(&str, &str); 4] = [
    ("codex", "api.openai.com"),
    ("claude-code", "api.anthropic.com"),
    ("gemini-cli", "generativelanguage.googleapis.com"),
    ("opencode", "api.openai.com"),
];
/// `agent BOX SECRET PROGRAM [OPTION…]` starts the environment of a project with a box. It prints how many keys the program could read in
/// its environment, and the answer to a prompt, or without options the version of the program. OpenCode gets no prompt, because that takes
/// more than a minute on the emulated CPU. The version of each agent is that of its packages, whose digests its Boxfile checks.
const SCRIPT: &str = r#"
ifconfig lo 127.0.0.1 up; peers --serve-models 8443 >/tmp/models.log & models=$!; trap 'kill $models' EXIT
until grep -q ready /tmp/models.log; do sleep 0.1; done
export HOME=/home/me SSL_CERT_FILE=/ca.pem
export OPENAI_API_KEY=openai-s3cret ANTHROPIC_API_KEY=anthropic-s3cret GEMINI_API_KEY=google-s3cret
run() { boxlaunch exec --timeout 100 . "$@" </dev/null; }
agent() {
    echo "-- $1"; mkdir -p /home/me/$1; chown -R 0:0 /home; cd /home/me/$1
    boxlaunch up -q --box /$1 --secret $2 --network-local 127.0.0.1:8443 >/dev/null
    shift 2; run env | grep -c s3cret
    if [ $# = 1 ]; then run $1 --version; else run "$@" "Say hello."; fi
    boxlaunch rm -f --all-data >/dev/null
}
agent codex OPENAI_API_KEY codex exec --skip-git-repo-check
agent claude-code ANTHROPIC_API_KEY claude -p
agent gemini-cli GEMINI_API_KEY gemini -m gemini-2.5-flash -p
agent opencode OPENAI_API_KEY opencode
cat /tmp/models.log
"#;

/// Makes the image of an agent in `dir`, with the command of its page. The image is `base` with the agent. Leaves the Boxfile in `dir`.
pub(crate) fn make_image(name: &str, base: &str, dir: &Path) {
    let example = tools().workspace.path("examples/agents").join(name);
    let page = fs::read_to_string(example.join("README.md")).unwrap();
    let boxfile = fs::read_to_string(example.join("Boxfile")).unwrap();
    assert!(boxfile.contains(BASE), "{boxfile}");
    fs::write(dir.join("Boxfile"), boxfile.replace(BASE, base)).unwrap();
    let commands = page::blocks(&page, "sh");
    let [make, "boxbuild build"] = commands[..] else { panic!("{commands:?}") };
    program::run(Command::new("sh").args(["-ec", make]).current_dir(dir)).unwrap();
    assert_packages_are_checked(&boxfile, dir);
    // They are several times as large as the image.
    fs::remove_dir_all(dir.join("layer")).unwrap();
    fs::remove_file(dir.join("layer.tar")).unwrap();
}

/// Checks that the commands of a Boxfile compare each package that they have fetched with a digest.
fn assert_packages_are_checked(boxfile: &str, dir: &Path) {
    let names = fs::read_dir(dir).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    let packages: Vec<_> = names.filter(|name| name.ends_with(".tgz")).collect();
    assert!(!packages.is_empty(), "{boxfile}");
    for package in packages {
        assert!(boxfile.contains(&format!(" *{package}\" | sha256sum -c --quiet\n")), "{package}");
    }
}

/// Builds the box of an agent as `dir/box`, with the test's server in place of the model's.
fn make_box(name: &str, api: &str, dir: &Path) {
    fs::create_dir(dir).unwrap();
    make_image(name, "oci:../images/node", dir);
    let mut text = fs::read_to_string(dir.join("Boxfile")).unwrap();
    for (from, to) in SIZES.into_iter().chain([(api, "127.0.0.1:8443")]) {
        assert!(text.contains(from), "{text}");
        text = text.replace(from, to);
    }
    // An emulated CPU starts a box of this size slowly.
    fs::write(dir.join("Boxfile"), text + "budget total=\"60s\"\n").unwrap();
    bake(&dir.join("Boxfile"), &tools().programs.box_init, &dir.join("box"));
}

#[test]
#[ignore = "fetches packages of 440 MB with npm"]
fn agents_ask_their_models_with_keys_that_they_do_not_have() {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let images = dir.path().join("images");
    link_images(&tools.workspace, &images, &mut |line| println!("{line}")).unwrap();
    let mut host = tools.host.clone().memory(2816).file(&tools.programs.peers, "/bin/peers");
    host = host.file(test_server::roots(), "/ca.pem");
    for (name, api) in AGENTS {
        make_box(name, api, &dir.path().join(name));
        host = host.disk(dir.path().join(name).join("box"), format!("/{name}"));
    }
    let steps = Scenario::default().script(400, "agents", SCRIPT).start(&host);
    println!("{}", steps["agents"].stderr);
    insta::assert_snapshot!(steps["agents"].stdout, @"
    -- codex
    0
    Hello from the model.
    -- claude-code
    0
    Hello from the model.
    -- gemini-cli
    0
    Hello from the model.
    -- opencode
    0
    1.18.33
    ready
    POST /v1/responses, authorization: Bearer openai-s3cret
    POST /v1/messages?beta=true, x-api-key: anthropic-s3cret
    POST /v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse, x-goog-api-key: google-s3cret
    ");
}
