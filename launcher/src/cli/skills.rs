//! `boxlaunch skills`: lists the skills of a running box, and loads and unloads skills.

use std::fs;
use std::path::{Path, PathBuf};

use box_contract::wire::Follow;
use box_contract::{ErrorCode, SkillPlan, exit};
use boxlaunch::boxes::{Boxes, Record};
use boxlaunch::client::skills::{self as tasks, Listed};
use boxlaunch::client::{Client, ClientError};
use checkout::files::MemoryBudget;
use checkout::skill::{Findings, Skill, SkillError, is_skill};
use clap::Subcommand;
use diagnostics::Sources;
use safe_text::{shown, shown_lines};
use serde_json::json;
use vmm::signals::StopSignals;

use super::environment::record_at;
use super::error::{self, Failure};
use super::launch_error::LaunchError;
use super::paths;
use super::terminal::{aligned, json_line, notice, painted, print};

/// The maximum number of skills that an error names.
const MAX_NAMED: usize = 3;

/// Lists the skills of a running box, and loads and unloads skills.
///
/// A skill is `baked` into the box, `mounted` from the host, or was `loaded` while the box runs.
#[derive(Debug, clap::Args)]
#[command(override_usage = "boxlaunch skills [OPTIONS] <NAME> [load <DIR>...|unload <SKILL>...]")]
#[command(after_help = "Examples:
  boxlaunch skills hello
  boxlaunch skills hello load ./skills/notes
  boxlaunch skills hello unload notes
  boxlaunch skills hello --json | jq -r '.skills[].name'")]
pub(crate) struct SkillsArgs {
    /// The box's name.
    #[arg(value_name = "NAME")]
    name: String,
    /// Print one JSON object with the skills of the box, or with the ones that were loaded or unloaded.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Lists the skills of the box, as without a command.
    #[command(alias = "list", hide = true)]
    Ls,
    /// Copies skills of this host into the box, where all components see them at once.
    ///
    /// Checks each skill as a build does. Replaces a skill that was loaded before, but not one that is baked into the box or
    /// mounted.
    Load {
        /// The directories of the skills. Each directory has the name of its skill.
        #[arg(value_name = "DIR", required = true)]
        directories: Vec<PathBuf>,
    },
    /// Removes skills that were loaded into the running box.
    Unload {
        /// The names of the skills.
        #[arg(value_name = "SKILL", required = true)]
        names: Vec<String>,
    },
}

pub(crate) fn skills(args: &SkillsArgs) -> Result<u8, Failure> {
    let record = record_at(&Boxes::new(&paths::state()?), Some(&args.name))?;
    let signals = StopSignals::block()?;
    let mut skills = Vec::new();
    // Prints each skill as soon as it is loaded or unloaded, because the error of a later skill does not mention it. With
    // `--json`, prints one object: the skills or the error.
    let mut done = |skill: Listed| {
        if !args.json {
            print(&format!("{}\n", skill.name))?;
        }
        skills.push(skill);
        Ok(())
    };
    match &args.action {
        None | Some(Action::Ls) => {
            skills = tasks::list(&mut connect(&record, &signals)?, &record)?;
            if !args.json {
                print(&table(&skills))?;
            }
        }
        Some(Action::Load { directories }) => load(&record, &signals, directories, &mut done)?,
        Some(Action::Unload { names }) => unload(&record, &signals, names, &mut done)?,
    }
    if args.json {
        print(&json_line(&json!({ "skills": skills }))?)?;
    }
    Ok(exit::DONE)
}

/// Reports a skill that was loaded or unloaded.
type Done<'a> = &'a mut dyn FnMut(Listed) -> Result<(), Failure>;

fn connect<'s>(record: &Record, signals: &'s StopSignals) -> Result<Client<'s>, ClientError> {
    Client::connect(record, Follow::Nothing, signals)
}

/// Reads and checks all skills, and then loads them.
fn load(
    record: &Record,
    signals: &StopSignals,
    directories: &[PathBuf],
    done: Done<'_>,
) -> Result<(), Failure> {
    let mut together = MemoryBudget::default();
    let read = directories.iter().map(|directory| read(record, directory, &mut together));
    let skills: Vec<_> = read.collect::<Result<_, _>>()?;
    for (plan, skill) in skills {
        tasks::load(&mut connect(record, signals)?, &plan, skill)?;
        done(Listed::new(plan, true))?;
    }
    Ok(())
}

