//! Tests that the lock pins images in archives.

use testkit::images::{Image, Saved, pack};

use crate::boxfile;
use crate::checkout::{Checkout, agent_with, business_with, shown};

/// Writes the agent's image as an OCI archive.
fn archive_of(checkout: &Checkout, program: &str) {
    let layout = tempfile::tempdir().unwrap();
    let image = agent_with(program);
    image.write_layout(layout.path(), "v1", testkit::images::Compression::Gzip).unwrap();
    checkout.write("images/agent.tar", pack(layout.path()).unwrap().bytes());
}

/// Writes the business image and further images as a `docker save` archive.
fn save(checkout: &Checkout, program: &str, further: &[(&Image, &[&str])]) {
    let image = business_with(program);
    let mut list: Vec<(&Image, &[&str])> = vec![(&image, &["app:v1"])];
    list.extend(further);
    checkout.write("images/app.tar", Image::docker_archive(&list, Saved::Legacy).bytes());
}

fn checkout() -> Checkout {
    let checkout = Checkout::new();
    archive_of(&checkout, "agent");
    save(&checkout, "app", &[]);
    let text = boxfile("oci-archive:images/agent.tar:v1", "docker-archive:images/app.tar:app:v1");
    checkout.write("Boxfile", text);
    checkout
}

#[test]
fn a_lock_names_what_the_boxfile_names() {
    let checkout = checkout();
    checkout.result(&["lock"]);
    let lock = checkout.read("Boxfile.lock");
    for source in ["oci-archive:images/agent.tar:v1", "docker-archive:images/app.tar:app:v1"] {
        assert!(lock.contains(&format!("source = {source:?}")), "{lock}");
    }
    checkout.built(&["--locked"]);
    assert_eq!(checkout.read("Boxfile.lock"), lock);
}

#[test]
fn an_image_that_was_replaced_is_missed() {
    let checkout = checkout();
    checkout.built(&[]);
    archive_of(&checkout, "newer");
    insta::assert_snapshot!(shown(&checkout.fails(&["build", "--offline"])), @r#"
    error: the lock pins `agent` to sha256:DIGEST, which is no longer in images/agent.tar
      --> Boxfile:3:11
       |
     3 |     image "oci-archive:images/agent.tar:v1"
       |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ named here
       |
       = help: put it back, or run `boxbuild update agent` to take what is there now
    "#);
    archive_of(&checkout, "agent");
    save(&checkout, "newer", &[]);
    insta::assert_snapshot!(shown(&checkout.fails(&["build", "--offline"])), @r#"
    error: the lock pins `business` to sha256:DIGEST, which is no longer in images/app.tar
      --> Boxfile:8:11
       |
     8 |     image "docker-archive:images/app.tar:app:v1"
       |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ named here
       |
       = help: put it back, or run `boxbuild update business` to take what is there now
    "#);
    insta::assert_snapshot!(shown(&checkout.result(&["update"])), @r"
    business (linux/amd64): sha256:DIG → sha256:DIG
      - layer sha256:DIG
      + layer sha256:DIG
    ");
    checkout.built(&["--locked"]);
}

#[test]
fn a_pinned_image_is_found_beside_others() {
    let checkout = checkout();
    let before = checkout.built(&[]);
    save(&checkout, "newer", &[(&business_with("app"), &["app:former"])]);
    assert_eq!(checkout.built(&["--locked"])["box"], before["box"]);
}

#[test]
fn paths_start_from_the_boxfile() {
    let checkout = checkout();
    checkout.write("elsewhere/x", "");
    let mut command = checkout.boxbuild(&["check", "-f", "../Boxfile"]);
    assert!(command.current_dir(checkout.path("elsewhere")).status().unwrap().success());
    let mut command = checkout.boxbuild(&["build", "-f", "../Boxfile", "-o", "out.box"]);
    let output = command.current_dir(checkout.path("elsewhere")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
