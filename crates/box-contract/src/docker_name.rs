//! Parses image names by Docker's [reference grammar](https://pkg.go.dev/github.com/distribution/reference).

use crate::rules::host_and_port;

/// Docker Hub, the default registry.
pub const HUB: &str = "docker.io";
/// The older name of [`HUB`]. Docker's credential store still uses it.
pub const HUB_INDEX: &str = "index.docker.io";
/// The prefix of a one-part repository name on [`HUB`].
pub const HUB_LIBRARY: &str = "library/";
/// The server of [`HUB`]'s registry API.
pub const HUB_SERVER: &str = "registry-1.docker.io";
/// The server that issues tokens for [`HUB`].
pub const HUB_REALM: &str = "auth.docker.io";

/// The default tag of a name with neither a tag nor a digest.
pub const DEFAULT_TAG: &str = "latest";

/// An image name in its full form. For example, `debian:13` is the repository `library/debian` of `docker.io` with the
/// tag `13`.
#[derive(Debug, PartialEq, Eq)]
pub struct DockerName<'t> {
    /// The registry's host with an optional port, as [`registry_host`] returns it.
    pub host: String,
    /// The repository, not validated: see [`is_repository`](crate::rules::is_repository).
    pub repository: String,
    /// The tag, not validated: see [`is_tag`](crate::rules::is_tag).
    pub tag: Option<&'t str>,
}

impl<'t> DockerName<'t> {
    /// Parses a name without a digest. Returns `None` if the part before the first `/` has a dot or a colon, so that it
    /// must be a host, but is malformed.
    ///
    /// # Examples
    /// ```
    /// use box_contract::DockerName;
    ///
    /// let name = DockerName::parse("debian:13").unwrap();
    /// assert_eq!((&*name.host, &*name.repository, name.tag), ("docker.io", "library/debian", Some("13")));
    /// assert!(DockerName::parse("-a.example:5000/app").is_none());
    /// ```
    pub fn parse(text: &'t str) -> Option<Self> {
        let (path, tag) = match text.rsplit_once(':') {
            Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
            _ => (text, None),
        };
        let is_host =
            |part: &str| part.contains(['.', ':']) || part.eq_ignore_ascii_case("localhost");
        let (host, name) = match path.split_once('/') {
            Some((first, name)) if is_host(first) => (registry_host(first)?, name),
            _ => (HUB.to_owned(), path),
        };
        let library = if host == HUB && !name.contains('/') { HUB_LIBRARY } else { "" };
        Some(Self { repository: format!("{library}{name}"), host, tag })
    }
}

/// Returns the canonical spelling of a registry's `HOST` or `HOST:PORT`: in lower case, with [`HUB`] for each name of
/// Docker Hub. Returns `None` if the text is malformed.
pub fn registry_host(text: &str) -> Option<String> {
    let host = host_and_port(text)?;
    Some(if [HUB_INDEX, HUB_SERVER].contains(&&*host) { HUB.to_owned() } else { host })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_completed() {
        for (text, host, repository, tag) in [
            ("debian", "docker.io", "library/debian", None),
            ("debian:13", "docker.io", "library/debian", Some("13")),
            ("docker.io/library/debian:13", "docker.io", "library/debian", Some("13")),
            ("docker.io/debian", "docker.io", "library/debian", None),
            ("Index.Docker.io/debian", "docker.io", "library/debian", None),
            ("registry-1.docker.io/team/app", "docker.io", "team/app", None),
            ("team/app", "docker.io", "team/app", None),
            ("localhost/app", "localhost", "app", None),
            ("localhost:5000/app", "localhost:5000", "app", None),
            ("[::1]:5000/app:v1", "[::1]:5000", "app", Some("v1")),
            ("Registry.Example.org/a/b:v1", "registry.example.org", "a/b", Some("v1")),
        ] {
            let expected =
                DockerName { host: host.to_owned(), repository: repository.to_owned(), tag };
            assert_eq!(DockerName::parse(text), Some(expected), "{text}");
        }
        for text in ["a..b/app", "a:0/app", "127.1/app", ".a/app", "a_b.example.org/app"] {
            assert_eq!(DockerName::parse(text), None, "{text}");
        }
    }
}
