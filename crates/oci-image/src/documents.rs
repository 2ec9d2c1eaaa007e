//! Indexes and manifests: the documents that name blobs. They are read strictly, so that an index is never read as a manifest,
//! or a manifest as an index.

use box_digest::Digest;
use oci_spec::image::{Descriptor, ImageIndex, ImageManifest, MediaType, OciLayout};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::keys::{self, Key, Shape, optional, required};
use super::media::{self, Kind};

/// A blob, as a document describes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blob {
    pub(super) digest: Digest,
    /// The size in bytes.
    pub(super) size: u64,
}

impl Blob {
    /// Returns the blob of a descriptor.
    pub(super) fn of(named: &Descriptor) -> Self {
        Self { digest: sha256(named.digest().as_ref()), size: named.size() }
    }

    /// Returns a descriptor of the blob.
    pub(super) fn named(self, media_type: MediaType) -> Descriptor {
        let digest = self.digest.to_string().parse::<oci_spec::image::Digest>();
        Descriptor::new(media_type, self.size, digest.expect("sha256 is a valid digest"))
    }
}

/// Parses a digest of a document. [`Shape::Sha256`] has checked it.
pub(super) fn sha256(text: &str) -> Digest {
    text.parse().expect("documents are read strictly")
}

/// Returns the tag of an image in a layout's index, an
/// [annotation](https://github.com/opencontainers/image-spec/blob/v1.1.1/annotations.md).
pub(super) fn tag(named: &Descriptor) -> Option<&str> {
    let annotations = named.annotations().as_ref()?;
    annotations.get(oci_spec::image::ANNOTATION_REF_NAME).map(String::as_str)
}

/// The fields of a [descriptor](https://github.com/opencontainers/image-spec/blob/v1.1.1/descriptor.md) that are read. Others,
/// such as `urls` and `data`, are ignored: a blob is always read from the source of its image.
const DESCRIPTOR: Shape = Shape::Object(&[
    required("mediaType", Shape::Text),
    required("digest", Shape::Sha256),
    required("size", Shape::Number),
    optional("platform", PLATFORM),
    optional("annotations", Shape::Map(&Shape::Text)),
]);

const PLATFORM: Shape = Shape::Object(&[
    required("architecture", Shape::Text),
    required("os", Shape::Text),
    optional("variant", Shape::Text),
]);

/// The fields of an [index](https://github.com/opencontainers/image-spec/blob/v1.1.1/image-index.md) or a
/// [manifest](https://github.com/opencontainers/image-spec/blob/v1.1.1/manifest.md).
const DOCUMENT: &[Key] = &[
    optional("schemaVersion", Shape::Number),
    optional("mediaType", Shape::Text),
    optional("artifactType", Shape::Text),
    optional("manifests", Shape::List(&DESCRIPTOR)),
    optional("config", DESCRIPTOR),
    optional("layers", Shape::List(&DESCRIPTOR)),
];

impl keys::Document for OciLayout {
    const SHAPE: Shape = Shape::Object(&[required("imageLayoutVersion", Shape::Text)]);
}

/// An index or a manifest.
#[derive(Debug)]
pub(super) enum Document {
    /// A list of manifests or further indexes.
    Index(Vec<Descriptor>),
    /// A config and layers.
    Manifest(Box<ImageManifest>),
}

/// Reads an index or a manifest. `expected`, the media type of its descriptor, decides which of the two it is. The document must
/// not contradict it ([CVE-2021-41190](https://nvd.nist.gov/vuln/detail/CVE-2021-41190)).
///
/// # Errors
/// The reason why the document is rejected.
pub(super) fn read(bytes: &[u8], expected: Option<&str>) -> Result<Document, String> {
    judge(parse(bytes)?, expected)
}

