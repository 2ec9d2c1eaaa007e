//! Whether this user may make user namespaces: by making one.
//!
//! Some hosts allow the namespace and forbid what it is for: Ubuntu's AppArmor takes the capabilities in
//! it away. So a mount namespace is made in it, too. A process cannot leave a user namespace, and one
//! of several threads cannot enter one, so all of this is done by a process of its own.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use box_image::text::shown;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getgid, getuid};

use super::programs::output_within;
use crate::LaunchError;

/// The hidden subcommand as which that process is started.
pub const SUBCOMMAND: &str = "namespace-trial";
/// How long it may take. It needs a few milliseconds.
const LIMIT: Duration = Duration::from_secs(5);
/// The settings that can forbid user namespaces.
const SWITCHES: [Switch; 3] = [
    Switch { name: "user.max_user_namespaces", forbids: "0", allows: "10000" },
    Switch { name: "kernel.unprivileged_userns_clone", forbids: "0", allows: "1" },
    Switch { name: "kernel.apparmor_restrict_unprivileged_userns", forbids: "1", allows: "0" },
];

/// The host's answer to the wish for user namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespaces {
    /// Why none could be made; `None` where one was.
    pub refused: Option<String>,
    /// The settings that forbid them to ordinary users.
    pub forbidden_by: Vec<Switch>,
}

/// A setting of the kernel (sysctl(8)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// Its name.
    pub name: &'static str,
    /// The value that forbids something.
    pub forbids: &'static str,
    /// A value that allows it.
    pub allows: &'static str,
}

/// Makes namespaces in a process of `program`, which is boxlaunch.
pub fn examine(program: &Path) -> Namespaces {
    let mut command = Command::new(program);
    command.arg(SUBCOMMAND).env_clear().current_dir("/");
    let refused = match output_within(&mut command, LIMIT) {
        Ok(Some(output)) if output.status.success() => None,
        Ok(Some(output)) => {
            let words = String::from_utf8_lossy(&output.stderr);
            let words = words.lines().next().unwrap_or("the process that tried it ended early");
            Some(shown(words.trim_start_matches("boxlaunch: ")))
        }
        Ok(None) => Some(format!("it took longer than {} s", LIMIT.as_secs())),
        Err(error) => Some(format!("cannot start the process that tries it: {error}")),
    };
    Namespaces { refused, forbidden_by: forbidden_by(Path::new("/proc/sys")) }
}

/// Returns the settings below a directory that forbid user namespaces.
fn forbidden_by(settings: &Path) -> Vec<Switch> {
    let forbids = |switch: &Switch| {
        let value = fs::read_to_string(settings.join(switch.name.replace('.', "/")));
        value.is_ok_and(|text| text.trim() == switch.forbids)
    };
    SWITCHES.into_iter().filter(forbids).collect()
}

/// Makes the namespaces in this process.
///
/// # Errors
/// The first step that is refused.
pub fn enter() -> Result<(), LaunchError> {
    let system = LaunchError::system::<nix::Error>;
    let (user, group) = (getuid(), getgid());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(system("make a user namespace"))?;
    for (name, text) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("0 {user} 1")),
        ("gid_map", format!("0 {group} 1")),
    ] {
        let path = Path::new("/proc/self").join(name);
        fs::write(&path, text).map_err(LaunchError::file("write", &path))?;
    }
    let inner = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWIPC;
    unshare(inner).map_err(system("make a mount namespace in the user namespace"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_forbid_are_found() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(forbidden_by(root.path()), []);
        for directory in ["user", "kernel"] {
            fs::create_dir(root.path().join(directory)).unwrap();
        }
        for switch in SWITCHES {
            fs::write(root.path().join(switch.name.replace('.', "/")), "0\n").unwrap();
        }
        assert_eq!(forbidden_by(root.path()), SWITCHES[..2]);
    }

    #[test]
    fn a_program_that_makes_none_proves_nothing() {
        let refused = examine(Path::new("/bin/false")).refused.unwrap();
        assert_eq!(refused, "the process that tried it ended early");
        assert!(examine(Path::new("/no/such/program")).refused.unwrap().contains("cannot start"));
    }
}
