//! Tests whether this host's KVM can run a guest, by running one.
//!
//! That `/dev/kvm` can be opened proves little: a software KVM runs the start of a kernel, and fails seconds later. So
//! a small guest ([`super::guest`]) is booted in a separate process, which takes some 30 ms. The result is stored until
//! the host boots again ([`super::memory`]).

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use nix::unistd::{Gid, Group, Uid, User, getegid, getgroups, getpid};
use safe_text::shown;

use super::error::{Allowed, KvmError};
use super::guest::{self, END, TRIALS};
use super::programs::output_within;
use crate::streams::console::INTERNAL_ERROR;
use vmm::jail::Users;

/// The KVM device.
pub const DEVICE: &str = vmm::jail::DEVICE;
/// The time limit of the guest, which needs some 30 ms.
const LIMIT: Duration = Duration::from_secs(1);

/// Runs a guest in a separate process of `program`, which is boxlaunch.
///
/// # Errors
/// The reason why no guest can be run.
pub fn try_guest(program: &Path, device: &Path) -> Result<(), KvmError> {
    open(device)?;
    let mut command = Command::new(program);
    command.args([guest::SUBCOMMAND, &getpid().to_string()]).env_clear().current_dir("/");
    // The group keeps Ctrl-C at a terminal from the guest's process.
    command.process_group(0);
    match output_within(&mut command, LIMIT) {
        Ok(Some(output)) => judge(&output),
        Ok(None) => {
            Err(KvmError::Unknown(format!("a test guest did not end within {} s", LIMIT.as_secs())))
        }
        Err(error) => Err(KvmError::Unknown(format!("cannot start a process for it: {error}"))),
    }
}

/// Opens the device in the same way as libkrun.
pub(crate) fn open(path: &Path) -> Result<(), KvmError> {
    let Err(error) = File::options().read(true).write(true).open(path) else { return Ok(()) };
    let (path, reason) = (path.to_owned(), error.to_string());
    Err(match error.kind() {
        io::ErrorKind::NotFound => KvmError::Missing(path),
        io::ErrorKind::PermissionDenied => {
            KvmError::Denied { allowed: allowed(&path), path, reason }
        }
        _ => KvmError::Open { path, reason },
    })
}

/// Returns the users with access to the device at `path`, which this user may not open.
fn allowed(path: &Path) -> Allowed {
    let Ok(found) = fs::metadata(path) else { return Allowed::Everybody };
    match Users::of(&found) {
        Users::Everybody => Allowed::Everybody,
        Users::Group(group) if is_member(Gid::from_raw(group)) => Allowed::Everybody,
        // A user should not be advised to join root's group.
        Users::Group(group) if group != 0 => {
            let found = Group::from_gid(Gid::from_raw(group)).ok().flatten();
            Allowed::Group(found.map_or_else(|| group.to_string(), |it| it.name))
        }
        Users::Group(_) | Users::Nobody => {
            let owner = Uid::from_raw(found.uid());
            let found = User::from_uid(owner).ok().flatten();
            Allowed::Owner(found.map_or_else(|| owner.to_string(), |it| it.name))
        }
    }
}

fn is_member(group: Gid) -> bool {
    getegid() == group || getgroups().unwrap_or_default().contains(&group)
}

/// Returns whether a guest has passed its trials, by the letters that it wrote and by libkrun's log.
fn judge(output: &Output) -> Result<(), KvmError> {
    let letter = output.stdout.last().copied();
    if output.status.code().is_none() {
        return Err(KvmError::Unknown(format!("the test guest was killed ({})", output.status)));
    }
    if letter == Some(END) && output.status.success() {
        return Ok(());
    }
    let log = String::from_utf8_lossy(&output.stderr);
    let gave_up = log.contains(INTERNAL_ERROR).then(|| INTERNAL_ERROR.to_owned());
    let has_run = letter.is_some() || gave_up.is_some();
    let what = gave_up.or_else(|| complaint(&log));
    let what = what.unwrap_or_else(|| format!("the guest stopped ({})", output.status));
    let trial = TRIALS.iter().find(|(mark, _)| Some(*mark) == letter);
    let place = trial.map_or_else(String::new, |(_, name)| format!(" at the instruction {name}"));
    let reason = shown(&(what + &place));
    Err(if has_run { KvmError::Unusable(reason) } else { KvmError::Failed(reason) })
}

