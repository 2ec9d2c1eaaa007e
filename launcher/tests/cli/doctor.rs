//! `boxlaunch doctor`, and the try of KVM before a run. The tests pass on hosts with and without KVM.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use boxlaunch::host::ensure_kvm;
use boxlaunch::host::error::KvmError;
use boxlaunch::host::kvm::{DEVICE, try_guest};
use boxlaunch::host::memory::Memory;
use serde_json::Value;
use testkit::test_box::config;

use crate::{Ended, Scene, ended, piped};

const PROGRAM: &str = env!("CARGO_BIN_EXE_boxlaunch");
/// The time limit of a try of KVM. The test guest has one second; the rest is for a busy host.
const SOON: Duration = Duration::from_secs(5);

/// Runs `boxlaunch doctor ARGS` with the value `path` of `PATH`.
fn doctor(args: &[&str], path: &str) -> Ended {
    let state = tempfile::tempdir().unwrap();
    let mut command = Command::new(PROGRAM);
    command.arg("doctor").args(args).env("BOXLAUNCH_STATE", state.path()).env("PATH", path);
    command.env("XDG_CACHE_HOME", state.path());
    ended(piped(command))
}

fn opens() -> bool {
    File::options().read(true).write(true).open(DEVICE).is_ok()
}

#[test]
fn a_guest_is_tried_in_a_moment_and_the_answer_is_remembered() {
    let state = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let first = ensure_kvm(Path::new(PROGRAM), state.path());
    assert!(began.elapsed() < SOON, "{first:?} after {:?}", began.elapsed());
    match first.clone() {
        Ok(_) => assert!(opens()),
        Err(KvmError::Unusable(reason) | KvmError::Failed(reason)) => {
            assert!(opens());
            assert!(!reason.is_empty() && !reason.contains('\n'), "{reason:?}");
        }
        Err(error) => assert!(!opens(), "{error}"),
    }
    let known = Memory::new(state.path(), Path::new(DEVICE)).recall();
    match &first {
        // On a very busy host, the test guest does not end in time. That result is not stored.
        Ok(_) => assert!(known.is_none_or(|it| it.is_ok())),
        Err(KvmError::Unusable(_)) => {
            assert_eq!(known, Some(first.clone().map(drop)));
            // The stored result is used, so this program is not started.
            assert_eq!(ensure_kvm(Path::new("/no/such/program"), state.path()), first);
        }
        Err(_) => assert_eq!(known, None),
    }
}

#[test]
fn a_host_without_the_device_is_told_so() {
    let error = try_guest(Path::new(PROGRAM), Path::new("/no/such/kvm")).unwrap_err();
    assert_eq!(error, KvmError::Missing("/no/such/kvm".into()));
}

#[test]
fn a_run_is_refused_where_no_guest_runs() {
    let scene = Scene::new(&config());
    let unusable = KvmError::Unusable("it stops early".to_owned());
    let memory = Memory::new(scene.state.path(), Path::new(DEVICE));
    memory.note(&Err(unusable));
    if memory.recall().is_none() || !opens() {
        return; // There is no KVM here to remember anything about.
    }
    let refused = scene.run(&["run"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
    let path = scene.made.path().display().to_string();
    insta::assert_snapshot!(refused.stderr.replace(&path, "a.box"), @"
    error: this host's KVM cannot run a guest: it stops early
      = help: run the box slowly without KVM: `boxlaunch run --emulated a.box`; `boxlaunch doctor` shows what this host offers
    ");
}

#[test]
fn the_rows_fit_the_host() {
    let nothing = doctor(&["--json"], "/nonexistent");
    let report: Value = serde_json::from_str(&nothing.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names[..4], ["kvm", "qemu", "host-kernel", "jail"]);
    let [layers @ .., "passt"] = &names[4..] else { panic!("{names:?}") };
    let whole = &rows[3];
    assert_eq!(whole["state"] != "ok", !layers.is_empty(), "{names:?}");
    // The jail is missing only if it could not be tried, because this host has no KVM.
    assert_eq!(whole["state"] == "missing", !opens(), "{whole}");
    for row in rows {
        assert_eq!(row["help"].is_null(), row["state"] == "ok", "{row}");
        let fact = row["fact"].as_str().unwrap();
        assert!(!fact.is_empty() && !fact.contains('\n'), "{row}");
    }
    assert_eq!(
        (&rows[1]["state"], &rows.last().unwrap()["state"]),
        (&"missing".into(), &"missing".into())
    );
    if !opens() {
        assert_eq!(rows[0]["state"], "missing");
    }
    let works = rows[0]["state"] == "ok";
    assert_eq!(report["boots"], if works { "kvm".into() } else { Value::Null });
    assert_eq!(nothing.code, Some(if works { 0 } else { 1 }));
    assert_eq!(report["errors"].is_null(), works);
}

#[test]
fn an_emulator_is_enough() {
    let tools = tempfile::tempdir().unwrap();
    let emulator = tools.path().join("qemu-system-x86_64");
    fs::write(&emulator, "#!/bin/sh\necho QEMU emulator version 7.2.0\n").unwrap();
    fs::set_permissions(&emulator, Permissions::from_mode(0o755)).unwrap();
    let path = tools.path().to_str().unwrap();
    let alone = doctor(&["--json"], path);
    let alone: Value = serde_json::from_str(&alone.stdout).unwrap();
    assert_ne!(alone["boots"], "emulated", "there is neither a kernel for it nor apt: {alone}");
    for fetcher in virtual_host::programs::fetchers() {
        fs::copy(&emulator, tools.path().join(fetcher)).unwrap();
    }
    let table = doctor(&[], path);
    assert_eq!((table.code, table.stderr.as_str()), (Some(0), ""));
    let found = table.stdout.lines().find(|line| line.starts_with("  QEMU ")).unwrap();
    assert!(found.contains(" ok "), "{found}");
    let quiet = doctor(&["-q"], path);
    assert!(!quiet.stdout.contains("QEMU "), "{}", quiet.stdout);
}
