//! `boxbuild build`: builds a box from a Boxfile.

use std::cell::Cell;
use std::io::ErrorKind;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use box_cache::{Base, Named, Owner, Publishing, Store, StoreError};
use box_contract::Platform;
use box_contract::manifest::documents;
use box_contract::rules::{NAME_FORM, is_name};
use box_contract::{ErrorCode, RemoteName};
use box_digest::Digest;
use box_find::FindError;
use box_layout::{Documents, OpenBox, Places, blob_path};
use box_prune::Cap;
use boxbuild::output::{self, Form};
use boxbuild::project::LockFile;
use boxbuild::project::lock::Lock;
use boxbuild::{Build, BuildError, Sealed, resolve};
use host_fs::FileError;
use host_fs::publish::{Swap, create_directories, parent_of};
use safe_text::shown;
use safe_text::{readable, shell_path};
use serde_json::Value;

use super::failure::{Failure, of_build};
use super::loaded::{Loaded, Tools};
use super::locking::Fixed;
use super::options::{
    InputOptions, LockedOption, ProfileOption, ProjectOptions, lock_command, platform,
};
use super::stages::Stages;
use super::transfer::{destination, pushed_json, send};
use super::warnings::Warnings;
use super::{locking, registries, terminal};
use crate::cli::stored::PROGRAM;
use cli_common::store::after_adding;

/// Builds a box from a Boxfile and prints its digest.
///
/// The same input gives the same bytes on every host. The box goes into the store under the name that its Boxfile declares,
/// and `boxlaunch run NAME` starts it. NAME.box, in the current directory, is a small directory that points to the box in the
/// store. With --output, DIR contains the whole box, an OCI image layout that can be copied. A second build of the same input
/// takes the box from the store.
///
/// Boxfile.lock pins what the Boxfile names. The build writes the lock if it is missing, and updates it if the Boxfile or a
/// file of the checkout changed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild build                        build ./Boxfile; `boxlaunch run NAME` starts it\n  \
    boxbuild build -f ci/Boxfile -o out   build another Boxfile, and write the whole box to ./out\n  \
    boxbuild build --locked --profile ci  build exactly what the lock pins, or fail with exit code 3\n  \
    boxbuild build --push ghcr.io/acme/hello:v1  build, and push the box to a registry\n  \
    boxbuild build --json                 print the result as JSON")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) project: ProjectOptions,
    #[command(flatten)]
    profile: ProfileOption,
    /// Write the whole box to this directory. It then gets a name in the store only with --name [default: NAME.box in the
    /// current directory, a small directory that points to the box in the store]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// The box's name in the store [default: the name in the Boxfile; with --output, none]
    #[arg(long = "name", value_name = "NAME", value_parser = box_name)]
    stored_as: Option<String>,
    /// Also push the box to a registry, as `boxbuild push` does
    #[arg(long, value_name = "HOST/NAME:TAG", value_parser = destination, conflicts_with = "offline")]
    push: Option<RemoteName>,
    /// The platform to build for, one that the Boxfile declares; only linux/amd64 is supported [default: its first]
    #[arg(long, value_name = "PLATFORM", value_parser = platform)]
    platform: Option<Platform>,
    #[command(flatten)]
    locked: LockedOption,
    #[command(flatten)]
    inputs: InputOptions,
    /// The number of threads that decode layers [default: one per CPU]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
}

/// The maximum number of attempts to build if other programs remove blobs from the store meanwhile.
const ATTEMPTS: u8 = 4;

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.output.as_deref().map_or(Ok(()), check_directory)?;
    let cap = cli_common::store::cap(&PROGRAM)?;
    set_threads(args.jobs)?;
    // Collections such as `boxbuild gc` keep the blobs that a process with the open store uses, but other programs may
    // delete blobs.
    let is_missing = Cell::new(false);
    let mut left = ATTEMPTS;
    loop {
        is_missing.set(false);
        left -= 1;
        let done = attempt(args, cap, &is_missing);
        if done.is_ok() || left == 0 || !is_missing.get() {
            return done;
        }
        terminal::detail("again", "the store lost a blob during the build");
    }
}

