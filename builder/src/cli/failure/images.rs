//! The rows of the table of errors for images that cannot be read, and boxes that cannot be exported.

use std::borrow::Cow;
use std::path::Path;

use box_image::ErrorCode as Code;
use box_inspect::diff::{ImageError, ImageFault};
use box_inspect::export::ExportError;
use host_fs::publish::PublishError;
use oci_image::{Form, Found, SourceError, Unread};

use super::{Advice, Explain};

/// What to do, where that is known.
type Help = Option<Cow<'static, str>>;

impl Explain for SourceError {
    fn advice(&self) -> Advice {
        let code = match self {
            Self::Registry { source, .. } => return source.advice(),
            Self::Store(source) => return source.advice(),
            Self::NotAnImage { found: Found::Nothing | Found::Lacks(_), .. }
            | Self::Gone { .. } => Code::ImageNotFound,
            Self::Choice { .. } => Code::ImageAmbiguous,
            Self::Platform { .. } => Code::ImagePlatform,
            Self::TooLarge { .. } => Code::TooLarge,
            Self::Damaged { .. } => Code::DigestMismatch,
            Self::NotAsked { .. } => Code::Offline,
            Self::Io { .. } => Code::Io,
            _ => Code::ImageMalformed,
        };
        Advice { code, help: image(self) }
    }
}

impl Explain for ImageError {
    fn advice(&self) -> Advice {
        match &self.source {
            ImageFault::Source(source) => source.advice(),
            ImageFault::Layer(source) => source.advice(),
            ImageFault::Excess(_) => Code::TooLarge.into(),
        }
    }
}

impl Explain for ExportError {
    fn advice(&self) -> Advice {
        let code = match self {
            Self::Open(source) => return source.advice(),
            Self::Publish(PublishError::Exists { .. }) => Code::OutputExists,
            Self::Publish(source) => return source.advice(),
            Self::NoComponent { .. } | Self::WhichComponent => Code::ComponentNotFound,
            Self::NoPlace { .. } => Code::ExportUnsupported,
            Self::Io { .. } | Self::Write(_) => Code::Io,
            _ => Code::BoxDamaged,
        };
        Advice { code, help: export(self) }
    }
}

/// Returns what to do about an image that cannot be read.
fn image(error: &SourceError) -> Help {
    Some(Cow::Borrowed(match error {
        SourceError::NotAnImage { path, expected, found } => {
            return instead(path, *expected, *found);
        }
        SourceError::Choice { count: 0, .. } => "put an image into it",
        SourceError::Choice { count: 1, names, .. } if names.is_empty() => {
            "its only image has no name: leave the name out of the reference"
        }
        SourceError::Choice { names, .. } if names.is_empty() => {
            "its images have no names: save each in a place of its own"
        }
        SourceError::Choice { form, .. } => {
            return Some(format!("name one as {:?}", form.reference()).into());
        }
        SourceError::Malformed(_) => "build the image again with a current tool, or copy it again",
        SourceError::TooLarge { .. } => "build the image with less in it",
        SourceError::MissingBlob { .. } => "the image is incomplete: copy it again",
        SourceError::Damaged { .. } => "the image is damaged: copy it again",
        SourceError::LayerType { why: Unread::Foreign, .. } => {
            "build the image on a base without such layers"
        }
        SourceError::LayerType { why: Unread::Encrypted, .. } => {
            "decrypt the image when it is copied"
        }
        SourceError::NotAsked { .. } => "run the same command once without --offline",
        _ => return None,
    }))
}

/// Returns what to write or run where a path has something else than an image.
fn instead(path: &Path, expected: Form, found: Found) -> Help {
    let path = path.display();
    Some(Cow::Owned(match (found, expected) {
        (Found::Nothing, Form::OciArchive | Form::DockerArchive) => {
            "a relative path starts from the directory of the file that names it".to_owned()
        }
        (Found::Nothing | Found::Lacks(_), Form::Layout) => {
            format!("copy an image there: skopeo copy docker://NAME oci:{path}:latest")
        }
        (Found::File, _) => format!("write \"oci-archive:{path}\" or \"docker-archive:{path}\""),
        (Found::Directory, _) => format!("an image layout in a directory is \"oci:{path}\""),
        (Found::SkopeoDirectory, _) => format!("run: skopeo copy dir:{path} oci:IMAGE:latest"),
        (Found::Compressed { program, .. }, _) => format!(
            "an archive is read in place: run `{program} {path}`, and name the file that this leaves"
        ),
        (Found::Lacks(_), Form::OciArchive) => {
            format!("make it with `skopeo copy docker://NAME oci-archive:{path}`")
        }
        (Found::Lacks(_), _) => format!("make it with `docker save NAME -o {path}`"),
        (Found::OciArchive, _) => format!("write \"oci-archive:{path}\""),
        (Found::DockerArchive, _) => format!("write \"docker-archive:{path}\""),
        (Found::OldDockerArchive, _) => "load it into a newer docker, and save it again".to_owned(),
        (Found::Nothing | Found::Empty | Found::NoArchive, _) => return None,
    }))
}

/// Returns what to do about a box that is not exported.
fn export(error: &ExportError) -> Help {
    Some(Cow::Borrowed(match error {
        ExportError::NoComponent { .. } => "leave out `--component`, or name the other",
        ExportError::WhichComponent => {
            "say which with `--component agent` or `--component business`"
        }
        ExportError::Damaged(_) => "copy or build the box again",
        ExportError::NoPlace { form: "a tar archive", .. } => {
            "export the box with `--format dir` or `--format erofs`"
        }
        ExportError::NoPlace { .. } => "export it with `--format tar`",
        ExportError::Publish(PublishError::Exists { .. }) => {
            "remove it, or name another place with --output"
        }
        _ => return None,
    }))
}
