//! The media types of images: OCI's (media-types.md), and Docker's for the same things.

use oci_layer::Compression;

/// What a document that leads to an image is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Index,
    Manifest,
}

/// The words for a manifest of Docker's first schema, which registries stopped to serve long ago.
pub(super) const SCHEMA_1: &str = "it is in Docker's old format (schema 1); push the image again \
     with a current tool";

pub(super) const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(super) const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const DOCKER_SCHEMA_1: &str = "application/vnd.docker.distribution.manifest.v1+";
pub(super) const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";
const OCI_CONFIG: &str = "application/vnd.oci.image.config.v1+json";

impl Kind {
    /// Tells what a document of this type is.
    ///
    /// # Errors
    /// What is to be said of another type.
    pub(super) fn of(media_type: &str) -> Result<Self, String> {
        match media_type {
            OCI_INDEX | DOCKER_INDEX => Ok(Self::Index),
            OCI_MANIFEST | DOCKER_MANIFEST => Ok(Self::Manifest),
            old if old.starts_with(DOCKER_SCHEMA_1) => Err(SCHEMA_1.to_owned()),
            other => Err(format!("it is of type {other:?}, which is no image")),
        }
    }
}

/// Tells whether a blob of this type is the config of an image.
pub(super) fn is_config(media_type: &str) -> bool {
    matches!(media_type, OCI_CONFIG | DOCKER_CONFIG)
}

/// Tells how a layer of this type is compressed.
///
/// # Errors
/// Why a layer of another type is not read.
pub(super) fn compression(media_type: &str) -> Result<Compression, &'static str> {
    match media_type {
        "application/vnd.oci.image.layer.v1.tar"
        | "application/vnd.docker.image.rootfs.diff.tar" => Ok(Compression::None),
        "application/vnd.oci.image.layer.v1.tar+gzip"
        | "application/vnd.docker.image.rootfs.diff.tar.gzip" => Ok(Compression::Gzip),
        "application/vnd.oci.image.layer.v1.tar+zstd"
        | "application/vnd.docker.image.rootfs.diff.tar.zstd" => Ok(Compression::Zstd),
        other if other.contains(".nondistributable.") || other.contains(".foreign.") => {
            Err("a foreign layer, whose content is not part of the image but lies elsewhere; \
             make the image of a base without such layers")
        }
        other if other.ends_with("+encrypted") => {
            Err("an encrypted layer; decrypt the image when it is copied")
        }
        _ => Err("not a layer that is read: tar, tar+gzip and tar+zstd are"),
    }
}

/// Returns the type of a layer of Docker's that is compressed like this.
pub(super) const fn docker_layer(compression: Compression) -> &'static str {
    match compression {
        Compression::None => "application/vnd.docker.image.rootfs.diff.tar",
        Compression::Gzip => "application/vnd.docker.image.rootfs.diff.tar.gzip",
        Compression::Zstd => "application/vnd.docker.image.rootfs.diff.tar.zstd",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_of_both_families_are_known() {
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            assert_eq!(super::compression(docker_layer(compression)), Ok(compression));
        }
        let oci =
            |suffix: &str| compression(&format!("application/vnd.oci.image.layer.v1.tar{suffix}"));
        assert_eq!(oci(""), Ok(Compression::None));
        assert_eq!(oci("+gzip"), Ok(Compression::Gzip));
        assert_eq!(oci("+zstd"), Ok(Compression::Zstd));
    }

    #[test]
    fn foreign_layers_are_named_as_such() {
        for foreign in [
            "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
            "application/vnd.docker.image.rootfs.foreign.diff.tar",
            "application/vnd.oci.image.layer.nondistributable.v1.tar",
            "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
            "application/vnd.oci.image.layer.nondistributable.v1.tar+zstd",
        ] {
            assert!(compression(foreign).unwrap_err().starts_with("a foreign layer"), "{foreign}");
        }
        let encrypted = "application/vnd.oci.image.layer.v1.tar+gzip+encrypted";
        assert!(compression(encrypted).unwrap_err().starts_with("an encrypted layer"));
        assert!(compression("application/vnd.oci.image.layer.v1.tar+xz").is_err());
    }
}
