//! A box with declarations that this version of boxlaunch does not support can be inspected and verified, but not run.

use box_contract::wire::{OLDEST_PROTOCOL, PROTOCOL};
use box_contract::{
    BoxConfig, CapPlan, NetworkMode, Scope, ScratchPlan, SecretDelivery, SecretPlan, SharePlan,
    SkillMode, SkillPlan,
};
use serde_json::Value;

use crate::Scene;
use testkit::test_box::config;

/// Returns a config with the unsupported declarations of [`LINES`], and with supported ones that must not be reported.
fn demanding() -> BoxConfig {
    let mut config = config();
    let plan = &mut config.plan;
    plan.tools = vec!["bash".into()];
    plan.agent.rlimits.nproc = Some(64);
    plan.skills =
        vec![SkillPlan { name: "greet".into(), mode: SkillMode::Mounted, ..SkillPlan::default() }];
    plan.shares = vec![SharePlan {
        name: "data".into(),
        guest: "/data".into(),
        access: box_contract::Access::ReadOnly,
        scope: Scope::Both,
        host: None,
    }];
    let guest = "/scratch".into();
    plan.scratch =
        vec![ScratchPlan { name: "tmp".into(), guest, size_bytes: 1 << 20, scope: Scope::Agent }];
    plan.network.mode = NetworkMode::CapOnly;
    plan.secrets = vec![SecretPlan {
        name: "API_KEY".into(),
        scope: Scope::Agent,
        delivery: SecretDelivery::Env,
    }];
    plan.caps = vec![CapPlan::Payments];
    config
}

const LINES: &str = r#"  agent rlimits nproc: it has no effect on root, and the component runs as root; use `limits pids`, or another `user`
  cap "payments": not supported: no provider of payments is known to boxlaunch; `service` reaches the API of one, with its key on the host
"#;

#[test]
fn run_names_every_declaration_and_starts_nothing() {
    let scene = Scene::new(&demanding());
    let ended = scene.run(&["run"]);
    assert_eq!(
        ended.stderr,
        format!(
            "error: this version of boxlaunch cannot run a box with these declarations:\n{LINES}\
             \x20 = help: remove these declarations from the Boxfile and build the box again, or use a \
             newer boxlaunch\n"
        )
    );
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    // There is not even a receipt of the verification, which runs while the VM starts.
    assert_eq!(std::fs::read_dir(scene.state.path()).unwrap().count(), 0);
}

#[test]
fn a_refusal_leaves_the_console_file_alone() {
    let scene = Scene::new(&demanding());
    let console = scene.state.path().join("console");
    std::fs::write(&console, "of another run").unwrap();
    let ended = scene.run(&["run", "--console", console.to_str().unwrap()]);
    assert_eq!(ended.code, Some(1));
    assert_eq!(std::fs::read_to_string(console).unwrap(), "of another run");
}

#[test]
fn inspect_shows_what_is_not_enforced() {
    let scene = Scene::new(&demanding());
    let ended = scene.run(&["inspect"]);
    let section = format!("\nboxlaunch will not start this box\n{LINES}\n");
    assert!(ended.stdout.contains(&section), "{}", ended.stdout);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));

    let json: Value = serde_json::from_str(&scene.run(&["inspect", "--json"]).stdout).unwrap();
    let declared = json["unsupported"].as_array().unwrap();
    assert_eq!(declared.len(), LINES.lines().count());
    assert_eq!(declared[1]["declaration"], "cap \"payments\"");
}

#[test]
fn a_box_that_init_would_refuse_is_not_booted() {
    let mut config = config();
    config.plan.agent.workdir = "/dev/shm".into();
    let scene = Scene::new(&config);
    let ended = scene.run(&["run"]);
    assert_eq!(
        ended.stderr,
        "error: the box cannot be run: agent workdir \"/dev/shm\": it is in /proc, /sys or /dev, \
         which are the kernel's; choose another directory\n  \
         = help: build the box again with this version of boxbuild\n"
    );
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert_eq!(std::fs::read_dir(scene.state.path()).unwrap().count(), 0);
}