/// Returns the first line that is not empty in the log of libkrun and its process, without the prefix that ends with `]
/// `.
fn complaint(log: &str) -> Option<String> {
    let line = log.lines().find(|line| !line.trim().is_empty())?;
    Some(line.split_once("] ").map_or(line, |(_, text)| text).to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn judged(code: i32, letters: &str, log: &str) -> String {
        let status = ExitStatus::from_raw(code << 8);
        let output = Output { status, stdout: letters.into(), stderr: log.into() };
        judge(&output).map_or_else(|error| error.to_string(), |()| "works".to_owned())
    }

    #[test]
    fn only_a_guest_that_came_to_its_end_works() {
        assert_eq!(judged(0, "bcxpe", ""), "works");
        let log = "[2026-01-31T12:00:00.000000Z ERROR krun_vmm::linux::vstate] Received KVM_EXIT_INTERNAL_ERROR signal\n";
        let found = [
            judged(1, "bc", log),
            judged(0, "bcx", ""),
            judged(
                1,
                "",
                "[2026-01-31T12:00:00.000000Z ERROR krun] Building the microVM failed: X\nmore\n",
            ),
            judged(0, "", ""),
            judged(1, "bcxpe", ""),
        ];
        insta::assert_debug_snapshot!(found, @r#"
        [
            "this host's KVM cannot run a guest: KVM_EXIT_INTERNAL_ERROR at the instruction cmpxchg16b",
            "this host's KVM cannot run a guest: the guest stopped (exit status: 0) at the instruction xrstor",
            "this host's KVM did not start a guest: Building the microVM failed: X",
            "this host's KVM did not start a guest: the guest stopped (exit status: 0)",
            "this host's KVM cannot run a guest: the guest stopped (exit status: 1)",
        ]
        "#);
    }

    #[test]
    fn a_device_that_does_not_open_says_why() {
        let none = try_guest(Path::new("/bin/true"), Path::new("/no/such/kvm")).unwrap_err();
        assert_eq!(none.to_string(), "there is no /no/such/kvm");
        let directory = tempfile::tempdir().unwrap();
        let error = try_guest(Path::new("/bin/true"), directory.path()).unwrap_err();
        assert!(matches!(error, KvmError::Open { .. }), "{error}");
    }

    #[test]
    fn permissions_say_who_may_open_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let with_mode = |mode| {
            fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).unwrap();
            allowed(file.path())
        };
        let me = User::from_uid(nix::unistd::geteuid()).unwrap().unwrap().name;
        assert_eq!(with_mode(0o600), Allowed::Owner(me.clone()));
        assert_eq!(with_mode(0o640), Allowed::Owner(me));
        assert_eq!(with_mode(0o660), Allowed::Everybody, "of its group");
        assert_eq!(with_mode(0o606), Allowed::Everybody);
        // Only root can change a file's group to one that this user is not a member of.
        let nobodys = Gid::from_raw(54_321);
        if nix::unistd::chown(file.path(), None, Some(nobodys)).is_ok() {
            assert_eq!(with_mode(0o660), Allowed::Group("54321".to_owned()));
        }
    }

    #[test]
    fn a_program_that_is_no_guest_proves_nothing() {
        let anything = tempfile::NamedTempFile::new().unwrap();
        let tried = |program: &str| try_guest(Path::new(program), anything.path());
        assert!(matches!(tried("/bin/true"), Err(KvmError::Failed(_))));
        assert!(matches!(tried("/no/such/program"), Err(KvmError::Unknown(_))));
        assert!(matches!(tried("/usr/bin/yes"), Err(KvmError::Unknown(_))));
        let killed =
            Output { status: ExitStatus::from_raw(9), stdout: b"b".into(), stderr: Vec::new() };
        assert!(matches!(judge(&killed), Err(KvmError::Unknown(_))));
    }
}
