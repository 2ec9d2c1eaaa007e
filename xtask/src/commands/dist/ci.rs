//! Tests of the action of this repository and of `docs/ci.md`: runs their steps with a release, and with a local registry.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use host_fs::own::{REGISTRIES, STORE, VARIABLES};
use serde_json::Value;
use testbed::prerequisites::{Package, WorkflowKind, Workflows, packages, workflows};
use testbed::{Artefacts, DockerRegistry, Workspace, digest, program};

use super::VERSION;
use super::tests::made;

const PAGE: &str = include_str!("../../../../docs/ci.md");
/// The registry that the page uses. A local one replaces it.
const REGISTRY: &str = "ghcr.io";
const BOXFILE: &str = "box \"hello\"\nagent { binary \"agent\"; port 4088; health \"tcp\"; }\n";

/// A release, which all tests of this module install.
static RELEASE: LazyLock<(tempfile::TempDir, String)> = LazyLock::new(|| {
    let directory = tempfile::tempdir().unwrap();
    let archive = &made(directory.path())[0];
    let checksum = digest::of_file(archive).unwrap().hex().to_string();
    (directory, checksum)
});

/// A machine on which a job runs: a checkout, and a registry.
struct Machine {
    directory: tempfile::TempDir,
    registry: DockerRegistry,
    /// Directories that a step has added to the path.
    path: Vec<String>,
}

impl Machine {
    fn new() -> Self {
        let workspace = Workspace::find();
        let say = &mut |line: &str| println!("{line}");
        packages(&[Package::Jq, Package::Curl], say).unwrap();
        let registry = DockerRegistry::open(&workspace, say).unwrap();
        let machine = Self { directory: tempfile::tempdir().unwrap(), registry, path: Vec::new() };
        let agent = Artefacts::locate(&workspace, testbed::Profile::Dev).hello_agent;
        fs::create_dir(machine.at("checkout")).unwrap();
        fs::copy(agent, machine.at("checkout/agent")).unwrap();
        machine.write("checkout/Boxfile", BOXFILE);
        let config = format!("[registry.\"{}\"]\nplain-http = true\n", machine.registry.host());
        machine.write("registries.toml", &config);
        machine
    }

    fn at(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.at(path), text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap_or_default()
    }

    /// Returns a shell for a script in the checkout, with the variables of a job.
    fn shell(&self, shell: &[&str], script: &str) -> Command {
        let mut command = Command::new(shell[0]);
        for name in VARIABLES {
            command.env_remove(name);
        }
        let path = self.path.iter().cloned().chain(std::env::var("PATH"));
        command.args(&shell[1..]).arg(script).current_dir(self.at("checkout"));
        command.env("PATH", path.collect::<Vec<_>>().join(":")).env("HOME", self.at("home"));
        command.env(STORE, self.at("store")).env(REGISTRIES, self.at("registries.toml"));
        command.env("RELEASE", format!("file://{}", RELEASE.0.path().display()));
        command.env("CHECKSUM", &RELEASE.1);
        command
    }

    /// Runs the lines of a page with `sh -e`, and returns the standard output.
    fn lines(&self, lines: &str, set: impl Fn(&mut Command) -> &mut Command) -> String {
        let lines = lines.replace(REGISTRY, &self.registry.host());
        let mut shell = self.shell(&["sh", "-ec"], &lines);
        let output = program::run(set(&mut shell)).unwrap();
        String::from_utf8(output).unwrap()
    }
}

/// A run of the action.
#[derive(Debug, Default)]
struct Run {
    /// Whether all steps have succeeded.
    is_done: bool,
    /// What the steps have printed.
    log: String,
    outputs: BTreeMap<String, String>,
    summary: String,
}

