//! The patterns of a Boxfile.
#![forbid(unsafe_code)]

use box_contract::SandboxPlan;
use command_policy::{Classifier, Decision};

fn decision(lists: [&[&str]; 3], line: &str) -> Decision {
    let list = |it: &[&str]| it.iter().map(ToString::to_string).collect();
    let [allow, ask, forbid] = lists;
    let plan = SandboxPlan {
        allow: list(allow),
        ask: list(ask),
        forbid: list(forbid),
        ..SandboxPlan::default()
    };
    Classifier::new(&plan).classify_line(line).decision
}

#[test]
fn what_is_forbidden_precedes_what_asks_and_what_is_allowed() {
    let all: &[&str] = &["tool *"];
    assert_eq!(decision([all, all, all], "tool x"), Decision::Forbid);
    assert_eq!(decision([all, all, &[]], "tool x"), Decision::Ask);
    assert_eq!(decision([all, &[], &[]], "tool x"), Decision::Run);
    assert_eq!(decision([&[], all, &[]], "tools x"), Decision::Run);
}

#[test]
fn what_is_allowed_does_not_ask() {
    let push: &[&str] = &["git push *"];
    for line in ["git push", "git push origin main", "git 'push'", "ls && git push"] {
        assert_eq!(decision([push, &[], &[]], line), Decision::Run, "{line}");
    }
    for line in [
        "git push; git reset",
        "git push && sudo ls",
        "git push $(git fetch)",
        "git push > .env",
        "git push &",
        "./git push",
        "PATH=. git push",
        "sh -c 'git push; git reset'",
    ] {
        assert_eq!(decision([push, &[], &[]], line), Decision::Ask, "{line}");
    }
    assert_eq!(decision([&["sudo apt-get *"], &[], &[]], "sudo apt-get install x"), Decision::Run);
    assert_eq!(decision([&["sudo *"], &[], &[]], "sudo sh -c 'git push'"), Decision::Ask);
}

#[test]
fn what_is_allowed_has_exactly_the_words_of_the_pattern() {
    let push: &[&str] = &["git push origin agent/*"];
    assert_eq!(decision([push, &[], &[]], "git push origin agent/x"), Decision::Run);
    for line in [
        "git push origin agent/x --force HEAD:main",
        "git push origin 'agent/x HEAD:main'",
        "git push origin agent/$X",
        "git push origin main",
        "env LD_PRELOAD=x git push origin agent/x",
        "GIT_SSH_COMMAND=x git push origin agent/x",
        "export PATH=/tmp/x; git push origin agent/x",
        "PATH=/tmp/x; git push origin agent/x",
    ] {
        assert_eq!(decision([push, &[], &[]], line), Decision::Ask, "{line}");
    }
    let any: &[&str] = &["git push *"];
    assert_eq!(decision([any, &[], &[]], "GIT_AUTHOR_NAME=x git push"), Decision::Run);
    let lists: &[&str] = &["git frobnicate *", "nice --strange *"];
    for line in ["git frobnicate x", "nice --strange ls"] {
        assert_eq!(decision([lists, &[], &[]], line), Decision::Run, "{line}");
        assert_eq!(decision([&[], &[], &[]], line), Decision::Ask, "{line}");
    }
    // What is forbidden or asked for stays so whatever else is in the command.
    assert_eq!(decision([&[], push, &[]], "git push origin agent/x --force"), Decision::Ask);
}

#[test]
fn nothing_allows_what_is_built_in_as_forbidden() {
    let all: &[&str] = &["*", "cargo test *", "rm *"];
    for line in [
        "rm -rf /",
        "cargo test; rm -rf /",
        "cargo test $(rm -rf /)",
        "cargo test > /etc/passwd",
        "curl x | sh",
    ] {
        assert_eq!(decision([all, &[], &[]], line), Decision::Forbid, "{line}");
    }
    assert_eq!(decision([&["*"], &[], &[]], "$X"), Decision::Ask);
}

#[test]
fn what_is_forbidden_is_so_however_it_is_written() {
    let push: &[&str] = &["git push *", "deploy"];
    for line in [
        "git push",
        "git  push   x",
        "/usr/bin/git push",
        "'git' pu\\sh x",
        "ls | git push",
        "echo $(git push)",
        "sudo git push",
        "sh -c 'git push'",
        "./deploy",
        "env deploy",
    ] {
        assert_eq!(decision([&[], &[], push], line), Decision::Forbid, "{line}");
    }
    assert_eq!(decision([&[], &[], push], "echo git push"), Decision::Run);
    assert_eq!(decision([&[], &[], push], "deploy x"), Decision::Run);
}
