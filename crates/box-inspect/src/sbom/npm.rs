//! npm's installed packages (package.json(5)): `node_modules/NAME/package.json` and
//! `node_modules/@SCOPE/NAME/package.json`.

use std::rc::Rc;

use box_tree::Tree;
use box_tree::listing::NamedOrigin;
use box_tree::path::split;
use serde::Deserialize;
use serde_json::Value;

use super::license::Declared;
use super::package::{Package, is_word, purl};

/// The type of the package URLs.
pub(super) const KIND: &str = "npm";

/// The fields of a package.json that are read. In the wild, any field can be of any type.
#[derive(Debug, Deserialize)]
struct Manifest {
    name: Option<Value>,
    version: Option<Value>,
    license: Option<Value>,
    /// The predecessor of `license`: a list of objects.
    licenses: Option<Value>,
}

/// Returns whether a path is the package.json of an installed package, e.g.
/// `node_modules/pad/package.json`.
pub(super) fn is_manifest(path: &[u8]) -> bool {
    let Some(folder) = path.strip_suffix(b"/package.json") else { return false };
    let mut parts = folder.rsplit(|byte| *byte == b'/');
    let (name, above) = (parts.next(), parts.next());
    let over = if above.is_some_and(|it| it.starts_with(b"@")) { parts.next() } else { above };
    name.is_some_and(|it| !it.starts_with(b"@")) && over == Some(b"node_modules")
}

/// Reads a package.json. `None` if it has no name or version.
pub(super) fn package<'a>(
    text: &str,
    path: &[u8],
    origin: Option<NamedOrigin<'a>>,
) -> Option<Package<'a>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let manifest: Manifest = serde_json::from_str(text).ok()?;
    let word = |value: &Option<Value>| {
        let text = value.as_ref()?.as_str()?;
        is_word(text).then(|| text.to_owned())
    };
    let (name, version) = (word(&manifest.name)?, word(&manifest.version)?);
    let lower = name.to_ascii_lowercase();
    let (scope, bare) = match lower.split_once('/') {
        Some((scope, bare)) if scope.starts_with('@') => (scope, bare),
        _ => ("", lower.as_str()),
    };
    let purl = purl(KIND, scope, bare, &version, &[]);
    let license = manifest.license.as_ref().or(manifest.licenses.as_ref()).and_then(license);
    let license = license.as_deref().and_then(Declared::new);
    Some(Package {
        kind: KIND,
        name,
        version,
        purl,
        license,
        supplier: None,
        path: Rc::from(path),
        size: None,
        origin,
    })
}

/// Reads a license: a text, an object with a type, or a list of these, of which any may be chosen.
fn license(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Object(fields) => fields.get("type")?.as_str().map(str::to_owned),
        Value::Array(several) => {
            let several = several.iter().filter(|it| !it.is_array());
            let several: Vec<String> = several.filter_map(license).collect();
            (!several.is_empty()).then(|| several.join(" OR "))
        }
        _ => None,
    }
}

/// Returns the size of the files of the package whose `package.json` is at `path`, in bytes, without the packages in its
/// `node_modules`.
pub(super) fn size(tree: &Tree, path: &[u8]) -> u64 {
    let (mut size, mut pending) = (0u64, Vec::new());
    pending.extend(tree.reach(split(path).0).ok());
    while let Some(directory) = pending.pop() {
        for (name, id) in tree.inode(directory).names().into_iter().flatten() {
            let inode = tree.inode(*id);
            size = size.saturating_add(inode.content().map_or(0, |it| it.size));
            if inode.names().is_some() && **name != *b"node_modules" {
                pending.push(*id);
            }
        }
    }
    size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_has_the_size_of_its_files_without_the_packages_in_it() {
        use box_tree::{Content, Inode, InodeId, Leaf, Meta};

        let mut tree = Tree::default();
        let mut make = |above: InodeId, name: &str, size: u64| {
            let leaf = Leaf::File(Content { size, ..Content::of(b"") });
            let inode = match size {
                0 => Inode::directory(Meta::root_owned(0o755)),
                _ => Inode::leaf(Meta::root_owned(0o644), leaf),
            };
            let id = tree.add(inode);
            tree.link(above, name.as_bytes(), id);
            id
        };
        let modules = make(Tree::ROOT, "node_modules", 0);
        let package = make(modules, "a", 0);
        make(package, "package.json", 5);
        let library = make(package, "lib", 0);
        make(library, "index.js", 70);
        let inner = make(package, "node_modules", 0);
        make(inner, "other.js", 900);
        assert_eq!(size(&tree, b"/node_modules/a/package.json"), 75);
        assert_eq!(size(&tree, b"/nowhere/package.json"), 0);
    }

    #[test]
    fn only_packages_that_are_installed_count() {
        for (path, expected) in [
            ("/app/node_modules/left-pad/package.json", true),
            ("/app/node_modules/@scope/pad/package.json", true),
            ("/app/node_modules/a/node_modules/b/package.json", true),
            ("/app/node_modules/@scope/package.json", false),
            ("/app/node_modules/a/lib/package.json", false),
            ("/app/package.json", false),
            ("/node_modules/package.json", false),
        ] {
            assert_eq!(is_manifest(path.as_bytes()), expected, "{path}");
        }
    }

    #[test]
    fn all_forms_of_a_license_are_read() {
        for (text, expected) in [
            (r#""MIT""#, Some("MIT")),
            (r#"{"type":"ISC","url":"x"}"#, Some("ISC")),
            (r#"[{"type":"MIT"},"GPL-2.0-only",[["x"]]]"#, Some("MIT OR GPL-2.0-only")),
            ("[]", None),
            ("7", None),
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(license(&value).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_package_needs_a_name_and_a_version() {
        let read = |text| package(text, b"/x", None);
        let found =
            read("\u{feff}{\"name\":\"@S/Pad\",\"version\":\"1.0\",\"license\":7}").unwrap();
        assert_eq!((found.purl.as_str(), found.license), ("pkg:npm/%40s/pad@1.0", None));
        for bad in [
            r#"{"name":"a"}"#,
            r#"{"name":7,"version":"1"}"#,
            "[",
            "",
            "{\"name\":\"a b\",\"version\":\"1\"}",
        ] {
            assert!(read(bad).is_none(), "{bad}");
        }
        assert!(read(&format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000))).is_none());
    }
}
