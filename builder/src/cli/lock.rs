//! `boxbuild lock` and `boxbuild update`: writing the lock without building.

use std::collections::BTreeSet;
use std::path::Path;

use boxbuild::project::{LockFile, LockFileError};
use boxbuild::resolve;
use boxfile_spec::lock::{Entry, Kind};
use boxfile_spec::{Lock, Platform};
use oci_image::Remote;

use super::failure::Failure;
use super::loaded::{Loaded, Tools};
use super::options::{InputOptions, ProjectOptions};
use super::registries::Registries;
use super::{locking, terminal};

/// Writes Boxfile.lock without building.
///
/// Everything that the Boxfile names is pinned, for each of its platforms and profiles. What is
/// locked already stays as it is, unless the Boxfile or a file of the checkout changed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild lock            write ./Boxfile.lock\n  \
    boxbuild lock --json     print what changed as JSON")]
pub(crate) struct LockArgs {
    #[command(flatten)]
    pub(crate) project: ProjectOptions,
    #[command(flatten)]
    inputs: InputOptions,
}

/// Resolves tags anew, and writes what they lead to into Boxfile.lock.
///
/// Prints old → new for each entry that changed, with the layers. Without names, every image is
/// resolved anew.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild update              resolve every image anew\n  \
    boxbuild update agent        the agent's only\n  \
    boxbuild update --dry-run    only print what would change")]
pub(crate) struct UpdateArgs {
    /// The entries of the lock to resolve anew [default: every image]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    pub(crate) project: ProjectOptions,
    #[command(flatten)]
    inputs: InputOptions,
}

/// Runs `boxbuild lock`.
pub(crate) fn lock(args: &LockArgs) -> Result<(), Failure> {
    let loaded = Loaded::read(&args.project, None)?;
    let file = readable(&loaded.lock_path(&args.inputs))?;
    let registries = Registries::find(&args.inputs.registries, args.project.json)?;
    let remote = registries.client();
    let lock = resolve_all((&loaded, &args.inputs), &remote, file.lock.as_ref(), &[])?;
    finish(&file, &lock, false, args.project.json)
}

/// Reads a lock. Of one that cannot be used as it is, the pins that are intact are kept: that is what
/// its error says to do.
fn readable(path: &Path) -> Result<LockFile, Failure> {
    let error = match LockFile::read(path) {
        Ok(file) => return Ok(file),
        Err(error) => error,
    };
    let (file, dropped) = match error {
        LockFileError::Malformed { .. }
        | LockFileError::NotText(_)
        | LockFileError::Epoch { .. } => {
            LockFile::salvage(path).map_err(|error| Failure::of_lock(&error))?
        }
        error => return Err(Failure::of_lock(&error)),
    };
    terminal::note(&format!("warning: {} is mended: what is intact in it stays", path.display()));
    for entry in dropped {
        terminal::note(&format!("  {entry} is resolved anew"));
    }
    Ok(file)
}

/// Runs `boxbuild update`.
pub(crate) fn update(args: &UpdateArgs) -> Result<(), Failure> {
    let loaded = Loaded::read(&args.project, None)?;
    let file = loaded.lock_file(&args.inputs)?;
    let old = file.lock.as_ref();
    let refresh = match args.names.as_slice() {
        [] => names(old, |it| it.kind == Kind::Image),
        names => names.to_vec(),
    };
    let registries = Registries::find(&args.inputs.registries, args.project.json)?;
    let remote = registries.client();
    let lock = resolve_all((&loaded, &args.inputs), &remote, old, &refresh)?;
    let known = names(old, |_| true).into_iter().chain(names(Some(&lock), |_| true)).collect();
    check_names(&args.names, known)?;
    finish(&file, &lock, args.dry_run, args.project.json)
}

/// Returns the names of a lock's entries.
fn names(lock: Option<&Lock>, filter: impl Fn(&&Entry) -> bool) -> Vec<String> {
    lock.into_iter().flat_map(Lock::entries).filter(filter).map(|it| it.name.clone()).collect()
}

/// Refuses a name that neither the lock nor the Boxfile has.
fn check_names(names: &[String], known: BTreeSet<String>) -> Result<(), Failure> {
    let Some(name) = names.iter().find(|name| !known.contains(*name)) else { return Ok(()) };
    let known: Vec<String> = known.into_iter().collect();
    let known = known.join(", ");
    Err(Failure::new(format!("the lock has no entry `{name}`\n  = help: its entries are {known}")))
}

/// Resolves everything that the Boxfile names, in all its profiles, for all its platforms.
fn resolve_all(
    (loaded, inputs): (&Loaded, &InputOptions),
    remote: &dyn Remote,
    old: Option<&Lock>,
    refresh: &[String],
) -> Result<Lock, Failure> {
    let mut lock = Lock::new(box_image::manifest::FORMAT_EPOCH);
    for (index, variant) in loaded.variants().iter().enumerate() {
        let tools = Tools::find(inputs, variant)?;
        let checkout = variant.project.checkout(&variant.boxfile);
        let platforms: Vec<Platform> =
            variant.boxfile.platforms.iter().map(|it| it.value).collect();
        for platform in platforms {
            let request = tools.request(variant, &checkout, platform, old, refresh, remote);
            let resolved = resolve(&request, &tools.store)
                .map_err(|error| Failure::of_build(&error, &variant.sources))?;
            if index == 0 {
                variant.show_warnings(&resolved.warnings);
            }
            resolved.lock.entries().for_each(|entry| drop(lock.set(entry.clone())));
        }
    }
    Ok(lock)
}

/// Writes the lock, unless it is only to be shown, and tells what changed.
fn finish(file: &LockFile, lock: &Lock, dry_run: bool, as_json: bool) -> Result<(), Failure> {
    let written = !dry_run && file.write(lock).map_err(|error| Failure::of_lock(&error))?;
    if as_json {
        terminal::result(&locking::report(file, lock, written).to_string());
        return Ok(());
    }
    let lines = locking::describe(file.lock.as_ref(), lock);
    let path = file.path().display();
    terminal::note(&match (written, dry_run && !lines.is_empty()) {
        (true, _) => format!("wrote {path}"),
        (false, true) => format!("{path} would change"),
        (false, false) => format!("{path} is up to date"),
    });
    if !lines.is_empty() {
        terminal::result(&lines.join("\n"));
    }
    Ok(())
}
