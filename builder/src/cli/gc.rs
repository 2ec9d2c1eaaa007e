//! `boxbuild gc`: removes from the store what nobody needs; and the look at its size after other commands.

use std::env;
use std::time::Duration;

use box_cache::Store;
use box_cache::collect::Rules;
use box_prune::{Cap, VARIABLE};

use super::failure::Failure;
use super::options::StoreOption;
use super::{locate, terminal};

/// Removes from the store what was used least recently, until it is small enough.
///
/// Boxes and the cached steps of builds go by their last use, and then what nothing refers to any more. A box is kept that runs,
/// that was pulled, loaded, or named with `build --name`, that a NAME.box that is still there needs, or that was made or used
/// within the last hour. Everything that goes can be built or fetched again. `boxbuild build`, `pull`, `load` and `fetch` look at the size of the store, too.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild gc                     down to the size that the store may have\n  \
    boxbuild gc --max-size 5G       down to 5 GiB\n  \
    boxbuild gc --older-than 7d     also all that was not used for a week\n  \
    boxbuild gc --dry-run           say what would go, and what is kept and why")]
pub(crate) struct Args {
    /// The size that the store may have: 50G, 512MiB, 0 (everything goes that is not kept) or none
    /// [default: $BOXBUILD_STORE_MAX, else 20G or a tenth of the disk]
    #[arg(long, value_name = "SIZE", value_parser = Cap::parse)]
    max_size: Option<Cap>,
    /// Remove what was not used for so long, too: 90s, 10m, 12h or 7d. Less than an hour also removes boxes that are so young
    #[arg(long, value_name = "TIME", value_parser = box_prune::age)]
    older_than: Option<Duration>,
    /// Say what would go, and remove nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    store: StoreOption,
    /// Print JSON, also for errors (except usage errors)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let root = locate::store(args.store.store.as_deref())?;
    let cap = args.max_size.map_or_else(cap, Ok)?;
    let rules = Rules {
        cap: cap.bytes(&root),
        older_than: args.older_than,
        dry_run: args.dry_run,
        ..Rules::default()
    };
    let report = box_prune::collect(&root, &rules)?;
    if args.json {
        terminal::json(&box_prune::json(&report, args.dry_run).to_string());
        return Ok(());
    }
    if terminal::is_quiet() {
        report.removed.iter().for_each(|it| terminal::result(&it.digest.to_string()));
    } else {
        terminal::result(&box_prune::lines(&report, args.dry_run).join("\n"));
    }
    let over = box_prune::over(&report, &root, false);
    over.iter().for_each(|text| terminal::note(&format!("warning: {text}")));
    Ok(())
}

/// Returns how large the store may be, as the environment says.
pub(crate) fn cap() -> Result<Cap, Failure> {
    Cap::from_variable(env::var_os(VARIABLE)).map_err(Failure::usage)
}

/// Looks at the size of the store after a command that may have added to it. Returns what a person has to know, if something is
/// wrong: that is no failure of the command.
pub(crate) fn after(store: &Store, cap: Cap, as_json: bool) -> Option<String> {
    match box_prune::after_adding(store.root(), store.added(), cap) {
        Ok(None) => None,
        Ok(Some(report)) => {
            if !as_json && report.before > report.after {
                terminal::note(&box_prune::size_line(&report, false));
            }
            box_prune::over(&report, store.root(), true)
        }
        Err(error) => {
            let why = safe_text::with_causes(&error);
            Some(format!("nothing was removed from the store, which is too large: {why}"))
        }
    }
}

/// As [`after`], for a command without further warnings.
pub(crate) fn after_alone(store: &Store, cap: Cap, as_json: bool) {
    if let Some(warning) = after(store, cap, as_json).filter(|_| !as_json) {
        terminal::note(&format!("warning: {warning}"));
    }
}
