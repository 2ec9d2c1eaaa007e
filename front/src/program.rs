//! The two programs, and which of them has a command.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

/// The commands for which boxbuild is started. Commands that both programs have do the same in both. Of `verify`, boxbuild's checks
/// more. `ls` of boxbuild lists a box that was built, and `ls` of boxlaunch a directory of one that runs.
const OF_BOXBUILD: [&str; 22] = [
    "attest", "budget", "build", "cat", "check", "diff", "export", "fetch", "fmt", "gc", "init",
    "keygen", "lock", "ls", "plan", "push", "report", "schema", "setup", "sign", "verify", "why",
];
/// A command that both programs have, each for something else.
pub(crate) const AMBIGUOUS: &str = "update";
/// The options that may precede a command and have a value in the next word.
const WITH_VALUE: [&str; 3] = ["-C", "--color", "--annotations"];
/// The commands whose argument is a command.
const ABOUT: [&str; 2] = ["help", "man"];

/// A program that has commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Boxbuild,
    Boxlaunch,
}

impl Program {
    pub(crate) const ALL: [Self; 2] = [Self::Boxbuild, Self::Boxlaunch];

    /// Returns the program for these arguments. An unknown command belongs to boxlaunch.
    ///
    /// # Errors
    /// The command is [`AMBIGUOUS`].
    pub(crate) fn of(words: &[OsString]) -> Result<Self, String> {
        let command = command(words);
        if command == Some(AMBIGUOUS) {
            return Err(format!(
                "both programs have the command `{AMBIGUOUS}`: `boxbuild {AMBIGUOUS}` writes new digests into Boxfile.lock, and \
                 `boxlaunch {AMBIGUOUS}` replaces the box of a run"
            ));
        }
        Ok(if command.is_some_and(|it| OF_BOXBUILD.contains(&it)) {
            Self::Boxbuild
        } else {
            Self::Boxlaunch
        })
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Boxbuild => "boxbuild",
            Self::Boxlaunch => "boxlaunch",
        }
    }

    /// Returns a command that starts the program: the one in the directory of this program, or else the one in `PATH`.
    fn command(self) -> Command {
        let own = env::current_exe().ok();
        let beside = own.as_deref().and_then(|it| it.parent()).map(|it| it.join(self.name()));
        Command::new(beside.filter(|it| it.exists()).unwrap_or_else(|| self.name().into()))
    }

    /// Replaces this program by the other one. Returns only if that fails, with the reason.
    pub(crate) fn start(self, words: &[OsString]) -> String {
        self.reason(&self.command().args(words).exec())
    }

    /// Runs the program, and returns what it prints on standard output.
    ///
    /// # Errors
    /// The program cannot be started, or fails.
    pub(crate) fn output<'a>(
        self,
        words: impl IntoIterator<Item = &'a OsStr>,
        variable: Option<(&str, &OsStr)>,
    ) -> Result<String, String> {
        let mut command = self.command();
        command.args(words).envs(variable).stderr(Stdio::inherit());
        let output = command.output().map_err(|error| self.reason(&error))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(format!("{} has failed: {}", self.name(), output.status)),
        }
    }

    fn reason(self, error: &io::Error) -> String {
        let name = self.name();
        match error.kind() {
            io::ErrorKind::NotFound => {
                format!("there is no {name} beside box or in PATH\n  help: install {name}")
            }
            _ => format!("{name} cannot be started: {error}"),
        }
    }
}

/// Returns the first word that is a command. For a command about commands, returns its argument.
fn command(words: &[OsString]) -> Option<&str> {
    let mut words = words.iter().map(|it| it.to_str().unwrap_or_default());
    while let Some(word) = words.next() {
        if WITH_VALUE.contains(&word) {
            words.next();
        } else if !word.starts_with('-') && !ABOUT.contains(&word) {
            return Some(word);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_selects_the_program() {
        for (line, expected) in [
            ("build", Program::Boxbuild),
            ("-C run build -v", Program::Boxbuild),
            ("-q --color never verify x", Program::Boxbuild),
            ("help build", Program::Boxbuild),
            ("man push", Program::Boxbuild),
            ("run build", Program::Boxlaunch),
            ("help run", Program::Boxlaunch),
            ("inspect x", Program::Boxlaunch),
            ("nothing", Program::Boxlaunch),
            ("-q", Program::Boxlaunch),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(Program::of(&words), Ok(expected), "{line}");
        }
        let error = Program::of(&["update".into()]).unwrap_err();
        assert!(error.contains("`boxlaunch update` replaces"), "{error}");
    }
}
