//! The documents of images: index, manifest and config name blobs; read strictly, so that none is
//! taken for another.

use std::collections::BTreeMap;

use box_digest::Digest;
use serde::{Deserialize, Deserializer};

use super::keys::{self, Shape};
use super::media::{self, Kind};

/// Names a blob (descriptor.md). What it has beside these (`urls`, `data`) is not looked at: a blob is
/// taken from where the image lies, and from nowhere else.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    pub(super) media_type: String,
    pub(super) digest: Digest,
    pub(super) size: u64,
    #[serde(default)]
    pub(super) platform: Option<Platform>,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) annotations: BTreeMap<String, String>,
}

impl Descriptor {
    const SHAPE: Shape = Shape::Object(&[
        ("mediaType", Shape::Any),
        ("digest", Shape::Any),
        ("size", Shape::Any),
        ("platform", Platform::SHAPE),
        ("annotations", Shape::Any),
    ]);

    /// Names a blob by what is known of it.
    pub(super) fn new(media_type: &str, digest: Digest, size: u64) -> Self {
        let (media_type, annotations) = (media_type.to_owned(), BTreeMap::new());
        Self { media_type, digest, size, platform: None, annotations }
    }

    /// Returns the tag that a layout's index gives the image.
    pub(super) fn tag(&self) -> Option<&str> {
        self.annotations.get(REF_NAME).map(String::as_str)
    }
}

/// The annotation of an index's entry that holds the image's tag (annotations.md).
const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// What a manifest of an index runs on (image-index.md).
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Platform {
    pub(super) architecture: String,
    pub(super) os: String,
    #[serde(default)]
    pub(super) variant: Option<String>,
}

impl Platform {
    const SHAPE: Shape =
        Shape::Object(&[("architecture", Shape::Any), ("os", Shape::Any), ("variant", Shape::Any)]);
}

/// The manifest of an image (manifest.md).
#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) config: Descriptor,
    pub(super) layers: Vec<Descriptor>,
}

/// What an image is found by.
#[derive(Debug)]
pub(super) enum Document {
    /// Names manifests, or further indexes.
    Index(Vec<Descriptor>),
    /// Names a config and layers.
    Manifest(Manifest),
}

/// The file `oci-layout`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LayoutVersion {
    pub(super) image_layout_version: String,
}

impl keys::Document for LayoutVersion {
    const SHAPE: Shape = Shape::Object(&[("imageLayoutVersion", Shape::Any)]);
}

/// A document of either sort, as it is written.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    #[serde(default)]
    schema_version: Option<u64>,
    #[serde(default)]
    media_type: Option<String>,
    #[serde(default)]
    artifact_type: Option<String>,
    #[serde(default)]
    manifests: Option<Vec<Descriptor>>,
    #[serde(default)]
    config: Option<Descriptor>,
    #[serde(default)]
    layers: Option<Vec<Descriptor>>,
}

impl keys::Document for Written {
    const SHAPE: Shape = Shape::Object(&[
        ("schemaVersion", Shape::Any),
        ("mediaType", Shape::Any),
        ("artifactType", Shape::Any),
        ("manifests", Shape::List(&Descriptor::SHAPE)),
        ("config", Descriptor::SHAPE),
        ("layers", Shape::List(&Descriptor::SHAPE)),
    ]);
}

/// Reads an index or a manifest. Which of the two is said by the media type of the descriptor that led
/// here, where there was one; the document must agree with it (CVE-2021-41190).
///
/// # Errors
/// What is wrong with it.
pub(super) fn read(bytes: &[u8], expected: Option<&str>) -> Result<Document, String> {
    judge(parse(bytes)?, expected)
}

/// Judges an index or a manifest of a registry, and returns its media type: the one that the
/// registry names, else the document's own.
///
/// # Errors
/// What is wrong with it.
pub(super) fn media_type(bytes: &[u8], named: Option<&str>) -> Result<String, String> {
    let written = parse(bytes)?;
    let media_type = named.map(str::to_owned).or_else(|| written.media_type.clone());
    judge(written, media_type.as_deref())?;
    media_type.ok_or_else(|| "nothing says of which type it is".to_owned())
}

fn parse(bytes: &[u8]) -> Result<Written, String> {
    keys::read(bytes).map_err(|error| error.to_string())
}

fn judge(written: Written, expected: Option<&str>) -> Result<Document, String> {
    if written.schema_version == Some(1) {
        return Err(media::SCHEMA_1.to_owned());
    }
    if written.manifests.is_some() && (written.layers.is_some() || written.config.is_some()) {
        return Err("it is a manifest and an index at once".to_owned());
    }
    if let (Some(expected), Some(found)) = (expected, &written.media_type)
        && expected != found
    {
        return Err(format!("it says of itself that it is {found:?}, but {expected:?} was named"));
    }
    match kind(&written, expected)? {
        Kind::Index if written.layers.is_some() || written.config.is_some() => {
            Err("it was named as an index, but is a manifest".to_owned())
        }
        Kind::Index => Ok(Document::Index(written.manifests.unwrap_or_default())),
        Kind::Manifest if written.manifests.is_some() => {
            Err("it was named as a manifest, but is an index".to_owned())
        }
        Kind::Manifest => manifest(written).map(Document::Manifest),
    }
}

