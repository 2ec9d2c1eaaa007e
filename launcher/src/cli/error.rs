//! A failed command: its error, its report and its exit code.

use std::fmt::Display;
use std::io;

use box_contract::ErrorCode::{self, *};
use box_contract::exit;
use boxlaunch::host::error::KvmError;
use boxlaunch::machine::RunFailure;
use boxlaunch::opened::OpenBoxError;
use boxlaunch::streams::StreamError;
use cli_common::{Explanation, Problem};
use diagnostics::{Diagnostic, Sources};
use safe_text::{shown, shown_json, shown_lines};
use serde_json::json;
use virtual_host::HostError;
use vmm::signals::Stopped;

use super::explain::{explain, without_kvm};
use super::launch_error::{FailedRun, LaunchError};
use super::terminal::{self, painted};

/// The signal that ends a program that writes to a closed pipe (signal(7)).
const SIGPIPE: i32 = 13;

/// A failed command.
#[derive(Debug)]
pub(crate) struct CommandError {
    /// The errors; none if the reader closed the pipe.
    problems: Vec<Problem>,
    /// The last lines of the guest's output, for people.
    last_output: String,
    /// The exit code.
    pub(crate) exit: u8,
}

impl CommandError {
    /// Returns the failure of a command with one error.
    pub(crate) fn new(explanation: impl Into<Explanation>, message: impl Display) -> Self {
        let explanation = explanation.into();
        let exit = exit_code(explanation.code);
        let problems = vec![Problem::new(explanation, message)];
        Self { problems, last_output: String::new(), exit }
    }

    /// Returns the failure of a command with several errors of one kind.
    pub(crate) fn of(problems: impl Iterator<Item = Problem>) -> Self {
        let problems: Vec<_> = problems.collect();
        let exit = problems.first().map_or(exit::FAILED, |it| exit_code(it.code));
        Self { problems, last_output: String::new(), exit }
    }

    /// Returns the failure of a command with what was found in a text.
    pub(crate) fn found(code: ErrorCode, found: &[Diagnostic], sources: &Sources) -> Self {
        let problems = Problem::of_diagnostics(code, found, sources);
        Self { problems, last_output: String::new(), exit: exit_code(code) }
    }

    /// Prints the error and returns the exit code. One that standard output does not take is printed
    /// to standard error instead.
    pub(crate) fn report(&self, as_json: bool) -> u8 {
        if !as_json || terminal::print(&self.json()).is_err() {
            terminal::notice(&self.text());
        }
        self.exit
    }

    /// Returns what a person reads: the error below the machine's last words.
    pub(crate) fn text(&self) -> String {
        // The words of the guest have no colours, whatever they look like.
        match cli_common::problem::text(&self.problems) {
            text if text.is_empty() => text,
            text => format!("{}{}\n", self.last_output, painted(text.trim_end())),
        }
    }

    /// Returns what is printed with `--json`.
    pub(crate) fn json(&self) -> String {
        if self.problems.is_empty() {
            return String::new();
        }
        shown_json(&cli_common::problem::json(&self.problems)) + "\n"
    }
}

impl From<HostError> for CommandError {
    fn from(error: HostError) -> Self {
        match error {
            HostError::Output(source) => StreamError::Output(source).into(),
            error => Self::new(Explanation::from(&error), shown_lines(&error.to_string())),
        }
    }
}

impl<E: Into<LaunchError>> From<E> for CommandError {
    fn from(error: E) -> Self {
        let error = error.into();
        match &error {
            // The reader has had enough, as `head` has. That ends the programs and is no error.
            LaunchError::Stream(StreamError::Output(source))
                if source.kind() == io::ErrorKind::BrokenPipe =>
            {
                Self {
                    problems: Vec::new(),
                    last_output: String::new(),
                    exit: signal_code(SIGPIPE),
                }
            }
            LaunchError::Stopped(Stopped(signal)) => {
                Self { exit: signal_code(*signal), ..Self::new(explain(&error), error) }
            }
            // A list of declarations has lines of its own, each of them safe for a terminal.
            LaunchError::Opened(OpenBoxError::Unsupported(_)) => Self::new(explain(&error), error),
            _ => Self::new(explain(&error), shown(&error.to_string())),
        }
    }
}

