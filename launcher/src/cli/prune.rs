//! `boxlaunch prune` and `rmi`: what goes from the store.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use box_cache::collect::{Collector, Report, Reported, Rules, Why};
use box_cache::{Label, Store};
use box_contract::ErrorCode;
use box_digest::Digest;
use box_find::{BoxReference, FindError};
use box_prune::{BoxContents, Cap, VARIABLE, called};
use boxlaunch::boxes::{Boxes, State};
use cli_common::problem::is_cut_digest;
use host_fs::own::STORE_RO;
use safe_text::{shown, with_causes};

use super::error::{CommandError, usage};
use super::found::StoreOption;
use super::paths;
use super::terminal::{is_quiet, json_line, notice, print};

/// Removes from the store what was used least recently, until it is small enough.
///
/// Boxes and the cached steps of builds go by their last use, and then what nothing refers to any more. A box is kept that runs,
/// that was pulled, loaded, or named with `build --name`, that a NAME.box that is still there needs, or that was made or used
/// within the last hour.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch prune                     down to the size that the store may have
  boxlaunch prune --max-size 5G       down to 5 GiB
  boxlaunch prune --older-than 7d     also all that was not used for a week
  boxlaunch prune --dry-run           say what would go, and what is kept and why")]
pub(crate) struct PruneArgs {
    /// The size that the store may have: 50G, 512MiB, 0 (everything goes that is not kept) or none
    /// [default: $BOXBUILD_STORE_MAX, else 20G or a tenth of the disk].
    #[arg(long, value_name = "SIZE", value_parser = Cap::parse)]
    max_size: Option<Cap>,
    /// Remove what was not used for so long, too: 90s, 10m, 12h or 7d. Less than an hour also removes boxes that are so young.
    #[arg(long, value_name = "TIME", value_parser = box_prune::age)]
    older_than: Option<Duration>,
    /// Say what would go, and remove nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    store: StoreOption,
    /// Print one JSON object: what was removed, and what is kept and why.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Removes boxes from the store.
///
/// A name is removed, and its box with it if it has no other name. What other boxes share stays, and so do the layers that builds
/// use: `boxbuild gc` removes those by age. A box that runs is not removed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch rmi hello
  boxlaunch rmi sha256:...      a box without a name, or with one")]
pub(crate) struct RmiArgs {
    /// The boxes: names in the store, HOST/NAME:TAG, or sha256:...
    #[arg(value_name = "BOX", required = true)]
    boxes: Vec<PathBuf>,
    /// Remove a box that runs, too: it runs to its end. And one that was named by its digest and has several names.
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    store: StoreOption,
    /// Print one JSON object, as `prune` does.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Runs `boxlaunch prune`.
pub(crate) fn prune(args: &PruneArgs) -> Result<u8, CommandError> {
    let root = paths::store_of_user(args.store.store.as_deref())?;
    let cap = args.max_size.map_or_else(cap, Ok)?;
    let rules = Rules {
        cap: cap.bytes(&root),
        older_than: args.older_than,
        dry_run: args.dry_run,
        ..Rules::default()
    };
    let report = collect(&root, &rules)?;
    show(&report, args.dry_run, args.json)?;
    if let Some(over) = box_prune::over(&report, &root, false).filter(|_| !args.json && !is_quiet())
    {
        notice(&format!("warning: {over}\n"));
    }
    Ok(0)
}

/// Runs `boxlaunch rmi`.
pub(crate) fn rmi(args: &RmiArgs) -> Result<u8, CommandError> {
    let root = paths::store_of_user(args.store.store.as_deref())?;
    let found = collect(&root, &Rules { dry_run: true, ..Rules::default() })?;
    let mut rules = Rules { is_forced: args.force, ..Rules::default() };
    for word in &args.boxes {
        ask(word.as_os_str(), &root, &found, &mut rules)?;
    }
    if !args.force {
        check_names(&rules, &found)?;
    }
    // What runs is known for certain only while nothing can start.
    let would = collect(&root, &Rules { dry_run: true, ..rules.clone() })?;
    refuse_running(&rules, &would)?;
    let report = collect(&root, &rules)?;
    refuse_running(&rules, &report)?;
    if args.json || is_quiet() {
        return show(&report, false, args.json).map(|()| 0);
    }
    print(&(box_prune::asked_lines(&report, &rules.names).join("\n") + "\n"))?;
    Ok(0)
}

/// Adds what a word of the command line names to what is to go.
fn ask(word: &OsStr, root: &Path, found: &Report, rules: &mut Rules) -> Result<(), CommandError> {
    let reference = BoxReference::parse(word)?;
    if reference.path().is_some() {
        let message = "a path names none of the store's boxes";
        return Err(usage(message, "name a box as `boxlaunch images --all` does"));
    }
    let listed = "`boxlaunch images --all` lists the boxes of the store";
    let digest = reference.digest_in(root).map_err(|error| match error {
        FindError::NoName { ref name, .. } if is_cut_digest(name) => error.into(),
        FindError::NotPulled(_) | FindError::NoName { .. } => absent(&error, root, listed),
        error => error.into(),
    })?;
    if let Some(remote) = reference.remote() {
        // With a digest, the box may be there under another name only.
        let name = remote.unpinned().to_string();
        let mut of_box = found.kept.iter().filter(|it| it.digest == digest);
        if of_box.any(|it| !it.names.contains(&name)) {
            return Err(absent(&FindError::NotPulled(Box::new(remote.clone())), root, listed));
        }
    }
    let is_label = reference.name().is_some() || reference.remote().is_some();
    // A name whose box is gone can go all the same.
    if !is_label && !found.kept.iter().any(|it| it.digest == digest) {
        return Err(absent(&FindError::NoBox(digest), root, listed));
    }
    let name = reference.name().map(|it| Label::Name(it.to_owned()));
    let pulled = reference.remote().map(|it| Label::Pulled(it.unpinned().to_string()));
    match name.or(pulled) {
        Some(label) => drop(rules.names.insert(label, digest)),
        None => drop(rules.boxes.insert(digest)),
    }
    Ok(())
}

/// Says that the store has no such box, and if the store of the machine may have it, that nothing goes from there.
fn absent(error: &FindError, root: &Path, listed: &str) -> CommandError {
    let base = paths::base_store().filter(|it| it != root);
    let help = base.map_or_else(
        || listed.to_owned(),
        |base| {
            format!(
                "{listed}; those of {} ({STORE_RO}) are for all users and stay",
                shown(&base.display().to_string())
            )
        },
    );
    CommandError::new((ErrorCode::BoxNotFound, help), shown(&error.to_string()))
}

/// Refuses a box that has several names and is named by its digest.
fn check_names(rules: &Rules, found: &Report) -> Result<(), CommandError> {
    let is_asked = |name: &String| rules.names.keys().any(|it| it.text() == name);
    let mut several = found.kept.iter().filter(|it| rules.boxes.contains(&it.digest));
    let Some(it) = several.find(|it| it.names.len() > 1 && !it.names.iter().all(is_asked)) else {
        return Ok(());
    };
    let message = format!("{} has several names: {}", it.digest, called(it));
    Err(usage(&message, "name those that are to go, or remove all of them with --force"))
}

/// Says that a box was not removed because it runs, and under which names.
fn refuse_running(rules: &Rules, report: &Report) -> Result<(), CommandError> {
    let is_asked = |it: &&Reported| {
        rules.boxes.contains(&it.digest)
            || rules.names.iter().any(|(label, digest)| {
                *digest == it.digest && it.names.iter().any(|name| name == label.text())
            })
    };
    let mut left = report.kept.iter().filter(|it| it.why == Some(Why::Running));
    left.find(is_asked).map_or(Ok(()), |it| Err(running(it)))
}

/// Says that a box runs, and under which names.
fn running(of: &Reported) -> CommandError {
    let records = paths::state().and_then(|it| Ok(Boxes::new(&it).all()?)).unwrap_or_default();
    let running = records.iter().filter(|it| it.digest == of.digest && it.state != State::Ended);
    let names: Vec<_> = running.map(|it| it.name.as_str()).collect();
    let (as_names, help) = match &names[..] {
        [] => (String::new(), "stop it first, or remove it with --force".to_owned()),
        names => {
            let names = names.join(" ");
            let help =
                format!("stop it first: `boxlaunch stop {names}`; or remove it with --force");
            (format!(" as {names}"), help)
        }
    };
    let message = format!("{} runs{as_names}", called(of));
    CommandError::new((ErrorCode::StillRunning, help), message)
}

/// Returns how large the store may be, as the environment says.
pub(super) fn cap() -> Result<Cap, CommandError> {
    let cap = Cap::from_variable(env::var_os(VARIABLE));
    cap.map_err(|wrong| CommandError::new(ErrorCode::Usage, wrong))
}

/// Looks at the size of the store after a command that may have added to it. That something is wrong with it is no failure of the
/// command.
pub(super) fn after_adding(store: &Store, cap: Cap, is_silent: bool) {
    let (line, warning) = match box_prune::after_adding(store.root(), store.added(), cap) {
        Ok(None) => return,
        Ok(Some(report)) => {
            let freed = report.before > report.after;
            let line = freed.then(|| box_prune::size_line(&report, false));
            (line, box_prune::over(&report, store.root(), true))
        }
        Err(error) => {
            let why = shown(&with_causes(&error));
            let text = format!("nothing was removed from the store, which is too large: {why}");
            (None, Some(text))
        }
    };
    let warning = warning.map(|text| format!("warning: {text}"));
    for line in line.into_iter().chain(warning).filter(|_| !is_silent) {
        notice(&format!("{line}\n"));
    }
}

/// Returns the size of each box of the store.
pub(super) fn sizes(
    root: &Path,
) -> Result<BTreeMap<Digest, box_cache::collect::BoxSize>, CommandError> {
    let collector = Collector::open(root).map_err(FindError::from)?;
    let sizes = collector.map(|it| it.box_sizes(&BoxContents)).transpose();
    Ok(sizes.map_err(FindError::from)?.unwrap_or_default())
}

fn collect(root: &Path, rules: &Rules) -> Result<Report, CommandError> {
    Ok(box_prune::collect(root, rules).map_err(FindError::from)?)
}

/// Prints what was removed, or would be.
fn show(report: &Report, dry_run: bool, as_json: bool) -> Result<(), CommandError> {
    print(&if as_json {
        json_line(&box_prune::json(report, dry_run))?
    } else if is_quiet() {
        report.removed.iter().map(|it| format!("{}\n", it.digest)).collect()
    } else {
        box_prune::lines(report, dry_run).join("\n") + "\n"
    })
}
