//! `boxbuild build`: builds a box from a Boxfile.

mod declaration;
mod finish;
mod image;
mod inline_cache;
mod target;

use std::cell::Cell;
use std::io::ErrorKind;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use box_cache::{Store, StoreError};
use box_contract::Platform;
use box_contract::rules::{NAME_FORM, is_name};
use box_contract::{ErrorCode, RemoteName};
use box_prune::Cap;
use boxbuild::project::lock::Lock;
use boxbuild::{BuildError, Resolved, resolve};
use oci_registry::Registry;

use super::failure::{Failure, of_build};
use super::loaded::{Loaded, Tools};
use super::locking::Fixed;
use super::options::{
    InputOptions, LockedOption, ProfileOption, ProjectOptions, lock_command, platform,
};
use super::stages::Stages;
use super::transfer::destination;
use super::warnings::Warnings;
use super::{registries, terminal};
use crate::cli::stored::{PROGRAM, check_output};
use declaration::DeclarationOptions;
use finish::Finish;
use image::{Image, ImageOptions};
use inline_cache::{CacheOptions, Source};
use target::Target;

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
    boxbuild build --image python:3.12    build a box of an image, without a Boxfile\n  \
    boxbuild build --json                 print the result as JSON")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) project: ProjectOptions,
    #[command(flatten)]
    profile: ProfileOption,
    #[command(flatten)]
    image: ImageOptions,
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
    declaration: DeclarationOptions,
    #[command(flatten)]
    cache: CacheOptions,
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
    let source = args.push.as_ref().map(|to| args.cache.source(to)).transpose()?;
    let again = Again {
        is_missing: Cell::new(false),
        is_whole: Cell::new(args.cache.no_cache),
        is_unpinned: Cell::new(false),
    };
    let mut left = ATTEMPTS;
    loop {
        again.is_missing.set(false);
        left -= 1;
        let done = attempt(args, cap, source, &again);
        if done.is_ok() || left == 0 || !again.is_missing.get() {
            return done;
        }
        terminal::detail("again", "a blob was lost during the build, or the build cache is wrong");
    }
}

impl Args {
    /// Returns the client with which the box is pushed. `None` without `--push`.
    fn sender(&self) -> Result<Option<Registry>, Failure> {
        let sender =
            |_: &RemoteName| registries::sender(&self.inputs.registries, self.project.json);
        self.push.as_ref().map(sender).transpose()
    }
}

/// Why and how a failed build is tried again.
struct Again {
    /// Whether the build failed because the store or the registry has lost a blob, or because of the build cache. Collections
    /// such as `boxbuild gc` keep the blobs that a process with the open store uses, but other programs may delete blobs.
    is_missing: Cell<bool>,
    /// Whether this host must have the whole box, so that the build takes no layers of the registry.
    is_whole: Cell<bool>,
    /// Whether the pins of `--image` name an image that the registry does not have any more.
    is_unpinned: Cell<bool>,
}

impl Again {
    /// Returns the pins of the last build of an image.
    fn pins(&self, image: Option<&Image>, store: &Store) -> Result<Option<Lock>, Failure> {
        let image = image.filter(|_| !self.is_unpinned.get());
        image.map_or(Ok(None), |it| it.pins(store))
    }
}

