//! The `pull` command: pulls a box into the store that the options select.

use box_cache::{Pulled as Note, Store, StoreError};
use box_contract::RemoteName;
use box_digest::Digest;
use box_registry::{
    BoxRegistryError, FoundAttachments, Plan, attachments, keep_attachments, not_kept,
};
use box_trust::Origin;
use cli_common::Explanation;
use cli_common::policy::{Asked, HostPolicy, PolicyError, Verdict};
use cli_common::store::{CommandFault, Program, StoreOption, after_adding_alone, cap};
use oci_registry::Registry;
use safe_text::{counted, readable, shown_json};
use serde::Serialize;

use crate::{Located, RegistryOptions, View};

/// The arguments of `pull`.
#[derive(Debug, Clone, clap::Args)]
pub struct PullArgs {
    /// The registry, the repository and the tag. If @sha256:... follows, the box or the registry's manifest must have this
    /// digest
    #[arg(value_name = "HOST/NAME[:TAG][@DIGEST]", value_parser = RemoteName::parse)]
    remote: RemoteName,
    /// Fetch the box only if it has this digest
    #[arg(long, value_name = "DIGEST")]
    expect: Option<Digest>,
    /// Print how much would be fetched, but fetch nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The box that the name means, if it has no digest.
    #[arg(skip)]
    known: Option<Digest>,
    /// Whether the store's reference keeps the box that it has.
    #[arg(skip)]
    is_aside: bool,
    #[command(flatten)]
    store: StoreOption,
    /// How registries are asked.
    #[command(flatten)]
    pub registries: RegistryOptions,
    /// Print one JSON object: reference, box, registry_digest, form, blobs, fetched, deltas, bytes, total_bytes, attachments, dry_run
    /// and replaced
    #[arg(long)]
    pub json: bool,
}

impl PullArgs {
    /// Returns the arguments of a pull that another command needs.
    pub const fn of(remote: RemoteName, store: StoreOption, registries: RegistryOptions) -> Self {
        Self {
            remote,
            expect: None,
            dry_run: false,
            known: None,
            is_aside: false,
            store,
            registries,
            json: false,
        }
    }

    /// Accepts only the box with this digest, if a name without a digest means that box. For the policy, the user still has named no
    /// digest.
    #[must_use]
    pub fn meaning(self, known: Option<Digest>) -> Self {
        Self { known, ..self }
    }

    /// With `true`, records the box under HOST/NAME@DIGEST, with the digest of the registry's manifest. The store's reference then
    /// keeps the box that it has.
    #[must_use]
    pub fn aside(self, is_aside: bool) -> Self {
        Self { is_aside, ..self }
    }

    /// Returns the examples at the end of the command's help.
    pub fn examples(program: &str) -> String {
        format!(
            "Examples:\n  \
             {program} pull ghcr.io/acme/hello:v1\n  \
             {program} pull ghcr.io/acme/hello:v1@sha256:...   the box digest, or the digest of the registry's manifest\n  \
             {program} pull ghcr.io/acme/hello:v1 --dry-run    say how much would be fetched"
        )
    }

    /// Pulls the box. Returns the result, and the text to print, which does not end with a newline. `is_for_start` means
    /// that the box is pulled for a start, and that the user did not ask to keep it. Before blobs are fetched, `note` gets lines
    /// for the user: the size of the download, and whether the reference now means another box.
    ///
    /// A `policy` is asked twice. Before the first request, it refuses what no signature helps. Before the first blob of the box is
    /// fetched, it checks the signatures.
    ///
    /// # Errors
    /// [`PullError`]. Complete blobs stay in the store, and the next pull does not fetch them again.
    pub fn run(
        &self,
        program: &Program,
        client: &Registry,
        policy: Option<&HostPolicy>,
        note: impl Fn(&str),
        is_for_start: bool,
    ) -> Result<(Pulled, String), PullError> {
        let asked = policy.map(|it| self.ask(it)).transpose()?;
        let cap = cap(program)?;
        let store = self.store.open(program)?;
        let pulled = self.pull((&store, client), asked.as_ref(), note, is_for_start)?;
        after_adding_alone(program, &store, cap, self.json);
        let result = match self.json {
            true => shown_json(&serde_json::to_string(&pulled).unwrap_or_default()),
            false => pulled.digest.to_string(),
        };
        Ok((pulled, result))
    }

    /// Opens the box to look at it, and fetches only its config and its listing: other blobs are fetched when they are read. The
    /// box becomes neither a box of the store nor a name in it. `note` gets the number of attachments that were left out, and
    /// the verdict of the `policy`, which is asked as for [`Self::run`].
    ///
    /// # Errors
    /// [`PullError`].
    pub fn view(
        &self,
        program: &Program,
        client: Registry,
        policy: Option<&HostPolicy>,
        note: impl Fn(&str),
    ) -> Result<View, PullError> {
        // The policy may refuse the name before there is a store.
        let asked = policy.map(|it| self.ask(it)).transpose()?;
        let store = self.store.open(program)?;
        let plan = self.accepted((&store, &client), asked.as_ref(), note)?;
        View::new(plan, store, client)
    }

