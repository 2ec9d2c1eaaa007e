//! The options of a command in a running box.

use std::env;
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal as _, stdin};
use std::os::fd::{AsFd as _, OwnedFd};

use box_contract::rules::{check_directory, check_user};
use box_contract::wire::Exec;
use box_contract::{ComponentName, ErrorCode};
use boxlaunch::streams::input::Input;
use boxlaunch::streams::output::Route;
use boxlaunch::streams::tty::Tty;
use clap::builder::{OsStringValueParser, TypedValueParser};
use host_fs::OsError;

use super::error::{Failure, usage};
use super::launch_error::LaunchError;
use super::run::milliseconds;
use super::variables::Assigned;
use cli_common::size_between;

/// How CMD runs.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Options of CMD")]
pub(crate) struct CommandOptions {
    /// Pass standard input on to CMD, whose standard input is empty otherwise.
    #[arg(short, long, requires = "command")]
    pub(super) interactive: bool,
    /// Connect CMD to this terminal, its keys and its size. Needs -i, and excludes --json.
    #[arg(short, long, requires_all = ["command", "interactive"], conflicts_with = "json")]
    pub(super) tty: bool,
    /// The working directory of CMD [default: the component's].
    #[arg(short, long, value_name = "DIR", requires = "command", value_parser = bytes(directory))]
    workdir: Option<OsString>,
    /// The user and group that CMD runs as: names of the component, or numbers [default: the component's].
    #[arg(short, long, value_name = "USER[:GROUP]", requires = "command", value_parser = user)]
    user: Option<String>,
    /// Kill CMD and all that it has started after this time, such as 90, 0.5, 500ms or 15m, and exit with 124.
    #[arg(long, value_name = "SECONDS", requires = "command")]
    #[arg(value_parser = milliseconds, allow_negative_numbers = true)]
    timeout: Option<u64>,
    /// Keep at most this much of each output stream for --json, such as 16MiB; a number alone is in bytes. Of more, the first and the
    /// last half are kept, and `truncated` is true [default: `max-output` of the box's `sandbox`, or 1MiB].
    #[arg(long, value_name = "SIZE", requires_all = ["command", "json"])]
    #[arg(value_parser = size_between(0, MAX_CAPTURED, Some(1)), allow_negative_numbers = true)]
    max_output: Option<u64>,
}

/// The maximum of `--max-output`, in bytes. It is limited because the captured output is kept in memory.
const MAX_CAPTURED: u64 = 1 << 28;

impl CommandOptions {
    /// Returns the options of an interactive shell.
    pub(super) fn of_shell(user: Option<String>) -> Self {
        Self { interactive: true, tty: true, user, ..Self::default() }
    }

    /// Returns the request to run `argv` in `component`, with the variables `env`.
    pub(super) fn exec(
        &self,
        component: ComponentName,
        argv: Vec<OsString>,
        env: &[Assigned],
    ) -> Exec {
        Exec {
            env: self
                .colours()
                .into_iter()
                .chain(env.iter().filter_map(Assigned::of_command))
                .collect(),
            workdir: self.workdir.clone(),
            user: self.user.clone(),
            timeout_ms: self.timeout,
            ..Exec::new(component, argv)
        }
    }

    /// Returns the variable with which this terminal announces 24-bit colours, as programs in it expect.
    fn colours(&self) -> Option<OsString> {
        let value = self.tty.then(|| env::var_os("COLORTERM")).flatten()?;
        ["truecolor", "24bit"].iter().any(|it| value == *it).then(|| {
            let mut variable = OsString::from("COLORTERM=");
            variable.push(value);
            variable
        })
    }

    /// Returns the route that captures output for a report. `policy` is the limit of the box's policy, if it has one.
    pub(super) fn capture(&self, policy: Option<u64>) -> Route {
        let limit = self.max_output.or(policy.map(|it| it.min(MAX_CAPTURED)));
        let limit = limit.and_then(|limit| usize::try_from(limit).ok());
        limit.map_or_else(Route::capture, Route::capture_within)
    }

    /// Returns the input of the command: this program's standard input, or `None` without `--interactive`.
    ///
    /// # Errors
    /// Standard input is closed.
    pub(super) fn input(&self) -> Result<Option<Input>, OsError> {
        self.interactive.then(|| own_input().map(Input::new)).transpose()
    }

