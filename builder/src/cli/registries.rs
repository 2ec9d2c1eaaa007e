//! The client for registries: its configuration, credentials, certificates, a proxy.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use box_image::ErrorCode;
use box_image::secrets::asterisks;
use boxfile_spec::{Diagnostic, Source, Sources, Span, shown};
use download::{NetworkOptions, Retry, RetryObserver};
use host_fs::read::{Links, ReadError, read_file};
use host_fs::{FileError, own};
use oci_registry::{ConfigError, Notices, Options, Registry, RegistryConfig};

use super::failure::{Failure, chain};
use super::locate::path;
use super::options::RegistryOptions;
use super::progress::Progress;
use super::terminal;

/// The most bytes of a registry configuration.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// Makes the client of this command. Progress is shown to people, unless a machine reads along.
pub(crate) fn client(options: &RegistryOptions, as_json: bool) -> Result<Registry, Failure> {
    let search = env::var_os("PATH").unwrap_or_default();
    let (config, config_file) = config(options)?;
    Ok(Registry::new(Options {
        config,
        config_file,
        auth_files: own::credentials(|name| env::var_os(name)).into_iter().map(|it| it.0).collect(),
        helper_path: env::split_paths(&search).filter(|it| it.is_absolute()).collect(),
        notices: (!as_json).then(notices),
        network: network(as_json),
        ..Options::default()
    }))
}

/// Returns notices for a person: each once, however many images ask.
fn notices() -> Notices {
    let told = Mutex::new(BTreeSet::new());
    Notices::new(move |why| {
        if told.lock().is_ok_and(|mut told| told.insert(why.to_owned())) {
            terminal::note(&format!("note: credentials were passed over: {}", shown(why)));
        }
    })
}

/// Returns how this command uses the network.
pub(crate) fn network(as_json: bool) -> NetworkOptions {
    let progress = Progress::new(as_json);
    NetworkOptions {
        proxy: text("HTTPS_PROXY").or_else(|| text("https_proxy")),
        // Trusted certificates, instead of the system's.
        roots: path(own::CERTIFICATES),
        progress: Some(Arc::new(move |it| progress.tell(it))),
        retry: Some(RetryObserver::new(move |it| {
            if !as_json {
                terminal::note(&retrying(&it));
            }
        })),
        ..NetworkOptions::default()
    }
}

/// Says that a server is asked again.
fn retrying(retry: &Retry) -> String {
    let Retry { host, attempt, tries, .. } = retry;
    format!("note: {host} gave no usable answer; retrying ({attempt} of {tries})")
}

/// Reads the configuration that is named, or the user's. Returns it with the path of its file; the
/// user's need not exist.
fn config(options: &RegistryOptions) -> Result<(RegistryConfig, Option<PathBuf>), Failure> {
    let named = options.registry_config.clone();
    let users = own::configuration(|name| env::var_os(name)).map(|it| it.join("registries.toml"));
    match (named, users) {
        (Some(file), _) => Ok((read_config(&file)?, Some(file))),
        (None, Some(file)) if file.exists() => Ok((read_config(&file)?, Some(file))),
        (None, file) => Ok((RegistryConfig::default(), file)),
    }
}

fn read_config(path: &Path) -> Result<RegistryConfig, Failure> {
    let file = path.to_owned();
    let text = read_file(&file, Links::Follow, CONFIG_BYTES_MAX).map_err(|error| {
        let code = match error {
            ReadError::TooLong { .. } => ErrorCode::TooLarge,
            _ => ErrorCode::RegistryConfig,
        };
        let help = "name another with --registry-config; docs/images.md has an example";
        Failure::new((code, help), chain(&FileError::of("read", &file)(error)))
    })?;
    let text = host_fs::read::text(&file, text)
        .map_err(|error| Failure::new(ErrorCode::RegistryConfig, chain(&error)))?;
    let faults = boxfile_spec::text_faults(&text);
    if !faults.is_empty() {
        let sources = Sources::single(Source::new(file.display().to_string(), text));
        return Err(Failure::diagnostics(ErrorCode::RegistryConfig, &faults, &sources));
    }
    RegistryConfig::parse(&text).map_err(|error| shown_error(&file, text, error))
}

/// Shows what is wrong with a configuration, and where.
fn shown_error(file: &Path, mut text: String, error: ConfigError) -> Failure {
    let ConfigError { message, span, help, is_secret } = error;
    if is_secret && let Some(secret) = text.get(span.clone()).map(asterisks) {
        text.replace_range(span.clone(), &secret);
    }
    let place = Span::at(span.start, span.len());
    let help = help.unwrap_or_else(|| "docs/images.md has an example".to_owned());
    let found = Diagnostic::new(message, place, "").with_help(help);
    let sources = Sources::single(Source::new(file.display().to_string(), text));
    Failure::diagnostics(ErrorCode::RegistryConfig, &[found], &sources)
}

fn text(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}
