//! Checks the agent definitions, which are files of the checkout that the box puts into the agent's root.

use std::collections::HashSet;

use box_contract::plan::AGENTS_PATH;
use box_contract::{AgentDefinitionPlan, ComponentName};
use box_tree::Tree;
use checkout::agents::{AgentsError, Definition};
use checkout::files::{MemoryBudget, Source};
use diagnostics::{Span, Spanned};

use super::reported;
use crate::BuildError;
use crate::compose::Baked;
use crate::pipeline::request::Request;
use crate::report::Reports;

/// The directories whose definitions are checked, each with the span of its declaration.
pub(super) type Checked = HashSet<(String, Span)>;

/// Returns the definitions, sorted by name. `baked` are the files of all components.
pub(super) fn read(
    request: &Request<'_>,
    baked: &[Baked],
    warnings: &mut Reports,
) -> Result<Vec<AgentDefinitionPlan>, BuildError> {
    let Some(dir) = &request.boxfile.agents_dir else { return Ok(Vec::new()) };
    let is_it =
        |it: &&Baked| it.component == ComponentName::Agent && it.declared.to.value == AGENTS_PATH;
    match baked.iter().find(is_it) {
        Some(baked) => of_source(request, dir, &baked.source, warnings),
        None => Ok(Vec::new()),
    }
}

/// Checks the definitions, if they were not checked before. Returns no error if the directory cannot be read, which is an
/// error of the agent's files, too.
pub(super) fn check(
    request: &Request<'_>,
    checked: &mut Checked,
    warnings: &mut Reports,
) -> Option<BuildError> {
    let dir = request.boxfile.agents_dir.as_ref()?;
    if !checked.insert((dir.value.clone(), dir.span)) {
        return None;
    }
    let path = request.base.join(&dir.value);
    let source =
        checkout::files::any(&request.checkout, &path, &mut MemoryBudget::default()).ok()?;
    of_source(request, dir, &source, warnings).err()
}

fn of_source(
    request: &Request<'_>,
    dir: &Spanned<String>,
    source: &Source,
    warnings: &mut Reports,
) -> Result<Vec<AgentDefinitionPlan>, BuildError> {
    let path = request.base.join(&dir.value);
    let failed = |error: AgentsError| {
        let what = format!("the agent definitions in {} cannot be read", path.display());
        BuildError::unusable(what, dir.span, error)
    };
    if source.named != Tree::ROOT {
        return Err(failed(AgentsError::NotADirectory(path.clone())));
    }
    let all = checkout::agents::definitions(&source.files, &path).map_err(failed)?;
    let (mut plans, mut refused) = (Vec::new(), Vec::new());
    for Definition { plan, findings } in all {
        match reported(findings, warnings) {
            Ok(()) => plans.push(plan),
            Err(error) => refused.push(error),
        }
    }
    BuildError::all(refused)?;
    Ok(plans)
}
