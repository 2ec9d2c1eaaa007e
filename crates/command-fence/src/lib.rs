#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod rules;

use std::io;
use std::process::{Child, Command};

use command_policy::{CommandLimits, Fences};
use nix::sched::{CloneFlags, unshare};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

pub use rules::restrict;

/// What happens if the kernel or the caller's rights do not suffice for a part of the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// The program is not started.
    Strict,
    /// The program is started without that part.
    Warn,
}

/// A part of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Only some files can be written: needs Landlock.
    Writable,
    /// Some paths cannot be read, or cannot be written in a writable directory: needs a mount namespace.
    Denied,
    /// No network: needs a network namespace.
    Network,
}

/// The reason why a program was not started.
#[derive(Debug, thiserror::Error)]
pub enum FenceError {
    /// A part of the policy cannot be enforced.
    #[error("{}", lacks(*.0))]
    Missing(Part),
    /// The rules could not be made, for example because the kernel has no memory.
    #[error("apply the Landlock rules: {0}")]
    Rules(String),
    /// A limit could not be set.
    #[error("set the limits of the command: {0}")]
    Limits(io::Error),
    /// The program could not be started.
    #[error(transparent)]
    Start(#[from] io::Error),
}

const fn lacks(part: Part) -> &'static str {
    match part {
        Part::Writable => "the policy needs Landlock, which the kernel lacks",
        Part::Denied => "the policy denies paths, which needs a mount namespace",
        Part::Network => "the policy denies the network, which needs a network namespace",
    }
}

/// A program that was started under a policy.
#[derive(Debug)]
pub struct Started {
    /// The program.
    pub child: Child,
    /// The parts of the policy that are not enforced. Always empty with [`Fallback::Strict`].
    pub missing: Vec<Part>,
}

/// The fences of programs.
#[derive(Debug, Clone, Copy)]
pub struct Fence<'a> {
    fences: &'a Fences,
    fallback: Fallback,
}

impl<'a> Fence<'a> {
    /// Creates the fences of a policy.
    pub const fn new(fences: &'a Fences, fallback: Fallback) -> Self {
        Self { fences, fallback }
    }

    /// Starts a program under the policy. The calling thread stays as it is: the program is started by a thread that
    /// confines itself first.
    ///
    /// # Errors
    /// [`FenceError`].
    pub fn spawn(&self, command: &mut Command) -> Result<Started, FenceError> {
        let start = || {
            let missing = self.confine()?;
            let mut child = command.spawn()?;
            let limits = self.fences.limits.iter().try_for_each(|it| set_limits(&child, it));
            if let Err(error) = limits {
                child.kill()?;
                return Err(FenceError::Limits(error));
            }
            Ok(Started { child, missing })
        };
        let result = std::thread::scope(|scope| scope.spawn(start).join());
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Confines the calling thread for the rest of its life, and returns what is not enforced.
    fn confine(&self) -> Result<Vec<Part>, FenceError> {
        let Fences { deny_read, deny_write, has_network, .. } = self.fences;
        let mut missing = Vec::new();
        let exist =
            deny_read.iter().chain(deny_write).any(|it| std::path::Path::new(&it.path).exists());
        if exist {
            self.lack(Part::Denied, &mut missing)?;
        }
        if !has_network && unshare(CloneFlags::CLONE_NEWNET).is_err() {
            self.lack(Part::Network, &mut missing)?;
        }
        if !restrict(&self.fences.writable_roots())? {
            self.lack(Part::Writable, &mut missing)?;
        }
        Ok(missing)
    }

    fn lack(&self, part: Part, missing: &mut Vec<Part>) -> Result<(), FenceError> {
        match self.fallback {
            Fallback::Strict => Err(FenceError::Missing(part)),
            Fallback::Warn => {
                missing.push(part);
                Ok(())
            }
        }
    }
}

/// Sets the limits of a program, unless it has lower ones. They are those of a process and not of a thread, so that the
/// program has them directly after its start and not before.
fn set_limits(child: &Child, limits: &CommandLimits) -> io::Result<()> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let all = [(Resource::Nproc, limits.processes), (Resource::Nofile, limits.open_files)];
    for (resource, limit) in all {
        let Rlimit { current, maximum } = getrlimit(resource);
        let lower = |own: Option<u64>| Some(own.map_or(limit, |own| own.min(limit)));
        let new = Rlimit { current: lower(current), maximum: lower(maximum) };
        prlimit(pid, resource, new)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use box_contract::{SandboxPlan, SandboxPreset};
    use command_policy::{Subject, Surroundings};

    use super::*;

    /// Returns fences with one writable directory besides the usual ones.
    fn fences(preset: SandboxPreset, writable: &str, deny_read: &[&str]) -> Fences {
        let plan = SandboxPlan {
            preset,
            writable: vec![writable.to_owned()],
            deny_read: deny_read.iter().map(|&it| it.to_owned()).collect(),
            ..SandboxPlan::default()
        };
        let around = Surroundings {
            homes: Vec::new(),
            workdir: "/".to_owned(),
            writable_mounts: Vec::new(),
        };
        let fences = Fences::of(&plan, Subject::Command, &around);
        // The tests' directories are in /tmp.
        Fences { writable: plan.writable, ..fences }
    }

    fn run(fence: Fence<'_>, script: &str) -> (String, Vec<Part>) {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdout(std::process::Stdio::piped());
        let Started { child, missing } = fence.spawn(&mut shell).unwrap();
        let output = child.wait_with_output().unwrap();
        (String::from_utf8_lossy(&output.stdout).into_owned(), missing)
    }

    #[test]
    fn only_the_program_is_confined_and_only_to_what_is_writable() {
        let [inside, outside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let path = |it: &tempfile::TempDir| it.path().to_str().unwrap().to_owned();
        let fences = fences(SandboxPreset::Default, &path(&inside), &[]);
        let (inside, outside) = (path(&inside), path(&outside));
        let script = format!(
            "touch {inside}/a && echo inside; touch {outside}/a && echo outside; \
             ln {inside}/a {outside}/b && echo linked; ulimit -n; echo x >/dev/null && echo null"
        );
        let (said, missing) = run(Fence::new(&fences, Fallback::Warn), &script);
        let free = if missing.contains(&Part::Writable) { "outside\nlinked\n" } else { "" };
        assert_eq!(said, format!("inside\n{free}1024\nnull\n"), "{missing:?}");
        std::fs::write(format!("{outside}/c"), "").unwrap();
    }

    #[test]
    fn a_strict_policy_that_needs_mounts_starts_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_str().unwrap();
        let fences = fences(SandboxPreset::Default, path, &["/etc/passwd", "/no/such"]);
        let refused = Fence::new(&fences, Fallback::Strict).spawn(&mut Command::new("true"));
        assert!(matches!(refused, Err(FenceError::Missing(Part::Denied))));
        let (said, missing) = run(Fence::new(&fences, Fallback::Warn), "echo started");
        assert_eq!(said, "started\n");
        assert!(missing.contains(&Part::Denied));
    }

    #[test]
    fn a_program_that_does_not_exist_is_an_error() {
        let fences = fences(SandboxPreset::Default, "/tmp", &[]);
        let missing = Fence::new(&fences, Fallback::Warn).spawn(&mut Command::new("/no/such"));
        assert!(
            matches!(missing, Err(FenceError::Start(error)) if error.kind() == io::ErrorKind::NotFound)
        );
    }
}
