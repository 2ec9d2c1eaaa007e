//! Tests of `--locked`, which exits with code 3 if the lock is missing or out of date, and names each outdated entry.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use super::LOCK;
use crate::checkout::{BOXFILE, Checkout, agent_with, files, krunfw, shown, tools};

/// Makes a checkout that has all types of lock entries, and its lock.
fn checkout() -> Checkout {
    let checkout = Checkout::new();
    let all = BOXFILE.replace(
        "    health \"tcp\"\n",
        "    health \"tcp\"\n    binary \"bin/agent\"\n    env-file \"a.env\"\n",
    );
    checkout.write("Boxfile", all);
    checkout.write("a.env", "A=1\n");
    checkout.write("bin/agent", fs::read(&tools().hello_agent).unwrap());
    checkout.result(&["lock"]);
    checkout
}

/// Runs `boxbuild build --locked`, which must fail with exit code 3 and write nothing outside the store. Returns the stderr.
fn refused(checkout: &Checkout, args: &[&str]) -> String {
    let before = files(checkout.root());
    let ran = checkout.run(&[&["build", "--locked"], args].concat());
    assert_eq!((ran.code, ran.result.as_str()), (3, ""), "{}", ran.notes);
    let kept = |(path, _): &(std::path::PathBuf, _)| !path.starts_with("store");
    let outside = |files: Vec<(std::path::PathBuf, Vec<u8>)>| {
        files.into_iter().filter(kept).collect::<Vec<_>>()
    };
    assert!(outside(before) == outside(files(checkout.root())), "something was written");
    shown(&ran.notes)
}

#[test]
fn a_lock_that_fits_passes() {
    let checkout = checkout();
    let lock = checkout.read(LOCK);
    checkout.built(&["--locked"]);
    assert_eq!(checkout.read(LOCK), lock);
    // The build uses the pinned images, although the tag now refers to another image.
    checkout.image("agent", &agent_with("new agent"));
    checkout.built(&["--locked"]);
}

