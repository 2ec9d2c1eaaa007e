//! Explanations for the errors of archives of boxes.

use std::io::ErrorKind;
use std::path::Path;

use box_archive::ArchiveError;
use box_cache::StoreError;
use box_contract::ErrorCode::*;
use box_contract::image_ref::{OCI, OCI_ARCHIVE};
use box_registry::BoxRegistryError;
use host_fs::FileError;
use host_fs::publish::PublishError;
use safe_text::shell_word;

use super::Explanation;

/// The help for a file that has changed since it was written.
const AGAIN: &str = "copy the file again, or save the boxes again: `boxlaunch save`";
/// The help for an archive that cannot be read as a stream.
const NO_STREAM: &str =
    "write it to a file that is not compressed, and load that: `boxlaunch load FILE`";

impl From<&ArchiveError> for Explanation {
    fn from(error: &ArchiveError) -> Self {
        match error {
            ArchiveError::File(error) => file(error),
            ArchiveError::Missing(_) => BoxNotFound.into(),
            ArchiveError::NotABox { what, .. } => in_place_of_a_box(what),
            ArchiveError::NoBoxes { .. } => no_boxes(),
            ArchiveError::Malformed { .. } => (BoxMalformed, AGAIN).into(),
            ArchiveError::NotAStream { .. } => (BoxMalformed, NO_STREAM).into(),
            ArchiveError::TooMany { .. } | ArchiveError::Attachments { .. } => (TooLarge, "save fewer boxes in one file").into(),
            ArchiveError::WhichBox { what, .. } => (
                Usage,
                format!(
                    "`boxlaunch run {what}@sha256:…` picks one; `boxlaunch load {what}` loads all"
                ),
            )
                .into(),
            ArchiveError::Absent { .. } => {
                (DigestMismatch, "name one of these digests after the @").into()
            }
            ArchiveError::Box(error) => in_archive(error),
            ArchiveError::Open(error) => error.into(),
            ArchiveError::Damaged { .. } => {
                (BoxDamaged, "build the box again, or fetch or load it again").into()
            }
            ArchiveError::NameTaken { .. } => (
                NameTaken,
                "`--replace` gives the name to the box in the file; `boxlaunch run FILE` needs no name",
            )
                .into(),
            ArchiveError::NeedsBase { .. } => (
                BoxNotFound,
                "pull or load that box first, or let the sender save without --since",
            )
                .into(),
            ArchiveError::Store(error) => error.into(),
            ArchiveError::Publish(PublishError::File(error)) => file(error),
            ArchiveError::Publish(error) => error.into(),
            ArchiveError::Within { .. } => {
                (OutputExists, "name another path with --output").into()
            }
            ArchiveError::Write(error) if error.kind() == ErrorKind::StorageFull => DiskFull.into(),
            ArchiveError::Write(_) => Io.into(),
        }
    }
}

impl From<&PublishError> for Explanation {
    fn from(error: &PublishError) -> Self {
        let text = match error {
            PublishError::Exists { what: None, .. } => {
                "name another path with --output, or remove it"
            }
            PublishError::Exists { .. } => {
                "move that away, or name another directory with --output"
            }
            PublishError::Busy { .. } => return Busy.into(),
            PublishError::NotRestored { .. } => return Io.into(),
            PublishError::File(error) => return (&error.source).into(),
        };
        (OutputExists, text).into()
    }
}

/// Explains an image, in a directory or an archive, where a box belongs.
fn in_place_of_a_box(path: &str) -> Explanation {
    let form = if Path::new(path).is_dir() { OCI } else { OCI_ARCHIVE };
    let image = shell_word(format!("{form}{path}"));
    (BoxNotFound, format!("`boxbuild init {image}` begins a box from an image")).into()
}

fn no_boxes() -> Explanation {
    (BoxNotFound, "`boxlaunch save` and `boxbuild save` write files with boxes").into()
}

/// Explains an error of a box in an archive.
fn in_archive(error: &BoxRegistryError) -> Explanation {
    match error {
        BoxRegistryError::Absent { .. }
        | BoxRegistryError::Content { .. }
        | BoxRegistryError::Damaged { .. } => (BoxDamaged, AGAIN).into(),
        BoxRegistryError::Read { source, .. } if source.kind() == ErrorKind::UnexpectedEof => {
            (BoxDamaged, AGAIN).into()
        }
        BoxRegistryError::Malformed { .. } => (BoxMalformed, AGAIN).into(),
        BoxRegistryError::NotABox { .. } => no_boxes(),
        BoxRegistryError::Later { .. } => (BoxMalformed, NO_STREAM).into(),
        BoxRegistryError::Open(error) => error.into(),
        BoxRegistryError::Store(error) => error.into(),
        BoxRegistryError::Sink { source, .. } if StoreError::full(source).is_some() => {
            (DiskFull, "free some space there, or name another directory with --store").into()
        }
        // `Compress`, `Elsewhere` and `Registry` do not occur: loading pushes nothing, and an archive is no
        // registry.
        BoxRegistryError::Read { .. }
        | BoxRegistryError::Sink { .. }
        | BoxRegistryError::Compress { .. }
        | BoxRegistryError::Elsewhere { .. }
        | BoxRegistryError::Registry(_) => Io.into(),
    }
}

fn file(error: &FileError) -> Explanation {
    match error.source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            (DiskFull, "free some space there, or name another path").into()
        }
        _ => Io.into(),
    }
}
