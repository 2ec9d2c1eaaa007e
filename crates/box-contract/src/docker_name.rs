//! The names of images, as docker reads them.

use crate::rules::host_and_port;

/// Docker Hub: the registry of a name that has none.
pub const HUB: &str = "docker.io";
/// The older name of [`HUB`], which docker's credential store still uses.
pub const HUB_INDEX: &str = "index.docker.io";
/// The prefix of [`HUB`]'s repositories whose names have one part.
pub const HUB_LIBRARY: &str = "library/";
/// The server that answers for [`HUB`].
pub const HUB_SERVER: &str = "registry-1.docker.io";
/// The server that issues tokens for [`HUB`].
pub const HUB_REALM: &str = "auth.docker.io";

/// The tag of a name that has neither a tag nor a digest.
pub const DEFAULT_TAG: &str = "latest";

/// A name in its full form: `debian:13` is `library/debian` of `docker.io`, with the tag `13`.
#[derive(Debug, PartialEq, Eq)]
pub struct DockerName<'t> {
    /// The registry's host, perhaps with a port, as [`registry_host`] returns it.
    pub host: String,
    /// The repository, not yet checked: see [`is_repository`](crate::rules::is_repository).
    pub repository: String,
    /// The tag, not yet checked: see [`is_tag`](crate::rules::is_tag).
    pub tag: Option<&'t str>,
}

impl<'t> DockerName<'t> {
    /// Reads a name without a digest, by the rules of docker's reference grammar. Returns `None` if
    /// its first part must be a host (it has a dot or a colon) and is malformed.
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

/// Returns the one spelling of a registry's `HOST` or `HOST:PORT`: in lower case, and [`HUB`] for
/// each of its names. Returns `None` if it is malformed.
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