/// Replaces the expressions `${{ … }}` of a value as GitHub does: an input, an output of a step, the first of two that is not
/// empty, or a text if an input is not empty.
fn expanded(value: &str, inputs: &Value, outputs: &BTreeMap<String, String>) -> String {
    let Some(expression) = value.strip_prefix("${{ ").and_then(|it| it.strip_suffix(" }}")) else {
        assert!(!value.contains("${{"), "{value}");
        return value.to_owned();
    };
    if let Some((condition, text)) = expression.split_once(" && ") {
        let has_value = inputs[condition.strip_prefix("inputs.").unwrap()] != "";
        return if has_value { text.trim_matches('\'').to_owned() } else { String::new() };
    }
    let term = |term: &str| {
        let output = term.strip_prefix("steps.build.outputs.");
        let output = output.map(|it| outputs.get(it).cloned().unwrap_or_default());
        let input = term.strip_prefix("inputs.").and_then(|it| inputs[it].as_str());
        output.or_else(|| input.map(str::to_owned)).unwrap_or_else(|| panic!("{term}"))
    };
    expression.split(" || ").map(term).find(|it| !it.is_empty()).unwrap_or_default()
}

/// Returns the action as JSON.
fn action() -> Value {
    reader().read(WorkflowKind::Action, &Workspace::find().path("action.yml")).unwrap()
}

fn reader() -> Workflows {
    workflows(&Workspace::find(), &mut |line| println!("{line}")).unwrap()
}

impl Machine {
    /// Runs the steps of the action as the runner of GitHub does, until one fails.
    fn act(&mut self, given: &[(&str, &str)]) -> Run {
        let action = action();
        let mut inputs: Value = serde_json::json!({
            "release": RELEASE.0.path(), "version": super::VERSION, "checksum": RELEASE.1,
        });
        for (name, input) in action["inputs"].as_object().unwrap() {
            let value = given.iter().find(|(given, _)| given == name).map(|(_, value)| *value);
            if let Some(value) = value.or(input["default"].as_str()) {
                inputs[name] = value.into();
            }
        }
        let mut run = Run { is_done: true, ..Run::default() };
        for name in ["output", "path", "summary"] {
            self.write(name, "");
        }
        for step in action["runs"]["steps"].as_array().unwrap() {
            let output = self.step(step, &inputs, &run.outputs);
            let text = [output.stdout, output.stderr].concat();
            run.log += &String::from_utf8(text).unwrap();
            let lines = self.read("output");
            run.outputs = lines.lines().filter_map(|it| it.split_once('=')).map(owned).collect();
            self.path = self.read("path").lines().map(str::to_owned).collect();
            run.is_done = output.status.success();
            if !run.is_done {
                break;
            }
        }
        run.summary = self.read("summary").replace(&self.registry.host(), "HOST");
        run
    }

