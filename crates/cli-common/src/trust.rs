//! Keys and signatures on a command line.
//!
//! A key is named by its file or by an environment variable, never by its text: other users can read an argument list. A text
//! that could be a key appears in no message.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use box_cache::{Attachment, MAX_ATTACHMENT};
use box_contract::ErrorCode;
use box_digest::Digest;
use box_trust::{BUNDLE_MEDIA_TYPE, MAX_BUNDLE_BYTES, MAX_KEY_BYTES};
use box_trust::{PrivateKey, PublicKey, TrustError};
use host_fs::FileError;
use host_fs::read::{Links, open_regular, read_file, read_open};
use safe_text::{is_variable, shell_path, shown};
use serde::Serialize;
use zeroize::Zeroizing;

use crate::problem::{Explanation, Problem};
use crate::store::Program;

/// A bundle is an attachment of its box, so that each bundle that can be signed or named can be attached.
const _: () = assert!(MAX_BUNDLE_BYTES as u64 == MAX_ATTACHMENT);

/// The beginning of a word that names an environment variable.
const VARIABLE: &str = "env:";
/// The length from which a word in base64 could be a key. An Ed25519 key has 64.
const MIN_KEY_TEXT: usize = 56;

/// The error of a key or of a bundle that the command line names.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The command line has the text of a key. The error does not repeat it.
    #[error("--key has the text of a key, which other users can read in the list of processes")]
    Exposed,
    /// `env:` is not followed by the name of a variable.
    #[error("--key: `env:` is not followed by the name of a variable")]
    NoName,
    /// The environment does not have the variable.
    #[error("--key: the variable {0} is not set")]
    Unset(String),
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The key cannot be used. The first text is the word of the command line.
    #[error("the key {0} cannot be used")]
    Key(String, #[source] TrustError),
}

/// Gives each error about a key on the command line its code and its help.
impl From<&KeyError> for Explanation {
    fn from(error: &KeyError) -> Self {
        match error {
            KeyError::Exposed => (
                ErrorCode::Usage,
                "write `--key FILE` or `--key env:VARIABLE`; make a new key if this one was private",
            )
                .into(),
            KeyError::NoName => (ErrorCode::Usage, "write `--key env:VARIABLE`").into(),
            KeyError::Unset(name) => {
                (ErrorCode::Usage, format!("run `export {name}=…` first, or write `--key FILE`"))
                    .into()
            }
            KeyError::File(error) => (&error.source).into(),
            KeyError::Key(word, error) => {
                let file = (!word.starts_with(VARIABLE)).then(|| shell_path(Path::new(word)).to_string());
                Self { help: error.help(file.as_deref()).map(Into::into), ..error.into() }
            }
        }
    }
}

/// Gives each error about a key or a bundle its code and its help.
impl From<&TrustError> for Explanation {
    fn from(error: &TrustError) -> Self {
        let code = match error {
            TrustError::NoText
            | TrustError::NoBlock(..)
            | TrustError::SeveralBlocks
            | TrustError::CosignKey
            | TrustError::EncryptedKey
            | TrustError::Sec1Key
            | TrustError::PrivateForPublic
            | TrustError::OtherAlgorithm
            | TrustError::NoPublicKey
            | TrustError::MalformedKey => ErrorCode::KeyInvalid,
            TrustError::Signing => ErrorCode::Internal,
            TrustError::NotSpdx => ErrorCode::BoxMalformed,
            TrustError::TooLarge(_) => ErrorCode::TooLarge,
            _ => ErrorCode::SignatureInvalid,
        };
        Self { code, help: error.help(None).map(Into::into) }
    }
}

/// The source of a key: a file, or an environment variable that contains the key's PEM text.
///
/// Parse it from the raw word after clap, because clap's errors repeat the word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// The file at this path.
    File(PathBuf),
    /// The variable with this name.
    Variable(String),
}

impl KeySource {
    /// Parses a word: `hello.key` is a file, and `env:SIGNING_KEY` a variable.
    ///
    /// # Errors
    /// [`KeyError::Exposed`] and [`KeyError::NoName`].
    pub fn parse(word: &OsStr) -> Result<Self, KeyError> {
        if is_key_text(word.as_bytes()) {
            return Err(KeyError::Exposed);
        }
        match word.as_bytes().strip_prefix(VARIABLE.as_bytes()) {
            None => Ok(Self::File(word.into())),
            Some(name) => match str::from_utf8(name) {
                Ok(name) if is_variable(name) => Ok(Self::Variable(name.to_owned())),
                _ => Err(KeyError::NoName),
            },
        }
    }

