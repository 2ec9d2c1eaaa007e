//! Tests with bad input. Each prints a clear error on stderr, exits with code 1, and leaves no box.

use std::fs;
use std::path::PathBuf;

use testkit::images::{Entry, Kind, Layer};

use crate::checkout::{BOXFILE, Checkout, files, shown};

/// Returns the errors of a build with `from` replaced by `to` in the Boxfile.
fn with_boxfile(from: &str, to: &str) -> String {
    assert!(BOXFILE.contains(from));
    let checkout = Checkout::new();
    checkout.write("Boxfile", BOXFILE.replacen(from, to, 1));
    shown(&checkout.refused())
}

/// Returns the agent image's largest blob: its base layer.
fn base_layer(checkout: &Checkout) -> (PathBuf, Vec<u8>) {
    let blobs = checkout.path("images/agent/blobs/sha256");
    let (name, bytes) = files(&blobs).into_iter().max_by_key(|(_, bytes)| bytes.len()).unwrap();
    (blobs.join(name), bytes)
}

#[test]
fn an_unknown_declaration() {
    insta::assert_snapshot!(with_boxfile("skill", "skil"), @r#"
    error: unknown declaration `skil`
       --> Boxfile:11:1
        |
     11 | skil "greet" path="skills/greet"
        | ^^^^ no such declaration here
        |
        = help: did you mean `skill`?
    "#);
}

#[test]
fn two_agents() {
    insta::assert_snapshot!(with_boxfile("business", "agent"), @r"
    error: a box has exactly one agent
      --> Boxfile:7:1
       |
     2 | agent {
       | ----- declared first
    ...
     7 | agent {
       | ^^^^^ declared again
       |
       = help: keep one of them and remove the others
    ");
}

#[test]
fn limits_larger_than_the_machine() {
    insta::assert_snapshot!(with_boxfile("256MiB", "100MiB"), @r#"
    error: the components may take 128MiB, which leaves no memory for the VM itself
       --> Boxfile:12:18
        |
      5 |     limits memory="64MiB" pids=32
        |                   ------- may take 64MiB
    ...
      9 |     limits memory="64MiB" pids=32
        |                   ------- may take 64MiB
    ...
     12 | vm cpus=1 memory="100MiB"
        |                  ^^^^^^^^ must be more than 128MiB
        |
        = help: write `memory="384MiB"`, or lower the limits
    "#);
}

#[test]
fn a_missing_image() {
    insta::assert_snapshot!(with_boxfile("oci:images/agent", "oci:images/agnet"), @r#"
    error: the image of `agent` cannot be read: images/agnet does not exist
      --> Boxfile:3:11
       |
     3 |     image "oci:images/agnet"
       |           ^^^^^^^^^^^^^^^^^^ named here
       |
       = help: did you mean "oci:images/agent"?
    "#);
}

#[test]
fn a_missing_tag() {
    insta::assert_snapshot!(with_boxfile("oci:images/agent", "oci:images/agent:v2"), @r#"
    error: the image of `agent` cannot be read: images/agent has no image tagged "v2"; it has latest
      --> Boxfile:3:11
       |
     3 |     image "oci:images/agent:v2"
       |           ^^^^^^^^^^^^^^^^^^^^^ named here
       |
       = help: name one of these, as "oci:PATH:TAG"
    "#);
}

#[test]
fn a_missing_skill() {
    insta::assert_snapshot!(with_boxfile("skills/greet", "skills/great"), @r#"
    error: the skill `greet` cannot be read: skills/great is not a directory
       --> Boxfile:11:20
        |
     11 | skill "greet" path="skills/great"
        |                    ^^^^^^^^^^^^^^ named here
        |
        = help: a skill is a directory of the checkout with a file SKILL.md in it: docs/skills.md
    "#);
}

#[test]
fn a_layer_with_the_wrong_digest() {
    let checkout = Checkout::new();
    let (path, mut bytes) = base_layer(&checkout);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
    insta::assert_snapshot!(shown(&checkout.refused()), @r#"
    error: the image of `agent` is refused: layer sha256:DIGEST: its bytes have the digest sha256:DIGEST
      --> Boxfile:3:11
       |
     3 |     image "oci:images/agent"
       |           ^^^^^^^^^^^^^^^^^^ named here
       |
       = help: the image is damaged: build or copy it again
    "#);
}

#[test]
fn a_truncated_layer() {
    let checkout = Checkout::new();
    let (path, bytes) = base_layer(&checkout);
    fs::write(path, &bytes[..bytes.len() - 1000]).unwrap();
    insta::assert_snapshot!(shown(&checkout.refused()), @r#"
    error: the image of `agent` cannot be read: images/agent/blobs/sha256/DIGEST (a layer) has 159316 bytes, but the image names 160316 bytes
      --> Boxfile:3:11
       |
     3 |     image "oci:images/agent"
       |           ^^^^^^^^^^^^^^^^^^ named here
       |
       = help: the image is damaged: copy it again
    "#);
}

#[test]
fn a_manifest_with_the_wrong_digest() {
    let checkout = Checkout::new();
    for (path, bytes) in files(&checkout.path("images/agent/blobs/sha256")) {
        if let Ok(text) = String::from_utf8(bytes)
            && text.contains("\"layers\"")
        {
            let path = checkout.path("images/agent/blobs/sha256").join(path);
            fs::write(path, text.replace("gzip", "gz1p")).unwrap();
        }
    }
    insta::assert_snapshot!(shown(&checkout.refused()), @r#"
    error: the image of `agent` cannot be read: images/agent/blobs/sha256/DIGEST (an image manifest) has the digest sha256:DIGEST, but the image names sha256:DIGEST
      --> Boxfile:3:11
       |
     3 |     image "oci:images/agent"
       |           ^^^^^^^^^^^^^^^^^^ named here
       |
       = help: the image is damaged: copy it again
    "#);
}

#[test]
fn a_layer_that_climbs_out() {
    let checkout = Checkout::new();
    let entry = Entry {
        name: b"../../etc/passwd".to_vec(),
        kind: Kind::File(b"root::0:0::/:/bin/sh\n".to_vec()),
        mode: 0o644,
        uid: 0,
        gid: 0,
        mtime: 0,
        xattrs: Vec::new(),
    };
    checkout.agent_of(Layer::new().entry(entry).to_tar());
    insta::assert_snapshot!(shown(&checkout.refused()), @r#"
    error: the image of `agent` is refused: layer sha256:DIGEST, entry "../../etc/passwd" at byte 0: the path leaves the image by ".."
      --> Boxfile:3:11
       |
     3 |     image "oci:images/agent"
       |           ^^^^^^^^^^^^^^^^^^ named here
    "#);
}

#[test]
fn a_layer_that_ends_in_the_middle_of_a_file() {
    let checkout = Checkout::new();
    let whole = Layer::new().file("/agent", 0o755, vec![7; 9000]).to_tar();
    checkout.agent_of(whole.bytes()[..5000].to_vec().into());
    insta::assert_snapshot!(shown(&checkout.refused()), @r#"
    error: the image of `agent` is refused: layer sha256:DIGEST, entry "agent" at byte 0: it cannot be read: unexpected end of file
      --> Boxfile:3:11
       |
     3 |     image "oci:images/agent"
       |           ^^^^^^^^^^^^^^^^^^ named here
       |
       = help: the archive is cut off, as `umoci insert` leaves it after a file: build the layer again, with another program
    "#);
}

#[test]
fn an_agent_without_a_program() {
    let checkout = Checkout::new();
    let image = testkit::images::Image::new(testkit::images::Config::default());
    checkout.image("agent", &image.with(Layer::new().dir("/etc", 0o755).to_tar()));
    insta::assert_snapshot!(shown(&checkout.refused()), @r#"
    error: the agent image names no program
      --> Boxfile:3:11
       |
     3 |     image "oci:images/agent"
       |           ^^^^^^^^^^^^^^^^^^ named here
       |
       = help: write `entrypoint "/path/to/program"` in `agent`
    "#);
}

#[test]
fn an_image_whose_dev_is_a_link() {
    let checkout = Checkout::new();
    checkout.agent_of(Layer::new().symlink("/dev", "/etc").to_tar());
    insta::assert_snapshot!(shown(&checkout.refused()), @r#"
    error: the agent image has something other than a directory at /dev, where the guest mounts a file system of the kernel
      --> Boxfile:3:11
       |
     3 |     image "oci:images/agent"
       |           ^^^^^^^^^^^^^^^^^^ named here
       |
       = help: remove it from the image
    "#);
}

#[test]
fn a_blob_that_is_a_pipe() {
    let checkout = Checkout::new();
    let (path, _) = base_layer(&checkout);
    fs::remove_file(&path).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    insta::assert_snapshot!(shown(&checkout.refused()), @r#"
    error: the image of `agent` cannot be read: cannot read images/agent/blobs/sha256/DIGEST: it is not a regular file
      --> Boxfile:3:11
       |
     3 |     image "oci:images/agent"
       |           ^^^^^^^^^^^^^^^^^^ named here
       |
       = help: put a regular file there, or correct the path
    "#);
}

#[test]
fn files_over_their_bounds_have_one_code() {
    let long = "#".repeat((1 << 20) + 1);
    let over = |file: &str, args: &[&str]| {
        let checkout = Checkout::new();
        checkout
            .write("Boxfile", BOXFILE.replacen("agent {", "agent {\n    env-file \"a.env\"", 1));
        checkout.write("a.env", "");
        checkout.write(file, &long);
        let ran = checkout.run(&[&["build", "--json"], args].concat());
        assert_eq!(ran.code, 1, "{file}");
        let error = &ran.json()["errors"][0];
        assert!(error["message"].as_str().unwrap().contains("1048576"), "{error}");
        error["code"].as_str().unwrap().to_owned()
    };
    for file in ["Boxfile", "Boxfile.lock", "a.env", "skills/greet/SKILL.md"] {
        assert_eq!(over(file, &[]), "too-large", "{file}");
    }
    assert_eq!(over("registries.toml", &["--registry-config", "registries.toml"]), "too-large");
}

#[test]
fn a_configuration_of_registries_that_cannot_be_read() {
    for content in [&b"\xff"[..], b"a = ["] {
        let checkout = Checkout::new();
        checkout.write("registries.toml", content);
        for file in ["registries.toml", "missing.toml"] {
            let ran = checkout.run(&["build", "--json", "--registry-config", file]);
            assert_eq!(
                (ran.code, &ran.json()["errors"][0]["code"]),
                (1, &"registry-config".into())
            );
        }
    }
}

#[test]
fn a_static_program_that_is_not_box_init_is_refused_as_the_init() {
    let checkout = Checkout::new();
    let busybox = testbed::program::find("busybox").unwrap();
    let args = ["build", "--json", "--init", busybox.to_str().unwrap(), "--output", "busy.box"];
    let ran = checkout.run(&args);
    let error = &ran.json()["errors"][0];
    assert_eq!((ran.code, &error["code"]), (1, &"init-invalid".into()), "{error}");
    assert!(error["message"].as_str().unwrap().contains("is not box-init"), "{error}");
    assert!(!checkout.path("busy.box").exists());
}
