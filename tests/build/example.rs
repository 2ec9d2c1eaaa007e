//! `Boxfile.example`, which explains every declaration, builds.

use std::fs;

use testkit::Workspace;

use crate::checkout::{Checkout, tools};

#[test]
fn the_example_of_every_declaration_builds() {
    let workspace = Workspace::find();
    let checkout = Checkout::new();
    let boxfile = fs::read_to_string(workspace.path("Boxfile.example")).unwrap();
    checkout.write("Boxfile.example", boxfile);
    for file in ["SKILL.md", "tools/greet.sh"] {
        let file = format!("examples/hello/skills/greet/{file}");
        checkout.write(&file, fs::read(workspace.path(&file)).unwrap());
    }
    let images = checkout.path("examples/hello/images");
    testkit::hello::write_images(&tools().hello_agent, &images).unwrap();
    let built = checkout.built(&["--file", "Boxfile.example"]);
    assert_eq!(built["name"], "example");
    assert!(checkout.path("example.box/index.json").exists());
}
