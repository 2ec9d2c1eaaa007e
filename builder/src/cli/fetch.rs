//! `boxbuild fetch`: downloads everything that builds need from the network.

use std::collections::BTreeMap;
use std::path::Path;

use box_contract::{ErrorCode, KernelName};
use box_digest::Digest;
use safe_text::readable;
use serde_json::json;

use super::failure::{Failure, of_build};
use super::loaded::{Loaded, Tools};
use super::lock::{check_declared, resolve_all};
use super::locking::Fixed;
use super::options::{InputOptions, LockedOption, ProjectOptions, lock_command};
use super::{installed, locking, setup, terminal};
use crate::cli::stored::PROGRAM;
use cli_common::store::after_adding_alone;

/// Fetches everything that builds need from the network into the store.
///
/// Fetches the images and downloads of every profile of the Boxfile, and writes Boxfile.lock as `boxbuild lock` does. If this
/// host has no guest kernel, fetches one as `boxbuild setup` does. Afterwards `boxbuild build --locked --offline` needs no
/// network.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild fetch             fetch what is missing, and write Boxfile.lock\n  \
    boxbuild fetch --locked    fetch exactly what the lock pins, or fail with exit code 3\n  \
    boxbuild fetch --json      print the result as JSON")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) project: ProjectOptions,
    #[command(flatten)]
    locked: LockedOption,
    #[command(flatten)]
    inputs: InputOptions,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (locked, as_json) = (&args.locked, args.project.json);
    let loaded = Loaded::read(&args.project, None)?;
    let place = loaded.lock_path(&args.inputs).map_err(|error| locked.blame(error.into()))?;
    let file = locked.read(place)?;
    let command = lock_command(&args.project, &args.inputs);
    let fixed = Fixed { file: &file, option: "--locked", command: &command };
    if locked.locked {
        check_declared(&fixed, &loaded)?;
    }
    let cap = cli_common::store::cap(&PROGRAM)?;
    let tools = Tools::find(&args.inputs, as_json)?;
    if !args.inputs.offline {
        get_kernel(&args.inputs, &loaded, as_json)?;
    }
    let mut fetched = BTreeMap::new();
    let lock = resolve_all(&loaded, &tools, file.lock.as_ref(), &[], |resolved| {
        let failed = |error| of_build(&error, &loaded.sources);
        let layers = resolved.fetch().map_err(failed)?;
        fetched.extend(layers.iter().map(|layer| (layer.digest, layer.size)));
        Ok(())
    });
    let lock = lock.map_err(|failure| locked.blame_pin(failure))?;
    if locked.locked {
        fixed.check_resolved(&lock)?;
    }
    let written = file.write(&lock)?;
    after_adding_alone(&PROGRAM, &tools.store, cap, as_json);
    if as_json {
        let mut report = locking::report(&file, &lock, written);
        let layer = |(digest, size)| json!({ "digest": digest, "size": size });
        report["layers"] = fetched.iter().map(layer).collect();
        terminal::json(&report.to_string());
        return Ok(());
    }
    if written {
        terminal::note(&format!("wrote {}", file.path().display()));
    }
    report(&fetched);
    Ok(())
}

/// Downloads the default guest kernel if none is installed. Any other kernel is a file of the user, and is not
/// downloaded.
fn get_kernel(inputs: &InputOptions, loaded: &Loaded, as_json: bool) -> Result<(), Failure> {
    let found = installed::kernel(inputs.kernel.as_deref(), loaded.boxfile(), &loaded.project.base);
    let Some(place) = installed::set_up_kernel(KernelName::Krunfw) else { return Ok(()) };
    match found {
        Err(failure) if failure.has(ErrorCode::KernelNotFound) && !is_lean(inputs, loaded) => {
            setup::tested_kernel(&place, as_json)
        }
        // The build reports every other error.
        _ => Ok(()),
    }
}

/// Returns whether builds use the lean kernel, which cannot be downloaded.
fn is_lean(inputs: &InputOptions, loaded: &Loaded) -> bool {
    let declared = loaded.boxfile().kernel.as_ref().and_then(|it| it.path.as_ref());
    let declared = declared.map(|it| Path::new(&it.value)).or(inputs.kernel.as_deref());
    declared.and_then(Path::to_str).and_then(KernelName::of) == Some(KernelName::Lean)
}

/// Prints the layers that were fetched, and their total size.
fn report(fetched: &BTreeMap<Digest, u64>) {
    for (digest, size) in fetched {
        terminal::result(&format!("{digest} {size}"));
    }
    terminal::note(&match fetched.len() {
        0 => "every layer is in the store, or in an image on this host".to_owned(),
        count => {
            let layers = if count == 1 { "layer" } else { "layers" };
            format!("fetched {count} {layers}: {}", readable(fetched.values().sum()))
        }
    });
}
