//! Tests of `boxbuild setup`, which installs the kernel that builds use by default.

use std::{env, fs};

use serde_json::json;
use test_server::{Identity, Server, file};

use crate::checkout::{Checkout, Ran, krunfw};

/// Runs `boxbuild` with `data` as the user's data directory, and without `BOXBUILD_KERNEL` and programs in `PATH`.
fn run(checkout: &Checkout, args: &[&str]) -> Ran {
    let mut command = checkout.boxbuild(args);
    command.env_remove("BOXBUILD_KERNEL").env("XDG_DATA_HOME", checkout.path("data"));
    Ran::of(command.env("PATH", checkout.path("no-programs")))
}

#[test]
fn a_build_takes_the_kernel_that_was_set_up() {
    let checkout = Checkout::new();
    let kernel = krunfw();
    let from = kernel.to_str().unwrap();
    let expected = checkout.run(&["build", "--kernel", from, "--json"]).json()["box"].clone();
    let ran = run(&checkout, &["setup", "--from", from]);
    assert!(ran.result.starts_with("guest kernel Linux version "), "{}{}", ran.result, ran.notes);
    let place = checkout.path("data/boxbuild/guest-kernel");
    assert!(ran.result.ends_with(&format!(" is now in {}\n", place.display())), "{}", ran.result);
    assert_eq!(fs::read(&place).unwrap(), fs::read(from).unwrap());
    let built = run(&checkout, &["build", "--json", "-o", "again.box"]).json();
    assert_eq!(built["box"], expected);

    let again = run(&checkout, &["setup", "--from", from]);
    assert!(again.result.contains(" is already in "), "{}", again.result);
    let report = run(&checkout, &["setup", "--from", from, "--json"]).json();
    assert_eq!((&report["kernel"], &report["changed"]), (&json!(place), &json!(false)));
    let version = report["version"].as_str().unwrap();
    assert!(again.result.starts_with(&format!("guest kernel {version} ")), "{report}");
}

#[test]
fn what_is_no_kernel_leaves_the_one_that_is_there() {
    let checkout = Checkout::new();
    let place = checkout.path("data/boxbuild/guest-kernel");
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(&place, "the kernel before").unwrap();
    let ran = run(&checkout, &["setup", "--from", "Boxfile"]);
    insta::assert_snapshot!(ran.notes, @"
    error: Boxfile cannot be used: it is neither libkrunfw.so for x86-64 nor an uncompressed ELF kernel
      = help: name a libkrunfw.so.5 or an uncompressed ELF kernel (vmlinux); `boxbuild setup` gets one that boxes can have
    ");
    let ran = run(&checkout, &["setup", "--from", "missing", "--json"]).json();
    assert_eq!(ran["errors"][0]["code"], "io");
    let other = "0".repeat(64);
    let ran = run(&checkout, &["setup", "--from", "Boxfile", "--sha256", &other, "--json"]).json();
    assert_eq!(ran["errors"][0]["code"], "digest-mismatch");
    assert_eq!(fs::read(&place).unwrap(), b"the kernel before");
    assert_eq!(fs::read_dir(place.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn without_pip_the_error_names_the_other_ways() {
    let checkout = Checkout::new();
    let ran = run(&checkout, &["setup"]);
    insta::assert_snapshot!(ran.notes, @"
    downloading microsandbox==0.7.11, which has libkrunfw 5.6.1, with pip
    error: there is no python3 with pip
      = help: install pip (Debian: apt-get install python3-pip), or name a kernel with --from FILE or URL
    ");
    assert_eq!(run(&checkout, &["setup", "--sha256", &"0".repeat(64)]).code, 2);
}

/// `fetch` on a host that has neither run `boxbuild setup` nor a build, such as a CI's.
#[test]
fn fetch_gets_the_kernel_too() {
    let checkout = Checkout::new();
    let run = |args: &[&str]| {
        let mut command = checkout.boxbuild(args);
        command.env_remove("BOXBUILD_KERNEL").env("XDG_DATA_HOME", checkout.path("data"));
        let of_pip = |(name, _): &(std::ffi::OsString, _)| {
            name.to_str().is_some_and(|name| name.starts_with("PIP_") || name == "PATH")
        };
        Ran::of(command.envs(env::vars_os().filter(of_pip)))
    };
    let missing = run(&["fetch", "--offline", "--json"]).json();
    assert_eq!(missing["errors"][0]["code"], "kernel-not-found");
    let fetched = run(&["fetch"]);
    assert_eq!(fetched.code, 0, "{}", fetched.notes);
    let kernel = fs::read(checkout.path("data/boxbuild/guest-kernel")).unwrap();
    assert!(kernel == fs::read(krunfw()).unwrap());
    let built = run(&["build", "--locked", "--offline"]);
    assert_eq!(built.code, 0, "{}", built.notes);
}

/// Python searches the current directory for modules first, and a checkout may come from a stranger.
#[test]
fn no_python_code_of_the_current_directory_is_run() {
    let checkout = Checkout::new();
    let code = "open('PLANTED', 'w')\n";
    checkout.write("pip/__init__.py", code);
    for file in ["pip/__main__.py", "json.py", "ssl.py", "sitecustomize.py"] {
        checkout.write(file, code);
    }
    let mut setup = checkout.boxbuild(&["setup", "--json"]);
    setup.env("XDG_DATA_HOME", checkout.path("data")).env("PATH", env::var_os("PATH").unwrap());
    // No server answers at this address, so pip fails soon.
    setup.env("PIP_INDEX_URL", "http://127.0.0.1:9/").env("PIP_RETRIES", "0");
    let ran = Ran::of(&mut setup);
    assert_eq!(ran.code, 1, "{}", ran.result);
    assert!(!checkout.path("PLANTED").exists() && !checkout.path("data/PLANTED").exists());
}

#[test]
fn a_kernel_from_a_server_must_have_its_sha256() {
    let checkout = Checkout::new();
    let kernel = fs::read(krunfw()).unwrap();
    let sha256 = box_digest::Digest::of(&kernel).hex();
    let server = Server::start(Identity::None, |_| move |_: &_| file(&kernel));
    let url = server.url("/libkrunfw.so.5");
    let ran = run(&checkout, &["setup", "--from", &url, "--json"]).json();
    assert_eq!(ran["errors"][0]["code"], "digest-mismatch", "the package's is expected");
    let ran = run(&checkout, &["setup", "--from", &url, "--sha256", &sha256, "--json"]).json();
    assert_eq!(ran["sha256"], format!("sha256:{sha256}"));
    assert_eq!(run(&checkout, &["setup", "--from", "ftp://host/kernel"]).code, 2);
}
