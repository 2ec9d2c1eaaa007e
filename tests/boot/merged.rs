//! A box with `layout "merged"`: each component sees the files of both images, but only its own changes.

use std::fs;

use serde_json::Value;

use crate::scenario::{Scenario, Step, assert_ready, bake, tools};

/// The agent runs programs of the business image: the shell, and a web server that serves the agent's `/agent`.
const BOXFILE: &str = r#"box "merged"
agent {
    image "oci:images/agent"
    entrypoint "/bin/sh" "-c" \
        "echo agent >/agent/mine; httpd -p 127.0.0.1:8080 -h /agent; exec /agent/bin/agent"
    health "http" path="/health"
    limits memory="64MiB"
}
business {
    image "oci:images/business"
    limits memory="64MiB"
}
layout "merged"
vm cpus=1 memory="256MiB"
"#;

/// In the business component: lists the files of the agent's image, looks for the agent's new file `mine`, and writes
/// `theirs`. Then asks the agent's web server for `mine` and `theirs`.
const BUSINESS: &str = "cat /etc/hostname; ls /agent /workspace; cat /agent/mine || echo not here; \
    echo business >/agent/theirs; cat /agent/theirs; wget -qO- http://127.0.0.1:8080/mine; \
    wget -qO- http://127.0.0.1:8080/theirs || echo not there; \
    wget -qO- http://agent-host:4088/health; echo; echo mine >/etc/hostname; cat /etc/hostname";

/// In the agent's component: writes to `/tmp`, lets the business component read this file and write another one, and reads that.
const AGENT: &str = "cat /etc/hostname /workspace/app/README; echo agent >/tmp/mine; \
    /a3s/bin/box-exec sh -c \"cat /tmp/mine || echo not here; echo business >/tmp/theirs; cat /tmp/theirs\"; \
    cat /tmp/theirs || echo not there; cat /tmp/mine";

fn report(step: &Step) -> Value {
    assert_eq!(step.status, 0, "{step:?}");
    step.json()
}

fn both_components_see_both_images_and_their_own_changes_alone() {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let images = dir.path().join("images");
    testbed::hello::write_images(&tools.programs.hello_agent, &images).unwrap();
    fs::write(dir.path().join("Boxfile"), BOXFILE).unwrap();
    let bundle = dir.path().join("merged.box");
    bake(&dir.path().join("Boxfile"), &tools.programs.box_init, &bundle);
    let steps = Scenario::default()
        .run("business", "/merged", BUSINESS)
        .step("agent", &format!("boxlaunch run --in agent /merged -- sh -c '{AGENT}'"))
        .start(&tools.host.clone().file(&bundle, "/merged"));
    let report = report(&steps["business"]);
    assert_ready(&report);
    let lines: Vec<_> = report["command"]["stdout"].as_str().unwrap().lines().collect();
    let seen = ["business-host", "/agent:", "bin", "", "/workspace:", "app"];
    assert_eq!(lines[..6], seen, "the agent's files, but not what it wrote: {report}");
    let changes = ["not here", "business", "agent", "not there"];
    assert_eq!(lines[6..10], changes, "what one component writes the other does not see: {report}");
    assert!(lines[10].contains("HEALTHY"), "the agent has a name: {report}");
    assert_eq!(
        lines[11..],
        ["mine"],
        "what the box adds can be changed as what the image has: {report}"
    );
    let step = &steps["agent"];
    let expected = "agent-host\nThe business application would be here.\n\
                    not here\nbusiness\nnot there\nagent\n";
    assert_eq!((step.status, step.stdout.as_str()), (0, expected), "{step:?}");
}

tests![both_components_see_both_images_and_their_own_changes_alone];
