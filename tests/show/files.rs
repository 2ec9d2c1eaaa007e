//! Tests that `boxbuild`'s reports on a box show which files are from the checkout.

use testkit::images::Layer;

use crate::checkout::{BOXFILE, Checkout, WHOLE, shown};
use crate::schema::assert_fits;

const LINES: &str = r#"    image "oci:images/agent"
    file "conf.yaml" to="/etc/app/"
    file "static" to="/agent"
"#;

/// Builds a box whose agent has a new file from the checkout, and one that replaces a file of the image.
fn built() -> Checkout {
    let checkout = Checkout::new();
    checkout.agent_of(Layer::new().file("/agent/main", 0o755, "old").dir("/agent", 0o700).to_tar());
    checkout.write("conf.yaml", "colour: red\n");
    checkout.write("static/main", "#!/bin/none\n");
    checkout.write("static/more", "more");
    let text = BOXFILE.replace("    image \"oci:images/agent\"\n", LINES);
    checkout.write(
        "Boxfile",
        text.replace("health \"tcp\"", "health \"tcp\"\n    entrypoint \"/agent/more\""),
    );
    std::fs::set_permissions(
        checkout.path("static/more"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    checkout.built(WHOLE);
    checkout
}

#[test]
fn an_entry_names_the_file_that_it_is_from() {
    let checkout = built();
    let listed = checkout.result(&["ls", "test.box", "--component", "agent", "--origin"]);
    insta::assert_snapshot!(shown(&listed), @"
    generated                                          /
    agent layer 1 DIG                         /agent
    agent file static                                  /agent/main
    agent file static                                  /agent/more
    generated                                          /etc
    generated                                          /etc/app
    agent file conf.yaml                               /etc/app/conf.yaml
    ");
    let report = checkout.run(&["ls", "test.box", "--component", "agent", "--json"]).json();
    assert_fits("ls", &report);
    let entries = report["entries"].as_array().unwrap();
    let main = entries.iter().find(|it| it["path"] == "/agent/main").unwrap();
    insta::assert_snapshot!(main["origin"], @r#"{"component":"agent","kind":"file","path":"static"}"#);
}

#[test]
fn a_difference_to_the_image_names_the_file() {
    let checkout = built();
    let agent = ["diff", "oci:images/agent", "test.box", "--component", "agent"];
    let ran = checkout.run(&agent);
    assert_eq!(ran.code, 5, "{}", ran.notes);
    insta::assert_snapshot!(shown(&ran.result), @"
    changed  /agent/main  mode
             a  0755: file, 3 bytes, layer 1 DIG
             b  0644: file, 12 bytes, agent file static
    added    /agent/more  file, 4 bytes, agent file static
    added    /etc  directory, 2 entries below, generated
    ");
}

#[test]
fn a_plan_and_the_description_of_a_box_list_the_files() {
    let checkout = built();
    let plan = checkout.result(&["plan"]);
    let lines: Vec<&str> = plan.lines().filter(|it| it.starts_with("file")).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    file      static, at /agent of the agent, 16 bytes
    file      conf.yaml, at /etc/app/conf.yaml of the agent, 12 bytes
    ");
    let report = checkout.run(&["plan", "--json"]).json();
    assert_fits("plan", &report);
    insta::assert_snapshot!(report["files"], @r#"[{"bytes":16,"component":"agent","path":"static","to":"/agent"},{"bytes":12,"component":"agent","path":"conf.yaml","to":"/etc/app/conf.yaml"}]"#);
    let text = checkout.result(&["inspect", "test.box"]);
    let lines: Vec<&str> = text.lines().filter(|it| it.contains("agent file")).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    agent file        static
    agent file        conf.yaml
    ");
    let report = checkout.run(&["inspect", "test.box", "--json"]).json();
    assert_fits("inspect", &report);
    assert_eq!(
        report["files"][1],
        serde_json::json!({ "component": "agent", "path": "conf.yaml" })
    );
}
