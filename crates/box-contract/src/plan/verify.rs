//! The verification of a task: the directory that it takes over from the agent's work, and its outcome.
//!
//! Init runs the command in a root as the image has it, with an empty writable layer. Only the shares, volumes and scratch
//! disks of the component, and its working directory, have the files that the agent has left.

use safe_text::secrets::mask_words;
use safe_text::shell_word;
use serde::{Deserialize, Serialize};

use super::{ComponentName, VerifyPlan};
use crate::rules::is_inside;
use crate::wire::VerificationEnd;

/// The directories with the programs and the settings of a root. The working directory of a verification must be neither in one of
/// them nor around one. Unlike the [`SYSTEM_DIRECTORIES`](super::SYSTEM_DIRECTORIES), they leave `/opt` and `/usr/src` to applications.
const NOT_KEPT: [&str; 18] = [
    "/bin",
    "/boot",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/run",
    "/sbin",
    "/usr/bin",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/local/bin",
    "/usr/local/lib",
    "/usr/local/sbin",
    "/usr/sbin",
];

/// Returns whether a verification can take over the directory at an absolute path from the agent's work: no program and no
/// setting of the system is in it. For example, `/usr/src/app` is accepted, and `/`, `/usr`, `/etc/app` and `/app/..` are not.
pub fn can_be_kept(path: &str) -> bool {
    let names: Vec<_> = path.split('/').filter(|it| !matches!(*it, "" | ".")).collect();
    let normalized = format!("/{}", names.join("/"));
    let is_around = |it: &&str| is_inside(it, &normalized) || is_inside(&normalized, it);
    !names.is_empty() && !names.contains(&"..") && !NOT_KEPT.iter().any(is_around)
}

/// The verification of a task as its record has it: the command, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskVerification {
    /// The program and its arguments. Probable secrets are masked.
    pub argv: Vec<String>,
    /// The component in whose fresh root the command runs.
    pub component: ComponentName,
    /// How the command ended. `None` if it has not.
    #[serde(flatten)]
    pub end: Option<VerificationEnd>,
}

impl TaskVerification {
    /// Creates the verification of a task that no agent works on yet.
    pub fn new(plan: &VerifyPlan) -> Self {
        let mut argv = plan.argv.clone();
        mask_words(&mut argv);
        Self { argv, component: plan.component, end: None }
    }

    /// Returns the command as one line, as a shell would read it.
    pub fn command(&self) -> String {
        self.argv.iter().map(shell_word).collect::<Vec<_>>().join(" ")
    }

    /// Returns why the task has failed. `None` if the command has succeeded.
    pub fn failure(&self) -> Option<String> {
        let what = format!("the verification `{}`", self.command());
        let Some(end) = &self.end else { return Some(format!("{what} did not take place")) };
        if let Some(reason) = &end.reason {
            return Some(format!("{what} was not started: {reason}"));
        }
        if end.timed_out {
            return Some(format!("{what} exceeded its time limit"));
        }
        let lacked = if end.oom_killed { "; its memory was used up" } else { "" };
        (end.status != 0).then(|| format!("{what} ended with the status {}{lacked}", end.status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(end: VerificationEnd) -> TaskVerification {
        let argv = vec!["npm".to_owned(), "run it".to_owned()];
        TaskVerification { argv, component: ComponentName::Business, end: Some(end) }
    }

    #[test]
    fn no_program_of_the_system_is_taken_over() {
        for path in
            ["/app", "/usr/src/app", "/a3s/workspace", "/home/user/", "/binary", "/srv//x/."]
        {
            assert!(can_be_kept(path), "{path}");
        }
        for path in
            ["/", "/usr", "/usr/bin", "/etc/app", "/usr/local", "//bin/", "/app/../usr", "/."]
        {
            assert!(!can_be_kept(path), "{path}");
        }
    }

    #[test]
    fn a_failure_names_the_command_and_the_reason() {
        let passed = VerificationEnd::default();
        assert_eq!(ended(passed.clone()).failure(), None);
        for (end, reason) in [
            (VerificationEnd { status: 1, ..passed.clone() }, "ended with the status 1"),
            (
                VerificationEnd { status: 137, oom_killed: true, ..passed.clone() },
                "ended with the status 137; its memory was used up",
            ),
            (
                VerificationEnd { status: 137, timed_out: true, ..passed.clone() },
                "exceeded its time limit",
            ),
            (VerificationEnd { reason: Some("no".to_owned()), ..passed }, "was not started: no"),
        ] {
            let failure = ended(end).failure().unwrap();
            assert_eq!(failure, format!("the verification `npm 'run it'` {reason}"));
        }
        let pending = TaskVerification { end: None, ..ended(VerificationEnd::default()) };
        assert!(pending.failure().unwrap().ends_with("did not take place"));
    }

    #[test]
    fn a_verification_reads_back_with_and_without_its_end() {
        let pending = TaskVerification { end: None, ..ended(VerificationEnd::default()) };
        let text = r#"{"argv":["npm","run it"],"component":"business"}"#;
        assert_eq!(serde_json::to_string(&pending).unwrap(), text);
        let end =
            VerificationEnd { status: 1, output: "no\n".to_owned(), ..VerificationEnd::default() };
        for it in [pending, ended(end)] {
            let text = serde_json::to_string(&it).unwrap();
            assert_eq!(serde_json::from_str::<TaskVerification>(&text).unwrap(), it, "{text}");
        }
    }
}
