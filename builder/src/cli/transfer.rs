//! `boxbuild push` and `boxbuild pull`: send a box to a registry, and fetch one.

use std::env;
use std::fs;

use box_cache::Store;
use box_digest::Digest;
use box_find::FindError;
use box_image::ErrorCode;
use box_image::text::readable;
use box_layout::{OpenBox, Places};
use box_registry::{Destination, Form, Plan, Pushed};
use boxbuild::output;
use boxfile_spec::{ImageRef, shown};
use oci_registry::{Reference, Repository, Tag};
use serde_json::json;

use super::boxes::BoxArgument;
use super::failure::Failure;
use super::init::parse;
use super::options::{RegistryOptions, StoreOption};
use super::stages::Stages;
use super::{locate, registries, terminal};

/// The prefix of references to registries, which may be left out here: nothing else is meant.
const SCHEME: &str = "docker://";
/// Which form a reference has.
const FORM: &str = "write HOST/NAME:TAG, such as ghcr.io/acme/agent:v1";

/// Sends a box to a registry, and prints two digests.
///
/// The first one is the box digest, and the second one is the digest of the registry's manifest. A push compresses and sends only
/// the blobs that the registry lacks, so a second push of the same box sends nothing. docs/images.md describes credentials, mirrors
/// and certificates.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild push hello ghcr.io/acme/hello:v1       a box of the store\n  \
    boxbuild push ./out.box localhost:5000/hello:v1  one in a directory")]
