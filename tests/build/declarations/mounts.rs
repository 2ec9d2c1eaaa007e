//! Shares and scratch disks: they must not hide what an image has.

use testkit::images::Layer;

use crate::checkout::{BOXFILE, Checkout, shown};

/// Returns what the build says of a mount over an image whose /data has one file.
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
        = help: choose another place, or remove it from the image
    "#);
    insta::assert_snapshot!(refused("scratch \"tmp\" guest=\"/agent\" size=\"1MiB\""), @r#"
    error: the agent image has a file at /agent, in the way of the scratch `tmp`
       --> Boxfile:13:21
        |
     13 | scratch "tmp" guest="/agent" size="1MiB"
        |                     ^^^^^^^^ named here
        |
        = help: choose another place, or remove it from the image
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
