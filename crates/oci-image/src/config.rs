//! The config of an image ([OCI image-spec, config.md](https://github.com/opencontainers/image-spec/blob/v1.1.1/config.md)).

use oci_spec::image::{Config, ImageConfiguration};
use serde_json::{Value, json};

use super::keys::{Document, Shape, optional, required};

const TEXTS: Shape = Shape::List(&Shape::Text);

/// The fields about the image's program.
const PROCESS: Shape = Shape::Object(&[
    optional("User", Shape::Text),
    optional("Env", TEXTS),
    optional("Entrypoint", TEXTS),
    optional("Cmd", TEXTS),
    optional("WorkingDir", Shape::Text),
    optional("StopSignal", Shape::Text),
    optional("Labels", Shape::Map(&Shape::Text)),
    optional("ExposedPorts", Shape::Map(&Shape::Any)),
]);

/// The fields of a config that a box needs. `history` is optional, because many tools write none.
impl Document for ImageConfiguration {
    const SHAPE: Shape = Shape::Object(&[
        required("architecture", Shape::Text),
        required("os", Shape::Text),
        optional("variant", Shape::Text),
        optional("config", PROCESS),
        optional("rootfs", Shape::Object(&[optional("diff_ids", Shape::List(&Shape::Sha256))])),
        optional("history", Shape::List(&Shape::Object(&[optional("empty_layer", Shape::Flag)]))),
    ]);

    fn complete(config: &mut Value) {
        let rootfs = &mut config["rootfs"];
        rootfs["type"] = json!("layers");
        if rootfs["diff_ids"].is_null() {
            rootfs["diff_ids"] = json!([]);
        }
    }
}

/// Returns the fields about the image's program, with sorted ports, because oci-spec reads them into a hash map.
pub(super) fn process(config: &ImageConfiguration) -> Config {
    let mut process = config.config().clone().unwrap_or_default();
    if let Some(mut ports) = process.exposed_ports().clone() {
        ports.sort();
        process.set_exposed_ports(Some(ports));
    }
    process
}

/// Checks that the config has as many `diff_ids` as the manifest has layers, and that its history has at most as many layers.
///
/// # Errors
/// The message, with the contradicting numbers.
pub(super) fn check(config: &ImageConfiguration, layers: usize) -> Result<(), String> {
    let diff_ids = config.rootfs().diff_ids().len();
    if layers != diff_ids {
        return Err(format!(
            "layers in its manifest: {layers}, diff_ids in its config: {diff_ids}"
        ));
    }
    let steps = config.history().iter().flatten();
    let made = steps.filter(|step| step.empty_layer() != Some(true)).count();
    // A tool that adds a layer to an image without a history writes a history with this layer only.
    if made > layers {
        return Err(format!("layers in its manifest: {layers}, in its history: {made}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::keys::read;

    fn check(rest: &str, layers: usize) -> Result<(), String> {
        let text = format!(r#"{{"architecture":"amd64","os":"linux",{rest}}}"#);
        super::check(&read(text.as_bytes()).unwrap(), layers)
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
