//! The policy of this host: which boxes may be pulled, loaded and started. `docs/trust.md` describes it.
//!
//! There is one policy in force: the administrator's if it exists, else the user's. No option and no variable replaces the
//! administrator's. If the file cannot be read, no box is accepted.

mod ask;
mod stored;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use box_contract::ErrorCode;
use box_trust::{MAX_KEY_BYTES, MAX_POLICY_BYTES, Policy};
use diagnostics::{Diagnostics, Source, Sources};
use host_fs::read::{self, Links, read_file};
use host_fs::trust::{Stranger, Trusted};
use host_fs::{FileError, own};
use safe_text::{counted, shown, with_causes};

use crate::Problem;

pub use ask::{Asked, PolicyError, Verdict};
pub use stored::{PolicyReport, check_file, check_stored};

/// The policy in force.
#[derive(Debug)]
pub struct HostPolicy {
    /// The path of the file.
    pub path: PathBuf,
    /// Whether it is the administrator's policy.
    pub is_administrators: bool,
    policy: Policy,
}

/// Why the policy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFault {
    /// The file cannot be read, or is not UTF-8 text.
    #[error(transparent)]
    File(#[from] FileError),
    /// Another user could change the file.
    #[error("the policy {} cannot be used: {stranger}", path.display())]
    Stranger {
        /// The path of the policy.
        path: PathBuf,
        /// The other user.
        stranger: Stranger,
    },
    /// The content is wrong, or a key cannot be used.
    #[error("the policy is wrong")]
    Content(Diagnostics, Box<Sources>),
}

impl PolicyFault {
    /// Returns the first error in one line, with its place: `/etc/boxbuild/policy.toml:3: the key …`.
    pub fn line(&self) -> String {
        let Self::Content(found, sources) = self else { return with_causes(self) };
        let Some(first) = found.as_slice().first() else { return with_causes(self) };
        let span = first.span();
        let place = format!("{}:{}", sources.of(span).name, sources.location(span).0);
        let more = found.as_slice().len() - 1;
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        format!("{place}: {}{more}", first.redacted(sources).message())
    }

    /// Returns the problems, for the user.
    pub fn problems(&self) -> Vec<Problem> {
        let help = match self {
            Self::Content(found, sources) => {
                return Problem::of_diagnostics(
                    ErrorCode::PolicyInvalid,
                    found.as_slice(),
                    sources,
                );
            }
            Self::File(_) => {
                "no box is accepted until the policy can be read; docs/trust.md describes it"
            }
            Self::Stranger { .. } => {
                "no box is accepted until only the owner of the policy can change it and its directory"
            }
        };
        vec![Problem::new((ErrorCode::PolicyInvalid, help), shown(&with_causes(self)))]
    }
}