impl From<RunFailure> for CommandError {
    fn from(failure: RunFailure) -> Self {
        Self::of_run(failure.into(), None)
    }
}

impl From<FailedRun> for CommandError {
    fn from(failure: FailedRun) -> Self {
        Self::of_run(failure, None)
    }
}

impl CommandError {
    /// Returns the failure of a box that needs KVM, with the command that starts it without, if there is one.
    pub(crate) fn of_kvm(error: &KvmError, alternative: Option<&str>) -> Self {
        Self::new((KvmUnavailable, without_kvm(error, alternative)), shown(&error.to_string()))
    }

    /// Returns the failure of a run; `alternative` is as of [`Self::of_kvm`].
    pub(crate) fn of_run(
        FailedRun { error, last_output }: FailedRun,
        alternative: Option<&str>,
    ) -> Self {
        let failed = match error {
            LaunchError::Kvm(error) => Self::of_kvm(&error, alternative),
            error => Self::from(error),
        };
        let is_about_the_guest = failed.problems.iter().any(|it| {
            [KvmUnavailable, VmmFailed, GuestFailed, AgentFailed, StartupTimeout].contains(&it.code)
        });
        if !is_about_the_guest {
            return failed;
        }
        let mut text = String::new();
        for output in last_output.iter().filter(|it| !it.text.is_empty()) {
            text += &format!("{}:\n", output.source);
            output.text.lines().for_each(|line| text += &format!("  {line}\n"));
        }
        let with_output = |it: Problem| it.with_details("", &[("said", json!(last_output))]);
        let problems = failed.problems.into_iter().map(with_output).collect();
        Self { problems, last_output: text, ..failed }
    }
}

/// Returns the failure of a command line that asks for what cannot be. Both texts may have words of a box, and paths.
pub(crate) fn usage(message: &str, help: &str) -> CommandError {
    CommandError::new((Usage, shown(help)), shown(message))
}

/// Returns the exit code of a command that fails with this error.
pub(crate) const fn exit_code(code: ErrorCode) -> u8 {
    match code {
        BoxDamaged => exit::DIFFERENT,
        code => code.exit(),
    }
}

