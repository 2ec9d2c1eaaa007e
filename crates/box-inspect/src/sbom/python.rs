//! Python's installed distributions (PyPA, "Recording installed projects"): `NAME.dist-info/METADATA`,
//! or, from older tools, `NAME.egg-info/PKG-INFO` or the file `NAME.egg-info`.

use std::rc::Rc;

use box_tree::listing::NamedOrigin;

use super::database::{Paragraph, paragraphs, take_first, value};
use super::license::Declared;
use super::package::{Package, is_word, purl};

/// The type of the package URLs.
pub(super) const KIND: &str = "pypi";

/// Returns whether a path is the metadata of a distribution.
pub(super) fn is_metadata(path: &[u8]) -> bool {
    path.ends_with(b".dist-info/METADATA")
        || path.ends_with(b".egg-info/PKG-INFO")
        || path.ends_with(b".egg-info")
}

/// Reads a distribution's metadata. `None` if it has no name or version.
pub(super) fn package<'a>(
    text: &str,
    path: &[u8],
    origin: Option<NamedOrigin<'a>>,
) -> Option<Package<'a>> {
    let paragraph = paragraphs(text, take).next()?;
    let field = |name| value(&paragraph, name).filter(|it| is_word(it));
    let (name, version) = (field("Name")?, field("Version")?);
    let usual = name.to_ascii_lowercase().replace('_', "-");
    Some(Package {
        kind: KIND,
        purl: purl(KIND, "", &usual, version, &[]),
        name: name.to_owned(),
        version: version.to_owned(),
        license: license(&paragraph).and_then(Declared::new),
        supplier: None,
        path: Rc::from(path),
        size: None,
        origin,
    })
}

fn take<'t>(paragraph: &mut Paragraph<'t>, name: &'t str, value: &'t str) {
    take_first(&["Name", "Version", "License-Expression", "License"], paragraph, name, value);
}

fn license<'t>(paragraph: &Paragraph<'t>) -> Option<&'t str> {
    let license = value(paragraph, "License-Expression").or_else(|| value(paragraph, "License"));
    license.filter(|it| *it != "UNKNOWN")
}
