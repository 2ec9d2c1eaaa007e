//! Mistakes of users who do not know boxlaunch yet, and the errors that boxlaunch prints.

use box_contract::{
    BoxConfig, NetworkMode, Scope, SecretDelivery, SecretPlan, SharePlan, SkillMode, SkillPlan,
};
use testkit::test_box::config;

use crate::{Scene, boxlaunch, ended, refused};

/// Returns a box that needs each kind of option: for secrets, a share, a skill, a network address and a variable.
fn wanting() -> BoxConfig {
    let mut config = config();
    let plan = &mut config.plan;
    let secret = |name: &str| SecretPlan {
        name: name.to_owned(),
        scope: Scope::Agent,
        delivery: SecretDelivery::Env,
    };
    plan.secrets = ["API_KEY", "DB_PASSWORD"].map(secret).to_vec();
    plan.shares = vec![share()];
    plan.skills =
        vec![SkillPlan { name: "notes".into(), mode: SkillMode::Mounted, ..SkillPlan::default() }];
    plan.network.mode = NetworkMode::Filtered;
    plan.network.allow = serde_json::from_str(r#"[{"peer":"10.0.0.7","port":5432}]"#).unwrap();
    plan.agent.launch_env = vec!["API_URL".to_owned()];
    config
}

fn share() -> SharePlan {
    SharePlan {
        name: "input".into(),
        guest: "/input".into(),
        access: box_contract::Access::ReadOnly,
        scope: Scope::Both,
        host: Some("project".into()),
    }
}

#[test]
fn all_that_a_box_wants_is_said_at_once_with_the_words_to_type() {
    insta::assert_snapshot!(refused(Scene::new(&wanting()).command(&["run"]), 2), @r#"
    error: the box declares secrets that were not given: API_KEY, DB_PASSWORD
      = help: add `--secret API_KEY=env:API_KEY --secret DB_PASSWORD=env:DB_PASSWORD`; `NAME=file:PATH` reads a file instead, and `NAME=-` standard input

    error: the box wants to read a directory of this host at /input, its share input
      = help: add `--share input` to give it "project", or `--share input=DIR` for another

    error: the box wants its skill notes from a directory of this host
      = help: add `--skill notes=DIR`, or `--skills DIR` for the directory that the skill is in

    error: the box wants to reach what is not on the internet (private): allow "10.0.0.7" port=5432
      = help: add `--network-local 10.0.0.7:5432` if it may reach that; `--network none` starts it without a network

    error: the box declares variables that were not given: API_URL
      = help: add `-e API_URL=VALUE`
        all that is missing: `--secret API_KEY=env:API_KEY --secret DB_PASSWORD=env:DB_PASSWORD --share input --skill notes=DIR --network-local 10.0.0.7:5432 -e API_URL=VALUE`; `boxlaunch inspect BOX` lists all that the box wants
    "#);
}

#[test]
fn a_file_that_an_option_names_is_a_usage_error() {
    let scene = Scene::new(&config());
    insta::assert_snapshot!(refused(scene.command(&["run", "--env-file", "/none/a.env"]), 2), @"
    error: cannot read the variables from /none/a.env: No such file or directory (os error 2)
      = help: correct the path: there is no such file
    ");
    insta::assert_snapshot!(refused(scene.command(&["run", "--env-file", "/tmp"]), 2), @"
    error: cannot read the variables from /tmp: it is not a regular file
      = help: name a regular file, not a directory or a pipe
    ");
}

#[test]
fn a_port_has_two_numbers() {
    let refused = refused(Scene::new(&config()).command(&["run", "-q", "-p", "80"]), 2);
    let expected = "error: invalid value '80' for '--publish <[ADDRESS:]HOST:GUEST[/COMPONENT]>': write HOST_PORT:GUEST_PORT, one port each, or ADDRESS:HOST_PORT:GUEST_PORT, and /business after it for a port of the business component\n\n";
    assert!(refused.starts_with(expected), "{refused}");
}

#[test]
fn a_directory_that_is_not_here_comes_with_how_to_name_it() {
    let mut config = config();
    config.plan.shares = vec![share()];
    let scene = Scene::new(&config);
    insta::assert_snapshot!(refused(scene.command(&["run", "--share", "input"]), 2), @"
    error: cannot share project: No such file or directory (os error 2)
      = help: the Boxfile proposes project for its share input, below the current directory: change to where it is, make it, or give another one: `--share input=DIR`
    ");
    let own = ["run", "--share", "input=/tmp", "-v", "~/x:/w"];
    insta::assert_snapshot!(refused(scene.command(&own), 2), @r#"
    error: cannot share ~/x: No such file or directory (os error 2)
      = help: the shell did not expand `~`: write "$HOME/x"
    "#);
}

#[test]
fn a_name_that_is_no_box_may_be_that_of_one_that_was_started() {
    let scene = Scene::new(&config());
    let mut command = boxlaunch(&["inspect", "hello"]);
    command.current_dir(scene.state.path()).env("BOXLAUNCH_STATE", scene.state.path());
    insta::assert_snapshot!(ended(command).stderr, @"
    error: no box has the name hello in the store /no/store
      = help: `boxlaunch images` lists the names; a directory is written ./hello; `boxlaunch ps -a` lists those that were started
    ");
}

#[test]
fn a_shell_without_a_terminal_says_what_to_do() {
    insta::assert_snapshot!(ended(boxlaunch(&["shell", "hello"])).stderr, @"
    error: a shell needs a terminal, and standard input is not one
      = help: `boxlaunch exec -i hello -- sh` runs what standard input has
    ");
}

#[test]
fn a_command_gets_no_terminal_that_is_not_there() {
    let ended = Scene::new(&config()).run_true(&["run", "-it"]);
    let error = "error: standard input is not a terminal, which --tty would give to CMD\n";
    assert!(ended.code == Some(2) && ended.stderr.starts_with(error), "{ended:?}");
}

#[test]
fn what_a_restart_would_not_apply_is_refused() {
    let scene = Scene::new(&config());
    insta::assert_snapshot!(refused(scene.command(&["run", "--restart", "on-failure"]), 2), @"
    error: --restart is for a detached run
      = help: add --detach, or let the program that starts this run start it again
    ");
    let always = refused(scene.command(&["run", "-d", "--restart", "always"]), 2);
    insta::assert_snapshot!(always.lines().next().unwrap(), @"error: invalid value 'always' for '--restart <POLICY[:N]>': a box is not started again when its agent ends with status 0 or it is stopped; write on-failure");
    let interval = ["run", "-d", "--restart", "on-failure", "--health-interval", "3"];
    insta::assert_snapshot!(refused(scene.command(&interval), 2), @"
    error: --health-interval is for --restart unhealthy
      = help: add it, or leave --health-interval out
    ");
}