/// Returns the exit code of a program that a signal ended, as shells count it.
pub(crate) fn signal_code(signal: i32) -> u8 {
    u8::try_from(signal).map_or(u8::MAX, |number| number.saturating_add(128))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use boxlaunch::host::error::Allowed;
    use boxlaunch::machine::{LastOutput, MachineError};
    use serde_json::Value;
    use vmm::VmmError;
    use vmm::jail::Unshared;

    use super::*;

    fn object(error: &CommandError) -> Value {
        let mut json: Value = serde_json::from_str(&error.json()).unwrap();
        json["errors"][0].take()
    }

    #[test]
    fn exit_codes_follow_from_the_error() {
        let exit = |error| CommandError::from(error).exit;
        let size = box_layout::OpenError::size("a".into(), 1, 2);
        assert_eq!(exit(size.into()), exit::DIFFERENT);
        assert_eq!(exit(LaunchError::Stopped(Stopped(2))), 130);
        assert_eq!(exit(LaunchError::Stopped(Stopped(15))), 143);
        assert_eq!(exit(StreamError::Output(io::ErrorKind::BrokenPipe.into()).into()), 141);
        assert_eq!(exit(KvmError::Kernel.into()), exit::FAILED);
        let path = "a".into();
        assert_eq!(exit(VmmError::SocketPath { path, limit: 107 }.into()), exit::USAGE);
    }

    #[test]
    fn a_directory_that_its_user_may_not_look_at_comes_with_that_advice() {
        let text = |is_forbidden| {
            let reason = "/root cannot be shared: a reason".to_owned();
            let error = VmmError::from(Unshared::Directory { reason, is_forbidden });
            CommandError::from(error).text()
        };
        let denied = text(true);
        assert!(denied.ends_with("help: share what you yourself may look at\n"), "{denied}");
        let other = text(false);
        assert!(other.ends_with("help: share another directory, or one above it\n"), "{other}");
    }

    #[test]
    fn words_of_a_box_do_not_move_the_cursor() {
        let text = usage("its share at /\u{1b}[2J", "leave /\u{1b}[2J out").text();
        assert!(!text.contains('\u{1b}') && text.contains("its share at /"), "{text:?}");
    }

    #[test]
    fn a_failing_kvm_comes_with_advice() {
        let (path, reason) = (PathBuf::from("/dev/kvm"), "Permission denied".to_owned());
        let denied =
            |allowed| KvmError::Denied { path: path.clone(), reason: reason.clone(), allowed };
        let errors = [
            denied(Allowed::Group("kvm".to_owned())),
            denied(Allowed::Owner("root".to_owned())),
            denied(Allowed::Everybody),
            KvmError::Missing(path.clone()),
            KvmError::Unusable("KVM_EXIT_INTERNAL_ERROR at the instruction int3".to_owned()),
            KvmError::Failed("Building the microVM failed: X".to_owned()),
            KvmError::Kernel,
        ];
        let texts = errors.map(|error| {
            let error = CommandError::from(LaunchError::from(error));
            assert_eq!(object(&error)["code"], "kvm-unavailable");
            error.text()
        });
        insta::assert_snapshot!(texts.concat(), @"
        error: cannot open /dev/kvm: Permission denied
          = help: it belongs to the group kvm: add your user (`sudo usermod -aG kvm $USER`), and log in again; `boxlaunch doctor` shows what this host offers
        error: cannot open /dev/kvm: Permission denied
          = help: only root may open it: `sudo chown $USER /dev/kvm`, which lasts until the next boot; `boxlaunch doctor` shows what this host offers
        error: cannot open /dev/kvm: Permission denied
          = help: its permissions are not the reason; in a container, pass it through, as with `docker run --device /dev/kvm`; `boxlaunch doctor` shows what this host offers
        error: there is no /dev/kvm
          = help: switch hardware virtualization on in the firmware, load the module (`sudo modprobe kvm-intel` or `kvm-amd`), or, in a virtual machine or a container, pass /dev/kvm through; `boxlaunch doctor` shows what this host offers
        error: this host's KVM cannot run a guest: KVM_EXIT_INTERNAL_ERROR at the instruction int3
          = help: use a machine whose KVM is backed by the processor's virtualization; `boxlaunch doctor` shows what this host offers
        error: this host's KVM did not start a guest: Building the microVM failed: X
          = help: look at the end of `sudo dmesg`; another hypervisor, such as VirtualBox, may be using the processor's virtualization; `boxlaunch doctor` shows what this host offers
        error: this host's KVM cannot run the box's kernel (KVM_EXIT_INTERNAL_ERROR)
          = help: use a machine whose KVM is backed by the processor's virtualization; `boxlaunch doctor` shows what this host offers
        ");
    }

    #[test]
    fn a_box_that_can_be_emulated_comes_with_the_command() {
        let alternative = Some("boxlaunch run --emulated a.box");
        insta::assert_snapshot!(CommandError::of_kvm(&KvmError::Kernel, alternative).text(), @"
        error: this host's KVM cannot run the box's kernel (KVM_EXIT_INTERNAL_ERROR)
          = help: use a machine whose KVM is backed by the processor's virtualization; or run the box slowly without KVM: `boxlaunch run --emulated a.box`; `boxlaunch doctor` shows what this host offers
        ");
    }

    #[test]
    fn last_words_are_shown_where_the_guest_is_to_blame() {
        let last_output = vec![LastOutput { source: "console", text: "panic\nat once".to_owned() }];
        let failed =
            |error| CommandError::from(RunFailure { error, last_output: last_output.clone() });
        let why = Some("port 80: no answer".to_owned());
        let timeout = failed(MachineError::Timeout { seconds: 60, reason: why });
        assert!(timeout.text().starts_with("console:\n  panic\n  at once\nerror: the agent was "));
        assert_eq!(object(&timeout)["code"], "startup-timeout");
        let message = "the agent was not ready after 60 s; its health check: port 80: no answer";
        assert_eq!(object(&timeout)["message"], message);
        assert_eq!(object(&timeout)["said"], json!(last_output));
        let signal = failed(MachineError::Stopped(Stopped(2)));
        assert_eq!(signal.text(), "error: stopped by SIGINT\n");
        assert_eq!(object(&signal)["said"], Value::Null);
    }
}
