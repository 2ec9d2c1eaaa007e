//! `boxlaunch skills`: those of a box that runs, and loading further ones into it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use box_image::text::{shown, shown_lines};
use box_image::wire::Follow;
use box_image::{ErrorCode, SkillPlan, exit};
use box_skill::{Findings, Skill, SkillError};
use boxfile_spec::Sources;
use boxlaunch::LaunchError;
use boxlaunch::boxes::{Boxes, Record};
use boxlaunch::client::Client;
use boxlaunch::signals::StopSignals;
use boxlaunch::skills::{self as tasks, Listed};
use clap::Subcommand;
use serde_json::json;

use super::error::CommandError;
use super::paths;
use super::terminal::{aligned, json_line, notice, painted, print};

/// Lists the skills of a box that runs, and loads and unloads skills.
///
/// A skill is `baked` into the box, `mounted` from the host, or was `loaded` while the box ran.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch skills hello
  boxlaunch skills hello load ./skills/notes
  boxlaunch skills hello unload notes
  boxlaunch skills hello --json | jq -r '.skills[].name'")]
pub(crate) struct SkillsArgs {
    /// The box's name.
    #[arg(value_name = "NAME")]
    name: String,
    /// Print one JSON object with the skills: those of the box, or what was loaded or unloaded.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Copies skills of this host into the box, where all components see them at once.
    ///
    /// They are checked as those of a build are. One that was loaded before is replaced; those that are part of the box
    /// cannot be.
    Load {
        /// The skills' directories, each named as its skill is.
        #[arg(value_name = "DIR", required = true)]
        directories: Vec<PathBuf>,
    },
    /// Removes skills that were loaded.
    Unload {
        /// The skills' names.
        #[arg(value_name = "SKILL", required = true)]
        names: Vec<String>,
    },
}

pub(crate) fn skills(args: &SkillsArgs) -> Result<u8, CommandError> {
    let record = Boxes::new(&paths::state()?).find(&args.name)?;
    let signals = StopSignals::block()?;
    let done = match &args.action {
        None => {
            let all = tasks::list(&mut connect(&record, &signals)?, &record)?;
            print(&if args.json { as_json(&all)? } else { table(&all) })?;
            return Ok(exit::DONE);
        }
        Some(Action::Load { directories }) => load(&record, &signals, directories)?,
        Some(Action::Unload { names }) => unload(&record, &signals, names)?,
    };
    let names = || done.iter().map(|it| format!("{}\n", it.name)).collect();
    print(&if args.json { as_json(&done)? } else { names() })?;
    Ok(exit::DONE)
}

fn connect<'s>(record: &Record, signals: &'s StopSignals) -> Result<Client<'s>, LaunchError> {
    Client::connect(record, Follow::Nothing, signals)
}

/// Loads skills, once all of them are found to be some.
fn load(
    record: &Record,
    signals: &StopSignals,
    directories: &[PathBuf],
) -> Result<Vec<Listed>, CommandError> {
    let read = directories.iter().map(|directory| read(record, directory));
    let skills: Vec<_> = read.collect::<Result<_, _>>()?;
    let mut loaded = Vec::new();
    for (plan, skill) in skills {
        tasks::load(&mut connect(record, signals)?, &plan, skill)?;
        loaded.push(Listed::new(plan, true));
    }
    Ok(loaded)
}

/// Reads a skill of this host, and reports what is odd about it.
fn read(record: &Record, directory: &Path) -> Result<(SkillPlan, Skill), CommandError> {
    let name = name_of(directory).ok_or_else(|| SkillError::Name(directory.to_owned()));
    let name = name.map_err(LaunchError::from)?;
    tasks::check_free(record, &name)?;
    // There is no checkout around it: what it has, it has in itself.
    let mut skill = box_skill::read(directory, directory).map_err(LaunchError::from)?;
    let found = skill.check(&name, directory, None).map_err(LaunchError::from)?;
    let Findings { source, errors, warnings } = found;
    let sources = Sources::single(source);
    if !errors.is_empty() {
        return Err(CommandError::found(ErrorCode::SkillInvalid, &errors, &sources));
    }
    let shown = warnings.iter().map(|it| it.render(&sources));
    if shown.len() > 0 {
        let text = error_report::first(shown, "\n\n", "more warnings");
        notice(&format!("{}\n", painted(&shown_lines(&text))));
    }
    Ok((skill.plan(name), skill))
}

/// Returns the name of a skill's directory, also of one that is given as `.`.
fn name_of(directory: &Path) -> Option<String> {
    let own = |path: &Path| path.file_name().and_then(OsStr::to_str).map(str::to_owned);
    let name = own(directory).or_else(|| own(&directory.canonicalize().ok()?))?;
    boxfile_spec::is_name(&name).then_some(name)
}

fn unload(
    record: &Record,
    signals: &StopSignals,
    names: &[String],
) -> Result<Vec<Listed>, CommandError> {
    let all = tasks::list(&mut connect(record, signals)?, record)?;
    let mut unloaded = Vec::new();
    for name in names {
        tasks::check_free(record, name)?;
        let skill = all.iter().find(|it| it.name == *name);
        unloaded.push(skill.cloned().ok_or_else(|| LaunchError::NoSkill(name.clone()))?);
    }
    for name in names {
        tasks::unload(&mut connect(record, signals)?, name)?;
    }
    Ok(unloaded)
}

fn as_json(skills: &[Listed]) -> Result<String, CommandError> {
    json_line(&json!({ "skills": skills }))
}

/// Returns what a person reads of skills.
fn table(skills: &[Listed]) -> String {
    let head = ["NAME", "SOURCE", "VERSION", "DESCRIPTION"].map(str::to_owned);
    let text = |text: &Option<String>| text.as_ref().map_or_else(|| "-".to_owned(), |it| shown(it));
    let row = |it: &Listed| {
        [shown(&it.name), it.source.name().to_owned(), text(&it.version), text(&it.description)]
    };
    aligned(&std::iter::once(head).chain(skills.iter().map(row)).collect::<Vec<_>>())
}
