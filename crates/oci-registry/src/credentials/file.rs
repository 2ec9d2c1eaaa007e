//! The files in which docker and podman keep credentials: `config.json` and `auth.json`.
//!
//! Both have the same form (docker's config file reference; containers-auth.json(5)): `auths` by
//! registry, in podman's also by `HOST/NAMESPACE` and `HOST/NAMESPACE/NAME`; `credHelpers` by
//! registry, and `credsStore` for all of them.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use box_image::docker_name::registry_host;
use download::DownloadError;
use host_fs::read::{Links, ReadError, read_file};
use serde::Deserialize;

use super::{Credentials, Secret};
use crate::error::RegistryError;
use crate::name::Repository;

/// The most bytes that such a file may have.
const LIMIT: u64 = 1 << 20;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuthFile {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
    #[serde(default)]
    cred_helpers: BTreeMap<String, String>,
    #[serde(default)]
    creds_store: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Entry {
    /// `USER:PASSWORD` in base64.
    auth: Option<Secret>,
    username: Option<String>,
    password: Option<Secret>,
    identitytoken: Option<Secret>,
    registrytoken: Option<Secret>,
}

/// Credentials, or the helper that has them.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Here(Credentials),
    /// The program `docker-credential-NAME`.
    Helper(String),
}

impl AuthFile {
    /// Reads a file; `None` if it does not exist.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, RegistryError> {
        match read_file(path, Links::Follow, LIMIT) {
            Ok(text) => Self::parse(&text).map(Some).map_err(|why| bad(path, &why)),
            Err(error) if error.is_absent() => Ok(None),
            Err(ReadError::TooLong { limit, .. }) => {
                let what = path.display().to_string();
                Err(DownloadError::TooLarge { what, limit }.into())
            }
            Err(error) => Err(bad(path, &error.to_string())),
        }
    }

    /// Reads the text of a file. Errors name only a place, as the text around it may be a password.
    fn parse(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            format!("line {line}, column {column} is not as docker or podman write it")
        })
    }

    /// Returns where the credentials for a repository are: a helper for this registry, then the file
    /// itself with the longest key that fits, then the helper for all registries.
    pub(super) fn find(
        &self,
        path: &Path,
        repository: &Repository,
    ) -> Result<Option<Found>, RegistryError> {
        let host = repository.host();
        let mut helpers = self.cred_helpers.iter();
        if let Some((_, name)) = helpers.find(|(key, _)| normal(key) == host) {
            return Ok(Some(Found::Helper(name.clone())));
        }
        let full = format!("{host}/{}", repository.name());
        let mut key = full.as_str();
        loop {
            for (_, entry) in self.auths.iter().filter(|(it, _)| normal(it) == key) {
                let credentials = entry.credentials().map_err(|why| bad(path, &why));
                if let Some(credentials) = credentials? {
                    return Ok(Some(Found::Here(credentials)));
                }
            }
            match key.rsplit_once('/') {
                Some((shorter, _)) => key = shorter,
                None => return Ok(self.creds_store.clone().map(Found::Helper)),
            }
        }
    }
}

impl Entry {
    /// Returns what an entry holds: often nothing, where a helper has it.
    fn credentials(&self) -> Result<Option<Credentials>, String> {
        let full = |secret: &&Secret| !secret.expose().is_empty();
        if let Some(token) = self.identitytoken.as_ref().filter(full) {
            return Ok(Some(Credentials::Identity(token.clone())));
        }
        if let Some(token) = self.registrytoken.as_ref().filter(full) {
            return Ok(Some(Credentials::Token(token.clone())));
        }
        if let Some(auth) = self.auth.as_ref().filter(full) {
            let why = "an `auth` is not USER:PASSWORD in base64";
            return decode(auth).map(Some).ok_or_else(|| why.to_owned());
        }
        Ok(match (&self.username, self.password.as_ref().filter(full)) {
            (Some(user), Some(password)) if !user.is_empty() => {
                Some(Credentials::Password { user: user.clone(), password: password.clone() })
            }
            _ => None,
        })
    }
}

/// Reads `USER:PASSWORD` in base64. Some programs fill it up with NULs.
fn decode(auth: &Secret) -> Option<Credentials> {
    let bytes = BASE64_STANDARD.decode(auth.expose()).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (user, password) = text.trim_end_matches('\0').split_once(':')?;
    // A name or password with control characters cannot be meant.
    let plain = !text.trim_end_matches('\0').chars().any(char::is_control);
    (plain && !user.is_empty())
        .then(|| Credentials::Password { user: user.to_owned(), password: Secret::new(password) })
}

/// Returns the registry, perhaps with a namespace, that a key means. Older programs write URLs, of
/// which only the host counts.
fn normal(key: &str) -> String {
    let key = key.to_ascii_lowercase();
    let url = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://"));
    let key = url.map_or(&*key, |url| url.split('/').next().unwrap_or(url)).trim_end_matches('/');
    let (host, name) = key.split_at(key.find('/').unwrap_or(key.len()));
    registry_host(host).unwrap_or_default() + name
}

