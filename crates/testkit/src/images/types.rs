//! The media types of an image's documents and layers.

/// The media types of OCI or of Docker.
#[derive(Debug, Clone, Copy)]
pub(super) struct Types {
    pub(super) manifest: &'static str,
    pub(super) config: &'static str,
    /// An uncompressed layer. The types of compressed layers have the suffix `gzip` or `zstd`.
    pub(super) layer: &'static str,
    pub(super) gzip: &'static str,
    #[cfg(feature = "zstd")]
    pub(super) zstd: &'static str,
}

impl Types {
    /// The media types of OCI ([media-types.md](https://github.com/opencontainers/image-spec/blob/main/media-types.md)).
    pub(super) const OCI: Self = Self {
        manifest: "application/vnd.oci.image.manifest.v1+json",
        config: "application/vnd.oci.image.config.v1+json",
        layer: "application/vnd.oci.image.layer.v1.tar",
        gzip: "+gzip",
        #[cfg(feature = "zstd")]
        zstd: "+zstd",
    };

    /// The media types of Docker (image manifest version 2, schema 2).
    pub(super) const DOCKER: Self = Self {
        manifest: "application/vnd.docker.distribution.manifest.v2+json",
        config: "application/vnd.docker.container.image.v1+json",
        layer: "application/vnd.docker.image.rootfs.diff.tar",
        gzip: ".gzip",
        #[cfg(feature = "zstd")]
        zstd: ".zstd",
    };
}
