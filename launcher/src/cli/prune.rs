//! `boxlaunch prune` and `rmi`: what goes from the store.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use box_cache::collect::{Collector, Report, Reported, Rules, Why};
use box_cache::{Label, Store};
use box_digest::Digest;
use box_find::{BoxReference, FindError};
use box_image::ErrorCode;
use box_image::text::{shown, with_causes};
use box_prune::{BoxContents, Cap, VARIABLE, called};
use boxlaunch::boxes::{Boxes, State};

use super::error::{CommandError, usage};
use super::found::StoreOption;
use super::paths;
use super::terminal::{is_quiet, json_line, notice, print};

/// Removes from the store what was used least recently, until it is small enough.
///
/// Boxes and the results of builds go by their last use, and then what nothing refers to any more. A box is kept that runs, that
/// a NAME.box that is still there needs, or that was made or used within the last hour.
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
    if let Some(over) = box_prune::over(&report, &root).filter(|_| !args.json) {
        notice(&format!("warning: {over}\n"));
    }
    Ok(0)
}

/// Runs `boxlaunch rmi`.
pub(crate) fn rmi(args: &RmiArgs) -> Result<u8, CommandError> {
    let root = paths::store_of_user(args.store.store.as_deref())?;
    let found = collect(&root, &Rules { dry_run: true, ..Rules::default() })?;
    let demanded = Demanded::read(&args.boxes, &root, &found)?;
    let rules = demanded.rules(&found);
    if !args.force {
        demanded.check(&found)?;
        let runs = found.kept.iter().filter(|it| it.why == Some(Why::Running));
        runs.filter(|it| rules.boxes.contains(&it.digest)).try_for_each(refuse_running)?;
    }
    show(&collect(&root, &rules)?, false, args.json)?;
    Ok(0)
}

/// What a command line of `rmi` names.
#[derive(Debug, Default)]
struct Demanded {
    names: BTreeSet<Label>,
    digests: BTreeSet<Digest>,
}

impl Demanded {
    fn read(words: &[PathBuf], root: &Path, found: &Report) -> Result<Self, CommandError> {
        let mut demanded = Self::default();
        for word in words {
            demanded.add(word.as_os_str(), root, found)?;
        }
        Ok(demanded)
    }

    fn add(&mut self, word: &OsStr, root: &Path, found: &Report) -> Result<(), CommandError> {
        let reference = BoxReference::parse(word)?;
        if reference.path().is_some() {
            let message = "a directory is none of the store's boxes";
            return Err(usage(message, "name a box as `boxlaunch images --all` does"));
        }
        let digest = reference.digest_in(root)?;
        if !found.kept.iter().any(|it| it.digest == digest) {
            return Err(FindError::NoBox(digest).into());
        }
        let name = reference.name().map(|it| Label::Name(it.to_owned()));
        let pulled = reference.remote().map(|it| Label::Pulled(it.unpinned().to_string()));
        match name.or(pulled) {
            Some(label) => drop(self.names.insert(label)),
            None => drop(self.digests.insert(digest)),
        }
        Ok(())
    }

    fn has(&self, text: &str) -> bool {
        self.names.iter().any(|it| it.text() == text)
    }

    /// Returns what goes: of the boxes that lose a name, those that have no other.
    fn rules(&self, found: &Report) -> Rules {
        let is_last =
            |it: &&Reported| !it.names.is_empty() && it.names.iter().all(|name| self.has(name));
        let last = found.kept.iter().filter(is_last).map(|it| it.digest);
        let boxes = self.digests.iter().copied().chain(last).collect();
        Rules { names: self.names.clone(), boxes, ..Rules::default() }
    }

    /// Refuses a box that has several names and is named by its digest.
    fn check(&self, found: &Report) -> Result<(), CommandError> {
        let several = found.kept.iter().filter(|it| self.digests.contains(&it.digest));
        let several = several.filter(|it| it.names.len() > 1);
        let Some(it) = several.into_iter().find(|it| !it.names.iter().all(|name| self.has(name)))
        else {
            return Ok(());
        };
        let message = format!("{} has several names: {}", it.digest, called(it));
        Err(usage(&message, "name those that are to go, or remove all of them with --force"))
    }
}

/// Says that a box runs, and under which names.
fn refuse_running(of: &Reported) -> Result<(), CommandError> {
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
    Err(CommandError::new((ErrorCode::StillRunning, help), message))
}

/// Returns how large the store may be, as the environment says.
pub(super) fn cap() -> Result<Cap, CommandError> {
    let cap = Cap::from_variable(env::var_os(VARIABLE));
    cap.map_err(|wrong| CommandError::new(ErrorCode::Usage, wrong))
}

/// Looks at the size of the store after a command that may have added to it. That something is wrong with it is no failure of the
/// command.
pub(super) fn after_adding(store: &Store, cap: Cap, is_silent: bool) {
    let (lines, warning) = match box_prune::after_adding(store.root(), store.added(), cap) {
        Ok(None) => return,
        Ok(Some(report)) => {
            (box_prune::lines(&report, false), box_prune::over(&report, store.root()))
        }
        Err(error) => {
            let why = shown(&with_causes(&error));
            let text = format!("nothing was removed from the store, which is too large: {why}");
            (Vec::new(), Some(text))
        }
    };
    let warning = warning.map(|text| format!("warning: {text}"));
    for line in lines.last().cloned().into_iter().chain(warning).filter(|_| !is_silent) {
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
