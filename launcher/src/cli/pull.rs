//! `boxlaunch pull`, and the pull before `run` if the store lacks the box of a registry.

use std::env;
use std::io::{self, IsTerminal as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use box_contract::ErrorCode;
use box_digest::Digest;
use box_find::{BoxReference, Found};
use clap::ValueEnum;
use cli_common::color::{CLEAR_LINE, is_dumb};
use cli_common::policy::HostPolicy;
use cli_common::store::StoreOption;
use cli_registry::{RegistryOptions, Screen, Way};
use host_fs::OsError;
use nix::sys::signal::Signal;
use safe_text::shown;
use serde_json::Value;

use super::error::{Failure, signal_code, usage};
use super::notify;
use super::paths::SELF;
use super::run::RunArgs;
use super::stored::{PROGRAM, print_result};
use super::terminal::{is_quiet, notice, print};

/// Pulls a box from a registry into the store, and prints its digest.
///
/// Fetches only what the store lacks, and verifies every byte before use. Uses the credentials of `docker login` and `podman
/// login`. Boxes that skopeo or oras copied can be pulled, too. `run HOST/NAME:TAG` pulls a box by itself.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct PullArgs {
    #[command(flatten)]
    pub(crate) pull: cli_registry::PullArgs,
    /// `run` does this: the box is not kept longer than others.
    #[arg(long, hide = true)]
    for_start: bool,
    /// `update` does this: the reference of the store keeps its box until the new one is permitted.
    #[arg(long, hide = true)]
    aside: bool,
}

/// When `run` pulls the box of a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PullPolicy {
    /// Pull if the store lacks the box.
    Missing,
    /// Pull at each run, because the tag may point to another box now.
    Always,
    /// Never pull: fail if the store lacks the box.
    Never,
}

/// Runs `boxlaunch pull`.
pub(crate) fn pull(args: &PullArgs) -> Result<u8, Failure> {
    let screen = (!args.pull.json && !is_quiet()).then(screen);
    let registries = &args.pull.registries;
    let client = cli_registry::client(registries, &PROGRAM.variable, screen)?;
    let policy = HostPolicy::read(PROGRAM.variable)?;
    let note = |amounts: &str| {
        if let Some(screen) = screen {
            (screen.note)(amounts);
        }
    };
    let pull = args.pull.clone().aside(args.aside);
    let (_, result) = pull.run(&PROGRAM, &client, policy.as_ref(), note, args.for_start)?;
    print_result(Some(result))
}

/// Returns the callbacks that show a download.
fn screen() -> Screen {
    Screen { note, status, is_watched: is_watched(), way: Way::Fetch }
}

/// Prints a line. On a terminal, the line replaces the status line.
fn note(text: &str) {
    let clear = if is_watched() { CLEAR_LINE } else { "" };
    notice(&format!("{clear}{}\n", shown(text)));
}

fn status(text: &str) {
    notice(&format!("{CLEAR_LINE}{}", shown(text)));
}

/// Returns whether standard error is a terminal that can redraw a line.
fn is_watched() -> bool {
    io::stderr().is_terminal() && !is_dumb(env::var_os("TERM"))
}

/// Pulls the box of a run if `--pull` requires it. Returns the exit code of a failed pull, whose error is already printed.
///
/// The pull runs in a separate process, so that the process that runs the box has no threads, memory or credentials left from it.
pub(super) fn before(args: &RunArgs) -> Result<Option<u8>, Failure> {
    if !is_needed(args)? {
        return Ok(None);
    }
    Ok(fetch(args, false)?.err())
}

/// Like [`before`], but the reference of the store keeps the box that it has. Returns the digest of the pulled box, `None` if nothing
/// was to pull.
pub(super) fn aside(args: &RunArgs) -> Result<Result<Option<Digest>, u8>, Failure> {
    if !is_needed(args)? {
        return Ok(Ok(None));
    }
    let output = match fetch(args, true)? {
        Ok(output) => String::from_utf8_lossy(&output).into_owned(),
        Err(code) => return Ok(Err(code)),
    };
    let report: Value = serde_json::from_str(&output).unwrap_or_default();
    let digest = report["box"].as_str().unwrap_or(output.trim()).parse().ok();
    digest.map(|it| Ok(Some(it))).ok_or_else(|| {
        let message = "the process that pulls the box printed no digest".to_owned();
        Failure::new((ErrorCode::Internal, "run this command again"), message)
    })
}