impl HostPolicy {
    /// Reads the policy in force. Returns `None` if this host has none, so that all boxes are accepted. `variable` returns the
    /// value of an environment variable.
    ///
    /// # Errors
    /// [`PolicyFault`] if the policy cannot be used. Then no box may be accepted.
    pub fn read(variable: impl Fn(&str) -> Option<OsString>) -> Result<Option<Self>, PolicyFault> {
        let administrators = Path::new(own::POLICY);
        if exists(administrators)? {
            return Self::at(administrators, &Trusted::root(), true).map(Some);
        }
        match own::policy(&variable) {
            Some(path) if exists(&path)? => {
                Self::at(&path, &Trusted::of_user(variable), false).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Returns the policy in one line: `/etc/boxbuild/policy.toml, the administrator's: 2 rules`.
    pub fn line(&self) -> String {
        let whose = if self.is_administrators { "the administrator's" } else { "the user's" };
        let rules = counted(self.policy.rules(), "rule", "rules");
        shown(&format!("{}, {whose}: {rules}", self.path.display()))
    }

    /// Reads the policy at `path`, which only the users `trusted` may be able to change.
    fn at(path: &Path, trusted: &Trusted, is_administrators: bool) -> Result<Self, PolicyFault> {
        if let Some(stranger) = stranger(path, trusted).map_err(FileError::of("examine", path))? {
            return Err(PolicyFault::Stranger { path: path.to_owned(), stranger });
        }
        let bytes = read_file(path, Links::Follow, MAX_POLICY_BYTES as u64);
        let text = read::text(path, bytes.map_err(FileError::of("read", path))?)?;
        let directory = path.parent().unwrap_or(path);
        let parsed = Policy::parse(&text, &mut |key| read_key(&directory.join(key), trusted));
        let policy = parsed.map_err(|found| {
            let sources = Sources::single(Source::new(path.display().to_string(), text));
            PolicyFault::Content(found, Box::new(sources))
        })?;
        Ok(Self { path: path.to_owned(), is_administrators, policy })
    }
}

/// Returns whether there is a file at the path of a policy, even one that cannot be read, such as a broken symbolic link.
fn exists(path: &Path) -> Result<bool, FileError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(FileError::of("read", path)(error)),
    }
}

/// Returns an untrusted user who can change or replace a file or its directory.
fn stranger(path: &Path, trusted: &Trusted) -> io::Result<Option<Stranger>> {
    let of_file = trusted.untrusted_user_on_path(path)?;
    let directory = path.parent().filter(|it| *it != Path::new("/"));
    let of_directory = || directory.map_or(Ok(None), |it| trusted.untrusted_user_on_path(it));
    of_file.map_or_else(of_directory, |it| Ok(Some(it)))
}

/// Reads the file of a public key. The error says why it cannot be used.
fn read_key(path: &Path, trusted: &Trusted) -> Result<Vec<u8>, String> {
    if let Some(stranger) = stranger(path, trusted).map_err(|error| error.to_string())? {
        return Err(stranger.to_string());
    }
    read_file(path, Links::Follow, MAX_KEY_BYTES as u64).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// Writes a policy for the user, and returns what is read.
    fn read(text: &str, mode: u32) -> (tempfile::TempDir, Result<Option<HostPolicy>, PolicyFault>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("boxbuild/policy.toml");
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let found = HostPolicy::read(of(directory.path()));
        (directory, found)
    }

    fn of(directory: &Path) -> impl Fn(&str) -> Option<OsString> {
        move |name| (name == "XDG_CONFIG_HOME").then(|| directory.into())
    }

    #[test]
    fn without_a_file_there_is_no_policy() {
        let directory = tempfile::tempdir().unwrap();
        assert!(HostPolicy::read(of(directory.path())).unwrap().is_none());
        assert!(HostPolicy::read(|_| None).unwrap().is_none());
    }

    #[test]
    fn a_policy_that_another_user_can_change_is_refused() {
        let (directory, found) = read("default = \"allow\"", 0o600);
        let policy = found.unwrap().unwrap();
        assert!(!policy.is_administrators);
        assert_eq!(policy.path, directory.path().join("boxbuild/policy.toml"));
        let (_directory, found) = read("default = \"allow\"", 0o666);
        let problem = &found.unwrap_err().problems()[0];
        assert_eq!(problem.code, ErrorCode::PolicyInvalid);
        assert!(problem.text().contains("everybody can write to "), "{}", problem.text());
        let (directory, _) = read("default = \"allow\"", 0o600);
        let parent = directory.path().join("boxbuild");
        fs::set_permissions(parent, fs::Permissions::from_mode(0o777)).unwrap();
        let found = HostPolicy::read(of(directory.path()));
        assert!(matches!(found, Err(PolicyFault::Stranger { .. })), "{found:?}");
        // The directory of the directory: whoever can write to it can replace the policy's directory.
        let (directory, _) = read("default = \"allow\"", 0o600);
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let found = HostPolicy::read(of(directory.path()));
        assert!(matches!(found, Err(PolicyFault::Stranger { .. })), "{found:?}");
    }

    #[test]
    fn a_policy_that_cannot_be_read_is_not_an_absent_one() {
        let (directory, _) = read("", 0o600);
        let path = directory.path().join("boxbuild/policy.toml");
        fs::remove_file(&path).unwrap();
        symlink("absent", &path).unwrap();
        let found = HostPolicy::read(of(directory.path()));
        assert!(matches!(found, Err(PolicyFault::File(_))), "{found:?}");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let found = HostPolicy::read(of(directory.path()));
        assert!(matches!(found, Err(PolicyFault::File(_))), "{found:?}");
        let (_directory, found) = read("default = \"Allow\"", 0o600);
        assert!(matches!(found, Err(PolicyFault::Content(..))), "{found:?}");
    }

    #[test]
    fn a_missing_key_comes_with_its_line() {
        let text = "[[rule]]\nmatch = \"ghcr.io/acme/*\"\nkeys = [\"acme.pub\"]\n";
        let (directory, found) = read(text, 0o600);
        let fault = found.unwrap_err();
        let place = directory.path().join("boxbuild/policy.toml");
        let reason = "the key `acme.pub` cannot be used: No such file or directory (os error 2)";
        assert_eq!(fault.line(), format!("{}:3: {reason}", place.display()));
        let problem = &fault.problems()[0];
        let text = problem.text().replace(&*directory.path().to_string_lossy(), "DIR");
        insta::assert_snapshot!(text, @r#"
        error: the key `acme.pub` cannot be used: No such file or directory (os error 2)
          --> DIR/boxbuild/policy.toml:3:9
           |
         3 | keys = ["acme.pub"]
           |         ^^^^^^^^^^
           |
           = help: docs/trust.md has an example
        "#);
    }
}
