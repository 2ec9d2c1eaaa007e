//! Tests of the images' labels. A label is used if neither the Boxfile nor the image's config has the setting.

use std::collections::BTreeMap;
use std::fs;

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

#[test]
fn a_business_image_says_where_it_works() {
    let checkout = Checkout::new();
    let labels = [("a3s.type", "business"), ("a3s.workdir", "/workspace")];
    image(&checkout, "business", &["/bin/app"], &labels);
    assert_eq!(checkout.built_plan()["business"]["workdir"], "/workspace");
}

/// The Boxfile takes precedence over the image's ENTRYPOINT and CMD, and these over the label.
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

/// Writes an image with this config and with all files from which the conventions of A3S derive variables.
fn conventional(checkout: &Checkout, name: &str, config: Config) {
    let directory = config.working_dir.clone();
    let at = |path: &str| format!("{directory}/{path}");
    let layer = Layer::new()
        .file(&at("venv/bin/python"), 0o755, "python")
        .file(&at("node_modules/.bin/tool"), 0o755, "tool")
        .file(&at(".env"), 0o644, "LOG=file\nMODE='of the file'\n")
        .file("/etc/passwd", 0o644, "root:x:0:0::/root:/bin/sh\n");
    checkout.image(name, &Image::new(config).with(layer.to_tar()));
}

fn labels(labels: &[(&str, &str)]) -> BTreeMap<String, String> {
    labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|it| (*it).to_owned()).collect()
}

/// A Boxfile that only names two images of A3S.
#[test]
fn images_that_follow_the_conventions_need_no_declarations() {
    let checkout = Checkout::new();
    checkout.edit("Boxfile", "    health \"tcp\"\n", "");
    let agent = Config {
        entrypoint: words(&["/agent/venv/bin/python", "/agent/agent.py"]),
        env: words(&["PATH=/usr/local/bin:/usr/bin:/bin", "LOG=config", "PYTHONPATH=/config"]),
        working_dir: "/agent".to_owned(),
        labels: labels(&[
            ("a3s.type", "agent"),
            ("a3s.interface", "grpc"),
            ("a3s.port", "4090"),
            ("a3s.runtime", "python:3.11"),
            ("a3s.entrypoint", "/agent/venv/bin/python /agent/other.py"),
            ("a3s.box.llm.provider", "openai"),
        ]),
        ..Config::default()
    };
    conventional(&checkout, "agent", agent);
    let business = Config {
        cmd: words(&["node", "app.js"]),
        env: words(&["PATH=/usr/local/bin:/usr/bin:/bin"]),
        working_dir: "/workspace".to_owned(),
        labels: labels(&[("a3s.type", "business"), ("a3s.runtime", "nodejs:20")]),
        ..Config::default()
    };
    conventional(&checkout, "business", business);
    let plan = checkout.built_plan();
    let agent = &plan["agent"];
    assert_eq!(agent["argv"], json!(["/agent/venv/bin/python", "/agent/agent.py"]));
    assert_eq!((&agent["workdir"], &agent["port"]), (&json!("/agent"), &json!(4090)));
    assert_eq!(agent["health"], json!({ "kind": "a3s", "port": 4090 }));
    assert_eq!(
        agent["env"],
        json!([
            "HOME=/root",
            "LLM_PROVIDER=openai",
            "LOG=file",
            "MODE=of the file",
            "NODE_PATH=/agent/node_modules",
            "PATH=/agent/venv/bin:/agent/node_modules/.bin:/usr/local/bin:/usr/bin:/bin",
            "PYTHONPATH=/config",
            "VIRTUAL_ENV=/agent/venv",
        ])
    );
    let business = &plan["business"];
    assert_eq!(business["argv"], json!(["node", "app.js"]));
    assert_eq!(business["workdir"], "/workspace");
    assert_eq!(
        business["env"],
        json!([
            "HOME=/workspace",
            "LOG=file",
            "MODE=of the file",
            "NODE_PATH=/workspace/node_modules",
            "PATH=/workspace/venv/bin:/workspace/node_modules/.bin:/usr/local/bin:/usr/bin:/bin",
            "PYTHONPATH=/workspace",
            "VIRTUAL_ENV=/workspace/venv",
        ])
    );
    checkout.edit("Boxfile", "images/agent\"\n", "images/agent\"\n    health \"tcp\"\n");
    let health = &checkout.built_plan()["agent"]["health"];
    assert_eq!(health, &json!({ "kind": "tcp", "port": 4090 }), "the Boxfile declares it");
}

