//! The task of a run, as the host records it.

use std::io::Write as _;

use box_contract::wire::Verification;
use box_contract::{TaskPlan, TaskStatus, TaskVerification};
use host_fs::OsError;
use host_fs::named::FileSlot;
use host_fs::publish::FileDraft;
use rustix::fs::{AtFlags, FileType, statat, unlinkat};
use serde::{Deserialize, Serialize};

use super::RecordError;
use crate::host::state_dir::absent;
use crate::streams::log::since_epoch;

/// The task of a box that was started, and its status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The task's id.
    pub id: String,
    /// The type of the task, which the agent defines.
    #[serde(rename = "type")]
    pub kind: String,
    /// The description of the work.
    pub description: String,
    /// The task's status. Times are in seconds since 1970.
    #[serde(flatten)]
    pub status: TaskStatus,
    /// The verification that the box declares, and how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<TaskVerification>,
}

/// The task of a box that has ended, and its result.
#[derive(Debug, Clone)]
pub struct EndedTask {
    /// The task.
    pub task: Task,
    /// The content of the agent's `/task/result.json`.
    pub result: Vec<u8>,
}

impl Task {
    /// Returns a task that no agent works on yet.
    pub fn new(plan: &TaskPlan) -> Self {
        let TaskPlan { id, kind, description, .. } = plan.clone();
        let verification = plan.verify.as_ref().map(TaskVerification::new);
        Self { id, kind, description, status: TaskStatus::Pending, verification }
    }

    /// Records that the agent works on the task.
    pub(crate) fn start(&mut self) {
        self.status = TaskStatus::Running { started_at: now() };
    }

    /// Records a step of the verification.
    ///
    /// # Errors
    /// The fault of a guest that sends this step for this task, or at this time.
    pub(crate) fn verify(&mut self, step: Verification) -> Result<(), &'static str> {
        let is_running = matches!(self.status, TaskStatus::Running { .. });
        let is_verifying = matches!(self.status, TaskStatus::Verifying { .. });
        let Some(verification) = &mut self.verification else {
            return Err("a verification of a task that has none");
        };
        match step {
            Verification::Started if is_running => {
                self.status = TaskStatus::Verifying { started_at: now() };
            }
            Verification::Ended(end) if is_verifying => {
                if !end.is_bounded() {
                    return Err("the output of a verification is too long");
                }
                if verification.end.replace(end).is_some() {
                    return Err("a verification has ended twice");
                }
            }
            Verification::Started | Verification::Ended(_) => {
                return Err("a verification at the wrong time");
            }
        }
        Ok(())
    }

    /// Records that the task failed because the box ended, unless the task already has a verdict.
    pub(crate) fn lose(&mut self) {
        if self.status.is_open() {
            let error = "the box ended before it was done".to_owned();
            self.status = TaskStatus::Failed { finished_at: now(), error };
        }
    }
}

/// The mode of a new result file, before the umask.
const RESULT_FILE_MODE: u32 = 0o666;

/// Checks that a result can be written to `place`. The path must be free or have a regular file, which the result
/// replaces. A symbolic link is refused, because it may lead to a file in `/dev`.
///
/// # Errors
/// [`RecordError::ResultPlace`], or if the directory is not writable.
pub fn check_result_place(place: &FileSlot) -> Result<(), RecordError> {
    let found = statat(place.directory(), place.name(), AtFlags::SYMLINK_NOFOLLOW);
    if found.is_ok_and(|it| FileType::from_raw_mode(it.st_mode) != FileType::RegularFile) {
        return Err(RecordError::ResultPlace(place.path().to_owned()));
    }
    let draft = FileDraft::at(place, RESULT_FILE_MODE);
    Ok(draft.map(drop).map_err(OsError::file("write", place.path()))?)
}

/// Replaces the result at `place`. If `result` is empty, removes an existing file, because it is from another run.
///
/// # Errors
/// If the file cannot be written.
pub fn write_result(place: &FileSlot, result: &[u8]) -> Result<(), OsError> {
    if result.is_empty() {
        let remove = || unlinkat(place.directory(), place.name(), AtFlags::empty());
        return absent(place.path(), |_| Ok(remove()?));
    }
    let write = || {
        let draft = FileDraft::at(place, RESULT_FILE_MODE)?;
        draft.file().write_all(result)?;
        draft.finish_at(place)
    };
    write().map_err(OsError::file("write", place.path()))
}

