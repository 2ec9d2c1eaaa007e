//! `boxlaunch inspect` masks values that look like secrets.

use serde_json::{Value, json};
use testkit::test_box::config;

use crate::Scene;

#[test]
fn a_value_that_looks_like_a_secret_is_not_printed() {
    let mut config = config();
    config.plan.agent.env = vec!["LOG=info".to_owned(), "API_KEY=abc123".to_owned()];
    let url = "DATABASE=postgres://app:hunter2@db/x".to_owned();
    config.plan.business.as_mut().unwrap().env = vec![url];
    let scene = Scene::new(&config);
    let text = scene.run(&["inspect"]).stdout;
    for line in
        ["env         LOG=info\n", "            API_KEY=****\n", "env         DATABASE=****\n"]
    {
        assert!(text.contains(line), "{line:?} in {text}");
    }
    let ended = scene.run(&["inspect", "--json"]);
    assert!(!(text + &ended.stdout).contains("abc123"));
    assert!(!ended.stdout.contains("hunter2"), "{}", ended.stdout);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(report["plan"]["agent"]["env"], json!(["LOG=info", "API_KEY=****"]));
    let masked =
        |component: &str, variable: &str| json!({ "component": component, "variable": variable });
    let expected = [masked("agent", "API_KEY"), masked("business", "DATABASE")];
    assert_eq!(report["masked"], json!(expected));
}
