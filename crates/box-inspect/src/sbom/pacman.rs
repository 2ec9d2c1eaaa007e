//! pacman's database (alpm-db(5), libalpm's `be_local.c`): a directory for each package. Its file `desc` has sections: a line
//! such as `%NAME%`, and then the values, one a line.

use std::io;
use std::rc::Rc;

use super::database::{self, Format, Installed, Paragraph};
use super::scan::Scan;

/// The directory with a subdirectory for each package: `NAME-VERSION-RELEASE`.
const FOLDER: &str = "/var/lib/pacman/local";
/// The separator of several licenses of a package, all of which apply.
const AND: &str = " AND ";

const DESC: Format = Format {
    limit: 1 << 20,
    // The type and the namespace of the package-url specification.
    kind: ("alpm", "arch"),
    fields: ["NAME", "VERSION", "ARCH", "LICENSE", "PACKAGER", "SIZE"],
    unit: 1,
    take: |_, _, _| {},
    is_installed: |_| true,
    files: |_| Vec::new(),
};

/// Reads the database of a component.
pub(super) fn read(scan: &mut Scan<'_, '_>, installed: &Installed<'_>) -> io::Result<()> {
    let root = installed.root.files();
    for name in scan.names(root, FOLDER) {
        let path = format!("{FOLDER}/{name}/desc");
        let Some(text) = scan.file(root, &path, (Some(DESC.kind.0), DESC.limit))? else { continue };
        let (whole, origin) = (format!("{root}{path}"), scan.origin(root, &path));
        if !scan.has_room(&whole) {
            break;
        }
        let licenses = lines(&text, "LICENSE").collect::<Vec<_>>().join(AND);
        let mut paragraph: Paragraph<'_> = Vec::new();
        for field in DESC.fields {
            let value =
                if field == "LICENSE" { Some(&*licenses) } else { lines(&text, field).next() };
            paragraph.extend(value.filter(|it| !it.is_empty()).map(|value| (field, value)));
        }
        database::add(scan, installed, &DESC, &Rc::from(whole.as_bytes()), origin, &paragraph);
    }
    Ok(())
}

/// Returns the lines of a section, up to an empty line.
fn lines<'t>(text: &'t str, section: &str) -> impl Iterator<Item = &'t str> {
    let is_title = move |line: &str| {
        line.strip_prefix('%').and_then(|it| it.strip_suffix('%')) == Some(section)
    };
    let mut lines = text.lines().map(str::trim);
    lines.by_ref().find(|line| is_title(line));
    lines.take_while(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_ends_with_an_empty_line() {
        let text = "%NAME%\nbash\n\n%LICENSE%\nGPL-3.0-or-later\nMIT\n\n%ARCH%\n\n%VERSION%\n5-1\n";
        let of = |section| lines(text, section).collect::<Vec<_>>();
        assert_eq!(of("NAME"), ["bash"]);
        assert_eq!(of("LICENSE"), ["GPL-3.0-or-later", "MIT"]);
        assert_eq!(of("ARCH"), [""; 0]);
        assert_eq!(of("VERSION"), ["5-1"]);
        assert_eq!(of("BASE"), [""; 0]);
    }
}
