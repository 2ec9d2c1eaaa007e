//! The table of errors: for each error of a library its code, and what to do about it. The messages
//! themselves only state facts.

use std::borrow::Cow;
use std::error::Error;
use std::io;

use box_cache::StoreError;
use box_image::ErrorCode as Code;
use box_inspect::opened;
use box_tree::listing::FindError;
use boxbuild::binary::{BinaryError, ProgramError};
use boxbuild::compose::ComposeError;
use boxbuild::project::{LockFileError, ProjectError};
use boxbuild::skill::SkillError;
use boxbuild::{BuildError, Cause};
use download::DownloadError;
use download::fetch::{FetchError, UrlError};
use download::http::HttpError;
use host_fs::FileError;
use host_fs::publish::PublishError;
use oci_layer::{LayerError, LayerErrorKind};
use oci_registry::RegistryError;

use super::Advice;

/// What to do about a file that a checksum in the Boxfile names.
const NEW_SHA256: &str = "if the file was meant to change, write the new sha256";

/// Says what to do about an error.
pub(super) fn help(code: Code, text: impl Into<Cow<'static, str>>) -> Advice {
    Advice { code, help: Some(text.into()) }
}

/// An error of a library, as this program explains it.
pub(crate) trait Explain: Error {
    /// Returns the error's code, and what to do about it.
    fn advice(&self) -> Advice;
}

impl Explain for BuildError {
    fn advice(&self) -> Advice {
        match self {
            Self::Unusable { source, .. } => source.advice(),
            Self::SkillClash { .. } => help(Code::SkillInvalid, "rename one of them"),
            Self::WrongFile { .. } => help(Code::DigestMismatch, NEW_SHA256),
            Self::NoInterpreter { .. } => help(
                Code::ProgramInvalid,
                "link the program statically, or declare an `image` for the agent that has it",
            ),
            Self::PinGone { name, .. } => help(
                Code::LockPinStale,
                format!("put it back, or run `boxbuild update {name}` to take what is there now"),
            ),
            Self::PinMismatch { name, .. } => {
                help(Code::LockPinStale, format!("run `boxbuild update {name}` to write it again"))
            }
            Self::NotAnInit { .. } => {
                help(Code::InitInvalid, "build it with `cargo xtask box-init`")
            }
            Self::Rejected(_) => Code::FileInvalid.into(),
            Self::Platform { .. } => Code::PlatformUnsupported.into(),
            Self::Conflicts(_) => Code::MergeConflict.into(),
        }
    }
}

impl Explain for Cause {
    fn advice(&self) -> Advice {
        match self {
            Self::Image(source) => source.advice(),
            Self::Layer(source) => source.advice(),
            Self::Skill(source) => source.advice(),
            Self::Binary(source) => source.advice(),
            Self::Url(source) => source.advice(),
            Self::Fetch(source) => source.advice(),
            Self::File(source) => source.advice(),
            Self::Compose(source) => source.advice(),
            Self::Store(source) => source.advice(),
            Self::Kernel(_) => Code::KernelInvalid.into(),
            Self::Plan(_) => Code::BoxfileInvalid.into(),
            Self::Excess(_) | Self::Listing(_) => Code::TooLarge.into(),
            Self::Bake(_) => Code::Io.into(),
            Self::Document(_) => Code::Internal.into(),
        }
    }
}

impl Explain for ComposeError {
    fn advice(&self) -> Advice {
        let text = match self {
            Self::NoProgram => "write `entrypoint \"/path/to/program\"` in `agent`",
            Self::UnknownUser { .. } => "name the user by number in the image's config",
            Self::Libc { .. } => {
                "declare layout \"split\", in which each image keeps its own, or build both images \
                 on the same base"
            }
            Self::Hidden { span: None, .. } => "remove it from the image",
            Self::Hidden { .. } => "choose another place, or remove it from the image",
            Self::WrongType { component, found, .. } => {
                let other = format!("declare it as {found:?}, or rebuild it with the label");
                return help(Code::ImageUnusable, format!("{other} {component:?}"));
            }
            Self::Config { .. } => "correct it, and rebuild the image",
            Self::Unreadable { .. } => return Code::Io.into(),
        };
        help(Code::ImageUnusable, text)
    }
}

