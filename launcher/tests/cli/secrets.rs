//! Secrets that are not given, or not as they can be, are named before the box starts. None of their values is.

use std::fs;
use std::process::Command;

use box_contract::{Scope, SecretDelivery, SecretPlan};
use testkit::test_box::config;

use crate::{Scene, piped, refused};

#[test]
fn a_secret_that_is_not_given_is_named() {
    let secret =
        |name: &str, delivery| SecretPlan { name: name.to_owned(), scope: Scope::Both, delivery };
    let file = |path: &str| SecretDelivery::File { path: path.to_owned() };
    let mut config = config();
    config.plan.secrets = vec![
        secret("API_KEY", SecretDelivery::Env),
        secret("CERT", file("/run/secrets/cert")),
        secret("TOKEN", file("/etc/app/token")),
    ];
    let scene = Scene::new(&config);
    fs::write(scene.state.path().join("cert"), "cert").unwrap();
    let error = |options: &str, input: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", &format!(r#"exec "$0" run "$@" <{input}"#)]);
        command.arg(env!("CARGO_BIN_EXE_boxlaunch")).args(options.split(' '));
        command.arg(scene.made.path()).env("BOXLAUNCH_STATE", scene.state.path());
        command.current_dir(scene.state.path()).env_remove("KEY");
        refused(piped(command), 2)
    };
    let all = [
        "--secret CERT=-",
        "--secret OTHER=-",
        "--secret CERT=file:cert --secret API_KEY=env:KEY --secret TOKEN=-",
        "--secret API_KEY=c4n4ry",
    ];
    let errors = |input| all.map(|it| error(it, input)).join("--\n");
    assert_eq!(errors("&-"), errors("/dev/null"), "standard input may be closed");
    insta::assert_snapshot!(errors("/dev/null"), @"
    error: the box declares secrets that were not given: API_KEY, TOKEN
      = help: add `--secret API_KEY=env:API_KEY --secret TOKEN=env:TOKEN`; `NAME=file:PATH` reads a file instead, and `NAME=-` standard input
    --
    error: the box declares no secret OTHER
      = help: it declares API_KEY, CERT, TOKEN
    --
    error: --secret API_KEY: the variable KEY is not set
      = help: run `export KEY=…` first, or write `--secret API_KEY=file:PATH`
    --
    error: --secret API_KEY has a malformed source
      = help: write `--secret API_KEY=env:API_KEY`, `--secret API_KEY=file:PATH` or `--secret API_KEY=-`; a value itself is never on a command line
    ");
}
