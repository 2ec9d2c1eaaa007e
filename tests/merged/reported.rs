//! Tests of the messages on conflicts, and on files for which no policy is allowed.

use insta::assert_snapshot;
use testkit::images::Layer;

use crate::scene::{Scene, shown};

/// Returns two layers that conflict at three paths.
fn three() -> [Layer; 2] {
    let agent = Layer::new().file("/etc/motd", 0o644, "Welcome, agent.\n").dir("/var/data", 0o700);
    let business = Layer::new().file("/etc/motd", 0o644, "Welcome.\n").dir("/var/data", 0o755);
    [
        agent.symlink("/usr/bin/tool", "/opt/tool"),
        business.file("/usr/bin/tool", 0o755, "a program"),
    ]
}

#[test]
fn three_conflicts() {
    let [agent, business] = three();
    let scene = Scene::new(agent, business, "");
    assert_snapshot!(scene.refused(), @r#"
    error: the images conflict at 3 paths
      --> Boxfile:3:11
       |
     3 |     image "oci:agent"
       |           ^^^^^^^^^^^ the agent's files
    ...
     6 |     image "oci:business"
       |           -------------- the business component's files

    /etc/motd: size is 16 and 9
        agent     file of 16 bytes, layer 2 DIG
        business  file of 9 bytes, layer 2 DIG
    /usr/bin/tool: type is symlink and file
        agent     symlink, layer 2 DIG
        business  file of 9 bytes, layer 2 DIG
    /var/data: mode is 0700 and 0755
        agent     directory, layer 2 DIG
        business  directory, layer 2 DIG

      = help: layout "merged" has each path once. Decide in the Boxfile: these lines are enough, and
        each policy is yours to choose: prefer-agent, prefer-business or drop; `merge` combines
        both files (passwd, group, shadow and gshadow only). The first pattern that matches
        decides, so put them above other `conflict`s:
          conflict "/etc/motd" policy="prefer-agent"
          conflict "/usr/bin/tool" policy="prefer-agent"
          conflict "/var/data" policy="prefer-agent"
        or keep each image whole: `layout "split"`
    "#);
}

#[test]
fn conflicts_as_data() {
    let [agent, business] = three();
    let scene = Scene::new(agent, business, "");
    let ran = scene.run(&["build", "--json"]);
    assert_eq!((ran.code, ran.notes.as_str()), (1, ""));
    let error = &ran.json()["errors"][0];
    assert_eq!(error["conflicts"].as_array().unwrap().len(), 3);
    let text = |name: &str| shown(&serde_json::to_string_pretty(&error[name]).unwrap());
    assert_snapshot!(
        shown(&serde_json::to_string_pretty(&error["conflicts"][0]).unwrap()), @r#"
    {
      "agent": {
        "below": 0,
        "origin": {
          "component": "agent",
          "diff_id": "sha256:DIGEST",
          "kind": "image",
          "layer": 2
        },
        "size": 16,
        "type": "file",
        "value": "16"
      },
      "business": {
        "below": 0,
        "origin": {
          "component": "business",
          "diff_id": "sha256:DIGEST",
          "kind": "image",
          "layer": 2
        },
        "size": 9,
        "type": "file",
        "value": "9"
      },
      "field": "size",
      "note": null,
      "path": "/etc/motd"
    }
    "#);
    assert_snapshot!(text("advice"), @r#"
    [
      {
        "declaration": "conflict \"/etc/motd\" policy=\"prefer-agent\"",
        "paths": 1,
        "pattern": "/etc/motd",
        "policy": "prefer-agent"
      },
      {
        "declaration": "conflict \"/usr/bin/tool\" policy=\"prefer-agent\"",
        "paths": 1,
        "pattern": "/usr/bin/tool",
        "policy": "prefer-agent"
      },
      {
        "declaration": "conflict \"/var/data\" policy=\"prefer-agent\"",
        "paths": 1,
        "pattern": "/var/data",
        "policy": "prefer-agent"
      }
    ]
    "#);
}

#[test]
fn a_toml_boxfile_gets_advice_in_toml() {
    let agent = Layer::new().file("/etc/motd", 0o644, "one");
    let business = Layer::new().file("/etc/motd", 0o644, "other");
    let scene = Scene::new(agent, business, "");
    std::fs::remove_file(scene.path("Boxfile")).unwrap();
    let text = "box = \"one\"\nlayout = \"merged\"\n\n[agent]\nimage = \"oci:agent\"\n\n[business]\n\
                image = \"oci:business\"\n";
    scene.write("Boxfile.toml", text);
    let output = scene.refused();
    let line = "      [conflict.\"/etc/motd\"]\n      policy = \"prefer-agent\"\n";
    assert!(output.contains(line), "{output}");
    scene.write("Boxfile.toml", &format!("{text}\n{}", line.replace("      ", "")));
    assert_eq!(scene.run(&["build"]).code, 0);
}

#[test]
fn more_than_fifty_conflicts() {
    let many = |text: &str| {
        (0..58).fold(Layer::new().file("/etc/motd", 0o644, text), |layer, number| {
            layer.file(&format!("/usr/share/doc/p{number}/copyright"), 0o644, text)
        })
    };
    let scene = Scene::new(many("the agent's"), many("the business's"), "");
    let output = scene.refused();
    assert_eq!(output.lines().filter(|line| line.starts_with('/')).count(), 50, "{output}");
    let (_, end) = output.split_once("/usr/share/doc/p52/copyright").unwrap();
    assert_snapshot!(end, @r#"
    : size is 11 and 14
        agent     file of 11 bytes, layer 2 DIG
        business  file of 14 bytes, layer 2 DIG
    and 9 more; `--json` has all of them

      = help: layout "merged" has each path once. Decide in the Boxfile: these lines are enough, and
        each policy is yours to choose: prefer-agent, prefer-business or drop; `merge` combines
        both files (passwd, group, shadow and gshadow only). The first pattern that matches
        decides, so put them above other `conflict`s:
          conflict "/etc/motd" policy="prefer-agent"
          conflict "/usr/share/doc/**" policy="prefer-agent"  // 58 paths
        or keep each image whole: `layout "split"`
    "#);
    let all = scene.run(&["build", "--json"]).json();
    assert_eq!(all["errors"][0]["conflicts"].as_array().unwrap().len(), 59);
    scene.policies(
        "conflict \"/etc/motd\" policy=\"prefer-agent\"\n\
         conflict \"/usr/share/doc/**\" policy=\"prefer-business\"\n",
    );
    assert_eq!(scene.builds().notes.lines().count(), 1, "the lock is written, and nothing is odd");
}

#[test]
fn what_describes_a_system_is_named_or_refused() {
    let system = |text: &str| {
        Layer::new().file("/etc/ld.so.cache", 0o644, text).file("/var/lib/dpkg/status", 0o644, text)
    };
    let scene = Scene::new(system("a"), system("bb"), "conflict \"/**\" policy=\"prefer-agent\"\n");
    assert_snapshot!(scene.refused(), @r#"
    error: the images conflict at 2 paths
      --> Boxfile:3:11
       |
     3 |     image "oci:agent"
       |           ^^^^^^^^^^^ the agent's files
    ...
     6 |     image "oci:business"
       |           -------------- the business component's files

    /etc/ld.so.cache: size is 1 and 2
        agent     file of 1 byte, layer 2 DIG
        business  file of 2 bytes, layer 2 DIG
        note      the loader's cache lists the libraries of one image only. With `drop`, programs find libraries in the loader's own directories (/lib, /usr/lib), and no longer in those that only /etc/ld.so.conf names. Name the file itself in a `conflict`; no pattern with a star decides it
    /var/lib/dpkg/status: size is 1 and 2
        agent     file of 1 byte, layer 2 DIG
        business  file of 2 bytes, layer 2 DIG
        note      the database of dpkg lists the packages of one image only, and two cannot be combined: programs that install, remove or scan packages would be misled. Layout "split" keeps both. If nothing in the box asks dpkg, name the file itself in a `conflict`; no pattern with a star decides it. The box's SBOM lists both images' packages

      = help: layout "merged" has each path once. Decide in the Boxfile: these lines are enough, and
        each policy is yours to choose: prefer-agent, prefer-business or drop; `merge` combines
        both files (passwd, group, shadow and gshadow only). The first pattern that matches
        decides, so put them above other `conflict`s:
          conflict "/etc/ld.so.cache" policy="drop"
          conflict "/var/lib/dpkg/status" policy="prefer-agent"
        or keep each image whole: `layout "split"`
    "#);
    scene.policies(
        "conflict \"/etc/ld.so.cache\" policy=\"drop\"\n\
         conflict \"/var/lib/dpkg/status\" policy=\"prefer-business\"\n",
    );
    scene.builds();
}

#[test]
fn two_c_libraries_are_refused() {
    let agent = Layer::new().file("/lib64/ld-linux-x86-64.so.2", 0o755, "glibc");
    let business = Layer::new().file("/lib/ld-musl-x86_64.so.1", 0o755, "musl");
    let scene = Scene::new(agent, business, "conflict \"/**\" policy=\"prefer-agent\"\n");
    assert_snapshot!(scene.refused(), @r#"
    error: the images have different C libraries, agent (glibc, by /lib64/ld-linux-x86-64.so.2 (blake3:DIG)) and business (musl, by /lib/ld-musl-x86_64.so.1 (blake3:DIG)), but one root can have only one: a program that is linked with the other does not start, or fails later
      --> Boxfile:3:11
       |
     3 |     image "oci:agent"
       |           ^^^^^^^^^^^ named here
       |
       = help: declare layout "split", in which each image keeps its own, or build both images on the same base
    "#);
}

#[test]
fn conflicts_of_accounts_do_not_show_passwords() {
    let accounts = |uid: u32, hash: &str| {
        Layer::new()
            .file(
                "/etc/passwd",
                0o644,
                format!("root:x:0:0:root:/root:/bin/sh\napp:x:{uid}:100::/app:\n"),
            )
            .file("/etc/shadow", 0o640, format!("root:*:19000::::::\napp:{hash}:19000::::::\n"))
    };
    let scene = Scene::new(
        accounts(1000, "$y$SECRET"),
        accounts(1001, "$y$OTHER"),
        "conflict \"/etc/passwd\" policy=\"merge\"\nconflict \"/etc/shadow\" policy=\"merge\"\n",
    );
    let output = scene.refused();
    assert!(!output.contains("$y$"), "{output}");
    assert_snapshot!(output, @r#"
    error: the images conflict at 2 paths
      --> Boxfile:3:11
       |
     3 |     image "oci:agent"
       |           ^^^^^^^^^^^ the agent's files
    ...
     6 |     image "oci:business"
       |           -------------- the business component's files

    /etc/passwd: content is blake3:DIG and blake3:DIG
        agent     file of 52 bytes, layer 2 DIG
        business  file of 52 bytes, layer 2 DIG
        note      `merge` cannot combine the files: both have a line for `app` (agent: line 2, business: line 2), and the uid is `1000` and `1001`. Let the images agree, or write `prefer-agent` or `prefer-business`
    /etc/shadow: size is 45 and 44
        agent     file of 45 bytes, layer 2 DIG
        business  file of 44 bytes, layer 2 DIG
        note      `merge` cannot combine the files: both have a line for `app` (agent: line 2, business: line 2), and the password differs. Let the images agree, or write `prefer-agent` or `prefer-business`

      = help: follow the notes, or keep each image whole: `layout "split"`
    "#);
}

#[test]
fn a_policy_that_decides_nothing_is_a_warning_each_time() {
    let scene = Scene::new(
        Layer::new().file("/etc/motd", 0o644, "one"),
        Layer::new().file("/etc/motd", 0o644, "other"),
        "conflict \"/etc/*\" policy=\"prefer-agent\"\nconflict \"/etc/motd\" policy=\"drop\"\n\
         conflict \"/srv/**\" policy=\"drop\"\n",
    );
    let first = scene.builds();
    let again = scene.builds();
    assert_eq!(first.json()["warnings"], again.json()["warnings"]);
    assert_eq!(again.json()["warnings"].as_array().map(Vec::len), Some(2));
    assert_eq!(again.json()["cached"], true);
    assert_snapshot!(scene.run(&["plan"]).notes, @r#"
    warning: unused `conflict`: an earlier one decides every path that it matches
       --> Boxfile:10:10
        |
     10 | conflict "/etc/motd" policy="drop"
        |          ^^^^^^^^^^^ matches only what an earlier pattern matches
        |
        = help: remove it, or move it above the other: the first pattern that matches decides

    warning: unused `conflict`: no conflict matches this pattern
       --> Boxfile:11:10
        |
     11 | conflict "/srv/**" policy="drop"
        |          ^^^^^^^^^ matches no conflict
        |
        = help: remove it
    "#);
}

#[test]
fn what_cannot_be_united_is_refused_before_anything_is_read() {
    let scene =
        Scene::new(Layer::new(), Layer::new(), "conflict \"/etc/hosts\" policy=\"merge\"\n");
    assert_snapshot!(scene.refused(), @r#"
    error: `merge` cannot combine `/etc/hosts`
      --> Boxfile:9:30
       |
     9 | conflict "/etc/hosts" policy="merge"
       |                              ^^^^^^^ only for four files of accounts
       |
       = help: `merge` is for /etc/passwd, /etc/group, /etc/shadow and /etc/gshadow; choose one image's file, or neither
    "#);
}

#[test]
fn what_a_mount_would_hide_is_named_with_its_image() {
    let scene = Scene::new(
        Layer::new(),
        Layer::new().file("/srv/data/file", 0o644, "x"),
        "share \"data\" guest=\"/srv/data\" component=\"agent\"\n",
    );
    assert_snapshot!(scene.refused(), @r#"
    error: the business image has files (file) at /srv/data, in the way of the share `data`
      --> Boxfile:9:20
       |
     9 | share "data" guest="/srv/data" component="agent"
       |                    ^^^^^^^^^^^ named here
       |
       = help: choose another path, or remove it from the image
    "#);
}