/// The images of A3S are written for another runtime, in which agents listen on AF_VSOCK.
#[test]
fn an_image_that_listens_on_vsock() {
    let checkout = Checkout::new();
    let program = ["/agent/venv/bin/python", "/agent/agent.py", "--listen", "vsock://4088"];
    image(&checkout, "agent", &program, &AGENT);
    let refused = shown(&checkout.refused());
    assert_eq!(shown(&checkout.fails(&["check", "--images"])), refused);
    insta::assert_snapshot!(refused, @r#"
    error: the agent image's command line has the address "vsock://4088" of AF_VSOCK, which no program in a box can use
      --> Boxfile:3:11
       |
     3 |     image "oci:images/agent"
       |           ^^^^^^^^^^^^^^^^^^ named here
       |
       = help: listen on the loopback: write `entrypoint "/agent/venv/bin/python" "/agent/agent.py" "--listen" "127.0.0.1:4088"` in `agent`
    "#);
    let line =
        r#"entrypoint "/agent/venv/bin/python" "/agent/agent.py" "--listen" "127.0.0.1:4088""#;
    checkout.edit("Boxfile", "    health", &format!("    {line}\n    health"));
    assert_eq!(checkout.built_plan()["agent"]["argv"][3], "127.0.0.1:4088");
}

#[test]
fn a_boxfile_in_toml_for_an_image_that_listens_on_vsock() {
    let checkout = Checkout::new();
    let program = ["/agent/venv/bin/python", "/agent/agent.py", "--listen", "vsock://4088"];
    image(&checkout, "agent", &program, &AGENT);
    fs::remove_file(checkout.path("Boxfile")).unwrap();
    checkout.write("Boxfile.toml", "box = \"test\"\n\n[agent]\nimage = \"oci:images/agent\"\n");
    let line = r#"entrypoint = ["/agent/venv/bin/python", "/agent/agent.py", "--listen", "127.0.0.1:4088"]"#;
    let refused = checkout.fails(&["check", "--images"]);
    assert!(refused.contains(&format!("write `{line}` in `agent`")), "{refused}");
    checkout.edit("Boxfile.toml", "[agent]\n", &format!("[agent]\n{line}\n"));
    assert_eq!(checkout.built_plan()["agent"]["argv"][3], "127.0.0.1:4088");
}

/// A script of a shell can contain secrets that are not recognized, so the error does not repeat it.
#[test]
fn a_script_that_listens_on_vsock() {
    let checkout = Checkout::new();
    let script = "mysql -phunter2pw; exec /bin/agent --listen vsock://4088";
    image(&checkout, "agent", &["/bin/sh", "-c", script], &AGENT);
    let refused = checkout.refused();
    assert!(!refused.contains("hunter2pw"), "{refused}");
    let help = "= help: listen on the loopback: declare `entrypoint` in `agent` with `127.0.0.1:4088` in place of `vsock://4088`";
    assert!(refused.contains(help), "{refused}");
}

#[test]
fn a_key_in_a_label() {
    let checkout = Checkout::new();
    let key = "sk-0123456789abcdefghijklmn";
    let model = [("a3s.box.llm.provider", "openai"), ("a3s.box.llm.api_key", key)];
    image(&checkout, "agent", &["/bin/agent"], &model);
    let refused = checkout.refused();
    assert!(!refused.contains(key), "{refused}");
    insta::assert_snapshot!(shown(&refused), @r#"
    error: the agent image has the key of a model in its label `a3s.box.llm.api_key`, which everybody who has the image can read
      --> Boxfile:3:11
       |
     3 |     image "oci:images/agent"
       |           ^^^^^^^^^^^^^^^^^^ named here
       |
       = help: declare the secret `OPENAI_API_KEY` in the Boxfile, which replaces the label; and make a new key, because everybody with the image has this one
    "#);
    checkout.edit("Boxfile", "vm cpus=1", "secret \"OPENAI_API_KEY\"\nvm cpus=1");
    let plan = checkout.built_plan();
    assert!(plan["agent"]["env"].as_array().unwrap().contains(&json!("LLM_PROVIDER=openai")));
    assert!(!plan.to_string().contains(key), "{plan}");
}
