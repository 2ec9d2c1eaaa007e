//! The skills: those that are declared one by one, and those of a directory.

use std::fs;
use std::path::Path;

use box_image::SkillMode;
use boxfile_spec::{SkillsDir, Span, Spanned};
use host_fs::FileError;

use crate::pipeline::request::Request;
use crate::skill::{self, Skill, SkillError};
use crate::{BuildError, Report};

/// A skill, and where it is declared.
pub(in crate::pipeline) struct SkillInput {
    pub(in crate::pipeline) name: String,
    /// Its directory as the lock writes it, relative to the Boxfile's.
    pub(in crate::pipeline) source: String,
    pub(in crate::pipeline) mode: SkillMode,
    pub(in crate::pipeline) skill: Skill,
}

/// Reads all skills, and sorts them by name.
pub(super) fn read(
    request: &Request<'_>,
    warnings: &mut Vec<Report>,
) -> Result<Vec<SkillInput>, BuildError> {
    places(request)?.into_iter().map(|place| read_one(request, place, warnings)).collect()
}

/// Reads all skills, and returns everything that is wrong with them.
pub(super) fn check(request: &Request<'_>, warnings: &mut Vec<Report>) -> Vec<BuildError> {
    let places = match places(request) {
        Ok(places) => places,
        Err(error) => return vec![error],
    };
    places.into_iter().filter_map(|place| read_one(request, place, warnings).err()).collect()
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
    let directory = request.base.join(&skills.dir.value);
    let span = skills.dir.span;
    let what = format!("the skills in {} cannot be read", directory.display());
    let failed = |source: SkillError| BuildError::unusable(&what, span, source);
    if !directory.is_dir() {
        return Err(failed(SkillError::Unusable(directory, "is not a directory")));
    }
    skill::inside(&request.checkout, &directory).map_err(failed)?;
    let unread = |error| failed(FileError::of("read", &directory)(error).into());
    let mut places = Vec::new();
    for entry in fs::read_dir(&directory).map_err(unread)? {
        let path = entry.map_err(unread)?.path();
        // One that is not a regular file is refused when the skill is read.
        if path.join(skill::DEFINITION).symlink_metadata().is_ok() {
            let name = named(&path).ok_or_else(|| failed(SkillError::Name(path.clone())))?;
            let source = format!("{}/{name}", skills.dir.value.trim_end_matches('/'));
            places.push(Place { name, source, mode: skills.mode, span });
        }
    }
    if places.is_empty() {
        let reason = "has no directory with a SKILL.md in it";
        return Err(failed(SkillError::Unusable(directory, reason)));
    }
    Ok(places)
}

/// Returns the name of a skill's directory, if a skill may have it.
fn named(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    boxfile_spec::is_name(name).then(|| name.to_owned())
}

fn read_one(
    request: &Request<'_>,
    place: Place,
    warnings: &mut Vec<Report>,
) -> Result<SkillInput, BuildError> {
    let path = request.base.join(&place.source);
    let what = format!("the skill `{}` cannot be read", place.name);
    let failed = |source: SkillError| BuildError::unusable(&what, place.span, source);
    let mut skill = skill::read(&request.checkout, &path).map_err(failed)?;
    let tools = request.boxfile.agent.tools.as_deref();
    let warning =
        skill::check(&mut skill, &place.name, &path, tools).map_err(|error| match error {
            SkillError::Rejected(report) => BuildError::Rejected(report),
            error => failed(error),
        })?;
    warnings.extend(warning);
    let Place { name, source, mode, .. } = place;
    Ok(SkillInput { name, source, mode, skill })
}
