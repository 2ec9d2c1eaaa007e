//! Explanations for errors of downloads and registries.

use box_contract::ErrorCode::*;
use box_registry::BoxRegistryError;
use box_trust::TrustError;
use cli_common::Explanation;
use cli_common::trust::KeyError;
use cli_registry::PullError;
use download::DownloadError;
use download::fetch::{FetchError, UrlError};
use download::http::HttpError;
use guest_kernel::PackageError;
use oci_registry::RegistryError;

use super::Explain;
use super::explain::{NEW_SHA256, help};

impl Explain for FetchError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Offline { .. } => {
                help(Offline, "run `boxbuild fetch`, or build once without --offline")
            }
            Self::Download(DownloadError::WrongDigest { .. }) => help(DigestMismatch, NEW_SHA256),
            Self::Download(source) => source.explain(),
        }
    }
}

impl Explain for UrlError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Malformed { .. } => help(BoxfileInvalid, "write it as \"https://HOST/PATH\""),
            Self::Scheme(_) => BoxfileInvalid.into(),
            Self::Credentials { .. } => {
                help(BoxfileInvalid, "remove them: credentials do not belong in a Boxfile")
            }
        }
    }
}

impl Explain for DownloadError {
    fn explain(&self) -> Explanation {
        self.into()
    }
}

impl Explain for HttpError {
    fn explain(&self) -> Explanation {
        self.into()
    }
}

impl Explain for BoxRegistryError {
    fn explain(&self) -> Explanation {
        self.into()
    }
}

impl Explain for RegistryError {
    fn explain(&self) -> Explanation {
        self.into()
    }
}

impl Explain for PullError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Command(error) => error.explain(),
            error => error.into(),
        }
    }
}

impl Explain for KeyError {
    fn explain(&self) -> Explanation {
        self.into()
    }
}

impl Explain for TrustError {
    fn explain(&self) -> Explanation {
        self.into()
    }
}

impl Explain for PackageError {
    fn explain(&self) -> Explanation {
        const OR_FROM: &str = "or name a kernel with --from FILE or URL";
        match self {
            Self::NoPip => help(
                KernelNotFound,
                format!("install pip (Debian: apt-get install python3-pip), {OR_FROM}"),
            ),
            Self::Pip { .. } | Self::NoWheel { .. } => help(
                DownloadFailed,
                format!("check the network and the configuration of pip, {OR_FROM}"),
            ),
            Self::File { source, .. } => source.explain(),
            Self::WrongDigest { .. } => DigestMismatch.into(),
            Self::NotAWheel | Self::NoMember { .. } => KernelInvalid.into(),
        }
    }
}
