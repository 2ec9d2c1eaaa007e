//! The names of boxes in registries: `HOST/NAME[:TAG][@sha256:…]`.

use std::fmt;

use box_digest::Digest;

use crate::docker_name::{DEFAULT_TAG, registry_host};
use crate::image_ref::WITH_PATH;
use crate::rules::{REGISTRY_FORM, REPOSITORY_FORM, TAG_FORM, is_repository, is_tag};

/// The prefix that other tools write before a name. It is optional.
const SCHEME: &str = "docker://";
/// The suffixes of a path to a box, or to an archive of boxes.
pub const PATH_ENDS: [&str; 5] = [".box", ".tar", ".tar.gz", ".tgz", ".tar.zst"];
/// The prefix of a digest.
const SHA256: &str = "sha256:";

/// A box in a registry, as a user names it. The registry is required: there is no default.
///
/// [`Display`](fmt::Display) writes a name in the form that [`RemoteName::parse`] accepts. [`RemoteName::parse`] adds the
/// tag `latest` if the text has neither a tag nor a digest.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RemoteName {
    /// The registry's host with an optional port, in its canonical spelling ([`registry_host`]).
    pub host: String,
    /// The repository: `acme/agent`.
    pub repository: String,
    /// The tag. If it is `None`, there is a digest.
    pub tag: Option<String>,
    /// The digest that the box or the registry's manifest must have.
    pub digest: Option<Digest>,
}

impl RemoteName {
    /// Returns whether the first part of a text names a server, so that the text is neither a path nor a name in the
    /// store.
    pub fn begins(text: &[u8]) -> bool {
        let first = text.split(|byte| *byte == b'/').next().unwrap_or_default();
        let has_name = first.len() < text.len();
        let is_server = first == b"localhost" || first.iter().any(|byte| b".:".contains(byte));
        text.starts_with(SCHEME.as_bytes())
            || (has_name && is_server && ![&b"."[..], b".."].contains(&first))
    }

    /// Parses a name.
    ///
    /// # Errors
    /// Returns the fault of a malformed name.
    ///
    /// # Examples
    /// ```
    /// use box_contract::RemoteName;
    ///
    /// let name = RemoteName::parse("ghcr.io/acme/agent").unwrap();
    /// assert_eq!(name.to_string(), "ghcr.io/acme/agent:latest");
    /// assert!(RemoteName::parse("acme/agent").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let text = text.strip_prefix(SCHEME).unwrap_or(text);
        if WITH_PATH.iter().any(|form| text.starts_with(form)) {
            return Err("it is an OCI image of this host, not a box in a registry");
        }
        if text.contains("://") {
            return Err("a registry is written without a scheme, as in ghcr.io/acme/hello:v1");
        }
        if ["/", "./", "../"].iter().any(|start| text.starts_with(start)) {
            return Err("it is a path; `boxlaunch load` adds the boxes of a path to the store");
        }
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(self::digest(digest)?)),
            None => (text, None),
        };
        const NO_HOST: &str = "it names no registry, and there is no default registry: write the host first, as in ghcr.io/acme/hello:v1";
        let (host, name) = name.split_once('/').ok_or(NO_HOST)?;
        if !Self::begins(text.as_bytes()) {
            return Err(NO_HOST);
        }
        let host = registry_host(host).ok_or(REGISTRY_FORM)?;
        let (repository, tag) = match name.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (name, Some(DEFAULT_TAG).filter(|_| digest.is_none())),
        };
        if !is_repository(repository) {
            return Err(REPOSITORY_FORM);
        }
        if !tag.is_none_or(is_tag) {
            return Err(TAG_FORM);
        }
        if PATH_ENDS.iter().any(|end| name.ends_with(end)) {
            return Err("a name that ends in .box, .tar, .tgz, .tar.gz or .tar.zst is a path");
        }
        let (repository, tag) = (repository.to_owned(), tag.map(str::to_owned));
        Ok(Self { host, repository, tag, digest })
    }

    /// Returns the registry and the repository, without tag and digest: `ghcr.io/acme/agent`.
    pub fn whole_repository(&self) -> String {
        format!("{}/{}", self.host, self.repository)
    }

    /// Returns the name for a request to the registry: if it has a tag, the digest is removed.
    #[must_use]
    pub fn unpinned(&self) -> Self {
        let digest = self.digest.filter(|_| self.tag.is_none());
        Self { digest, ..self.clone() }
    }

    /// Returns the name of the box with this digest of the registry's manifest: HOST/NAME@DIGEST.
    #[must_use]
    pub fn of_manifest(&self, digest: Digest) -> Self {
        Self { tag: None, digest: Some(digest), ..self.clone() }
    }
}

fn digest(text: &str) -> Result<Digest, &'static str> {
    const FORM: &str = "a digest is sha256: and 64 lower-case hexadecimal digits";
    text.strip_prefix(SHA256).ok_or(FORM)?;
    text.parse().map_err(|_| FORM)
}

impl fmt::Display for RemoteName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.whole_repository())?;
        self.tag.as_ref().map_or(Ok(()), |tag| write!(f, ":{tag}"))?;
        self.digest.map_or(Ok(()), |digest| write!(f, "@{digest}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:7777777777777777777777777777777777777777777777777777777777777777";

    #[test]
    fn a_name_is_written_as_it_is_read() {
        for text in [
            "ghcr.io/acme/agent:v3",
            "localhost/agent:v3",
            "localhost:5000/a:b",
            "[::1]:5000/a/b:1",
            &format!("ghcr.io/acme/agent@{DIGEST}"),
            &format!("ghcr.io/acme/agent:v3@{DIGEST}"),
        ] {
            assert_eq!(RemoteName::parse(text).unwrap().to_string(), text);
        }
        for (text, expected) in [
            ("docker://GHCR.io/acme/agent:v3", "ghcr.io/acme/agent:v3"),
            ("ghcr.io/acme/agent", "ghcr.io/acme/agent:latest"),
            ("index.docker.io/acme/agent", "docker.io/acme/agent:latest"),
        ] {
            assert_eq!(RemoteName::parse(text).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn what_the_registry_is_asked_for_is_the_tag_if_there_is_one() {
        let name = |text: &str| RemoteName::parse(text).unwrap().unpinned().to_string();
        assert_eq!(name(&format!("ghcr.io/a:v3@{DIGEST}")), "ghcr.io/a:v3");
        assert_eq!(name(&format!("ghcr.io/a@{DIGEST}")), format!("ghcr.io/a@{DIGEST}"));
        assert_eq!(name("ghcr.io/a"), "ghcr.io/a:latest");
    }

    #[test]
    fn what_names_no_registry_is_refused() {
        for text in ["hello", "acme/agent:v3", "./a/b", "../a", "/a/b", "docker://acme/agent", ""] {
            assert!(RemoteName::parse(text).is_err(), "{text}");
        }
        for text in [
            "a..b/c",
            "ghcr.io/A",
            "ghcr.io/../a",
            "ghcr.io/a:",
            "ghcr.io/a@sha256:7",
            "ghcr.io/a@md5:00",
            "ghcr.io/a b",
            "user@ghcr.io/a",
            "ghcr.io/",
            "ghcr.io/a:v1.tar",
        ] {
            assert!(RemoteName::parse(text).is_err(), "{text}");
        }
        for (text, begins) in
            [("a.b/c", true), ("a:1/c", true), ("a/b.c", false), ("./a", false), ("a.b", false)]
        {
            assert_eq!(RemoteName::begins(text.as_bytes()), begins, "{text}");
        }
    }
}
