//! The SPDX document (SPDX specification 2.3), with the fields that an SBOM of a box needs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, BufWriter, Write};

use box_digest::{Blake3, Blake3Digest, Digest, Hasher};
use safe_text::shown;
use serde::Serialize;
use serde_json::{Value, json};

use super::license::{Licenses, UNSAID};
use super::package::Package;
use super::parts;

const DOCUMENT_ID: &str = "SPDXRef-DOCUMENT";
/// The specification requires a time. The time of the build would make the document different for each build.
const CREATED: &str = "1970-01-01T00:00:00Z";
const ABOUT_CREATED: &str = "The time is not that of a build: the same input gives the same bytes.";

/// An SPDX document. All elements are sorted by their identifiers.
#[derive(Debug)]
pub struct Document {
    name: String,
    comment: String,
    licenses: Licenses,
    items: BTreeMap<String, Item>,
    relationships: BTreeSet<Relationship>,
    /// The identifiers of the packages from databases of `keep_databases`, by their package URLs.
    kept: HashMap<String, String>,
}

/// A package in the sense of SPDX: anything that is distributed as a whole.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Item {
    #[serde(rename = "SPDXID")]
    pub(super) id: String,
    pub(super) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) version_info: String,
    supplier: String,
    download_location: &'static str,
    files_analyzed: bool,
    license_concluded: &'static str,
    license_declared: String,
    copyright_text: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    checksums: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_refs: Option<[ExternalRef; 1]>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) source_info: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) primary_package_purpose: Option<&'static str>,
}

/// The package URL of a package. A document can have a hundred thousand of them, and a `Value` for each would take more
/// memory than its content.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct ExternalRef {
    reference_category: &'static str,
    reference_locator: String,
    reference_type: &'static str,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
struct Relationship {
    spdx_element_id: String,
    relationship_type: &'static str,
    related_spdx_element: String,
}

/// The document as it is written.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    spdx_version: &'static str,
    data_license: &'static str,
    #[serde(rename = "SPDXID")]
    id: &'static str,
    name: &'a str,
    document_namespace: String,
    comment: &'a str,
    creation_info: Value,
    packages: Vec<&'a Item>,
    relationships: &'a BTreeSet<Relationship>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    has_extracted_licensing_infos: Vec<Value>,
}

impl Item {
    /// Makes an item of which only the name is known.
    pub(super) fn new(kind: &str, name: &str) -> Self {
        Self {
            id: item_id(kind, name),
            name: shown(name),
            version_info: String::new(),
            supplier: UNSAID.to_owned(),
            download_location: UNSAID,
            files_analyzed: false,
            license_concluded: UNSAID,
            license_declared: UNSAID.to_owned(),
            copyright_text: UNSAID,
            checksums: Vec::new(),
            external_refs: None,
            source_info: String::new(),
            primary_package_purpose: None,
        }
    }

    /// Adds the sha256 of the item's bytes.
    pub(super) fn with_sha256(mut self, digest: &Digest) -> Self {
        self.checksums.push(json!({ "algorithm": "SHA256", "checksumValue": digest.hex() }));
        self
    }

    /// Adds the sha256 of the item's bytes, which is also its version, because it has no other.
    pub(super) fn known_by(mut self, digest: &Digest) -> Self {
        self.version_info = digest.to_string();
        self.with_sha256(digest)
    }
}

impl Document {
    /// Starts a document about the box of a tree.
    pub(super) fn new(name: String, tree: Blake3Digest, notes: &[String]) -> Self {
        let mut comment = format!("The box has the tree {tree}.");
        if !notes.is_empty() {
            comment += &shown(&format!(" Left out: {}.", notes.join("; ")));
        }
        Self {
            name,
            comment,
            licenses: Licenses::default(),
            items: BTreeMap::new(),
            relationships: BTreeSet::new(),
            kept: HashMap::new(),
        }
    }

    /// Adds the item that the document describes.
    pub(super) fn describe(&mut self, item: Item) {
        self.relate(DOCUMENT_ID, "DESCRIBES", &item.id);
        self.items.insert(item.id.clone(), item);
    }

