//! Runs credential helpers, programs that keep credentials: `docker-credential-NAME get`.
//!
//! The protocol is [docker's](https://github.com/docker/docker-credential-helpers#development): the helper reads the registry
//! from its standard input and writes a JSON object with `Username` and `Secret` to its standard output. If it has no
//! credentials, it writes a fixed message and exits with an error.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use box_contract::docker_name::{HUB, HUB_INDEX};
use serde::Deserialize;

use super::{Credentials, Secret};
use crate::server::Options;

/// The maximum size of a helper's output, in bytes.
const LIMIT: u64 = 64 << 10;
/// The messages with which a helper reports that it has no credentials for a registry.
const NOTHING: [&str; 2] = ["credentials not found", "no credentials server URL"];
/// The user name in an answer whose secret is an identity token.
const IDENTITY: &str = "<token>";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: Secret,
}

/// Returns whether `text` may follow `docker-credential-` in a program's name. It must not have a `/`, which would select another
/// directory. It may have a dot: Docker Desktop writes `desktop.exe` on Windows Subsystem for Linux.
pub(super) fn is_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !text.is_empty() && text.len() <= 64 && text.bytes().all(inner)
}

/// Returns the name of a helper's program.
pub(super) fn program(name: &str) -> String {
    format!("docker-credential-{name}")
}

/// Asks a helper for the credentials of a registry.
///
/// # Errors
/// The reason, as a relative clause: `which …`. It does not repeat the helper's output.
pub(super) fn ask(
    options: &Options,
    name: &str,
    host: &str,
) -> Result<Option<Credentials>, String> {
    let program = program(name);
    let failed = |reason: String| format!("which returned no credentials for {host}: {reason}");
    // Skip a relative directory: it depends on the working directory, which may be an untrusted checkout.
    let folders = options.helper_path.iter().filter(|folder| folder.is_absolute());
    let mut found = folders.map(|folder| folder.join(&program));
    let path = found.find(|path| path.is_file()).ok_or("which is not installed")?;
    let server = match host {
        // Pass the same URL for Docker Hub as docker does.
        HUB => format!("https://{HUB_INDEX}/v1/"),
        host => host.to_owned(),
    };
    let (success, output) = run(&path, &server, options).map_err(failed)?;
    if success {
        return parse(&output).map(Some).ok_or_else(|| failed("its output is malformed".into()));
    }
    let output = String::from_utf8_lossy(&output);
    if NOTHING.iter().any(|nothing| output.contains(nothing)) {
        return Ok(None);
    }
    Err(failed(format!("it fails; to see why, run: echo {server} | {program} get")))
}

fn parse(text: &[u8]) -> Option<Credentials> {
    let answer: Answer = serde_json::from_slice(text).ok()?;
    let (user, password) = (answer.username, answer.secret);
    if user == IDENTITY {
        return Some(Credentials::Identity(password));
    }
    let plain = |text: &str| !text.chars().any(char::is_control);
    (plain(&user) && plain(password.expose()) && !user.contains(':'))
        .then_some(Credentials::Password { user, password })
}

