//! The table of errors: the code and the help for each error of a library. The libraries' messages contain
//! only facts.

use std::borrow::Cow;
use std::error::Error;
use std::io;

use box_cache::StoreError;
use box_contract::ErrorCode::{self, *};
use box_contract::Platform;
use box_inspect::diff::PathError;
use box_inspect::entry::shown_bytes;
use box_inspect::export::ExportError;
use box_inspect::opened;
use box_tree::listing::FindError;
use boxbuild::binary::{BinaryError, ProgramError};
use boxbuild::project::lock::REBUILD;
use boxbuild::project::{LockFileError, ProjectError};
use boxbuild::{BuildError, Cause, InputError, InputKind, Meant, NamedBy};
use checkout::agents::AgentsError;
use checkout::files::FilesError;
use checkout::skill::SkillError;
use cli_common::Explanation;
use diagnostics::suggest::nearest;
use guest_kernel::KernelError;
use host_fs::FileError;
use host_fs::checkout::{InHome, LeadsOut};
use host_fs::publish::PublishError;
use oci_image::Form;
use oci_layer::{LayerError, LayerErrorKind};
use safe_text::shell_path;

/// The help for a file that differs from a checksum in the Boxfile.
pub(super) const NEW_SHA256: &str = "if the file was meant to change, write the new sha256";

/// The help for a checkout that has a pointer of Git LFS instead of a file.
pub(super) const FETCH_LFS: &str =
    "run `git lfs pull` in the checkout; in CI, have the checkout fetch files of Git LFS";

/// The help for a box that is named as an image.
const IMAGE_OF_BOX: &str =
    "name the image that the box was built from, such as \"oci:images/agent\"";

/// The help for a kernel that is not the lean one.
const COMPILED_KERNEL: &str = "`cargo xtask kernel` in the source of boxbuild prints where it is";

/// The help for a kernel that lacks a feature that a box needs.
const NO_SUCH_KERNEL: &str =
    "take another kernel, such as `kernel \"lean\"`, or compile this one with it";

/// The help for a file that is no kernel.
const A_KERNEL: &str = "name a libkrunfw.so.5 or an uncompressed ELF kernel (vmlinux); \
                                   `boxbuild setup` gets one that boxes can have";

/// Returns an explanation with a help.
pub(super) fn help(code: ErrorCode, text: impl Into<Cow<'static, str>>) -> Explanation {
    (code, text).into()
}

/// Returns the explanation of an error. If its code is [`Io`], uses `text` as the help.
fn or(error: &FileError, text: &'static str) -> Explanation {
    let explanation = error.explain();
    if explanation.code == Io { help(Io, text) } else { explanation }
}

/// An error of a library for which this program has an explanation.
pub(crate) trait Explain: Error {
    /// Returns the error's code and help.
    fn explain(&self) -> Explanation;
}

impl Explain for BuildError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Unusable { source, .. } => source.explain(),
            Self::SkillClash { .. } => help(SkillInvalid, "rename one of them"),
            Self::WrongFile { .. } => help(DigestMismatch, NEW_SHA256),
            Self::NoInterpreter { .. } => help(
                ProgramInvalid,
                "link the program statically, or declare an `image` for the agent that has it",
            ),
            Self::PinGone { name, .. } => help(
                LockPinStale,
                format!("put it back, or run `boxbuild update {name}` to take what is there now"),
            ),
            Self::PinMismatch { name, .. } => {
                help(LockPinStale, format!("run `boxbuild update {name}` to write it again"))
            }
            Self::NotAnInit { .. } => help(
                InitInvalid,
                "take the box-init of the same boxbuild: `cargo xtask box-init` builds it",
            ),
            // The failure has an explanation for each of these errors.
            Self::Several(_) | Self::Rejected(_) => FileInvalid.into(),
            Self::Platform { .. } => help(
                PlatformUnsupported,
                format!(
                    "declare \"{0}\" in `platform`, and build for it: `--platform {0}`",
                    Platform::BUILT
                ),
            ),
            Self::Conflicts(_) => MergeConflict.into(),
        }
    }
}

