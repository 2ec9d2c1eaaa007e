//! Tests of `boxbuild ls`.

use std::fs::File;
use std::io::Read;
use std::process::Stdio;

use testkit::images::{Config, Image, Layer};

use crate::checkout::{Checkout, WHOLE, shown};
use crate::fixture::{WILD, built};

#[test]
fn every_file_of_a_box() {
    let checkout = built();
    insta::assert_snapshot!(checkout.result(&["ls", "test.box"]), @"
    /
    /a3s
    /a3s/skills
    /a3s/skills/greet
    /a3s/skills/greet/SKILL.md
    /a3s/skills/greet/tools
    /a3s/skills/greet/tools/greet.sh
    /boxbuild
    /boxbuild/system
    /boxbuild/system/agent
    /boxbuild/system/agent/a3s
    /boxbuild/system/agent/a3s/bin
    /boxbuild/system/agent/a3s/bin/box-exec
    /boxbuild/system/agent/a3s/run
    /boxbuild/system/agent/a3s/run/box-exec.sock
    /boxbuild/system/agent/a3s/skills
    /boxbuild/system/agent/dev
    /boxbuild/system/agent/etc
    /boxbuild/system/agent/etc/group
    /boxbuild/system/agent/etc/hostname
    /boxbuild/system/agent/etc/hosts
    /boxbuild/system/agent/etc/nsswitch.conf
    /boxbuild/system/agent/etc/passwd
    /boxbuild/system/agent/etc/resolv.conf
    /boxbuild/system/agent/proc
    /boxbuild/system/agent/sys
    /boxbuild/system/business
    /boxbuild/system/business/a3s
    /boxbuild/system/business/a3s/skills
    /boxbuild/system/business/dev
    /boxbuild/system/business/etc
    /boxbuild/system/business/etc/group
    /boxbuild/system/business/etc/hostname
    /boxbuild/system/business/etc/hosts
    /boxbuild/system/business/etc/nsswitch.conf
    /boxbuild/system/business/etc/passwd
    /boxbuild/system/business/etc/resolv.conf
    /boxbuild/system/business/proc
    /boxbuild/system/business/sys
    /dev
    /proc
    /roots
    /roots/agent
    /roots/agent/agent
    /roots/agent/agent/alias
    /roots/agent/agent/link
    /roots/agent/agent/notes
    /roots/agent/agent/null
    /roots/agent/agent/pipe
    /roots/agent/agent/run
    /roots/agent/agent/wild��[2J
    /roots/agent/usr
    /roots/agent/usr/base
    /roots/business
    /roots/business/app
    /roots/business/app/main
    /roots/business/usr
    /roots/business/usr/base
    /run
    /sys
    ");
}

#[test]
fn what_is_below_a_path_in_detail() {
    let checkout = built();
    let agent = checkout.result(&["ls", "test.box", "roots//agent/./agent/", "--long"]);
    insta::assert_snapshot!(agent, @"
    drwxr-xr-x       0:0           - 2023-11-14 22:13:21 /roots/agent/agent
    -rwsr-xr-x       0:0          10 2023-11-14 22:13:21 /roots/agent/agent/alias
    lrwxrwxrwx 1000:1001           - 2023-11-14 22:13:21 /roots/agent/agent/link -> notes
    -rw------- 1000:1001           5 2023-11-14 22:13:21 /roots/agent/agent/notes
    crw-rw-rw- 1000:1001         1:3 2023-11-14 22:13:21 /roots/agent/agent/null
    prw------- 1000:1001           - 2023-11-14 22:13:21 /roots/agent/agent/pipe
    -rwsr-xr-x       0:0          10 2023-11-14 22:13:21 /roots/agent/agent/run
    -rw-r--r--       0:0           4 1970-01-01 00:00:00 /roots/agent/agent/wild��[2J
    ");
    let file = checkout.result(&["ls", "test.box", "/roots/agent/usr/base", "-l"]);
    assert_eq!(
        file,
        "-rw-r--r--       0:0           4 2023-11-14 22:13:20 /roots/agent/usr/base\n"
    );
}

#[test]
fn where_each_came_from() {
    let checkout = built();
    insta::assert_snapshot!(shown(&checkout.result(&["ls", "test.box", "--origin"])), @"
    generated                                          /
    generated                                          /a3s
    generated                                          /a3s/skills
    skill greet                                        /a3s/skills/greet
    skill greet                                        /a3s/skills/greet/SKILL.md
    skill greet                                        /a3s/skills/greet/tools
    skill greet                                        /a3s/skills/greet/tools/greet.sh
    generated                                          /boxbuild
    generated                                          /boxbuild/system
    init                                               /boxbuild/system/agent
    init                                               /boxbuild/system/agent/a3s
    init                                               /boxbuild/system/agent/a3s/bin
    init                                               /boxbuild/system/agent/a3s/bin/box-exec
    init                                               /boxbuild/system/agent/a3s/run
    init                                               /boxbuild/system/agent/a3s/run/box-exec.sock
    init                                               /boxbuild/system/agent/a3s/skills
    init                                               /boxbuild/system/agent/dev
    init                                               /boxbuild/system/agent/etc
    init                                               /boxbuild/system/agent/etc/group
    init                                               /boxbuild/system/agent/etc/hostname
    init                                               /boxbuild/system/agent/etc/hosts
    init                                               /boxbuild/system/agent/etc/nsswitch.conf
    init                                               /boxbuild/system/agent/etc/passwd
    init                                               /boxbuild/system/agent/etc/resolv.conf
    init                                               /boxbuild/system/agent/proc
    init                                               /boxbuild/system/agent/sys
    init                                               /boxbuild/system/business
    init                                               /boxbuild/system/business/a3s
    init                                               /boxbuild/system/business/a3s/skills
    init                                               /boxbuild/system/business/dev
    init                                               /boxbuild/system/business/etc
    init                                               /boxbuild/system/business/etc/group
    init                                               /boxbuild/system/business/etc/hostname
    init                                               /boxbuild/system/business/etc/hosts
    init                                               /boxbuild/system/business/etc/nsswitch.conf
    init                                               /boxbuild/system/business/etc/passwd
    init                                               /boxbuild/system/business/etc/resolv.conf
    init                                               /boxbuild/system/business/proc
    init                                               /boxbuild/system/business/sys
    init                                               /dev
    init                                               /proc
    generated                                          /roots
    generated                                          /roots/agent
    agent layer 2 DIG                         /roots/agent/agent
    agent layer 2 DIG                         /roots/agent/agent/alias
    agent layer 2 DIG                         /roots/agent/agent/link
    agent layer 2 DIG                         /roots/agent/agent/notes
    agent layer 2 DIG                         /roots/agent/agent/null
    agent layer 2 DIG                         /roots/agent/agent/pipe
    agent layer 2 DIG                         /roots/agent/agent/run
    agent layer 2 DIG                         /roots/agent/agent/wild��[2J
    agent layer 1 DIG                         /roots/agent/usr
    agent layer 1 DIG                         /roots/agent/usr/base
    generated                                          /roots/business
    generated                                          /roots/business/app
    business layer 2 DIG                      /roots/business/app/main
    business layer 1 DIG                      /roots/business/usr
    business layer 1 DIG                      /roots/business/usr/base
    init                                               /run
    init                                               /sys
    ");
}

#[test]
fn as_data() {
    let checkout = built();
    let report = checkout.run(&["ls", "test.box", "--json"]).json();
    assert_eq!(report["box"], checkout.built(WHOLE)["box"]);
    assert!(report["tree"].as_str().unwrap().starts_with("blake3:"), "{}", report["tree"]);
    let entries = report["entries"].as_array().unwrap();
    let lines = checkout.result(&["ls", "test.box"]).lines().count();
    assert_eq!(entries.len(), lines);
    let of = |path: &str| {
        let path = format!("/roots/agent/agent/{path}");
        let entry = entries.iter().find(|it| it["path"] == path.as_str()).unwrap();
        shown(&serde_json::to_string_pretty(entry).unwrap())
    };
    insta::assert_snapshot!(of("notes"), @r#"
    {
      "blake3": "DIGEST",
      "gid": 1001,
      "mode": "0600",
      "mtime": 1700000001,
      "mtime_nsec": 0,
      "origin": {
        "component": "agent",
        "diff_id": "sha256:DIGEST",
        "kind": "image",
        "layer": 2
      },
      "path": "/roots/agent/agent/notes",
      "size": 5,
      "type": "file",
      "uid": 1000,
      "xattrs": [
        {
          "name": "user.note",
          "value_base64": "a2VwdA=="
        }
      ]
    }
    "#);
    insta::assert_snapshot!(of("run"), @r#"
    {
      "blake3": "DIGEST",
      "gid": 0,
      "links": {
        "names": 2,
        "path": "/roots/agent/agent/alias"
      },
      "mode": "4755",
      "mtime": 1700000001,
      "mtime_nsec": 0,
      "origin": {
        "component": "agent",
        "diff_id": "sha256:DIGEST",
        "kind": "image",
        "layer": 2
      },
      "path": "/roots/agent/agent/run",
      "size": 10,
      "type": "file",
      "uid": 0
    }
    "#);
    insta::assert_snapshot!(of("null"), @r#"
    {
      "device": [
        1,
        3
      ],
      "gid": 1001,
      "mode": "0666",
      "mtime": 1700000001,
      "mtime_nsec": 0,
      "origin": {
        "component": "agent",
        "diff_id": "sha256:DIGEST",
        "kind": "image",
        "layer": 2
      },
      "path": "/roots/agent/agent/null",
      "type": "char-device",
      "uid": 1000
    }
    "#);
    insta::assert_snapshot!(of("link"), @r#"
    {
      "gid": 1001,
      "mode": "0777",
      "mtime": 1700000001,
      "mtime_nsec": 0,
      "origin": {
        "component": "agent",
        "diff_id": "sha256:DIGEST",
        "kind": "image",
        "layer": 2
      },
      "path": "/roots/agent/agent/link",
      "target": "notes",
      "type": "symlink",
      "uid": 1000
    }
    "#);
    let wild = entries.iter().find(|it| it["path_base64"].is_string()).unwrap();
    assert_eq!(wild["path"], "/roots/agent/agent/wild\u{fffd}\u{1b}[2J");
    assert_eq!(wild["path_base64"], "L3Jvb3RzL2FnZW50L2FnZW50L3dpbGT/G1sySg==");
    assert_eq!(WILD, b"agent/wild\xff\x1b[2J");
}

#[test]
fn an_empty_directory_has_itself_and_is_json() {
    let checkout = built();
    assert_eq!(checkout.result(&["ls", "test.box", "/proc"]), "/proc\n");
    let report = checkout.run(&["ls", "test.box", "/proc", "--json"]).json();
    assert_eq!(report["entries"].as_array().unwrap().len(), 1);
    assert_eq!(report["entries"][0]["origin"]["kind"], "init");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let checkout = Checkout::new();
    let mut layer = Layer::new().file("/agent", 0o755, "# /bin/sh\n");
    for number in 0..4000 {
        layer = layer.file(&format!("/many/with-a-longer-name/{number}"), 0o644, "");
    }
    let entrypoint = vec!["/agent".to_owned()];
    let image = Image::new(Config { entrypoint, ..Config::default() }).with(layer.to_tar());
    std::fs::remove_dir_all(checkout.path("images/agent")).unwrap();
    checkout.image("agent", &image);
    checkout.built(WHOLE);
    for args in
        [&["ls", "test.box"][..], &["ls", "test.box", "--json"], &["inspect", "test.box", "--sbom"]]
    {
        let mut command = checkout.boxbuild(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut some = [0; 16];
        child.stdout.take().unwrap().read_exact(&mut some).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert_eq!(output.status.code(), Some(0));
    }
}

#[test]
fn a_result_that_is_lost_is_a_failure() {
    let checkout = built();
    for args in [
        &["ls", "test.box"][..],
        &["ls", "test.box", "--json"],
        &["diff", "test.box", "./skills"],
        &["inspect", "test.box"],
        &["inspect", "test.box", "--sbom"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = checkout.boxbuild(args).stdout(full).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {errors}");
        assert!(errors.contains("error: cannot write to standard output"), "{errors}");
    }
}

#[test]
fn a_component_has_its_own_root() {
    let checkout = built();
    let ls = |args: &[&str]| checkout.result(&[&["ls", "test.box"], args].concat());
    insta::assert_snapshot!(ls(&["--component", "business"]), @r"
    /
    /app
    /app/main
    /usr
    /usr/base
    ");
    assert_eq!(ls(&["--component", "agent", "/usr"]), "/usr\n/usr/base\n");
    let report = checkout.run(&["ls", "test.box", "--component", "agent", "--json"]).json();
    assert_eq!(report["component"], "agent");
    let missing = checkout.fails(&["ls", "test.box", "--component", "agent", "/app/main"]);
    assert_eq!(
        missing,
        "error: the agent of the box test.box has no /app\n  = help: `boxbuild ls test.box --component agent / --depth 1` lists what is there\n"
    );
}

#[test]
fn a_depth_bounds_the_levels_below_the_path() {
    let checkout = built();
    let ls = |args: &[&str]| checkout.result(&[&["ls", "test.box"], args].concat());
    assert_eq!(ls(&["/roots", "--depth", "0"]), "/roots\n");
    assert_eq!(ls(&["/roots", "--depth", "1"]), "/roots\n/roots/agent\n/roots/business\n");
    let two = ls(&["/roots/business", "--depth", "1"]);
    assert_eq!(two, "/roots/business\n/roots/business/app\n/roots/business/usr\n");
    assert_eq!(ls(&["--depth", "9"]), ls(&[]));
}

#[test]
fn links_in_the_directories_of_a_path_are_followed() {
    let checkout = Checkout::new();
    let layer = Layer::new()
        .file("/agent", 0o755, "# /bin/sh\n")
        .symlink("/bin", "usr/bin")
        .symlink("/absolute", "/usr/bin")
        .file("/usr/bin/tool", 0o755, "tool\n")
        .symlink("/usr/bin/alias", "tool");
    checkout.agent_of(layer.to_tar());
    checkout.built(WHOLE);
    let ls = |args: &[&str]| checkout.result(&[&["ls", "test.box"], args].concat());
    for path in ["/roots/agent/bin/tool", "/roots/agent/absolute/tool"] {
        assert_eq!(ls(&[path]), "/roots/agent/usr/bin/tool\n", "{path}");
    }
    assert_eq!(ls(&["--component", "agent", "/absolute/tool"]), "/usr/bin/tool\n");
    assert_eq!(ls(&["/roots/agent/bin"]), "/roots/agent/bin\n", "the link itself");
    let cat = |path| checkout.result(&["cat", "test.box", "--component", "agent", path]);
    assert_eq!(cat("/bin/alias"), "tool\n");
    let ran = checkout.run(&[
        "diff",
        "test.box",
        "oci:images/agent",
        "--component",
        "agent",
        "/bin/tool",
    ]);
    assert_eq!((ran.code, ran.notes.as_str()), (0, "no difference\n"));
}
