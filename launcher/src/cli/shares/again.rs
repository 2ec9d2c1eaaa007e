//! A box that is started again sees what it saw before.
//!
//! The options of a run name directories and files by their paths. A box with a writable share can replace what is in that
//! share with a link, and then end: its next start must not show it the target of the link. The record of a start has the path
//! of each directory, file and socket without links, so a start that opens another path is refused.

use box_contract::ErrorCode;
use boxlaunch::mounts::shares::ShareRecord;
use safe_text::shown;

use super::Shared;
use crate::cli::error::Failure;
use crate::cli::run::RunArgs;

/// Parses a value of `--shared-before`: a share of the record of the box, as JSON.
pub(in crate::cli) fn parse_record(text: &str) -> Result<ShareRecord, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Checks that a run of a box again opens the directories, files and sockets that its first start has opened.
///
/// # Errors
/// The first one that is another.
pub(super) fn check(args: &RunArgs, shared: &Shared) -> Result<(), Failure> {
    let before = &args.shared_before;
    if before.is_empty() {
        return Ok(());
    }
    let mut now = shared.records().into_iter();
    now.find(|it| !is_known(it, before)).map_or(Ok(()), |it| Err(moved(&it, before)))
}

/// Returns whether the first start has shown a directory, file or socket at the same path in the box. Another version of the box may
/// declare another path in the box for it.
fn is_known(now: &ShareRecord, before: &[ShareRecord]) -> bool {
    let has_place = before.iter().any(|it| it.guest == now.guest);
    before.iter().any(|it| it.host == now.host && (!has_place || it.guest == now.guest))
}

fn moved(now: &ShareRecord, before: &[ShareRecord]) -> Failure {
    let ShareRecord { host, guest, .. } = now;
    let old = before.iter().find(|it| it.guest == *guest);
    let old = old.map_or_else(
        || "the box did not have that before".to_owned(),
        |it| format!("it was {} before", it.host.display()),
    );
    let message = format!("the box would see {} of this host at {guest}: {old}", host.display());
    let help = "a box may have put a link there; if you mean that path, run the box anew with it";
    Failure::new((ErrorCode::NotRepeatable, help), shown(&message))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use box_contract::{RunPlan, SharePlan};
    use serde_json::json;

    use super::super::resolved;
    use super::*;

    /// A project that a box may write to, and the keys of the user beside it.
    struct Scene {
        _directory: tempfile::TempDir,
        home: PathBuf,
        plan: RunPlan,
    }

    impl Scene {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let home = directory.path().canonicalize().unwrap();
            for path in ["project/notes", "keys"] {
                fs::create_dir_all(home.join(path)).unwrap();
            }
            for path in ["project/settings", "keys/settings", "keys/id"] {
                fs::write(home.join(path), path).unwrap();
            }
            let plan = testkit::test_box::config().plan;
            Self { _directory: directory, home, plan }
        }

        /// Returns what a run with these options would show, as records, or the refusal.
        fn seen(&self, words: &[String]) -> Result<Vec<ShareRecord>, String> {
            let words = ["x.box", "--detach"].map(str::to_owned).into_iter().chain(words.to_vec());
            let args = RunArgs::of_words(words).unwrap();
            let shared = resolved(&args, &self.plan)
                .map_err(|error| error.text().replace(&self.home.display().to_string(), "HOME"))?;
            Ok(shared.records())
        }

        /// Replaces a path with a link to `target`.
        fn link(&self, path: &str, target: &str) {
            let path = self.home.join(path);
            fs::rename(&path, path.with_extension("moved")).unwrap();
            symlink(target, path).unwrap();
        }

        /// Returns the options of a run, as its record would repeat them.
        fn repeated(&self, words: &[String]) -> Vec<String> {
            let seen = self.seen(words).unwrap();
            let before = seen.iter().map(|it| format!("--shared-before={}", json!(it)));
            words.iter().cloned().chain(before).collect()
        }
    }

    #[test]
    fn a_link_that_the_box_has_left_shows_it_nothing_when_it_starts_again() {
        let scene = Scene::new();
        let share = |path: &str, guest: &str| {
            format!("--share={}:{guest}", scene.home.join(path).display())
        };
        let words = [
            share("project", "/w:rw"),
            share("project/notes", "/notes"),
            share("project/settings", "/settings"),
        ];
        let again = scene.repeated(&words);
        assert_eq!(scene.seen(&again).unwrap().len(), 3, "nothing has changed yet");
        scene.link("project/notes", "../keys");
        let error = scene.seen(&again).unwrap_err();
        insta::assert_snapshot!(error, @"
        error: the box would see HOME/keys of this host at /notes: it was HOME/project/notes before
          = help: a box may have put a link there; if you mean that path, run the box anew with it
        ");
        assert!(scene.seen(&words[..2]).is_ok(), "a user may name a link");
        fs::remove_file(scene.home.join("project/notes")).unwrap();
        fs::create_dir(scene.home.join("project/notes")).unwrap();
        scene.link("project/settings", "../keys/settings");
        assert!(scene.seen(&again).is_err());
    }

    /// The record of a run has a proposed directory under its absolute path, as if the user had named it.
    #[test]
    fn a_proposed_directory_leads_nowhere_else_either_when_the_run_is_repeated() {
        let mut scene = Scene::new();
        let share =
            r#"{"name":"input","guest":"/in","access":"ro","scope":"both","host":"project/notes"}"#;
        scene.plan.shares = vec![serde_json::from_str::<SharePlan>(share).unwrap()];
        let named = format!("--share=input={}", scene.home.join("project/notes").display());
        let again = scene.repeated(&[named]);
        assert!(scene.seen(&again).is_ok());
        // Another version of the box may want the directory at another path.
        scene.plan.shares[0].guest = "/other".to_owned();
        assert!(scene.seen(&again).is_ok());
        scene.link("project/notes", "../keys");
        let error = scene.seen(&again).unwrap_err();
        assert!(
            error.contains("HOME/keys of this host at /other: the box did not have"),
            "{error}"
        );
        scene.plan.shares[0].guest = "/in".to_owned();
        assert!(scene.seen(&again).unwrap_err().contains("it was HOME/project/notes before"));
    }
}