#[test]
fn a_box_whose_init_speaks_another_protocol_is_not_booted() {
    let scene = Scene::new(&BoxConfig { protocol: Some(PROTOCOL + 1), ..config() });
    let ended = scene.run(&["run"]);
    let (newer, spoken) = (PROTOCOL + 1, format!("{OLDEST_PROTOCOL} to {PROTOCOL}"));
    let error = format!(
        "error: the box's init speaks protocol {newer}, but this boxlaunch speaks {spoken}\n  \
         = help: build the box again, with `boxbuild build`, or use the boxlaunch of the boxbuild that \
         built it\n"
    );
    assert_eq!(ended.stderr, error);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert_eq!(std::fs::read_dir(scene.state.path()).unwrap().count(), 0);
    assert_eq!(scene.run(&["inspect"]).code, Some(0), "it can be looked at");
}

#[test]
fn limits_beyond_all_numbers_are_more_than_any_memory() {
    let mut config = config();
    config.plan.agent.limits.memory_bytes = u64::MAX;
    config.plan.business.as_mut().unwrap().limits.memory_bytes = 1 << 20;
    let ended = Scene::new(&config).run(&["run", "--memory", "1024"]);
    let error = "its components may take 17179869183.9 GiB of memory, but the VM has only 256 MiB";
    assert!(ended.stderr.contains(error), "{}", ended.stderr);
    assert_eq!(ended.code, Some(1));
}

#[test]
fn a_machine_smaller_than_the_boxs_needs_more_memory_than_the_limits_too() {
    let ended = Scene::new(&config()).run(&["run", "--memory", "128"]);
    let error = "error: --memory is too little: the components' limits are 128.0 MiB";
    assert!(ended.stderr.starts_with(error), "{}", ended.stderr);
    assert_eq!(ended.code, Some(2));
}

#[test]
fn verify_minds_the_bytes_alone() {
    assert_eq!(Scene::new(&demanding()).run(&["verify"]).code, Some(0));
}

#[test]
fn a_box_without_such_declarations_is_not_refused() {
    let scene = Scene::new(&config());
    let ended = scene.run(&["inspect"]);
    assert!(!ended.stdout.contains("will not start"), "{}", ended.stdout);
    let json: Value = serde_json::from_str(&scene.run(&["inspect", "--json"]).stdout).unwrap();
    assert_eq!(json["unsupported"], serde_json::json!([]));
}

/// Mistakes that do not depend on each other are reported together, and before KVM is tried.
#[test]
fn all_mistakes_of_a_command_line_are_reported() {
    let ended = Scene::new(&config()).run(&["run", "--memory", "128", "--secret", "A=file:a"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    for error in ["error: the box declares no secret A\n", "error: --memory is too little"] {
        assert!(ended.stderr.contains(error), "{}", ended.stderr);
    }
    for name in ["a b", "../x"] {
        let ended = Scene::new(&config()).run(&["run", "--name", name]);
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains("'--name <NAME>': use letters, digits,"), "{}", ended.stderr);
    }
}

#[test]
fn a_disk_is_neither_too_small_nor_larger_than_it_may_be() {
    let mut config = config();
    config.plan.disk_bytes = Some(16 << 20);
    let scene = Scene::new(&config);
    let small = scene.run(&["run", "--disk", "1MiB"]);
    let error = "error: invalid value '1MiB' for '--disk <SIZE>': write a size from 16MiB to 1024GiB, such as 64MiB, or `none`\n";
    assert!(small.code == Some(2) && small.stderr.starts_with(error), "{small:?}");
    let large = scene.run(&["run", "--max-scratch", "15MiB"]);
    assert_eq!(
        (large.code, large.stderr.as_str()),
        (
            Some(1),
            "error: the box asks for disks of 16.0 MiB, but may have only 15.0 MiB\n  = help: give it a \
             smaller disk with `--disk SIZE`; or, if it may write so much to this host's disk: `--max-scratch \
             1GiB` (without it, half of the free space)\n"
        )
    );
}
