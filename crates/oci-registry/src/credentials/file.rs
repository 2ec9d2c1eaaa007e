//! The files in which docker and podman keep credentials: `config.json` and `auth.json`.
//!
//! Both have the same format:
//! [docker's](https://docs.docker.com/reference/cli/docker/#docker-cli-configuration-file-configjson-properties), and
//! containers-auth.json(5) of podman. `auths` has entries by registry, and in podman's file also by `HOST/NAMESPACE` and
//! `HOST/NAMESPACE/NAME`. `credHelpers` names a helper by registry, and `credsStore` the helper for all other registries.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use box_contract::docker_name::registry_host;
use host_fs::read::{Links, UTF_16, read_file, utf16};
use serde::Deserialize;

use super::{Credentials, Secret};
use crate::name::Repository;

/// The maximum size of a file of credentials, in bytes.
const LIMIT: u64 = 1 << 20;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AuthFile {
    auths: Option<BTreeMap<String, Option<Entry>>>,
    cred_helpers: Option<BTreeMap<String, Option<String>>>,
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

/// Credentials, or the name of the helper that keeps them.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Here(Credentials),
    /// The program `docker-credential-NAME`.
    Helper(String),
}

impl AuthFile {
    /// Reads a file. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// The reason why the file cannot be used.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, String> {
        match read_file(path, Links::Follow, LIMIT) {
            Ok(text) => Self::parse(&text).map(Some).map_err(|reason| bad(path, &reason)),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(bad(path, &error.to_string())),
        }
    }

    /// Parses the text of a file. A blank text has no entries. Errors contain only a line and a column, because the text at that
    /// position may be a password.
    fn parse(text: &[u8]) -> Result<Self, String> {
        if utf16(text).is_some() {
            return Err(UTF_16.to_owned());
        }
        // Skip the byte order mark that some editors and shells of Windows write.
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        if text.trim_ascii().is_empty() {
            return Ok(Self::default());
        }
        let read = serde_json::from_slice::<Option<Self>>(text).map(Option::unwrap_or_default);
        read.map_err(|error| {
            let (line, column) = (error.line(), error.column());
            format!("line {line}, column {column} is not as docker or podman write it")
        })
    }

    /// Finds the credentials for a repository. The helper for this registry takes precedence, then the `auths` entry with the
    /// longest matching key, then the helper for all other registries.
    ///
    /// # Errors
    /// The reason why an entry for the repository cannot be used.
    pub(super) fn find(&self, repository: &Repository) -> Result<Option<Found>, String> {
        let host = repository.host();
        let is_given = |name: &&String| !name.is_empty();
        let mut helpers = self.cred_helpers.iter().flatten();
        if let Some((_, name)) = helpers.find(|(key, _)| normal(key) == host)
            && let Some(name) = name.as_ref().filter(is_given)
        {
            return Ok(Some(Found::Helper(name.clone())));
        }
        let full = format!("{host}/{}", repository.name());
        let mut key = full.as_str();
        loop {
            for (_, entry) in self.auths.iter().flatten().filter(|(it, _)| normal(it) == key) {
                let credentials = entry.as_ref().map(Entry::credentials).transpose()?.flatten();
                if let Some(credentials) = credentials {
                    return Ok(Some(Found::Here(credentials)));
                }
            }
            match key.rsplit_once('/') {
                Some((shorter, _)) => key = shorter,
                None => {
                    let helper = self.creds_store.as_ref().filter(is_given);
                    return Ok(helper.cloned().map(Found::Helper));
                }
            }
        }
    }
}

impl Entry {
    /// Returns the credentials of an entry. `None` for an entry without any, as docker writes it if a helper has the credentials.
    fn credentials(&self) -> Result<Option<Credentials>, String> {
        let full = |secret: &&Secret| !secret.expose().is_empty();
        if let Some(token) = self.identitytoken.as_ref().filter(full) {
            return Ok(Some(Credentials::Identity(token.clone())));
        }
        if let Some(token) = self.registrytoken.as_ref().filter(full) {
            return Ok(Some(Credentials::Token(token.clone())));
        }
        if let Some(auth) = self.auth.as_ref().filter(full) {
            return decode(auth).map(Some).map_err(str::to_owned);
        }
        Ok(match (&self.username, self.password.as_ref().filter(full)) {
            (Some(user), Some(password)) if !user.is_empty() => {
                Some(Credentials::Password { user: user.clone(), password: password.clone() })
            }
            _ => None,
        })
    }
}