pub(super) fn bad(path: &Path, why: &str) -> RegistryError {
    let from = format!("the credentials in {} cannot be used", path.display());
    RegistryError::Credentials { from, why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str, host: &str, name: &str) -> Result<Option<Found>, RegistryError> {
        let file = AuthFile::parse(text.as_bytes()).unwrap();
        file.find(Path::new("auth.json"), &Repository::new(host, name).unwrap())
    }

    fn user(text: &str, host: &str, name: &str) -> Option<String> {
        match find(text, host, name).unwrap() {
            Some(Found::Here(Credentials::Password { user, .. })) => Some(user),
            Some(other) => panic!("{other:?}"),
            None => None,
        }
    }

    fn entry(key: &str, user: &str) -> String {
        let auth = BASE64_STANDARD.encode(format!("{user}:pass:word"));
        format!("{key:?}: {{\"auth\": {auth:?}}}")
    }

    #[test]
    fn the_longest_key_wins() {
        let text = format!(
            "{{\"auths\": {{{}, {}, {}}}}}",
            entry("registry.example.org", "host"),
            entry("registry.example.org/team", "team"),
            entry("registry.example.org/team/app", "app")
        );
        let user = |name| user(&text, "registry.example.org", name).unwrap();
        assert_eq!(user("team/app"), "app");
        assert_eq!(user("team/application"), "team");
        assert_eq!(user("teams/app"), "host");
    }

    #[test]
    fn another_host_gets_nothing() {
        let text = format!("{{\"auths\": {{{}}}}}", entry("registry.example.org:5000", "me"));
        assert_eq!(user(&text, "registry.example.org:5000", "a").as_deref(), Some("me"));
        for host in
            ["registry.example.org", "registry.example.org:5001", "example.org", "a.example.org"]
        {
            assert_eq!(user(&text, host, "a"), None, "{host}");
        }
    }

    #[test]
    fn the_default_registry_has_several_names() {
        for key in ["docker.io", "index.docker.io", "https://index.docker.io/v1/", "docker.io/"] {
            let text = format!("{{\"auths\": {{{}}}}}", entry(key, "me"));
            assert_eq!(user(&text, "docker.io", "library/debian").as_deref(), Some("me"), "{key}");
            assert_eq!(user(&text, "registry.example.org", "a"), None);
        }
    }

    #[test]
    fn every_kind_of_entry_is_read() {
        let here = |entry: &str| {
            let text = format!("{{\"auths\": {{\"a.example.org\": {entry}}}}}");
            find(&text, "a.example.org", "app").map_err(|it| it.to_string())
        };
        let password = |password: &str| {
            let (user, password) = ("me".to_owned(), Secret::new(password));
            Ok(Some(Found::Here(Credentials::Password { user, password })))
        };
        assert_eq!(here(r#"{"auth": "bWU6YTpi"}"#), password("a:b"));
        assert_eq!(here(r#"{"auth": "bWU6YTpiAAA="}"#), password("a:b"));
        assert_eq!(here(r#"{"username": "me", "password": "c"}"#), password("c"));
        let identity = Found::Here(Credentials::Identity(Secret::new("t")));
        assert_eq!(here(r#"{"auth": "bWU6", "identitytoken": "t"}"#), Ok(Some(identity)));
        let token = Found::Here(Credentials::Token(Secret::new("t")));
        assert_eq!(here(r#"{"registrytoken": "t"}"#), Ok(Some(token)));
        for empty in ["{}", r#"{"auth": ""}"#, r#"{"username": "me"}"#, r#"{"email": "x"}"#] {
            assert_eq!(here(empty), Ok(None), "{empty}");
        }
        for bad in ["!", "bWU=", "OnBhc3M=", "bWU6YQpi", "/////w=="] {
            let said = here(&format!("{{\"auth\": {bad:?}}}")).unwrap_err();
            let why = "an `auth` is not USER:PASSWORD in base64";
            assert_eq!(said, format!("the credentials in auth.json cannot be used: {why}"));
        }
    }

    #[test]
    fn helpers_are_for_one_registry_or_for_all() {
        let text = r#"{
            "auths": {"a.example.org": {}, "b.example.org": {"auth": "bWU6YQ=="}},
            "credHelpers": {"c.example.org": "special"}, "credsStore": "all"
        }"#;
        let helper = |name: &str| Some(Found::Helper(name.to_owned()));
        assert_eq!(find(text, "a.example.org", "x").unwrap(), helper("all"));
        assert!(matches!(find(text, "b.example.org", "x").unwrap(), Some(Found::Here(_))));
        assert_eq!(find(text, "c.example.org", "x").unwrap(), helper("special"));
        assert_eq!(find("{}", "c.example.org", "x").unwrap(), None);
    }

    #[test]
    fn the_error_of_a_malformed_file_does_not_repeat_its_text() {
        for bad in ["", "[1]", r#"{"auths": "canary"}"#, r#"{"auths": {"a": {"auth": canary}}}"#] {
            let said = AuthFile::parse(bad.as_bytes()).unwrap_err();
            assert!(said.starts_with("line ") && !said.contains("canary"), "{said}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        assert!(AuthFile::read(&dir.path().join("none.json")).unwrap().is_none());
        assert!(AuthFile::read(dir.path()).is_err(), "a directory is no file");
        let large = dir.path().join("large.json");
        std::fs::File::create(&large).unwrap().set_len(LIMIT + 1).unwrap();
        let said = AuthFile::read(&large).unwrap_err().to_string();
        assert!(
            said.ends_with("large.json is larger than the 1048576 bytes that it may have"),
            "{said}"
        );
    }
}