    /// Returns the name of the environment variable, if the source is one.
    pub fn variable(&self) -> Option<&str> {
        match self {
            Self::File(_) => None,
            Self::Variable(name) => Some(name),
        }
    }

    /// Reads a private key. Prints a warning if all users can read its file.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn private(&self, program: &Program) -> Result<PrivateKey, KeyError> {
        let text = self.read(program)?;
        let key = PrivateKey::from_pem(&text);
        let key = key.map_err(|error| KeyError::Key(self.shown(), error))?;
        self.warn_of_readers(program)?;
        Ok(key)
    }

    /// Prints a warning if all users can read the file of a private key.
    fn warn_of_readers(&self, program: &Program) -> Result<(), KeyError> {
        let Self::File(path) = self else { return Ok(()) };
        let mode = open_regular(path, Links::Follow)
            .and_then(|it| Ok(it.metadata()?.permissions().mode()))
            .map_err(io::Error::from)
            .map_err(FileError::of("read", path))?;
        if mode & 0o004 != 0 {
            let word = shell_path(path);
            let text = format!("warning: all users can read {}", shown(&self.shown()));
            (program.note)(&format!("{text}: `chmod 600 {word}` prevents that"));
        }
        Ok(())
    }

    /// Reads a public key.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn public(&self, program: &Program) -> Result<PublicKey, KeyError> {
        let text = self.read(program)?;
        PublicKey::from_pem(&text).map_err(|error| KeyError::Key(self.shown(), error))
    }

    /// Returns the word that names the key.
    pub fn shown(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Variable(name) => format!("{VARIABLE}{name}"),
        }
    }

    fn read(&self, program: &Program) -> Result<Zeroizing<Vec<u8>>, KeyError> {
        let text = match self {
            Self::Variable(name) => {
                let value = (program.variable)(name).ok_or_else(|| KeyError::Unset(name.clone()));
                OsString::into_vec(value?)
            }
            Self::File(path) => {
                let open = open_regular(path, Links::Follow);
                let text = open.and_then(|it| read_open(&it, MAX_KEY_BYTES as u64));
                text.map_err(io::Error::from).map_err(FileError::of("read", path))?
            }
        };
        Ok(Zeroizing::new(text))
    }
}

/// Returns whether a word could be the text of a key instead of the name of a file: PEM, or the base64 of a key.
fn is_key_text(word: &[u8]) -> bool {
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
    let has = |part: &[u8]| word.windows(part.len()).any(|it| it == part);
    // A DER document begins with the byte 0x30, which is `M` in base64.
    let is_document =
        word.len() >= MIN_KEY_TEXT && word.starts_with(b"M") && word.iter().all(is_base64);
    word.contains(&b'\n') || has(b"-----BEGIN") || is_document
}

/// The keys that a box must be signed with.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct TrustOptions {
    /// Also require a valid signature of the box by this public key, or by one of several: a file, or env:NAME for the variable
    /// NAME
    // A text that begins with hyphens is a value, too: clap's error would repeat it, and it may be a key.
    #[arg(long = "key", value_name = "FILE|env:NAME", allow_hyphen_values = true)]
    keys: Vec<OsString>,
    /// Take the signature from this file, in place of the attachments of the box
    #[arg(long = "bundle", value_name = "FILE", requires = "keys")]
    bundles: Vec<PathBuf>,
}

impl TrustOptions {
    /// Reads the keys. `None` if the command line names none.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn keys(&self, program: &Program) -> Result<Option<TrustedKeys>, KeyError> {
        let key = |word: &OsString| {
            let source = KeySource::parse(word)?;
            Ok((source.public(program)?, source.shown()))
        };
        let keys: Vec<_> = self.keys.iter().map(key).collect::<Result<_, KeyError>>()?;
        let (keys, words): (Vec<_>, Vec<_>) = keys.into_iter().unzip();
        Ok((!keys.is_empty()).then_some(TrustedKeys { keys, words }))
    }

    /// Reads the bundles that the command line names. `None` if it names none, so that the attachments of the box are meant.
    ///
    /// # Errors
    /// [`KeyError::File`].
    pub fn bundles(&self) -> Result<Option<Vec<NamedBundle>>, KeyError> {
        let bundle = |path: &PathBuf| {
            let bytes = read_file(path, Links::Follow, MAX_BUNDLE_BYTES as u64);
            let bytes = bytes.map_err(io::Error::from).map_err(FileError::of("read", path))?;
            Ok(NamedBundle { name: path.display().to_string(), bytes })
        };
        let all: Vec<_> = self.bundles.iter().map(bundle).collect::<Result<_, KeyError>>()?;
        Ok((!all.is_empty()).then_some(all))
    }
}