impl Explain for BinaryError {
    fn advice(&self) -> Advice {
        let text = match self {
            Self::Absolute(_) => "write it relative to the Boxfile",
            Self::Outside(_) => "the agent's program is part of the checkout: copy it there",
            Self::Program { source: ProgramError::NotAProgram(_), .. } => {
                "name an ELF program for Linux, or a script that starts with \"#!\""
            }
            Self::Program { .. } => return Code::ProgramInvalid.into(),
            Self::TooLarge { .. } => return Code::TooLarge.into(),
            Self::File(source) => return source.advice(),
            Self::Store(source) => return source.advice(),
        };
        help(Code::ProgramInvalid, text)
    }
}

impl Explain for SkillError {
    fn advice(&self) -> Advice {
        match self {
            Self::Outside(_) => {
                help(Code::SkillInvalid, "a skill is part of the checkout: copy it there")
            }
            Self::Name(_) => help(Code::SkillInvalid, "rename it"),
            Self::Unusable { .. } | Self::Rejected(_) => Code::SkillInvalid.into(),
            Self::File(source) => source.advice(),
            Self::TooLarge(_) => Code::TooLarge.into(),
        }
    }
}

impl Explain for ProjectError {
    fn advice(&self) -> Advice {
        Code::BoxfileNotFound.into()
    }
}

/// Returns the code of a lock's error, and what to do; what is wrong in its text says more.
pub(super) fn lock(error: &LockFileError) -> Advice {
    match error {
        LockFileError::File(FileError { doing: "write", .. }) => {
            help(Code::Io, "name a place that can be written with --lock-file PATH")
        }
        LockFileError::File(_) => Code::Io.into(),
        LockFileError::NotText(_) => {
            help(Code::LockMalformed, "run `boxbuild update` to resolve everything again")
        }
        LockFileError::Malformed { conflicted: true, .. } => Code::LockConflicted.into(),
        LockFileError::Malformed { .. } => Code::LockMalformed.into(),
        LockFileError::Foreign(_) => {
            help(Code::LockMalformed, "move it away to have a lock written")
        }
        LockFileError::Changed(_) => help(Code::Busy, "run this command again"),
        LockFileError::Epoch { .. } => help(
            Code::LockEpoch,
            "use the boxbuild that wrote it, or run `boxbuild lock` to rewrite it with the same pins",
        ),
    }
}

impl Explain for PublishError {
    fn advice(&self) -> Advice {
        match self {
            Self::Exists { what: None, .. } => {
                help(Code::OutputExists, "remove it, or name another place with --output")
            }
            Self::Exists { .. } => {
                help(Code::OutputExists, "move that away, or name another directory with --output")
            }
            Self::Busy { .. } => Code::Busy.into(),
            Self::NotRestored { .. } | Self::File(_) => Code::Io.into(),
        }
    }
}

impl Explain for StoreError {
    fn advice(&self) -> Advice {
        match self {
            Self::File(_) => Code::Io.into(),
            Self::NotAStore { .. } => {
                help(Code::StoreInvalid, "name another directory with --store")
            }
            Self::Missing(_) => Code::StoreDamaged.into(),
            Self::Damaged { path, .. } => {
                help(Code::StoreDamaged, format!("remove {} and build again", path.display()))
            }
        }
    }
}

impl Explain for LayerError {
    fn advice(&self) -> Advice {
        let text = match &*self.kind {
            LayerErrorKind::WrongDigest(_) => {
                return help(Code::DigestMismatch, "the image is damaged: build or copy it again");
            }
            LayerErrorKind::TooLarge { .. } => return Code::TooLarge.into(),
            LayerErrorKind::Store(_) => return Code::Io.into(),
            LayerErrorKind::NoHeader(_) => "the archive is damaged: build the layer again",
            LayerErrorKind::Sparse => "build the layer without --sparse",
            LayerErrorKind::UnexpectedData(_) => "build the layer again with a current tar program",
            LayerErrorKind::UnsupportedAttribute(_) => "remove it and build the layer again",
            _ => return Code::LayerMalformed.into(),
        };
        help(Code::LayerMalformed, text)
    }
}

