//! Looks up the credentials for a repository, once its registry requests some.
//!
//! The key is the registry's host. In a file of podman, a namespace or the repository's name can follow.

mod file;
mod helper;

use std::fmt;
use std::path::Path;

use serde::Deserialize;

use crate::name::Repository;
use crate::server::Options;
use file::{AuthFile, Found};

/// Credentials for a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Credentials {
    /// A user's name and password.
    Password { user: String, password: Secret },
    /// A long-lived token that the realm accepts instead of a password.
    Identity(Secret),
    /// A token for the registry itself.
    Token(Secret),
}

/// Credentials and their source, displayed as `the password of "bob" from FILE`.
#[derive(Debug, Clone)]
pub(super) struct Login {
    pub(super) credentials: Credentials,
    /// The file, or the helper's program, that has the credentials.
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

/// A password or token that `{:?}` does not show.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Secret(Box<str>);

impl Secret {
    pub(super) fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the text, for the one request that sends it.
    pub(super) const fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// The result of the search for credentials.
#[derive(Debug, Clone, Default)]
pub(super) struct Search {
    pub(super) login: Option<Login>,
    /// Whether the login was refused, so that requests are anonymous.
    pub(super) is_refused: bool,
    /// The reason for each file and helper that could not be used, without secrets.
    pub(super) passed_over: Vec<String>,
}

/// Looks up the credentials for a repository. Files and helpers that cannot be used are skipped and noted in
/// [`Search::passed_over`], because another file may have the credentials, or the resource may be public.
pub(super) fn find(options: &Options, repository: &Repository) -> Search {
    let mut search = Search::default();
    for path in &options.auth_files {
        match look_into(options, path, repository) {
            Ok(None) => {}
            Ok(login) => {
                search.login = login;
                break;
            }
            Err(reason) => search.passed_over.push(reason),
        }
    }
    search
}

/// Looks up credentials in a file. If the file names a helper for the repository, asks the helper.
///
/// # Errors
/// The reason why the file or the helper cannot be used.
fn look_into(
    options: &Options,
    path: &Path,
    repository: &Repository,
) -> Result<Option<Login>, String> {
    let Some(file) = AuthFile::read(path)? else { return Ok(None) };
    match file.find(repository).map_err(|reason| file::bad(path, &reason))? {
        None => Ok(None),
        Some(Found::Here(credentials)) => {
            Ok(Some(Login { credentials, from: path.display().to_string() }))
        }
        Some(Found::Helper(name)) if helper::is_name(&name) => {
            let from = helper::program(&name);
            let given = helper::ask(options, &name, repository.host())
                .map_err(|reason| format!("{} names {from}, {reason}", path.display()))?;
            Ok(given.map(|credentials| Login { credentials, from }))
        }
        Some(Found::Helper(_)) => {
            let reason = "it names a credential helper whose name is more than letters, digits, `-`, `_` and `.`";
            Err(file::bad(path, reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_used_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let auth = r#"{"auths": {"a.example.org": {"username": "me", "password": "p"}}}"#;
        let auth_files = vec![
            dir.path().to_owned(),
            write("broken.json", "{canary"),
            write("gone.json", r#"{"credsStore": "gone"}"#),
            write("path.json", r#"{"credsStore": "a/b"}"#),
            write("right.json", auth),
        ];
        let options = Options { auth_files, ..Options::default() };
        let at = |host| find(&options, &Repository::new(host, "x").unwrap());
        let found = at("a.example.org");
        let from = found.login.unwrap().to_string();
        assert!(from.starts_with("the password of \"me\" from ") && from.ends_with("right.json"));
        let base = format!("{}/", dir.path().display());
        let message =
            found.passed_over.join("\n").replace(&base, "").replace(&base[..base.len() - 1], "DIR");
        insta::assert_snapshot!(message, @r"
        the credentials in DIR cannot be used: it is not a regular file
        the credentials in broken.json cannot be used: line 1, column 2 is not as docker or podman write it
        gone.json names docker-credential-gone, which is not installed
        the credentials in path.json cannot be used: it names a credential helper whose name is more than letters, digits, `-`, `_` and `.`
        ");
        assert!(at("b.example.org").login.is_none(), "nothing is there for it");
    }

    #[test]
    fn a_secret_is_never_shown() {
        let secret = Secret::new("canary");
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)).matches("canary").count(), 0);
        assert_eq!(secret.expose(), "canary");
    }
}
