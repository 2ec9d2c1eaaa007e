//! Explanations for the errors of downloads and registries.

use std::borrow::Cow;
use std::path::Path;

use box_contract::DEFAULT_TAG;
use box_contract::ErrorCode::{self, *};
use box_registry::BoxRegistryError;
use download::DownloadError;
use download::http::HttpError;
use oci_registry::RegistryError;

use super::Explanation;

/// The help if a server does not answer.
const UNREACHABLE: &str =
    "check the host's name, the network and, if there is a proxy, HTTPS_PROXY";

fn row(code: ErrorCode, text: impl Into<Cow<'static, str>>) -> Explanation {
    (code, text).into()
}

impl From<&DownloadError> for Explanation {
    fn from(error: &DownloadError) -> Self {
        match error {
            DownloadError::Http(source) => source.into(),
            DownloadError::Downgrade { .. } => ServerUntrusted.into(),
            DownloadError::TooLarge { .. } => TooLarge.into(),
            DownloadError::WrongSize { .. } | DownloadError::WrongDigest { .. } => {
                DigestMismatch.into()
            }
            DownloadError::Write { .. } => Io.into(),
            DownloadError::Store(source) => source.into(),
            _ => DownloadFailed.into(),
        }
    }
}

impl From<&HttpError> for Explanation {
    fn from(error: &HttpError) -> Self {
        match error {
            HttpError::Proxy(_) => row(ServerUnreachable, "write `HTTPS_PROXY=http://HOST:PORT`"),
            HttpError::NoRoots { .. } => {
                row(ServerUntrusted, "install the package ca-certificates")
            }
            HttpError::Client(_) => Internal.into(),
            HttpError::Content { source, .. } => source.into(),
            HttpError::Late { .. } => DownloadFailed.into(),
            HttpError::Roots(_) | HttpError::Untrusted { .. } | HttpError::NotTls { .. } => {
                ServerUntrusted.into()
            }
            HttpError::NotHttp { .. } | HttpError::Screened { .. } => DownloadFailed.into(),
            HttpError::Refused { .. } | HttpError::Unreachable { .. } => {
                row(ServerUnreachable, UNREACHABLE)
            }
        }
    }
}

/// Returns the help that shows the lines to add to the configuration of registries.
fn in_config(file: Option<&Path>, host: &str, setting: &str) -> String {
    let file = file.unwrap_or(Path::new("registries.toml")).display();
    format!("write into {file}:\n[registry.{host:?}]\n{setting}")
}

impl From<&BoxRegistryError> for Explanation {
    fn from(error: &BoxRegistryError) -> Self {
        match error {
            BoxRegistryError::Registry(RegistryError::NotFound { tag: Some(_), .. }) => row(
                BoxNotFound,
                "name a tag that the registry has; `boxbuild push` sends boxes there",
            ),
            BoxRegistryError::Registry(RegistryError::NotFound { .. }) => row(
                BoxNotFound,
                "the registry knows its manifests' digests; a box digest needs the tag, too: HOST/NAME:TAG@sha256:...",
            ),
            BoxRegistryError::Registry(RegistryError::Unauthorized {
                host, passed_over, ..
            }) if passed_over.is_empty() => row(
                RegistryUnauthorized,
                format!("check the name of the box, or log in: docker login {host}"),
            ),
            BoxRegistryError::Registry(source) => source.into(),
            BoxRegistryError::Open(source) => source.into(),
            BoxRegistryError::Store(source) => source.into(),
            BoxRegistryError::NotABox { .. } => row(
                BoxNotFound,
                "`boxbuild push` sends boxes; an image is named in a Boxfile, or with `boxlaunch run --image IMAGE -- CMD`",
            ),
            BoxRegistryError::Malformed { .. } => {
                row(RegistryInvalid, "push the box again, with `boxbuild push --again`")
            }
            BoxRegistryError::Damaged { .. } => {
                row(BoxDamaged, "build the box again: `boxbuild build`")
            }
            BoxRegistryError::Elsewhere { .. } => row(
                RegistryInvalid,
                "build the box with --no-cache, so that this host has all of it",
            ),
            // Errors of archives, which `archived.rs` explains.
            BoxRegistryError::Read { .. } => Io.into(),
            BoxRegistryError::Absent { .. }
            | BoxRegistryError::Content { .. }
            | BoxRegistryError::Later { .. } => BoxDamaged.into(),
            BoxRegistryError::Compress { source, .. } | BoxRegistryError::Sink { source, .. } => {
                source.into()
            }
        }
    }
}

impl From<&RegistryError> for Explanation {
    fn from(error: &RegistryError) -> Self {
        match error {
            RegistryError::Download(source) => source.into(),
            RegistryError::AfterMirrors { source, .. } => source.as_ref().into(),
            RegistryError::NotTls { host, config_file } => {
                let line = in_config(config_file.as_deref(), host, "plain-http = true");
                row(ServerUntrusted, format!("if it speaks http, {line}"))
            }
            RegistryError::Realm { host, realm, config_file } => {
                let setting = format!("auth-realm = [{realm:?}]");
                let lines = in_config(config_file.as_deref(), host, &setting);
                row(RegistryUnauthorized, format!("if you trust it with your password, {lines}"))
            }
            RegistryError::Unauthorized { host, passed_over, .. } if passed_over.is_empty() => row(
                RegistryUnauthorized,
                format!("check the name of the image, or log in: docker login {host}"),
            ),
            RegistryError::Unauthorized { host, .. } => row(
                RegistryUnauthorized,
                format!(
                    "check the name of the image. Or correct that file (a line `credsStore` whose helper is \
                     gone can be removed), and log in: docker login {host}"
                ),
            ),
            RegistryError::NotARegistry { host, .. } => row(
                RegistryInvalid,
                format!(
                    "a proxy, a filter of the network or a login page may answer for {host}: \
                     `curl -i https://{host}/v2/` shows what does. Or another host was meant"
                ),
            ),
            RegistryError::NotFound { tag: Some(tag), .. } if tag == DEFAULT_TAG => row(
                ImageNotFound,
                "a reference without a tag means `latest`; name a tag that the registry has",
            ),
            RegistryError::NotFound { .. } => ImageNotFound.into(),
            RegistryError::Name { .. } => BoxfileInvalid.into(),
            RegistryError::TooLarge { .. } => TooLarge.into(),
            RegistryError::Denied { host, .. } => row(
                RegistryUnauthorized,
                format!(
                    "the registry knows you, and does not let you do this: ask who runs {host}"
                ),
            ),
            RegistryError::PlainRealm { .. } => ServerUntrusted.into(),
            _ => RegistryInvalid.into(),
        }
    }
}
