//! Databases that consist of paragraphs of `Name: value` lines: dpkg's status (deb-control(5)), Python's
//! metadata (in the format of mail headers), apk's index (without the space).

use std::io;
use std::rc::Rc;

use box_tree::listing::NamedOrigin;

use super::license::Declared;
use super::package::{Package, is_word, purl, supplier};
use super::release::Distribution;
use super::root::Root;
use super::scan::Scan;

/// A component whose databases are read.
#[derive(Debug)]
pub(super) struct Installed<'i> {
    pub(super) root: &'i Root,
    /// The distribution of the component's packages.
    pub(super) distribution: Distribution,
}

/// The format of a package manager's database.
pub(super) struct Format {
    /// The maximum size of a file, in bytes.
    pub(super) limit: u64,
    /// The purl type of the packages, and their namespace if the distribution is unknown.
    pub(super) kind: (&'static str, &'static str),
    /// The names of the lines with name, version, architecture, license, maintainer and installed size.
    pub(super) fields: [&'static str; 6],
    /// The unit of the installed size, in bytes.
    pub(super) unit: u64,
    /// Adds a line to the paragraph if the line is needed.
    pub(super) take: for<'t> fn(&mut Paragraph<'t>, &'t str, &'t str),
    /// Returns whether a paragraph describes a package whose files are present.
    pub(super) is_installed: fn(&Paragraph<'_>) -> bool,
    /// Returns paths of the package's files. The package gets the origin of the first file that has one.
    pub(super) files: fn(&Paragraph<'_>) -> Vec<String>,
}

/// Reads a file of a component's database. Skips a file that does not exist or was read by another path.
pub(super) fn read(
    scan: &mut Scan<'_, '_>,
    installed: &Installed<'_>,
    path: &str,
    format: &Format,
) -> io::Result<()> {
    let root = installed.root.databases.as_str();
    let Some(text) = scan.file(root, path, (Some(format.kind.0), format.limit))? else {
        return Ok(());
    };
    let (whole, origin) = (format!("{root}{path}"), scan.origin(root, path));
    let file = Rc::from(whole.as_bytes());
    for paragraph in paragraphs(&text, format.take).filter(format.is_installed) {
        if !scan.has_room(&whole) {
            break;
        }
        add(scan, installed, format, &file, origin, &paragraph);
    }
    Ok(())
}

/// Adds the package of a paragraph. If its files have no origin, it gets `origin`, the origin of the database file.
pub(super) fn add<'a>(
    scan: &mut Scan<'a, '_>,
    installed: &Installed<'_>,
    format: &Format,
    file: &Rc<[u8]>,
    origin: Option<NamedOrigin<'a>>,
    paragraph: &Paragraph<'_>,
) {
    match package(scan, installed, format, file, paragraph) {
        Some(package) => {
            let origin = package.origin.or(origin);
            scan.packages.push(Package { origin, ..package });
        }
        None => {
            let file = String::from_utf8_lossy(file);
            scan.note(&file, "an entry has no name or version that a package can have");
        }
    }
}

/// Reads the package of a paragraph. `None` if it has no valid name or version.
fn package<'a>(
    scan: &mut Scan<'a, '_>,
    Installed { root, distribution }: &Installed<'_>,
    format: &Format,
    file: &Rc<[u8]>,
    paragraph: &Paragraph<'_>,
) -> Option<Package<'a>> {
    let [name, version, arch, license, maintainer, size] =
        format.fields.map(|it| value(paragraph, it));
    let [name, version, arch] = [name, version, arch].map(|it| it.filter(|it| is_word(it)));
    let (name, version, (kind, namespace)) = (name?, version?, format.kind);
    let namespace = if distribution.id.is_empty() { namespace } else { &distribution.id };
    let qualifiers = [("arch", arch.unwrap_or_default()), ("distro", &distribution.release)];
    Some(Package {
        kind,
        purl: purl(kind, namespace, name, version, &qualifiers),
        name: name.to_owned(),
        version: version.to_owned(),
        license: license.and_then(Declared::new),
        supplier: maintainer.and_then(supplier),
        origin: (format.files)(paragraph).iter().find_map(|file| root.origin(scan, file)),
        path: Rc::clone(file),
        size: size.and_then(|it| it.parse::<u64>().ok()?.checked_mul(format.unit)),
    })
}

/// The wanted lines of a paragraph, each a name and a value. Other lines are dropped, because a large file may be a
/// single paragraph.
pub(super) type Paragraph<'t> = Vec<(&'t str, &'t str)>;

/// Splits a text into paragraphs, which are separated by empty lines. Continuation lines and lines without a colon are
/// skipped. `take` adds each other line to the paragraph or drops it.
pub(super) fn paragraphs<'t>(
    text: &'t str,
    take: fn(&mut Paragraph<'t>, &'t str, &'t str),
) -> impl Iterator<Item = Paragraph<'t>> {
    let mut lines = text.lines();
    std::iter::from_fn(move || {
        let (mut paragraph, mut is_empty) = (Vec::new(), true);
        for line in lines.by_ref() {
            let line = line.trim_end();
            if line.is_empty() && !is_empty {
                return Some(paragraph);
            }
            let field = line.split_once(':').filter(|_| !line.starts_with([' ', '\t']));
            if let Some((name, value)) = field {
                is_empty = false;
                take(&mut paragraph, name, value.trim());
            }
        }
        (!is_empty).then_some(paragraph)
    })
}

/// Takes the first line of each wanted name. Names are compared without case.
pub(super) fn take_first<'t>(
    wanted: &[&str],
    paragraph: &mut Paragraph<'t>,
    name: &'t str,
    text: &'t str,
) {
    let is_wanted = wanted.iter().any(|it| it.eq_ignore_ascii_case(name));
    if is_wanted && value(paragraph, name).is_none() {
        paragraph.push((name, text));
    }
}

/// Returns the first value of a name, compared case-insensitively.
pub(super) fn value<'t>(paragraph: &Paragraph<'t>, name: &str) -> Option<&'t str> {
    paragraph.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take<'t>(paragraph: &mut Paragraph<'t>, name: &'t str, value: &'t str) {
        take_first(&["a", "b", "c"], paragraph, name, value);
    }

    #[test]
    fn paragraphs_have_the_first_of_the_wanted_lines() {
        let text = "\n\nA: 1\n continued\nb:2:3\nno colon\na: second\nD:\n\n\n  \nC:\n\nD: 1\n";
        let found: Vec<_> = paragraphs(text, take).collect();
        assert_eq!(found, [vec![("A", "1"), ("b", "2:3")], vec![("C", "")], vec![]]);
        assert_eq!(value(&found[0], "a"), Some("1"));
        assert_eq!(value(&found[0], "c"), None);
        assert_eq!(paragraphs("", take).count(), 0);
    }

    #[test]
    fn a_paragraph_has_no_more_lines_than_are_wanted() {
        for line in [":\n", "A:\n", "b: 1\nx: 2\n"] {
            let text = line.repeat(100_000);
            let found: Vec<_> = paragraphs(&text, take).collect();
            assert!(found.len() == 1 && found[0].len() <= 1, "{line}");
            assert!(found[0].capacity() < 10, "{line}");
        }
    }
}
