//! apk's database (apk-tools, `apk-package(5)` and `db/installed`): paragraphs of one-letter fields.
//! `P` name, `V` version, `A` architecture, `L` license, `m` maintainer, `I` installed size, `F` a directory, `R` a file
//! in it.

use std::io;

use super::database::{self, Format, Installed, Paragraph, value};
use super::scan::Scan;

/// The paths of apk's database: of apk-tools 2, of apk-tools 2 with a merged `/usr`, and of apk-tools 3.
pub const APK_DATABASES: [&str; 3] =
    ["/lib/apk/db/installed", "/usr/lib/apk/db/installed", "/var/lib/apk/db/installed"];

const INSTALLED: Format = Format {
    limit: 64 << 20,
    kind: ("apk", "alpine"),
    fields: ["P", "V", "A", "L", "m", "I"],
    unit: 1,
    take,
    is_installed: |_| true,
    // Every layer that installs a package rewrites the whole database, so the package's origin is taken from its files.
    files: |paragraph| first_file(paragraph).into_iter().collect(),
};

/// Reads the database of a component.
pub(super) fn read(scan: &mut Scan<'_, '_>, installed: &Installed<'_>) -> io::Result<()> {
    let mut files = APK_DATABASES.into_iter();
    files.try_for_each(|file| database::read(scan, installed, file, &INSTALLED))
}

/// Keeps the first value of each needed field, and of the directories the last before the first file.
/// Names are case-sensitive: `p` is another field than `P`.
fn take<'t>(paragraph: &mut Paragraph<'t>, name: &'t str, value: &'t str) {
    let at = |name: &str| paragraph.iter().position(|(found, _)| *found == name);
    match (name, at(name)) {
        ("P" | "V" | "A" | "L" | "m" | "I" | "F" | "R", None)
            if name != "F" || at("R").is_none() =>
        {
            paragraph.push((name, value));
        }
        ("F", Some(folder)) if at("R").is_none() => paragraph[folder].1 = value,
        _ => {}
    }
}

fn first_file(paragraph: &Paragraph<'_>) -> Option<String> {
    Some(format!("{}/{}", value(paragraph, "F")?, value(paragraph, "R")?))
}

#[cfg(test)]
mod tests {
    use super::super::database::paragraphs;
    use super::*;

    #[test]
    fn a_package_has_the_folder_of_its_first_file() {
        let text = "p:x\nP:a\nP:b\nF:one\nF:two\nR:first\nF:three\nR:second\n\nP:c\nR:x\nF:y\n";
        let found: Vec<_> = paragraphs(text, take).collect();
        assert_eq!(found[0], [("P", "a"), ("F", "two"), ("R", "first")]);
        assert_eq!(first_file(&found[0]).as_deref(), Some("two/first"));
        assert_eq!(first_file(&found[1]), None);
        let many = "F:a\n".repeat(100_000) + &"R:b\n".repeat(100_000) + &":\n".repeat(100_000);
        assert_eq!(paragraphs(&many, take).map(|it| it.len()).collect::<Vec<_>>(), [2]);
    }
}