/// A bundle with its name in messages: its path, or the digest of the attachment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedBundle {
    /// The name.
    pub name: String,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl NamedBundle {
    /// Returns the bundles among the attachments of a box.
    pub fn of(attachments: impl IntoIterator<Item = Attachment>) -> Vec<Self> {
        let bundles = attachments.into_iter().filter(|it| it.media_type == BUNDLE_MEDIA_TYPE);
        let named =
            |it: Attachment| Self { name: Digest::of(&it.bytes).to_string(), bytes: it.bytes };
        bundles.map(named).collect()
    }
}

/// The public keys of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedKeys {
    keys: Vec<PublicKey>,
    /// The word of the command line for each key.
    words: Vec<String>,
}

impl TrustedKeys {
    /// Returns the keys.
    pub fn keys(&self) -> &[PublicKey] {
        &self.keys
    }

    /// Verifies each bundle of a box.
    pub fn verify(&self, bundles: &[NamedBundle], digest: &Digest) -> Signatures {
        let bundles = bundles.iter().map(|bundle| self.verdict(bundle, digest)).collect();
        let hints = self.keys.iter().map(PublicKey::hint);
        let keys = self.words.iter().cloned().zip(hints).collect();
        Signatures { digest: *digest, keys, bundles }
    }

    fn verdict(&self, bundle: &NamedBundle, digest: &Digest) -> BundleReport {
        let name = bundle.name.clone();
        match box_trust::verify(&bundle.bytes, &self.keys, digest) {
            Ok(verified) => {
                let at = self.keys.iter().position(|it| it == verified.key);
                let key = at.map(|at| self.words[at].clone());
                let kind = verified.statement.kind.name().to_owned();
                let (kind, hint) = (Some(kind), Some(verified.key.hint()));
                BundleReport { bundle: name, ok: true, kind, key, hint, error: None }
            }
            Err(error) => BundleReport {
                bundle: name,
                ok: false,
                kind: None,
                key: None,
                hint: None,
                error: Some(shown(&error.to_string())),
            },
        }
    }
}

/// What the bundles of a box prove.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Signatures {
    #[serde(skip)]
    digest: Digest,
    /// The keys, each as the command line names it, with its hint.
    #[serde(skip)]
    keys: Vec<(String, String)>,
    /// A report of each bundle.
    pub bundles: Vec<BundleReport>,
}

/// The result of verifying a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BundleReport {
    /// The bundle's name: see [`NamedBundle`].
    pub bundle: String,
    /// Whether the bundle is valid, and signed by one of the keys.
    pub ok: bool,
    /// The kind of its statement: see [`Kind::name`](box_trust::Kind::name). `None` if the bundle is not valid.
    pub kind: Option<String>,
    /// The key, as the command line names it.
    pub key: Option<String>,
    /// The hint of the key.
    pub hint: Option<String>,
    /// Why the bundle is not valid.
    pub error: Option<String>,
}

impl Signatures {
    /// Returns a line for each valid bundle, such as `signature by acme.pub: ok`.
    pub fn lines(&self) -> Vec<String> {
        let line = |it: &BundleReport| {
            let (kind, key) = (it.kind.as_deref()?, it.key.as_deref()?);
            Some(shown(&format!("{kind} by {key}: ok")))
        };
        self.bundles.iter().filter_map(line).collect()
    }

    /// Returns the error of a box without a valid signature. Provenance or an SBOM alone does not approve a box.
    pub fn missing(&self) -> Option<Problem> {
        let is_signature = |it: &BundleReport| it.kind.as_deref() == Some("signature");
        if self.bundles.iter().any(is_signature) {
            return None;
        }
        let help = match self.bundles.len() {
            0 => "it has no bundles. `boxbuild sign` makes a signature, and `push`, `pull`, `save` and `load` carry it".to_owned(),
            _ => self.reasons(),
        };
        let message = format!("no key of the command line has signed the box {}", self.digest);
        Some(Problem::new((ErrorCode::SignatureInvalid, help), message))
    }

