//! Runs several commands one after the other in one start of the virtual host.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::thread;
use std::time::Instant;

use serde_json::Value;
use testbed::boots::{Origin, Run, module_of};
use testbed::prerequisites::{guest_kernel, host_kernel, with_busybox};
use testbed::{Artefacts, VirtualHost, Workspace};

/// The time limit of a command that does far more than start a box, in seconds of virtual time.
pub(crate) const UNHURRIED: u32 = 200;

/// The programs and kernels for boots, built or fetched once.
pub(crate) struct Tools {
    pub(crate) workspace: Workspace,
    pub(crate) programs: Artefacts,
    /// The guest kernel: the lean kernel if it is kept, as after `cargo xtask kernel`, or else libkrunfw's.
    pub(crate) kernel: PathBuf,
    pub(crate) host: VirtualHost,
}

pub(crate) fn tools() -> &'static Tools {
    static TOOLS: LazyLock<Tools> = LazyLock::new(|| {
        let workspace = Workspace::find();
        let programs = Artefacts::build(&workspace).unwrap();
        let say = &mut |line: &str| println!("{line}");
        let kernel = guest_kernel(&workspace, say).unwrap();
        let host = VirtualHost::new(&host_kernel(&workspace, say).unwrap(), &programs.boxlaunch);
        let host = with_busybox(host, &workspace).unwrap();
        Tools { workspace, programs, kernel, host }
    });
    &TOOLS
}

/// Runs `boxbuild build`, which must succeed.
pub(crate) fn bake(boxfile: &Path, init: &Path, output: &Path) {
    bake_with(&tools().kernel, boxfile, init, output);
}

/// Like [`bake`], with the guest kernel `kernel`.
pub(crate) fn bake_with(kernel: &Path, boxfile: &Path, init: &Path, output: &Path) {
    let build = tools().programs.box_build(init, kernel);
    bake_as(build, boxfile, output);
}

/// Like [`bake`], with `name` as the box's name in the store. The store is the directory `store` beside `output`.
pub(crate) fn bake_named(boxfile: &Path, output: &Path, name: &str) {
    let mut build = tools().programs.box_build(&tools().programs.box_init, &tools().kernel);
    build.args(["--name", name]);
    bake_as(build, boxfile, output);
}

fn bake_as(mut build: Command, boxfile: &Path, output: &Path) {
    let built = build
        .arg("--file")
        .arg(boxfile)
        .arg("--store")
        .arg(output.with_file_name("store"))
        .arg("--output")
        .arg(output)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
}

/// Returns the Boxfile of a box whose agent sleeps and whose components have different users.
pub(crate) fn sleeping(name: &str) -> String {
    format!(
        r#"box "{name}"
agent {{
    image "oci:images/business"
    entrypoint "/bin/sleep" "1000"
    health "none"
    user "1000:1000"
    limits memory="32MiB" pids=32
}}
business {{
    image "oci:images/business"
    user "1001:1002"
    limits memory="32MiB" pids=32
}}
vm cpus=1 memory="256MiB"
"#
    )
}

/// Returns a script that makes the user `me` of the virtual host, who may use KVM, and runs `script` as this user.
pub(crate) fn as_user(script: &str) -> String {
    format!(
        "echo 'me:x:1000:1000::/tmp/home:/bin/sh' >>/etc/passwd; echo 'me:x:1000:' >>/etc/group
echo 'kvm:x:104:me' >>/etc/group; mkdir -m 755 /tmp/home; chown 1000:1000 /tmp/home
cat >/tmp/user.sh <<'AS_USER'
export HOME=/tmp/home BOXLAUNCH_STATE=/tmp/home/state XDG_RUNTIME_DIR=/tmp/home; cd
{script}
AS_USER
su me -c 'sh /tmp/user.sh'"
    )
}

