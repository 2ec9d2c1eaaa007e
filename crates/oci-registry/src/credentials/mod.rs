//! Looks up the credentials for a registry.
//!
//! They are looked up by the registry's host as it is written, and for some files by the
//! repository, and only once the registry asks for them.

mod file;
mod helper;

use std::fmt;

use serde::Deserialize;

use crate::error::RegistryError;
use crate::name::Repository;
use crate::server::Options;
use file::{AuthFile, Found};

/// Credentials for a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Credentials {
    /// A user's name and password.
    Password { user: String, password: Secret },
    /// A long-lived token that the place of the tokens takes in the place of a password.
    Identity(Secret),
    /// A token for the registry itself.
    Token(Secret),
}

/// Credentials, and where they come from: written as `the password of "bob" from FILE`.
#[derive(Debug, Clone)]
pub(super) struct Login {
    pub(super) credentials: Credentials,
    /// A file, or the program that keeps them.
    from: String,
}

impl fmt::Display for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { credentials, from } = self;
        match credentials {
            Credentials::Password { user, .. } => write!(f, "the password of {user:?} from {from}"),
            Credentials::Identity(_) | Credentials::Token(_) => write!(f, "the token from {from}"),
        }
    }
}

/// A password or token, which `{:?}` does not show.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Secret(Box<str>);

impl Secret {
    pub(super) fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the text, for the one request that it is for.
    pub(super) const fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// Returns the credentials for a repository, if there are any.
pub(super) fn find(
    options: &Options,
    repository: &Repository,
) -> Result<Option<Login>, RegistryError> {
    for path in &options.auth_files {
        let Some(file) = AuthFile::read(path)? else { continue };
        let found = match file.find(path, repository)? {
            None => None,
            Some(Found::Here(credentials)) => Some((credentials, path.display().to_string())),
            Some(Found::Helper(name)) if helper::is_name(&name) => {
                let given = helper::ask(options, &name, repository.host())?;
                given.map(|credentials| (credentials, helper::program(&name)))
            }
            Some(Found::Helper(_)) => {
                let why =
                    "it names a credential helper that is not lower-case letters, digits and `-`";
                return Err(file::bad(path, why));
            }
        };
        if let Some((credentials, from)) = found {
            return Ok(Some(Login { credentials, from }));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_shown() {
        let secret = Secret::new("canary");
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)).matches("canary").count(), 0);
        assert_eq!(secret.expose(), "canary");
    }
}