/// Builds once. Sets `is_missing` if the build failed because the store has lost a blob.
fn attempt(args: &Args, cap: Cap, is_missing: &Cell<bool>) -> Result<(), Failure> {
    let loaded = Loaded::read(&args.project, args.profile.name.as_deref())?;
    let platform = loaded.platform(args.platform)?;
    let locked = &args.locked;
    let lock_file = loaded.lock_file(&args.inputs).map_err(|error| locked.blame(error.into()))?;
    let command = lock_command(&args.project, &args.inputs);
    let fixed = Fixed { file: &lock_file, option: "--locked", command: &command };
    if locked.locked {
        fixed.check_declared(&loaded, platform)?;
    }
    let tools = Tools::find(&args.inputs, args.project.json)?;
    let old = lock_file.lock.as_ref();
    let request = tools.request(&loaded, platform, old, &[])?;
    let failed = |error: BuildError| {
        is_missing.set(StoreError::is_missing(&error));
        locked.blame_pin(of_build(&error, &loaded.sources))
    };
    request.check_platform().map_err(failed)?;
    let target = Target::new(args, &loaded)?;
    box_archive::check_output(&target.directory)?;
    let directory = &target.directory;
    let stages = Stages::new(args.project.json);
    stages.begin("reading images and files");
    let resolved = resolve(&request, &tools.store).map_err(failed)?;
    let observer = stages.observer();
    let resolved = resolved.observed(&observer);
    let mut warnings = Warnings::new(args.project.json);
    loaded.add_warnings(resolved.warnings(), &mut warnings);
    loaded.add(resolved.image_warnings(), &mut warnings);
    let lock = loaded.declarations().updated(old, &resolved.lock(), loaded.target(platform));
    if locked.locked {
        fixed.check_resolved(&lock)?;
    }
    // Checked before the build, so that a build does not fail only at its end.
    lock_file.check_writable(&lock)?;
    let built = resolved.build().map_err(failed)?;
    target.check_name(&tools.store, &built.sealed)?;
    loaded.add(resolved.layer_warnings(), &mut warnings);
    let written = save(&lock_file, &lock)?;
    stages.begin(&format!("writing {}", directory.display()));
    let before = Before::of(directory);
    let published = tools.store.publish(&built.sealed.blobs()).inspect_err(|error| {
        is_missing.set(StoreError::is_missing(error));
    })?;
    let swap = target.write((&tools.store, published), &built.sealed, &mut warnings)?;
    stages.end();
    if let Some(swap) = swap {
        let manifest = built.sealed.manifest;
        before.iter().for_each(|it| note_replaced(it, &manifest, args, &loaded, &target));
        warn_of_swap(swap, directory, &mut warnings);
    }
    loaded.add_unused(&built.unused, &mut warnings);
    warnings.add_unsupported(&built.sealed.plan(&tools.store)?.unsupported());
    let lock = locking::report(&lock_file, &lock, written);
    let pushed = args.push.as_ref().map(|to| push(args, to, &built, &tools.store)).transpose();
    let pushed = pushed.inspect_err(|_| note_unsent(args, &target, &built.sealed.manifest))?;
    let too_large = after_adding(&PROGRAM, &tools.store, cap, args.project.json);
    too_large.iter().for_each(|it| warnings.add_message(it));
    report(args, &built, &target, &lock, pushed, &warnings);
    Ok(())
}

/// Sends the box to a registry, and returns the report of the push.
fn push(args: &Args, to: &RemoteName, built: &Build, store: &Store) -> Result<Value, Failure> {
    let as_json = args.project.json;
    let directory = store.box_directory(&built.sealed.manifest);
    let opened = Places::new(directory, Some(&store.blobs()));
    let opened = OpenBox::open(opened.with_base(store.base().map(Base::blobs)));
    let opened = opened.map_err(FindError::from)?;
    let client = registries::sender(&args.inputs.registries, as_json)?;
    let pushed = send(&opened, to, &client, (true, Some(store)), as_json)?;
    Ok(pushed_json(to, &pushed))
}

/// Notes that the box was built although it was not sent.
fn note_unsent(args: &Args, target: &Target, digest: &Digest) {
    let (Some(to), false) = (&args.push, args.project.json) else { return };
    let name = target.name.clone().unwrap_or_else(|| digest.to_string());
    let store = store_option(args);
    terminal::note(&format!(
        "note: the box was built, but not pushed; to push it: `boxbuild push {store}{name} {to}`"
    ));
}

/// Returns `--store DIR` and a space if the command line has the option.
fn store_option(args: &Args) -> String {
    let store = args.inputs.store.store.as_ref();
    store.map(|it| format!("--store {} ", shell_path(it))).unwrap_or_default()
}

