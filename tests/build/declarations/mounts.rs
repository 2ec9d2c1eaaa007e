//! Tests that a build refuses an image with files at the path of a share, of a scratch disk or of a working directory.

use serde_json::json;
use testkit::images::Layer;

use crate::checkout::{BOXFILE, Checkout, shown};

/// Returns the errors of a build with this declaration. The agent's image has a file in `/data`.
fn refused(declaration: &str) -> String {
    let checkout = Checkout::new();
    checkout
        .agent_of(Layer::new().file("/agent", 0o755, "a").file("/data/kept", 0o644, "").to_tar());
    checkout.write("Boxfile", format!("{BOXFILE}{declaration}\n"));
    shown(&checkout.refused())
}

#[test]
fn a_share_over_files_of_an_image() {
    insta::assert_snapshot!(refused("share \"data\" guest=\"/data\""), @r#"
    error: the agent image has files (kept) at /data, in the way of the share `data`
       --> Boxfile:13:20
        |
     13 | share "data" guest="/data"
        |                    ^^^^^^^ named here
        |
        = help: choose another path, or remove it from the image
    "#);
    insta::assert_snapshot!(refused("scratch \"tmp\" guest=\"/agent\" size=\"1MiB\""), @r#"
    error: the agent image has a file at /agent, in the way of the scratch `tmp`
       --> Boxfile:13:21
        |
     13 | scratch "tmp" guest="/agent" size="1MiB"
        |                     ^^^^^^^^ named here
        |
        = help: choose another path, or remove it from the image
    "#);
}

#[test]
fn a_share_elsewhere_or_for_the_other_component() {
    for share in
        ["guest=\"/more\"", "guest=\"/data/sub\"", "guest=\"/data\" component=\"business\""]
    {
        let checkout = Checkout::new();
        let files = Layer::new().file("/agent", 0o755, "a").file("/data/kept", 0o644, "");
        checkout.agent_of(files.dir("/more", 0o755).to_tar());
        checkout.write("Boxfile", format!("{BOXFILE}share \"data\" {share}\n"));
        assert_eq!(checkout.built_plan()["shares"][0]["name"], "data", "{share}");
    }
}

/// A volume gets the files of the image, so it may be where these are. A reviewer sees volumes and published ports.
#[test]
fn volumes_and_published_ports_are_in_the_plan_and_shown() {
    let checkout = Checkout::new();
    let files = Layer::new().file("/agent", 0o755, "a").file("/data/kept", 0o644, "");
    checkout.agent_of(files.to_tar());
    checkout.built(&["--output", "old.box"]);
    let declared =
        "volume \"data\" guest=\"/data\" component=\"agent\"\npublish 3000\npublish 80 host=8080\n";
    checkout.write("Boxfile", format!("{BOXFILE}{declared}"));
    checkout.built(&["--output", "new.box"]);
    let plan = checkout.plan("new.box");
    assert_eq!(plan["volumes"][0]["guest"], "/data");
    assert_eq!(plan["publish"][0], json!({ "component": "agent", "guest": 80, "host": 8080 }));
    let old = checkout.plan("old.box");
    assert!(old["volumes"].is_null() && old["publish"].is_null(), "{old}");
    let lines = |args: &[&str]| {
        let text = checkout.run(args).result;
        let is_declared = |it: &&str| it.contains("volume") || it.contains("publish");
        text.lines().filter(is_declared).map(|it| format!("{it}\n")).collect::<String>()
    };
    insta::assert_snapshot!(lines(&["inspect", "new.box"]), @"
    publish 80     of the agent, at port 8080 of the host's loopback
    publish 3000   of the agent, at port 3000 of the host's loopback
    volume data    at /data, kept on the host as the volume test.data, for the agent
    ");
    let changes = [
        &["diff", "old.box", "new.box"][..],
        &["diff", "--format", "markdown", "old.box", "new.box"],
    ];
    insta::assert_snapshot!(changes.map(lines).concat(), @"
    plan     publish  +component=agent guest=3000 host=3000
    plan     publish  +component=agent guest=80 host=8080
    plan     volumes data  +guest=/data scope=agent
    | ⚠️ **allows more** | `publish 80` | – | `of the agent, at port 8080 of the host's loopback` |
    | ⚠️ **allows more** | `publish 3000` | – | `of the agent, at port 3000 of the host's loopback` |
    | ⚠️ **allows more** | `volume data` | – | `at /data, kept on the host as the volume test.data, for the agent` |
    | `publish` | `+component=agent guest=3000 host=3000` |
    | `publish` | `+component=agent guest=80 host=8080` |
    | `volumes data` | `+guest=/data scope=agent` |
    ");
}

#[test]
fn a_volume_over_a_file_and_ports_that_cannot_be_published() {
    insta::assert_snapshot!(refused("volume \"data\" guest=\"/agent\""), @r#"
    error: the agent image has a file at /agent, in the way of the volume `data`
       --> Boxfile:13:21
        |
     13 | volume "data" guest="/agent"
        |                     ^^^^^^^^ named here
        |
        = help: choose another path, or remove it from the image
    "#);
    insta::assert_snapshot!(refused("publish 80"), @"
    error: a box publishes no port of the host below 1024, such as 80
       --> Boxfile:13:9
        |
     13 | publish 80
        |         ^^ a port of the host below 1024
        |
        = help: choose another port of the host: `host=8080`
    ");
    insta::assert_snapshot!(refused("publish 3000 3001 host=8080"), @"
    error: one port of the host cannot lead to several ports
       --> Boxfile:13:14
        |
     13 | publish 3000 3001 host=8080
        |              ^^^^ another port
        |
        = help: publish it by itself
    ");
    insta::assert_snapshot!(refused("publish 3000\npublish 4000 host=3000"), @"
    error: `host=3000` is given twice
       --> Boxfile:14:9
        |
     13 | publish 3000
        |         ---- given first
     14 | publish 4000 host=3000
        |         ^^^^ given again
        |
        = help: remove one of them
    ");
}

/// Makes a checkout whose agent has the working directory `workdir`. Its image has a file, a directory, and links to both.
fn working_in(workdir: &str) -> Checkout {
    let checkout = Checkout::new();
    let files = Layer::new().file("/agent", 0o755, "a").file("/srv/file", 0o644, "");
    let links = files.symlink("/to-file", "srv/file").symlink("/to-directory", "srv");
    checkout.agent_of(links.to_tar());
    let declared = BOXFILE.replacen("agent {", &format!("agent {{\n    workdir \"{workdir}\""), 1);
    checkout.write("Boxfile", declared);
    checkout
}

#[test]
fn a_working_directory_that_is_a_file() {
    insta::assert_snapshot!(shown(&working_in("/srv/file").refused()), @r#"
    error: the agent image has a file at /srv/file, in the way of the working directory of the agent
      --> Boxfile:3:13
       |
     3 |     workdir "/srv/file"
       |             ^^^^^^^^^^^ named here
       |
       = help: choose another path, or remove it from the image
    "#);
    insta::assert_snapshot!(shown(&working_in("/to-file/below").refused()), @r#"
    error: the agent image has a file at /to-file, in the way of the working directory of the agent
      --> Boxfile:3:13
       |
     3 |     workdir "/to-file/below"
       |             ^^^^^^^^^^^^^^^^ named here
       |
       = help: choose another path, or remove it from the image
    "#);
}

#[test]
fn a_working_directory_that_is_missing_or_reached_by_a_link() {
    for workdir in ["/srv", "/srv/new/deep", "/to-directory", "/to-directory/new"] {
        assert_eq!(working_in(workdir).built_plan()["agent"]["workdir"], workdir);
    }
}
