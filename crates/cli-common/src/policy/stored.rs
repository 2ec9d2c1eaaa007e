//! The origin of a box in a file, in the store or in a directory, for the policy of this host.

use std::collections::BTreeSet;

use box_archive::Boxed;
use box_cache::StoredBoxes;
use box_contract::RemoteName;
use box_digest::Digest;
use box_trust::{Origin, Refusal};
use safe_text::shown;
use serde::Serialize;

use super::{Asked, HostPolicy, PolicyError, Verdict};
use crate::Problem;
use crate::store::{BoxArgument, CommandFault, Program, attachments, stored_boxes};

/// Asks the policy about a box in a file, whose attachments are in the file, too. The names of the box in the file are only what
/// the file declares, so the policy must accept the box under each of them. [`Boxed::needed`] becomes what the policy needs.
///
/// # Errors
/// [`PolicyError`] if the policy does not accept the box.
pub fn check_file(
    policy: &HostPolicy,
    file: &str,
    found: &mut Boxed,
) -> Result<Verdict, PolicyError> {
    let names = found.names.iter().filter_map(|it| RemoteName::parse(it).ok());
    let names: BTreeSet<_> = names.map(|it| it.whole_repository()).collect();
    let subject = format!("the box {} in {file}", found.called());
    let asked = policy.ask_all(&subject, &declared(&names))?;
    let verdict = asked.check(&found.remote.digest, &found.attachments)?;
    found.needed.clone_from(&verdict.bundles);
    Ok(verdict)
}

/// Asks the policy about the box of a command line that has the digest `digest`, and is in the store or in a directory.
/// `has_digest` is whether the command line names that digest.
///
/// If the command line has a name in a registry, and the store has pulled this box from that repository, the name decides.
/// A box of the store is found by its digest under any name, so the name alone says nothing about it. Else the box is accepted if
/// the policy accepts it as a box of one of these origins:
///
/// - a build on this host, if the store has a note of it;
/// - each repository from which the store has pulled it;
/// - if there is neither, a file that declares the names that the box was loaded with, or the name of the command line. The policy
///   must accept the box under each name: nobody knows where it comes from.
///
/// # Errors
/// [`CommandFault::Policy`] if the policy does not accept the box, and the errors of reading the store.
pub fn check_stored(
    policy: &HostPolicy,
    program: &Program,
    subject: &BoxArgument,
    digest: &Digest,
    has_digest: bool,
) -> Result<Verdict, CommandFault> {
    let stores = subject.store.stores(program);
    let boxes = stored_boxes(&stores)?;
    let known = boxes.as_ref().map(|it| Known::of(it, digest)).transpose()?.unwrap_or_default();
    let typed = subject.parse()?.remote().map(RemoteName::whole_repository);
    let word = subject.word().to_string_lossy();
    let asked = known.ask(policy, &word, typed, has_digest)?;
    let attachments = match asked.needs_signature() {
        true => attachments(&stores, digest)?,
        false => Vec::new(),
    };
    Ok(asked.check(digest, &attachments)?)
}

/// What the policy of this host says about a box, for a command that verifies the box.
#[derive(Debug, Serialize)]
pub struct PolicyReport {
    /// Whether the policy accepts the box.
    pub ok: bool,
    /// The file of the policy, with the line if there is one. `None` if the box is refused: then the error has it.
    pub place: Option<String>,
    /// The hint of the key that has signed the box, if the policy requires a signature.
    pub key: Option<String>,
    #[serde(skip)]
    place_line: String,
}

impl PolicyReport {
    /// Asks the policy as [`check_stored`] does. Returns the report, and the error if the box is refused.
    ///
    /// # Errors
    /// [`CommandFault`] if the store cannot be read.
    pub fn of(
        policy: &HostPolicy,
        program: &Program,
        subject: &BoxArgument,
        digest: &Digest,
    ) -> Result<(Self, Option<Problem>), CommandFault> {
        match check_stored(policy, program, subject, digest, subject.names_digest()) {
            Ok(it) => {
                let place_line = it.line();
                let report = Self { ok: true, place: Some(it.place), key: it.key, place_line };
                Ok((report, None))
            }
            Err(CommandFault::Policy(error)) => {
                let place_line = shown(&policy.path.display().to_string());
                let report = Self { ok: false, place: None, key: None, place_line };
                Ok((report, Some(Problem::new(&error, shown(&error.to_string())))))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the report as one line.
    pub fn line(&self) -> String {
        let verdict = if self.ok { "ok" } else { "REFUSES" };
        format!("policy   {verdict:<9}{}\n", self.place_line)
    }
}

/// What the stores know about the origin of a box.
#[derive(Debug, Default)]
struct Known {
    /// Whether the box was built on this host.
    is_built: bool,
    /// The repositories from which it was pulled.
    pulled: BTreeSet<String>,
    /// The repositories that the archives declare from which it was loaded.
    loaded: BTreeSet<String>,
}

impl Known {
    fn of(boxes: &StoredBoxes, digest: &Digest) -> Result<Self, CommandFault> {
        let mut known = Self { is_built: boxes.is_built(digest), ..Self::default() };
        for it in boxes.references(digest)? {
            let Ok(name) = RemoteName::parse(&it.reference) else { continue };
            let names = if it.is_loaded { &mut known.loaded } else { &mut known.pulled };
            names.insert(name.whole_repository());
        }
        Ok(known)
    }

    /// Asks the policy about the box. `typed` is the repository on the command line.
    fn ask<'p>(
        mut self,
        policy: &'p HostPolicy,
        word: &str,
        typed: Option<String>,
        has_digest: bool,
    ) -> Result<Asked<'p>, PolicyError> {
        if let Some(typed) = typed.as_ref().and_then(|it| self.pulled.take(it)) {
            (self.is_built, self.pulled) = (false, [typed].into());
        }
        let pulled = self.pulled.iter().map(|it| Origin::Registry { repository: it, has_digest });
        let local = self.is_built.then_some(Origin::Local);
        let all: Vec<_> = local.into_iter().chain(pulled).collect();
        if !all.is_empty() {
            return policy.ask(word, &all);
        }
        self.loaded.extend(typed);
        policy.ask_all(word, &declared(&self.loaded)).map_err(unknown)
    }
}

/// Returns the origins of a box in a file that declares these repositories for it.
fn declared(names: &BTreeSet<String>) -> Vec<Origin<'_>> {
    let names = names.iter().map(|it| Origin::File { repository: Some(it) });
    let all: Vec<_> = names.collect();
    if all.is_empty() { vec![Origin::File { repository: None }] } else { all }
}

/// Describes the refusal of a box whose origin is not known.
fn unknown(mut error: PolicyError) -> PolicyError {
    if let PolicyError::Refused { reason, refusal: Refusal::File, .. } = &mut error {
        *reason = "it was neither built on this host nor pulled, so the policy treats it as a box from a file".to_owned();
    }
    error
}
