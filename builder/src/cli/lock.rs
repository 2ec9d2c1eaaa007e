//! `boxbuild lock` and `boxbuild update`: write the lock without building.

use std::collections::BTreeSet;

use box_contract::{ErrorCode, exit};
use boxbuild::project::lock::Lock;
use boxbuild::project::lock::{LockEntry, PinKind};
use boxbuild::project::{LockFile, LockFileError, LockPlace};
use boxbuild::{Resolved, resolve};
use diagnostics::suggest::nearest;

use super::failure::{Failure, of_build};
use super::loaded::{Loaded, Tools};
use super::locking::Fixed;
use super::options::{InputOptions, LockedOption, ProjectOptions, lock_command};
use super::stages::Stages;
use super::{locking, terminal};

/// Writes Boxfile.lock without building.
///
/// Pins everything that the Boxfile names, for each of its platforms and profiles. Existing entries stay, unless the Boxfile
/// or a file of the checkout changed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild lock            write Boxfile.lock\n  \
    boxbuild lock --check    fail with exit code 3 if that would change it\n  \
    boxbuild lock --json     print the changes as JSON")]
pub(crate) struct LockArgs {
    /// Write nothing, and exit with 3 if the lock is missing or would change
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    pub(crate) project: ProjectOptions,
    #[command(flatten)]
    inputs: InputOptions,
}

/// Resolves tags again, and writes the resulting digests into Boxfile.lock.
///
/// Prints the old and the new digest of each entry that changed, with its layers. Without names, resolves every image, and
/// writes a new lock if the present one cannot be read, for example because it has merge conflicts.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild update              resolve every image again\n  \
    boxbuild update agent        resolve the agent's image only\n  \
    boxbuild update --dry-run    print the changes, and write nothing\n  \
    boxbuild update --dry-run --exit-code    also exit with 5 if there are changes")]
pub(crate) struct UpdateArgs {
    /// The entries of the lock to resolve again [default: every image]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print the changes, but do not write them
    #[arg(long)]
    dry_run: bool,
    /// Exit with 5 if there are changes, as `git diff --exit-code` does
    #[arg(long)]
    exit_code: bool,
    #[command(flatten)]
    pub(crate) project: ProjectOptions,
    #[command(flatten)]
    inputs: InputOptions,
}

/// Runs `boxbuild lock`.
pub(crate) fn lock(args: &LockArgs) -> Result<(), Failure> {
    let loaded = Loaded::read(&args.project, None)?;
    let locked = LockedOption { locked: args.check };
    let place = loaded.lock_path(&args.inputs).map_err(|error| locked.blame(error.into()))?;
    let file = locked.read(place)?;
    let command = lock_command(&args.project, &args.inputs);
    let fixed = Fixed { file: &file, option: "--check", command: &command };
    if args.check {
        check_declared(&fixed, &loaded)?;
    }
    let tools = Tools::find(&args.inputs, args.project.json)?;
    let lock = resolve_all(&loaded, &tools, file.lock.as_ref(), &[], |_| Ok(()))
        .map_err(|failure| locked.blame_pin(failure))?;
    if args.check {
        fixed.check_resolved(&lock)?;
    }
    finish(&file, &lock, args.check, args.project.json)
}

/// Refuses a lock that does not match the declarations of the Boxfile, for any of its profiles and
/// platforms.
pub(crate) fn check_declared(fixed: &Fixed<'_>, loaded: &Loaded) -> Result<(), Failure> {
    for variant in loaded.variants() {
        for platform in &variant.boxfile().platforms {
            fixed.check_declared(&variant, platform.value)?;
        }
    }
    Ok(())
}

/// Reads a lock whose entries will all be resolved again, and warns if the lock's pins cannot be used.
fn read_to_rebuild(place: LockPlace) -> Result<LockFile, Failure> {
    let (file, error) = LockFile::read_to_rebuild(place)?;
    let reason = match &error {
        Some(LockFileError::Malformed { diagnostics, .. }) => diagnostics.to_string(),
        Some(error) => error.to_string(),
        None => return Ok(file),
    };
    let path = file.path().display();
    terminal::note(&format!("warning: everything in {path} is resolved again: {reason}"));
    Ok(file)
}

/// Runs `boxbuild update`.
pub(crate) fn update(args: &UpdateArgs) -> Result<(), Failure> {
    let loaded = Loaded::read(&args.project, None)?;
    let path = loaded.lock_path(&args.inputs)?;
    let all = args.names.is_empty();
    let file = if all { read_to_rebuild(path)? } else { LockFile::read_any_epoch(path)? };
    let old = file.lock.as_ref();
    let refresh = if all { names(old, |it| it.kind == PinKind::Image) } else { args.names.clone() };
    let tools = Tools::find(&args.inputs, args.project.json)?;
    let lock = resolve_all(&loaded, &tools, old, &refresh, |_| Ok(()))?;
    let known = names(old, |_| true).into_iter().chain(names(Some(&lock), |_| true)).collect();
    check_names(&args.names, known)?;
    finish(&file, &lock, args.dry_run, args.project.json)?;
    if args.exit_code && !locking::describe(file.lock.as_ref(), &lock).is_empty() {
        return Err(Failure::reported(exit::DIFFERENT));
    }
    Ok(())
}

/// Returns the names of the entries that pass `filter`.
fn names(lock: Option<&Lock>, filter: impl Fn(&&LockEntry) -> bool) -> Vec<String> {
    lock.into_iter().flat_map(Lock::entries).filter(filter).map(|it| it.name.clone()).collect()
}

/// Refuses a name that neither the lock nor the Boxfile has.
fn check_names(names: &[String], known: BTreeSet<String>) -> Result<(), Failure> {
    let Some(name) = names.iter().find(|name| !known.contains(*name)) else { return Ok(()) };
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let help = match nearest(name, &known) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("its entries are {}", known.join(", ")),
    };
    let message = format!("the lock has no entry `{name}`");
    Err(Failure::new((ErrorCode::LockEntryNotFound, help), message))
}

/// Resolves the declarations of the Boxfile for all its profiles and platforms, and calls `each`
/// with each result.
pub(crate) fn resolve_all(
    loaded: &Loaded,
    tools: &Tools<'_>,
    old: Option<&Lock>,
    refresh: &[String],
    mut each: impl FnMut(&Resolved<'_>) -> Result<(), Failure>,
) -> Result<Lock, Failure> {
    let stages = Stages::new(tools.as_json);
    stages.begin("resolving images and files");
    let mut lock = Lock::new(box_contract::manifest::FORMAT_EPOCH);
    for (index, variant) in loaded.variants().iter().enumerate() {
        for platform in &variant.boxfile().platforms {
            let request = tools.request(variant, platform.value, old, refresh)?;
            let failed = |error| of_build(&error, &variant.sources);
            let resolved = resolve(&request, &tools.store).map_err(failed)?;
            if index == 0 {
                variant.show_warnings(resolved.warnings());
            }
            resolved.lock().entries().for_each(|entry| drop(lock.set(entry.clone())));
            each(&resolved)?;
        }
    }
    Ok(lock)
}

/// Writes the lock unless `dry_run`, and prints the changes.
fn finish(file: &LockFile, lock: &Lock, dry_run: bool, as_json: bool) -> Result<(), Failure> {
    let written = !dry_run && file.write(lock)?;
    if as_json {
        terminal::json(&locking::report(file, lock, written).to_string());
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
