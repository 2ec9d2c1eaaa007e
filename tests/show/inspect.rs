//! `boxbuild inspect`.

use crate::checkout::{BOXFILE, shown};
use crate::fixture::built;

/// Replaces the sizes of init and kernel, which follow the compiler, and the kernel's line.
fn stable(text: &str) -> String {
    let lines = shown(text);
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["init" | "kernel" | "rootfs" | "listing", _, "bytes" | "KiB" | "MiB", digest] => {
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
    epoch       2
    kernel      Linux …
    machine     1 CPUs, 256 MiB
    budget      total 5000 ms
    skill       greet, mode bake

    agent
      root        /roots/agent
      hostname    agent-host
      program     ["/agent/run"] in /
      user        0:0
      namespaces  mount, pid, ipc, uts
      limits      64.0 MiB of memory, CPU weight 20, 32 processes
      port        4088
      health      a TCP connection to port 4088

    business
      root        /roots/business
      hostname    business-host
      program     [] in /
      user        0:0
      namespaces  mount, pid, ipc, uts
      limits      64.0 MiB of memory, CPU weight 39, 32 processes

    blobs
      rootfs SIZE sha256:DIGEST
      init SIZE sha256:DIGEST
      kernel SIZE sha256:DIGEST
      listing SIZE sha256:DIGEST

    rootfs
      entries           30
      agent layer 1     sha256:DIGEST
      agent layer 2     sha256:DIGEST
      business layer 1  sha256:DIGEST
      business layer 2  sha256:DIGEST
    "#);
}

#[test]
fn what_boxlaunch_would_refuse() {
    let checkout = built();
    checkout.write("Boxfile", format!("{BOXFILE}secret \"KEY\"\n"));
    checkout.built(&[]);
    let text = checkout.result(&["inspect", "test.box"]);
    let refused = text.split("boxlaunch will").nth(1).unwrap().split("\n\n").next().unwrap();
    insta::assert_snapshot!(refused, @r#"
    not start this box
     secret "KEY": not supported yet
    "#);
}

#[test]
fn a_box_as_data() {
    let checkout = built();
    let built = checkout.built(&[]);
    let report = checkout.run(&["inspect", "test.box", "--json"]).json();
    assert_eq!((&report["box"], &report["tree"]), (&built["box"], &built["tree"]));
    assert_eq!(report["plan"], checkout.plan("test.box"));
    assert_eq!(report["epoch"], 2);
    assert_eq!(report["unsupported"], serde_json::json!([]));
    let entries = checkout.result(&["ls", "test.box"]).lines().count();
    assert_eq!(report["entries"], entries);
    let images = report["images"].as_array().unwrap();
    let layers: Vec<usize> =
        images.iter().map(|image| image["layers"].as_array().unwrap().len()).collect();
    assert_eq!((images[0]["component"].as_str(), layers), (Some("agent"), vec![2, 2]));
    let blobs: Vec<_> = report["blobs"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(blobs, ["rootfs", "init", "kernel", "listing"]);
}