#[test]
fn a_missing_lock() {
    let checkout = checkout();
    fs::remove_file(checkout.path(LOCK)).unwrap();
    insta::assert_snapshot!(refused(&checkout, &[]), @r"
    error: there is no Boxfile.lock, but --locked was given
      = help: run `boxbuild lock`, and check the lock in
    ");
}

#[test]
fn a_changed_skill() {
    let checkout = checkout();
    checkout.write("skills/greet/notes.md", "more");
    insta::assert_snapshot!(refused(&checkout, &[]), @r"
    error: Boxfile.lock is out of date, but --locked was given
      skill:greet: locked blake3:DIG, found blake3:DIG
      = help: review what changed; if it is intended, run `boxbuild lock` and check the lock in
    ");
}

#[test]
fn a_plan_refuses_what_a_build_refuses() {
    let checkout = checkout();
    let lock = checkout.read(LOCK);
    checkout.result(&["plan", "--locked"]);
    checkout.write("skills/greet/notes.md", "more");
    checkout.result(&["plan"]);
    let ran = checkout.run(&["plan", "--locked"]);
    assert_eq!((ran.code, ran.result.as_str()), (3, ""), "{}", ran.notes);
    assert_eq!(shown(&ran.notes), refused(&checkout, &[]));
    assert_eq!(checkout.read(LOCK), lock);
}

#[test]
fn a_changed_file_with_variables() {
    let checkout = checkout();
    checkout.write("a.env", "A=2\n");
    let text = refused(&checkout, &[]);
    assert!(text.contains("  env:a.env: locked sha256:DIG, found sha256:DIG\n"), "{text}");
}

#[test]
fn a_changed_program() {
    let checkout = checkout();
    checkout.write("bin/agent", fs::read(&tools().init).unwrap());
    let text = refused(&checkout, &[]);
    assert!(text.contains("  binary (linux/amd64): locked sha256:DIG, found"), "{text}");
}

#[test]
fn another_init_and_another_kernel() {
    let checkout = checkout();
    // The same program with a byte after its last section.
    let mut init = fs::read(&tools().init).unwrap();
    init.push(0);
    checkout.write("init", init);
    let text = refused(&checkout, &["--init", "init"]);
    assert!(text.contains("  init (linux/amd64): locked sha256:DIG, found"), "{text}");
    // A byte after the last section of libkrunfw does not change the kernel in the box, but the file's digest differs.
    let kernel = krunfw();
    assert_eq!(checkout.run(&["lock", "--kernel", kernel.to_str().unwrap()]).code, 0);
    let mut kernel = fs::read(kernel).unwrap();
    kernel.push(0);
    checkout.write("kernel", kernel);
    let text = refused(&checkout, &["--kernel", "kernel"]);
    assert!(text.contains("  kernel (linux/amd64): locked sha256:DIG, found"), "{text}");
}

#[test]
fn another_reference() {
    let checkout = checkout();
    checkout.edit("Boxfile", "oci:images/agent", "oci:images/agent:latest");
    insta::assert_snapshot!(refused(&checkout, &[]), @r#"
    error: Boxfile.lock is out of date, but --locked was given
      agent (linux/amd64): locked "oci:images/agent", found "oci:images/agent:latest"
      = help: review what changed; if it is intended, run `boxbuild lock` and check the lock in
    "#);
}

/// A tag in the Boxfile that differs from the lock's is refused without a request to the registry.
#[test]
fn another_tag_is_refused_before_its_registry_is_asked() {
    let registry = TcpListener::bind("127.0.0.1:0").unwrap();
    registry.set_nonblocking(true).unwrap();
    let reference = format!("{}/agent:v2", registry.local_addr().unwrap());
    let checkout = checkout();
    checkout.edit("Boxfile", "oci:images/agent", &reference);
    let output = refused(&checkout, &[]).replace(&reference, "REGISTRY/agent:v2");
    insta::assert_snapshot!(output, @r#"
    error: Boxfile.lock is out of date, but --locked was given
      agent (linux/amd64): locked "oci:images/agent", found "docker://REGISTRY/agent:v2"
      = help: review what changed; if it is intended, run `boxbuild lock` and check the lock in
    "#);
    let requests = registry.accept().map(|_| ()).map_err(|error| error.kind());
    assert_eq!(requests, Err(ErrorKind::WouldBlock), "the registry was asked");
    let data = checkout.run(&["build", "--locked", "--json"]);
    assert_eq!(data.code, 3);
    let entry = &data.json()["errors"][0]["entries"][0];
    assert_eq!((&entry["name"], &entry["change"]), (&"agent".into(), &"changed".into()));
    // A build without `--locked` asks the registry.
    let mut build = checkout.boxbuild(&["build"]).stderr(Stdio::null()).spawn().unwrap();
    while registry.accept().is_err() {
        assert!(build.try_wait().unwrap().is_none(), "the registry was not asked");
        thread::sleep(Duration::from_millis(10));
    }
    build.kill().unwrap();
    build.wait().unwrap();
}

/// A profile's image has its own entry in the lock.
#[test]
fn a_profile_that_is_not_locked() {
    let checkout = checkout();
    let profile = "profile \"ci\" {\n    agent { image \"oci:images/none\"; }\n}\n";
    checkout.write("Boxfile", checkout.read("Boxfile") + profile);
    let output = refused(&checkout, &["--profile", "ci"]);
    assert!(output.contains("  ci@agent (linux/amd64): not locked yet\n"), "{output}");
    checkout.built(&["--locked"]);
}

#[test]
fn a_removed_and_an_added_declaration() {
    let checkout = checkout();
    checkout.edit("Boxfile", "skill \"greet\" path=\"skills/greet\"\n", "skills dir=\"skills\"\n");
    checkout.built(&["--locked"]);
    checkout.edit("Boxfile", "skills dir=\"skills\"\n", "");
    checkout.write("b.env", "B=1\n");
    checkout.edit("Boxfile", "env-file \"a.env\"", "env-file \"b.env\"");
    insta::assert_snapshot!(refused(&checkout, &[]), @r"
    error: Boxfile.lock is out of date, but --locked was given
      env:a.env: no longer declared
      env:b.env: not locked yet
      skill:greet: no longer declared
      = help: review what changed; if it is intended, run `boxbuild lock` and check the lock in
    ");
}

#[test]
fn as_data() {
    let checkout = checkout();
    checkout.write("skills/greet/notes.md", "more");
    let ran = checkout.run(&["build", "--locked", "--json"]);
    assert_eq!((ran.code, ran.notes.as_str()), (3, ""));
    let error = &ran.json()["errors"][0];
    assert_eq!(error["message"], "Boxfile.lock is out of date, but --locked was given");
    assert!(error["help"].as_str().unwrap().contains("boxbuild lock"));
    assert_eq!(error["entries"][0]["name"], "skill:greet");
    assert_eq!(error["entries"][0]["change"], "changed");
    assert_ne!(error["entries"][0]["old"], error["entries"][0]["new"]);
    fs::remove_file(checkout.path(LOCK)).unwrap();
    let ran = checkout.run(&["build", "--locked", "--json"]);
    assert_eq!(ran.code, 3);
    assert_eq!(
        ran.json()["errors"][0]["message"],
        "there is no Boxfile.lock, but --locked was given"
    );
}
