//! The config of an image (config.md).

use std::collections::BTreeMap;

use box_digest::Digest;
use serde::Deserialize;

use super::documents::null_is_empty;
use super::keys::{Document, Shape};

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
    #[serde(default, deserialize_with = "null_is_empty")]
    pub rootfs: RootFs,
    /// What made the image, step by step; many tools leave it out.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub history: Vec<Step>,
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
#[derive(Debug, Clone, Default, Deserialize)]
pub struct RootFs {
    /// The lowest first.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub diff_ids: Vec<Digest>,
}

/// A step of an image's history.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Step {
    /// Whether it changed no file, so that there is no layer of it.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub empty_layer: bool,
}

impl Document for ImageConfig {
    const SHAPE: Shape = Shape::Object(&[
        ("architecture", Shape::Any),
        ("os", Shape::Any),
        ("config", Process::SHAPE),
        ("rootfs", Shape::Object(&[("diff_ids", Shape::Any)])),
        ("history", Shape::List(&Shape::Object(&[("empty_layer", Shape::Any)]))),
    ]);
}

impl Process {
    const SHAPE: Shape = Shape::Object(&[
        ("User", Shape::Any),
        ("Env", Shape::Any),
        ("Entrypoint", Shape::Any),
        ("Cmd", Shape::Any),
        ("WorkingDir", Shape::Any),
        ("Labels", Shape::Any),
        ("ExposedPorts", Shape::Any),
    ]);
}

impl ImageConfig {
    /// Checks that the image's documents agree on the number of its layers.
    ///
    /// # Errors
    /// What does not fit.
    pub(super) fn check(&self, layers: usize) -> Result<(), String> {
        let diff_ids = self.rootfs.diff_ids.len();
        if layers != diff_ids {
            return Err(format!(
                "layers in its manifest: {layers}, diff_ids in its config: {diff_ids}"
            ));
        }
        let made = self.history.iter().filter(|step| !step.empty_layer).count();
        // Tools that add a layer to an image without a history begin one with theirs.
        if made > layers {
            return Err(format!("layers in its manifest: {layers}, in its history: {made}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rest: &str, layers: usize) -> Result<(), String> {
        let text = format!(r#"{{"architecture":"amd64","os":"linux",{rest}}}"#);
        serde_json::from_str::<ImageConfig>(&text).unwrap().check(layers)
    }

    #[test]
    fn steps_that_changed_nothing_have_no_layer() {
        let id = format!("\"sha256:{}\"", "0".repeat(64));
        let rootfs = format!(r#""rootfs":{{"type":"layers","diff_ids":[{id}]}}"#);
        check(&rootfs, 1).unwrap();
        let history = r#""history":[{"empty_layer":true},{"created_by":"x"},{"empty_layer":null,"empty_layer_":1}]"#;
        assert_eq!(
            check(&format!("{rootfs},{history}"), 1).unwrap_err(),
            "layers in its manifest: 1, in its history: 2"
        );
        for history in [r#"{"empty_layer":true},{"created_by":"x"}"#, r#"{"empty_layer":true}"#] {
            check(&format!(r#"{rootfs},"history":[{history}]"#), 1).unwrap();
        }
        assert_eq!(
            check(&rootfs, 2).unwrap_err(),
            "layers in its manifest: 2, diff_ids in its config: 1"
        );
    }

    #[test]
    fn null_and_nothing_are_empty() {
        for rest in [
            r#""rootfs":{"type":"layers","diff_ids":null},"history":null,"config":null"#,
            r#""rootfs":{"type":"layers"}"#,
            r#""rootfs":null,"config":{"Env":null,"Cmd":null,"Labels":null,"ExposedPorts":null}"#,
        ] {
            check(rest, 0).unwrap();
        }
    }
}
