//! Credentials: who has some for a registry.
//!
//! They are looked up by the registry's host as it is written, and for some files by the
//! repository, and only once the registry asks for them.

mod file;
mod helper;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::RegistryError;
use crate::name::Repository;
use crate::secret::Secret;
use file::{AuthFile, Found};

/// What proves to a registry who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Credentials {
    /// A user's name and password.
    Password { user: String, password: Secret },
    /// A long-lived token that the place of the tokens takes in the place of a password.
    Identity(Secret),
    /// A token for the registry itself.
    Token(Secret),
}

/// Where credentials may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places<'a> {
    pub(super) files: &'a [PathBuf],
    pub(super) helper_path: &'a [PathBuf],
    pub(super) helper_patience: Duration,
}

impl Places<'_> {
    /// Returns the credentials for a repository, if anybody has some.
    pub(super) fn find(
        &self,
        repository: &Repository,
    ) -> Result<Option<Credentials>, RegistryError> {
        for path in self.files {
            let Some(file) = AuthFile::read(path)? else { continue };
            let found = match file.find(path, repository)? {
                None => None,
                Some(Found::Here(credentials)) => Some(credentials),
                Some(Found::Helper(name)) => self.ask(path, &name, repository.host())?,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn ask(
        &self,
        path: &Path,
        name: &str,
        host: &str,
    ) -> Result<Option<Credentials>, RegistryError> {
        if !helper::is_name(name) {
            let why = "it names a credential helper that is not lower-case letters, digits and `-`";
            return Err(file::bad(path, why));
        }
        helper::ask(self, name, host)
    }
}
