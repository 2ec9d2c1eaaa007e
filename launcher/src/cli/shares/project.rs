//! The directory of a project, and its repository, as the environment of the project sees them.

use std::path::Path;

use box_contract::{Access, Scope};
use boxlaunch::mounts::shares::HostShare;
use boxlaunch::project::Repository;
use safe_text::shown;

use crate::cli::environment::project_at;
use crate::cli::error::Failure;
use crate::cli::run::RunArgs;

/// Opens the directory of the project and, if its repository is elsewhere, that of the repository. The box sees both at their paths
/// on this host, and may write to them, but not to what makes git start programs.
pub(super) fn shares(args: &RunArgs) -> Result<Vec<HostShare>, Failure> {
    let Some(project) = &args.project else { return Ok(Vec::new()) };
    let project = project_at(project)?;
    let path = project.path();
    if args.writable_git {
        let outside = Repository::outside_of(path);
        return [Some(path.to_owned()), outside].iter().flatten().map(|it| share(it)).collect();
    }
    let Some(Repository { outside, kept }) = project.repository()? else {
        return Ok(vec![share(path)?]);
    };
    let project = share(path)?.keeping(kept);
    match outside {
        None => Ok(vec![project]),
        Some((outside, kept)) => Ok(vec![project, share(&outside)?.keeping(kept)]),
    }
}

fn share(path: &Path) -> Result<HostShare, Failure> {
    Ok(HostShare::new(path, &path.to_string_lossy(), Access::ReadWrite, Scope::Both)?)
}

/// Returns the notice that a project without a repository has nothing that is kept from the box.
pub(in crate::cli) fn notice(args: &RunArgs) -> Option<String> {
    let project = args.project.as_ref().filter(|it| !it.join(".git").exists())?;
    let text = format!(
        "boxlaunch: {} has no git repository; git on this host would start the hooks of one that the box makes there",
        project.display()
    );
    Some(shown(&text) + "\n")
}
