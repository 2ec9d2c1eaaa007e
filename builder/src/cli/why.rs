//! `boxbuild why`: shows which inputs changed between the last two different builds of a Boxfile.

use box_cache::{Store, is_store};
use box_contract::{BoxConfig, ComponentName, ErrorCode};
use box_digest::Digest;
use box_inspect::diff::{Change, Difference, Side, text};
use box_tree::listing::{Listing, NamedOrigin};
use boxbuild::history::{History, Made};
use host_fs::FileError;
use safe_text::shown;
use serde_json::{Value, json};

use super::diff::{Comparison, Counts, plans, without_differences};
use super::failure::Failure;
use super::options::{ProfileOption, ProjectOptions, StoreOption};
use super::{locking, search, terminal};
use crate::cli::stored::PROGRAM;

/// The maximum number of files that are listed, so that the result fits on a screen.
const MOST_FILES: usize = 12;

/// Shows which inputs changed between the last two different builds of a Boxfile, and what that did to the box.
///
/// If the last builds had the same inputs and made the same box, says so, and compares them with the build before. Compares
/// what the two builds read: images, skills, files, the program, init, kernel, the format and boxbuild itself. If both boxes
/// are still in the store, also compares their plans and files. Builds and changes nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild why                 why is the box another one than before?\n  \
    boxbuild why --profile ci    the same for the builds with a profile\n  \
    boxbuild why --json          print the changes as JSON")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) project: ProjectOptions,
    #[command(flatten)]
    profile: ProfileOption,
    #[command(flatten)]
    store: StoreOption,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let options = &args.project;
    let project = search::project(options.file.as_deref(), options.checkout.directory.as_deref())?;
    let boxfile = project.identity().map_err(FileError::of("find", &project.file))?;
    let file = project.file.display().to_string();
    let profile = args.profile.name.as_deref();
    let has_store = is_store(&args.store.root(&PROGRAM)?);
    let store = has_store.then(|| args.store.open(&PROGRAM)).transpose()?;
    let history = match &store {
        Some(store) => History::read(store, &boxfile, profile)?,
        None => None,
    };
    let (Some(store), Some(history)) = (store, history) else {
        return Err(unknown(&file, profile));
    };
    let found = Changes::of(history, &store)?;
    if options.json {
        found.print_json(json!({ "boxfile": file, "profile": profile }));
    } else {
        found.print();
    }
    Ok(())
}

/// Returns the failure if the store has no build of the Boxfile.
fn unknown(file: &str, profile: Option<&str>) -> Failure {
    let with = profile.map(|it| format!(" with the profile {it}")).unwrap_or_default();
    let message = format!("the store has no record of a build of {file}{with}");
    let help = "`boxbuild build` records each build; `boxbuild gc` removes the record if it was not used for long";
    Failure::new((ErrorCode::BoxNotFound, help), shown(&message))
}

/// The changes between two builds.
struct Changes {
    last: Made,
    before: Option<Made>,
    /// The number of builds that repeated the last one.
    repeats: u64,
    /// The changed inputs, as text and as JSON.
    inputs: (Vec<String>, Vec<Value>),
    /// The changes of the plan and the files. `None` if there is no earlier box, or if one of `missing` lacks its documents.
    boxes: Option<Comparison>,
    /// The boxes that are not in the store any more, so that `boxbuild diff` cannot open them.
    missing: Vec<Digest>,
}

impl Changes {
    fn of(history: History, store: &Store) -> Result<Self, Failure> {
        let History { last, before, repeats } = history;
        let Some(old) = &before else {
            let inputs = (Vec::new(), Vec::new());
            return Ok(Self { last, before, repeats, inputs, boxes: None, missing: Vec::new() });
        };
        let inputs = match (old.pins(), last.pins()) {
            (Some(old), Some(new)) => {
                (locking::describe(Some(&old), &new), locking::changes_json(&old, &new))
            }
            _ => (Vec::new(), Vec::new()),
        };
        let both = [old, &last].map(|it| (it.digest, documents(store, it)));
        let lacks =
            |(digest, found): &(Digest, Option<_>)| found.is_none() || !store.has_box(digest);
        let mut missing: Vec<_> = both.iter().filter(|it| lacks(it)).map(|it| it.0).collect();
        missing.dedup();
        let boxes = match both {
            [(_, Some((a, a_side))), (_, Some((b, b_side)))] => {
                Some(Comparison::of_sides((a_side, b_side), plans(&a.plan, &b.plan)?)?)
            }
            _ => None,
        };
        Ok(Self { last, before, repeats, inputs, boxes, missing })
    }

