//! `boxlaunch prune` and `rmi`: remove boxes from the store.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use box_cache::Label;
use box_cache::collect::{Collector, Report, Reported, Rules, Why};
use box_contract::ErrorCode;
use box_digest::Digest;
use box_find::{BoxReference, FindError};
use box_prune::{BoxContents, called};
use boxlaunch::boxes::{Boxes, State};
use cli_common::problem::is_cut_digest;
use host_fs::own::STORE_RO;
use safe_text::shown;

use super::error::{Failure, usage};
use super::paths;
use super::stored::{PROGRAM, print_result};
use super::terminal::{is_quiet, print};
use cli_common::store::StoreOption;
use cli_common::store::base_store;

/// Removes the least recently used boxes and files of the store, until it is small enough.
///
/// First removes boxes and cached build steps in the order of their last use, then everything that no box refers to. Keeps a
/// box if it runs, if `boxlaunch start` can start it again, if it was pulled or loaded, if `build --name` named it, if a NAME.box
/// points to it, or if it was built or used within the last hour.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct PruneArgs {
    #[command(flatten)]
    pub(crate) prune: cli_common::store::PruneArgs,
}

/// Removes boxes from the store.
///
/// Removes a name, and the box if it has no other name. Keeps blobs that other boxes share and the layers that builds use,
/// which `boxbuild gc` removes by age. Does not remove a box that runs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch rmi hello
  boxlaunch rmi sha256:...      a box without a name, or with one")]
pub(crate) struct RmiArgs {
    /// The boxes: names in the store, HOST/NAME:TAG, or sha256:...
    #[arg(value_name = "BOX", required = true)]
    boxes: Vec<PathBuf>,
    /// Also remove a box that runs, which then runs to its end, and a box that is named by its digest and has several names.
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    store: StoreOption,
    /// Print one JSON object, as `prune` does.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Runs `boxlaunch prune`.
pub(crate) fn prune(args: &PruneArgs) -> Result<u8, Failure> {
    print_result(args.prune.run(&PROGRAM)?)
}

/// Runs `boxlaunch rmi`.
pub(crate) fn rmi(args: &RmiArgs) -> Result<u8, Failure> {
    let root = args.store.root(&PROGRAM)?;
    let found = collect(&root, &Rules { dry_run: true, ..Rules::default() })?;
    let mut rules = Rules { is_forced: args.force, ..Rules::default() };
    for word in &args.boxes {
        ask(word.as_os_str(), &root, &found, &mut rules)?;
    }
    if !args.force {
        check_names(&rules, &found)?;
    }
    // A dry run comes first, so that a running box is refused before anything is removed. A box may start after the dry run, so
    // the report of the removal is checked, too. During the removal, no box can start.
    let would = collect(&root, &Rules { dry_run: true, ..rules.clone() })?;
    refuse_running(&rules, &would)?;
    let report = collect(&root, &rules)?;
    refuse_running(&rules, &report)?;
    if args.json || is_quiet() {
        return print_result(cli_common::store::result(&PROGRAM, &report, false, args.json));
    }
    print(&(box_prune::asked_lines(&report, &rules.names).join("\n") + "\n"))?;
    Ok(0)
}

/// Adds the box or the name that `word` names to `rules`. `found` is the report of a dry run, with all boxes of the store.
fn ask(word: &OsStr, root: &Path, found: &Report, rules: &mut Rules) -> Result<(), Failure> {
    let reference = BoxReference::parse(word)?;
    if reference.path().is_some() {
        let message = "a path does not name a box of the store";
        return Err(usage(message, "name a box as `boxlaunch images --all` does"));
    }
    let listed = "`boxlaunch images --all` lists the boxes of the store";
    let digest = reference.digest_in(root, PROGRAM.note).map_err(|error| match error {
        FindError::NoName { ref name, .. } if is_cut_digest(name) => error.into(),
        FindError::NotPulled(_) | FindError::NoName { .. } => absent(&error, root, listed),
        error => error.into(),
    })?;
    if let Some(remote) = reference.remote() {
        // The store may contain the pinned digest under another name only.
        let name = remote.unpinned().to_string();
        let mut of_box = found.kept.iter().filter(|it| it.digest == digest);
        if of_box.any(|it| !it.names.contains(&name)) {
            return Err(absent(&FindError::NotPulled(Box::new(remote.clone())), root, listed));
        }
    }
    let is_label = reference.name().is_some() || reference.remote().is_some();
    // A name can be removed even if its box is gone.
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

/// Returns the error that the store has no such box. If there is also a read-only store for all users, the help adds that `rmi`
/// does not remove its boxes.
fn absent(error: &FindError, root: &Path, listed: &str) -> Failure {
    let base = base_store(&PROGRAM).filter(|it| it != root);
    let help = base.map_or_else(
        || listed.to_owned(),
        |base| {
            format!(
                "{listed}; those of {} ({STORE_RO}) are for all users and stay",
                shown(&base.display().to_string())
            )
        },
    );
    Failure::new((ErrorCode::BoxNotFound, help), shown(&error.to_string()))
}

/// Refuses to remove a box with several names by its digest, unless the command line names all its names, too.
fn check_names(rules: &Rules, found: &Report) -> Result<(), Failure> {
    let is_asked = |name: &String| rules.names.keys().any(|it| it.text() == name);
    let mut several = found.kept.iter().filter(|it| rules.boxes.contains(&it.digest));
    let Some(it) = several.find(|it| it.names.len() > 1 && !it.names.iter().all(is_asked)) else {
        return Ok(());
    };
    let message = format!("{} has several names: {}", it.digest, called(it));
    Err(usage(&message, "name the ones to remove, or remove all of them with --force"))
}

/// Returns an error if `report` keeps a box of `rules` because it runs. The error has the names of the box's runs.
fn refuse_running(rules: &Rules, report: &Report) -> Result<(), Failure> {
    let is_asked = |reported: &&Reported| {
        rules.boxes.contains(&reported.digest)
            || rules.names.iter().any(|(label, digest)| {
                *digest == reported.digest && reported.names.iter().any(|name| name == label.text())
            })
    };
    let mut left = report.kept.iter().filter(|it| it.reason == Some(Why::Running));
    left.find(is_asked).map_or(Ok(()), |it| Err(running(it)))
}

/// Returns the error of a running box, with the names of its runs.
fn running(of: &Reported) -> Failure {
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
    Failure::new((ErrorCode::StillRunning, help), message)
}

/// Returns the size of each box of the store.
pub(super) fn sizes(root: &Path) -> Result<BTreeMap<Digest, box_cache::collect::BoxSize>, Failure> {
    let collector = Collector::open(root).map_err(FindError::from)?;
    let sizes = collector.map(|it| it.box_sizes(&BoxContents)).transpose();
    Ok(sizes.map_err(FindError::from)?.unwrap_or_default())
}

fn collect(root: &Path, rules: &Rules) -> Result<Report, Failure> {
    Ok(box_prune::collect(root, rules, PROGRAM.note).map_err(FindError::from)?)
}
