//! Where an image comes from.

use std::fmt;

use box_digest::Digest;
use serde::{Serialize, Serializer};

/// An OCI image layout directory.
pub const OCI: &str = "oci:";
/// An OCI image layout in a tar file.
pub const OCI_ARCHIVE: &str = "oci-archive:";
/// The output of `docker save`.
pub const DOCKER_ARCHIVE: &str = "docker-archive:";
/// An image of a registry.
pub const REGISTRY: &str = "docker://";
/// The prefixes that a path follows.
pub const WITH_PATH: [&str; 3] = [OCI, OCI_ARCHIVE, DOCKER_ARCHIVE];

/// Where an image comes from.
///
/// In each form, `tag` chooses among several images, and `digest` is the sha256 that the image's
/// manifest must have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum ImageRef {
    /// An OCI image layout directory: `oci:PATH[:TAG][@DIGEST]`.
    OciLayout {
        /// The directory; a relative one is relative to the main Boxfile. Neither empty nor with
        /// NUL.
        path: String,
        /// Which of the layout's images, where it holds several.
        tag: Option<String>,
        /// The sha256 of the image's manifest.
        #[serde(serialize_with = "digits")]
        digest: Option<Digest>,
    },
    /// An OCI image layout in a tar file: `oci-archive:PATH[:TAG][@DIGEST]`.
    OciArchive {
        /// The file, by the same rule as the directory above.
        path: String,
        /// Which of the layout's images, where it holds several.
        tag: Option<String>,
        /// The sha256 of the image's manifest.
        #[serde(serialize_with = "digits")]
        digest: Option<Digest>,
    },
    /// The output of `docker save`: `docker-archive:PATH[:NAME[:TAG]]` or `docker-archive:PATH[:TAG]`.
    DockerArchive {
        /// The file, by the same rule as the directory above.
        path: String,
        /// Which of the archive's images, where it holds several: a name as docker has it, perhaps with
        /// a tag, or a tag alone.
        tag: Option<String>,
    },
    /// An image of a registry: `docker://HOST/NAME[:TAG][@DIGEST]`, or as people type it:
    /// `NAME[:TAG]`, for which the host is `docker.io`.
    Registry {
        /// The registry's host, perhaps with a port.
        host: String,
        /// The repository: `library/debian`.
        repository: String,
        /// The tag; `latest` where neither tag nor digest is given.
        tag: Option<String>,
        /// The sha256 of the manifest, or of the index.
        #[serde(serialize_with = "digits")]
        digest: Option<Digest>,
    },
}

impl ImageRef {
    /// The prefixes of references whose form is written out. A reference without one is a name as
    /// docker has it.
    pub const PREFIXES: [&str; 4] = [OCI, OCI_ARCHIVE, DOCKER_ARCHIVE, REGISTRY];
}

/// Writes the reference in its full form: what two spellings of the same image have in common.
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

/// Writes the digits of a digest, without the name of its function.
pub fn digits<S: Serializer>(
    digest: &(impl Copy + Into<Option<Digest>>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let digest: Option<Digest> = (*digest).into();
    digest.map(|it| it.hex()).serialize(serializer)
}
