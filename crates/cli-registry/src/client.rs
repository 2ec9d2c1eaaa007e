//! Makes the client for registries: its configuration, credentials, certificates and proxy.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use box_contract::ErrorCode;
use cli_common::Problem;
use diagnostics::{Diagnostic, Source, Sources, Span};
use download::{NetworkOptions, Retry, RetryObserver};
use host_fs::read::{Links, read_file};
use host_fs::{FileError, named_path, own};
use oci_registry::{ConfigError, Notices, Options, Registry, RegistryConfig};
use safe_text::secrets::asterisks;
use safe_text::shown;
use safe_text::with_causes;

use crate::progress::Progress;
use crate::{RegistryOptions, Screen};

/// The maximum size of the configuration of registries, in bytes.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// The help for an error of the configuration that has no other help.
const EXAMPLE: &str = "docs/images.md has an example";

/// An error of the configuration of registries.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is not UTF-8 text.
    #[error(transparent)]
    Text(FileError),
    /// The content of the file is malformed.
    #[error("the configuration of registries is wrong")]
    Content(Vec<Diagnostic>, Box<Sources>),
}

impl SetupError {
    /// Returns the problems, for the user.
    pub fn problems(&self) -> Vec<Problem> {
        let one = |problem| vec![problem];
        match self {
            Self::File(error) => {
                let code = match error.source.kind() {
                    ErrorKind::FileTooLarge => ErrorCode::TooLarge,
                    _ => ErrorCode::RegistryConfig,
                };
                let help = "name another with --registry-config; docs/images.md has an example";
                one(Problem::new((code, help), shown(&with_causes(error))))
            }
            Self::Text(error) => {
                one(Problem::new(ErrorCode::RegistryConfig, shown(&with_causes(error))))
            }
            Self::Content(found, sources) => {
                Problem::of_diagnostics(ErrorCode::RegistryConfig, found, sources)
            }
        }
    }
}

/// Returns the value of an environment variable.
pub type Variable<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Makes the client of a command. Without a screen, the client reports no progress. Sends no request.
///
/// # Errors
/// [`SetupError`] if the configuration cannot be read or is malformed.
pub fn client(
    options: &RegistryOptions,
    variable: Variable<'_>,
    screen: Option<Screen>,
) -> Result<Registry, SetupError> {
    let search = variable("PATH").unwrap_or_default();
    let (config, config_file) = config(options, variable)?;
    Ok(Registry::new(Options {
        config,
        config_file,
        auth_files: own::credentials(variable).into_iter().map(|it| it.0).collect(),
        helper_path: env::split_paths(&search).filter(|it| it.is_absolute()).collect(),
        hidden_variables: options.hidden_variables.clone(),
        notices: screen.map(notices),
        network: network(variable, screen),
        ..Options::default()
    }))
}

/// Returns notices that print each reason once, even if it concerns several images.
fn notices(screen: Screen) -> Notices {
    let reported = Mutex::new(BTreeSet::new());
    Notices::new(move |reason| {
        if reported.lock().is_ok_and(|mut reported| reported.insert(reason.to_owned())) {
            (screen.note)(&format!("note: credentials were ignored: {}", shown(reason)));
        }
    })
}

/// Returns the network options of a command. Without a screen, no progress is reported.
pub fn network(variable: Variable<'_>, screen: Option<Screen>) -> NetworkOptions {
    let text = |name| variable(name)?.into_string().ok().filter(|value| !value.is_empty());
    let progress = screen.map(Progress::new);
    NetworkOptions {
        proxy: text("HTTPS_PROXY").or_else(|| text("https_proxy")),
        // The certificates to trust instead of the system's.
        roots: named_path(variable(own::CERTIFICATES)),
        progress: progress.map(|it| Arc::new(move |piece| it.tell(piece)) as Arc<_>),
        retry: screen.map(|screen| RetryObserver::new(move |it| (screen.note)(&retrying(&it)))),
        ..NetworkOptions::default()
    }
}

/// Returns the note about a retry.
fn retrying(retry: &Retry<'_>) -> String {
    let Retry { host, error, attempt, tries, .. } = retry;
    let cause = shown(&with_causes(*error));
    format!("note: trying {host} again (attempt {attempt} of {tries}): {cause}")
}

/// Reads the configuration file of the option `--registry-config`, or else the user's `registries.toml` in the
/// [configuration directory](https://specifications.freedesktop.org/basedir-spec/latest/). Returns the configuration
/// and the path of the file. If the user's file does not exist, returns the default configuration.
fn config(
    options: &RegistryOptions,
    variable: Variable<'_>,
) -> Result<(RegistryConfig, Option<PathBuf>), SetupError> {
    let named = options.registry_config.clone();
    let users = own::configuration(variable).map(|it| it.join("registries.toml"));
    match (named, users) {
        (Some(file), _) => Ok((read_config(&file)?, Some(file))),
        (None, Some(file)) if file.exists() => Ok((read_config(&file)?, Some(file))),
        (None, file) => Ok((RegistryConfig::default(), file)),
    }
}

fn read_config(file: &Path) -> Result<RegistryConfig, SetupError> {
    let text = read_file(file, Links::Follow, MAX_CONFIG_BYTES);
    let text = text.map_err(FileError::of("read", file))?;
    let text = host_fs::read::text(file, text).map_err(SetupError::Text)?;
    let content = |found, text| {
        let sources = Sources::single(Source::new(file.display().to_string(), text));
        SetupError::Content(found, Box::new(sources))
    };
    let faults = diagnostics::edited::text_faults(&text);
    if !faults.is_empty() {
        return Err(content(faults, text));
    }
    RegistryConfig::parse(&text).map_err(|error| {
        let (found, text) = shown_error(text, error);
        content(vec![found], text)
    })
}

/// Returns the diagnostic of a configuration error, and the text with its secrets masked.
fn shown_error(mut text: String, error: ConfigError) -> (Diagnostic, String) {
    let ConfigError { message, span, help, is_secret } = error;
    if is_secret && let Some(secret) = text.get(span.clone()).map(asterisks) {
        text.replace_range(span.clone(), &secret);
    }
    let place = Span::at(span.start, span.len());
    let help = help.unwrap_or_else(|| EXAMPLE.to_owned());
    (Diagnostic::new(message, place, "").with_help(help), text)
}
