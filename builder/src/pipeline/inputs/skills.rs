//! Reads the skills that the Boxfile declares one by one, and the skills in the directory that it declares.

use std::collections::HashMap;
use std::path::Path;

use box_contract::rules::MAX_SKILLS;
use box_contract::{SkillMode, SkillPlan};
use boxfile_spec::SkillsDir;
use checkout::files::MemoryBudget;
use checkout::skill::{Skill, SkillError};
use diagnostics::{MAX_KEPT, Span, Spanned};

use super::reported;
use crate::BuildError;
use crate::pipeline::request::Request;
use crate::report::Reports;

/// A skill and its declaration.
pub(in crate::pipeline) struct SkillInput {
    pub(in crate::pipeline) name: String,
    /// The skill's directory, relative to the Boxfile's directory. The lock has this path.
    pub(in crate::pipeline) source: String,
    pub(in crate::pipeline) mode: SkillMode,
    pub(in crate::pipeline) skill: Skill,
}

impl SkillInput {
    /// Returns the skill's plan. The plan of a mounted skill has no text, because the text can change after the build.
    pub(in crate::pipeline) fn plan(&self) -> SkillPlan {
        let (name, mode) = (self.name.clone(), self.mode);
        match mode {
            SkillMode::Baked => self.skill.plan(name),
            SkillMode::Mounted => SkillPlan { name, mode, ..SkillPlan::default() },
        }
    }
}

/// Reads all skills, and sorts them by name.
pub(super) fn read(
    request: &Request<'_>,
    warnings: &mut Reports,
    together: &mut MemoryBudget,
) -> Result<Vec<SkillInput>, BuildError> {
    let read = |place| read_one(request, place, warnings, together);
    places(request)?.into_iter().map(read).collect()
}

/// The checked skills, and the memory that each uses in bytes. Most skills are in all profiles of a box, and are read
/// only once.
pub(super) type Checked = HashMap<CheckedSkill, u64>;

/// The parts that determine the findings in a skill: its declaration, and the tools that it may require.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct CheckedSkill {
    name: String,
    source: String,
    /// The span of messages about the skill's directory.
    span: Span,
    tools: Option<Vec<String>>,
}

/// Reads all skills that were not checked before, and returns the errors, up to a limit.
pub(super) fn check(
    request: &Request<'_>,
    checked: &mut Checked,
    warnings: &mut Reports,
    together: &mut MemoryBudget,
) -> Vec<BuildError> {
    let places = match places(request) {
        Ok(places) => places,
        Err(error) => return vec![error],
    };
    let (mut errors, mut count) = (Vec::new(), 0);
    for place in places {
        let Err(error) = check_one(request, place, checked, warnings, together) else { continue };
        count += error.count();
        errors.push(error);
        if count >= MAX_KEPT {
            break;
        }
    }
    errors
}

/// Reads a skill. If it was checked before, only adds its memory to `together`.
fn check_one(
    request: &Request<'_>,
    place: SkillSource,
    checked: &mut Checked,
    warnings: &mut Reports,
    together: &mut MemoryBudget,
) -> Result<(), BuildError> {
    let (name, source) = (place.name.clone(), place.source.clone());
    let tools = request.boxfile.agent.tools.clone();
    let key = CheckedSkill { name, source, span: place.span, tools };
    if let Some(bytes) = checked.get(&key) {
        let path = request.base.join(&place.source);
        return together.again(&path, *bytes).map_err(|error| unusable(&place, error.into()));
    }
    let before = together.left();
    let read = read_one(request, place, warnings, together).map(drop);
    checked.insert(key, before - together.left());
    read
}

/// Returns the declarations of all skills, sorted by name.
fn places(request: &Request<'_>) -> Result<Vec<SkillSource>, BuildError> {
    let single = |skill: &boxfile_spec::Skill| {
        let Spanned { value: source, span } = skill.path.clone();
        SkillSource { name: skill.name.clone(), source, mode: skill.mode, span }
    };
    let mut places: Vec<SkillSource> = request.boxfile.skills.iter().map(single).collect();
    if let Some(skills) = &request.boxfile.skills_dir {
        places.extend(in_directory(request, skills)?);
        if places.len() > MAX_SKILLS {
            let directory = request.base.join(&skills.dir.value);
            return Err(unreadable(skills, &directory, SkillError::TooMany(directory.clone())));
        }
    }
    places.sort_by(|one, other| one.name.cmp(&other.name));
    if let Some([one, other]) = places.array_windows().find(|[one, other]| one.name == other.name) {
        let (name, first, second) = (one.name.clone(), one.span, other.span);
        let paths = [one.source.clone(), other.source.clone()];
        return Err(BuildError::SkillClash { name, first, second, paths });
    }
    Ok(places)
}

/// The declaration of a skill.
struct SkillSource {
    name: String,
    source: String,
    mode: SkillMode,
    span: Span,
}

/// Returns the skills of a directory: each subdirectory with a `SKILL.md`.
fn in_directory(request: &Request<'_>, skills: &SkillsDir) -> Result<Vec<SkillSource>, BuildError> {
    let SkillsDir { dir: Spanned { value: directory, span }, mode, .. } = skills;
    let path = request.base.join(directory);
    let names = checkout::skill::list(&request.checkout, &path);
    let names = names.map_err(|error| unreadable(skills, &path, error))?;
    let place = |name: String| {
        let source = format!("{}/{name}", directory.trim_end_matches('/'));
        SkillSource { name, source, mode: *mode, span: *span }
    };
    Ok(names.into_iter().map(place).collect())
}

fn unreadable(skills: &SkillsDir, directory: &Path, error: SkillError) -> BuildError {
    let what = format!("the skills in {} cannot be read", directory.display());
    BuildError::unusable(what, skills.dir.span, error)
}

fn unusable(skill: &SkillSource, error: SkillError) -> BuildError {
    BuildError::unusable(format!("the skill `{}` cannot be read", skill.name), skill.span, error)
}

fn read_one(
    request: &Request<'_>,
    place: SkillSource,
    warnings: &mut Reports,
    together: &mut MemoryBudget,
) -> Result<SkillInput, BuildError> {
    let path = request.base.join(&place.source);
    let failed = |error: SkillError| unusable(&place, error);
    let mut skill = checkout::skill::read(&request.checkout, &path, together).map_err(failed)?;
    let tools = request.boxfile.agent.tools.as_deref();
    let findings = skill.check(&place.name, &path, tools).map_err(failed)?;
    reported(findings, warnings)?;
    let SkillSource { name, source, mode, .. } = place;
    Ok(SkillInput { name, source, mode, skill })
}