    /// Returns a line for each bundle: why it is no signature by one of the keys. Lines with the hints of the keys follow, because a
    /// bundle names its key by the hint.
    fn reasons(&self) -> String {
        let line = |it: &BundleReport| match (&it.error, &it.kind) {
            (Some(error), _) => format!("{}: {error}", it.bundle),
            (None, kind) => {
                format!("{}: {}, not a signature", it.bundle, kind.as_deref().unwrap_or_default())
            }
        };
        let key = |(word, hint): &(String, String)| format!("{word} is the key `{hint}`");
        let lines = self.bundles.iter().map(line).chain(self.keys.iter().map(key));
        lines.map(|it| shown(&it)).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use box_trust::{Algorithm, Statement};

    use super::*;

    fn program() -> Program {
        let variable = |name: &str| match name {
            "NOT_A_KEY" => Some("canary".into()),
            _ => None,
        };
        Program { variable, note: |_| (), is_quiet: || false }
    }

    fn key() -> PrivateKey {
        PrivateKey::generate(Algorithm::Ed25519).unwrap()
    }

    fn explained(error: &KeyError) -> String {
        Problem::new(error, safe_text::with_causes(error)).text()
    }

    #[test]
    fn a_key_is_named_and_never_written() {
        let parse = |word: &str| KeySource::parse(OsStr::new(word));
        assert_eq!(parse("a.key").unwrap(), KeySource::File("a.key".into()));
        assert_eq!(parse("env:A_KEY").unwrap(), KeySource::Variable("A_KEY".into()));
        let pem = key().to_pem();
        let base64: String = pem.lines().filter(|it| !it.starts_with('-')).collect();
        for word in [&*pem, pem.trim_end(), &base64, &base64[..60]] {
            let error = parse(word).unwrap_err();
            assert!(matches!(error, KeyError::Exposed));
            let text = explained(&error);
            assert!(!text.contains(&base64[8..24]), "{text}");
        }
        for word in ["env:", "env:A-B", "env:a b"] {
            assert!(matches!(parse(word), Err(KeyError::NoName)), "{word}");
        }
    }

    #[test]
    fn the_help_for_a_key_names_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("my key.pem");
        let block = "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n";
        fs::write(&path, block).unwrap();
        let source = KeySource::parse(path.as_os_str()).unwrap();
        let text = explained(&source.private(&program()).unwrap_err());
        let command =
            format!("openssl pkcs8 -topk8 -nocrypt -in '{}' -out key8.pem", path.display());
        assert!(text.contains(&command), "{text}");
    }

    #[test]
    fn the_error_of_a_key_names_its_source_and_not_its_text() {
        let source = |word| KeySource::parse(OsStr::new(word)).unwrap();
        let text = |word| explained(&source(word).private(&program()).unwrap_err());
        insta::assert_snapshot!(text("env:NOT_A_KEY"), @r#"error: the key env:NOT_A_KEY cannot be used: the key has no PEM block "PRIVATE KEY""#);
        insta::assert_snapshot!(text("env:NO_KEY"), @"
        error: --key: the variable NO_KEY is not set
          = help: run `export NO_KEY=…` first, or write `--key FILE`
        ");
        insta::assert_snapshot!(text("/none.key"), @"error: cannot read /none.key: No such file or directory (os error 2)");
    }

    #[test]
    fn a_signature_by_one_of_the_keys_is_enough() {
        let directory = tempfile::tempdir().unwrap();
        let (one, other, digest) = (key(), key(), Digest::of(b"box"));
        let word = |key: &PrivateKey, name: &str| {
            let path = directory.path().join(name);
            fs::write(&path, key.public().to_pem()).unwrap();
            path.into_os_string()
        };
        let keys = |keys| TrustOptions { keys, bundles: Vec::new() }.keys(&program()).unwrap();
        assert_eq!(keys(Vec::new()), None);
        let signed = |statement: Statement, name: &str| NamedBundle {
            name: name.to_owned(),
            bytes: statement.sign(&one).unwrap(),
        };
        let own = signed(Statement::signature(None, digest), "own");
        let about_other = signed(Statement::signature(None, Digest::of(b"other")), "about-other");
        let sbom = signed(Statement::spdx(None, digest, "{}").unwrap(), "sbom");
        let both = keys(vec![word(&other, "other.pub"), word(&one, "one.pub")]).unwrap();
        let found = both.verify(&[about_other.clone(), sbom.clone(), own.clone()], &digest);
        assert_eq!(found.missing(), None);
        assert_eq!(found.lines().len(), 2);
        assert!(
            found.lines()[1].ends_with("one.pub: ok")
                && found.lines()[1].starts_with("signature by ")
        );
        let found = both.verify(&[about_other, sbom], &digest);
        let text = found.missing().unwrap().text();
        assert!(text.contains("about-other: the statement is about sha256:"), "{text}");
        assert!(text.contains("sbom: sbom, not a signature"), "{text}");
        let other = keys(vec![word(&other, "other.pub")]).unwrap();
        let found = other.verify(&[own], &digest);
        let text = found.missing().unwrap().text();
        assert!(text.contains("own: the bundle is signed with another key"), "{text}");
        assert!(text.contains(" is the key `"), "{text}");
        let text = other.verify(&[], &digest).missing().unwrap().text();
        assert!(text.contains("it has no bundles"), "{text}");
    }
}
