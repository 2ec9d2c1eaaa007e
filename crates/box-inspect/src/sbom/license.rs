//! The license that a package declares, as an [SPDX license
//! expression](https://spdx.github.io/spdx-spec/v2.3/SPDX-license-expressions/) if it is one. Any other text becomes a
//! license that the document defines (`LicenseRef-`).

use std::collections::BTreeMap;

use box_digest::Blake3Digest;
use safe_text::shown;

/// The maximum length of a license's name, in bytes. A longer text is a whole license text.
const MAX_TEXT: usize = 200;
/// The SPDX value of an unknown license.
pub(super) const UNSAID: &str = "NOASSERTION";

/// The licenses that are recognized by their SPDX identifiers. The document's bytes depend on this
/// list, so it does not come from another crate, whose updates would change them.
#[rustfmt::skip]
const KNOWN: [&str; 62] = [
    "0BSD", "AFL-2.1", "AFL-3.0", "AGPL-3.0-only", "AGPL-3.0-or-later", "Apache-1.1", "Apache-2.0",
    "Artistic-1.0-Perl", "Artistic-2.0", "BlueOak-1.0.0", "BSD-1-Clause", "BSD-2-Clause",
    "BSD-3-Clause", "BSD-4-Clause", "BSL-1.0", "bzip2-1.0.6", "CC-BY-3.0", "CC-BY-4.0",
    "CC-BY-SA-3.0", "CC-BY-SA-4.0", "CC0-1.0", "CDDL-1.0", "curl", "EPL-1.0", "EPL-2.0",
    "GFDL-1.3-only", "GFDL-1.3-or-later", "GPL-1.0-only", "GPL-1.0-or-later", "GPL-2.0-only",
    "GPL-2.0-or-later", "GPL-3.0-only", "GPL-3.0-or-later", "HPND", "ICU", "ISC", "LGPL-2.0-only",
    "LGPL-2.0-or-later", "LGPL-2.1-only", "LGPL-2.1-or-later", "LGPL-3.0-only",
    "LGPL-3.0-or-later", "Libpng", "MIT", "MIT-0", "MPL-1.1", "MPL-2.0", "NCSA", "OFL-1.1",
    "OLDAP-2.8", "OpenSSL", "PostgreSQL", "PSF-2.0", "Python-2.0", "Ruby", "Unicode-3.0",
    "Unicode-DFS-2016", "Unlicense", "Vim", "WTFPL", "X11", "Zlib",
];

/// A license as a package declares it, without the spaces around it. Takes no more memory than its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Declared(Box<str>);

impl Declared {
    /// Returns `None` for an empty text and for a whole license text, which could be as long as its file. A box may have a
    /// hundred thousand packages.
    pub(super) fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (1..=MAX_TEXT).contains(&text.len()).then(|| Self(text.into()))
    }
}

/// The licenses that the document defines: the text of each, by its identifier.
#[derive(Debug, Default)]
pub(super) struct Licenses(pub(super) BTreeMap<String, String>);

impl Licenses {
    /// Returns the license expression for the declared license.
    pub(super) fn expression(&mut self, declared: Option<&Declared>) -> String {
        let Some(Declared(text)) = declared else { return UNSAID.to_owned() };
        if is_expression(text) {
            return text.to_string();
        }
        let text = shown(text);
        let hash = Blake3Digest::of(text.as_bytes()).hex();
        let id = format!("LicenseRef-{}", &hash[..16]);
        self.0.insert(id.clone(), text);
        id
    }
}

/// Returns whether a text is an expression of known licenses, `AND`, `OR` and parentheses.
fn is_expression(text: &str) -> bool {
    let spaced = text.replace('(', " ( ").replace(')', " ) ");
    let (mut open, mut wants_license) = (0usize, true);
    for word in spaced.split_whitespace() {
        match word {
            "(" if wants_license => open += 1,
            ")" if !wants_license && open > 0 => open -= 1,
            "AND" | "OR" if !wants_license => wants_license = true,
            word if wants_license && KNOWN.contains(&word) => wants_license = false,
            _ => return false,
        }
    }
    open == 0 && !wants_license
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_kept() {
        for text in ["MIT", "(MIT OR Apache-2.0)", "GPL-2.0-only AND (BSD-3-Clause OR (ISC))"] {
            assert_eq!(Licenses::default().expression(Declared::new(text).as_ref()), text);
        }
    }

    #[test]
    fn anything_else_is_a_license_of_the_documents_own() {
        for text in
            ["MIT BSD", "mit", "(MIT", "MIT)", "AND MIT", "MIT OR", "()", "BSD License\u{9b}"]
        {
            let mut licenses = Licenses::default();
            let id = licenses.expression(Declared::new(text).as_ref());
            assert!(id.starts_with("LicenseRef-"), "{text}: {id}");
            assert_eq!(licenses.0[&id], shown(text));
        }
        let mut licenses = Licenses::default();
        assert_eq!(licenses.expression(None), UNSAID);
        assert!(licenses.0.is_empty());
    }

    #[test]
    fn no_whole_license_text_is_kept() {
        for text in ["", "  ", &"x".repeat(MAX_TEXT + 1), &"MIT ".repeat(1 << 18)] {
            assert_eq!(Declared::new(text), None, "{text:.20}");
        }
        let padded = format!("{0}{1}{0}", " ".repeat(1 << 20), "x".repeat(MAX_TEXT));
        assert_eq!(Declared::new(&padded).unwrap().0.len(), MAX_TEXT);
    }
}
