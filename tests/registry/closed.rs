//! Tests with a registry that requires a user name and a password.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use oci_registry::{Options, RegistryError};
use testbed::DockerRegistry;

use crate::pushed::{NAME, Pushed, TAG};

/// The right user name and password, as docker and podman write them.
pub(crate) const RIGHT: &str = r#"{"auth": "YWxpOm9wZW4gc2VzYW1l"}"#;
/// The right user name and a wrong password.
const WRONG: &str = r#"{"auth": "YWxpOm9wZW4="}"#;

/// Writes a file of credentials with one entry.
fn auth(pushed: &Pushed, key: &str, entry: &str) -> Vec<PathBuf> {
    vec![pushed.write("auth.json", &format!("{{\"auths\": {{\"{key}\": {entry}}}}}"))]
}

#[test]
fn the_right_password_opens_it() {
    let pushed = Pushed::closed();
    let host = pushed.registry.host();
    for key in [host.clone(), format!("http://{host}/v1/"), format!("{host}/{NAME}")] {
        let auth_files = auth(&pushed, &key, RIGHT);
        pushed.pull(Options { auth_files, ..pushed.options() }, TAG).unwrap();
    }
}

#[test]
fn a_wrong_password_is_reported_without_showing_it() {
    let pushed = Pushed::closed();
    let host = pushed.registry.host();
    let auth_files = auth(&pushed, &host, WRONG);
    let file = auth_files[0].clone();
    let error = pushed.pull(Options { auth_files, ..pushed.options() }, TAG).unwrap_err();
    let text = format!(
        "{host} refuses the password of \"ali\" from {} for the manifest of {host}/{NAME}:{TAG}, \
         or does not have it",
        file.display()
    );
    assert_eq!(error.to_string(), text);
    assert!(!format!("{error:?}").contains("YWxp"));
}

#[test]
fn without_a_password_for_this_very_registry_it_stays_closed() {
    let pushed = Pushed::closed();
    let host = pushed.registry.host();
    for key in ["127.0.0.1", "127.0.0.1:1", &format!("{host}/other"), &format!("{host}0")] {
        let auth_files = auth(&pushed, key, RIGHT);
        let error = pushed.pull(Options { auth_files, ..pushed.options() }, TAG).unwrap_err();
        assert!(matches!(error, RegistryError::Unauthorized { credentials: None, .. }), "{error}");
    }
}

#[test]
fn a_helper_may_have_the_password() {
    let pushed = Pushed::closed();
    let host = pushed.registry.host();
    let helpers = format!("{{\"credHelpers\": {{\"{host}\": \"test\"}}}}");
    let auth_files = vec![pushed.write("config.json", &helpers)];
    let (user, password) = (DockerRegistry::USER, DockerRegistry::PASSWORD);
    let answer = format!("{{\"Username\": \"{user}\", \"Secret\": \"{password}\"}}");
    write_program(
        &pushed,
        &format!("#!/bin/sh\nread host && test \"$host\" = {host} && echo '{answer}'\n"),
    );
    let helper_path = vec![pushed.dir.path().to_owned()];
    pushed.pull(Options { auth_files, helper_path, ..pushed.options() }, TAG).unwrap();
}

/// Writes the credential helper with `sh`, not in this process. Otherwise a child that another thread forks meanwhile could
/// still have the file open for writing, and running the helper would fail with `ETXTBSY`.
fn write_program(pushed: &Pushed, text: &str) {
    let path = pushed.dir.path().join("docker-credential-test");
    let mut sh = Command::new("sh");
    sh.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut sh = sh.spawn().unwrap();
    sh.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(sh.wait().unwrap().success());
}
