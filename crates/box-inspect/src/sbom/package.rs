//! A package in a database, and its package URL (the purl specification, ECMA-427).

use std::rc::Rc;

use box_contract::plan::PACKAGES_PATH;
use box_tree::listing::NamedOrigin;
use safe_text::shown;

use super::license::Declared;

/// The maximum length of a name, a version or a maintainer, in bytes.
const MAX_WORD: usize = 256;

/// A package in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Package<'a> {
    /// The type of the package URL: `deb`, `apk`, `alpm`, `pypi` or `npm`.
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) purl: String,
    /// The license as the package declares it.
    pub(super) license: Option<Declared>,
    /// The supplier in the format of SPDX: `Organization: NAME (EMAIL)`.
    pub(super) supplier: Option<String>,
    pub(super) path: Rc<[u8]>,
    /// The size of its files when it is installed, in bytes, as the database declares it.
    pub(super) size: Option<u64>,
    /// The origin of the package's files, or else of the file that lists the package.
    pub(super) origin: Option<NamedOrigin<'a>>,
}

impl Package<'_> {
    /// Returns whether the package is in a database that `keep_databases` has copied.
    pub(super) fn is_kept(&self) -> bool {
        self.path.starts_with(PACKAGES_PATH.as_bytes())
    }
}

/// Returns whether a package can have `text` as its name or version. The rules of the package managers
/// differ, but none allows spaces or characters outside of ASCII.
pub(super) fn is_word(text: &str) -> bool {
    (1..=MAX_WORD).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Formats a maintainer, `NAME <EMAIL>`, as an SPDX supplier: `Organization: NAME (EMAIL)`. Databases do not
/// distinguish people from teams; most maintainers are teams. Returns `None` if there is no name.
pub(super) fn supplier(maintainer: &str) -> Option<String> {
    let text = shown(maintainer.trim());
    let (name, email) = match text.strip_suffix('>').and_then(|it| it.split_once('<')) {
        Some((name, email)) => (name.trim(), email.trim()),
        None => (text.as_str(), ""),
    };
    // Leave out a name in parentheses, because SPDX would read it as an address without a name.
    let has_name = !name.is_empty() && !name.starts_with('(') && text.len() <= MAX_WORD;
    let email = if email.is_empty() { String::new() } else { format!(" ({email})") };
    has_name.then(|| format!("Organization: {name}{email}"))
}

/// Writes `pkg:KIND/NAMESPACE/NAME@VERSION?KEY=VALUE&…`; empty values are left out. The keys must be
/// sorted.
pub(super) fn purl(
    kind: &str,
    namespace: &str,
    name: &str,
    version: &str,
    qualifiers: &[(&str, &str)],
) -> String {
    let mut purl = format!("pkg:{kind}/");
    if !namespace.is_empty() {
        purl += &format!("{}/", encoded(namespace));
    }
    purl += &format!("{}@{}", encoded(name), encoded(version));
    let mut separator = '?';
    for (key, value) in qualifiers.iter().filter(|(_, value)| !value.is_empty()) {
        purl += &format!("{separator}{key}={}", encoded(value));
        separator = '&';
    }
    purl
}

/// Percent-encodes all bytes except the unreserved characters and the colon.
fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => {
                out.push(char::from(byte));
            }
            byte => out += &format!("%{byte:02X}"),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maintainer_with_a_name_is_a_supplier() {
        for (maintainer, expected) in [
            (
                "Debian GCC Maintainers <gcc@d.org>",
                "Organization: Debian GCC Maintainers (gcc@d.org)",
            ),
            ("Jo (at home) <jo@d.org>", "Organization: Jo (at home) (jo@d.org)"),
            ("Team ", "Organization: Team"),
            ("A\u{1b}B <>", "Organization: A\u{fffd}B"),
        ] {
            assert_eq!(supplier(maintainer).as_deref(), Some(expected));
        }
        for nobody in ["", " ", "<jo@d.org>", "(x)", &"x".repeat(300)] {
            assert_eq!(supplier(nobody), None, "{nobody}");
        }
    }

    #[test]
    fn the_specification_s_forms() {
        let deb = purl(
            "deb",
            "debian",
            "libstdc++6",
            "1:12.2~rc+1",
            &[("arch", "amd64"), ("distro", "")],
        );
        assert_eq!(deb, "pkg:deb/debian/libstdc%2B%2B6@1:12.2~rc%2B1?arch=amd64");
        assert_eq!(purl("npm", "@scope", "a", "1.0.0", &[]), "pkg:npm/%40scope/a@1.0.0");
    }
}
