//! What `sign` and `attest` share: the box that a statement is about, and where the signed statement goes.

mod attached;
mod delivery;
mod subject;
mod verification;

use std::ffi::OsString;
use std::path::PathBuf;

use box_contract::{ErrorCode, RemoteName};
use box_trust::PrivateKey;
use cli_common::trust::KeySource;
use cli_registry::RegistryOptions;
use oci_registry::Registry;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

use super::failure::Failure;
use super::registries;
use super::stored::PROGRAM;
use super::transfer::destination;

pub(super) use attached::attached;
pub(super) use delivery::deliver;
pub(super) use subject::Subject;
pub(super) use verification::{Verified, verify};

/// How a statement is signed, and where it goes.
#[derive(Debug, clap::Args)]
pub(super) struct SigningOptions {
    /// The private key: a PEM file, or env:NAME for the variable NAME that contains the PEM text
    // A text that begins with hyphens is a value, too: clap's error would repeat it, and it may be a key.
    #[arg(long = "key", value_name = "FILE|env:NAME", allow_hyphen_values = true)]
    key: Option<OsString>,
    /// Write the signed statement, a sigstore bundle, to this file, and attach it to nothing
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the unsigned statement to the file of --output, for another program that signs it
    #[arg(long, requires = "output", conflicts_with = "key")]
    statement: bool,
    /// Also send it to this box in a registry, with all other attachments of the box
    #[arg(long, value_name = "HOST/NAME:TAG", value_parser = destination, conflicts_with = "output")]
    push: Option<RemoteName>,
}

/// What a command makes of its statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Bundles: signed statements.
    Bundle,
    /// Unsigned statements.
    Statement,
    /// The predicates of the statements.
    Predicate,
}

impl SigningOptions {
    /// Returns the form of the statements. `predicate` is the command's option for predicates.
    pub(super) fn form(&self, predicate: bool) -> Form {
        match (self.statement, predicate) {
            (true, _) => Form::Statement,
            (false, true) => Form::Predicate,
            (false, false) => Form::Bundle,
        }
    }

    /// Returns whether the result goes to a file.
    pub(super) const fn writes_file(&self) -> bool {
        self.output.is_some()
    }

    /// Returns the name of the box for its statement, if the command line names a registry.
    pub(super) fn name(&self) -> Option<String> {
        self.push.as_ref().map(RemoteName::whole_repository)
    }

    /// Makes the client of a command that signs. No helper for credentials gets the variable with the private key.
    pub(super) fn client(
        &self,
        registries: &RegistryOptions,
        as_json: bool,
    ) -> Result<Registry, Failure> {
        let source = self.key.as_deref().map(KeySource::parse).transpose()?;
        let key = source.as_ref().and_then(KeySource::variable).map(str::to_owned);
        let hidden_variables = key.into_iter().collect();
        registries::sender(&RegistryOptions { hidden_variables, ..registries.clone() }, as_json)
    }

    fn key(&self) -> Result<PrivateKey, Failure> {
        let Some(word) = &self.key else {
            let help = "write `--key FILE` or `--key env:NAME`; `boxbuild keygen` makes a key";
            return Err(Failure::new((ErrorCode::Usage, help), "--key is missing"));
        };
        let source = KeySource::parse(word)?;
        hide_memory()?;
        Ok(source.private(&PROGRAM)?)
    }
}

/// Keeps the memory of this process out of core dumps, and away from other processes of the same user: `PR_SET_DUMPABLE` of
/// [prctl(2)](https://man7.org/linux/man-pages/man2/prctl.2.html). Call it before a private key is read.
pub(super) fn hide_memory() -> Result<(), Failure> {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let hidden = setrlimit(Resource::Core, none)
        .and_then(|()| set_dumpable_behavior(DumpableBehavior::NotDumpable));
    hidden.map_err(|error| Failure::new(ErrorCode::Io, format!("cannot hide the memory: {error}")))
}