    /// Adds an item, and the relationship that the item `container` contains it.
    pub(super) fn contain(&mut self, container: &str, item: Item) {
        self.relate(container, "CONTAINS", &item.id);
        self.items.insert(item.id.clone(), item);
    }

    /// Adds a package of a database. If both images of a merged root have the package, it becomes one
    /// item, which both images contain.
    pub(super) fn add(&mut self, package: &Package<'_>) {
        let container = parts::container(package.origin.as_ref());
        let known = self.kept.get(&package.purl).filter(|_| package.is_kept()).cloned();
        if let Some(item) = known.as_ref().and_then(|id| self.items.get_mut(id)) {
            item.source_info += &format!("; {}", source(package));
            let id = item.id.clone();
            return self.relate(&container, "CONTAINS", &id);
        }
        let item = self.item(package, &container);
        if package.is_kept() {
            self.kept.insert(package.purl.clone(), item.id.clone());
        }
        self.contain(&container, item);
    }

    fn item(&mut self, package: &Package<'_>, container: &str) -> Item {
        let Package { kind, name, version, purl, license, supplier, path, .. } = package;
        let place = [container.as_bytes(), b"\0", purl.as_bytes(), b"\0", path.as_ref()].concat();
        let mut item = Item::new(kind, name);
        item.id = id(kind, &[name, version], &place);
        item.version_info.clone_from(version);
        item.license_declared = self.licenses.expression(license.as_ref());
        item.external_refs = Some([ExternalRef {
            reference_category: "PACKAGE-MANAGER",
            reference_locator: purl.clone(),
            reference_type: "purl",
        }]);
        if let Some(supplier) = supplier {
            item.supplier.clone_from(supplier);
        }
        item.source_info = source(package);
        item
    }

    fn relate(&mut self, element: &str, relationship_type: &'static str, related: &str) {
        self.relationships.insert(Relationship {
            spdx_element_id: element.to_owned(),
            relationship_type,
            related_spdx_element: related.to_owned(),
        });
    }

    /// Writes the document. Its namespace is a hash of all other fields, so different documents have different namespaces.
    /// Each write to `out` passes whole characters.
    ///
    /// # Errors
    /// The error of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut written = self.written();
        let mut hasher = BufWriter::new(Hasher::<Blake3>::default());
        serde_json::to_writer(&mut hasher, &written)?;
        let hash = hasher.into_inner()?.digest();
        written.document_namespace = format!("urn:boxbuild:sbom:{}", hash.hex());
        Ok(serde_json::to_writer(out, &written)?)
    }

    fn written(&self) -> Written<'_> {
        let licenses = self.licenses.0.iter();
        Written {
            spdx_version: "SPDX-2.3",
            data_license: "CC0-1.0",
            id: DOCUMENT_ID,
            name: &self.name,
            document_namespace: String::new(),
            comment: &self.comment,
            creation_info: json!({
                "created": CREATED, "creators": ["Tool: boxbuild"], "comment": ABOUT_CREATED,
            }),
            packages: self.items.values().collect(),
            relationships: &self.relationships,
            has_extracted_licensing_infos: licenses
                .map(|(id, text)| json!({ "licenseId": id, "extractedText": text }))
                .collect(),
        }
    }
}

/// Returns the file that lists a package, and the package's origin.
fn source(package: &Package<'_>) -> String {
    let from = package.origin.map(|origin| format!(", from {}", parts::whole(&origin)));
    let path = String::from_utf8_lossy(&package.path);
    shown(&format!("{path}{}", from.unwrap_or_default()))
}

/// Returns the identifier of an item whose kind and name are unique in the document.
pub(super) fn item_id(kind: &str, name: &str) -> String {
    id(kind, &[name], b"")
}

/// Returns the identifier of an item: its kind, its names, and a hash of the names and `place`, which makes the identifier
/// unique.
fn id(kind: &str, names: &[&str], place: &[u8]) -> String {
    let names = names.join("-");
    let hash = Blake3Digest::of(&[names.as_bytes(), b"\0", place].concat()).hex();
    let allowed = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-');
    let safe: String = names.chars().map(|it| if allowed(it) { it } else { '-' }).collect();
    format!("SPDXRef-{kind}-{safe}-{}", &hash[..16])
}