/// The directory and the name that a build gives its box, for example `hello.box` and `hello`.
struct Target {
    /// The name in the Boxfile.
    declared: String,
    /// The box's name in the store.
    name: Option<String>,
    /// The owner of that name.
    owner: Owner,
    directory: PathBuf,
    form: Form,
}

impl Target {
    fn new(args: &Args, loaded: &Loaded) -> Result<Self, Failure> {
        let declared = loaded.boxfile().name.clone();
        let by_default = args.output.is_none().then_some(&declared);
        let name = args.stored_as.as_ref().or(by_default).cloned();
        let called = args.stored_as.as_ref().unwrap_or(&declared);
        let default = || PathBuf::from(format!("{called}.box"));
        let boxfile = loaded.project.identity();
        let boxfile = boxfile.map_err(FileError::of("find", &loaded.project.file))?;
        let owner = match &args.stored_as {
            Some(_) => Owner::Tagged(boxfile),
            None => Owner::Boxfile(boxfile),
        };
        let form = if args.output.is_some() { Form::Whole } else { Form::Thin };
        let directory = args.output.clone().unwrap_or_else(default);
        Ok(Self { declared, name, owner, directory, form })
    }

    /// Checks that the box may get the name, before the lock and the directory are written.
    fn check_name(&self, store: &Store, sealed: &Sealed) -> Result<(), Failure> {
        let Some(name) = &self.name else { return Ok(()) };
        Ok(store.check_name(name, &self.named(sealed))?)
    }

    fn named(&self, sealed: &Sealed) -> Named {
        Named { digest: sealed.manifest, owner: self.owner.clone() }
    }

    /// Gives the box its name, and writes the directory. For a whole directory, `published` is dropped first.
    fn write(
        &self,
        (store, published): (&Store, Publishing<'_>),
        sealed: &Sealed,
        warnings: &mut Warnings,
    ) -> Result<Option<Swap>, Failure> {
        let documents = documents(sealed.manifest, sealed.manifest_size);
        store.keep_box(&published, &sealed.manifest, &documents)?;
        if let Some(name) = &self.name
            && let Some(before) = store.name_box(name, &self.named(sealed))?
        {
            warn_of_renaming(name, &before, &sealed.manifest, warnings);
        }
        if self.form == Form::Thin {
            // The root is added before the directory exists, so that the store keeps the blobs that the directory
            // lacks.
            store.add_root(&self.real_directory()?)?;
            return Ok(output::write(store, sealed, &self.directory, self.form)?);
        }
        drop(published);
        Ok(output::write(store, sealed, &self.directory, self.form)?)
    }

    /// Returns the path of the directory without symbolic links. Creates the parent directory; the directory itself may
    /// be absent.
    fn real_directory(&self) -> Result<PathBuf, Failure> {
        let parent = parent_of(&self.directory);
        create_directories(parent, 0o777).map_err(FileError::of("make the directory", parent))?;
        let parent = parent.canonicalize().map_err(FileError::of("find", parent))?;
        Ok(parent.join(self.directory.file_name().unwrap_or_default()))
    }
}

/// Warns that a build took a name from another box.
fn warn_of_renaming(name: &str, before: &Named, now: &Digest, warnings: &mut Warnings) {
    let Named { digest, owner } = before;
    if digest == now {
        return;
    }
    let origin = match owner.boxfile() {
        Some(file) => format!("built from {}, which is gone", shown(&file.display().to_string())),
        None => "which `load` added".to_owned(),
    };
    warnings.add_message(&format!(
        "the name {name} belongs to this box now; before, it named {digest}, {origin}"
    ));
}

/// Parses the name of a box.
fn box_name(text: &str) -> Result<String, &'static str> {
    if is_name(text) { Ok(text.to_owned()) } else { Err(NAME_FORM) }
}

/// Notes that the build replaced something unexpected in the directory: a box of another name, a whole box, a box of another
/// profile (all profiles share the default directory), or a changed copy of the same box.
fn note_replaced(before: &Before, now: &Digest, args: &Args, loaded: &Loaded, target: &Target) {
    let (name, digest) = (&before.documents.config.plan.name, before.documents.digest);
    let replaced = format!("note: replaced {}, which was", target.directory.display());
    if digest == *now && before.is_whole == (target.form == Form::Whole) {
        let changed = "this box with files that were changed, damaged or linked elsewhere";
        terminal::note(&format!("{replaced} {changed}"));
    } else if before.is_whole && target.form == Form::Thin {
        let directory = shell_path(&target.directory);
        terminal::note(&format!(
            "note: {} points to the store now; to write the whole box there, use `--output {directory}`",
            target.directory.display()
        ));
    } else if digest != *now && *name != loaded.boxfile().name {
        terminal::note(&format!("{replaced} the box {name:?}, {digest}"));
    } else if digest != *now && args.output.is_none() && !loaded.profile_names().is_empty() {
        terminal::note(&format!(
            "{replaced} {digest}; each profile is written there: --name NAME keeps both"
        ));
    }
}