/// Puts the images and the skill of examples/hello into a directory, and returns the text of its Boxfile.
pub(crate) fn hello_checkout(directory: &Path) -> String {
    let example = tools().workspace.path("examples/hello");
    testbed::hello::write_images(&tools().programs.hello_agent, &directory.join("images")).unwrap();
    let skill = directory.join("skills/greet");
    fs::create_dir_all(skill.join("tools")).unwrap();
    for file in ["SKILL.md", "tools/greet.sh"] {
        fs::copy(example.join("skills/greet").join(file), skill.join(file)).unwrap();
    }
    fs::read_to_string(example.join("Boxfile")).unwrap()
}

/// Reads the manifest of a box.
pub(crate) fn manifest(bundle: &Path) -> box_contract::Manifest {
    let index: box_contract::Index = read_json(&bundle.join("index.json"));
    read_json(&blob(bundle, &index.manifests[0]))
}

/// Returns the path of a box's blob.
pub(crate) fn blob(bundle: &Path, descriptor: &box_contract::Descriptor) -> PathBuf {
    bundle.join("blobs/sha256").join(descriptor.digest.hex())
}

/// Reads a JSON document of a box.
pub(crate) fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Checks that the report of a run has the time until the agent passed its health check.
pub(crate) fn assert_ready(report: &Value) {
    let ready = report["phases_ms"]["ready"].as_f64().unwrap();
    assert!(ready > 0.0, "{report}");
}

/// Commands to run in one start of the virtual host. The name of each is its key in the results.
#[derive(Default)]
pub(crate) struct Scenario {
    script: String,
    /// See [`Self::anew`].
    anew: bool,
}

/// The result of one command.
#[derive(Debug, Clone, Default)]
pub(crate) struct Step {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Step {
    /// Parses the command's standard output as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the results of the commands of [`Scenario::run_all`], by their names.
    pub(crate) fn parts(&self) -> BTreeMap<String, Self> {
        let report = self.json();
        let text = report.get("command").unwrap_or(&report)["stdout"].as_str().unwrap();
        let part = |text: &str| {
            let [name, status, stdout, stderr] = text.split('\x1f').collect::<Vec<_>>()[..] else {
                panic!("half a result: {text:?}");
            };
            let [stdout, stderr] = [stdout, stderr].map(str::to_owned);
            (name.to_owned(), Self { status: status.parse().unwrap(), stdout, stderr })
        };
        text.split('\x1e').skip(1).map(part).collect()
    }
}

/// Adds boxes of a module, which are built in the directory, to a virtual host, and its commands to a scenario.
pub(crate) type Part = fn(&Path, Scenario, VirtualHost) -> (Scenario, VirtualHost);

/// The results of commands, and the files that they left in `/out`.
pub(crate) type Ran = (BTreeMap<String, Step>, BTreeMap<PathBuf, Vec<u8>>);

/// Starts the virtual host once for several parts.
pub(crate) fn together(parts: &[Part]) -> Ran {
    let dir = tempfile::tempdir().unwrap();
    let begun = (Scenario::default(), tools().host.clone());
    let (scenario, host) = parts.iter().enumerate().fold(begun, |(scenario, host), (i, part)| {
        let own = dir.path().join(i.to_string());
        fs::create_dir(&own).unwrap();
        part(&own, scenario, host)
    });
    scenario.start_for_files(&host)
}

/// Runs commands on a virtual host. Takes their result from the cache if they ran there before with the same inputs, except
/// if they must run `anew`.
fn run_on(host: &VirtualHost, commands: &[Vec<String>], anew: bool) -> virtual_host::Run {
    let began = Instant::now();
    let run = Run::of_process(&tools().workspace);
    let (result, origin) = match run.filter(|_| !anew) {
        Some(run) => run.start(host, commands, module_of(&test())).unwrap(),
        None => (host.run_each(commands).unwrap(), Origin::Made),
    };
    note(origin, began);
    result
}

/// Adds a start of the virtual host, since `began`, to the list of `cargo xtask test`.
pub(crate) fn note(origin: Origin, began: Instant) {
    if let Some(run) = Run::of_process(&tools().workspace) {
        run.note(origin, began.elapsed(), &test());
    }
}

/// Returns the name of this test, which is its thread's.
fn test() -> String {
    thread::current().name().unwrap_or_default().to_owned()
}

/// Returns the shell line that runs a command in a box, which `boxlaunch SUBCOMMAND` starts or enters, and prints the report.
fn run(subcommand: &str, command: &str) -> String {
    let quoted = command.replace('\'', "'\\''");
    format!("boxlaunch {subcommand} -- /bin/sh -c '{quoted}'")
}

impl Scenario {
    /// Adds a command, as a line of shell, with a limit of 5 seconds of virtual time. The limit is low because a virtual second
    /// of a microVM that hangs takes half a minute of real time.
    pub(crate) fn step(self, name: &str, command: &str) -> Self {
        self.step_within(5, name, command)
    }

