//! `boxbuild push` and `boxbuild pull`: send a box to a registry, and fetch one.

use std::env;
use std::path::PathBuf;

use box_cache::{Store, is_store};
use box_contract::RemoteName;
use box_registry::{Destination, MAX_DELTAS, Parcel, Pushed, SentAttachments};
use oci_registry::{Registry, Repository, Tag};
use safe_text::{counted, readable};
use serde_json::json;

use super::deltas::{PushedBox, SentDeltas};
use super::failure::Failure;
use super::options::RegistryOptions;
use super::stages::Stages;
use super::stored;
use super::{registries, terminal};
use crate::cli::stored::PROGRAM;
use cli_common::policy::HostPolicy;
use cli_common::store::BoxArgument;

/// Pushes a box to a registry, and prints its digest.
///
/// Also prints the digest of the registry's manifest, on standard error; `--json` has both. Compresses and sends only the
/// blobs that the registry lacks, so a second push of the same box sends nothing. docs/images.md describes credentials,
/// mirrors and certificates.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild push hello ghcr.io/acme/hello:v1       a box of the store\n  \
    boxbuild push ./out.box localhost:5000/hello:v1  a box in a directory\n  \
    boxbuild push new ghcr.io/acme/app:v2 --since old  hosts that have `old` fetch less")]
pub(crate) struct PushArgs {
    #[command(flatten)]
    subject: BoxArgument,
    /// The registry, the repository and the tag
    #[arg(value_name = "HOST/NAME:TAG", value_parser = destination)]
    to: RemoteName,
    /// Check each blob in the registry. By default, the manifest at the tag counts as evidence that its blobs are there,
    /// although others may have written it
    #[arg(long)]
    again: bool,
    /// An older box of the store that hosts may have: deltas from it are sent, too. Deltas from the box that the tag named before are
    /// always sent, if the store has that box
    #[arg(long, value_name = "BOX")]
    since: Vec<PathBuf>,
    #[command(flatten)]
    registries: RegistryOptions,
    /// Print JSON, also for errors (except usage errors)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Pulls a box from a registry into the store, and prints its digest.
///
/// Fetches only what the store lacks, and verifies every byte before use. `boxlaunch run HOST/NAME:TAG` starts the box. Boxes
/// that skopeo or oras copied can be pulled, too.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct PullArgs {
    #[command(flatten)]
    pub(crate) pull: cli_registry::PullArgs,
}

/// Runs `boxbuild push`.
pub(crate) fn push(args: &PushArgs) -> Result<(), Failure> {
    let to = &args.to;
    let opened = stored::open(&args.subject)?;
    let client = registries::sender(&args.registries, args.json)?;
    let store = args.subject.store.root(&PROGRAM);
    // The store remembers compressed blobs. A box in a directory can be sent without the store.
    let store = store.ok().filter(|root| is_store(root));
    let store = store.and_then(|_| args.subject.store.open(&PROGRAM).ok());
    let since = args.since.iter().map(|it| stored::open(&args.subject.sibling(it)));
    let since = since.collect::<Result<Vec<_>, _>>()?;
    if since.len() > MAX_DELTAS && !args.json {
        let note = format!(
            "a host reads the deltas from at most {MAX_DELTAS} boxes, those that it has first"
        );
        terminal::note(&note);
    }
    let parcel = Parcel::of(&opened)?;
    let pushed = send(&parcel, to, &client, (!args.again, store.as_ref()), args.json)?;
    let sent = PushedBox { opened: &opened, to, pushed: &pushed, client: &client };
    let deltas = sent.add_deltas(&since, store.as_ref(), args.json);
    note_pushed(to, &pushed, (deltas.as_ref().ok(), 0), args.json);
    let deltas = deltas?;
    if args.json {
        terminal::json(&pushed_json(to, &pushed, deltas).to_string());
    } else {
        terminal::result(&pushed.digest.to_string());
    }
    Ok(())
}

/// Parses the destination of a push.
pub(crate) fn destination(text: &str) -> Result<RemoteName, String> {
    let name = RemoteName::parse(text)?;
    match (&name.tag, name.digest) {
        (Some(_), None) => Ok(name),
        _ => Err("a box is pushed to a tag, not to a digest".to_owned()),
    }
}

