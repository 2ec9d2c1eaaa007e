//! The names of images, as docker reads them.

/// The host of a name that has none.
const HUB: &str = "docker.io";

/// A name in its full form: `docker.io/library/debian` and `13`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Name {
    repository: String,
    pub(super) tag: String,
}

impl Name {
    /// Reads a name: what is not said is `docker.io`, `library/` and `latest`.
    pub(super) fn parse(text: &str) -> Self {
        let (path, tag) = match text.rsplit_once(':') {
            Some((path, tag)) if !tag.contains('/') => (path, tag),
            _ => (text, "latest"),
        };
        let is_host = |first: &str| first.contains(['.', ':']) || first == "localhost";
        let (host, name) = match path.split_once('/') {
            Some((first, name)) if is_host(first) => (first, name),
            _ => (HUB, path),
        };
        let library = if host == HUB && !name.contains('/') { "library/" } else { "" };
        Self { repository: format!("{host}/{library}{name}"), tag: tag.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_name_are_equal() {
        for (text, repository, tag) in [
            ("debian", "docker.io/library/debian", "latest"),
            ("debian:13", "docker.io/library/debian", "13"),
            ("docker.io/library/debian:13", "docker.io/library/debian", "13"),
            ("docker.io/debian", "docker.io/library/debian", "latest"),
            ("team/app", "docker.io/team/app", "latest"),
            ("localhost/app", "localhost/app", "latest"),
            ("localhost:5000/app", "localhost:5000/app", "latest"),
            ("registry.example.org/a/b:v1", "registry.example.org/a/b", "v1"),
        ] {
            let expected = Name { repository: repository.to_owned(), tag: tag.to_owned() };
            assert_eq!(Name::parse(text), expected, "{text}");
        }
    }
}
