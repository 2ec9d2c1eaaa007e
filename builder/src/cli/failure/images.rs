//! Explanations for images that cannot be read, and boxes that cannot be exported.

use std::path::Path;

use box_contract::ErrorCode::*;
use box_inspect::diff::{ImageError, ImageFault};
use box_inspect::export::ExportError;
use cli_common::Explanation;
use oci_image::{Form, Found, SourceError, Unread};
use safe_text::{shell_path, shell_word};

use super::Explain;
use super::explain::{FETCH_LFS, help};

impl Explain for SourceError {
    fn explain(&self) -> Explanation {
        let (code, text) = match self {
            Self::Registry(source) => return source.explain(),
            Self::Store(source) => return source.explain(),
            Self::NotAnImage { path, expected, found } => {
                let code = match found {
                    Found::Nothing | Found::Lacks(_) => ImageNotFound,
                    _ => ImageMalformed,
                };
                return help(code, other_form(path, *expected, *found));
            }
            Self::Choice { count: 0, .. } => (ImageNotFound, "copy an image into it"),
            Self::Choice { names, form, is_missing, .. } if !names.is_empty() => {
                let code = if *is_missing { ImageNotFound } else { ImageAmbiguous };
                return help(code, format!("name one of these, as {:?}", form.reference()));
            }
            Self::Choice { count: 1, .. } => {
                (ImageAmbiguous, "its only image has no name: leave the name out of the reference")
            }
            Self::Choice { .. } => {
                (ImageAmbiguous, "its images have no names: save each one into its own archive")
            }
            Self::LfsPointer(_) => (ImageMalformed, FETCH_LFS),
            Self::Malformed(_) => {
                (ImageMalformed, "build the image again with a current tool, or copy it again")
            }
            Self::TooLarge { .. } => (TooLarge, "build a smaller image"),
            Self::MissingBlob { .. } => (ImageMalformed, "the image is incomplete: copy it again"),
            Self::Damaged { .. } => (DigestMismatch, "the image is damaged: copy it again"),
            Self::LayerType { reason: Unread::Foreign, .. } => {
                (ImageMalformed, "build the image on a base without such layers")
            }
            Self::LayerType { reason: Unread::Encrypted, .. } => {
                (ImageMalformed, "decrypt the image when it is copied")
            }
            Self::NotAsked { .. } => {
                (Offline, "run `boxbuild fetch`, or this command once without --offline")
            }
            Self::Gone { .. } => {
                (ImageNotFound, "name an existing image, or copy this one there again")
            }
            Self::Platform { wanted, .. } => {
                let build = format!("docker buildx build --platform {wanted}");
                return help(ImagePlatform, format!("take an image for it, or build one: {build}"));
            }
            Self::File(source) => return source.explain(),
            _ => return ImageMalformed.into(),
        };
        help(code, text)
    }
}

impl Explain for ImageError {
    fn explain(&self) -> Explanation {
        match &self.source {
            ImageFault::Source(source) => source.explain(),
            ImageFault::Layer(source) => source.explain(),
            ImageFault::Excess(_) | ImageFault::Paths(_) => TooLarge.into(),
        }
    }
}

impl Explain for ExportError {
    fn explain(&self) -> Explanation {
        let (code, text) = match self {
            Self::Open(source) => return source.explain(),
            Self::Publish(source) => return source.explain(),
            Self::WhichComponent => {
                (ComponentNotFound, "choose one with `--component agent` or `--component business`")
            }
            Self::NoPlace { form: "a tar archive", .. } => {
                (ExportUnsupported, "export the box with `--format dir` or `--format erofs`")
            }
            Self::NoPlace { .. } => (ExportUnsupported, "export it with `--format tar`"),
            Self::Damaged(_) => (BoxDamaged, "copy or build the box again"),
            Self::File(source) => return source.explain(),
            Self::Write(_) => return Io.into(),
            _ => return BoxDamaged.into(),
        };
        help(code, text)
    }
}

/// Returns the help for a path that has something other than an image of the expected form.
fn other_form(path: &Path, expected: Form, found: Found) -> String {
    let form = |form: Form| format!("\"{}{}\"", form.prefix(), path.display());
    // The path is quoted as one word of a shell, because the author of the Boxfile chose it.
    let word = |before: &str, after: &str| shell_word(format!("{before}{}{after}", path.display()));
    match (found, expected) {
        (Found::Nothing, Form::Layout) => {
            format!("copy an image there: skopeo copy docker://NAME {}", word("oci:", ":latest"))
        }
        // The commands in this arm and below write to new paths, so that they never overwrite an
        // existing file.
        (Found::Lacks(_), Form::Layout) => {
            "name another directory: `skopeo copy docker://NAME oci:IMAGE:latest` makes one"
                .to_owned()
        }
        (Found::Nothing, _) => {
            "a relative path starts from the directory of the file that has the reference"
                .to_owned()
        }
        (Found::File, _) => {
            format!("write {} or {}", form(Form::OciArchive), form(Form::DockerArchive))
        }
        (Found::Directory, _) => {
            format!("an image layout in a directory is {}", form(Form::Layout))
        }
        (Found::SkopeoDirectory, _) => {
            format!("run: skopeo copy {} oci:IMAGE:latest", word("dir:", ""))
        }
        (Found::Compressed { program, .. }, _) => format!(
            "an archive is read in place: run `{program} {}`, and name the file that this leaves",
            shell_path(path)
        ),
        (Found::Other("a Dockerfile"), _) => {
            "build it, and name the image: docker buildx build --output type=oci,dest=IMAGE.tar . \
             makes \"oci-archive:IMAGE.tar\""
                .to_owned()
        }
        (Found::Lacks(_) | Found::Empty | Found::NoArchive | Found::Other(_), Form::OciArchive) => {
            "name another file: `skopeo copy docker://NAME oci-archive:IMAGE.tar` makes one"
                .to_owned()
        }
        (Found::Lacks(_) | Found::Empty | Found::NoArchive | Found::Other(_), _) => {
            "name another file: `docker save NAME -o IMAGE.tar` makes one".to_owned()
        }
        (Found::LfsPointer, _) => FETCH_LFS.to_owned(),
        (Found::OciArchive, _) => format!("write {}", form(Form::OciArchive)),
        (Found::DockerArchive, _) => format!("write {}", form(Form::DockerArchive)),
        (Found::OldDockerArchive, _) => "load it into a newer docker, and save it again".to_owned(),
    }
}
