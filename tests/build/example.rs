//! Tests that `Boxfile.example`, which explains every declaration, builds.

use std::fs;

use testbed::Workspace;

use crate::checkout::{Checkout, files, tools};

#[test]
fn the_example_of_every_declaration_builds() {
    let workspace = Workspace::find();
    let checkout = Checkout::new();
    let boxfile = fs::read_to_string(workspace.path("Boxfile.example")).unwrap();
    checkout.write("Boxfile.example", boxfile);
    let skill = "examples/hello/skills/greet";
    for (path, bytes) in files(&workspace.path(skill)) {
        checkout.write(&format!("{skill}/{}", path.display()), bytes);
    }
    let images = checkout.path("examples/hello/images");
    testbed::hello::write_images(&tools().hello_agent, &images).unwrap();
    checkout.result(&["check", "--file", "Boxfile.example"]);
    checkout.result(&["fmt", "--check", "Boxfile.example"]);
    let built = checkout.built(&["--file", "Boxfile.example"]);
    assert_eq!(built["name"], "example");
    assert!(checkout.path("example.box/index.json").exists());
}
