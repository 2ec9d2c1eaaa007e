//! Tests of `boxbuild init` with images in archives.

use std::fs;

use testkit::images::{Compression, Image, Saved, pack};

use crate::checkout::{Checkout, agent_with, business_with};

/// Makes a checkout without a Boxfile, with images in an OCI archive and in a Docker archive.
fn checkout() -> Checkout {
    let checkout = Checkout::new();
    fs::remove_file(checkout.path("Boxfile")).unwrap();
    fs::remove_dir_all(checkout.path("images")).unwrap();
    let layout = tempfile::tempdir().unwrap();
    agent_with("agent").write_layout(layout.path(), "v1", Compression::Zstd).unwrap();
    checkout.write("images/agent.tar", pack(layout.path()).unwrap().bytes());
    let saved = Image::docker_archive(&[(&business_with("app"), &["app:v1"])], Saved::Legacy);
    checkout.write("images/business.tar", saved.bytes());
    checkout
}

#[test]
fn archives_are_found() {
    let checkout = checkout();
    checkout.write("images/other.tar", "no archive");
    checkout.result(&["init"]);
    let text = checkout.read("Boxfile");
    assert!(text.contains("image \"oci-archive:images/agent.tar\""), "{text}");
    assert!(text.contains("image \"docker-archive:images/business.tar\""), "{text}");
    checkout.built(&[]);
}

#[test]
fn archives_are_named() {
    let checkout = checkout();
    checkout.result(&["init", "oci-archive:images/agent.tar:v1"]);
    assert!(checkout.read("Boxfile").contains("oci-archive:images/agent.tar:v1"));
    fs::remove_file(checkout.path("Boxfile")).unwrap();
    insta::assert_snapshot!(checkout.fails(&["init", "docker-archive:images/business.tar:v2"]), @r#"
    error: images/business.tar has no image "v2"; it has app:v1
      = help: name one of these, as "docker-archive:FILE:NAME:TAG"
    "#);
    insta::assert_snapshot!(checkout.fails(&["init", "oci-archive:images/business.tar"]), @r#"
    error: images/business.tar is not an archive of an OCI image layout: `docker save` wrote it
      = help: write "docker-archive:images/business.tar"
    "#);
}
