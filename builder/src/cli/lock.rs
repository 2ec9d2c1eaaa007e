//! `boxbuild lock` and `boxbuild update`: writing the lock without building.

use boxbuild::project::LockFile;
use boxbuild::resolve;
use boxfile_spec::lock::Kind;
use boxfile_spec::{Lock, Platform};
use serde_json::{Value, json};

use super::failure::Failure;
use super::loaded::{Loaded, Tools};
use super::options::{InputOptions, ProjectOptions};
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
    let loaded = Loaded::read(&args.project)?;
    // A lock that cannot be read is replaced: that is what its error says to do.
    let path = loaded.lock_path(&args.inputs);
    let file = LockFile::read(&path).unwrap_or_else(|_| LockFile::anew(&path));
    let lock = resolve_all(&loaded, &args.inputs, file.lock.as_ref(), &[])?;
    finish(&file, &lock, false, args.project.json)
}

/// Runs `boxbuild update`.
pub(crate) fn update(args: &UpdateArgs) -> Result<(), Failure> {
    let loaded = Loaded::read(&args.project)?;
    let file = loaded.lock_file(&args.inputs)?;
    let known = |lock: &Lock| lock.entries().map(|it| it.name.clone()).collect::<Vec<_>>();
    let known = file.lock.as_ref().map(known).unwrap_or_default();
    if let (Some(name), true) =
        (args.names.iter().find(|it| !known.contains(it)), file.lock.is_some())
    {
        return Err(unknown(name, known));
    }
    let images = |lock: &Lock| {
        let images = lock.entries().filter(|it| it.kind == Kind::Image);
        images.map(|it| it.name.clone()).collect()
    };
    let refresh = if args.names.is_empty() {
        file.lock.as_ref().map(images).unwrap_or_default()
    } else {
        args.names.clone()
    };
    let lock = resolve_all(&loaded, &args.inputs, file.lock.as_ref(), &refresh)?;
    finish(&file, &lock, args.dry_run, args.project.json)
}

fn unknown(name: &str, mut known: Vec<String>) -> Failure {
    known.dedup();
    Failure::new(format!(
        "the lock has no entry `{name}`\n  = help: its entries are {}",
        known.join(", ")
    ))
}

/// Resolves everything that the Boxfile names, in all its profiles, for all its platforms.
fn resolve_all(
    loaded: &Loaded,
    inputs: &InputOptions,
    old: Option<&Lock>,
    refresh: &[String],
) -> Result<Lock, Failure> {
    let mut lock = Lock::new(box_image::manifest::FORMAT_EPOCH);
    for (index, variant) in loaded.variants()?.iter().enumerate() {
        let tools = Tools::find(inputs, variant)?;
        let checkout = variant.project.checkout(&variant.boxfile);
        let platforms: Vec<Platform> =
            variant.boxfile.platforms.iter().map(|it| it.value).collect();
        for platform in platforms {
            let request = tools.request(variant, &checkout, platform, old, refresh);
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
        let empty = Lock::new(lock.epoch());
        let changes = file.lock.as_ref().unwrap_or(&empty).changes(lock);
        let changes: Vec<Value> = changes.iter().map(locking::change_json).collect();
        let report = json!({ "lock": file.path(), "written": written, "changes": changes });
        terminal::result(&report.to_string());
        return Ok(());
    }
    let lines = locking::describe(file.lock.as_ref(), lock);
    let path = file.path().display();
    terminal::note(&match (lines.is_empty(), dry_run, written) {
        (true, _, false) => format!("{path} is up to date"),
        (_, true, _) => format!("{path} would change"),
        (_, _, true) => format!("wrote {path}"),
        (..) => format!("{path} is up to date"),
    });
    if !lines.is_empty() {
        terminal::result(&lines.join("\n"));
    }
    Ok(())
}
