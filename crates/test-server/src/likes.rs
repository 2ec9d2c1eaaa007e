//! Rules for behaving like well-known registries.
//!
//! The refusals are copied from users' bug reports.

use crate::registry::{Blobs, Refusal, Rules};

/// The text of a config that a registry with an allow-list of media types accepts.
const KNOWN_CONFIG: &str = "\"config\":{\"mediaType\":\"application/vnd.oci.image.config.v1+json\"";
/// The prefix of the media types of layers.
const KNOWN_LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// GitLab, which has an allow-list of types for `artifactType` and for the config.
pub fn gitlab() -> Rules {
    let body = r#"{"errors":[{"code":"MANIFEST_INVALID","message":"manifest invalid","detail":"unknown media type: application/vnd.boxbuild.box.v1"}]}"#;
    let refusal = Refusal { status: "400 Bad Request", body };
    Rules { closed: true, refuses: Some(is_no_image), refusal, ..Rules::default() }
}

/// Quay, which validates a manifest against a schema that lists the types of config and layers. Blobs are in an object store.
pub fn quay() -> Rules {
    let body = r#"{"errors":[{"code":"MANIFEST_INVALID","detail":{"message":"failed to parse manifest: manifest data does not match schema: 'application/vnd.boxbuild.segment.v1+zstd' is not one of [...]"},"message":"manifest invalid"}]}
"#;
    let refusal = Refusal { status: "400 Bad Request", body };
    let (blobs, refuses) = (Blobs::Elsewhere, Some(is_no_image as fn(&str) -> bool));
    Rules { closed: true, blobs, refuses, refusal, ..Rules::default() }
}

/// GitHub, which accepts all manifests, answers a mount request with an upload, and redirects downloads and uploads to another
/// host.
pub fn ghcr() -> Rules {
    Rules { closed: true, mounts: false, blobs: Blobs::Elsewhere, ..Rules::default() }
}

/// Amazon, which answers a manifest of an unknown type with "405 Method Not Allowed".
pub fn ecr() -> Rules {
    let body = r#"{"errors":[{"code":"UNSUPPORTED","message":"Invalid parameter at 'ImageManifest' failed to satisfy constraint: 'Invalid JSON syntax'"}]}
"#;
    let refusal = Refusal { status: "405 Method Not Allowed", body };
    Rules { refuses: Some(is_no_image), refusal, ..Rules::default() }
}

/// A registry that refuses a manifest with a status and an HTML page, without an error code.
pub fn terse() -> Rules {
    let refusal = Refusal { status: "415 Unsupported Media Type", body: "<h1>Unsupported</h1>" };
    Rules { refuses: Some(is_no_image), refusal, ..Rules::default() }
}

/// An overloaded registry, which answers the first request for each method and path with 429.
pub fn overloaded() -> Rules {
    Rules { closed: true, busy: 1, ..Rules::default() }
}

/// A registry with the fewest features: no HEAD, no ranges, no mounts.
pub fn plainest() -> Rules {
    Rules { refuses_head: true, ignores_ranges: true, ..Rules::default() }
}

/// Returns whether a manifest does not describe an image.
fn is_no_image(manifest: &str) -> bool {
    let mut types = manifest.split("\"mediaType\":\"").skip(3);
    manifest.contains("\"artifactType\"")
        || !manifest.contains(KNOWN_CONFIG)
        || types.any(|layer| !layer.starts_with(KNOWN_LAYER))
}
