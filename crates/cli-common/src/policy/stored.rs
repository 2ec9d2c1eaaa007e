//! The origin of a box in a file, in the store or in a directory, for the policy of this host.

use box_archive::Boxed;
use box_cache::{Label, StoredBoxes};
use box_contract::RemoteName;
use box_digest::Digest;
use box_trust::{Origin, Refusal};

use super::{HostPolicy, PolicyError, Verdict};
use crate::store::{BoxArgument, CommandFault, Program, attachments, stored_boxes};

/// Asks the policy about a box in a file, whose attachments are in the file, too. The names of the box in the file are only what
/// the file declares.
///
/// # Errors
/// [`PolicyError`] if the policy does not accept the box.
pub fn check_file(policy: &HostPolicy, file: &str, found: &Boxed) -> Result<Verdict, PolicyError> {
    let names = found.names.iter().filter_map(|it| RemoteName::parse(it).ok());
    let names: Vec<_> = names.map(|it| repository(&it)).collect();
    let mut origins: Vec<_> =
        names.iter().map(|name| Origin::File { repository: Some(name) }).collect();
    if origins.is_empty() {
        origins.push(Origin::File { repository: None });
    }
    let subject = format!("the box {} in {file}", found.called());
    policy.ask(&subject, &origins)?.check(&found.remote.digest, &found.attachments)
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
/// - if there is neither, a file that has the name of the command line: nobody knows where the box comes from.
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
    let typed = subject.parse()?.remote().map(repository);
    let (mut is_built, mut names) = origins(boxes.as_ref(), digest)?;
    if let Some(typed) = typed.as_ref().filter(|it| names.contains(it)) {
        (is_built, names) = (false, vec![typed.clone()]);
    }
    let registry = |repository| Origin::Registry { repository, has_digest };
    let local = is_built.then_some(Origin::Local);
    let mut all: Vec<_> =
        local.into_iter().chain(names.iter().map(|it| registry(it.as_str()))).collect();
    if all.is_empty() {
        all.push(Origin::File { repository: typed.as_deref() });
    }
    let word = subject.word().to_string_lossy();
    let asked = policy.ask(&word, &all).map_err(unknown)?;
    let attachments = match asked.needs_signature() {
        true => attachments(&stores, digest)?,
        false => Vec::new(),
    };
    Ok(asked.check(digest, &attachments)?)
}

/// Returns whether the box was built on this host, and the repositories from which it was pulled.
fn origins(
    boxes: Option<&StoredBoxes>,
    digest: &Digest,
) -> Result<(bool, Vec<String>), CommandFault> {
    let Some(boxes) = boxes else { return Ok((false, Vec::new())) };
    let labels = boxes.all()?.into_iter().filter(|it| it.digest == *digest);
    let pulled = labels.filter_map(|it| match it.label {
        Some(Label::Pulled(reference)) => RemoteName::parse(&reference).ok(),
        _ => None,
    });
    Ok((boxes.is_built(digest), pulled.map(|it| repository(&it)).collect()))
}

/// Returns the registry and the repository of a name.
fn repository(name: &RemoteName) -> String {
    format!("{}/{}", name.host, name.repository)
}

/// Describes the refusal of a box whose origin is not known.
fn unknown(mut error: PolicyError) -> PolicyError {
    if let PolicyError::Refused { reason, refusal: Refusal::File, .. } = &mut error {
        *reason = "it was neither built on this host nor pulled, so the policy treats it as a box from a file".to_owned();
    }
    error
}