    /// Resolves the name to a box, and determines which of its blobs `store` lacks. Fetches only the box's manifest and the documents
    /// that lead to it, and what the `policy` needs, which is asked as for [`Self::run`]. `note` gets its verdict.
    ///
    /// # Errors
    /// [`PullError`].
    pub fn plan(
        &self,
        (store, client): (&Store, &Registry),
        policy: Option<&HostPolicy>,
        note: impl Fn(&str),
    ) -> Result<Plan, PullError> {
        let asked = policy.map(|it| self.ask(it)).transpose()?;
        self.accepted((store, client), asked.as_ref(), note)
    }

    fn accepted(
        &self,
        (store, client): (&Store, &Registry),
        asked: Option<&Asked<'_>>,
        note: impl Fn(&str),
    ) -> Result<Plan, PullError> {
        let (plan, _) = self.planned(store, client)?;
        if let Some(asked) = asked {
            let found = attachments(client, &plan.repository, &plan.remote, &asked.keys())?;
            found.note().iter().for_each(|it| note(it));
            note(&asked.check(&plan.remote.digest, &found.all)?.line());
        }
        Ok(plan)
    }

    /// Resolves the name to a box, and determines which of its blobs the store lacks. Also returns the name under which the store
    /// records the box ([`Located::found_by`]). Fails with [`PullError::Other`] if the box has not the digest in the name, or that of
    /// [`Self::meaning`], or `expect`.
    fn planned(&self, store: &Store, client: &Registry) -> Result<(Plan, RemoteName), PullError> {
        let digest = self.remote.digest.or(self.known);
        let located = Located::read(client, &RemoteName { digest, ..self.remote.clone() })?;
        if let Some(expected) = self.expect.filter(|it| *it != located.remote.digest) {
            return Err(located.other(expected));
        }
        let Located { repository, remote, found_by } = located;
        Ok((Plan::of(repository, remote, store)?, found_by))
    }

    /// Asks the policy about the repository as the user wrote it: a mirror of it has no rule of its own.
    fn ask<'p>(&self, policy: &'p HostPolicy) -> Result<Asked<'p>, PolicyError> {
        let name = &self.remote;
        let repository = name.whole_repository();
        let has_digest = name.digest.is_some() || self.expect.is_some();
        let origin = Origin::Registry { repository: &repository, has_digest };
        policy.ask(&name.to_string(), &[origin])
    }

    /// Refuses a box that is an older release than the one that the store has under the name. A user who names a digest wants that box.
    fn check_not_older(
        &self,
        store: &Store,
        (asked, verdict): (&Asked<'_>, &Verdict),
        before: Option<Digest>,
    ) -> Result<(), PullError> {
        let is_fixed = self.remote.digest.is_some() || self.expect.is_some();
        let Some(before) = before.filter(|_| !is_fixed && asked.refuses_older()) else {
            return Ok(());
        };
        let kept = store.attachments(&before)?;
        let kept =
            kept.iter().map(|it| store.read_attachment(it)).collect::<Result<Vec<_>, _>>()?;
        Ok(asked.check_not_older(verdict, &before, &kept)?)
    }

    /// Fetches the blobs that the store lacks, and adds the box to the store.
    fn pull(
        &self,
        (store, client): (&Store, &Registry),
        asked: Option<&Asked<'_>>,
        note: impl Fn(&str),
        is_for_start: bool,
    ) -> Result<Pulled, PullError> {
        let (plan, reference) = self.planned(store, client)?;
        let plan = plan.with_deltas(client, store);
        let before = store.pulled(&reference.to_string())?.map(|it| it.digest);
        let trusted = asked.map(Asked::keys).unwrap_or_default();
        let found = attachments(client, &plan.repository, &plan.remote, &trusted)?;
        // Before a refusal, because what was left out may be the reason.
        found.note().iter().for_each(|it| note(it));
        let check = |it: &Asked<'_>| it.check(&plan.remote.digest, &found.all);
        let verdict = asked.map(check).transpose()?;
        if let (Some(asked), Some(verdict)) = (asked, &verdict) {
            self.check_not_older(
                store,
                (asked, verdict),
                before.filter(|it| *it != plan.remote.digest),
            )?;
        }
        let mut pulled = pulled(&plan, &reference, before, self.dry_run);
        pulled.attachments = found.all.len();
        note(&amounts(&pulled));
        attached(&found).iter().for_each(|it| note(it));
        verdict.iter().for_each(|it| note(&it.line()));
        if let Some(before) = pulled.replaced {
            note(&format!("{} is another box now; before, it was {before}", pulled.reference));
        }
        if !self.dry_run {
            let needed = verdict.as_ref().map_or(&[][..], |it| &it.bundles);
            let kept = keep_attachments(store, &pulled.digest, &found.all, needed)?;
            not_kept(kept.left_out).iter().for_each(|it| note(it));
            // Their memory is free before blobs are decompressed.
            drop(found);
            let fetched = plan.fetch(client, store)?;
            failed_deltas(fetched.failed_deltas).iter().for_each(|it| note(it));
            // Keeps the blobs from garbage collection until the box has its name.
            let _published = plan.remote.publish_in(store)?;
            let Pulled { reference, digest, registry_digest, .. } = pulled.clone();
            let aside = || self.remote.of_manifest(registry_digest).to_string();
            let reference = if self.is_aside { aside() } else { reference };
            let is_asked = !is_for_start;
            store.note_pulled(&Note {
                reference,
                digest,
                registry_digest,
                is_asked,
                is_loaded: false,
            })?;
        }
        Ok(pulled)
    }
}

