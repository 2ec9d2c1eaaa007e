//! `boxlaunch update` to a box that asks for more than the one that runs, before any VM.

use box_contract::{NetworkMode, RunPlan};
use boxlaunch::boxes::{Boxes, Record, State};
use serde_json::json;
use testkit::test_box::{TestBox, config};

use crate::{in_state, record};

/// Returns the box of a plan that was changed.
fn box_with(change: impl FnOnce(&mut RunPlan)) -> TestBox {
    let mut changed = config();
    change(&mut changed.plan);
    TestBox::new(&changed)
}

#[test]
fn a_box_that_asks_for_more_replaces_none_that_runs() {
    let (state, old) = (tempfile::tempdir().unwrap(), box_with(|_| ()));
    let run = Record { options: Some(Vec::new()), ..record(&old) };
    let mut entry = Boxes::new(state.path()).create(Some("one"), run).unwrap();
    entry.update(|it| it.state = State::Running).unwrap();
    let host = box_with(|plan| {
        plan.network.mode = NetworkMode::Filtered;
        plan.network.allow = serde_json::from_value(json!([{ "peer": "a.example" }])).unwrap();
    });
    let port = json!([{ "component": "agent", "guest": 80, "host": 0 }]);
    let port = box_with(|plan| plan.publish = serde_json::from_value(port).unwrap());
    let volume = json!([{ "name": "data", "guest": "/data", "scope": "agent" }]);
    let volume = box_with(|plan| plan.volumes = serde_json::from_value(volume).unwrap());
    let secret = json!([{ "name": "KEY", "scope": "agent", "delivery": "env" }]);
    let secret = box_with(|plan| plan.secrets = serde_json::from_value(secret).unwrap());
    let error = |new: &TestBox, accept: &[&str]| {
        let path = new.path().to_str().unwrap();
        let ended = in_state(&state, &[&["update", "-q"], accept, &["one", path]].concat());
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{}", ended.stderr);
        let digest = boxlaunch::opened::open(new.path()).unwrap().digest.to_string();
        ended.stderr.replace(path, "BOX").replace(&digest, "DIGEST")
    };
    let all = [&host, &port, &volume, &secret].map(|it| error(it, &[]));
    insta::assert_snapshot!(all.concat(), @"
    error: one was not updated: DIGEST asks for more than before:
      network: none: nothing → filtered: the hosts that are allowed
      network allow: - → a.example, ports 80 and 443
      = help: `boxlaunch update --accept=DIGEST one BOX` permits that
    error: one was not updated: DIGEST asks for more than before:
      publish 80: - → of the agent, at a free port of the host's loopback
      = help: `boxlaunch update --accept=DIGEST one BOX` permits that
    error: one was not updated: DIGEST asks for more than before:
      volume data: - → at /data, kept on the host as the volume test.data, for the agent
      = help: `boxlaunch update --accept=DIGEST one BOX` permits that
    error: one was not updated: DIGEST asks for more than before:
      secret KEY: - → as a variable, for the agent
      = help: `boxlaunch update --accept=DIGEST one BOX` permits that
    ");
    // What was accepted is another box.
    let other = format!("--accept={}", boxlaunch::opened::open(old.path()).unwrap().digest);
    assert_eq!(error(&host, &[&other]), all[0]);
    let names = Boxes::new(state.path()).all().unwrap();
    assert_eq!(names.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["one"]);
}
