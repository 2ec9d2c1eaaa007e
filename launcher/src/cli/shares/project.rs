//! The directory of a project, and its repository, as the environment of the project sees them.

use std::path::Path;

use box_contract::{Access, Scope};
use boxlaunch::mounts::shares::HostShare;
use boxlaunch::project::{Protected, Repository};
use safe_text::shown;

use crate::cli::environment::project_at;
use crate::cli::error::{Failure, usage};
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
    let Some(Repository { outside, inside }) = project.repository()? else {
        return Ok(vec![share(path)?]);
    };
    let project = protecting(share(path)?, inside);
    match outside {
        None => Ok(vec![project]),
        Some((outside, of_it)) => Ok(vec![project, protecting(share(&outside)?, of_it)]),
    }
}

fn protecting(share: HostShare, Protected { kept, guarded }: Protected) -> HostShare {
    share.keeping(kept).guarding(guarded)
}

/// Checks that a box can write to the repository of its project through no second share, in which the repository is not protected.
pub(super) fn check_overlap(shares: &[HostShare]) -> Result<(), Failure> {
    let numbered = || shares.iter().enumerate().filter(|(_, it)| it.is_writable());
    for (number, share) in numbered() {
        for guarded in share.protected() {
            let reaches = |it: &HostShare| it.contains_path(&guarded) || it.is_inside(&guarded);
            if let Some((_, other)) = numbered().find(|(at, it)| *at != number && reaches(it)) {
                return Err(overlap(other.host(), &guarded));
            }
        }
    }
    Ok(())
}

fn overlap(other: &Path, guarded: &Path) -> Failure {
    let (other, guarded) = (other.display(), guarded.display());
    let message = format!(
        "the box could write to {guarded} through {other}, too, and make git start programs on this host"
    );
    let help = "share that directory without `rw`; or add --writable-git, which lets the box write to all of the repository";
    usage(&shown(&message), help)
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::super::{checked, resolved};
    use super::*;

    /// A project with a repository, below the home of a user.
    struct Scene(tempfile::TempDir);

    impl Scene {
        fn new() -> Self {
            let scene = Self(tempfile::tempdir().unwrap());
            for path in ["home/page/.git/logs", "home/page/src", "home/data"] {
                fs::create_dir_all(scene.at(path)).unwrap();
            }
            scene
        }

        fn at(&self, path: &str) -> std::path::PathBuf {
            self.0.path().canonicalize().unwrap().join(path)
        }

        /// Returns the refusal of an environment with these further shares. Empty if it would start.
        fn refusal(&self, shares: &[&str], more: &[&str]) -> String {
            let own = format!("--project={}", self.at("home/page").display());
            let words = ["x.box", "--name=page", "--detach", &own].map(str::to_owned).into_iter();
            let shares = shares.iter().map(|it| format!("-v{}", self.at(it).display()));
            let words = words.chain(shares).chain(more.iter().map(|&it| it.to_owned()));
            let args = RunArgs::of_words(words).unwrap();
            let plan = testkit::test_box::config().plan;
            let shared = checked(&args, &plan).and_then(|it| resolved(&args, &plan, &it));
            let text = shared.err().map(|it| it.text()).unwrap_or_default();
            text.replace(&self.at("home").display().to_string(), "HOME")
        }
    }

    #[test]
    fn a_repository_is_reached_through_one_share_alone() {
        let scene = Scene::new();
        let ok = ["home/page/src:/x:rw", "home/data:/y:rw", "home:/z", "home/page/.git:/g"];
        assert_eq!(scene.refusal(&ok, &[]), "");
        assert_eq!(scene.refusal(&["home:/x:rw"], &["--writable-git"]), "");
        symlink("home/page", scene.at("link")).unwrap();
        let refused = ["home:/x:rw", "home/page:/x:rw", "home/page/.git/logs:/x:rw", "link:/x:rw"];
        insta::assert_snapshot!(refused.map(|it| scene.refusal(&[it], &[])).concat(), @"
        error: the box could write to HOME/page/.git through HOME, too, and make git start programs on this host
          = help: share that directory without `rw`; or add --writable-git, which lets the box write to all of the repository
        error: the box could write to HOME/page/.git through HOME/page, too, and make git start programs on this host
          = help: share that directory without `rw`; or add --writable-git, which lets the box write to all of the repository
        error: the box could write to HOME/page/.git through HOME/page/.git/logs, too, and make git start programs on this host
          = help: share that directory without `rw`; or add --writable-git, which lets the box write to all of the repository
        error: the box could write to HOME/page/.git through HOME/page, too, and make git start programs on this host
          = help: share that directory without `rw`; or add --writable-git, which lets the box write to all of the repository
        ");
    }

    #[test]
    fn a_link_in_a_repository_is_refused_before_the_box_starts() {
        let scene = Scene::new();
        symlink("../../../.bashrc", scene.at("home/page/.git/logs/HEAD")).unwrap();
        insta::assert_snapshot!(scene.refusal(&[], &[]), @"
        error: HOME/page/.git/logs/HEAD is a symbolic link, through which git would write
          = help: a box may have made it: remove it; if it is yours, put a file in its place, or let the box write to all of the repository: `boxlaunch up --forget --writable-git` with the other options that it needs
        ");
        assert_eq!(scene.refusal(&[], &["--writable-git"]), "");
    }
}
