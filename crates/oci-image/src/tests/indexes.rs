//! Indexes: for several platforms, nested, and with entries that are no images.

use box_contract::manifest::OCI_INDEX_TYPE;
use serde_json::{Value, json};
use testkit::images::{Compression, LayoutDir};

use super::*;

const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";

/// A layout directory with images for several platforms.
struct Built {
    directory: tempfile::TempDir,
    layout: LayoutDir,
}

impl Built {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let layout = LayoutDir::make(&directory.path().join("a")).unwrap();
        Self { directory, layout }
    }

    /// Writes an image, and returns the entry of an index for it.
    fn image(&self, architecture: &'static str, platform: Value) -> Value {
        let (dir, image) = (self.directory.path().join("a"), sample().architecture(architecture));
        let named = image.write_blobs(&dir, Compression::Gzip).unwrap();
        let mut entry = json!(named);
        entry["platform"] = platform;
        entry
    }

    fn index(&self, media_type: &str, manifests: Value) -> Value {
        let index = json!({ "schemaVersion": 2, "mediaType": media_type, "manifests": manifests,
            "annotations": null });
        json!(self.layout.put_json(media_type, &index).unwrap())
    }

    /// Writes `index.json` with these entries.
    fn finish(&self, manifests: Value) {
        self.layout.finish(&json!({ "schemaVersion": 2, "manifests": manifests })).unwrap();
    }

    fn opened(&self, platform: Platform) -> Result<Image<'_>, SourceError> {
        let access = Access { base: self.directory.path(), registries: None };
        open(&reference("oci:a"), None, platform, &access)
    }

    fn refusal(&self) -> String {
        refusal(self.directory.path(), "oci:a")
    }
}

fn platform(architecture: &str) -> Value {
    json!({ "os": "linux", "architecture": architecture })
}

fn digest_of(entry: &Value) -> Digest {
    entry["digest"].as_str().unwrap().parse().unwrap()
}

/// A provenance attestation, as builders add it beside the image.
fn attestation(built: &Built) -> Value {
    let mut entry = built.image("unknown", json!({ "os": "unknown", "architecture": "unknown" }));
    entry["annotations"] = json!({ "vnd.docker.reference.type": "attestation-manifest" });
    entry
}

#[test]
fn whole_references_are_names_too() {
    let built = Built::new();
    let named = |name: &str, architecture| {
        let mut entry = built.image(architecture, Value::Null);
        entry["annotations"] = json!({ "org.opencontainers.image.ref.name": name });
        entry
    };
    let (one, two) = (named("registry.example.org/team/a:1", "amd64"), named("2", "arm64"));
    built.finish(json!([one, two]));
    let access = Access { base: built.directory.path(), registries: None };
    for text in ["oci:a:registry.example.org/team/a:1", "oci:a:1"] {
        let image = open(&reference(text), None, Platform::LinuxAmd64, &access).unwrap();
        assert_eq!(image.manifest, digest_of(&one), "{text}");
    }
    for text in ["oci:a:registry.example.org/team/a:2", "oci:a:a", "oci:a:org/team/a"] {
        let refused = open(&reference(text), None, Platform::LinuxAmd64, &access).unwrap_err();
        assert!(matches!(refused, SourceError::Choice { is_missing: true, .. }), "{text}");
    }
}

#[test]
fn the_image_for_the_platform_is_taken() {
    for media_type in [OCI_INDEX_TYPE, DOCKER_LIST] {
        let built = Built::new();
        let arm = json!({ "os": "linux", "architecture": "arm64", "variant": "v8" });
        let fast = json!({ "os": "linux", "architecture": "amd64", "variant": "v3" });
        let entries = json!([
            attestation(&built),
            built.image("amd64", fast),
            built.image("amd64", platform("amd64")),
            built.image("arm64", arm),
            attestation(&built),
        ]);
        let of_platform = [&entries[2], &entries[3]].map(digest_of);
        let index = built.index(media_type, entries);
        let digest = digest_of(&index);
        built.finish(json!([index]));
        for (platform, expected) in
            [Platform::LinuxAmd64, Platform::LinuxArm64].into_iter().zip(of_platform)
        {
            let image = built.opened(platform).unwrap();
            assert_eq!(image.manifest, expected);
            let access = Access { base: built.directory.path(), registries: None };
            let pinned = open(&reference("oci:a"), Some(digest), platform, &access).unwrap();
            assert_eq!(pinned.manifest, image.manifest, "the index's digest leads there, too");
            let pinned =
                open(&reference("oci:a"), Some(image.manifest), platform, &access).unwrap();
            assert_eq!(pinned.manifest, image.manifest);
        }
    }
}

