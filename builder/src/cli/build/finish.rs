//! The end of a build: its box gets its name and its directory, and is pushed.

use std::cell::Cell;
use std::io;

use box_cache::{Store, StoreError};
use box_contract::{BoxConfig, ErrorCode, RemoteName, RunPlan};
use box_digest::{Blake3Digest, Digest};
use box_find::{FindError, places_in};
use box_layout::OpenBox;
use box_prune::Cap;
use box_registry::{MakeHeads, Parcel, Pushed};
use boxbuild::history::Made;
use boxbuild::output::Form;
use boxbuild::project::LockFile;
use boxbuild::project::lock::Lock;
use boxbuild::{Build, Resolved, Sealed};
use cli_common::store::after_adding;
use oci_registry::Registry;
use safe_text::readable;
use serde_json::{Value, json};

use super::inline_cache::{Inline, Source, add_cache};
use super::target::{Before, Target, note_replaced, warn_of_swap};
use super::{Again, Args};
use crate::cli::deltas::{PushedBox, SentDeltas};
use crate::cli::failure::{Failure, of_build};
use crate::cli::loaded::Loaded;
use crate::cli::stages::Stages;
use crate::cli::stored::PROGRAM;
use crate::cli::transfer::{note_pushed, pushed_json, send};
use crate::cli::warnings::Warnings;
use crate::cli::{locking, terminal};

/// What the end of a build needs of its beginning.
#[derive(Clone, Copy)]
pub(super) struct Finish<'a> {
    pub(super) args: &'a Args,
    pub(super) loaded: &'a Loaded,
    pub(super) target: &'a Target,
    pub(super) store: &'a Store,
    /// The client with which the box is pushed. `None` without `--push`.
    pub(super) client: Option<&'a Registry>,
    /// The file of the lock, and its new content. A box of an image has no file.
    pub(super) lock: (Option<&'a LockFile>, &'a Lock),
    pub(super) cap: Cap,
    pub(super) again: &'a Again,
}

/// The properties of a box that a build reports.
struct Reported {
    digest: Digest,
    tree: Blake3Digest,
    rootfs_size: u64,
    is_cached: bool,
    plan: RunPlan,
}