/// Runs a helper. Returns whether it succeeded, and its output.
fn run(path: &Path, server: &str, options: &Options) -> Result<(bool, Vec<u8>), String> {
    let mut command = Command::new(path);
    for name in &options.hidden_variables {
        command.env_remove(name);
    }
    command.arg("get").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let output = listen(&mut child, server, options.helper_patience);
    if output.is_err() {
        // Ignore a failure of `kill`, which means that the helper has ended already.
        child.kill().ok();
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    Ok((status.success(), output?))
}

/// Writes the registry to a helper's input, and returns its output.
fn listen(child: &mut Child, server: &str, patience: Duration) -> Result<Vec<u8>, String> {
    if let Some(mut stdin) = child.stdin.take() {
        // Ignore a failed write: a helper that does not read its input may still answer.
        writeln!(stdin, "{server}").ok();
    }
    let Some(stdout) = child.stdout.take() else { return Ok(Vec::new()) };
    let (sender, receiver) = mpsc::channel();
    // Read in a thread that may outlive the helper, because a child of the helper may keep the output open.
    let started = thread::Builder::new().spawn(move || sender.send(read(stdout)));
    started.map_err(|error| format!("no thread reads its output: {error}"))?;
    let output = receiver.recv_timeout(patience);
    let output = output.map_err(|_| format!("no output for {patience:?}"))?;
    output.map_err(|error| error.to_string())?.ok_or_else(|| "its output is too long".to_owned())
}

fn read(stdout: ChildStdout) -> std::io::Result<Option<Vec<u8>>> {
    let mut output = Vec::new();
    stdout.take(LIMIT + 1).read_to_end(&mut output)?;
    Ok((output.len() as u64 <= LIMIT).then_some(output))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// Has `sh` write a program. A file that a process has open for writing cannot be run. If this process wrote it, a child that
    /// another thread forks at that moment could keep it open.
    fn write_program(path: &Path, text: &str) {
        let mut sh = Command::new("sh");
        sh.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
        let mut sh = sh.spawn().unwrap();
        sh.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(sh.wait().unwrap().success());
    }

    /// Asks a helper that runs `script`.
    fn asked(script: &str, host: &str) -> Result<Option<Credentials>, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("docker-credential-test");
        write_program(&path, &format!("#!/bin/sh\n{script}\n"));
        let options = Options {
            helper_path: vec![PathBuf::from("/nonexistent"), dir.path().to_owned()],
            helper_patience: Duration::from_millis(if script.contains("sleep") {
                100
            } else {
                60_000
            }),
            ..Options::default()
        };
        ask(&options, "test", host)
    }

    #[test]
    fn a_helper_hears_the_registry_and_answers() {
        let script =
            r#"test "$1" = get && read host && printf '{"Username":"%s","Secret":"s"}' "$host""#;
        let expected = |user: &str| {
            let (user, password) = (user.to_owned(), Secret::new("s"));
            Ok(Some(Credentials::Password { user, password }))
        };
        assert_eq!(asked(script, "a.example.org"), expected("a.example.org"));
        let url = r#"read host; printf '{"Username":"%s","Secret":"s"}' "${host#https:}""#;
        assert_eq!(asked(url, "docker.io"), expected("//index.docker.io/v1/"));
        let identity = r#"echo '{"ServerURL":"x","Username":"<token>","Secret":"t"}'"#;
        let token = Credentials::Identity(Secret::new("t"));
        assert_eq!(asked(identity, "a.example.org"), Ok(Some(token)));
    }

    #[test]
    fn a_helper_may_have_nothing() {
        let script = "echo 'credentials not found in native keychain'; exit 1";
        assert_eq!(asked(script, "a.example.org"), Ok(None));
    }

    #[test]
    fn errors_of_a_helper_do_not_repeat_its_output() {
        let output = |script| asked(script, "a.example.org").unwrap_err();
        let prefix = "which returned no credentials for a.example.org: ";
        for (script, reason) in [
            (
                "echo canary; echo canary >&2; exit 1",
                "it fails; to see why, run: echo a.example.org | docker-credential-test get",
            ),
            ("echo canary", "its output is malformed"),
            (r#"printf '{"Username":"a","Secret":"canary\\n"}'"#, "its output is malformed"),
            (r#"echo '{"Username":"a:b","Secret":"canary"}'"#, "its output is malformed"),
            ("yes canary", "its output is too long"),
            ("exec sleep 1000", "no output for 100ms"),
        ] {
            assert_eq!(output(script), format!("{prefix}{reason}"));
        }
    }

    #[test]
    fn only_a_plain_name_is_run() {
        for name in ["osxkeychain", "ecr-login", "x9", "desktop.exe", "Desktop", "a_b", ".."] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "a/b", "../a", "a b", "a\0", "é", &"a".repeat(65)] {
            assert!(!is_name(name), "{name}");
        }
        let dir = tempfile::tempdir().unwrap();
        write_program(&dir.path().join("docker-credential-here"), "#!/bin/sh\n");
        let here = std::env::current_dir().unwrap();
        let up: PathBuf = here.components().skip(1).map(|_| "..").collect();
        let relative = up.join(dir.path().strip_prefix("/").unwrap());
        assert!(relative.join("docker-credential-here").is_file());
        let options = Options { helper_path: vec![relative], ..Options::default() };
        for name in ["here", "none"] {
            let error = ask(&options, name, "a.example.org").unwrap_err();
            assert_eq!(error, "which is not installed");
        }
    }
}
