//! `boxlaunch run --skills`: the skills of a directory of this host, mounted when the box starts.
//!
//! A skill that the box declares with `mode="mount"` is mounted as if `--skill` named it. Each other skill is added to the box.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use box_contract::rules::MAX_MOUNTED_SKILLS;
use box_contract::{RunPlan, SkillMode};
use boxlaunch::mounts::shares::HostShare;
use checkout::files::MemoryBudget;
use checkout::skill::{SkillError, is_skill};
use host_fs::FileError;
use safe_text::shell_word;

use super::{not_expanded, skill};
use crate::cli::error::{Failure, usage};
use crate::cli::launch_error::LaunchError;
use crate::cli::run::RunArgs;
use crate::cli::skills::checked;

/// The skills of `--skills`, without those that `--skill` gives: the paths of their directories by their names.
pub(in crate::cli) type FoundSkills = BTreeMap<String, PathBuf>;

/// Reads the directories of `--skills`. Opens and reads no skill.
///
/// # Errors
/// A directory without a skill, a name that two of these skills have or that a skill of the box has, or too many skills.
pub(super) fn found(args: &RunArgs, plan: &RunPlan) -> Result<FoundSkills, Failure> {
    let mut found = FoundSkills::new();
    let is_given = |name: &String| args.given.skills.iter().any(|(it, _)| it == name);
    for directory in &args.given.skill_dirs {
        for name in names(directory)?.into_iter().filter(|it| !is_given(it)) {
            let path = directory.join(&name);
            if let Some(other) = found.get(&name) {
                let (other, path) = (other.display(), path.display());
                let message = format!("the skill {name} is given twice: {other} and {path}");
                return Err(usage(&message, "leave one of the directories out"));
            }
            found.insert(name, path);
        }
    }
    if found.len() + args.given.skills.len() > MAX_MOUNTED_SKILLS {
        return Err(too_many());
    }
    check_baked(&found, plan)?;
    Ok(found)
}

/// Returns the names of the skills in a directory of `--skills`.
fn names(directory: &Path) -> Result<Vec<String>, Failure> {
    if is_skill(directory) {
        let message = format!("{} is a skill, not a directory of skills", directory.display());
        return Err(usage(&message, "name the directory that it is in"));
    }
    if let Some(help) = not_expanded(directory).filter(|_| !directory.is_dir()) {
        return Err(usage(&format!("{} is not a directory", directory.display()), &help));
    }
    match checkout::skill::list(&directory.into(), directory) {
        Err(SkillError::TooMany(_)) => Err(too_many()),
        names => Ok(names.map_err(LaunchError::from)?),
    }
}

fn too_many() -> Failure {
    let message =
        format!("`--skill` and `--skills` may mount at most {MAX_MOUNTED_SKILLS} skills together");
    usage(&message, "leave some out, or build them into the box: `skills dir=…` in the Boxfile")
}

/// Checks that no skill of `--skills` has the name of a skill that is baked into the box.
fn check_baked(found: &FoundSkills, plan: &RunPlan) -> Result<(), Failure> {
    let mut baked = plan.skills.iter().filter(|it| it.mode == SkillMode::Baked);
    let Some((name, path)) = baked.find_map(|it| Some((&it.name, found.get(&it.name)?))) else {
        return Ok(());
    };
    let message =
        format!("the skill {name} is baked into the box, and {} has its name", path.display());
    Err(usage(&message, "move that skill to another directory, or build the box without its own"))
}

/// The opened skills of `--skills`.
#[derive(Default)]
pub(super) struct OpenedSkills {
    pub(super) directories: Vec<HostShare>,
    /// The warnings about them, as they are printed.
    pub(super) warnings: Vec<String>,
}

/// Opens and checks the skills of `--skills`.
pub(super) fn opened(found: &FoundSkills, plan: &RunPlan) -> Result<OpenedSkills, Failure> {
    let mut opened = OpenedSkills::default();
    for (name, path) in found {
        // Before the skill is read, because an error in it quotes its lines, and a link may lead to any file.
        let share = open(name, path)?;
        // Only one skill is in memory at a time.
        let skill = checked(name, path, &mut MemoryBudget::default())?;
        opened.warnings.extend(skill.warnings);
        let is_declared = plan.skills.iter().any(|it| it.name == *name);
        opened.directories.push(if is_declared { share } else { share.as_added_skill() });
    }
    Ok(opened)
}

/// Opens the skill in the directory `path`, which may be a link within the directory that contains it.
fn open(name: &str, path: &Path) -> Result<HostShare, Failure> {
    let share = skill(name, path)?;
    let Some(directory) = path.parent().filter(|it| !share.is_inside(it)) else { return Ok(share) };
    let real = share.host();
    let around = shell_word(real.parent().unwrap_or(real));
    let (real, directory) = (real.display(), directory.display());
    let message = format!("{} leads to {real}, which is not in {directory}", path.display());
    let help = format!(
        "a box may have put that link there; if you mean that directory, leave the link out and add `--skills {around}`, or \
         copy it"
    );
    Err(usage(&message, &help))
}

/// Returns the paths of the directories of `--skills` without links, in the order of the command line.
pub(super) fn real_directories(args: &RunArgs) -> Result<Vec<PathBuf>, Failure> {
    let real = |it: &PathBuf| it.canonicalize().map_err(FileError::of("read", it));
    let all: Result<Vec<_>, FileError> = args.given.skill_dirs.iter().map(real).collect();
    Ok(all.map_err(SkillError::from)?)
}

/// Checks that the box can write to no skill of `--skills`, to no directory of `--skills`, and to nothing that is in one. It could
/// change or add a skill, or put a link there, and its next start would mount that.
pub(super) fn check_writable(
    args: &RunArgs,
    found: &FoundSkills,
    shares: &[HostShare],
) -> Result<(), Failure> {
    let inside = |share: &HostShare| {
        let mut paths = args.given.skill_dirs.iter().chain(found.values());
        paths.find(|it| share.contains_path(it) || share.is_inside(it)).cloned()
    };
    let mut written = shares.iter().filter(|it| it.is_writable());
    let Some((share, path)) = written.find_map(|it| Some((it.host(), inside(it)?))) else {
        return Ok(());
    };
    let (share, path) = (share.display(), path.display());
    let message = format!(
        "a box that may write to {share} must not get skills from {path}: it could change them for its next start"
    );
    Err(usage(
        &message,
        "move the skills to where the box may not write, build them into the box (`skills dir=…`), or copy them into the running \
         box: `boxlaunch skills NAME load DIR`",
    ))
}
