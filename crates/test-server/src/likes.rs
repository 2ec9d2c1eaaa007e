//! Rules by which a registry answers as known ones do, as far as a client can tell them apart.
//!
//! What they refuse, and how, is taken from reports of people whom they refused.

use crate::registry::{Blobs, Refusal, Rules};

/// Media types that a registry with a list of known ones takes in `config`.
const KNOWN_CONFIG: &str = "\"config\":{\"mediaType\":\"application/vnd.oci.image.config.v1+json\"";
/// Media types of the layers of images begin with this.
const KNOWN_LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// GitLab: it has a list of types for `artifactType` and for the config.
pub fn gitlab() -> Rules {
    let body = r#"{"errors":[{"code":"MANIFEST_INVALID","message":"manifest invalid","detail":"unknown media type: application/vnd.boxbuild.box.v1"}]}"#;
    let refusal = Refusal { status: "400 Bad Request", body };
    Rules { closed: true, refuses: Some(is_no_image), refusal, ..Rules::default() }
}

/// Quay: it compares a manifest with a schema in which the types of config and layers are listed; blobs are in an object store.
pub fn quay() -> Rules {
    let body = r#"{"errors":[{"code":"MANIFEST_INVALID","detail":{"message":"failed to parse manifest: manifest data does not match schema: 'application/vnd.boxbuild.segment.v1+zstd' is not one of [...]"},"message":"manifest invalid"}]}
"#;
    let refusal = Refusal { status: "400 Bad Request", body };
    let (blobs, refuses) = (Blobs::Elsewhere, Some(is_no_image as fn(&str) -> bool));
    Rules { closed: true, blobs, refuses, refusal, ..Rules::default() }
}

/// GitHub's: it takes everything, answers a mount with an upload, and leads downloads and uploads to another host.
pub fn ghcr() -> Rules {
    Rules { closed: true, mounts: false, blobs: Blobs::Elsewhere, ..Rules::default() }
}

/// Amazon's: to a manifest that it does not know it says that the method is not allowed.
pub fn ecr() -> Rules {
    let body = r#"{"errors":[{"code":"UNSUPPORTED","message":"Invalid parameter at 'ImageManifest' failed to satisfy constraint: 'Invalid JSON syntax'"}]}
"#;
    let refusal = Refusal { status: "405 Method Not Allowed", body };
    Rules { refuses: Some(is_no_image), refusal, ..Rules::default() }
}

/// One whose refusal is the status alone, with a page for people.
pub fn terse() -> Rules {
    let refusal = Refusal { status: "415 Unsupported Media Type", body: "<h1>Unsupported</h1>" };
    Rules { refuses: Some(is_no_image), refusal, ..Rules::default() }
}

/// One that has too much to do: whatever it is asked, it first says to come back.
pub fn overloaded() -> Rules {
    Rules { closed: true, busy: 1, ..Rules::default() }
}

/// The least that a registry can do: no HEAD, no ranges, no mounts.
pub fn plainest() -> Rules {
    Rules { refuses_head: true, ignores_ranges: true, ..Rules::default() }
}

/// Returns whether a manifest is something else than that of an image.
fn is_no_image(manifest: &str) -> bool {
    let mut types = manifest.split("\"mediaType\":\"").skip(3);
    manifest.contains("\"artifactType\"")
        || !manifest.contains(KNOWN_CONFIG)
        || types.any(|layer| !layer.starts_with(KNOWN_LAYER))
}
