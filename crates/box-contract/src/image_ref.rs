//! References to images.

use std::fmt;

use box_digest::Digest;
use serde::{Serialize, Serializer};

/// The prefix of an OCI image layout directory.
pub const OCI: &str = "oci:";
/// The prefix of an OCI image layout in a tar file.
pub const OCI_ARCHIVE: &str = "oci-archive:";
/// The prefix of an archive made by `docker save`.
pub const DOCKER_ARCHIVE: &str = "docker-archive:";
/// The prefix of an image in a registry.
pub const REGISTRY: &str = "docker://";
/// The prefixes that precede a path.
pub const WITH_PATH: [&str; 3] = [OCI, OCI_ARCHIVE, DOCKER_ARCHIVE];

/// A reference to an image. For example, `oci:./image:v1` and `docker://ghcr.io/acme/agent:1.2`.
///
/// In each form, `tag` selects one of several images. `digest` is the SHA-256 that the image's manifest must have; only
/// `docker-archive:` has no `digest`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum ImageRef {
    /// An [OCI image layout](https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md) directory:
    /// `oci:PATH[:TAG][@DIGEST]`.
    OciLayout {
        /// The directory. A relative path is relative to the main Boxfile. The path is not empty, and has no NUL byte.
        path: String,
        /// The tag that selects one of several images.
        tag: Option<String>,
        /// The SHA-256 of the image's manifest.
        #[serde(serialize_with = "digits")]
        digest: Option<Digest>,
    },
    /// An OCI image layout in a tar file: `oci-archive:PATH[:TAG][@DIGEST]`.
    OciArchive {
        /// The file, with the same rules as the directory above.
        path: String,
        /// The tag that selects one of several images.
        tag: Option<String>,
        /// The SHA-256 of the image's manifest.
        #[serde(serialize_with = "digits")]
        digest: Option<Digest>,
    },
    /// The output of `docker save`: `docker-archive:PATH[:NAME[:TAG]]` or `docker-archive:PATH[:TAG]`.
    DockerArchive {
        /// The file, with the same rules as the directory above.
        path: String,
        /// Selects one of several images: a Docker name with an optional tag, or a tag alone.
        tag: Option<String>,
    },
    /// An image in a registry: `docker://HOST/NAME[:TAG][@DIGEST]`, or the short form `NAME[:TAG]`, whose host is
    /// `docker.io`.
    Registry {
        /// The registry's host with an optional port.
        host: String,
        /// The repository: `library/debian`.
        repository: String,
        /// The tag. The default is `latest` if there is no digest either.
        tag: Option<String>,
        /// The SHA-256 of the manifest or of the index.
        #[serde(serialize_with = "digits")]
        digest: Option<Digest>,
    },
}

impl ImageRef {
    /// The prefixes of the full forms. A reference without a prefix is a Docker name.
    pub const PREFIXES: [&str; 4] = [OCI, OCI_ARCHIVE, DOCKER_ARCHIVE, REGISTRY];
    /// Those of the full forms whose image is in a file or directory of this host.
    pub const LOCAL_PREFIXES: [&str; 3] = [OCI, OCI_ARCHIVE, DOCKER_ARCHIVE];

    /// Returns whether the image is in a registry, and not in a file or directory of this host.
    pub const fn is_in_registry(&self) -> bool {
        matches!(self, Self::Registry { .. })
    }

    /// Returns the path of an image in a file or directory of this host.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::OciLayout { path, .. }
            | Self::OciArchive { path, .. }
            | Self::DockerArchive { path, .. } => Some(path),
            Self::Registry { .. } => None,
        }
    }
}

/// Writes the reference in its full form, so that two spellings of the same reference are equal.
impl fmt::Display for ImageRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (place, tag, digest) = match self {
            Self::OciLayout { path, tag, digest } => (format!("{OCI}{path}"), tag, *digest),
            Self::OciArchive { path, tag, digest } => {
                (format!("{OCI_ARCHIVE}{path}"), tag, *digest)
            }
            Self::DockerArchive { path, tag } => (format!("{DOCKER_ARCHIVE}{path}"), tag, None),
            Self::Registry { host, repository, tag, digest } => {
                (format!("{REGISTRY}{host}/{repository}"), tag, *digest)
            }
        };
        f.write_str(&place)?;
        if let Some(tag) = tag {
            write!(f, ":{tag}")?;
        }
        digest.map_or(Ok(()), |digest| write!(f, "@{digest}"))
    }
}

/// Serializes a digest's hexadecimal digits without the name of the hash function.
pub fn digits<S: Serializer>(
    digest: &(impl Copy + Into<Option<Digest>>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let digest: Option<Digest> = (*digest).into();
    digest.map(|it| it.hex()).serialize(serializer)
}
