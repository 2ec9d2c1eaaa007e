//! The skills: those that are declared one by one, and those of a directory.

use box_checkout::Together;
use box_image::{SkillMode, SkillPlan};
use box_skill::{Findings, Skill, SkillError};
use boxfile_spec::{MOST_KEPT, SkillsDir, Sources, Span, Spanned};

use crate::pipeline::request::Request;
use crate::{BuildError, Report};

/// A skill, and where it is declared.
pub(in crate::pipeline) struct SkillInput {
    pub(in crate::pipeline) name: String,
    /// Its directory as the lock writes it, relative to the Boxfile's.
    pub(in crate::pipeline) source: String,
    pub(in crate::pipeline) mode: SkillMode,
    pub(in crate::pipeline) skill: Skill,
}

impl SkillInput {
    /// Returns what the plan says of it. Of a mounted one no text is recorded, as it can change.
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
    warnings: &mut Vec<Report>,
    together: &mut Together,
) -> Result<Vec<SkillInput>, BuildError> {
    let read = |place| read_one(request, place, warnings, together);
    places(request)?.into_iter().map(read).collect()
}

/// Reads all skills, and returns everything that is wrong with them, or the first of it.
pub(super) fn check(
    request: &Request<'_>,
    warnings: &mut Vec<Report>,
    together: &mut Together,
) -> Vec<BuildError> {
    let places = match places(request) {
        Ok(places) => places,
        Err(error) => return vec![error],
    };
    let read = |place| read_one(request, place, warnings, together).err();
    places.into_iter().filter_map(read).take(MOST_KEPT).collect()
}

/// Finds all skills, sorted by name.
fn places(request: &Request<'_>) -> Result<Vec<Place>, BuildError> {
    let single = |skill: &boxfile_spec::Skill| {
        let Spanned { value: source, span } = skill.path.clone();
        Place { name: skill.name.clone(), source, mode: skill.mode, span }
    };
    let mut places: Vec<Place> = request.boxfile.skills.iter().map(single).collect();
    if let Some(skills) = &request.boxfile.skills_dir {
        places.extend(in_directory(request, skills)?);
    }
    places.sort_by(|one, other| one.name.cmp(&other.name));
    if let Some([one, other]) = places.array_windows().find(|[one, other]| one.name == other.name) {
        let (name, first, second) = (one.name.clone(), one.span, other.span);
        let paths = [one.source.clone(), other.source.clone()];
        return Err(BuildError::SkillClash { name, first, second, paths });
    }
    Ok(places)
}

/// Where a skill is.
struct Place {
    name: String,
    source: String,
    mode: SkillMode,
    span: Span,
}

/// Finds the skills of a directory: every directory in it that has a `SKILL.md`.
fn in_directory(request: &Request<'_>, skills: &SkillsDir) -> Result<Vec<Place>, BuildError> {
    let SkillsDir { dir: Spanned { value: directory, span }, mode, .. } = skills;
    let path = request.base.join(directory);
    let names = box_skill::list(&request.checkout, &path).map_err(|error| {
        BuildError::unusable(
            format!("the skills in {} cannot be read", path.display()),
            *span,
            error,
        )
    })?;
    let place = |name: String| {
        let source = format!("{}/{name}", directory.trim_end_matches('/'));
        Place { name, source, mode: *mode, span: *span }
    };
    Ok(names.into_iter().map(place).collect())
}

fn read_one(
    request: &Request<'_>,
    place: Place,
    warnings: &mut Vec<Report>,
    together: &mut Together,
) -> Result<SkillInput, BuildError> {
    let Place { name, source, mode, span } = place;
    let path = request.base.join(&source);
    let failed = |error: SkillError| {
        BuildError::unusable(format!("the skill `{name}` cannot be read"), span, error)
    };
    let mut skill = box_skill::read(&request.checkout, &path, together).map_err(failed)?;
    let tools = request.boxfile.agent.tools.as_deref();
    let Findings { source: text, errors, warnings: further } =
        skill.check(&name, &path, tools).map_err(failed)?;
    let refused = !errors.is_empty();
    match Report::new(Sources::single(text), errors.into_iter().chain(further)) {
        Some(report) if refused => return Err(BuildError::Rejected(Box::new(report))),
        report => warnings.extend(report),
    }
    Ok(SkillInput { name, source, mode, skill })
}