/// The box in a directory before a build replaces it.
struct Before {
    documents: Documents,
    /// Whether the directory contains blobs.
    is_whole: bool,
}

impl Before {
    fn of(directory: &Path) -> Option<Self> {
        let documents = Documents::read(directory).ok()?;
        let is_there = |digest| blob_path(directory, digest).exists();
        let is_whole = documents.manifest.layers.iter().any(|it| is_there(&it.digest));
        Some(Self { documents, is_whole })
    }
}

/// Refuses an output that looks like a file, because a box is a directory.
fn check_directory(output: &Path) -> Result<(), Failure> {
    let archives = ["tar", "gz", "tgz", "zst"];
    let extension = output.extension().and_then(|it| it.to_str()).unwrap_or_default();
    let meant = match output.to_str() {
        Some("-") => "standard output",
        _ if archives.contains(&extension) => "an archive",
        _ => return Ok(()),
    };
    let message = format!("a box is a directory, and cannot be written to {meant}");
    let help = "name a directory with --output; `boxbuild export --format tar` or `oci` makes an \
                archive of a box";
    Err(Failure::new((ErrorCode::Usage, help), message))
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

/// Warns if the box was not replaced atomically.
fn warn_of_swap(swap: Swap, directory: &Path, warnings: &mut Warnings) {
    if swap == Swap::InSteps {
        warnings.add_message(&format!(
            "the file system of {} cannot exchange two directories: a build that is killed \
             while it replaces a box there may leave none",
            directory.display()
        ));
    }
}

/// Sets the number of threads that decode layers, including the current one. If the system starts fewer threads, these
/// do all the work.
fn set_threads(jobs: Option<u16>) -> Result<(), Failure> {
    let available = || thread::available_parallelism().map_or(1, NonZero::get);
    let wanted = jobs.map_or_else(available, usize::from);
    // The threads are started first, because the pool waits for every worker that it hands over.
    let (hand_over, workers) = mpsc::channel::<rayon::ThreadBuilder>();
    let workers = Arc::new(Mutex::new(workers));
    let start = |_: &usize| {
        let workers = Arc::clone(&workers);
        let take = move || workers.lock().unwrap_or_else(PoisonError::into_inner).recv();
        thread::Builder::new().spawn(move || take().into_iter().for_each(|it| it.run())).is_ok()
    };
    let started = (1..wanted).filter(start).count();
    rayon::ThreadPoolBuilder::new()
        .num_threads(started + 1)
        .use_current_thread()
        .spawn_handler(|worker| hand_over.send(worker).map_err(|_| ErrorKind::BrokenPipe.into()))
        .build_global()
        .map_err(|error| Failure::new(ErrorCode::Internal, error))
}

fn report(
    args: &Args,
    built: &Build,
    target: &Target,
    lock: &Value,
    pushed: Option<Value>,
    warnings: &Warnings,
) {
    let sealed = &built.sealed;
    if args.project.json {
        let report = serde_json::json!({
            "name": target.declared,
            "box": sealed.manifest,
            "tree": sealed.tree,
            "output": target.directory.display().to_string(),
            "whole": target.form == Form::Whole,
            "stored_as": target.name,
            "rootfs_bytes": sealed.rootfs_size,
            "cached": built.cached,
            "lock": lock,
            "pushed": pushed,
            "warnings": warnings.json(),
        });
        return terminal::json(&report.to_string());
    }
    let how = if built.cached { "from the store" } else { "built" };
    let size = readable(sealed.rootfs_size);
    let store = store_option(args);
    let start = target.name.as_ref().map(|it| format!("; start it: boxlaunch run {store}{it}"));
    let directory = target.directory.display();
    terminal::note(&format!("{how}: {directory} (rootfs {size}){}", start.unwrap_or_default()));
    terminal::result(&sealed.manifest.to_string());
}
