//! Tests of `boxbuild check --images`, which checks every profile against the images without building.

use serde_json::{Value, json};
use testkit::images::{Config, Image, Layer};

use crate::checkout::{BOXFILE, Checkout};

/// Makes a checkout whose agent's declaration contains `lines`.
fn with_agent(lines: &str) -> Checkout {
    let checkout = Checkout::new();
    checkout.edit("Boxfile", "    health \"tcp\"\n", lines);
    checkout
}

#[test]
fn every_missing_program_is_named_as_plan_and_build_name_it() {
    let checkout =
        with_agent("    entrypoint \"/agent/bin/agnt\"\n    health \"exec\" \"/bin/probe\"\n");
    assert_eq!(checkout.notes(&["check"]), "Boxfile: ok\n");
    let output = checkout.fails(&["check", "--images"]);
    insta::assert_snapshot!(output, @r#"
    error: the agent runs "/agent/bin/agnt", which is not in the image of `agent`
      --> Boxfile:4:16
       |
     4 |     entrypoint "/agent/bin/agnt"
       |                ^^^^^^^^^^^^^^^^^ named here
       |
       = help: did you mean "/agent/bin/agent"? Or add the program to the image

    error: the health check runs "/bin/probe", which is not in the image of `agent`
      --> Boxfile:5:19
       |
     5 |     health "exec" "/bin/probe"
       |                   ^^^^^^^^^^^^ named here
       |
       = help: name a program that the image has, or add it to the image
    "#);
    assert_eq!(checkout.fails(&["plan"]), output);
    assert_eq!(checkout.refused(), output);
}

#[test]
fn users_and_interpreters_are_looked_up() {
    let checkout = with_agent("    user \"agnt\"\n");
    let passwd = "root:x:0:0::/:/bin/sh\nagent:x:1000:1000::/:/bin/sh\n";
    let layer = Layer::new().file("/etc/passwd", 0o644, passwd);
    checkout.agent_of(layer.file("/agent", 0o755, "#!/usr/bin/env python3\n").to_tar());
    insta::assert_snapshot!(checkout.fails(&["check", "--images"]), @r#"
    error: the agent component runs as "agnt", but the image's /etc/passwd has no such name
      --> Boxfile:4:10
       |
     4 |     user "agnt"
       |          ^^^^^^ named here
       |
       = help: did you mean "agent"?
    "#);
    checkout.edit("Boxfile", "agnt", "agent");
    insta::assert_snapshot!(checkout.fails(&["check", "--images"]), @r#"
    error: "/agent" is run by "python3", which is in no directory of its PATH: /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
      --> Boxfile:3:11
       |
     3 |     image "oci:images/agent"
       |           ^^^^^^^^^^^^^^^^^^ named here
       |
       = help: name a program that the image has, or add it to the image
    "#);
}

#[test]
fn profiles_are_checked_too_and_each_error_comes_once() {
    let checkout = Checkout::new();
    let profile = |name: &str, program: &str| {
        format!(
            "profile \"{name}\" {{\n    agent {{\n        entrypoint \"{program}\"\n    }}\n}}\n"
        )
    };
    let right = profile("a", "/agent/bin/agent");
    checkout.write("Boxfile", format!("{BOXFILE}{right}{}", profile("b", "/none")));
    let output = checkout.fails(&["check", "--images"]);
    assert_eq!(output.matches("error: ").count(), 1, "{output}");
    assert!(output.contains("the agent runs \"/none\""), "{output}");
    assert_eq!(checkout.notes(&["check", "--images", "--profile", "a"]), "Boxfile: ok\n");
    let layer = Layer::new().file("/agent", 0o755, "agent").file("/app/main", 0o755, "other");
    checkout.agent_of(layer.to_tar());
    let more = "layout \"merged\"\nprofile \"c\" {\n    vm cpus=2\n}\n";
    checkout.write("Boxfile", format!("{BOXFILE}{more}"));
    let conflicts = checkout.fails(&["check", "--images"]);
    assert_eq!(conflicts.matches("the images conflict").count(), 1, "{conflicts}");
    assert_eq!(conflicts, checkout.refused());
}

#[test]
fn the_lock_is_respected_and_nothing_is_written() {
    let checkout = Checkout::new();
    assert_eq!(checkout.notes(&["check", "--images"]), "Boxfile: ok\n");
    assert!(!checkout.path("Boxfile.lock").exists() && !checkout.path("test.box").exists());
    let ran = checkout.run(&["check", "--images", "--locked"]);
    assert_eq!(ran.code, 3, "{}", ran.notes);
    checkout.result(&["lock"]);
    let lock = checkout.read("Boxfile.lock");
    checkout.notes(&["check", "--images", "--locked", "--offline"]);
    checkout.edit("Boxfile", "\"oci:images/business\"", "\"oci:images/agent\"");
    let ran = checkout.run(&["check", "--images", "--locked"]);
    assert_eq!(ran.code, 3, "{}", ran.notes);
    assert!(ran.notes.contains("Boxfile.lock is out of date"), "{}", ran.notes);
    assert_eq!(checkout.read("Boxfile.lock"), lock);
    for option in [["--locked"].as_slice(), &["--offline"], &["--store", "store"]] {
        let ran = checkout.run(&[&["check"], option].concat());
        assert_eq!(ran.code, 2, "it means something for images only: {option:?}");
    }
}

#[test]
fn the_report_has_the_shape_of_check() {
    let checkout = Checkout::new();
    let config = Config {
        entrypoint: vec!["/agent".to_owned()],
        env: vec!["API_KEY=0123456789abcdef".to_owned()],
        ..Config::default()
    };
    let layer = Layer::new().file("/agent", 0o755, "agent").to_tar();
    checkout.image("keys", &Image::new(config).with(layer));
    checkout.edit("Boxfile", "oci:images/agent", "oci:images/keys");
    let keys = |report: &Value| report.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let plain = checkout.run(&["check", "--json"]).json();
    let report = checkout.run(&["check", "--images", "--json"]).json();
    assert_eq!(keys(&plain), keys(&report));
    assert_eq!(plain["warnings"], json!([]));
    let message = report["warnings"][0]["message"].as_str().unwrap();
    assert_eq!(message, "the image of `agent` sets `API_KEY`, which looks like a secret");
    checkout.edit("Boxfile", "    health \"tcp\"\n", "    health \"exec\" \"/none\"\n");
    let failed = checkout.run(&["check", "--images", "--json"]);
    assert_eq!((failed.code, failed.notes.as_str()), (1, ""));
    let error = &failed.json()["errors"][0];
    assert_eq!(
        (&error["code"], &error["labels"][0]["line"]),
        (&json!("program-invalid"), &json!(4))
    );
}

#[test]
fn a_kernel_that_is_none_is_found_without_a_build() {
    let checkout = Checkout::new();
    for command in [&["check", "--images"][..], &["plan"]] {
        let output = checkout.fails(&[command, &["--kernel", "Boxfile"]].concat());
        insta::allow_duplicates! {
            insta::assert_snapshot!(output, @"
            error: the kernel Boxfile cannot be used: it is neither libkrunfw.so for x86-64 nor an uncompressed ELF kernel
              = help: name a libkrunfw.so.5 or an uncompressed ELF kernel (vmlinux); `boxbuild setup` gets one that boxes can have
            ");
        }
    }
}

#[test]
fn both_images_are_checked_even_if_the_first_is_missing() {
    let checkout = Checkout::new();
    checkout.edit("Boxfile", "oci:images/agent", "oci:images/none");
    checkout.edit("Boxfile", "oci:images/business", "oci:images/no");
    let output = checkout.fails(&["check", "--images"]);
    for missing in ["images/none does not exist", "images/no does not exist"] {
        assert!(output.contains(missing), "{output}");
    }
}
