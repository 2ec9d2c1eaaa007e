//! Reads all inputs of a build, and makes the lock's entries for them.

mod agents;
mod baked;
mod entries;
mod files;
mod image;
mod key;
mod program;
mod secrets;
mod skills;
#[cfg(test)]
mod tests;

use box_cache::Store;
use box_contract::{AgentDefinitionPlan, ComponentName, SkillMode};
use checkout::files::MemoryBudget;
use checkout::skill::Findings;
use diagnostics::{Diagnostic, MAX_KEPT, Sources};
use oci_image::Image;

use super::request::Request;
use crate::binary::Binary;
use crate::compose::{Baked, Env, check_devices};
use crate::report::Reports;
use crate::{BuildError, Report};
pub(super) use entries::lock;
use files::Tool;
pub(super) use program::check_interpreter;
pub(super) use skills::SkillInput;

/// A component and its image.
pub(super) type ComponentImage<'a> = (ComponentName, Image<'a>);

/// The inputs of a build. Of an image, only the documents are read, such as its manifest. Layers are opened when they
/// are needed.
pub(super) struct Inputs<'a> {
    pub(super) images: Vec<ComponentImage<'a>>,
    /// The agent's program, if it is not in an image.
    pub(super) binary: Option<Binary>,
    pub(super) skills: Vec<SkillInput>,
    /// The files of the checkout that the box puts into components: first the agent's, then the business application's.
    pub(super) baked: Vec<Baked>,
    /// The agent definitions, sorted by name. Their files are among `baked`.
    pub(super) agents: Vec<AgentDefinitionPlan>,
    /// The merged variables of each component's files. A later file overrides an earlier one.
    pub(super) env: Env,
    env_files: Vec<files::EnvFile>,
    /// Empty for a platform that cannot be built, like `kernel`.
    pub(super) init: Tool,
    pub(super) kernel: Tool,
    /// Warnings about the skills' definitions.
    pub(super) warnings: Vec<Report>,
}

impl<'a> Inputs<'a> {
    /// Reads all inputs. If the platform cannot be built, init and kernel are not read.
    pub(super) fn resolve(request: &Request<'a>, store: &'a Store) -> Result<Self, BuildError> {
        let boxfile = request.boxfile;
        let built = request.check_platform().is_ok();
        let images = image::read(request, store)?;
        let mut warnings = Reports::default();
        let mut together = MemoryBudget::default();
        let skills = skills::read(request, &mut warnings, &mut together)?;
        let baked = baked::read(request, &mut together)?;
        let agents = agents::read(request, &baked, &mut warnings)?;
        let (env_files, env) = files::env(request)?;
        let binary = boxfile.agent.binary.as_ref();
        let binary = binary.map(|it| program::read(it, request, store)).transpose()?;
        if let Some(binary) = &binary {
            program::check_root(&binary.program, boxfile)?;
        }
        let none = || Tool::new(Vec::new());
        let init = if built { files::init(request)? } else { none() };
        let kernel = if built { files::kernel(request)? } else { none() };
        let warnings = warnings.into_list();
        Ok(Self { images, binary, skills, baked, agents, env, env_files, init, kernel, warnings })
    }

    /// Returns the warnings about images that changed since the lock was written.
    pub(super) fn changed_images(&self, request: &Request<'_>, store: &Store) -> Vec<Diagnostic> {
        image::changed(request, store, &self.images)
    }

    /// Returns the warnings about layers with a wrong label.
    pub(super) fn mislabelled_layers(&self, request: &Request<'_>) -> Vec<Diagnostic> {
        image::mislabelled(request, &self.images)
    }

    /// Returns the skills that are a part of the rootfs, sorted by name.
    pub(super) fn baked_skills(&self) -> impl Iterator<Item = &SkillInput> {
        self.skills.iter().filter(|skill| skill.mode == SkillMode::Baked)
    }
}

/// The skills and agent definitions that [`check`] has checked for the box or for another of its profiles.
#[derive(Debug, Default)]
pub struct Checked {
    skills: skills::Checked,
    agents: agents::Checked,
}

/// Checks the inputs in the checkout: skills, files, agent definitions, environment files, and the agent's program, and
/// that a VM has enough devices for the box. Images, the kernel and
/// the network are not used. Returns the errors and the warnings. Stops after [`MAX_KEPT`] errors. A skill or a
/// directory of agent definitions in `before` is not reported again; the others are added to `before`.
pub fn check(request: &Request<'_>, before: &mut Checked) -> (Vec<BuildError>, Vec<Report>) {
    let mut warnings = Reports::default();
    let mut together = MemoryBudget::default();
    let skills = skills::check(request, &mut before.skills, &mut warnings, &mut together);
    let baked = baked::check(request, &mut together);
    let agents = agents::check(request, &mut before.agents, &mut warnings);
    let files = files::env(request).err();
    let binary = request.boxfile.agent.binary.as_ref();
    let program = binary.and_then(|binary| program::check(binary, request).err());
    let devices = check_devices(request.boxfile).err().map(BuildError::from);
    let errors =
        skills.into_iter().chain(baked).chain(agents).chain(files).chain(program).chain(devices);
    (errors.take(MAX_KEPT).collect(), warnings.into_list())
}

/// Returns the errors that were found in a text of the checkout, or adds its warnings.
fn reported(findings: Findings, warnings: &mut Reports) -> Result<(), BuildError> {
    let Findings { source, errors, warnings: further } = findings;
    let is_refused = !errors.is_empty();
    let found: Vec<Diagnostic> = errors.into_iter().chain(further).take(MAX_KEPT).collect();
    // Most texts have no findings, and then the text is not prepared for messages.
    if found.is_empty() {
        return Ok(());
    }
    let text = Sources::single(source);
    match is_refused.then(|| Report::new(&text, &found)).flatten() {
        Some(report) => Err(BuildError::Rejected(Box::new(report))),
        None => {
            warnings.add(&text, found);
            Ok(())
        }
    }
}
