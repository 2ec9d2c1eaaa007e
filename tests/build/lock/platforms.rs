//! Tests of platforms: the lock has pins for every declared platform, although only linux/amd64 can be built.

use testkit::images::Image;

use super::{LOCK, locked, names};
use crate::checkout::{BOXFILE, Checkout, agent_with, business_with, shown};

/// Makes a checkout for two platforms, with images for both.
fn checkout() -> Checkout {
    let checkout = Checkout::new();
    let both = |image: Image| [image.clone(), image.architecture("arm64")];
    for (name, images) in
        [("agent", both(agent_with("agent"))), ("business", both(business_with("app")))]
    {
        Image::write_index(&images, &checkout.path(&format!("images/{name}")), "latest").unwrap();
    }
    checkout.write("Boxfile", format!("{BOXFILE}platform \"linux/amd64\" \"linux/arm64\"\n"));
    checkout
}

#[test]
fn lock_covers_every_platform() {
    let checkout = checkout();
    let lock = locked(&checkout);
    assert_eq!(
        names(&lock),
        ["agent", "agent", "business", "business", "init", "kernel", "skill:greet"]
    );
    assert_eq!(lock.matches("platform = \"linux/arm64\"").count(), 2);
    checkout.built(&["--locked"]);
    assert_eq!(checkout.read(LOCK), lock, "what is for arm64 stays");
    // A build without a lock pins only its own platform.
    std::fs::remove_file(checkout.path(LOCK)).unwrap();
    checkout.built(&["--platform", "linux/amd64"]);
    assert_eq!(checkout.read(LOCK).matches("linux/arm64").count(), 0);
    let added = shown(&checkout.result(&["lock"]));
    insta::assert_snapshot!(added, @r"
    agent (linux/arm64): added, sha256:DIG
    business (linux/arm64): added, sha256:DIG
    ");
}

#[test]
fn each_platform_is_pinned_by_itself() {
    let checkout = checkout();
    let before = locked(&checkout);
    let images = [agent_with("agent"), agent_with("new").architecture("arm64")];
    Image::write_index(&images, &checkout.path("images/agent"), "latest").unwrap();
    assert_eq!(locked(&checkout), before);
    let reported = checkout.result(&["update"]);
    assert!(reported.starts_with("agent (linux/arm64): sha256:"), "{reported}");
    assert!(!reported.contains("amd64"), "{reported}");
}

#[test]
fn a_platform_that_is_no_longer_declared_goes() {
    let checkout = checkout();
    locked(&checkout);
    checkout.write("Boxfile", BOXFILE);
    checkout.built(&[]);
    assert_eq!(checkout.read(LOCK).matches("linux/arm64").count(), 0);
}

#[test]
fn only_one_platform_can_be_built() {
    let checkout = checkout();
    let output = checkout.fails(&["build", "--platform", "linux/arm64"]);
    insta::assert_snapshot!(output, @r#"
    error: this version builds boxes for linux/amd64 only, not for linux/arm64
      = help: declare "linux/amd64" in `platform`, and build for it: `--platform linux/amd64`
    "#);
    assert!(!checkout.path(LOCK).exists());
}

#[test]
fn a_platform_that_is_not_declared() {
    let output = Checkout::new().fails(&["build", "--platform", "linux/arm64"]);
    insta::assert_snapshot!(output, @r#"
    error: this version builds boxes for linux/amd64 only, not for linux/arm64
      = help: declare "linux/amd64" in `platform`, and build for it: `--platform linux/amd64`
    "#);
    let ran = Checkout::new().run(&["build", "--platform", "linux/risc"]);
    assert_eq!(ran.code, 2);
    assert!(ran.notes.contains("linux/amd64"), "{}", ran.notes);
}

#[test]
fn an_image_for_one_platform_only() {
    let checkout = Checkout::new();
    checkout.write("Boxfile", format!("{BOXFILE}platform \"linux/amd64\" \"linux/arm64\"\n"));
    insta::assert_snapshot!(shown(&checkout.fails(&["lock"])), @r#"
    error: the image of `agent` cannot be read: the image in images/agent is for linux/amd64; the box needs linux/arm64
      --> Boxfile:3:11
       |
     3 |     image "oci:images/agent"
       |           ^^^^^^^^^^^^^^^^^^ named here
       |
       = help: take an image for it, or build one: docker buildx build --platform linux/arm64

    error: the image of `business` cannot be read: the image in images/business is for linux/amd64; the box needs linux/arm64
      --> Boxfile:8:11
       |
     8 |     image "oci:images/business"
       |           ^^^^^^^^^^^^^^^^^^^^^ named here
       |
       = help: take an image for it, or build one: docker buildx build --platform linux/arm64
    "#);
    checkout.built(&[]);
}
