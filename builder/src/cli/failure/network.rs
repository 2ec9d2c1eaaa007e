//! The rows of the table of errors for downloads and registries.

use std::path::Path;

use box_image::DEFAULT_TAG;
use box_image::ErrorCode::*;
use box_registry::BoxRegistryError;
use download::DownloadError;
use download::fetch::{FetchError, UrlError};
use download::http::HttpError;
use error_report::Explanation;
use guest_kernel::PackageError;
use oci_registry::RegistryError;

use super::Explain;
use super::explain::{NEW_SHA256, help};

/// The help for a server that cannot be asked.
const UNREACHABLE: &str =
    "check the host's name, the network and, where there is a proxy, HTTPS_PROXY";

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
        match self {
            Self::Http(source) => source.explain(),
            Self::Downgrade { .. } => ServerUntrusted.into(),
            Self::TooLarge { .. } => TooLarge.into(),
            Self::WrongSize { .. } | Self::WrongDigest { .. } => DigestMismatch.into(),
            Self::Write { .. } => Io.into(),
            Self::Store(source) => source.explain(),
            _ => DownloadFailed.into(),
        }
    }
}

impl Explain for HttpError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Proxy(_) => help(ServerUnreachable, "write it as \"http://HOST:PORT\""),
            Self::NoRoots { .. } => help(ServerUntrusted, "install the package ca-certificates"),
            Self::Client(_) => Internal.into(),
            Self::Content { source, .. } => source.explain(),
            Self::Late { .. } => DownloadFailed.into(),
            Self::Untrusted { .. } | Self::NotTls { .. } => ServerUntrusted.into(),
            Self::NotHttp { .. } | Self::Screened { .. } => DownloadFailed.into(),
            Self::Unreachable { .. } => help(ServerUnreachable, UNREACHABLE),
        }
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

/// Returns which lines to write into the configuration of registries.
fn in_config(file: Option<&Path>, host: &str, setting: &str) -> String {
    let file = file.unwrap_or(Path::new("registries.toml")).display();
    format!("write into {file}:\n[registry.{host:?}]\n{setting}")
}

impl Explain for BoxRegistryError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Registry(source) => source.explain(),
            Self::Open(source) => source.into(),
            Self::NotABox { .. } => {
                help(BoxNotFound, "`boxbuild push` sends boxes; name an image in a Boxfile")
            }
            Self::Malformed { .. } => {
                help(RegistryInvalid, "push the box again, with `boxbuild push --again`")
            }
            Self::Damaged { .. } => help(BoxDamaged, "build the box again: `boxbuild build`"),
            Self::Compress { source, .. } | Self::Sink { source, .. } => source.explain(),
        }
    }
}

impl Explain for RegistryError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Download(source) => source.explain(),
            Self::AfterMirrors { source, .. } => source.explain(),
            Self::NotTls { host, config_file } => {
                let line = in_config(config_file.as_deref(), host, "plain-http = true");
                help(ServerUntrusted, format!("if it speaks http, {line}"))
            }
            Self::Realm { host, realm, config_file } => {
                let setting = format!("auth-realm = [{realm:?}]");
                let lines = in_config(config_file.as_deref(), host, &setting);
                help(RegistryUnauthorized, format!("if you trust it with your password, {lines}"))
            }
            Self::Unauthorized { host, passed_over, .. } if passed_over.is_empty() => help(
                RegistryUnauthorized,
                format!("check the name of the image, or log in: docker login {host}"),
            ),
            Self::Unauthorized { host, .. } => help(
                RegistryUnauthorized,
                format!(
                    "check the name of the image. Or correct that file (a line `credsStore` whose helper is \
                     gone can be removed), and log in: docker login {host}"
                ),
            ),
            Self::NotARegistry { host, .. } => help(
                RegistryInvalid,
                format!(
                    "a proxy, a filter of the network or a login page may answer for {host}: \
                     `curl -i https://{host}/v2/` shows what does. Or another host was meant"
                ),
            ),
            Self::NotFound { tag: Some(tag), .. } if tag == DEFAULT_TAG => help(
                ImageNotFound,
                "a reference without a tag means `latest`; name a tag that the registry has",
            ),
            Self::NotFound { .. } => ImageNotFound.into(),
            Self::Name { .. } => BoxfileInvalid.into(),
            Self::TooLarge { .. } => TooLarge.into(),
            Self::Denied { host, .. } => help(
                RegistryUnauthorized,
                format!(
                    "the registry knows you, and does not let you do this: ask who runs {host}"
                ),
            ),
            Self::PlainRealm { .. } => ServerUntrusted.into(),
            _ => RegistryInvalid.into(),
        }
    }
}
