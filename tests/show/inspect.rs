//! Tests of `boxbuild inspect`.

use testkit::images::{Config, Image, Layer};

use crate::checkout::{BOXFILE, Checkout, WHOLE, shown};
use crate::fixture::built;

/// Replaces the values that depend on the compiler and on the kernel: sizes, the kernel's version, and the tree digest.
fn stable(text: &str) -> String {
    let lines = shown(text);
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["init" | "kernel" | "metadata" | "listing", _, "bytes" | "KiB" | "MiB", digest] => {
                format!("  {} SIZE {digest}", words[0])
            }
            ["kernel", "Linux", ..] => "kernel      Linux …".to_owned(),
            ["tree", _] => "tree        TREE".to_owned(),
            _ => line.to_owned(),
        }
    };
    lines.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_box_for_people() {
    let checkout = built();
    insta::assert_snapshot!(stable(&checkout.result(&["inspect", "test.box"])), @r#"
    name        test
    box         sha256:DIGEST
    tree        TREE
    epoch       4
    kernel      Linux …
    vm          1 CPU, 256 MiB
    budget      total 5000 ms
    skill       greet, mode bake
                Greets.

    may do
      network        none: nothing
      agent user     0:0, root of the box
      agent port     4088, offered to the host
      business user  0:0, root of the box
      vm             1 CPU, 256 MiB of memory

    agent
      root        /roots/agent
      hostname    agent-host
      program     ["/agent/run"] in /
      env         HOME=/
                  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
      user        0:0
      namespaces  mount, pid, ipc, uts
      limits      64.0 MiB of memory, CPU weight 20, 32 processes
      port        4088
      health      a TCP connection to port 4088

    business
      root        /roots/business
      hostname    business-host
      program     [] in /
      env         HOME=/
                  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
      user        0:0
      namespaces  mount, pid, ipc, uts
      limits      64.0 MiB of memory, CPU weight 39, 32 processes

    blobs
      metadata SIZE sha256:DIGEST
      init SIZE sha256:DIGEST
      kernel SIZE sha256:DIGEST
      listing SIZE sha256:DIGEST

    rootfs
      entries           60
      agent layer 1     sha256:DIGEST
      agent layer 2     sha256:DIGEST
      business layer 1  sha256:DIGEST
      business layer 2  sha256:DIGEST
    "#);
}

#[test]
fn what_boxlaunch_would_refuse() {
    let checkout = built();
    checkout.write("Boxfile", format!("{BOXFILE}cap \"ws\"\n"));
    checkout.built(WHOLE);
    let text = checkout.result(&["inspect", "test.box"]);
    let refused = text.split("boxlaunch will").nth(1).unwrap().split("\n\n").next().unwrap();
    insta::assert_snapshot!(refused, @r#"
    not start this box
     cap "ws": not supported: a program reaches a WebSocket server through `network "filtered"`, with the server's name in `allow`
    "#);
}

#[test]
fn a_value_that_looks_like_a_secret_is_hidden() {
    let checkout = Checkout::new();
    let env = ["API_KEY=abc123", "EMPTY=", "LANG=C"].map(str::to_owned).to_vec();
    let layer = Layer::new().file("/agent", 0o755, "# /bin/sh\n").to_tar();
    let entrypoint = vec!["/agent".to_owned()];
    let image = Image::new(Config { entrypoint, env, ..Config::default() }).with(layer);
    std::fs::remove_dir_all(checkout.path("images/agent")).unwrap();
    checkout.image("agent", &image);
    checkout.built(WHOLE);
    let text = checkout.result(&["inspect", "test.box"]);
    for line in ["env         API_KEY=****\n", "            EMPTY=\n", "            LANG=C\n"] {
        assert!(text.contains(line), "{text}");
    }
    assert!(!text.contains("abc123"), "{text}");
    let report = checkout.run(&["inspect", "test.box", "--json"]).json();
    let variable = serde_json::json!({ "component": "agent", "variable": "API_KEY" });
    assert_eq!(report["masked"], serde_json::json!([variable]));
    assert_eq!(report["plan"]["agent"]["env"][0], "API_KEY=****");
    assert_eq!(checkout.plan("test.box")["agent"]["env"][0], "API_KEY=abc123", "the box has it");
}

#[test]
fn a_program_that_is_started_is_shown() {
    let checkout = Checkout::new();
    checkout.edit(
        "Boxfile",
        "business {",
        "business {\n    autostart #true restart=\"always\"\n    entrypoint \"/app/main\"",
    );
    checkout.built(WHOLE);
    let text = checkout.result(&["inspect", "test.box"]);
    let line = "  autostart   once the agent is ready; restart: always\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn a_box_as_data() {
    let checkout = built();
    let built = checkout.built(WHOLE);
    let report = checkout.run(&["inspect", "test.box", "--json"]).json();
    assert_eq!((&report["box"], &report["tree"]), (&built["box"], &built["tree"]));
    assert_eq!(report["plan"], checkout.plan("test.box"));
    assert_eq!(report["epoch"], 4);
    assert_eq!(report["unsupported"], serde_json::json!([]));
    assert_eq!(report["masked"], serde_json::json!([]));
    let entries = checkout.result(&["ls", "test.box"]).lines().count();
    assert_eq!(report["entries"], entries);
    assert_eq!(report["hidden_bytes"], 0);
    let images = report["images"].as_array().unwrap();
    let layers: Vec<usize> =
        images.iter().map(|image| image["layers"].as_array().unwrap().len()).collect();
    assert_eq!((images[0]["component"].as_str(), layers), (Some("agent"), vec![2, 2]));
    let blobs: Vec<_> = report["blobs"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(blobs, ["metadata", "init", "kernel", "listing"]);
}
