//! A failed command: its error, its report and its exit code.

use std::borrow::Cow;
use std::error::Error;
use std::io;

use box_archive::ArchiveError;
use box_contract::ErrorCode::{self, *};
use box_find::FindError;
use boxlaunch::host::error::KvmError;
use boxlaunch::opened::OpenBoxError;
use boxlaunch::streams::StreamError;
use cli_common::failure::{Reporter, Table};
use cli_common::policy::PolicyFault;
use cli_common::store::CommandFault;
use cli_common::trust::KeyError;
use cli_common::{Explanation, Problem};
use cli_registry::{PullError, SetupError};
use diagnostics::{Diagnostic, Sources};
use safe_text::{shown, shown_lines, with_causes};
use serde_json::json;
use virtual_host::HostError;
use vmm::signals::Stopped;

use super::emulated::Emulation;
use super::explain::{explain, without_kvm};
use super::launch_error::{FailedRun, LaunchError};
use super::terminal;

/// The signal that ends a program that writes to a closed pipe: [signal(7)](https://man7.org/linux/man-pages/man7/signal.7.html).
const SIGPIPE: i32 = 13;

/// The marker type that gives failures the exit codes and colours of boxlaunch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Boxlaunch;

impl Reporter for Boxlaunch {
    fn exit(code: ErrorCode) -> u8 {
        code.exit_verified()
    }

    fn painted(text: &str) -> Cow<'_, str> {
        terminal::painted(text)
    }
}

/// A failed command.
pub(crate) type Failure = cli_common::Failure<Boxlaunch>;

impl<E: Into<LaunchError>> Table<E> for Boxlaunch {
    fn failure(error: E) -> Failure {
        let error = error.into();
        match &error {
            // A reader such as `head` has closed the pipe. The command ends, but prints no error.
            LaunchError::Stream(StreamError::Output(source))
                if source.kind() == io::ErrorKind::BrokenPipe =>
            {
                Failure::reported(signal_code(SIGPIPE))
            }
            LaunchError::Stopped(Stopped(signal)) => {
                Failure::new(explain(&error), &error).with_exit(signal_code(*signal))
            }
            // The message has one line for each declaration, and each line is already safe for a terminal.
            LaunchError::Opened(OpenBoxError::Unsupported(_)) => {
                Failure::new(explain(&error), error)
            }
            _ => Failure::new(explain(&error), shown(&error.to_string())),
        }
    }
}

impl Table<HostError> for Boxlaunch {
    fn failure(error: HostError) -> Failure {
        match error {
            HostError::Output(source) => StreamError::Output(source).into(),
            error => Failure::new(&error, shown_lines(&error.to_string())),
        }
    }
}

impl Table<ArchiveError> for Boxlaunch {
    fn failure(error: ArchiveError) -> Failure {
        match error {
            ArchiveError::Write(source) if source.kind() == io::ErrorKind::BrokenPipe => {
                StreamError::Output(source).into()
            }
            error => with_its_causes(&error),
        }
    }
}

impl Table<CommandFault> for Boxlaunch {
    fn failure(fault: CommandFault) -> Failure {
        match fault {
            CommandFault::Archive(error) => error.into(),
            fault => with_its_causes(&fault),
        }
    }
}

impl Table<FindError> for Boxlaunch {
    fn failure(error: FindError) -> Failure {
        with_its_causes(&error)
    }
}

impl Table<PullError> for Boxlaunch {
    fn failure(error: PullError) -> Failure {
        with_its_causes(&error)
    }
}

impl Table<KeyError> for Boxlaunch {
    fn failure(error: KeyError) -> Failure {
        with_its_causes(&error)
    }
}

impl Table<PolicyFault> for Boxlaunch {
    fn failure(fault: PolicyFault) -> Failure {
        Failure::of(fault.problems())
    }
}

impl Table<SetupError> for Boxlaunch {
    fn failure(error: SetupError) -> Failure {
        Failure::of(error.problems())
    }
}

/// Returns the failure of an error, with the causes of the error appended to its message.
fn with_its_causes<'e, E: Error>(error: &'e E) -> Failure
where
    Explanation: From<&'e E>,
{
    Failure::new(error, shown(&with_causes(error)))
}

/// Returns the failure with the diagnostics of a text.
pub(crate) fn found(code: ErrorCode, found: &[Diagnostic], sources: &Sources) -> Failure {
    let problems = Problem::of_diagnostics(code, found, sources);
    Failure::of(problems).with_exit(Boxlaunch::exit(code))
}

/// Prints an error and returns the exit code. If a JSON error cannot be written to standard output, prints it to standard error
/// as text.
pub(crate) fn report(error: &Failure, as_json: bool) -> u8 {
    if !as_json || terminal::print(&error.json()).is_err() {
        terminal::notice(&error.text());
    }
    error.exit
}

