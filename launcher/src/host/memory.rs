//! Stores whether this host's KVM runs a guest, until the host boots again.
//!
//! `<state>/kvm.json` contains the last result and its subject: the boot, the device, and the version of boxlaunch,
//! which decides what the guest tries. The device changes when the KVM module is loaded again. The file is ignored if
//! its subject has changed or if another user could have written it.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use host_fs::publish::FileDraft;
use host_fs::read::{Links, open_regular, read_open};
use host_fs::stamp::boot_id;
use host_fs::trust::is_private;
use serde::{Deserialize, Serialize};

use super::error::KvmError;

/// The name of the file in the state directory.
const NAME: &str = "kvm.json";
/// The greatest size of the file, in bytes.
const MAX_BYTES: u64 = 4096;

/// The stored result for one device, in a state directory.
#[derive(Debug)]
pub struct Memory {
    path: PathBuf,
    device: PathBuf,
}

/// The content of the file.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Record {
    of: Subject,
    /// Why no guest runs; `None` if guests run.
    reason: Option<String>,
}

/// The subject of a stored result. The result is valid only for this subject.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Subject {
    boot: String,
    /// The device's inode and its change time, in seconds and nanoseconds since 1970.
    device: (u64, i64, i64),
    version: String,
}

impl Memory {
    /// Uses the file in `state`. [`Self::note`] creates the file and the directory if they are missing.
    pub fn new(state: &Path, device: &Path) -> Self {
        Self { path: state.join(NAME), device: device.to_owned() }
    }

    /// Returns the stored result; `None` if there is none for this boot, device and version.
    pub fn recall(&self) -> Option<Result<(), KvmError>> {
        let file = open_regular(&self.path, Links::Refuse).ok()?;
        is_private(&file).ok().filter(|private| *private)?;
        let record: Record = serde_json::from_slice(&read_open(&file, MAX_BYTES).ok()?).ok()?;
        let result = record.reason.map_or(Ok(()), |reason| Err(KvmError::Unusable(reason)));
        (record.of == self.subject()?).then_some(result)
    }

    /// Stores that guests run, or that they cannot run ([`KvmError::Unusable`]). Ignores other results, which may
    /// change before the next boot. If the file cannot be written, the next run boots a guest again.
    pub fn note(&self, result: &Result<(), KvmError>) {
        let reason = match result {
            Ok(()) => None,
            Err(KvmError::Unusable(reason)) => Some(reason.clone()),
            Err(_) => return,
        };
        if let Some(of) = self.subject() {
            drop(self.write(&Record { of, reason }));
        }
    }

    fn write(&self, record: &Record) -> io::Result<()> {
        let state = self.path.parent().unwrap_or(&self.path);
        DirBuilder::new().recursive(true).mode(0o700).create(state)?;
        let draft = FileDraft::beside(&self.path, 0o600)?;
        draft.file().write_all(&serde_json::to_vec(record)?)?;
        draft.finish_over_unflushed(&self.path)
    }

    fn subject(&self) -> Option<Subject> {
        let device = fs::metadata(&self.device).ok()?;
        Some(Subject {
            boot: boot_id()?.to_owned(),
            device: (device.ino(), device.ctime(), device.ctime_nsec()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_last_result_is_remembered() {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("a/b");
        let memory = Memory::new(&state, Path::new("/dev/null"));
        assert_eq!(memory.recall(), None);
        for result in [Ok(()), Err(KvmError::Unusable("it stops".to_owned())), Ok(())] {
            memory.note(&result);
            assert_eq!(memory.recall(), Some(result));
        }
        memory.note(&Err(KvmError::Unknown("it was killed".to_owned())));
        memory.note(&Err(KvmError::Failed("another has it".to_owned())));
        assert_eq!(memory.recall(), Some(Ok(())), "what may pass is not noted");
        assert_eq!(fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_result_of_something_else_is_none() {
        let state = tempfile::tempdir().unwrap();
        let memory = |device: &str| Memory::new(state.path(), Path::new(device));
        memory("/dev/null").note(&Ok(()));
        assert_eq!(memory("/dev/zero").recall(), None);
        assert_eq!(memory("/no/such/device").recall(), None);
        let path = state.path().join(NAME);
        let text = fs::read_to_string(&path).unwrap();
        for (from, to) in [("\"boot\":\"", "\"boot\":\"0"), ("\"version\":\"", "\"version\":\"0")] {
            fs::write(&path, text.replace(from, to)).unwrap();
            assert_eq!(memory("/dev/null").recall(), None, "{from}");
        }
        fs::write(&path, &text).unwrap();
        assert_eq!(memory("/dev/null").recall(), Some(Ok(())));
    }

    #[test]
    fn what_another_user_could_have_written_is_no_result() {
        let state = tempfile::tempdir().unwrap();
        let memory = Memory::new(state.path(), Path::new("/dev/null"));
        memory.note(&Ok(()));
        let path = state.path().join(NAME);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(memory.recall(), None);
        fs::write(&path, "noise").unwrap();
        assert_eq!(memory.recall(), None);
    }
}