/// An error of a pull.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// The registry does not have the box, or it cannot be fetched.
    #[error(transparent)]
    Registry(#[from] BoxRegistryError),
    /// The registry's box does not have the requested digest.
    #[error(
        "{name} is the box {found} (the registry's manifest {registry}), and {expected} was asked for"
    )]
    Other {
        /// The requested name.
        name: Box<RemoteName>,
        /// The requested digest.
        expected: Digest,
        /// The digest of the registry's box.
        found: Digest,
        /// The digest of the registry's manifest.
        registry: Digest,
    },
    /// The policy of this host does not accept the box.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The store cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The command line and the environment name no store, or an unusable one.
    #[error(transparent)]
    Command(#[from] CommandFault),
}

impl From<&PullError> for Explanation {
    fn from(error: &PullError) -> Self {
        use box_contract::ErrorCode::DigestMismatch;
        match error {
            PullError::Registry(error) => error.into(),
            PullError::Other { expected, found, registry, .. } if expected == registry => (
                DigestMismatch,
                format!(
                    "--expect takes the box digest, and this is the digest of the registry's manifest: `--expect {found}`, or the \
                     other one after the name, as HOST/NAME:TAG@{registry}"
                ),
            )
                .into(),
            PullError::Other { .. } => (
                DigestMismatch,
                "the tag points to another box now, or never pointed to that box. A box without a tag is found only by \
                 the digest of the registry's manifest, which push and pull print: HOST/NAME@sha256:...",
            )
                .into(),
            PullError::Policy(error) => error.into(),
            PullError::Store(error) => error.into(),
            PullError::Command(error) => error.into(),
        }
    }
}

/// The result of a pull.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pulled {
    /// The reference, as `HOST/NAME:TAG`.
    pub reference: String,
    /// The digest of the box.
    #[serde(rename = "box")]
    pub digest: Digest,
    /// The digest of the registry's manifest.
    pub registry_digest: Digest,
    /// The form of the box in the registry (`box_registry::Form`): `artifact`, `image` or `plain`.
    pub form: &'static str,
    /// The number of blobs of the box.
    pub blobs: usize,
    /// The number of blobs that were fetched, or would be.
    pub fetched: usize,
    /// The number of those blobs that travel as a delta from blobs that the store has.
    pub deltas: usize,
    /// The number of bytes that were fetched, or would be.
    pub bytes: u64,
    /// The number of bytes that a fetch of all blobs would need.
    pub total_bytes: u64,
    /// The number of attachments of the box, such as signatures, in the registry.
    pub attachments: usize,
    /// Whether this was a dry run, without a fetch.
    pub dry_run: bool,
    /// The box that had the reference in the store before, if it was another one.
    pub replaced: Option<Digest>,
}

/// Returns the note about the size of the download.
fn amounts(pulled: &Pulled) -> String {
    let (some, all) = (readable(pulled.bytes), readable(pulled.total_bytes));
    let (missing, blobs) = (pulled.fetched, pulled.blobs);
    let deltas = match pulled.deltas {
        0 => String::new(),
        deltas => format!(" ({deltas} as deltas)"),
    };
    match missing {
        0 => format!("all {blobs} blobs are in the store"),
        _ if pulled.dry_run => {
            format!("would fetch {missing} of {blobs} blobs{deltas}, {some} of {all}")
        }
        _ => format!("fetching {missing} of {blobs} blobs{deltas}, {some} of {all}"),
    }
}

/// Returns the note about deltas that could not be used, if there are any.
fn failed_deltas(count: usize) -> Option<String> {
    let deltas = counted(count, "delta", "deltas");
    (count > 0).then(|| {
        format!("{deltas} of the registry could not be used; their blobs were fetched whole")
    })
}

/// Returns the note about the attachments of the box, if it has any.
fn attached(found: &FoundAttachments) -> Option<String> {
    let count = found.all.len();
    (count > 0).then(|| format!("the box has {}", counted(count, "attachment", "attachments")))
}

fn pulled(plan: &Plan, reference: &RemoteName, before: Option<Digest>, dry_run: bool) -> Pulled {
    Pulled {
        reference: reference.to_string(),
        digest: plan.remote.digest,
        registry_digest: plan.remote.registry_digest,
        form: plan.remote.form.name(),
        blobs: plan.blobs(),
        fetched: plan.missing.len(),
        deltas: plan.deltas.len(),
        bytes: plan.bytes(),
        total_bytes: plan.total_bytes(),
        attachments: 0,
        dry_run,
        replaced: before.filter(|it| *it != plan.remote.digest),
    }
}
