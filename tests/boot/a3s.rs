//! examples/a3s: two images that follow the conventions of A3S, made from their Dockerfiles by another program. Beside it, the
//! simplest box that the conventions know: an agent that is one program, and a shared directory.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::LazyLock;

use testbed::debian::A3sImages;

use crate::scenario::{Scenario, Step, bake, tools};

/// An agent that is one program, without an image.
const SINGLE: &str = r#"
box "single"
agent kind="local_binary" {
    binary "agent"
    health "http" path="/health"
    limits memory="64MiB" pids=32
}
share "workspace" guest="/workspace" access="rw"
vm cpus=1 memory="192MiB"
"#;
/// Talks to the agent. Its answer is that of the business application, which the agent starts.
const TALK: &str = "
boxlaunch run -q -d --name a3s /a3s || exit
boxlaunch inspect /a3s | grep 'health '; boxlaunch health a3s
boxlaunch agent health a3s; boxlaunch agent capabilities a3s; boxlaunch agent generate a3s hello
";
/// Prints the directories, the variables and the CPU weights of both components, as their commands see them.
const LOOK: &str = "
for component in agent business; do
    run() { boxlaunch exec --in $component a3s -- \"$@\"; }
    run pwd; run env | sort; run cat /sys/fs/cgroup/cpu.weight
done
";
/// Uses what pip and npm have installed, by the variables alone: from another directory, and without a path.
const USE: &str = "
boxlaunch exec --in agent -w / a3s -- python -c 'import grpc, anthropic, openai; from lib import models
print(grpc.__version__, anthropic.__version__, openai.__version__, models.provider())'
boxlaunch exec -w / a3s -- node -p 'require(\"express/package.json\").version'
boxlaunch exec -w / a3s -- sh -c 'command -v mime; node --version'; boxlaunch rm -f a3s
";
/// Uses the shared directory of the agent that is one program. Its component has no other program.
const SHARED: &str = "
mkdir -p /tmp/single/project; cd /tmp/single; echo 'from the host' >project/in; echo 'from the box' >out
boxlaunch run -q -d --name single --share workspace=project /single || exit
boxlaunch health single; boxlaunch cp --in agent single:/workspace/in copy; cat copy
boxlaunch cp --in agent out single:/workspace/; cat project/out; boxlaunch rm -f single
";

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let say = &mut |line: &str| println!("{line}");
    let A3sImages(images) = A3sImages::make(&tools.workspace, say).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    symlink(images, path("images")).unwrap();
    fs::copy(tools.workspace.path("examples/a3s/Boxfile"), path("Boxfile")).unwrap();
    fs::write(path("single"), SINGLE).unwrap();
    fs::copy(&tools.programs.hello_agent, path("agent")).unwrap();
    bake(&path("Boxfile"), &tools.programs.box_init, &path("a3s.box"));
    bake(&path("single"), &tools.programs.box_init, &path("single.box"));
    let host = tools.host.clone().memory(4096);
    let host = host.disk(path("a3s.box"), "/a3s").file(path("single.box"), "/single");
    Scenario::default()
        .script(120, "talk", TALK)
        .script(30, "look", LOOK)
        .script(60, "use", USE)
        .script(30, "shared", SHARED)
        .start(&host)
});

fn step(name: &str) -> &'static Step {
    let step = &STEPS[name];
    println!("{}\n{}", step.stdout, step.stderr);
    step
}

fn the_agent_is_ready_by_its_interface_and_answers_with_the_application() {
    insta::assert_snapshot!(step("talk").stdout, @"
    a3s
      health      HealthCheck of an A3S agent on port 4088
    healthy
    healthy: ready
    name         a3s-example
    version      0.1.0
    description  asks a model or the business application
    features     streaming
    Express says: hello
    ");
}

fn the_directories_of_the_images_decide_what_commands_see() {
    insta::assert_snapshot!(step("look").stdout, @"
    /agent
    BUSINESS_URL=http://127.0.0.1:3000
    HOME=/root
    LLM_PROVIDER=anthropic
    PATH=/agent/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    PYTHONPATH=/agent
    VIRTUAL_ENV=/agent/venv
    20
    /workspace
    GREETING=Express says
    HOME=/workspace
    NODE_PATH=/workspace/node_modules
    PATH=/workspace/node_modules/.bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    PORT=3000
    39
    ");
}

fn what_pip_and_npm_have_installed_is_found_from_everywhere() {
    insta::assert_snapshot!(step("use").stdout, @"
    1.85.3 2.14.0 3.57.0 anthropic
    4.22.3
    /workspace/node_modules/.bin/mime
    v20.18.0
    a3s
    ");
}

fn an_agent_that_is_one_program_shares_a_directory() {
    insta::assert_snapshot!(step("shared").stdout, @"
    single
    healthy
    from the host
    from the box
    single
    ");
}

tests![
    the_agent_is_ready_by_its_interface_and_answers_with_the_application,
    the_directories_of_the_images_decide_what_commands_see,
    what_pip_and_npm_have_installed_is_found_from_everywhere,
    an_agent_that_is_one_program_shares_a_directory
];