/// Decodes `USER:PASSWORD` in base64. Like Go's decoder it skips line ends, which the `base64` command adds. It also removes NULs
/// at the end, which some programs append.
fn decode(auth: &Secret) -> Result<Credentials, &'static str> {
    const OTHER: &str = "an `auth` is not USER:PASSWORD in base64";
    let unbroken: String = auth.expose().chars().filter(|it| !matches!(it, '\r' | '\n')).collect();
    let bytes = BASE64_STANDARD.decode(unbroken).map_err(|_| OTHER)?;
    let text = String::from_utf8(bytes).map_err(|_| OTHER)?;
    let text = text.trim_end_matches('\0');
    if text.ends_with('\n') {
        return Err("an `auth` ends with a line end, as `echo` without -n writes it");
    }
    // Refuse control characters, because no valid name or password contains them.
    let plain = !text.chars().any(char::is_control);
    let (user, password) = text.split_once(':').ok_or(OTHER)?;
    let (is_usable, password) = (plain && !user.is_empty(), Secret::new(password));
    is_usable.then(|| Credentials::Password { user: user.to_owned(), password }).ok_or(OTHER)
}

/// Returns the normal form of a key of `auths`, such as `registry.example.org/team`. Older programs write a URL as the key: its
/// host is used and its path ignored.
fn normal(key: &str) -> String {
    let key = key.to_ascii_lowercase();
    let url = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://"));
    let key = url.map_or(&*key, |url| url.split('/').next().unwrap_or(url)).trim_end_matches('/');
    let (host, name) = key.split_at(key.find('/').unwrap_or(key.len()));
    registry_host(host).unwrap_or_default() + name
}

/// Returns the error of a file that cannot be used.
pub(super) fn bad(path: &Path, reason: &str) -> String {
    format!("the credentials in {} cannot be used: {reason}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str, host: &str, name: &str) -> Result<Option<Found>, String> {
        let file = AuthFile::parse(text.as_bytes()).unwrap();
        file.find(&Repository::new(host, name).unwrap())
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
            find(&text, "a.example.org", "app")
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
        assert_eq!(here(r#"{"auth": "bWU6\nYTpi\r\n"}"#), password("a:b"), "lines of `base64`");
        for bad in ["!", "bWU=", "OnBhc3M=", "bWU6YQpi", "/////w=="] {
            let message = here(&format!("{{\"auth\": {bad:?}}}")).unwrap_err();
            assert_eq!(message, "an `auth` is not USER:PASSWORD in base64");
        }
        let message = here(r#"{"auth": "bWU6YQo="}"#).unwrap_err();
        assert_eq!(message, "an `auth` ends with a line end, as `echo` without -n writes it");
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
        for bad in
            ["{", "[\"canary\"]", r#"{"auths": "canary"}"#, r#"{"auths": {"a": {"auth": canary}}}"#]
        {
            let message = AuthFile::parse(bad.as_bytes()).unwrap_err();
            assert!(message.starts_with("line ") && !message.contains("canary"), "{message}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        assert!(AuthFile::read(&dir.path().join("none.json")).unwrap().is_none());
        assert!(AuthFile::read(dir.path()).is_err(), "a directory is no file");
        let large = dir.path().join("large.json");
        std::fs::File::create(&large).unwrap().set_len(LIMIT + 1).unwrap();
        let message = AuthFile::read(&large).unwrap_err().to_string();
        let end =
            "large.json cannot be used: it has 1048577 bytes, and at most 1048576 are allowed";
        assert!(message.ends_with(end), "{message}");
    }

    #[test]
    fn a_file_without_settings_is_read() {
        for text in ["", " \n", "\u{feff}", "\u{feff}{}\r\n", "null"] {
            assert_eq!(find(text, "a.example.org", "x"), Ok(None), "{text:?}");
        }
        let nulls = r#"{"auths": null, "credHelpers": null, "credsStore": null}"#;
        let empty = r#"{"auths": {"a.example.org": null, "b": {"auth": null}},
                        "credHelpers": {"a.example.org": ""}, "credsStore": ""}"#;
        for text in [nulls, empty] {
            assert_eq!(find(text, "a.example.org", "x"), Ok(None));
        }
        let utf16 = AuthFile::parse(b"\xff\xfe{\0}\0").unwrap_err();
        assert_eq!(utf16, "it is UTF-16, not UTF-8");
    }
}