pub(crate) struct PushArgs {
    #[command(flatten)]
    subject: BoxArgument,
    /// The registry, the repository and the tag
    #[arg(value_name = "HOST/NAME:TAG")]
    reference: String,
    /// Check each blob in the registry, instead of relying on the manifest at the tag, which others may have written
    #[arg(long)]
    again: bool,
    #[command(flatten)]
    registries: RegistryOptions,
    /// Print JSON, also for errors (except usage errors)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Fetches a box from a registry into the store, and prints its digest.
///
/// Only what the store lacks is fetched, and every byte is verified before it counts. `boxlaunch run sha256:...` starts the
/// box. A box that skopeo or oras copied is pulled as well.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild pull ghcr.io/acme/hello:v1\n  \
    boxbuild pull ghcr.io/acme/hello:v1@sha256:...   the box digest, or the digest of the registry's manifest\n  \
    boxbuild pull ghcr.io/acme/hello:v1 --dry-run    say how much would be fetched")]
pub(crate) struct PullArgs {
    /// The registry, the repository and the tag; with @sha256:... after it, the box or the registry's manifest must have
    /// this digest
    #[arg(value_name = "HOST/NAME[:TAG][@DIGEST]")]
    reference: String,
    /// Say how much would be fetched, and fetch nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    store: StoreOption,
    #[command(flatten)]
    registries: RegistryOptions,
    /// Print JSON, also for errors (except usage errors)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Runs `boxbuild push`.
pub(crate) fn push(args: &PushArgs) -> Result<(), Failure> {
    let named = Named::read(&args.reference)?;
    let (Reference::Tag(tag), None) = (&named.reference, named.digest) else {
        let message = "a box is pushed to a tag, not to a digest";
        return Err(Failure::new((ErrorCode::Usage, FORM), message));
    };
    let opened = args.subject.open()?;
    let client = registries::client(&args.registries, args.json)?;
    let stages = Stages::new(args.json);
    stages.begin(&format!("sending to {}", args.reference));
    let scratch = env::temp_dir();
    let to = Destination {
        repository: &named.repository,
        tag,
        mount_from: None,
        reuse: !args.again,
        scratch: &scratch,
    };
    let pushed = box_registry::push(&client, &opened, &to)?;
    stages.end();
    if args.json {
        terminal::json(&pushed_json(&args.reference, &pushed).to_string());
    } else {
        terminal::note(&sent(&pushed));
        terminal::result(&format!("{}\n{}", pushed.digest, pushed.registry_digest));
    }
    Ok(())
}

fn pushed_json(reference: &str, pushed: &Pushed) -> serde_json::Value {
    json!({
        "reference": reference,
        "box": pushed.digest,
        "registry_digest": pushed.registry_digest,
        "form": form(pushed.form),
        "sent": pushed.sent,
        "skipped": pushed.skipped,
        "bytes": pushed.bytes,
    })
}

/// Says what a push has done.
fn sent(pushed: &Pushed) -> String {
    match pushed.bytes {
        0 => "the registry has this box already".to_owned(),
        bytes => {
            let all = pushed.sent + pushed.skipped + pushed.mounted;
            format!("sent {} of {all} blobs, {}", pushed.sent, readable(bytes))
        }
    }
}

const fn form(form: Form) -> &'static str {
    match form {
        Form::Artifact => "artifact",
        Form::Image => "image",
        Form::Plain => "plain",
    }
}

/// Runs `boxbuild pull`.
pub(crate) fn pull(args: &PullArgs) -> Result<(), Failure> {
    let named = Named::read(&args.reference)?;
    let store = locate::open_store(&locate::store(args.store.store.as_deref())?)?;
    let client = registries::client(&args.registries, args.json)?;
    let plan = box_registry::plan(&client, &named.repository, &named.reference, &store)?;
    named.check(&plan)?;
    let (missing, all) = (plan.missing.len(), plan.blobs());
    let amounts = format!("{} of {}", readable(plan.bytes()), readable(plan.total_bytes()));
    if !args.json {
        terminal::note(&format!("fetching {missing} of {all} blobs, {amounts}"));
    }
    if !args.dry_run {
        plan.fetch(&client, &store)?;
        keep(&store, plan.remote.digest)?;
    }
    if args.json {
        terminal::json(&pulled_json(args, &plan).to_string());
        return Ok(());
    }
    if !args.dry_run {
        terminal::note(&format!("start it: boxlaunch run {}", plan.remote.digest));
    }
    terminal::result(&plan.remote.digest.to_string());
    Ok(())
}

fn pulled_json(args: &PullArgs, plan: &Plan) -> serde_json::Value {
    json!({
        "reference": args.reference,
        "box": plan.remote.digest,
        "registry_digest": plan.remote.registry_digest,
        "blobs": plan.blobs(),
        "fetched": plan.missing.len(),
        "bytes": plan.bytes(),
        "total_bytes": plan.total_bytes(),
        "dry_run": args.dry_run,
    })
}

/// Makes a pulled box one of the store, if it can be opened.
fn keep(store: &Store, digest: Digest) -> Result<(), Failure> {
    let size = store.size(&digest).unwrap_or_default();
    output::keep(store, digest, size)?;
    let directory = store.box_directory(&digest);
    let places = Places::new(&directory, Some(&store.blobs()));
    if let Err(error) = OpenBox::open(places) {
        // Nobody can start it.
        drop(fs::remove_dir_all(&directory));
        return Err(box_inspect::opened::OpenError::from(error).into());
    }
    Ok(())
}

/// What a reference names.
struct Named {
    repository: Repository,
    /// What the registry is asked for: the tag, if there is one.
    reference: Reference,
    /// What the box or the registry's manifest has to have.
    digest: Option<Digest>,
}

impl Named {
    fn read(text: &str) -> Result<Self, Failure> {
        let rest = text.strip_prefix(SCHEME).unwrap_or(text);
        let host = rest.split_once('/').map_or("", |(host, _)| host);
        if host != "localhost" && !host.contains(['.', ':']) {
            let message =
                format!("{} names no registry, and none is asked by default", shown(text));
            return Err(Failure::new((ErrorCode::Usage, FORM), message));
        }
        let ImageRef::Registry { host, repository, tag, digest } =
            parse(&format!("{SCHEME}{rest}"))?
        else {
            return Err(Failure::new((ErrorCode::Usage, FORM), "this is no reference"));
        };
        let tag = tag.map(|tag| Tag::new(&tag).map(Reference::Tag)).transpose()?;
        let missing = || Failure::new((ErrorCode::Usage, FORM), "this is no reference");
        let reference = tag.or_else(|| digest.map(Reference::Digest)).ok_or_else(missing)?;
        Ok(Self { repository: Repository::new(&host, &repository)?, reference, digest })
    }

    /// Checks that the box or the registry's manifest has the digest of the reference.
    fn check(&self, plan: &Plan) -> Result<(), Failure> {
        let remote = &plan.remote;
        match self.digest.filter(|it| ![remote.digest, remote.registry_digest].contains(it)) {
            Some(expected) => Err(FindError::OtherBox { expected, found: remote.digest }.into()),
            None => Ok(()),
        }
    }
}