impl Explain for Cause {
    fn explain(&self) -> Explanation {
        match self {
            Self::Image(source) => source.explain(),
            Self::Misnamed { meant, source } => help(source.explain().code, intended(meant)),
            Self::IsBox(_) => help(ImageMalformed, IMAGE_OF_BOX),
            Self::Layer(source) => source.explain(),
            Self::Skill(source) => source.explain(),
            Self::Agents(source) => source.explain(),
            Self::Files(source) => source.explain(),
            Self::Binary(source) => source.explain(),
            Self::Url(source) => source.explain(),
            Self::Fetch(source) => source.explain(),
            Self::File(source) => source.explain(),
            Self::Input(source) => source.explain(),
            Self::Compose(source) => source.explain(),
            Self::Store(source) => source.explain(),
            Self::Kernel(KernelError::Lacks(_)) => help(KernelInvalid, NO_SUCH_KERNEL),
            Self::Kernel(KernelError::Other { .. }) => help(KernelInvalid, COMPILED_KERNEL),
            Self::Kernel(_) => help(KernelInvalid, A_KERNEL),
            Self::Plan(_) => BoxfileInvalid.into(),
            Self::Excess(_) | Self::Listing(_) => help(TooLarge, LESS),
            Self::Bake(_) | Self::Damaged(_) => Io.into(),
            Self::Document(_) => Internal.into(),
        }
    }
}

/// Returns the reference that was probably meant.
fn intended(meant: &Meant) -> String {
    match meant {
        Meant::Unprefixed { path, form } => {
            let what = if *form == Form::Layout { "directory" } else { "file" };
            let prefix = form.prefix();
            format!("{path} is a {what} here; for the image in it, write \"{prefix}{path}\"")
        }
        Meant::Other(reference) => format!("did you mean \"{reference}\"?"),
    }
}

/// The help for files of a checkout that are too large, or too many.
const IN_AN_IMAGE: &str = "put such large or many files into a layer of an image: the limits are in docs/hostile-input.md";

impl Explain for FilesError {
    fn explain(&self) -> Explanation {
        let text = match self {
            Self::Outside(_) => "a file of the box is part of the checkout: copy it there",
            Self::NotADirectory(_) | Self::Empty(_) => "correct the path, or remove it",
            Self::Special(_) => "remove it, or name the files one by one",
            Self::TooLarge(_) => return TooLarge.into(),
            Self::TooLargeTogether(_) => return help(TooLarge, IN_AN_IMAGE),
            Self::File(source) => return source.explain(),
        };
        help(FileInvalid, text)
    }
}

impl Explain for BinaryError {
    fn explain(&self) -> Explanation {
        let text = match self {
            Self::Absolute(_) => "write it relative to the Boxfile",
            Self::Outside(_) => "the agent's program is part of the checkout: copy it there",
            Self::Program {
                source: ProgramError::NotAProgram(_) | ProgramError::Foreign(_),
                ..
            } => "name an ELF program for Linux, or a script that starts with \"#!\"",
            Self::Program { source: ProgramError::LfsPointer, .. } => FETCH_LFS,
            Self::Program { .. } => return ProgramInvalid.into(),
            Self::TooLarge { .. } => return TooLarge.into(),
            Self::File(source) => return source.explain(),
            Self::Store(source) => return source.explain(),
        };
        help(ProgramInvalid, text)
    }
}

impl Explain for SkillError {
    fn explain(&self) -> Explanation {
        let text = match self {
            Self::Files(FilesError::Outside(_)) => "a skill is part of the checkout: copy it there",
            Self::Name(_) => "rename it",
            Self::TooMany(_) => "declare fewer, or put what belongs together into one skill",
            Self::Unusable(..)
            | Self::Files(
                FilesError::NotADirectory(_) | FilesError::Empty(_) | FilesError::Special(_),
            ) => {
                "a skill is a directory of the checkout with a file SKILL.md in it: docs/skills.md"
            }
            Self::File(source) => return source.explain(),
            Self::Files(source) => return source.explain(),
        };
        help(SkillInvalid, text)
    }
}

impl Explain for AgentsError {
    fn explain(&self) -> Explanation {
        let text = match self {
            Self::NotADirectory(_) | Self::Empty(_) => {
                "name a directory of the checkout with files NAME.md in it: docs/agents.md"
            }
            Self::TooMany(_) => "remove those that nobody uses",
            Self::NotAFile(_) => {
                "replace it by a file, or rename it so that it does not end with `.md`"
            }
            Self::Name(_) => {
                "rename it; a file that is no agent definition has another ending than `.md`"
            }
            Self::File(source) => return source.explain(),
        };
        help(FileInvalid, text)
    }
}