    fn print(&self) {
        let new = &self.last;
        let Some(old) = &self.before else { return terminal::result(&self.without_change()) };
        let mut lines = heads(old, new);
        if self.repeats > 0 {
            let since = format!("{}: the last change was before them", self.without_change());
            lines.insert(0, since);
        }
        lines.extend(self.inputs.0.iter().map(|line| match line.strip_prefix("  ") {
            Some(layer) => format!("           {layer}"),
            None => format!("input    {line}"),
        }));
        match &self.boxes {
            Some(boxes) => lines.extend(of_boxes(boxes)),
            None => lines.extend(self.missing.iter().map(|digest| {
                format!("box      {digest} is not in the store any more: its plan and files are not compared")
            })),
        }
        terminal::pieces(lines.into_iter().map(|line| line + "\n"));
        if self.missing.is_empty() && old.digest != new.digest {
            let (old, new) = (old.digest, new.digest);
            terminal::note(&format!("all differences: `boxbuild diff {old} {new}`"));
        }
    }

    /// Says that the builds of the record have the same inputs and made the same box.
    fn without_change(&self) -> String {
        let digest = self.last.digest;
        match self.repeats {
            0 => format!("one build, of {digest}: nothing to compare"),
            repeats => {
                let builds = repeats.saturating_add(1);
                format!(
                    "nothing changed: the last {builds} builds have the same inputs, and made {digest}"
                )
            }
        }
    }

    fn print_json(&self, mut head: Value) {
        let build = |made: &Made| json!({ "box": made.digest, "epoch": made.epoch, "boxbuild": made.builder });
        head["old"] = json!(self.before.as_ref().map(build));
        head["new"] = build(&self.last);
        head["changed"] = json!(self.before.is_some() && self.repeats == 0);
        head["repeats"] = json!(self.repeats);
        head["inputs"] = json!(self.inputs.1);
        head["compared"] = json!(self.boxes.is_some());
        match &self.boxes {
            Some(boxes) => boxes.print_json(head),
            None => terminal::json(&without_differences(head).to_string()),
        }
    }
}

/// Returns the lines about the boxes themselves, and about what has no entry in a lock.
fn heads(old: &Made, new: &Made) -> Vec<String> {
    let mut lines = vec![match old.digest == new.digest {
        true => format!("box      {}, the same as before", new.digest),
        false => format!("box      {} → {}", old.digest, new.digest),
    }];
    if old.epoch != new.epoch {
        lines.push(format!("format   epoch {} → {}", old.epoch, new.epoch));
    }
    if old.builder != new.builder {
        lines.push(format!("boxbuild {} → {}", old.builder, new.builder));
    }
    lines
}

/// Returns the lines about the plan and the files: the first files that are in no image, and how many are in images.
fn of_boxes(boxes: &Comparison) -> Vec<String> {
    let mut lines: Vec<_> = text::plan_lines(boxes.plan()).collect();
    let own = || boxes.entries().filter(|it| image(it).is_none());
    let total = own().count();
    // Folded lines stand for several entries, so the number of lines is limited, too.
    lines.extend(text::lines(own().take(MOST_FILES), &[]));
    if total > MOST_FILES {
        lines.push(format!("         … and {} more", total - MOST_FILES));
    }
    for component in ComponentName::ALL {
        let counts = Counts::of(boxes.entries().filter(|it| image(it) == Some(component)));
        if counts.all() > 0 {
            lines.push(format!("files    of the {}'s image: {}", component.name(), counts.text()));
        }
    }
    lines
}

/// Returns the component of the image from which the entry at a path is. `None` if it is from no image.
fn image(difference: &Difference<'_>) -> Option<ComponentName> {
    let (Change::Added(entry) | Change::Removed(entry) | Change::Changed(_, _, entry)) =
        &difference.change;
    match entry.origin {
        Some(NamedOrigin::Image { component, .. }) => component,
        _ => None,
    }
}

/// Reads the config and the listing of a box. `None` if the store lacks one of them, or if it has another format.
fn documents(store: &Store, made: &Made) -> Option<(BoxConfig, Side)> {
    let config: BoxConfig = serde_json::from_slice(&store.read(&made.config).ok()?).ok()?;
    let listing = Listing::decode(&store.read(&made.listing?).ok()?).ok()?;
    Some((config, Side::of_listing(made.digest, listing)))
}