/// Builds once.
fn attempt(
    args: &Args,
    cap: Cap,
    source: Option<Source<'_>>,
    again: &Again,
) -> Result<(), Failure> {
    let image = args.image.image()?;
    let loaded = match &image {
        Some(image) => image.loaded()?,
        None => Loaded::read(&args.project, args.profile.name.as_deref())?,
    };
    let platform = loaded.platform(args.platform)?;
    let locked = &args.locked;
    let lock_file = match image {
        Some(_) => None,
        None => Some(loaded.lock_file(&args.inputs).map_err(|error| locked.blame(error.into()))?),
    };
    let pinned = lock_file.as_ref().and_then(|it| it.lock.as_ref());
    if args.declaration.answer(&loaded, pinned, args.project.json)? {
        return Ok(());
    }
    let command = lock_command(&args.project, &args.inputs);
    let fixed = lock_file.as_ref().filter(|_| locked.locked);
    let fixed = fixed.map(|file| Fixed { file, option: "--locked", command: &command });
    fixed.iter().try_for_each(|it| it.check_declared(&loaded, platform))?;
    let tools = Tools::find(&args.inputs, args.project.json)?;
    let pins = again.pins(image.as_ref(), &tools.store)?;
    let old = lock_file.as_ref().map_or(pins.as_ref(), |it| it.lock.as_ref());
    let request = tools.request(&loaded, platform, old, &[])?;
    let failed = |error: BuildError| {
        again.is_missing.set(StoreError::is_missing(&error));
        let failure = of_build(&error, &loaded.sources);
        if image.is_some() && failure.has(ErrorCode::LockPinStale) {
            again.is_missing.set(!again.is_unpinned.replace(true));
        }
        match &image {
            Some(image) => image.failure(&error, failure),
            None => locked.blame_pin(failure),
        }
    };
    request.check_platform().map_err(failed)?;
    let target = Target::new(args, &loaded, image.as_ref().map(|it| (it, &tools.store)))?;
    target.directory.as_deref().map_or(Ok(()), check_output)?;
    let stages = Stages::new(args.project.json);
    stages.begin("reading images and files");
    let resolved = resolve(&request, &tools.store).map_err(failed)?;
    let observer = stages.observer();
    let resolved = resolved.observed(&observer).afresh(args.cache.no_cache);
    let mut warnings = Warnings::new(args.project.json);
    loaded.add_warnings(resolved.warnings(), &mut warnings);
    loaded.add(resolved.image_warnings(), &mut warnings);
    let lock = loaded.declarations().updated(old, &resolved.lock(), loaded.target(platform));
    fixed.iter().try_for_each(|it| it.check_resolved(&lock))?;
    // Checked before the build, so that a build does not fail only at its end.
    lock_file.iter().try_for_each(|it| it.check_writable(&lock))?;
    let client = args.sender()?;
    let (store, client) = (&tools.store, client.as_ref());
    let lock = (lock_file.as_ref(), &lock);
    let done = Finish { args, loaded: &loaded, target: &target, store, client, lock, cap, again };
    make(&done, (resolved, source), (&stages, warnings), &failed)
}

/// Makes the box of the resolved inputs, with the layers of the registry as far as they help, and keeps it or leaves it in the
/// registry. `failed` converts errors of the build.
fn make(
    done: &Finish<'_>,
    (resolved, source): (Resolved<'_>, Option<Source<'_>>),
    (stages, mut warnings): (&Stages, Warnings),
    failed: &dyn Fn(BuildError) -> Failure,
) -> Result<(), Failure> {
    let known = resolved.recalled().map_err(failed)?;
    // Only a build that may use the registry's layers reads which layers the store lacks: it reads every layer's index.
    let missing = match source.filter(|_| known.is_none()) {
        Some(_) => resolved.undecoded().map_err(failed)?,
        None => Vec::new(),
    };
    let inline = match source.filter(|_| !missing.is_empty()) {
        Some(source) => done.inline(source, &resolved)?,
        None => None,
    };
    if let Some(inline) = inline.as_ref().filter(|it| it.is_same()) {
        return done.leave((&resolved, None), inline, (stages, warnings));
    }
    let resolved = match &inline {
        Some(inline) => resolved.with_cached(inline.layers(&missing)),
        None => resolved,
    };
    let built = match known {
        Some(known) => known,
        None => resolved.build().map_err(|error| {
            let failure = failed(error);
            if resolved.has_cached_layers() && !done.again.is_whole.replace(true) {
                done.again.is_missing.set(true);
            }
            failure
        })?,
    };
    done.loaded.add(resolved.layer_warnings(), &mut warnings);
    match &inline {
        // Whoever may push to the registry could have written these layers, so the box does not become a box of this host.
        Some(inline) if built.has_cached_layers => {
            done.leave((&resolved, Some(&built)), inline, (stages, warnings))
        }
        _ => done.keep((&resolved, &built), inline.as_ref(), (stages, warnings)),
    }
}

/// Sets the number of threads that decode layers, including the current one. If the system starts fewer threads, these
/// do all the work.
pub(super) fn set_threads(jobs: Option<u16>) -> Result<(), Failure> {
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

/// Parses the name of a box.
fn box_name(text: &str) -> Result<String, &'static str> {
    if is_name(text) { Ok(text.to_owned()) } else { Err(NAME_FORM) }
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