impl Explain for FetchError {
    fn advice(&self) -> Advice {
        match self {
            Self::Offline { .. } => help(Code::Offline, "build once without --offline"),
            Self::Download(DownloadError::WrongDigest { .. }) => {
                help(Code::DigestMismatch, NEW_SHA256)
            }
            Self::Download(source) => source.advice(),
        }
    }
}

impl Explain for UrlError {
    fn advice(&self) -> Advice {
        match self {
            Self::Malformed { .. } => {
                help(Code::BoxfileInvalid, "write it as \"https://HOST/PATH\"")
            }
            Self::Scheme(_) => Code::BoxfileInvalid.into(),
            Self::Credentials { .. } => {
                help(Code::BoxfileInvalid, "a URL is public: take them out")
            }
        }
    }
}

impl Explain for DownloadError {
    fn advice(&self) -> Advice {
        match self {
            Self::Http(source) => source.advice(),
            Self::Downgrade { .. } => Code::ServerUntrusted.into(),
            Self::TooLarge { .. } => Code::TooLarge.into(),
            Self::WrongSize { .. } | Self::WrongDigest { .. } => Code::DigestMismatch.into(),
            Self::Write { .. } => Code::Io.into(),
            Self::Store(source) => source.advice(),
            _ => Code::DownloadFailed.into(),
        }
    }
}

impl Explain for HttpError {
    fn advice(&self) -> Advice {
        match self {
            Self::Proxy(_) => help(Code::ServerUnreachable, "write it as \"http://HOST:PORT\""),
            Self::NoRoots { .. } => {
                help(Code::ServerUntrusted, "install the package ca-certificates")
            }
            Self::Client(_) => Code::Internal.into(),
            Self::Untrusted { .. } | Self::NotTls { .. } => Code::ServerUntrusted.into(),
            Self::Unreachable { .. } => Code::ServerUnreachable.into(),
        }
    }
}

impl Explain for RegistryError {
    fn advice(&self) -> Advice {
        match self {
            Self::Download(source) => source.advice(),
            Self::AfterMirrors { source, .. } => source.advice(),
            Self::NotTls { host } => help(
                Code::ServerUntrusted,
                format!(
                    "if it speaks http, write plain-http = true under [registry.{host:?}] in \
                     registries.toml"
                ),
            ),
            Self::Realm { host, realm } => help(
                Code::RegistryUnauthorized,
                format!(
                    "if that is right, write auth-realm = [{realm:?}] under [registry.{host:?}] in \
                     registries.toml"
                ),
            ),
            Self::Unauthorized { host, .. } => help(
                Code::RegistryUnauthorized,
                format!("check the name, or run: docker login {host}"),
            ),
            Self::NotFound { .. } => Code::ImageNotFound.into(),
            Self::Name { .. } => Code::BoxfileInvalid.into(),
            Self::PlainRealm { .. } => Code::ServerUntrusted.into(),
            Self::Credentials { .. } => Code::RegistryConfig.into(),
            _ => Code::RegistryInvalid.into(),
        }
    }
}

impl Explain for opened::OpenError {
    fn advice(&self) -> Advice {
        match self {
            Self::Layout(source) => {
                Advice { code: source.code(), help: source.help().map(Into::into) }
            }
            Self::NoListing { .. } => {
                help(Code::BoxMalformed, "build it again with this version of boxbuild")
            }
            Self::WrongListing { .. } => {
                help(Code::BoxDamaged, "somebody changed the box: do not use it")
            }
            _ => Code::BoxMalformed.into(),
        }
    }
}

impl Explain for FindError {
    fn advice(&self) -> Advice {
        match self {
            Self::Missing { near: Some(near), .. } => {
                help(Code::PathNotFound, format!("did you mean {near}?"))
            }
            Self::Link { .. } => help(Code::PathNotFound, "name the place that it leads to"),
            Self::Missing { .. } | Self::NotADirectory { .. } => Code::PathNotFound.into(),
        }
    }
}

impl Explain for FileError {
    fn advice(&self) -> Advice {
        match self.source.kind() {
            // It could be read, and is not what it should be.
            io::ErrorKind::InvalidData => Code::FileInvalid.into(),
            _ => Code::Io.into(),
        }
    }
}

impl Explain for io::Error {
    fn advice(&self) -> Advice {
        Code::Io.into()
    }
}