/// Returns the failure of a start that cannot use KVM. `emulation` is whether the run works without KVM, if that is known.
pub(crate) fn of_kvm(error: &KvmError, emulation: Option<&Emulation>) -> Failure {
    Failure::new((KvmUnavailable, without_kvm(error, emulation)), shown(&error.to_string()))
}

/// Returns the failure of a run, with the VM's last output. `emulation` is the same as for [`of_kvm`].
pub(crate) fn of_run(failed: impl Into<FailedRun>, emulation: Option<&Emulation>) -> Failure {
    let FailedRun { error, last_output } = failed.into();
    let failed = match error {
        LaunchError::Kvm(error) => of_kvm(&error, emulation),
        error => error.into(),
    };
    let is_about_the_guest = [KvmUnavailable, VmmFailed, GuestFailed, AgentFailed, StartupTimeout];
    if !is_about_the_guest.into_iter().any(|code| failed.has(code)) {
        return failed;
    }
    let mut text = String::new();
    for output in last_output.iter().filter(|it| !it.text.is_empty()) {
        text += &format!("{}:\n", output.source);
        output.text.lines().for_each(|line| text += &format!("  {line}\n"));
    }
    failed.with_details("", &[("said", json!(last_output))]).with_words(text)
}

/// Returns the failure of an invalid command line. Both texts may contain a box's strings and paths.
pub(crate) fn usage(message: &str, help: &str) -> Failure {
    Failure::new((Usage, shown(help)), shown(message))
}

/// Returns the exit code of a program that a signal ended, as shells do: 128 plus the signal's number.
pub(crate) fn signal_code(signal: i32) -> u8 {
    u8::try_from(signal).map_or(u8::MAX, |number| number.saturating_add(128))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use box_contract::exit;
    use boxlaunch::host::error::Allowed;
    use boxlaunch::machine::{LastOutput, MachineError, RunFailure};
    use serde_json::Value;
    use vmm::VmmError;
    use vmm::jail::Unshared;

    use super::*;

    fn object(error: &Failure) -> Value {
        let mut json: Value = serde_json::from_str(&error.json()).unwrap();
        json["errors"][0].take()
    }

    #[test]
    fn exit_codes_follow_from_the_error() {
        let exit = |error| Failure::from(error).exit;
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
            Failure::from(error).text()
        };
        let denied = text(true);
        assert!(denied.ends_with("help: share a directory that you can read\n"), "{denied}");
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
            let error = Failure::from(LaunchError::from(error));
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
          = help: use a host with hardware virtualization; `boxlaunch doctor` shows what this host offers
        error: this host's KVM did not start a guest: Building the microVM failed: X
          = help: look at the end of `sudo dmesg`; another hypervisor, such as VirtualBox, may be using the processor's virtualization; `boxlaunch doctor` shows what this host offers
        error: this host's KVM cannot run the box's kernel (KVM_EXIT_INTERNAL_ERROR)
          = help: use a host with hardware virtualization; `boxlaunch doctor` shows what this host offers
        ");
    }

    #[test]
    fn a_box_that_can_be_emulated_comes_with_the_command() {
        let command = Emulation::Command("boxlaunch run --emulated a.box".to_owned());
        let of = |error, emulation| of_kvm(&error, Some(emulation)).text();
        let texts = [
            of(KvmError::Kernel, &command),
            of(KvmError::Missing("/dev/kvm".into()), &command),
            of(KvmError::Kernel, &Emulation::Excluded("--publish")),
        ];
        insta::assert_snapshot!(texts.concat(), @"
        error: this host's KVM cannot run the box's kernel (KVM_EXIT_INTERNAL_ERROR)
          = help: run the box slowly without KVM: `boxlaunch run --emulated a.box`; `boxlaunch doctor` shows what this host offers
        error: there is no /dev/kvm
          = help: switch hardware virtualization on in the firmware, load the module (`sudo modprobe kvm-intel` or `kvm-amd`), or, in a virtual machine or a container, pass /dev/kvm through; or run the box slowly without KVM: `boxlaunch run --emulated a.box`; `boxlaunch doctor` shows what this host offers
        error: this host's KVM cannot run the box's kernel (KVM_EXIT_INTERNAL_ERROR)
          = help: use a host with hardware virtualization; `--emulated` cannot be used with --publish; `boxlaunch doctor` shows what this host offers
        ");
    }

    #[test]
    fn last_words_are_shown_where_the_guest_is_to_blame() {
        let last_output = vec![LastOutput { source: "console", text: "panic\nat once".to_owned() }];
        let failed = |error| of_run(RunFailure { error, last_output: last_output.clone() }, None);
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
