//! `config.toml`: the box of projects without a Boxfile, as the user wants it.
//!
//! ```toml
//! box = "ghcr.io/acme/agent:2"
//! ```

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};

use box_contract::ErrorCode;
use box_find::BoxReference;
use diagnostics::edited::text_faults;
use diagnostics::{Diagnostic, Source, Sources, Span};
use host_fs::read::{self, Links, read_file};
use host_fs::trust::Trusted;
use host_fs::{FileError, own};
use safe_text::{quote, shown, with_causes};
use serde::Deserialize;
use toml::Spanned;

use crate::cli::error::{Failure, found};

/// The name of the file in the directory of the configuration.
const CONFIG: &str = "config.toml";
/// The greatest size of the file, in bytes.
const MAX_CONFIG: u64 = 1 << 20;
/// The help for an error that has no other help.
const EXAMPLE: &str = "docs/environments.md has an example";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(rename = "box")]
    subject: Option<Spanned<String>>,
}

/// Returns the path of the file, which need not exist.
pub(super) fn path() -> Option<PathBuf> {
    Some(own::launcher_configuration(|name| env::var_os(name))?.join(CONFIG))
}

/// Returns the box of projects that declare none. `None` if the user has set none.
pub(super) fn default_box() -> Result<Option<PathBuf>, Failure> {
    path().map_or(Ok(None), |it| read_box(&it, |name| env::var_os(name)))
}

/// Reads the box in the file at `path`. `variable` returns the value of an environment variable.
fn read_box(
    path: &Path,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Option<PathBuf>, Failure> {
    if path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Ok(None);
    }
    // Whoever can change the file decides which box gets the user's projects.
    let stranger = Trusted::of_user(variable).untrusted_user_on_path(path);
    let stranger = stranger.map_err(|it| unreadable(&FileError::of("examine", path)(it)))?;
    if let Some(stranger) = stranger {
        let help = "only its owner may change it and its directory";
        let message = format!("{} cannot be used: {stranger}", path.display());
        return Err(Failure::new((ErrorCode::ConfigInvalid, help), shown(&message)));
    }
    let bytes = read_file(path, Links::Follow, MAX_CONFIG).map_err(FileError::of("read", path));
    let text = bytes.and_then(|it| read::text(path, it)).map_err(|error| unreadable(&error))?;
    parse(&text).map_err(|faults| {
        let sources = Sources::single(Source::new(path.display().to_string(), text));
        found(ErrorCode::ConfigInvalid, &faults, &sources)
    })
}

fn unreadable(error: &FileError) -> Failure {
    Failure::new(ErrorCode::ConfigInvalid, shown(&with_causes(error)))
}

/// Parses the text of the file.
fn parse(text: &str) -> Result<Option<PathBuf>, Vec<Diagnostic>> {
    let faults = text_faults(text);
    if !faults.is_empty() {
        return Err(faults);
    }
    let config: Config = toml::from_str(text).map_err(|error| {
        let place = span(&error.span().unwrap_or_default());
        vec![Diagnostic::new(error.message(), place, "").with_help(EXAMPLE)]
    })?;
    config.subject.map(|it| checked(&it)).transpose().map_err(|fault| vec![fault])
}

/// Checks the form of a box. A relative path would lead to another box in each directory.
fn checked(subject: &Spanned<String>) -> Result<PathBuf, Diagnostic> {
    let (text, place) = (subject.get_ref(), span(&subject.span()));
    let reference = BoxReference::parse(OsStr::new(text));
    let reference = reference
        .map_err(|error| Diagnostic::new(error.to_string(), place, "").with_help(EXAMPLE))?;
    if reference.path().is_some_and(Path::is_relative) {
        let message = format!("{} is not an absolute path", quote(text));
        let help = "write the path of the box from `/`, or its name in the store";
        return Err(Diagnostic::new(message, place, "").with_help(help));
    }
    Ok(text.into())
}

fn span(place: &Range<usize>) -> Span {
    Span::at(place.start, place.len())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Returns the box in a file with this text and mode, or the code and the text of the error.
    fn read(text: &str, mode: u32) -> Result<Option<PathBuf>, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.toml");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        read_box(&path, |_| None).map_err(|error| {
            assert!(error.has(ErrorCode::ConfigInvalid), "{}", error.text());
            error.text().replace(directory.path().to_str().unwrap(), "HOME")
        })
    }

    #[test]
    fn a_box_is_a_name_a_digest_or_an_absolute_path() {
        let digest = format!("sha256:{}", "0".repeat(64));
        for subject in ["python", "ghcr.io/acme/agent:2", "/srv/a.box", "/srv/Boxfile", &digest] {
            let text = format!("# mine\nbox = \"{subject}\"\n");
            assert_eq!(read(&text, 0o600), Ok(Some(subject.into())));
        }
        assert_eq!(read("", 0o644), Ok(None));
        assert_eq!(read_box(Path::new("/none/config.toml"), |_| None).unwrap(), None);
    }

    #[test]
    fn an_error_has_the_file_and_the_line() {
        let refused = |text: &str| read(text, 0o600).unwrap_err();
        for (text, line, message) in [
            ("\nimage = \"python\"\n", 2, "unknown field `image`"),
            ("box = 1\n", 1, "invalid type: integer"),
            ("box = \"a\"\nbox = \"b\"\n", 2, "duplicate key"),
            ("# mine\nbox = \"./a.box\"\n", 2, "`./a.box` is not an absolute path"),
            ("box = \"~/a.box\"\n", 1, "is not an absolute path"),
            ("box = \"a b\"\n", 1, "is neither a path nor the name of a box"),
            ("box = \"\"\n", 1, "is neither a path nor the name of a box"),
        ] {
            let refused = refused(text);
            assert!(refused.contains(message), "{refused}");
            assert!(refused.contains(&format!("HOME/config.toml:{line}:")), "{refused}");
        }
    }

    #[test]
    fn a_file_that_another_user_can_change_is_refused() {
        let refused = read("box = \"python\"", 0o666).unwrap_err();
        assert!(refused.contains("HOME/config.toml cannot be used: everybody can"), "{refused}");
    }
}