    /// Lists the names of the options in use.
    pub(super) fn used(&self) -> impl Iterator<Item = &'static str> {
        // Destructures the struct, so that a new option does not compile until it is listed.
        let Self { interactive, tty, workdir, user, timeout, max_output } = self;
        let all = [
            ("--interactive", *interactive),
            ("--tty", *tty),
            ("--workdir", workdir.is_some()),
            ("--user", user.is_some()),
            ("--timeout", timeout.is_some()),
            ("--max-output", max_output.is_some()),
        ];
        all.into_iter().filter(|(_, is_used)| *is_used).map(|(option, _)| option)
    }

    /// Checks that `--tty` is not combined with `--max-output`, and that standard input is a terminal with `--tty`.
    ///
    /// # Errors
    /// Standard input is no terminal, or both options are given.
    pub(super) fn check(&self) -> Result<(), Failure> {
        // `--max-output` requires `--json`, but clap does not enforce that with `--tty`, because `--tty` conflicts with `--json`.
        if self.tty && self.max_output.is_some() {
            let help = "leave out one of them";
            return Err(usage("--max-output is for --json, which has no terminal", help));
        }
        if self.tty && !stdin().is_terminal() {
            let help = "leave out --tty; -i alone passes standard input on";
            let message = "standard input is not a terminal, which --tty would give to CMD";
            return Err(Failure::new((ErrorCode::Usage, help), message));
        }
        Ok(())
    }

    /// Takes over this program's terminal with `--tty`.
    ///
    /// # Errors
    /// The terminal cannot be opened or configured.
    pub(super) fn terminal(&self) -> Result<Option<Tty>, OsError> {
        if !self.tty {
            return Ok(None);
        }
        let action = "take over the terminal";
        Tty::take(own_input()?).map_err(|source| OsError::System { action, source })
    }

    /// Returns whether a word in the options is not UTF-8.
    pub(super) fn has_bytes(&self) -> bool {
        self.workdir.as_ref().is_some_and(|it| it.to_str().is_none())
    }

    /// Returns the options as command line words.
    pub(super) fn words(&self) -> Vec<String> {
        let Self { interactive, tty: _, workdir, user, timeout, max_output } = self;
        let mut words = Vec::new();
        words.extend(interactive.then(|| "--interactive".to_owned()));
        words.extend(workdir.iter().map(|it| format!("--workdir={}", it.display())));
        words.extend(user.iter().map(|it| format!("--user={it}")));
        words.extend(timeout.iter().map(|it| format!("--timeout={it}ms")));
        words.extend(max_output.iter().map(|it| format!("--max-output={it}")));
        words
    }
}

/// Returns the component in which a command runs: `wanted`. The default is `business` if the box has it, else `agent`.
///
/// # Errors
/// The box lacks the component.
pub(super) fn component(
    wanted: Option<ComponentName>,
    has: impl Fn(ComponentName) -> bool,
) -> Result<ComponentName, LaunchError> {
    let default =
        if has(ComponentName::Business) { ComponentName::Business } else { ComponentName::Agent };
    let wanted = wanted.unwrap_or(default);
    if has(wanted) { Ok(wanted) } else { Err(LaunchError::NoComponent(wanted)) }
}

/// Duplicates this program's standard input.
pub(super) fn own_input() -> Result<OwnedFd, OsError> {
    let action = "use the standard input";
    let own = stdin().as_fd().try_clone_to_owned();
    own.map_err(|source| OsError::System { action, source })
}

/// Parses a user and an optional group.
pub(super) fn user(text: &str) -> Result<String, &'static str> {
    check_user(text).map(|()| text.to_owned())
}

/// Parses the absolute path of a directory in the box.
fn directory(path: &OsStr) -> Result<OsString, &'static str> {
    check_directory(&path.to_string_lossy()).map(|()| path.to_owned())
}

/// Returns the parser of a value that need not be UTF-8.
pub(super) fn bytes<T, E>(
    parse: impl Fn(&OsStr) -> Result<T, E> + Clone + Send + Sync + 'static,
) -> impl TypedValueParser<Value = T>
where
    T: Clone + Send + Sync + 'static,
    E: Into<Box<dyn Error + Send + Sync>> + 'static,
{
    OsStringValueParser::new().try_map(move |value| parse(&value).map_err(Message::new))
}

/// A text as an error for clap.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Message(Box<dyn Error + Send + Sync>);

impl Message {
    fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(error.into())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn a_user_is_named_and_none_is_root_by_accident() {
        for good in ["app", "0", "1000:100", "app:audio", "4294967294"] {
            assert_eq!(user(good).as_deref(), Ok(good));
        }
        for bad in ["", ":", ":app", "app:", "4294967295", "0:4294967295", "99999999999", "a@b"] {
            assert!(user(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn directories_begin_at_the_root() {
        let is_one = |bytes| directory(OsStr::from_bytes(bytes)).is_ok();
        assert!(is_one(b"/tmp") && is_one(b"/\xFF") && !is_one(b"tmp") && !is_one(b""));
    }
}
