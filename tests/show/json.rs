//! Tests that all output with `--json` conforms to `docs/json.schema.json`.

use std::collections::BTreeSet;
use std::fs;

use box_contract::manifest::{KERNEL_TYPE, METADATA_TYPE};
use serde_json::{Value, json};
use testkit::images::Layer;

use crate::checkout::{BOXFILE, Checkout, Ran, business_with, tools};
use crate::fixture::{blob, built, checkout, manifest};
use crate::foreign::boxlaunch;
use crate::schema::assert_fits;

/// Runs `boxbuild --json`, whose report must conform to the schema's `definition`.
#[track_caller]
fn fits(checkout: &Checkout, definition: &str, args: &[&str]) -> Value {
    let ran = checkout.run(&[args, &["--json"]].concat());
    assert_eq!(ran.result.lines().count(), 1, "{}", ran.result);
    assert_fits(definition, &ran.json());
    ran.json()
}

#[test]
fn reports_of_what_a_build_does() {
    let checkout = checkout();
    fits(&checkout, "check", &["check"]);
    fits(&checkout, "check", &["check", "--images"]);
    let lock = fits(&checkout, "lock", &["lock"]);
    assert_eq!(lock["changes"][0]["change"], "added");
    fits(&checkout, "plan", &["plan"]);
    fits(&checkout, "build", &["build"]);
    fits(&checkout, "why", &["why"]);
    checkout.write("Boxfile", format!("{BOXFILE}cap \"payments\"\n"));
    checkout.write("skills/greet/SKILL.md", "---\nname: greet\ndescription: Other.\n---\n");
    checkout.agent_of(Layer::new().file("/agent", 0o755, "new").to_tar());
    let update = fits(&checkout, "lock", &["update", "--dry-run"]);
    assert_eq!(update["changes"][0]["change"], "changed");
    let ran = checkout.run(&["build", "--json"]);
    assert_fits("failure", &ran.json());
    let ran = checkout.run(&["update", "--json"]);
    assert_fits("lock", &ran.json());
    let ran = checkout.run(&["build", "--json"]);
    assert_fits("build", &ran.json());
    fits(&checkout, "why", &["why"]);
    let warnings = ran.json()["warnings"].as_array().unwrap().clone();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0]["message"].as_str().unwrap().contains("will not start"), "{warnings:?}");
    assert_eq!(ran.notes, "", "as data, warnings are in the report");
    fits(&checkout, "fmt", &["fmt"]);
}

#[test]
fn a_first_boxfile() {
    let checkout = Checkout::new();
    fs::remove_file(checkout.path("Boxfile")).unwrap();
    let report = fits(&checkout, "init", &["init", "oci:images/agent"]);
    let images = json!([{ "component": "agent", "image": "oci:images/agent" }]);
    assert_eq!((&report["file"], &report["images"]), (&json!("Boxfile"), &images));
    let report = fits(&checkout, "init", &["init", "--agent", "a3s-code", "--force"]);
    assert_eq!(report["program"], "a3s-code");
}

#[test]
fn a_kernel_that_is_set_up() {
    let checkout = Checkout::new();
    let kernel = tools().kernel.to_str().unwrap();
    let mut setup = checkout.boxbuild(&["setup", "--from", kernel, "--json"]);
    let ran = Ran::of(setup.env("XDG_DATA_HOME", checkout.path("data")));
    assert_fits("setup", &ran.json());
    assert_eq!((ran.result.lines().count(), &ran.json()["changed"]), (1, &json!(true)));
}

