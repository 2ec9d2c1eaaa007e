//! Tests that a build refuses an image with files at the path of a share, of a scratch disk or of a working directory.

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