/// Reads an index or a manifest of a registry. `named`, the media type in the response, decides which of the two it is. If it is
/// `None`, the document's `mediaType` decides.
///
/// # Errors
/// The reason why the document is rejected.
pub(super) fn read_typed(bytes: &[u8], named: Option<&str>) -> Result<Document, String> {
    let written = parse(bytes)?;
    let media_type = named.or(own_type(&written)).map(str::to_owned);
    let document = judge(written, media_type.as_deref())?;
    media_type.map(|_| document).ok_or_else(|| "it has no mediaType".to_owned())
}

fn parse(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    match keys::walk(bytes, Shape::Object(DOCUMENT)) {
        Ok(Value::Object(written)) => Ok(written),
        Ok(_) => Err("it is not a JSON object".to_owned()),
        Err(error) => Err(error),
    }
}

fn own_type(written: &Map<String, Value>) -> Option<&str> {
    written.get("mediaType")?.as_str()
}

fn judge(written: Map<String, Value>, expected: Option<&str>) -> Result<Document, String> {
    let own = own_type(&written);
    let is_index = written.contains_key("manifests");
    let is_manifest = written.contains_key("layers") || written.contains_key("config");
    if written.get("schemaVersion") == Some(&json!(1)) {
        return Err(media::SCHEMA_1.to_owned());
    }
    if is_index && is_manifest {
        return Err("it is a manifest and an index at once".to_owned());
    }
    if let (Some(expected), Some(found)) = (expected, own)
        && expected != found
    {
        return Err(format!("its own mediaType is {found:?}, but it is described as {expected:?}"));
    }
    let kind = match expected.or(own) {
        Some(media_type) => Kind::of(media_type)?,
        None if is_index => Kind::Index,
        None => Kind::Manifest,
    };
    match kind {
        Kind::Index if is_manifest => {
            Err("it is described as an index, but is a manifest".to_owned())
        }
        Kind::Index => typed(written, "manifests")
            .map(|it: ImageIndex| Document::Index(it.manifests().clone())),
        Kind::Manifest if is_index => {
            Err("it is described as a manifest, but is an index".to_owned())
        }
        Kind::Manifest => manifest(written).map(|it| Document::Manifest(Box::new(it))),
    }
}

/// Reads the `index.json` of a layout.
///
/// # Errors
/// The reason why the document is rejected.
pub(super) fn read_index(bytes: &[u8]) -> Result<Vec<Descriptor>, String> {
    match read(bytes, Some(MediaType::ImageIndex.as_ref()))? {
        Document::Index(manifests) => Ok(manifests),
        Document::Manifest(_) => Err("it is a manifest".to_owned()),
    }
}

fn manifest(written: Map<String, Value>) -> Result<ImageManifest, String> {
    if !written.contains_key("config") {
        return Err("it names no config".to_owned());
    }
    let manifest: ImageManifest = typed(written, "layers")?;
    let config = manifest.config().media_type();
    if media::family(config.as_ref()) == MediaType::ImageConfig {
        return Ok(manifest);
    }
    let what = manifest.artifact_type().as_ref().unwrap_or(config).as_ref();
    Err(format!("it is not an image, but an artifact of type {what:?}"))
}

/// Converts a document. `list` is the key of its list, such as `layers`, which may be absent.
fn typed<T: DeserializeOwned>(mut written: Map<String, Value>, list: &str) -> Result<T, String> {
    written.entry("schemaVersion").or_insert(json!(2));
    written.entry(list).or_insert(json!([]));
    keys::typed(written.into())
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
        assert!(manifest.layers().is_empty());
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
        it is described as an index, but is a manifest
        it is described as a manifest, but is an index
        its own mediaType is "application/vnd.oci.image.index.v1+json", but it is described as "application/vnd.oci.image.manifest.v1+json"
        it is described as an index, but is a manifest
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
        it is in Docker's old format (schema 1)
        it is not an image, but an artifact of type "application/vnd.example.chart.v1+json"
        it is not an image, but an artifact of type "application/vnd.example.sbom"
        it names no config
        it is of type "text/plain", which is not an image
        expected an object at line 1 column 2
        duplicate field `layers` at line 1 column 21
        "#);
    }
}
