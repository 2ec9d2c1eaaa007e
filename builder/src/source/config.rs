//! The config of an image (config.md).

use std::collections::BTreeMap;

use box_image::Digest;
use serde::Deserialize;

/// An image's config, as far as a box needs it.
#[derive(Debug, Clone, Deserialize)]
pub struct ImageConfig {
    /// The CPU, in Go's spelling.
    pub architecture: String,
    /// The operating system.
    pub os: String,
    /// How the image's program runs.
    #[serde(default)]
    pub config: Option<Process>,
    /// The layers' uncompressed digests.
    pub rootfs: RootFs,
}

/// How the image's program runs; everything is optional.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Process {
    /// `USER` or `USER:GROUP`, names or numbers.
    #[serde(default)]
    pub user: Option<String>,
    /// The environment as `NAME=value`.
    #[serde(default)]
    pub env: Option<Vec<String>>,
    /// The program and its first arguments.
    #[serde(default)]
    pub entrypoint: Option<Vec<String>>,
    /// What follows the entrypoint, or the program where there is none.
    #[serde(default)]
    pub cmd: Option<Vec<String>>,
    /// The working directory.
    #[serde(default)]
    pub working_dir: Option<String>,
    /// What the image says of itself.
    #[serde(default)]
    pub labels: Option<BTreeMap<String, String>>,
    /// The ports that the program listens on: `4088/tcp`.
    #[serde(default)]
    pub exposed_ports: Option<BTreeMap<String, serde::de::IgnoredAny>>,
}

/// The layers' uncompressed digests.
#[derive(Debug, Clone, Deserialize)]
pub struct RootFs {
    /// The lowest first.
    pub diff_ids: Vec<Digest>,
}
