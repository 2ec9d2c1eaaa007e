//! examples/agents: agents that people use, each in the environment of a project. An agent gets its answer from a server that stands in
//! for its model's, with the key that only the host has. The virtual host also has the box of codex.rs.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use testbed::assistant::link_images;
use testbed::debian::GrpcImage;
use testbed::program;

use crate::scenario::{Scenario, Step, bake, tools};
use crate::{assistant, codex, page};

/// The sizes of the Boxfiles' VMs and components, and sizes that the small host of the test has.
const SIZES: [(&str, &str); 2] =
    [("memory=\"1536MiB\"", "memory=\"1GiB\""), ("memory=\"2GiB\"", "memory=\"1280MiB\"")];

/// The agents, each with its API and with the test's image to which its Boxfile adds it.
const AGENTS: [(&str, &str, &str); 5] = [
    ("codex", "api.openai.com", "node"),
    ("claude-code", "api.anthropic.com", "node"),
    ("gemini-cli", "generativelanguage.googleapis.com", "node"),
    ("opencode", "api.openai.com", "node"),
    ("a3s-code", "api.openai.com", "grpc"),
];
/// `agent BOX SECRET PROGRAM [ARGUMENT…]` starts the environment of a project with a box. It prints how many keys the program could read in
/// its environment, and what it answers. OpenCode gets no prompt, because that takes more than a minute on the emulated CPU. A3S Code is also
/// asked at its interface. The version of each agent is that of its packages, whose digests its Boxfile checks.
const SCRIPT: &str = r#"
ifconfig lo 127.0.0.1 up; peers --serve-models 8443 >/tmp/models.log & models=$!; trap 'kill $models' EXIT
until grep -q ready /tmp/models.log; do sleep 0.1; done
export HOME=/home/me SSL_CERT_FILE=/ca.pem
export OPENAI_API_KEY=openai-s3cret ANTHROPIC_API_KEY=anthropic-s3cret GEMINI_API_KEY=google-s3cret
run() { boxlaunch exec --timeout 100 . "$@" </dev/null; }
agent() {
    echo "-- $1"; mkdir -p /home/me/$1; chown -R 0:0 /home; cd /home/me/$1
    name=$(boxlaunch up -q --box /$1 --secret $2 --network-local 127.0.0.1:8443)
    shift 2; run env | grep -c s3cret; run "$@"
    if [ $1 = a3s-code ]; then boxlaunch agent generate --timeout 100 $name "Say hello."; fi
    boxlaunch rm -f --all-data >/dev/null
}
agent codex OPENAI_API_KEY codex exec --skip-git-repo-check "Say hello."
agent claude-code ANTHROPIC_API_KEY claude -p "Say hello."
agent gemini-cli GEMINI_API_KEY gemini -m gemini-2.5-flash -p "Say hello."
agent opencode OPENAI_API_KEY opencode --version
agent a3s-code OPENAI_API_KEY a3s-code "Say hello."
cat /tmp/models.log
"#;

/// Makes the image of an agent in `dir`, with the command of its page. The image is `base` with the agent. Leaves the files of the example in
/// `dir`.
fn make_image(name: &str, base: &str, dir: &Path) {
    let example = tools().workspace.path("examples/agents").join(name);
    for entry in fs::read_dir(&example).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), dir.join(entry.file_name())).unwrap();
        }
    }
    let page = fs::read_to_string(dir.join("README.md")).unwrap();
    let boxfile = fs::read_to_string(dir.join("Boxfile")).unwrap();
    fs::write(dir.join("Boxfile"), boxfile.replace(base_of(&boxfile), base)).unwrap();
    let commands = page::blocks(&page, "sh");
    let [make, "boxbuild build"] = commands[..] else { panic!("{commands:?}") };
    program::run(Command::new("sh").args(["-ec", make]).current_dir(dir)).unwrap();
    assert_packages_are_checked(&boxfile, dir);
    // They are several times as large as the image.
    fs::remove_dir_all(dir.join("layer")).unwrap();
    fs::remove_file(dir.join("layer.tar")).unwrap();
}

/// Returns the image to which the commands of a Boxfile add the agent.
fn base_of(boxfile: &str) -> &str {
    let (_, rest) = boxfile.split_once("skopeo copy --quiet ").unwrap();
    let (base, _) = rest.split_once(" oci:image:latest\n").unwrap();
    assert!(base.starts_with("docker://docker.io/library/python:3."), "{boxfile}");
    base
}

/// Checks that the commands of a Boxfile compare each package that they have fetched with a digest.
fn assert_packages_are_checked(boxfile: &str, dir: &Path) {
    let names = fs::read_dir(dir).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    let is_package = |name: &String| name.ends_with(".tgz") || name.ends_with(".whl");
    let packages: Vec<_> = names.filter(is_package).collect();
    assert!(!packages.is_empty(), "{boxfile}");
    for package in packages {
        assert!(boxfile.contains(&format!(" *{package}\" | sha256sum -c --quiet\n")), "{package}");
    }
}

/// Builds the box of an agent as `dir/box`, with the test's server in place of the model's.
fn make_box((name, api, image): (&str, &str, &str), dir: &Path) {
    fs::create_dir(dir).unwrap();
    make_image(name, &format!("oci:../images/{image}"), dir);
    let mut text = fs::read_to_string(dir.join("Boxfile")).unwrap();
    for (from, to) in SIZES.into_iter().chain([(api, "127.0.0.1:8443")]) {
        assert!(text.contains(from), "{text}");
        text = text.replace(from, to);
    }
    // An emulated CPU starts a box of this size slowly.
    fs::write(dir.join("Boxfile"), text + "budget total=\"60s\"\n").unwrap();
    bake(&dir.join("Boxfile"), &tools().programs.box_init, &dir.join("box"));
}

/// The steps of the virtual host: `agents`, and `success` of codex.rs.
pub(crate) static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let say = &mut |line: &str| println!("{line}");
    link_images(&tools.workspace, &at("images"), say).unwrap();
    let GrpcImage(grpc) = GrpcImage::make(&tools.workspace, say).unwrap();
    symlink(grpc, at("images/grpc")).unwrap();
    let mut host = assistant::host().memory(2816).file(&tools.programs.peers, "/bin/peers");
    for agent in AGENTS {
        let (name, ..) = agent;
        make_box(agent, &at(name));
        host = host.disk(at(name).join("box"), format!("/{name}"));
    }
    codex::make_box(&at("codex"), &at("codex-task"));
    host = host.disk(at("codex-task"), "/codex-task");
    Scenario::default()
        .script(300, "success", &codex::script())
        .script(460, "agents", SCRIPT)
        .start(&host)
});

fn agents_ask_their_models_with_keys_that_they_do_not_have() {
    let step = &STEPS["agents"];
    println!("{}", step.stderr);
    insta::assert_snapshot!(step.stdout, @"
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
    -- a3s-code
    0
    Hello from the model.
    Hello from the model.
    ready
    POST /v1/responses, authorization: Bearer openai-s3cret
    POST /v1/messages?beta=true, x-api-key: anthropic-s3cret
    POST /v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse, x-goog-api-key: google-s3cret
    POST /v1/chat/completions, authorization: Bearer openai-s3cret
    POST /v1/chat/completions, authorization: Bearer openai-s3cret
    POST /v1/chat/completions, authorization: Bearer openai-s3cret
    POST /v1/chat/completions, authorization: Bearer openai-s3cret
    ");
}

tests![agents_ask_their_models_with_keys_that_they_do_not_have];
