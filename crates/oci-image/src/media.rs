//! The [media types](https://github.com/opencontainers/image-spec/blob/v1.1.1/media-types.md) of
//! OCI images, and Docker's equivalents.

use box_contract::manifest::{DOCKER_INDEX_TYPE, DOCKER_MANIFEST_TYPE};
use oci_layer::Compression;
use oci_registry::DOCKER_SCHEMA_1_TYPES;
use oci_spec::image::MediaType;

use super::error::Unread;

/// Whether a document is an index or a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Index,
    Manifest,
}

/// The message for a manifest of Docker's first schema, which registries stopped serving long ago.
pub(super) const SCHEMA_1: &str = "it is in Docker's old format (schema 1)";

/// Returns `media_type` itself if it is an OCI type, or the OCI type that is equivalent to one of Docker's types.
pub(super) fn family(media_type: &str) -> MediaType {
    match media_type {
        DOCKER_INDEX_TYPE => MediaType::ImageIndex,
        DOCKER_MANIFEST_TYPE => MediaType::ImageManifest,
        "application/vnd.docker.container.image.v1+json" => MediaType::ImageConfig,
        "application/vnd.docker.image.rootfs.diff.tar" => MediaType::ImageLayer,
        "application/vnd.docker.image.rootfs.diff.tar.gzip" => MediaType::ImageLayerGzip,
        "application/vnd.docker.image.rootfs.diff.tar.zstd" => MediaType::ImageLayerZstd,
        other => other.into(),
    }
}

impl Kind {
    /// Returns the type of document for a media type.
    ///
    /// # Errors
    /// The message for any other media type.
    pub(super) fn of(media_type: &str) -> Result<Self, String> {
        match family(media_type) {
            MediaType::ImageIndex => Ok(Self::Index),
            MediaType::ImageManifest => Ok(Self::Manifest),
            _ if DOCKER_SCHEMA_1_TYPES.contains(&media_type) => Err(SCHEMA_1.to_owned()),
            _ => Err(format!("it is of type {media_type:?}, which is not an image")),
        }
    }
}

/// Returns the compression of a layer's media type.
///
/// # Errors
/// The reason why another media type is not supported.
pub(super) fn compression(media_type: &str) -> Result<Compression, Unread> {
    match family(media_type) {
        MediaType::ImageLayer => Ok(Compression::None),
        MediaType::ImageLayerGzip => Ok(Compression::Gzip),
        MediaType::ImageLayerZstd => Ok(Compression::Zstd),
        _ if media_type.contains(".nondistributable.") || media_type.contains(".foreign.") => {
            Err(Unread::Foreign)
        }
        _ if media_type.ends_with("+encrypted") => Err(Unread::Encrypted),
        _ => Err(Unread::Unknown),
    }
}

/// Returns the OCI media type of a layer with this compression.
pub(super) const fn layer(compression: Compression) -> MediaType {
    match compression {
        Compression::None => MediaType::ImageLayer,
        Compression::Gzip => MediaType::ImageLayerGzip,
        Compression::Zstd => MediaType::ImageLayerZstd,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_of_both_families_are_known() {
        for (expected, suffix) in
            [(Compression::None, ""), (Compression::Gzip, "gzip"), (Compression::Zstd, "zstd")]
        {
            let of = |base: &str, separator: &str| {
                let separator = if suffix.is_empty() { "" } else { separator };
                compression(&format!("application/vnd.{base}.tar{separator}{suffix}"))
            };
            assert_eq!(of("oci.image.layer.v1", "+"), Ok(expected));
            assert_eq!(of("docker.image.rootfs.diff", "."), Ok(expected));
            assert_eq!(compression(layer(expected).as_ref()), Ok(expected));
        }
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
            assert_eq!(compression(foreign), Err(Unread::Foreign), "{foreign}");
        }
        let encrypted = "application/vnd.oci.image.layer.v1.tar+gzip+encrypted";
        assert_eq!(compression(encrypted), Err(Unread::Encrypted));
        assert_eq!(compression("application/vnd.oci.image.layer.v1.tar+xz"), Err(Unread::Unknown));
    }
}