    fn step(&self, step: &Value, inputs: &Value, outputs: &BTreeMap<String, String>) -> Output {
        let script = step["run"].as_str().unwrap();
        assert!(!script.contains("${{"), "an input would be run: {script}");
        assert_eq!(step["shell"], "bash");
        self.write("step", script);
        let file = self.at("step").display().to_string();
        let shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail"];
        let mut command = self.shell(&shell, &file);
        for (name, value) in step["env"].as_object().unwrap() {
            command.env(name, expanded(value.as_str().unwrap(), inputs, outputs));
        }
        for (name, path) in [("OUTPUT", "output"), ("PATH", "path"), ("STEP_SUMMARY", "summary")] {
            command.env(format!("GITHUB_{name}"), self.at(path));
        }
        command.env("GITHUB_ACTIONS", "true").env("GITHUB_WORKSPACE", self.at("checkout"));
        command.env("GITHUB_ACTION_PATH", Workspace::find().path(""));
        command.env("GITHUB_SERVER_URL", "https://github.com");
        command
            .env("GITHUB_WORKFLOW_REF", "acme/hello/.github/workflows/the box.yml@refs/heads/main");
        command.env("RUNNER_TEMP", self.directory.path()).output().unwrap()
    }
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
#[ignore = "needs the lean kernel: cargo xtask test --landing"]
fn the_action_builds_pushes_and_says_what_changed() {
    let mut machine = Machine::new();
    let push = format!("{}/acme/hello:main", machine.registry.host());
    let unlocked = machine.act(&[("push", &push)]);
    assert!(!unlocked.is_done && unlocked.outputs.is_empty(), "{unlocked:?}");
    assert!(unlocked.log.contains("::error title=lock-missing::"), "{}", unlocked.log);

    let first = machine.act(&[("push", &push), ("locked", "false")]);
    assert!(first.is_done, "{}", first.log);
    assert_eq!(first.outputs["changed"], "true");
    assert!(first.outputs["bytes-sent"].parse::<u64>().unwrap() > 100_000, "{first:?}");
    assert!(first.summary.contains("The registry had no box there"), "{}", first.summary);
    let reference = format!("{push}@{}", first.outputs["digest"]);
    assert_eq!(first.outputs["reference"], reference);

    let again = machine.act(&[("push", &push)]);
    assert_eq!((&*again.outputs["changed"], &*again.outputs["bytes-sent"]), ("false", "0"));
    assert_eq!(again.outputs["box"], first.outputs["box"]);
    assert!(again.summary.ends_with("It is the box that the registry had before.\n\n"));

    machine.write("checkout/Boxfile", &BOXFILE.replace("agent {", "network \"shared\"\nagent {"));
    let changed = machine.act(&[("push", &push)]);
    assert!(changed.is_done, "{}", changed.log);
    assert_eq!(changed.outputs["changed"], "true");
    assert_ne!(changed.outputs["box"], first.outputs["box"]);
    let row = "| ⚠️ **allows more** | `network` | `none: nothing` | `shared: everything that the host reaches` |";
    assert!(changed.summary.contains(row), "{}\n{}", changed.summary, changed.log);
    assert!(
        changed.log.contains("::warning title=boxbuild,file=Boxfile,line=2,"),
        "{}",
        changed.log
    );

    // A pull request only compares.
    machine.write("checkout/Boxfile", BOXFILE);
    let compared = machine.act(&[("compare-with", &push)]);
    assert!(compared.is_done && !compared.outputs.contains_key("digest"), "{compared:?}");
    assert!(compared.summary.contains("allows less"), "{}", compared.summary);
    let alone = machine.act(&[]);
    assert!(alone.is_done && !alone.outputs.contains_key("changed"), "{alone:?}");
}

#[test]
#[ignore = "needs the lean kernel: cargo xtask test --landing"]
fn the_action_signs_what_it_has_built_without_a_cache() {
    let mut machine = Machine::new();
    let push = format!("{}/acme/hello:main", machine.registry.host());
    let pushed = machine.act(&[("push", &push), ("locked", "false")]);
    assert!(pushed.is_done, "{}", pushed.log);
    machine.lines("boxbuild keygen -o ../acme", |it| it);
    let key = machine.read("acme.key");
    let signing = [("push", &*push), ("signing-key", &key), ("cache-from", &push)];
    // The registry has this box with its cache, and the host of this job has nothing: the job reads all layers all the same.
    fs::remove_dir_all(machine.at("store")).unwrap();
    // A store that has pulled the name is no reason to keep the statements there.
    machine.lines(&format!("boxbuild -q pull {push}"), |it| it);
    let signed = machine.act(&signing);
    assert!(signed.is_done, "{}", signed.log);
    assert_eq!((&*signed.outputs["changed"], &*signed.outputs["bytes-sent"]), ("false", "0"));
    assert!(!signed.log.contains(key.lines().nth(1).unwrap()), "{}", signed.log);
    let reference = &signed.outputs["reference"];
    let verify = format!("boxbuild verify {reference} --key ../acme.pub --json --store ../empty");
    let verify = |machine: &Machine| -> Value {
        serde_json::from_str(&machine.lines(&verify, |it| it)).unwrap()
    };
    let first = verify(&machine);
    let kinds = first.to_string();
    for kind in ["signature", "provenance", "sbom"] {
        assert!(kinds.contains(kind), "{kinds}");
    }
    // The next job with the same inputs adds nothing.
    fs::remove_dir_all(machine.at("store")).unwrap();
    let again = machine.act(&signing);
    assert!(again.is_done, "{}", again.log);
    assert_eq!(verify(&machine), first);
    // A broken key fails the job after the push, and is not printed.
    let broken = machine.act(&[("push", &push), ("signing-key", "no key, but secret")]);
    assert!(!broken.is_done && !broken.log.contains("but secret"), "{}", broken.log);
    // A pull request pushes nothing, so nothing is signed.
    let compared = machine.act(&[("compare-with", &push), ("signing-key", &key)]);
    assert!(compared.is_done, "{}", compared.log);
}

#[test]
#[ignore = "needs the lean kernel: cargo xtask test --landing"]
fn the_action_installs_only_the_release_that_is_asked_for() {
    let mut machine = Machine::new();
    let other = "0".repeat(64);
    let long = format!("{other}\n::add-mask::x");
    for (input, value, message) in [
        ("checksum", other.as_str(), "has another checksum"),
        ("checksum", long.as_str(), "the checksum is not a sha256"),
        ("version", "../0.1.0", "the version is not one such as 0.1.0"),
        ("version", "$(touch x)", "the version is not one such as 0.1.0"),
        ("release", "/nowhere", "/nowhere"),
    ] {
        let run = machine.act(&[(input, value)]);
        assert!(!run.is_done && machine.path.is_empty(), "{run:?}");
        assert!(run.log.contains(message), "{}", run.log);
        assert!(!run.log.contains("add-mask"), "{}", run.log);
    }
    // No other input is run, is taken for an option, or sets an output.
    for value in ["$(touch x)`touch x`; touch x", "--offline\nbefore=true"] {
        for input in ["boxfile", "profile", "push", "compare-with"] {
            let run = machine.act(&[(input, value), ("locked", "false")]);
            let outputs: Vec<_> = run.outputs.keys().map(String::as_str).collect();
            // A build does not fail because there is nothing to compare with.
            let expected = if input == "compare-with" { &["box", "changed"][..] } else { &[] };
            assert_eq!((run.is_done, &*outputs), (input == "compare-with", expected), "{run:?}");
            assert!(!machine.at("checkout/x").exists(), "{input} {value}");
        }
    }
}

/// Returns the text of each code block of a language.
fn blocks<'p>(language: &str) -> impl Iterator<Item = &'p str> {
    let fence = format!("```{language}\n");
    let blocks: Vec<&str> = PAGE.split(&fence).skip(1).collect();
    blocks.into_iter().filter_map(|it| it.split_once("\n```")).map(|(block, _)| block)
}

#[test]
#[ignore = "needs the lean kernel: cargo xtask test --landing"]
fn the_lines_of_the_page_run() {
    let machine = Machine::new();
    let [install, compare, push, release, branch, collect] = blocks("bash").collect::<Vec<_>>()[..]
    else {
        panic!("the page has other blocks")
    };
    machine
        .lines(&format!("{install}\nboxbuild -q build --push {REGISTRY}/acme/hello:main"), |it| it);
    machine.write("checkout/Boxfile", &BOXFILE.replace("4088", "4089"));
    let installed = "export PATH=\"$PWD/tools/bin:$PATH\"";
    machine.lines(&format!("{installed}\nboxbuild lock\n{compare}\n{push}\n{collect}"), |it| it);
    let comment = machine.read("checkout/comment.md");
    assert!(comment.contains("`agent port`"), "{comment}");
    let built: Value = serde_json::from_str(&machine.read("checkout/built.json")).unwrap();
    assert_eq!(built["pushed"]["box"], built["box"]);
    let released = machine.lines(&format!("{installed}\n{release}"), |it| it);
    // A branch takes the layers of the main branch, and changes nothing.
    let of_branch = machine.lines(&format!("{installed}\n{branch}"), |it| it);
    assert_eq!(of_branch, released.lines().take(1).map(|it| format!("{it}\n")).collect::<String>());
    assert!(released.starts_with(built["box"].as_str().unwrap()), "{released}");
}

#[test]
#[ignore = "needs the lean kernel: cargo xtask test --landing"]
fn the_workflows_fit_their_schemas_and_the_job_of_gitlab_runs() {
    let (reader, machine) = (reader(), Machine::new());
    let [github, gitlab] = blocks("yaml").collect::<Vec<_>>()[..] else {
        panic!("the page has other blocks")
    };
    machine.write("github.yml", github);
    machine.write("gitlab.yml", gitlab);
    let job = reader.read(WorkflowKind::Workflow, &machine.at("github.yml")).unwrap();
    let own = Workspace::find().path(".github/workflows/ci.yml");
    let own = reader.read(WorkflowKind::Workflow, &own).unwrap();
    let inputs = action()["inputs"].as_object().unwrap().clone();
    let step = own["jobs"]["check"]["steps"].as_array().unwrap().last().unwrap();
    assert_eq!(
        step["with"]["version"], VERSION,
        "the version in ci.yml is not the one in Cargo.toml"
    );
    for (job, name) in [(&job, "box"), (&own, "check")] {
        let step = job["jobs"][name]["steps"].as_array().unwrap().last().unwrap();
        let with = step["with"].as_object().unwrap();
        assert!(with.keys().all(|it| inputs.contains_key(it)), "{with:?}");
        let is_required = |it: &&String| inputs[*it]["required"] == true;
        assert!(inputs.keys().filter(is_required).all(|it| with.contains_key(it)), "{with:?}");
    }
    for name in inputs.keys().chain(action()["outputs"].as_object().unwrap().keys()) {
        assert!(PAGE.contains(&format!("`{name}`")), "{name} is missing on the page");
    }
    let script = &reader.read(WorkflowKind::Gitlab, &machine.at("gitlab.yml")).unwrap()["box"];
    let lines: Vec<_> =
        script["script"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    let usr = machine.at("usr");
    fs::create_dir(&usr).unwrap();
    let lines = lines.join("\n").replace("/usr/local", usr.to_str().unwrap());
    let lines = format!("export PATH=\"{}/bin:$PATH\"\n{lines}", usr.display());
    let unlocked = lines.replace("--locked ", "");
    let image = format!("{}/group/project", machine.registry.host());
    let job = |it: &mut Command| {
        it.env("CI_REGISTRY_IMAGE", &image).env("CI_COMMIT_REF_SLUG", "main");
    };
    let [first, second] = [unlocked, lines].map(|lines| {
        machine.lines(&lines, |it| {
            job(it);
            it
        })
    });
    assert_eq!(first.lines().last(), second.lines().last());
    // As a control, the schema has to refuse an action without a shell.
    let action = fs::read_to_string(Workspace::find().path("action.yml")).unwrap();
    machine.write("action.yml", &action.replace("shell: bash", "shel: bash"));
    reader.read(WorkflowKind::Action, &machine.at("action.yml")).unwrap_err();
}

#[test]
fn shellcheck_finds_nothing_in_the_scripts() {
    packages(&[Package::Shellcheck], &mut |line| println!("{line}")).unwrap();
    let directory: &Path = &Workspace::find().path("ci");
    let files = fs::read_dir(directory).unwrap().map(|it| it.unwrap().path());
    let scripts: Vec<_> = files.filter(|it| it.extension().is_some_and(|it| it == "sh")).collect();
    assert_eq!(scripts.len(), 4);
    program::run(Command::new("shellcheck").args(&scripts)).unwrap();
    // As a control, a variable without quotes has to be found.
    let directory = tempfile::tempdir().unwrap();
    let careless = directory.path().join("careless.sh");
    fs::write(&careless, "#!/bin/sh\nrm $1\n").unwrap();
    program::run(Command::new("shellcheck").arg(&careless)).unwrap_err();
}