/// Returns the seconds since 1970.
pub(crate) fn now() -> u64 {
    since_epoch() / 1000
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    use box_contract::wire::{MAX_VERIFICATION_OUTPUT, VerificationEnd};
    use box_contract::{ComponentName, VerifyPlan};
    use host_fs::upward::Search;

    use super::*;

    fn place(path: &Path) -> FileSlot {
        FileSlot::of_new(path, &Search::of_user(|_| None)).unwrap()
    }

    /// A running box can replace the directory of the result if the directory is in a writable share.
    #[test]
    fn a_result_is_written_where_its_place_was_found() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        let at = |path: &str| real.join(path);
        fs::create_dir_all(at("share/out")).unwrap();
        fs::create_dir(at("keys")).unwrap();
        fs::write(at("keys/result.json"), "key").unwrap();
        let place = place(&at("share/out/result.json"));
        check_result_place(&place).unwrap();
        fs::rename(at("share/out"), at("share/moved")).unwrap();
        symlink("../keys", at("share/out")).unwrap();
        let found = || {
            let read = |path: &str| fs::read_to_string(at(path)).ok();
            (read("share/moved/result.json"), read("keys/result.json"))
        };
        let key = || Some("key".to_owned());
        write_result(&place, b"1").unwrap();
        assert_eq!(found(), (Some("1".into()), key()));
        write_result(&place, b"2").unwrap();
        assert_eq!(found(), (Some("2".into()), key()));
        for _ in 0..2 {
            write_result(&place, b"").unwrap();
            assert_eq!(found(), (None, key()));
        }
        assert_eq!(fs::read_dir(at("share/moved")).unwrap().count(), 0);
    }

    /// A compromised guest can send every message at every time.
    #[test]
    fn a_verification_is_one_of_the_declared_task() {
        let plan = TaskPlan::read(r#"{"id":"t","type":"x","description":"y"}"#).unwrap();
        let argv = vec!["npm".to_owned(), "test".to_owned()];
        let component = ComponentName::Agent;
        let verify = Some(VerifyPlan { argv, component, timeout_seconds: 60 });
        let ended = |output: &str| {
            let end = VerificationEnd { output: output.to_owned(), ..VerificationEnd::default() };
            Verification::Ended(end)
        };
        let mut undeclared = Task::new(&plan);
        undeclared.start();
        assert!(undeclared.verify(Verification::Started).is_err());
        let mut task = Task::new(&TaskPlan { verify, ..plan });
        assert!(task.verify(Verification::Started).is_err(), "no agent works on it");
        task.start();
        assert!(task.verify(ended("")).is_err(), "it has not begun");
        assert_eq!(task.verify(Verification::Started), Ok(()));
        assert!(task.verify(Verification::Started).is_err(), "twice");
        let long = "x".repeat(MAX_VERIFICATION_OUTPUT + 1);
        assert!(task.verify(ended(&long)).is_err());
        assert_eq!(task.verify(ended("ok")), Ok(()));
        assert!(task.verify(ended("other")).is_err(), "twice");
        let text = serde_json::to_string(&task).unwrap();
        assert!(text.contains(r#""status":"verifying""#), "{text}");
        assert_eq!(serde_json::from_str::<Task>(&text).unwrap(), task);
        task.lose();
        assert!(matches!(task.status, TaskStatus::Failed { .. }));
    }

    #[test]
    fn nothing_but_a_file_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        fs::write(at("file"), "").unwrap();
        symlink("file", at("link")).unwrap();
        let refused = |path: PathBuf| check_result_place(&place(&path)).is_err();
        assert!(!refused(at("file")) && !refused(at("none")));
        for other in [at("link"), dir.path().to_owned(), "/dev/null".into(), "/dev/stdout".into()] {
            assert!(refused(other.clone()), "{}", other.display());
        }
    }
}