impl<'a> Finish<'a> {
    /// Returns the box of `source` in the registry. `None` if there is none, or if this host must have the whole box.
    pub(super) fn inline(
        &self,
        source: Source<'_>,
        resolved: &Resolved<'_>,
    ) -> Result<Option<Inline<'a>>, Failure> {
        let Some(client) = self.client.filter(|_| !self.again.is_whole.get()) else {
            return Ok(None);
        };
        if !self.target.may_be_elsewhere(self.args, self.store)? {
            return Ok(None);
        }
        Inline::find(source, resolved.key().hex(), client, self.args.project.json)
    }

    /// Keeps a box in the store and in its directory, and pushes it.
    pub(super) fn keep(
        &self,
        (resolved, built): (&Resolved<'_>, &Build),
        inline: Option<&Inline<'_>>,
        (stages, mut warnings): (&Stages, Warnings),
    ) -> Result<(), Failure> {
        let Self { args, loaded, target, store, .. } = *self;
        let sealed = &built.sealed;
        target.check_name(store, sealed)?;
        let lock = self.save_lock()?;
        let directory = target.directory.as_deref();
        let place = directory.map_or("to the store".into(), |it| it.to_string_lossy());
        stages.begin(&format!("writing {place}"));
        let before = directory.and_then(Before::of);
        let published = store.publish(&sealed.blobs()).inspect_err(|error| {
            self.again.is_missing.set(StoreError::is_missing(error));
        })?;
        let swap = target.write((store, published), sealed, &mut warnings)?;
        stages.end();
        self.record(resolved, built);
        if let (Some(swap), Some(directory)) = (swap, directory) {
            let to = (target, directory);
            before.iter().for_each(|it| note_replaced(it, &sealed.manifest, args, loaded, to));
            warn_of_swap(swap, directory, &mut warnings);
        }
        loaded.add_unused(&built.unused, &mut warnings);
        let reported = Reported::built(built, store)?;
        add_of_plan(&mut warnings, &reported.plan);
        let pushed = self.push((resolved, built), inline);
        let pushed = pushed.inspect_err(|_| note_unsent(args, target, &sealed.manifest))?;
        self.prune(&mut warnings);
        self.report(&reported, true, (&lock, pushed), &warnings)
    }

    /// Leaves a box in the registry, which has blobs that this host lacks. `built` is `None` if the registry has the box.
    pub(super) fn leave(
        &self,
        (resolved, built): (&Resolved<'_>, Option<&Build>),
        inline: &Inline<'_>,
        (stages, mut warnings): (&Stages, Warnings),
    ) -> Result<(), Failure> {
        let Self { args, loaded, store, .. } = *self;
        let lock = self.save_lock()?;
        stages.end();
        let Some(to) = &args.push else { return Ok(()) };
        let reported = match built {
            Some(built) => Reported::built(built, store)?,
            None => Reported::in_registry(inline)?,
        };
        let pushed = inline.push(built.map(|it| it.sealed.manifest), to, store);
        let pushed = pushed.inspect_err(|failure| {
            // The registry has lost a blob that this host lacks, so this host has to make it.
            let is_lost = failure.has(ErrorCode::RegistryInvalid) && !self.again.is_whole.get();
            if is_lost {
                self.again.is_missing.set(true);
                self.again.is_whole.set(true);
            }
        })?;
        let cache = self.add_cache((resolved, built.is_some()), (to, &pushed), Some(inline));
        let cache_bytes = cache.as_ref().copied().unwrap_or_default();
        note_pushed(to, &pushed, (None, cache_bytes), args.project.json);
        let cache = cache?;
        if let Some(built) = built {
            self.record(resolved, built);
            loaded.add_unused(&built.unused, &mut warnings);
        }
        add_of_plan(&mut warnings, &reported.plan);
        self.prune(&mut warnings);
        let pushed = with_cache(pushed_json(to, &pushed, SentDeltas::default()), cache);
        self.report(&reported, false, (&lock, Some(pushed)), &warnings)
    }

    /// Sends the box to a registry with its build cache, and returns the report of the push. `None` without `--push`.
    fn push(
        &self,
        (resolved, built): (&Resolved<'_>, &Build),
        inline: Option<&Inline<'_>>,
    ) -> Result<Option<Value>, Failure> {
        let Self { args, store, client, .. } = *self;
        let (Some(to), Some(client)) = (&args.push, client) else { return Ok(None) };
        let opened = OpenBox::open(places_in(store, &built.sealed.manifest));
        let opened = opened.map_err(FindError::from)?;
        let parcel = Parcel::of(&opened)?;
        let pushed = send(&parcel, to, client, (true, Some(store)), args.project.json)?;
        // The layers of a box from the store may be gone. To decode them again would take longer than the cache saves.
        let is_decoded = !built.cached || self.of_build(resolved.undecoded())?.is_empty();
        let cache = match is_decoded {
            true => self.add_cache((resolved, true), (to, &pushed), inline),
            false => Ok(0),
        };
        let sent = PushedBox { opened: &opened, to, pushed: &pushed, client };
        let deltas = sent.add_deltas(&[], Some(store), args.project.json);
        let cache_bytes = cache.as_ref().copied().unwrap_or_default();
        note_pushed(to, &pushed, (deltas.as_ref().ok(), cache_bytes), args.project.json);
        let (cache, deltas) = (cache?, deltas?);
        Ok(Some(with_cache(pushed_json(to, &pushed, deltas), cache)))
    }

    /// Adds the build cache to a pushed box, and returns how many bytes were sent.
    fn add_cache(
        &self,
        (resolved, is_new): (&Resolved<'_>, bool),
        pushed: (&RemoteName, &Pushed),
        inline: Option<&Inline<'_>>,
    ) -> Result<u64, Failure> {
        let Some(client) = self.client else { return Ok(0) };
        // A failed build has more to say than the error of a reader can.
        let failure = Cell::new(None);
        let heads = || {
            resolved.heads().map_err(|error| {
                failure.set(Some(of_build(&error, &self.loaded.sources)));
                io::Error::from(io::ErrorKind::Other)
            })
        };
        let heads: Option<MakeHeads<'_>> = is_new.then_some(&heads);
        add_cache((resolved, heads), pushed, client, inline, self.args.project.json)
            .map_err(|error| failure.take().unwrap_or(error))
    }

    fn of_build<T>(&self, result: Result<T, boxbuild::BuildError>) -> Result<T, Failure> {
        result.map_err(|error| of_build(&error, &self.loaded.sources))
    }

    /// Records a new box and its inputs for `boxbuild why`.
    fn record(&self, resolved: &Resolved<'_>, built: &Build) {
        let made = Made::new(&built.sealed, &resolved.lock(), resolved.builder());
        self.target.record(self.store, self.loaded, made);
    }

    /// Writes the lock, and returns its report: `null` without a file.
    fn save_lock(&self) -> Result<Value, Failure> {
        let (Some(file), lock) = self.lock else { return Ok(Value::Null) };
        let written = save(file, lock)?;
        Ok(locking::report(file, lock, written))
    }

    /// Evicts boxes from the store if it is too large.
    fn prune(&self, warnings: &mut Warnings) {
        let too_large = after_adding(&PROGRAM, self.store, self.cap, self.args.project.json);
        too_large.iter().for_each(|it| warnings.add_message(it));
    }

    /// Prints the result. `is_here` is whether this host has the box, and not only the registry.
    fn report(
        &self,
        reported: &Reported,
        is_here: bool,
        (lock, pushed): (&Value, Option<Value>),
        warnings: &Warnings,
    ) -> Result<(), Failure> {
        let Self { args, target, .. } = *self;
        let declared = args.declaration.built(self.loaded, self.lock.1)?;
        let name = target.name.as_ref().filter(|_| is_here);
        let directory = target.directory.as_deref().filter(|_| is_here);
        if args.project.json {
            let mut report = json!({
                "name": target.declared,
                "box": reported.digest,
                "tree": reported.tree,
                "output": directory.map(|it| it.display().to_string()),
                "whole": directory.is_some() && target.form == Form::Whole,
                "stored_as": name,
                "rootfs_bytes": reported.rootfs_size,
                "cached": reported.is_cached,
                "lock": lock,
                "pushed": pushed,
                "warnings": warnings.json(),
            });
            declared.iter().for_each(|it| report["declared"] = json!(it));
            terminal::json(&report.to_string());
            return Ok(());
        }
        // A start that takes the box from the store says nothing of it.
        if !(args.image.for_start && reported.is_cached) {
            terminal::note(&self.summary(reported, is_here, name));
        }
        let declared = declared.map(|it| format!(" {it}")).unwrap_or_default();
        terminal::result(&format!("{}{declared}", reported.digest));
        Ok(())
    }

    /// Returns the line that describes the built box.
    fn summary(&self, reported: &Reported, is_here: bool, name: Option<&String>) -> String {
        let size = readable(reported.rootfs_size);
        let to = self.args.push.as_ref().map(ToString::to_string).unwrap_or_default();
        if !is_here {
            let how = if reported.is_cached { "unchanged" } else { "built from the build cache" };
            return format!(
                "{how}: the box is in the registry only (rootfs {size}); start it: boxlaunch run {to}"
            );
        }
        let how = if reported.is_cached { "from the store" } else { "built" };
        let store = self.args.inputs.store.shell_words();
        let directory = self.target.directory.as_ref().map(|it| it.display().to_string());
        let made = directory.or_else(|| name.cloned());
        let made = made.unwrap_or_else(|| self.target.declared.clone());
        let command = if self.args.image.reference.is_some() { " -- CMD" } else { "" };
        let start = name.filter(|_| !self.args.image.for_start);
        let start = start.map(|it| format!("; start it: boxlaunch run {store}{it}{command}"));
        format!("{how}: {made} (rootfs {size}){}", start.unwrap_or_default())
    }
}

impl Reported {
    /// Describes a box that this build made or took from the store.
    fn built(built: &Build, store: &Store) -> Result<Self, Failure> {
        let Sealed { manifest: digest, tree, rootfs_size, .. } = built.sealed;
        let plan = built.sealed.plan(store)?;
        Ok(Self { digest, tree, rootfs_size, is_cached: built.cached, plan })
    }

    /// Describes the box in the registry.
    fn in_registry(inline: &Inline<'_>) -> Result<Self, Failure> {
        let (BoxConfig { tree, plan, .. }, (digest, rootfs_size)) =
            (inline.config()?, inline.box_in_registry());
        Ok(Self { digest, tree, rootfs_size, is_cached: true, plan })
    }
}

/// Adds the warnings about what a box declares.
fn add_of_plan(warnings: &mut Warnings, plan: &RunPlan) {
    warnings.add_unsupported(&plan.unsupported());
    plan.hidden_home().iter().for_each(|it| warnings.add_message(it));
}

/// Adds the number of bytes of the build cache to the report of a push.
fn with_cache(mut pushed: Value, bytes: u64) -> Value {
    pushed["cache_bytes"] = json!(bytes);
    pushed
}

/// Notes that the box was built although it was not sent.
fn note_unsent(args: &Args, target: &Target, digest: &Digest) {
    let (Some(to), false) = (&args.push, args.project.json) else { return };
    let name = target.name.clone().unwrap_or_else(|| digest.to_string());
    let store = args.inputs.store.shell_words();
    terminal::note(&format!(
        "note: the box was built, but not pushed; to push it: `boxbuild push {store}{name} {to}`"
    ));
}

/// Writes the lock, and notes its changes.
fn save(file: &LockFile, lock: &Lock) -> Result<bool, Failure> {
    let new = file.lock.is_none();
    let written = file.write(lock)?;
    if written {
        let what = if new { "wrote" } else { "updated" };
        terminal::note(&format!("{what} {}", file.path().display()));
        for line in locking::describe(file.lock.as_ref(), lock).iter().filter(|_| !new) {
            terminal::note(&format!("  {line}"));
        }
    }
    Ok(written)
}
