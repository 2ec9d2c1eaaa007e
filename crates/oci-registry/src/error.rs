//! Why a registry does not give what is asked for.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use box_cache::StoreError;
use box_image::Digest;
use download::http::HttpError;

/// Why a registry does not give what is asked for.
///
/// No message has a password, a token, or what of a URL could be one: of other servers only the
/// host is named.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// A host, repository or tag is none.
    #[error("{text:?} cannot be asked for: {why}")]
    Name {
        /// The text.
        text: String,
        /// What it should be.
        why: &'static str,
    },
    /// There is no answer.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The registry answers, but not with TLS.
    #[error(
        "{host} answers, but not with TLS; if it speaks http, write plain-http = true under \
         [registry.{host:?}] in registries.toml"
    )]
    NotTls {
        /// The registry or mirror.
        host: String,
    },
    /// The server sends, but too slowly to ever end.
    #[error("{host} sends less than {rate} bytes per second")]
    TooSlow {
        /// The server.
        host: String,
        /// The least that it must send.
        rate: u64,
    },
    /// The connection ended before the answer did.
    #[error("{what} broke off after {received} bytes")]
    Truncated {
        /// What was asked for.
        what: String,
        /// Bytes until then.
        received: u64,
        /// Why.
        source: io::Error,
    },
    /// A redirect leads to something that is never asked.
    #[error("the registry redirects for {what} to {to}, which is not followed")]
    Redirect {
        /// What was asked for.
        what: String,
        /// Where to: the server.
        to: String,
    },
    /// A redirect leads from https to http.
    #[error(
        "the registry redirects for {what} from https to {to}, \
         where anybody could watch the answer"
    )]
    Downgrade {
        /// What was asked for.
        what: String,
        /// Where to: the server.
        to: String,
    },
    /// One redirect leads to another, without an end.
    #[error("the registry redirects for {what} more than {limit} times")]
    TooManyRedirects {
        /// What was asked for.
        what: String,
        /// How many are followed.
        limit: usize,
    },
    /// The registry asks for credentials in a way that this version does not know.
    #[error("{host} asks for credentials in a way that is not known: {why}")]
    Challenge {
        /// The registry.
        host: String,
        /// What is wrong with the header `WWW-Authenticate`.
        why: &'static str,
    },
    /// The registry's tokens come from a server that nobody said is to be trusted with credentials.
    #[error(
        "{host} wants its tokens to be fetched from {realm}, which is another server; if that is \
         right, write auth-realm = [{realm:?}] under [registry.{host:?}] in registries.toml"
    )]
    Realm {
        /// The registry.
        host: String,
        /// Where its tokens come from.
        realm: String,
    },
    /// The registry's tokens would travel readable to anybody.
    #[error("{host} wants its tokens to be fetched over http, where anybody could watch them")]
    PlainRealm {
        /// The registry.
        host: String,
    },
    /// What should be a token is none.
    #[error("{realm} gives no token that can be used for {host}: {why}")]
    Token {
        /// The registry.
        host: String,
        /// Where its tokens come from.
        realm: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The registry wants credentials, and there are none. Many say so of what they do not have, too.
    #[error(
        "{host} does not give {what} without credentials, or does not have it; \
         check the name, or run: docker login {host}"
    )]
    NoCredentials {
        /// What was asked for.
        what: String,
        /// The registry.
        host: String,
    },
    /// The registry refuses the credentials, or does not have what was asked for.
    #[error(
        "{host} does not give {what} with the credentials that there are, or does not have it; \
         check the name, or run: docker login {host}"
    )]
    Unauthorized {
        /// What was asked for.
        what: String,
        /// The registry.
        host: String,
    },
    /// The registry has no such thing.
    #[error("{host} does not have {what}")]
    NotFound {
        /// What was asked for.
        what: String,
        /// The server, behind all redirects.
        host: String,
    },
    /// The registry refuses, or cannot.
    #[error(
        "{host} answers \"{status}{}\" for {what}{}",
        shown_code(*code), shown_wait(*retry_after)
    )]
    Status {
        /// What was asked for.
        what: String,
        /// The server, behind all redirects.
        host: String,
        /// The status: its number and its usual name.
        status: String,
        /// The error code, where it is one of those of the distribution-spec.
        code: Option<&'static str>,
        /// Whether asking again may help: the server is at fault, or too busy.
        passing: bool,
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
    },
    /// The answer is compressed, though that was not asked for.
    #[error("{what} comes compressed, which was not asked for")]
    Encoded {
        /// What was asked for.
        what: String,
    },
    /// There is more than there may be.
    #[error("{what} has more than the {limit} bytes that it may have")]
    TooLarge {
        /// What was asked for.
        what: String,
        /// The most bytes.
        limit: u64,
    },
    /// The size is not the one that was named.
    #[error("{what} should have {expected} bytes, but gives {found}")]
    WrongSize {
        /// What was asked for.
        what: String,
        /// The named size in bytes.
        expected: u64,
        /// The bytes that there are, or that came before the answer was ended.
        found: u64,
    },
    /// The content is not what was asked for, or what the registry says it is.
    #[error("{what} is something else: expected {expected}, got {found}")]
    WrongDigest {
        /// What was asked for.
        what: String,
        /// The right content.
        expected: Digest,
        /// The content that came.
        found: Digest,
    },
    /// The registry names the content by what is no sha256 (header `Docker-Content-Digest`).
    #[error("the registry names {what} by a digest that cannot be used: {why}")]
    DigestHeader {
        /// What was asked for.
        what: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A manifest does not read, or can be read in two ways.
    #[error("{what} cannot be used: {why}")]
    Manifest {
        /// What was asked for.
        what: String,
        /// What is wrong.
        why: &'static str,
    },
    /// A file of credentials cannot be used. Nothing of it is repeated.
    #[error("the credentials in {} cannot be used: {why}", path.display())]
    AuthFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// A credential helper does not work. Nothing that it says is repeated.
    #[error("{program} gives no credentials for {host}: {why}")]
    Helper {
        /// The program.
        program: String,
        /// The registry.
        host: String,
        /// Why not.
        why: String,
    },
    /// Neither the mirrors nor the registry itself could help.
    #[error("the mirrors failed ({mirrors}), and then the registry itself")]
    AfterMirrors {
        /// Each mirror's error.
        mirrors: String,
        /// The registry's error.
        source: Box<Self>,
    },
    /// What came cannot be written to the store.
    #[error("{what} cannot be written to the store")]
    Write {
        /// What was asked for.
        what: String,
        /// Why not.
        source: io::Error,
    },
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// It was given up, because another blob of the same call failed.
    #[error("{what} was given up")]
    Stopped {
        /// What was asked for.
        what: String,
    },
}

impl RegistryError {
    /// Whether the next try may go better: the connection or the server failed, nothing else.
    pub(super) const fn is_passing(&self) -> bool {
        match self {
            Self::Http(error) => error.is_passing(),
            Self::TooSlow { .. } | Self::Truncated { .. } | Self::Status { passing: true, .. } => {
                true
            }
            _ => false,
        }
    }

    /// Whether the fault is here, so that no other server can help.
    pub(super) const fn is_local(&self) -> bool {
        matches!(
            self,
            Self::Name { .. }
                | Self::AuthFile { .. }
                | Self::Helper { .. }
                | Self::Write { .. }
                | Self::Store(_)
                | Self::Stopped { .. }
        )
    }

    /// Returns the error's text with those of its causes.
    pub(super) fn whole(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        text
    }
}

fn shown_code(code: Option<&str>) -> String {
    code.map_or_else(String::new, |code| format!(", {code}"))
}

fn shown_wait(time: Option<Duration>) -> String {
    time.map_or_else(String::new, |time| format!(" and asks to wait {} s", time.as_secs()))
}
