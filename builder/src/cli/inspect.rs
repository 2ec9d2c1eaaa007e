//! `boxbuild inspect`: describes a box and its sources, or prints its SBOM.

use box_inspect::export::VerifiedContents;
use box_inspect::opened::{self, OpenBox};
use box_inspect::sbom::{Document, Subject};
use box_tree::entries;
use box_tree::listing::Listing;
use serde_json::{Value, json};

use super::failure::Failure;
use super::terminal;
use super::{signing, stored};
use cli_common::store::BoxArgument;

/// Shows the digests, images, layers, components and sizes of a box.
///
/// Shows `****` for the value of a variable that looks like a secret. `boxbuild cat BOX /boxbuild/plan.json` prints the
/// value, which the box contains.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild inspect hello.box\n  \
    boxbuild inspect hello.box --json | jq .images\n  \
    boxbuild inspect hello.box --sbom > hello.spdx.json   the packages in it, as SPDX 2.3")]
pub(crate) struct Args {
    #[command(flatten)]
    subject: BoxArgument,
    /// Print the SBOM: an SPDX 2.3 document in JSON
    #[arg(long)]
    sbom: bool,
    /// Print JSON, also for errors (except usage errors)
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let opened = stored::open(&args.subject)?;
    let listing = opened::listing(&opened)?;
    let mut contents = VerifiedContents::open(&opened, &listing.tree)?;
    if args.sbom {
        let document = sbom(&opened, &listing, &mut contents)?;
        terminal::json_of(|out| document.write(out));
        return Ok(());
    }
    let hidden = contents.hidden_bytes(&listing.tree);
    let attached = signing::attached(&args.subject, &opened.digest)?;
    if args.json {
        let mut report = report(&opened, &listing, hidden);
        report["attachments"] = json!(attached);
        terminal::json(&report.to_string());
    } else {
        let origins = opened::describe_origins(&listing, hidden);
        terminal::pieces([opened.describe(), origins]);
        terminal::pieces(attached.iter().map(|it| it.line() + "\n"));
    }
    Ok(())
}

/// Returns the text of the SBOM of a box.
pub(super) fn sbom_text(opened: &OpenBox) -> Result<String, Failure> {
    let listing = opened::listing(opened)?;
    let mut contents = VerifiedContents::open(opened, &listing.tree)?;
    let document = sbom(opened, &listing, &mut contents)?;
    let mut text = Vec::new();
    document.write(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the SBOM of a box ([SPDX 2.3](https://spdx.github.io/spdx-spec/v2.3/)), from its listing
/// and the package databases in its rootfs.
fn sbom(
    opened: &OpenBox,
    listing: &Listing,
    contents: &mut VerifiedContents,
) -> Result<Document, Failure> {
    let subject = Subject {
        digest: opened.digest,
        plan: &opened.config.plan,
        listing,
        tree: opened.config.tree,
        kernel: (opened.kernel.descriptor.digest, &opened.config.kernel_version),
        init: opened.init.descriptor.digest,
    };
    Ok(box_inspect::sbom::document(&subject, contents)?)
}

/// Returns the report that `boxlaunch inspect` also has, with additional fields from the listing.
fn report(opened: &OpenBox, listing: &Listing, hidden: u64) -> Value {
    let mut report = opened.report();
    report["hidden_bytes"] = json!(hidden);
    report["entries"] = json!(entries(&listing.tree).count());
    report["images"] = json!(listing.origins.images);
    report["program"] = json!(listing.origins.program);
    report["files"] = json!(listing.origins.files);
    report
}
