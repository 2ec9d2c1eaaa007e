//! Verifies the signatures of a box for `boxbuild verify --key`.

use cli_common::store::BoxArgument;
use cli_common::trust::{NamedBundle, Signatures, TrustOptions};

use super::Subject;
use crate::cli::failure::Failure;
use crate::cli::options::RegistryOptions;
use crate::cli::registries;
use crate::cli::stored::PROGRAM;
use crate::cli::terminal;

/// What the signatures of a box prove.
pub(crate) struct Verified<'a> {
    pub(crate) subject: Subject<'a>,
    pub(crate) signatures: Signatures,
}

/// Verifies the bundles of a box: those of the command line, else the attachments of the box in the store, else those in its
/// registry. `None` if the command line names no key.
pub(crate) fn verify<'a>(
    argument: &'a BoxArgument,
    trust: &TrustOptions,
    options: &RegistryOptions,
    as_json: bool,
) -> Result<Option<Verified<'a>>, Failure> {
    let Some(keys) = trust.keys(&PROGRAM)? else { return Ok(None) };
    let client = registries::client(options, as_json)?;
    let subject = Subject::find(argument, &client)?;
    let bundles = match (trust.bundles()?, &subject.located) {
        (Some(bundles), _) => bundles,
        (None, Some((_, located))) => {
            let found = located.attachments(&client, keys.keys())?;
            found.note().iter().for_each(|it| terminal::note(it));
            NamedBundle::of(found.all)
        }
        (None, None) => {
            let attachments = cli_common::store::attachments(&subject.stores(), &subject.digest)?;
            NamedBundle::of(attachments)
        }
    };
    let signatures = keys.verify(&bundles, &subject.digest);
    Ok(Some(Verified { subject, signatures }))
}