/// Returns whether `--pull` requires a pull.
fn is_needed(args: &RunArgs) -> Result<bool, Failure> {
    let word = args.subject.word();
    let is_remote = BoxReference::parse(word)?.remote().is_some();
    match args.pull {
        Some(PullPolicy::Always) if is_remote => Ok(true),
        Some(PullPolicy::Missing) | None if is_remote => is_missing(args),
        Some(policy @ PullPolicy::Always) => {
            let policy = policy.to_possible_value();
            let policy = policy.as_ref().map_or("", |it| it.get_name());
            let help = "leave it out, or name the box as HOST/NAME:TAG";
            let message = format!(
                "--pull {policy} needs a box of a registry, and {} is not one",
                word.display()
            );
            Err(usage(&message, help))
        }
        _ => Ok(false),
    }
}

/// Pulls the box of a run. Returns the output, or the exit code of a failed pull.
fn fetch(args: &RunArgs, is_aside: bool) -> Result<Result<Vec<u8>, u8>, Failure> {
    let mut pull = Command::new(SELF);
    pull.arg("pull").args(keeping(is_aside, notify::is_heard())).arg(args.subject.word());
    pull.args(is_aside.then_some("--aside"));
    pull.args(args.expected().map(|it| format!("--expect={it}")));
    pull.args(args.json.then_some("--json")).args(is_quiet().then_some("--quiet"));
    helper(pull, (&args.subject.store, &args.registries), "the process that pulls the box")
}

/// Returns the option with which the store keeps a box no longer than others. The box that a service starts has none: the next one
/// under its reference is compared with it, so a full store must not forget it.
fn keeping(is_aside: bool, is_of_service: bool) -> Option<&'static str> {
    (is_aside || !is_of_service).then_some("--for-start")
}

/// Runs another process that brings the box of a run into the store. Returns its output, or its exit code if it has failed. Its
/// error is then already printed.
pub(super) fn helper(
    mut command: Command,
    (store, registries): (&StoreOption, &RegistryOptions),
    what: &'static str,
) -> Result<Result<Vec<u8>, u8>, Failure> {
    let named = |option: &str, path: &Option<PathBuf>| {
        path.clone().map(|path| [option.into(), path.into_os_string()]).into_iter().flatten()
    };
    command.args(named("--store", &store.store));
    command.args(named("--registry-config", &registries.registry_config));
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|source| {
        let path = command.get_program().into();
        Failure::from(OsError::File { action: "start", path, source })
    })?;
    if output.status.success() {
        return Ok(Ok(output.stdout));
    }
    // With `--json`, standard output has the error.
    print(&String::from_utf8_lossy(&output.stdout))?;
    let code = output.status.code().and_then(|code| u8::try_from(code).ok());
    let signal = output.status.signal().unwrap_or(Signal::SIGKILL as i32);
    if code.is_none() {
        notice(&format!("boxlaunch: signal {signal} ended {what}\n"));
    }
    Ok(Err(code.unwrap_or_else(|| signal_code(signal))))
}

/// Returns whether the store lacks the box or one of its blobs, or has a box with another digest than `--expect`.
fn is_missing(args: &RunArgs) -> Result<bool, Failure> {
    match args.subject.find(&PROGRAM).and_then(Found::open) {
        Ok(opened) => Ok(args.expected().is_some_and(|expected| expected != opened.digest)),
        // The box was never pulled, or the box or one of its blobs was removed since.
        Err(error) if error.is_absent() => Ok(true),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_box_of_a_service_is_kept_and_the_next_one_is_not_before_it_is_permitted() {
        assert_eq!(keeping(false, true), None);
        for (is_aside, is_of_service) in [(true, true), (true, false), (false, false)] {
            assert_eq!(keeping(is_aside, is_of_service), Some("--for-start"));
        }
    }
}
