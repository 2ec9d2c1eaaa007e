//! The names in requests: a repository of a registry, and a manifest in it.

use std::fmt;

use box_contract::docker_name::registry_host;
use box_contract::rules::{is_repository, is_tag};
use box_digest::Digest;

use crate::error::RegistryError;

/// A repository of a registry: `registry.example.org/team/app`.
///
/// Both parts are checked, so that nothing in them can lead to another place of the server, or to
/// another server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Repository {
    host: String,
    name: String,
}

/// A tag: letters, digits, `_`, `.` and `-`, at most 128 (OCI distribution-spec, "Pulling
/// manifests").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag(String);

/// Which manifest of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// The one that a tag names now.
    Tag(Tag),
    /// The one with this content.
    Digest(Digest),
}

impl Repository {
    /// Names a repository. The host may have a port, and is kept as [`registry_host`] returns it.
    ///
    /// # Errors
    /// [`RegistryError::Name`].
    pub fn new(host: &str, name: &str) -> Result<Self, RegistryError> {
        let host =
            registry_host(host).ok_or_else(|| wrong(host, "a registry is HOST or HOST:PORT"))?;
        if !is_repository(name) {
            let reason =
                "a repository has lower-case letters, digits, `.`, `_` and `-` between `/`";
            return Err(wrong(name, reason));
        }
        Ok(Self { host, name: name.to_owned() })
    }

    /// Returns the registry's host, perhaps with a port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the repository's name on that host.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the repository of a mirror that has this one's content, below a prefix.
    pub(super) fn mirrored(&self, host: &str, prefix: &str) -> Self {
        let name =
            if prefix.is_empty() { self.name.clone() } else { format!("{prefix}/{}", self.name) };
        Self { host: host.to_owned(), name }
    }
}

impl Tag {
    /// Checks a tag.
    ///
    /// # Errors
    /// [`RegistryError::Name`].
    pub fn new(text: &str) -> Result<Self, RegistryError> {
        if is_tag(text) {
            return Ok(Self(text.to_owned()));
        }
        Err(wrong(text, "a tag has letters, digits, `_`, `.` and `-`, at most 128"))
    }
}

fn wrong(text: &str, reason: &'static str) -> RegistryError {
    RegistryError::Name { text: text.to_owned(), reason }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.name)
    }
}

impl fmt::Display for Reference {
    /// Writes the part of a request after `manifests/`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(Tag(tag)) => f.write_str(tag),
            Self::Digest(digest) => digest.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_are_taken() {
        for (host, name, expected) in [
            ("docker.io", "library/debian", "docker.io/library/debian"),
            ("Registry.Example.ORG:5000", "a/b_c.d-e/f", "registry.example.org:5000/a/b_c.d-e/f"),
            ("registry.example.org:443", "app", "registry.example.org:443/app"),
            ("127.0.0.1:5000", "app", "127.0.0.1:5000/app"),
            ("[::1]:5000", "app", "[::1]:5000/app"),
            ("index.docker.io", "library/debian", "docker.io/library/debian"),
        ] {
            assert_eq!(Repository::new(host, name).unwrap().to_string(), expected);
        }
        assert_eq!(Reference::Tag(Tag::new("v1.0_a-b").unwrap()).to_string(), "v1.0_a-b");
    }

    #[test]
    fn no_name_leads_elsewhere() {
        for host in ["", "a b", "user@host", "host/path", "host?x", "127.1", "host:99999"] {
            assert!(Repository::new(host, "app").is_err(), "{host:?}");
        }
        let long = "a".repeat(256);
        for name in
            ["", "/a", "a/", "a//b", "..", "a/../b", "a/.", "A", "a?b", "a%2e", "a b", &long]
        {
            assert!(Repository::new("host.example.org", name).is_err(), "{name:?}");
        }
        for tag in ["", ".a", "-a", "a/b", "a?b", "a b", "..", &long] {
            assert!(Tag::new(tag).is_err(), "{tag:?}");
        }
    }
}
