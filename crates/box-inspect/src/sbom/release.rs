//! The Linux distribution of a component:
//! [os-release(5)](https://man7.org/linux/man-pages/man5/os-release.5.html).

use std::io;

use super::package::is_word;
use super::scan::Scan;

/// The paths of os-release, in the order of precedence. The first is usually a symbolic link to the
/// second.
pub(super) const FILES: [&str; 2] = ["/etc/os-release", "/usr/lib/os-release"];
const MAX_FILE: u64 = 64 << 10;

/// A distribution. Empty if no file names it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Distribution {
    /// `ID`: `debian`, `alpine`.
    pub(super) id: String,
    /// `ID-VERSION_ID`, or `ID` if there is no version.
    pub(super) release: String,
}

/// Reads the distribution of the component at a root.
pub(super) fn read(scan: &mut Scan<'_, '_>, root: &str) -> io::Result<Distribution> {
    for file in FILES {
        if let Some(text) = scan.file(root, file, (None, MAX_FILE))? {
            return Ok(parse(&text));
        }
    }
    Ok(Distribution::default())
}

fn parse(text: &str) -> Distribution {
    let value = |name| {
        let lines = text.lines().filter_map(|line| line.trim().split_once('='));
        let value = lines.filter(|(found, _)| *found == name).map(|(_, value)| value).next_back();
        let value = value.unwrap_or_default().trim_matches(['"', '\'']);
        if is_word(value) { value.to_owned() } else { String::new() }
    };
    let (id, version) = (value("ID").to_ascii_lowercase(), value("VERSION_ID"));
    let release = match (id.as_str(), version.as_str()) {
        (id, "") => id.to_owned(),
        ("", _) => String::new(),
        (id, version) => format!("{id}-{version}"),
    };
    Distribution { id, release }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_are_known_by_id_and_version() {
        let debian = parse("PRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\nVERSION_ID=\"12\"\n");
        assert_eq!((debian.id.as_str(), debian.release.as_str()), ("debian", "debian-12"));
        assert_eq!(parse("ID='arch'").release, "arch");
        assert_eq!(parse("ID=\"a b\"\nVERSION_ID=3"), Distribution::default());
    }
}