#[test]
fn an_entry_without_a_platform_is_the_fallback() {
    let built = Built::new();
    let open = built.image("amd64", Value::Null);
    let expected = digest_of(&open);
    let entries = json!([built.image("arm64", platform("arm64")), open]);
    built.finish(json!([built.index(OCI_INDEX_TYPE, entries)]));
    assert_eq!(built.opened(Platform::LinuxAmd64).unwrap().manifest, expected);
}

#[test]
fn the_platforms_that_there_are_are_listed() {
    let built = Built::new();
    let arm = json!({ "os": "linux", "architecture": "arm", "variant": "v7" });
    let entries = json!([
        built.image("arm64", platform("arm64")),
        built.image("arm", arm),
        attestation(&built),
    ]);
    built.finish(json!([built.index(OCI_INDEX_TYPE, entries)]));
    insta::assert_snapshot!(built.refusal(), @"the image in a is for linux/arm/v7, linux/arm64; the box needs linux/amd64");
    // The platform in the config takes precedence over the platform in the index.
    let built = Built::new();
    built.finish(json!([built.image("s390x", platform("amd64"))]));
    insta::assert_snapshot!(built.refusal(), @"the image in a is for linux/s390x; the box needs linux/amd64");
}

#[test]
fn the_variant_of_the_config_is_checked_too() {
    let refused =
        |variant: &str| super::refused::with(|_, config| config["variant"] = json!(variant));
    insta::assert_snapshot!(refused("v3"), @"the image in a is for linux/amd64/v3; the box needs linux/amd64");
    let base = super::refused::made(|_, config| config["variant"] = json!("v1"));
    let access = Access { base: base.path(), registries: None };
    open(&reference("oci:a"), None, Platform::LinuxAmd64, &access).unwrap();
}

#[test]
fn indexes_are_followed_so_far() {
    let built = Built::new();
    let mut entry = built.image("amd64", platform("amd64"));
    for _ in 0..4 {
        entry = built.index(OCI_INDEX_TYPE, json!([entry]));
    }
    built.finish(json!([entry]));
    built.opened(Platform::LinuxAmd64).unwrap();
    built.finish(json!([built.index(OCI_INDEX_TYPE, json!([entry]))]));
    insta::assert_snapshot!(built.refusal(), @"a/blobs/sha256/DIGEST cannot be read as an image index: more than 4 indexes lead to it");
}

#[test]
fn an_index_without_an_image_is_refused() {
    let mut found = Vec::new();
    for entries in [json!([]), Value::Null] {
        let built = Built::new();
        built.finish(json!([built.index(OCI_INDEX_TYPE, entries.clone())]));
        found.push(built.refusal());
        built.finish(entries);
        found.push(built.refusal());
    }
    let built = Built::new();
    built.finish(json!([built.index(OCI_INDEX_TYPE, json!([attestation(&built)]))]));
    found.push(built.refusal());
    insta::assert_snapshot!(found.join("\n"), @"
    a/blobs/sha256/DIGEST cannot be read as an image index: it names no image
    a has no image
    a/blobs/sha256/DIGEST cannot be read as an image index: it names no image
    a has no image
    a/blobs/sha256/DIGEST cannot be read as an image index: it names no image
    ");
}

#[test]
fn several_images_are_distinguished_by_their_tags() {
    let built = Built::new();
    let tagged = |tag: &str, architecture| {
        let mut entry = built.image(architecture, platform("amd64"));
        entry["annotations"] = json!({ "org.opencontainers.image.ref.name": tag });
        entry
    };
    built.finish(json!([tagged("v1", "amd64"), tagged("v2", "x")]));
    insta::assert_snapshot!(built.refusal(), @"a has several images; it has v1, v2");
    // If `skopeo copy` reuses a name, the previous image stays without a name. It is ignored.
    let entry = tagged("latest", "amd64");
    built.finish(json!([built.image("arm64", platform("amd64")), entry]));
    assert_eq!(built.opened(Platform::LinuxAmd64).unwrap().manifest, digest_of(&entry));
    // Two tags of one image are not ambiguous.
    built.finish(json!([tagged("v1", "amd64"), tagged("latest", "amd64")]));
    built.opened(Platform::LinuxAmd64).unwrap();
}
