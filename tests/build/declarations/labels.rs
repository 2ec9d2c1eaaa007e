//! Tests of the images' labels. A label is used if neither the Boxfile nor the image's config has the setting.

use std::collections::BTreeMap;

use serde_json::json;
use testkit::images::{Config, Image, Layer};

use crate::checkout::{Checkout, shown};

/// Writes an image with these labels and this entrypoint, which may be empty.
fn image(checkout: &Checkout, name: &str, entrypoint: &[&str], labels: &[(&str, &str)]) {
    let owned = |it: &(&str, &str)| (it.0.to_owned(), it.1.to_owned());
    let config = Config {
        entrypoint: entrypoint.iter().map(|it| (*it).to_owned()).collect(),
        labels: labels.iter().map(owned).collect::<BTreeMap<_, _>>(),
        ..Config::default()
    };
    let layer = Layer::new().file("/bin/agent", 0o755, name).file("/bin/own", 0o755, name).file(
        "/agent/venv/bin/python",
        0o755,
        name,
    );
    checkout.image(name, &Image::new(config).with(layer.to_tar()));
}

const AGENT: [(&str, &str); 5] = [
    ("a3s.type", "agent"),
    ("a3s.entrypoint", "/agent/venv/bin/python /agent/agent.py"),
    ("a3s.port", "4090"),
    ("a3s.workdir", "/agent"),
    ("a3s.box.env.LOG", "info"),
];

/// A3S-77.
#[test]
fn an_agent_says_how_it_runs() {
    let checkout = Checkout::new();
    image(&checkout, "agent", &[], &AGENT);
    let plan = checkout.built_plan();
    let agent = &plan["agent"];
    assert_eq!(agent["argv"], json!(["/agent/venv/bin/python", "/agent/agent.py"]));
    assert_eq!((&agent["port"], &agent["health"]["port"]), (&json!(4090), &json!(4090)));
    assert_eq!(agent["workdir"], "/agent");
    assert!(agent["env"].as_array().unwrap().contains(&json!("LOG=info")));
}

/// A3S-81.
#[test]
fn a_business_image_says_where_it_works() {
    let checkout = Checkout::new();
    let labels = [("a3s.type", "business"), ("a3s.workdir", "/workspace")];
    image(&checkout, "business", &["/bin/app"], &labels);
    assert_eq!(checkout.built_plan()["business"]["workdir"], "/workspace");
}

/// X-6: the Boxfile takes precedence over the image's ENTRYPOINT and CMD, and these over the label.
#[test]
fn labels_come_last() {
    let checkout = Checkout::new();
    image(&checkout, "agent", &["/bin/agent"], &AGENT);
    assert_eq!(checkout.built_plan()["agent"]["argv"], json!(["/bin/agent"]));
    let own = "entrypoint \"/bin/own\"; port 5000; workdir \"/own\"; env LOG=\"debug\"; health";
    checkout.edit("Boxfile", "    health", &format!("    {own}"));
    let plan = checkout.built_plan();
    let agent = &plan["agent"];
    assert_eq!((&agent["argv"], &agent["port"]), (&json!(["/bin/own"]), &json!(5000)));
    assert_eq!(agent["workdir"], "/own");
    assert!(agent["env"].as_array().unwrap().contains(&json!("LOG=debug")));
}

#[test]
fn the_wrong_image() {
    let checkout = Checkout::new();
    image(&checkout, "agent", &["/bin/agent"], &[("a3s.type", "business")]);
    insta::assert_snapshot!(shown(&checkout.refused()), @r#"
    error: the image of `agent` says that it is for "business" (label `a3s.type`)
      --> Boxfile:3:11
       |
     3 |     image "oci:images/agent"
       |           ^^^^^^^^^^^^^^^^^^ named here
       |
       = help: declare it as "business", or rebuild it with the label "agent"
    "#);
    image(&checkout, "agent", &["/bin/agent"], &[("a3s.port", "http")]);
    insta::assert_snapshot!(shown(&checkout.refused()), @r#"
    error: the agent image's label `a3s.port` is "http", which is not a port
      --> Boxfile:3:11
       |
     3 |     image "oci:images/agent"
       |           ^^^^^^^^^^^^^^^^^^ named here
       |
       = help: correct it, and rebuild the image
    "#);
}

/// The error points to the image if the image, not the Boxfile, has settings with which no component can start.
#[test]
fn an_image_that_cannot_be_started() {
    let checkout = Checkout::new();
    let refused = |config: Config| {
        checkout.image("agent", &Image::new(config).with(Layer::new().dir("/srv", 0o755).to_tar()));
        let error = checkout.run(&["build", "--json"]).json()["errors"][0].clone();
        assert_eq!(error["code"], "image-unusable", "{error}");
        assert_eq!(error["labels"][0]["line"], 3, "{error}");
        error["message"].as_str().unwrap().to_owned()
    };
    let config = |program: &str, working_dir: &str| Config {
        entrypoint: vec![program.to_owned()],
        working_dir: working_dir.to_owned(),
        ..Config::default()
    };
    let labels = BTreeMap::from([("a3s.port".to_owned(), "1024".to_owned())]);
    let messages = [
        config("/bin/agent", "srv"),
        config("/bin/agent", "/proc/x"),
        config("", "/"),
        Config { labels, ..config("/bin/agent", "/") },
    ]
    .map(refused);
    insta::assert_snapshot!(messages.join("\n"), @r#"
    the agent image's workdir "srv": it is not an absolute path; begin it with `/`
    the agent image's workdir "/proc/x": it is in /proc, /sys or /dev, which are the kernel's; choose another directory
    the agent image names no program
    the agent image's port is 1024, which init itself uses
    "#);
    checkout.edit("Boxfile", "    health", "    port 1024; health");
    let error = checkout.run(&["build", "--json"]).json()["errors"][0].clone();
    assert_eq!(error["code"], "boxfile-invalid", "{error}");
}