impl Explain for ProjectError {
    fn explain(&self) -> Explanation {
        match &self.inner {
            Some(inner) => {
                help(BoxfileNotFound, format!("name the file in it: {}", shell_path(inner)))
            }
            None if self.is_missing => help(BoxfileNotFound, "`boxbuild init` makes a Boxfile"),
            None => BoxfileNotFound.into(),
        }
    }
}

/// Returns the explanation of a lock's error. The diagnostics of a malformed lock have helps already.
pub(super) fn lock(error: &LockFileError) -> Explanation {
    match error {
        LockFileError::NotWritable(source) => {
            or(source, "name a writable path with --lock-file PATH")
        }
        LockFileError::File(source) => {
            or(source, "move it away, or name another lock with --lock-file PATH")
        }
        LockFileError::NotText { is_lock: true, .. } => help(LockMalformed, REBUILD),
        LockFileError::NotText { is_lock: false, .. } => {
            help(LockMalformed, "save it as UTF-8, or move it away and run `boxbuild lock`")
        }
        LockFileError::Malformed { conflicted: true, .. } => LockConflicted.into(),
        LockFileError::Malformed { .. } => LockMalformed.into(),
        LockFileError::Foreign(_) => {
            help(LockMalformed, "move it away, so that a new lock is written")
        }
        LockFileError::Changed(_) => help(Busy, "run this command again"),
        LockFileError::Epoch { .. } => help(
            LockEpoch,
            "use the boxbuild that wrote it, or run `boxbuild lock` to rewrite it with the same pins",
        ),
    }
}

impl Explain for PublishError {
    fn explain(&self) -> Explanation {
        match self {
            Self::File(source) => source.explain(),
            error => error.into(),
        }
    }
}

impl Explain for StoreError {
    fn explain(&self) -> Explanation {
        match self {
            Self::File(source) => {
                or(source, "name another directory with --store, one that you can write to")
            }
            error => error.into(),
        }
    }
}

impl Explain for box_archive::ArchiveError {
    fn explain(&self) -> Explanation {
        self.into()
    }
}

impl Explain for box_find::FindError {
    fn explain(&self) -> Explanation {
        self.into()
    }
}

/// The help for images that are too large together.
const LESS: &str = "build smaller images: the limits are in docs/hostile-input.md";

impl Explain for LayerError {
    fn explain(&self) -> Explanation {
        let text = match &*self.kind {
            LayerErrorKind::WrongDigest(_) => {
                return help(DigestMismatch, "the image is damaged: build or copy it again");
            }
            LayerErrorKind::TooLarge { .. } => return TooLarge.into(),
            LayerErrorKind::Together(_) => return help(TooLarge, LESS),
            LayerErrorKind::Store(_) => return Io.into(),
            LayerErrorKind::Unreadable(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                "the archive is cut off, as `umoci insert` leaves it after a file: build the layer \
                 again, with another program"
            }
            LayerErrorKind::NoHeader(_) => "the archive is damaged: build the layer again",
            LayerErrorKind::Sparse => "build the layer without --sparse",
            LayerErrorKind::UnexpectedData(_) => "build the layer again with a current tar program",
            LayerErrorKind::OverlayAttribute(_) => {
                "the layer was made of an overlayfs's own directories: build the image again with a current \
                 tool, such as `buildah bud --layers=false` or `docker buildx build`"
            }
            _ => return LayerMalformed.into(),
        };
        help(LayerMalformed, text)
    }
}

impl Explain for opened::OpenError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Layout(source) => source.into(),
            Self::NoListing { .. } | Self::OldEpoch { .. } => {
                help(BoxMalformed, "build it again with this version of boxbuild")
            }
            Self::WrongListing { .. } => {
                help(BoxDamaged, "the box was changed after the build: do not use it")
            }
            Self::Forged { .. } => help(BoxDamaged, "run `boxbuild verify` on both"),
            Self::NoComponent { .. } => {
                help(ComponentNotFound, "leave out `--component`, or name the other")
            }
            _ => help(BoxMalformed, "build or copy the box again"),
        }
    }
}

impl Explain for virtual_host::HostError {
    fn explain(&self) -> Explanation {
        self.into()
    }
}

impl Explain for boxbuild::budget::MeasureError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Host(source) => source.into(),
            Self::Refused { code, help, names_options, .. } => Explanation {
                code: code.unwrap_or(VirtualHostFailed),
                help: help.as_ref().map(|it| {
                    let of = if *names_options { "with `boxlaunch run`: " } else { "" };
                    format!("{of}{it}").into()
                }),
            },
            Self::Network => help(
                Usage,
                "put `network \"shared\"` into a profile, and measure a box without that",
            ),
            _ => VirtualHostFailed.into(),
        }
    }
}