#[test]
fn reports_on_boxes() {
    let checkout = built();
    fits(&checkout, "ls", &["ls", "test.box"]);
    fits(&checkout, "inspect", &["inspect", "test.box"]);
    for format in ["erofs", "tar", "dir", "oci"] {
        let component = ["--component", "agent"];
        let component = if format == "oci" { &component[..] } else { &[] };
        fits(
            &checkout,
            "export",
            &[&["export", "test.box", "--format", format], component].concat(),
        );
    }
    let agent = ["diff", "test.box", "oci:images/business", "--component", "agent"];
    let report = fits(&checkout, "diff", &agent);
    let changes: BTreeSet<_> = report["differences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["change"].to_string())
        .collect();
    assert_eq!(changes.len(), 3, "{changes:?}");
    fits(&checkout, "diff", &["diff", "test.box", "./skills"]);
    fits(&checkout, "box-verify", &["verify", "test.box"]);
    fits(&checkout, "rebuild", &["verify", "--rebuild", "test.box"]);
    checkout.image("business", &business_with("another app"));
    checkout.result(&["update"]);
    fits(&checkout, "rebuild", &["verify", "--rebuild", "test.box"]);
    checkout.built(&["--output", "new.box"]);
    checkout.write("skills/greet/more.md", "more");
    checkout.result(&["lock"]);
    fits(&checkout, "rebuild", &["verify", "--rebuild", "new.box"]);
    let inspect = boxlaunch(&checkout, &["inspect", "test.box", "--json"]);
    assert_fits("launch-inspect", &inspect.json());
    assert_fits("verify", &boxlaunch(&checkout, &["verify", "test.box", "--json"]).json());
    let command = ["check-command", "test.box", "--json", "--", "git", "push"];
    assert_fits("check-command", &boxlaunch(&checkout, &command).json());
    let manifest = manifest(&checkout);
    // Removes the store, which has the blob that is removed from the box.
    fs::remove_dir_all(checkout.path("store")).unwrap();
    fs::remove_file(blob(&checkout, &manifest.blob(KERNEL_TYPE).unwrap().digest)).unwrap();
    let wrong = boxlaunch(&checkout, &["verify", "test.box", "--json"]);
    assert_fits("verify", &wrong.json());
    assert_eq!((wrong.code, &wrong.json()["ok"]), (5, &json!(false)));
    assert!(blob(&checkout, &manifest.blob(METADATA_TYPE).unwrap().digest).is_file());
}

#[test]
fn a_host() {
    // Without `PATH`, `doctor` finds no emulator, so its report contains errors on many hosts.
    let checkout = checkout();
    assert_fits("doctor", &boxlaunch(&checkout, &["doctor", "--json"]).json());
}

#[test]
fn names_with_which_a_command_has_succeeded() {
    let checkout = checkout();
    let report = |args: &[&str]| boxlaunch(&checkout, args).json();
    assert_fits("volumes", &report(&["volume", "create", "work", "--size", "8m", "--json"]));
    let removed = report(&["volume", "rm", "work", "none", "--json"]);
    assert_fits("named", &removed);
    assert_eq!(removed["names"], json!(["work"]));
    assert_fits("named", &report(&["stop", "--all", "--json"]));
    assert_fits("snapshots", &report(&["snapshot", "ls", "--json"]));
    assert_fits("named", &report(&["snapshot", "rm", "none", "--json"]));
}

#[test]
fn failures() {
    let checkout = checkout();
    fits(&checkout, "failure", &["inspect", "images/agent"]);
    fits(&checkout, "failure", &["build", "--locked"]);
    assert_fits("failure", &boxlaunch(&checkout, &["run", "nothing", "--json"]).json());
    checkout.write("Boxfile", format!("{BOXFILE}layout \"merged\"\n"));
    let conflicts = fits(&checkout, "failure", &["build"]);
    assert!(conflicts["errors"][0]["advice"][0]["declaration"].is_string(), "{conflicts:#}");
    let plan = fits(&checkout, "plan", &["plan"]);
    assert!(plan["composition"]["conflicts"][0]["path"].is_string(), "{plan:#}");
    checkout.write("Boxfile", format!("{BOXFILE}  colour \"red\"\n"));
    let wrong = fits(&checkout, "failure", &["check"]);
    assert_eq!(wrong["errors"][0]["labels"][0]["primary"], true);
    checkout.write("Boxfile", BOXFILE.replace("    ", " "));
    let unformatted = fits(&checkout, "failure", &["fmt", "--check"]);
    assert_eq!(unformatted["errors"][0]["files"], json!(["Boxfile"]));
}

#[test]
fn the_schema_refuses_what_it_does_not_know() {
    let report = json!({ "errors": [] });
    assert_fits("failure", &report);
    for other in [json!({ "errors": [], "more": 1 }), json!({}), json!([])] {
        assert!(std::panic::catch_unwind(|| assert_fits("failure", &other)).is_err(), "{other}");
    }
}

#[test]
fn every_reference_of_the_schema_resolves() {
    let schema: Value = serde_json::from_str(include_str!("../../docs/json.schema.json")).unwrap();
    let mut open = vec![&schema];
    while let Some(value) = open.pop() {
        if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(schema.pointer(pointer).is_some(), "{reference}");
        }
        match value {
            Value::Array(list) => open.extend(list),
            Value::Object(table) => open.extend(table.values()),
            _ => {}
        }
    }
    // Checks that docs/json.md has each command's definition, also for reports that need a VM and are not tested here.
    let page = include_str!("../../docs/json.md");
    for definition in schema["$defs"].as_object().unwrap().keys() {
        let command = schema["$defs"][definition]["description"].as_str().unwrap();
        let is_command = command.starts_with("`boxbuild") || command.starts_with("`boxlaunch");
        assert!(!is_command || page.contains(&format!("`{definition}`")), "{definition}");
    }
}
