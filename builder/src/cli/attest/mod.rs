//! `boxbuild attest`: signs how a box was built, and which packages it has.

mod provenance;

use std::path::PathBuf;

use box_contract::ErrorCode;
use box_trust::Statement;
use cli_common::store::BoxArgument;

use super::failure::Failure;
use super::inspect;
use super::options::{InputOptions, ProfileOption, ProjectOptions};
use super::signing::{Form, SigningOptions, Subject, deliver};

/// Signs the provenance and the SBOM of a box, and attaches them to the box.
///
/// Run it in the checkout from which the box was built, with the same options. The provenance (SLSA v1) names the Boxfile, its
/// lock and all inputs by reference and digest. It is refused unless the store has the build of exactly these inputs, and that
/// build is the box. The SBOM (SPDX 2.3) lists the packages. Both go where `boxbuild sign` puts a signature, and neither replaces it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild attest hello --key acme.key                  after `boxbuild build --locked`\n  \
    boxbuild attest ghcr.io/acme/hello:v1 --key env:KEY --provenance\n  \
    boxbuild attest hello --sbom --predicate -o hello.spdx.json   for actions/attest")]
pub(crate) struct Args {
    /// The box: a directory such as NAME.box or ./DIR, a name in the store, HOST/NAME:TAG of a registry, or sha256:...
    #[arg(id = "box", value_name = "BOX")]
    reference: PathBuf,
    /// Only the provenance, or with --sbom both [default: both]
    #[arg(long)]
    provenance: bool,
    /// Only the SBOM, or with --provenance both
    #[arg(long)]
    sbom: bool,
    /// The URI of the system that ran the build, such as the workflow in the continuous integration
    #[arg(long, value_name = "URI", default_value = provenance::LOCAL_BUILDER, value_parser = provenance::builder_id)]
    builder_id: String,
    #[command(flatten)]
    signing: SigningOptions,
    /// Write only the predicate to the file of --output, not signed
    #[arg(long, requires = "output", conflicts_with_all = ["key", "statement"])]
    predicate: bool,
    #[command(flatten)]
    pub(crate) project: ProjectOptions,
    #[command(flatten)]
    profile: ProfileOption,
    #[command(flatten)]
    inputs: InputOptions,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (has_provenance, has_sbom) = match (args.provenance, args.sbom) {
        (false, false) => (true, true),
        chosen => chosen,
    };
    if args.signing.writes_file() && has_provenance && has_sbom {
        let help = "add `--provenance` or `--sbom`";
        let message = "--output takes one statement, and both were asked for";
        return Err(Failure::new((ErrorCode::Usage, help), message));
    }
    let client = args.signing.client(&args.inputs.registries, args.project.json)?;
    let argument =
        BoxArgument { reference: args.reference.clone(), store: args.inputs.store.clone() };
    let subject = Subject::find(&argument, &client)?;
    let name = subject.name().map(str::to_owned).or_else(|| args.signing.name());
    let mut statements = Vec::new();
    if has_provenance {
        let provenance = provenance::of(args, &subject.digest())?;
        statements.push(Statement::provenance(name.as_deref(), subject.digest(), &provenance)?);
    }
    if has_sbom {
        let document = inspect::sbom_text(&subject.open()?)?;
        statements.push(Statement::spdx(name.as_deref(), subject.digest(), &document)?);
    }
    let how = (form(args), &client, args.project.json);
    deliver(&subject, &statements, &args.signing, how)
}

fn form(args: &Args) -> Form {
    args.signing.form(args.predicate)
}