    /// Adds a command with a limit of `seconds` of virtual time.
    pub(crate) fn step_within(mut self, seconds: u32, name: &str, command: &str) -> Self {
        let line = format!(
            "timeout -k 2 {seconds} {command} >/out/{name}.stdout 2>/out/{name}.stderr; \
             echo $? >/out/{name}.status\n"
        );
        self.script.push_str(&line);
        self
    }

    /// Adds a script for the virtual host's shell, with a limit of `seconds` of virtual time.
    pub(crate) fn script(self, seconds: u32, name: &str, script: &str) -> Self {
        let quoted = script.replace('\'', "'\\''");
        self.step_within(seconds, name, &format!("sh -c '{quoted}'"))
    }

    /// Adds `boxlaunch run --json` with a command for the business component of a box.
    pub(crate) fn run(self, name: &str, bundle: &str, command: &str) -> Self {
        self.step(name, &run(&format!("run --json {bundle}"), command))
    }

    /// Adds `boxlaunch SUBCOMMAND`, such as `run --json /hello`, with several commands, which run one after the other. `seconds` of
    /// virtual time are the limit for all together. [`Step::parts`] returns the result of each.
    pub(crate) fn run_all(
        self,
        seconds: u32,
        name: &str,
        subcommand: &str,
        commands: &[(&str, &str)],
    ) -> Self {
        let part = |(part, command): &(&str, &str)| {
            format!(
                "( {command} ) >/tmp/out 2>/tmp/err; \
                 printf \"\\036{part}\\037$?\\037\"; cat /tmp/out; printf \"\\037\"; cat /tmp/err\n"
            )
        };
        let commands: String = commands.iter().map(part).collect();
        self.step_within(seconds, name, &run(subcommand, &commands))
    }

    /// Runs the commands in every run of the tests, even if they ran before with the same inputs: what protects the host is never
    /// taken from the cache.
    pub(crate) fn anew(self) -> Self {
        Self { anew: true, ..self }
    }

    /// Runs all commands in the virtual host. A command that hangs there would also hang on a real host, so none is retried.
    pub(crate) fn start(self, host: &VirtualHost) -> BTreeMap<String, Step> {
        self.start_for_files(host).0
    }

    /// Like [`Self::start`], and also returns the files that the commands left in `/out`, by their path below it.
    pub(crate) fn start_for_files(self, host: &VirtualHost) -> Ran {
        let commands = [["sh", "-c", &self.script].map(str::to_owned).to_vec()];
        let output = run_on(host, &commands, self.anew);
        let text = |name: String| {
            let bytes = output.files.get(Path::new(&name)).cloned();
            String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
        };
        let names = output.files.keys().filter_map(|path| path.to_str()?.strip_suffix(".status"));
        let step = |name: &str| Step {
            status: text(format!("{name}.status")).trim().parse().unwrap(),
            stdout: text(format!("{name}.stdout")),
            stderr: text(format!("{name}.stderr")),
        };
        let steps = names.map(|name| (name.to_owned(), step(name))).collect();
        (steps, output.files)
    }
}
