//! Boots with hostile run plans: each start ends soon, with one error that names the reason.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use box_contract::manifest::METADATA_TYPE;
use erofs_writer::{Meta, Node};
use serde_json::{Value, json};
use testkit::test_box::BoxFiles;

use crate::erofs::model::Model;
use crate::erofs::{build, replace_rootfs};
use crate::scenario::{Scenario, Step, bake, blob, hello_checkout, manifest, tools};

/// Returns `config` with `to` in place of the first `from`.
fn with(config: &str, from: &str, to: &str) -> Vec<u8> {
    assert!(config.contains(from), "{from}: {config}");
    config.replacen(from, to, 1).into()
}

/// Returns configs that the launcher would refuse, most of them for their plan: a name, the config, and a part of init's error.
fn refused(config: &str) -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let text = |text: &str| text.as_bytes().to_vec();
    let long = format!("{{\"{}\":", "a".repeat(300_000));
    let (plan, pids) = (r#""plan":{"#, r#""pids":"#);
    let parsed: Value = serde_json::from_str(config).unwrap();
    vec![
        ("empty", text(""), "parse the run plan: EOF while parsing a value"),
        ("cut", text(&config[..config.len() / 2]), "parse the run plan: EOF while parsing"),
        ("more", text(&format!("{config}{{}}")), "parse the run plan: trailing characters"),
        // The plan alone, as a box of epoch 3 has it in its rootfs.
        ("bare", text(&parsed["plan"].to_string()), "parse the run plan: unknown field `"),
        ("none", with(config, plan, r#""plan":null,"x":{"#), "invalid type: null"),
        ("double", with(config, plan, r#""epoch":4,"plan":{"#), "duplicate field `epoch`"),
        ("other", with(config, plan, r#""plans":{"#), "unknown field `plans`"),
        ("huge", vec![b'['; 10 << 20], "it is longer than 1114112 bytes"),
        ("nested", vec![b'['; 1 << 20], "parse the run plan: "),
        (
            "deep",
            with(config, "\"name\":", &format!("\"deep\":{}", "[".repeat(5000))),
            "unknown field",
        ),
        ("latin", latin(&config.replacen("erofs", "er\u{f6}fs", 1)), "invalid unicode code point"),
        (
            "type",
            with(config, r#""agent":{"#, r#""agent":7,"business":{"#),
            "invalid type: integer `7`",
        ),
        ("negative", with(config, pids, r#""pids":-1,"x":"#), "invalid value: integer `-1`"),
        (
            "wide",
            with(config, pids, r#""pids":18446744073709551616,"x":"#),
            "invalid type: floating point",
        ),
        ("twice", with(config, pids, r#""cpu-weight":1,"pids":"#), "duplicate field `cpu-weight`"),
        (
            "nul",
            with(config, r#""workdir":"/"#, r#""workdir":"/a\u0000b"#),
            "agent workdir: it has a NUL byte",
        ),
        (
            "dots",
            with(config, r#""root":"/roots"#, r#""root":"/roots/../.."#),
            "it is not normalized",
        ),
        ("absent", with(config, r#""root":"/roots/"#, r#""root":"/roots/none/"#), "No such file"),
        ("long", text(&long), "parse the run plan: unknown field `aaa"),
    ]
}

/// Encodes text in Latin-1.
fn latin(text: &str) -> Vec<u8> {
    text.chars().map(|it| u8::try_from(it).unwrap()).collect()
}

/// Returns a rootfs with the directories that init needs before it reads the config, and with `config` at `/config`, from where
/// `swap-init` reads it instead of the launcher's config.
fn rootfs(config: Vec<u8>) -> Vec<u8> {
    let meta = || Meta { mode: 0o755, ..Meta::default() };
    let mut model = Model::new(meta());
    for directory in ["/dev", "/proc", "/run", "/sys", "/roots"] {
        model.add(directory.as_bytes(), meta(), Node::Directory);
    }
    model.add_file(b"/config", meta(), config);
    model.image()
}

/// Copies a box. The blobs are hard links, so they must not be changed.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.join("blobs/sha256")).unwrap();
    for file in ["oci-layout", "index.json"] {
        fs::copy(from.join(file), to.join(file)).unwrap();
    }
    for blob in fs::read_dir(from.join("blobs/sha256")).unwrap() {
        let blob = blob.unwrap();
        fs::hard_link(blob.path(), to.join("blobs/sha256").join(blob.file_name())).unwrap();
    }
}

/// Changes the plan of a box.
pub(crate) fn change_plan(bundle: &Path, change: impl FnOnce(&mut Value)) {
    BoxFiles::of(bundle).edit_config(|config| change(&mut config["plan"]));
}

/// The text that a successful start prints.
const READY: &str = "is ready after";
/// A change of a valid plan.
type Change = fn(&mut Value);
/// Changed plans that the launcher accepts: a name, the change, and a text that the start prints.
const ACCEPTED: [(&str, Change, &str); 7] = [
    (
        "program",
        |plan| plan["agent"]["argv"] = json!(["/no/such/program"]),
        "ended with status 127",
    ),
    (
        "checker",
        |plan| plan["agent"]["health"] = json!({"kind": "exec", "argv": ["/none"]}),
        "its health check: ",
    ),
    (
        "skill",
        |plan| plan["skills"] = json!([{"name": "../../proc"}]),
        "its skill \"../../proc\": ",
    ),
    ("root", |plan| plan["agent"]["root"] = json!("/boxbuild"), "error: "),
    ("small", |plan| plan["agent"]["limits"]["memory-bytes"] = json!(0), "error: "),
    (
        "great",
        |plan| plan["agent"]["limits"]["memory-bytes"] = json!(u64::MAX),
        "its components may take 17179869183.9 GiB of memory",
    ),
    ("up", |plan| plan["agent"]["workdir"] = json!("/../../../../tmp/../../x"), READY),
];

/// Starts of boxes: the name of the box, the result, and a text that the start must have printed.
type Starts = Vec<(&'static str, Step, &'static str)>;

/// The starts of boxes with a config of [`refused`], and of boxes with a plan of [`ACCEPTED`].
static STARTS: LazyLock<(Starts, Starts)> = LazyLock::new(|| {
    let (dir, boxes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let refused = make_refused(dir.path(), boxes.path());
    make_accepted(dir.path(), boxes.path());
    let accepted = ACCEPTED.map(|(name, _, reason)| (name, reason));
    let names = refused.iter().chain(&accepted).map(|(name, _)| name);
    let scenario = names.fold(Scenario::default(), |scenario, name| {
        let run = "boxlaunch run --budget off --startup-timeout 2 --until-ready";
        // The files of each box are hashed before its first start.
        let verify = format!("boxlaunch verify /boxes/{name}");
        let scenario = scenario.step_within(20, &format!("{name}-verified"), &verify);
        scenario.step(name, &format!("{run} /boxes/{name}"))
    });
    let mut steps = scenario.start(&tools().host.clone().disk(boxes.path(), "/boxes"));
    let mut take = |(name, reason)| (name, steps.remove(name).unwrap(), reason);
    (refused.into_iter().map(&mut take).collect(), accepted.into_iter().map(&mut take).collect())
});

fn make_refused(dir: &Path, boxes: &Path) -> Vec<(&'static str, &'static str)> {
    let base = dir.join("base.box");
    build(dir, &tools().programs.swap_init, &base);
    let config = fs::read_to_string(blob(&base, &manifest(&base).config)).unwrap();
    let made = refused(&config).into_iter().map(|(name, damaged, reason)| {
        let bundle = boxes.join(name);
        copy(&base, &bundle);
        replace_rootfs(&bundle, &[(METADATA_TYPE, &rootfs(damaged))]);
        (name, reason)
    });
    made.collect()
}

fn make_accepted(dir: &Path, boxes: &Path) {
    let (boxfile, base) = (dir.join("hello.kdl"), dir.join("hello.box"));
    let text = hello_checkout(dir).replace("skill \"greet\" path=\"skills/greet\"", "");
    fs::write(&boxfile, text).unwrap();
    bake(&boxfile, &tools().programs.box_init, &base);
    for (name, change, _) in ACCEPTED {
        let bundle = boxes.join(name);
        copy(&base, &bundle);
        change_plan(&bundle, change);
    }
}

/// Checks that a start has failed by itself, with exactly one error, and returns its line.
#[track_caller]
fn error<'a>(name: &str, step: &'a Step) -> &'a str {
    let errors: Vec<&str> = step.stderr.lines().filter(|it| it.starts_with("error: ")).collect();
    let [error] = errors[..] else { panic!("{name}: {step:?}") };
    assert_eq!((step.status, step.stdout.as_str()), (1, ""), "{name}: {step:?}");
    assert!(!step.stderr.contains("panic"), "{name}: {step:?}");
    error
}

fn a_plan_that_init_refuses_ends_the_start_with_its_reason() {
    for (name, step, reason) in &STARTS.0 {
        println!("{name}: {step:?}");
        let error = error(name, step);
        let is_inits = error.starts_with("error: the guest failed to ");
        assert!(is_inits && error.contains(reason), "{name}: {error}");
    }
}

fn a_plan_that_the_launcher_accepts_is_carried_out_or_ends_the_start_with_its_reason() {
    for (name, step, reason) in &STARTS.1 {
        println!("{name}: {step:?}");
        if *reason == READY {
            assert!(step.status == 0 && step.stderr.contains(reason), "{name}: {step:?}");
        } else {
            assert!(error(name, step).contains(reason), "{name}: {step:?}");
        }
    }
}

tests![
    a_plan_that_init_refuses_ends_the_start_with_its_reason,
    a_plan_that_the_launcher_accepts_is_carried_out_or_ends_the_start_with_its_reason
];