/// Reads the `index.json` of a layout.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read_index(bytes: &[u8]) -> Result<Vec<Descriptor>, String> {
    match read(bytes, Some(media::OCI_INDEX))? {
        Document::Index(manifests) => Ok(manifests),
        Document::Manifest(_) => Err("it is a manifest".to_owned()),
    }
}

fn kind(written: &Written, expected: Option<&str>) -> Result<Kind, String> {
    match expected.or(written.media_type.as_deref()) {
        Some(media_type) => Kind::of(media_type),
        None if written.manifests.is_some() => Ok(Kind::Index),
        None => Ok(Kind::Manifest),
    }
}

fn manifest(written: Written) -> Result<Manifest, String> {
    let config = written.config.ok_or("it names no config")?;
    if !media::is_config(&config.media_type) {
        let what = written.artifact_type.unwrap_or(config.media_type);
        return Err(format!("it is no image, but an artifact of type {what:?}"));
    }
    Ok(Manifest { config, layers: written.layers.unwrap_or_default() })
}

/// Reads `null` as nothing: Go writes an empty list or map so.
pub(super) fn null_is_empty<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = r#""config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:0000000000000000000000000000000000000000000000000000000000000000","size":2}"#;
    const INDEX: &str = "application/vnd.oci.image.index.v1+json";
    const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

    fn refused(text: &str, expected: Option<&str>) -> String {
        read(text.as_bytes(), expected).unwrap_err()
    }

    #[test]
    fn a_document_is_what_it_was_named_as_or_what_it_looks_like() {
        let manifest = format!(r#"{{"schemaVersion":2,{CONFIG},"layers":[]}}"#);
        for expected in [None, Some(MANIFEST)] {
            let document = read(manifest.as_bytes(), expected).unwrap();
            assert!(matches!(document, Document::Manifest(_)), "{document:?}");
        }
        for expected in [None, Some(INDEX)] {
            let document = read(br#"{"schemaVersion":2,"manifests":[]}"#, expected).unwrap();
            assert!(matches!(document, Document::Index(_)), "{document:?}");
        }
    }

    #[test]
    fn null_is_an_empty_list_or_map() {
        let manifest = format!(r#"{{{CONFIG},"layers":null,"manifests":null}}"#);
        let Document::Manifest(manifest) = read(manifest.as_bytes(), Some(MANIFEST)).unwrap()
        else {
            panic!("no manifest");
        };
        assert!(manifest.layers.is_empty());
        let index = format!(r#"{{"manifests":null,"mediaType":"{INDEX}"}}"#);
        assert!(
            matches!(read(index.as_bytes(), None), Ok(Document::Index(list)) if list.is_empty())
        );
        let entry = format!(
            r#"{{"manifests":[{{"mediaType":"{MANIFEST}","digest":"sha256:{}","size":1,
                "annotations":null,"platform":null,"urls":null,"data":null}}]}}"#,
            "0".repeat(64)
        );
        assert!(
            matches!(read(entry.as_bytes(), None), Ok(Document::Index(list)) if list.len() == 1)
        );
    }

    #[test]
    fn what_could_be_two_things_is_refused() {
        let both = format!(r#"{{{CONFIG},"layers":[],"manifests":[]}}"#);
        let manifest = format!(r#"{{{CONFIG},"layers":[]}}"#);
        let typed = format!(r#"{{"mediaType":"{INDEX}",{CONFIG},"layers":[]}}"#);
        let found = [
            refused(&both, None),
            refused(&both, Some(MANIFEST)),
            refused(&manifest, Some(INDEX)),
            refused(r#"{"manifests":[]}"#, Some(MANIFEST)),
            refused(&typed, Some(MANIFEST)),
            refused(&typed, None),
        ];
        insta::assert_snapshot!(found.join("\n"), @r#"
    it is a manifest and an index at once
    it is a manifest and an index at once
    it was named as an index, but is a manifest
    it was named as a manifest, but is an index
    it says of itself that it is "application/vnd.oci.image.index.v1+json", but "application/vnd.oci.image.manifest.v1+json" was named
    it was named as an index, but is a manifest
    "#);
    }

    #[test]
    fn what_is_no_image_is_refused() {
        let artifact = CONFIG.replace("oci.image.config", "example.chart");
        let found = [
            refused(r#"{"schemaVersion":1,"fsLayers":[],"history":[]}"#, None),
            refused(&format!(r#"{{{artifact}}}"#), None),
            refused(
                &format!(r#"{{"artifactType":"application/vnd.example.sbom",{artifact}}}"#),
                None,
            ),
            refused("{}", None),
            refused(r#"{"mediaType":"text/plain"}"#, None),
            refused("[]", None),
            refused(r#"{"layers":[],"layers":[]}"#, None),
        ];
        insta::assert_snapshot!(found.join("\n"), @r#"
    it is in Docker's old format (schema 1); push the image again with a current tool
    it is no image, but an artifact of type "application/vnd.example.chart.v1+json"
    it is no image, but an artifact of type "application/vnd.example.sbom"
    it names no config
    it is of type "text/plain", which is no image
    invalid type: sequence, expected an object at line 1 column 2
    duplicate field `layers` at line 1 column 21
    "#);
    }
}