/// Reads a skill of this host, and prints its warnings.
fn read(
    record: &Record,
    directory: &Path,
    together: &mut MemoryBudget,
) -> Result<(SkillPlan, Skill), Failure> {
    if let Some(error) = near_a_skill(directory) {
        return Err(error);
    }
    let name =
        checkout::skill::name_of(directory).ok_or_else(|| SkillError::Name(directory.to_owned()));
    let name = name.map_err(LaunchError::from)?;
    tasks::check_free(record, &name)?;
    let Checked { plan, skill, warnings } = checked(&name, directory, together)?;
    warnings.iter().for_each(|it| notice(it));
    Ok((plan, skill))
}

/// A skill of this host without errors.
pub(super) struct Checked {
    pub(super) plan: SkillPlan,
    pub(super) skill: Skill,
    /// The warnings as they are printed.
    pub(super) warnings: Option<String>,
}

/// Reads and checks the skill `name` in a directory of this host, as a build does.
pub(super) fn checked(
    name: &str,
    directory: &Path,
    together: &mut MemoryBudget,
) -> Result<Checked, Failure> {
    // The skill's directory takes the place of the checkout, so all its files must be in that directory.
    let skill = checkout::skill::read(&directory.into(), directory, together);
    let mut skill = skill.map_err(LaunchError::from)?;
    let found = skill.check(name, directory, None).map_err(LaunchError::from)?;
    let Findings { source, errors, warnings } = found;
    let sources = Sources::single(source);
    if !errors.is_empty() {
        return Err(error::found(ErrorCode::SkillInvalid, &errors, &sources));
    }
    let shown = warnings.iter().map(|it| it.render(&sources));
    let warnings = (shown.len() > 0).then(|| {
        let text = cli_common::problem::first(shown, "\n\n", "more warnings");
        format!("{}\n", painted(&shown_lines(&text)))
    });
    Ok(Checked { plan: skill.plan(name.to_owned()), skill, warnings })
}

/// Returns an error that names the right path, if `path` is a file in a skill's directory, or a directory that contains skills.
fn near_a_skill(path: &Path) -> Option<Failure> {
    let (name, found) = (path.display(), skills_in(path));
    let parent = path.parent().map(|it| if it == "" { Path::new(".") } else { it });
    let (message, help) = match parent {
        Some(directory) if path.is_file() && is_skill(directory) => {
            let help = format!("name its directory: {}", directory.display());
            (format!("{name} is not a directory"), help)
        }
        _ if is_skill(path) || found.is_empty() => return None,
        _ => (
            format!("{name} is not a skill"),
            format!("name the skills in it, such as {}", found.join(", ")),
        ),
    };
    Some(Failure::new((ErrorCode::SkillInvalid, shown(&help)), shown(&message)))
}

/// Returns the paths of the skills in a directory, sorted, at most [`MAX_NAMED`].
fn skills_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries.map(|it| it.path()).filter(|it| is_skill(it)).collect();
    found.sort();
    found.truncate(MAX_NAMED);
    found.iter().map(|it| it.display().to_string()).collect()
}

/// Checks that all skills are loaded, and then unloads them.
fn unload(
    record: &Record,
    signals: &StopSignals,
    names: &[String],
    done: Done<'_>,
) -> Result<(), Failure> {
    let all = tasks::list(&mut connect(record, signals)?, record)?;
    let mut skills = Vec::new();
    for name in names {
        tasks::check_free(record, name)?;
        let skill = all.iter().find(|it| it.name == *name);
        skills.push(skill.cloned().ok_or_else(|| LaunchError::NoSkill(name.clone()))?);
    }
    for skill in skills {
        tasks::unload(&mut connect(record, signals)?, &skill.name)?;
        done(skill)?;
    }
    Ok(())
}

/// Returns the table of skills.
fn table(skills: &[Listed]) -> String {
    let head = ["NAME", "SOURCE", "VERSION", "DESCRIPTION"].map(str::to_owned);
    let text = |text: &Option<String>| text.as_ref().map_or_else(|| "-".to_owned(), |it| shown(it));
    let row = |it: &Listed| {
        [shown(&it.name), it.source.name().to_owned(), text(&it.version), text(&it.description)]
    };
    aligned(&std::iter::once(head).chain(skills.iter().map(row)).collect::<Vec<_>>())
}