/// Pushes a box to a registry.
pub(crate) fn send(
    parcel: &Parcel<'_>,
    to: &RemoteName,
    client: &Registry,
    (reuse, store): (bool, Option<&Store>),
    as_json: bool,
) -> Result<Pushed, Failure> {
    send_beside(parcel, to, client, (reuse, store, None), as_json)
}

/// Pushes a box as [`send`] does. `mount_from` is another repository of the registry that may have some of the blobs.
pub(crate) fn send_beside(
    parcel: &Parcel<'_>,
    to: &RemoteName,
    client: &Registry,
    (reuse, store, mount_from): (bool, Option<&Store>, Option<&Repository>),
    as_json: bool,
) -> Result<Pushed, Failure> {
    let stages = Stages::new(as_json);
    stages.begin(&format!("sending to {to}"));
    let (repository, tag) = repository_and_tag(to)?;
    let scratch = env::temp_dir();
    let to =
        Destination { repository: &repository, tag: &tag, mount_from, reuse, scratch: &scratch };
    let pushed = box_registry::push_parcel(client, parcel, &to, store)?;
    stages.end();
    Ok(pushed)
}

/// Prints the summary of a push, after everything was sent: with the deltas that were sent, and `cache`, which is the number of bytes of the build cache that were sent.
pub(crate) fn note_pushed(
    to: &RemoteName,
    pushed: &Pushed,
    (deltas, cache): (Option<&SentDeltas>, u64),
    as_json: bool,
) {
    if as_json {
        return;
    }
    terminal::note(&sent(pushed));
    attached(&pushed.attachments).iter().for_each(|it| terminal::note(it));
    deltas.and_then(SentDeltas::line).iter().for_each(|it| terminal::note(it));
    if cache > 0 {
        terminal::note(&format!("sent the build cache, {}", readable(cache)));
    }
    terminal::note(&format!("pushed: {to}@{} (box {})", pushed.registry_digest, pushed.digest));
}

/// Returns the repository and the tag of a destination.
pub(crate) fn repository_and_tag(to: &RemoteName) -> Result<(Repository, Tag), Failure> {
    let tag = Tag::new(to.tag.as_deref().unwrap_or_default())?;
    Ok((Repository::of(to)?, tag))
}

/// Returns the report of a push as JSON.
pub(crate) fn pushed_json(
    to: &RemoteName,
    pushed: &Pushed,
    deltas: SentDeltas,
) -> serde_json::Value {
    json!({
        "reference": to.to_string(),
        "box": pushed.digest,
        "registry_digest": pushed.registry_digest,
        "form": pushed.form.name(),
        "sent": pushed.sent,
        "skipped": pushed.skipped,
        "bytes": pushed.bytes,
        "attachments": pushed.attachments.all,
        "attachments_sent": pushed.attachments.sent,
        "deltas": deltas.count,
        "delta_bytes": deltas.bytes,
    })
}

/// Summarizes a push.
fn sent(pushed: &Pushed) -> String {
    match pushed.bytes {
        0 => "the registry has this box already".to_owned(),
        bytes => {
            let all = pushed.sent + pushed.skipped + pushed.mounted;
            if pushed.sent == 0 {
                return format!("the registry has all {all} blobs already; sent the manifest");
            }
            format!("sent {} of {all} blobs, {}", pushed.sent, readable(bytes))
        }
    }
}

/// Summarizes the attachments of a push, if the box has any.
fn attached(attachments: &SentAttachments) -> Option<String> {
    let SentAttachments { all, sent, bytes } = *attachments;
    let all = counted(all, "attachment", "attachments");
    match (attachments.all, sent) {
        (0, _) => None,
        (_, 0) => Some(format!("the registry has {all} of it already")),
        _ => Some(format!("sent {sent} of {all}, {}", readable(bytes))),
    }
}

/// Runs `boxbuild pull`.
pub(crate) fn pull(args: &PullArgs) -> Result<(), Failure> {
    let args = &args.pull;
    let client = registries::client(&args.registries, args.json)?;
    let policy = HostPolicy::read(PROGRAM.variable)?;
    let note = |amounts: &str| {
        if !args.json {
            terminal::note(amounts);
        }
    };
    let (pulled, result) = args.run(&PROGRAM, &client, policy.as_ref(), note, false)?;
    if !args.json && !args.dry_run {
        terminal::note(&format!("start it: boxlaunch run {}", pulled.reference));
    }
    terminal::result(&result);
    Ok(())
}