impl Explain for FindError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Missing { directory, name, siblings } => {
                let siblings: Vec<&str> = siblings.iter().map(String::as_str).collect();
                match nearest(name, &siblings) {
                    Some(near) => help(PathNotFound, format!("did you mean {directory}/{near}?")),
                    None => PathNotFound.into(),
                }
            }
            Self::NotADirectory { .. } => help(PathNotFound, "leave out what is after it"),
            Self::TooManyLinks { .. } | Self::TooLong { .. } => PathNotFound.into(),
        }
    }
}

impl Explain for PathError {
    fn explain(&self) -> Explanation {
        let paths: Vec<_> = self.elsewhere.iter().map(|path| shown_bytes(path)).collect();
        match paths.as_slice() {
            [] => self.error.explain(),
            paths => help(PathNotFound, format!("did you mean {}?", paths.join(" or "))),
        }
    }
}

impl Explain for InputError {
    fn explain(&self) -> Explanation {
        if self.source.kind() != io::ErrorKind::NotFound {
            return self.source.explain();
        }
        let code = match self.kind {
            InputKind::Kernel => KernelNotFound,
            InputKind::Init => InitNotFound,
        };
        match self.file.named_by {
            NamedBy::Option(name) => help(code, format!("correct the path, or leave out `{name}`")),
            NamedBy::Variable(name) => {
                help(code, format!("correct the path, or run `unset {name}`"))
            }
            NamedBy::Boxfile(_) => {
                help(code, "correct the path, or remove `kernel` to use an installed one")
            }
            NamedBy::Nothing => code.into(),
        }
    }
}

impl Explain for FileError {
    fn explain(&self) -> Explanation {
        match self.source.kind() {
            // The file could be read, but its content is wrong.
            io::ErrorKind::InvalidData => FileInvalid.into(),
            _ => self.source.explain(),
        }
    }
}

impl Explain for io::Error {
    fn explain(&self) -> Explanation {
        // A reader of contents passes on what its source failed with.
        let inner = self.get_ref();
        if let Some(source) = inner.and_then(|it| it.downcast_ref::<ExportError>()) {
            return source.explain();
        }
        if let Some(source) = inner.and_then(|it| it.downcast_ref::<box_layout::OpenError>()) {
            return source.into();
        }
        match inner {
            Some(inner) if inner.is::<LeadsOut>() => help(
                Io,
                "copy what the box needs into the checkout: the target of a link must be inside it",
            ),
            Some(inner) if inner.is::<InHome>() => help(
                Io,
                "copy what the box needs out of the home directory, into another directory of the checkout",
            ),
            _ => self.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// Returns the help of an error, which must have one.
    fn helped(error: &dyn Explain) -> String {
        error.explain().help.unwrap_or_else(|| panic!("no help: {error}")).into_owned()
    }

    fn failed(kind: io::ErrorKind) -> FileError {
        FileError::of("read", "a")(io::Error::from(kind))
    }

    #[test]
    fn what_a_wrong_path_causes_has_a_help() {
        use io::ErrorKind::*;

        for kind in [NotADirectory, AlreadyExists, PermissionDenied] {
            helped(&failed(kind));
            let text = helped(&StoreError::File(failed(kind)));
            assert!(text.contains("--store"), "{text}");
        }
        let full = StoreError::File(failed(StorageFull)).explain();
        assert_eq!(full.code, DiskFull);
        assert!(
            helped(&io::Error::from(host_fs::read::ReadError::NotRegular)).contains("regular file")
        );
        helped(&SkillError::Unusable(PathBuf::from("skills/greet"), "is not a directory"));
        helped(&io::Error::new(InvalidInput, LeadsOut));
        helped(&Cause::Kernel(guest_kernel::KernelError::NotAKernel));
    }

    #[test]
    fn a_similar_path_is_proposed() {
        let missing = |siblings: &[&str]| FindError::Missing {
            directory: "/etc".to_owned(),
            name: "nope".to_owned(),
            siblings: siblings.iter().map(|&it| it.to_owned()).collect(),
        };
        assert_eq!(helped(&missing(&["nopes"])), "did you mean /etc/nopes?");
        assert_eq!(missing(&["roots"]).explain().help, None);
    }
}
