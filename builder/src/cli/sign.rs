//! `boxbuild sign`: signs a box.

use box_trust::Statement;
use cli_common::store::BoxArgument;

use super::failure::Failure;
use super::options::RegistryOptions;
use super::signing::{SigningOptions, Subject, deliver};

/// Signs the digest of a box, and attaches the signature to the box.
///
/// A box of the store gets the signature there, and `push`, `pull`, `save` and `load` carry it. A box that is only in a registry
/// gets it there at once, and no blob is fetched. The signature is valid for the box under every name. docs/trust.md describes it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild sign hello --key acme.key                    a box of the store\n  \
    boxbuild sign ghcr.io/acme/hello:v1 --key env:KEY     a box in a registry\n  \
    boxbuild sign hello --key acme.key -o hello.sigstore.json\n  \
    boxbuild sign hello --statement -o hello.json         for a program that signs it: cosign, actions/attest")]
pub(crate) struct Args {
    #[command(flatten)]
    subject: BoxArgument,
    #[command(flatten)]
    signing: SigningOptions,
    /// The number of the release that the box is, greater than those before. A policy with `refuse-older` keeps a tag from moving back
    #[arg(long, value_name = "N")]
    release: Option<u64>,
    #[command(flatten)]
    registries: RegistryOptions,
    /// Print JSON, also for errors (except usage errors)
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let client = args.signing.client(&args.registries, args.json)?;
    let subject = Subject::find(&args.subject, &client)?;
    subject.check_pinned()?;
    let name = subject.name().map(str::to_owned).or_else(|| args.signing.name());
    let (name, digest) = (name.as_deref(), subject.digest());
    let statement = match args.release {
        Some(release) => Statement::signature_of_release(name, digest, release),
        None => Statement::signature(name, digest),
    };
    let how = (args.signing.form(false), &client, args.json);
    deliver(&subject, &[statement], &args.signing, how)
}
