//! A box that is started again sees what it saw before.
//!
//! The options of a run name directories and files by their paths. A box with a writable share can replace what is in that
//! share with a link, and then end: its next start must not show it the target of the link. The record of a start has the path
//! of each directory, file and socket without links, so a start that opens another path is refused.

use std::path::{Path, PathBuf};

use box_contract::ErrorCode;
use box_contract::plan::{SKILLS_PATH, SSH_AGENT_SOCKET};
use boxlaunch::mounts::shares::ShareRecord;
use safe_text::shown;

use super::Shared;
use crate::cli::error::Failure;
use crate::cli::run::{AgentChoice, RunArgs};

/// The help if a start would give the box something else than the first one.
const RUN_ANEW: &str =
    "the box or its new version may have changed that; if you mean it, run the box anew with it";

/// Parses a value of `--shared-before`: a share of the record of the box, as JSON.
pub(in crate::cli) fn parse_record(text: &str) -> Result<ShareRecord, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Checks that a run of a box again opens the directories, files and sockets that its first start has opened. The socket of the SSH
/// agent of the environment may be another one: the user's agent has another path after each login.
///
/// # Errors
/// The first one that is another.
pub(super) fn check(args: &RunArgs, shared: &Shared) -> Result<(), Failure> {
    let before = &args.shared_before;
    if before.is_empty() {
        return Ok(());
    }
    let is_new = |it: &ShareRecord| {
        args.given.ssh_agent == Some(AgentChoice::Env) && it.guest == SSH_AGENT_SOCKET
    };
    let mut now = shared.records().into_iter().filter(|it| !is_new(it));
    let dirs = &args.given.skill_dirs;
    let is_known = |it: &ShareRecord| is_known(it, before) || is_new_skill(it, dirs, before);
    now.find(|it| !is_known(it)).map_or(Ok(()), |it| Err(moved(&it, before)))?;
    let mut dirs = dirs.iter().zip(&shared.skill_dirs);
    dirs.find(|(old, now)| old != now).map_or(Ok(()), |(old, now)| Err(moved_dir(old, now)))
}

/// Returns whether the user has added this skill to one of `dirs`, the directories of `--skills`. In a repeated run, their paths are
/// those of the first start, without links. The box has not added the skill: `skills::check_writable` refuses a directory to which
/// the run may write.
fn is_new_skill(now: &ShareRecord, dirs: &[PathBuf], before: &[ShareRecord]) -> bool {
    let is_skill = Path::new(&now.guest).parent() == Some(Path::new(SKILLS_PATH));
    let is_new = before.iter().all(|it| it.guest != now.guest);
    is_skill && is_new && dirs.iter().any(|it| now.host.starts_with(it))
}

/// Returns whether the first start has shown a directory, file or socket at the same path in the box, and the box could do as much
/// with it. Another version of the box may declare another path in the box for it.
fn is_known(now: &ShareRecord, before: &[ShareRecord]) -> bool {
    let has_place = before.iter().any(|it| it.guest == now.guest);
    let is_same = |it: &ShareRecord| it.host == now.host && it.socket == now.socket;
    let could = |it: &ShareRecord| it.writable || !now.writable;
    before.iter().any(|it| is_same(it) && could(it) && (!has_place || it.guest == now.guest))
}

fn moved(now: &ShareRecord, before: &[ShareRecord]) -> Failure {
    let ShareRecord { host, guest, .. } = now;
    let old = before.iter().find(|it| it.guest == *guest);
    let old = match old {
        None => "the box did not have that before".to_owned(),
        Some(it) if it.host != *host => format!("it was {} before", it.host.display()),
        Some(it) if it.socket != now.socket => "it was no socket before".to_owned(),
        Some(_) => "the box could only read it before".to_owned(),
    };
    let may = if now.socket {
        "connect to"
    } else if now.writable {
        "write to"
    } else {
        "see"
    };
    let message = format!("the box would {may} {} of this host at {guest}: {old}", host.display());
    Failure::new((ErrorCode::NotRepeatable, RUN_ANEW), shown(&message))
}

/// Returns the error of a directory of `--skills` that is at `now`, and was at `before` at the first start.
fn moved_dir(before: &Path, now: &Path) -> Failure {
    let (before, now) = (before.display(), now.display());
    let message =
        format!("the box would see the skills in {now} of this host: they were in {before} before");
    Failure::new((ErrorCode::NotRepeatable, RUN_ANEW), shown(&message))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use box_contract::{RunPlan, Scope, SharePlan, SshAgentPlan};
    use serde_json::json;

    use super::super::{checked, resolved};
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
            let shared = checked(&args, &self.plan)
                .and_then(|skills| resolved(&args, &self.plan, &skills))
                .map_err(|error| error.text().replace(&self.home.display().to_string(), "HOME"))?;
            Ok(shared.records())
        }

        /// Declares the mounted skill `notes`.
        fn with_notes(mut self) -> Self {
            let skill = r#"{"name":"notes","mode":"mounted"}"#;
            self.plan.skills = vec![serde_json::from_str(skill).unwrap()];
            self
        }

        /// Returns the option `--skill` with this directory for the skill `notes`.
        fn notes(&self, path: &str) -> String {
            format!("--skill=notes={}", self.home.join(path).display())
        }

        /// Makes a skill in a directory that has its name.
        fn skill(&self, path: &str) {
            let (directory, name) = (self.home.join(path), path.rsplit('/').next().unwrap());
            fs::create_dir_all(&directory).unwrap();
            let text = format!("---\nname: {name}\ndescription: Notes.\n---\n");
            fs::write(directory.join("SKILL.md"), text).unwrap();
        }

        /// Returns the option `--skills` with this directory.
        fn skills(&self, path: &str) -> String {
            format!("--skills={}", self.home.join(path).display())
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
          = help: the box or its new version may have changed that; if you mean it, run the box anew with it
        ");
        assert!(scene.seen(&words[..2]).is_ok(), "a user may name a link");
        fs::remove_file(scene.home.join("project/notes")).unwrap();
        fs::create_dir(scene.home.join("project/notes")).unwrap();
        scene.link("project/settings", "../keys/settings");
        assert!(scene.seen(&again).is_err());
    }

    /// A box moves a socket of its share to where a file was, or its next version wants to write.
    #[test]
    fn a_box_can_do_no_more_with_what_it_sees_when_it_starts_again() {
        let mut scene = Scene::new();
        let named =
            |path: &str, rest: &str| format!("--share={}{rest}", scene.home.join(path).display());
        let file = named("project/settings", ":/settings");
        let again = scene.repeated(std::slice::from_ref(&file));
        fs::remove_file(scene.home.join("project/settings")).unwrap();
        let _server = UnixListener::bind(scene.home.join("project/settings")).unwrap();
        let mut errors = scene.seen(&again).unwrap_err();
        let input = format!("--share=input={}", scene.home.join("project/notes").display());
        let share = r#"{"name":"input","guest":"/in","access":"ro","scope":"both"}"#;
        scene.plan.shares = vec![serde_json::from_str::<SharePlan>(share).unwrap()];
        let again = scene.repeated(&[input]);
        scene.plan.shares[0].access = box_contract::Access::ReadWrite;
        errors += &scene.seen(&again).unwrap_err();
        insta::assert_snapshot!(errors, @"
        error: the box would connect to HOME/project/settings of this host at /settings: it was no socket before
          = help: the box or its new version may have changed that; if you mean it, run the box anew with it
        error: the box would write to HOME/project/notes of this host at /in: the box could only read it before
          = help: the box or its new version may have changed that; if you mean it, run the box anew with it
        ");
    }

    #[test]
    fn a_box_connects_to_no_socket_that_it_can_replace() {
        let scene = Scene::new();
        let _server = UnixListener::bind(scene.home.join("project/s")).unwrap();
        let share =
            |path: &str, rest: &str| format!("--share={}{rest}", scene.home.join(path).display());
        let socket = share("project/s", ":/s");
        let with = |other: String| scene.seen(&[socket.clone(), other]);
        assert!(with(share("project", ":/w")).is_ok());
        assert!(with(share("project/notes", ":/w:rw")).is_ok());
        insta::assert_snapshot!(with(share("project", ":/w:rw")).unwrap_err(), @"
        error: a box that may write to HOME/project must not connect to HOME/project/s: it could put another socket there
          = help: share a socket that is outside of it, or share the directory without `rw`
        ");
    }

    #[test]
    fn the_path_of_an_ssh_agent_leads_nowhere_else_when_the_run_is_repeated() {
        let mut scene = Scene::new();
        scene.plan.ssh_agent = Some(SshAgentPlan { scope: Scope::Agent });
        let _agents = ["keys/agent", "keys/other"]
            .map(|path| UnixListener::bind(scene.home.join(path)).unwrap());
        let option = format!("--ssh-agent={}", scene.home.join("keys/agent").display());
        let again = scene.repeated(&[option]);
        assert_eq!(scene.seen(&again).unwrap().len(), 1, "it is in the record");
        scene.link("keys/agent", "other");
        insta::assert_snapshot!(scene.seen(&again).unwrap_err(), @"
        error: the box would connect to HOME/keys/other of this host at /run/ssh-agent.sock: it was HOME/keys/agent before
          = help: the box or its new version may have changed that; if you mean it, run the box anew with it
        ");
    }

    #[test]
    fn a_directory_of_skills_may_have_another_one_when_the_box_starts_again() {
        let scene = Scene::new();
        scene.skill("skills/a");
        let again = scene.repeated(&[scene.skills("skills")]);
        scene.skill("skills/b");
        let seen = scene.seen(&again).unwrap();
        let places: Vec<_> = seen.iter().map(|it| it.guest.as_str()).collect();
        assert_eq!(places, ["/a3s/skills/a", "/a3s/skills/b"]);
        // A box has made links, to a directory of the user and to another directory of skills.
        scene.skill("keys/c");
        symlink("../keys/c", scene.home.join("skills/c")).unwrap();
        let mut errors = scene.seen(&again).unwrap_err();
        fs::rename(scene.home.join("skills"), scene.home.join("moved")).unwrap();
        fs::remove_file(scene.home.join("moved/c")).unwrap();
        scene.skill("keys/a");
        symlink("keys", scene.home.join("skills")).unwrap();
        errors += &scene.seen(&again).unwrap_err();
        insta::assert_snapshot!(errors, @"
        error: HOME/skills/c leads to HOME/keys/c, which is not in HOME/skills
          = help: a box may have put that link there; if you mean that directory, leave the link out and add `--skills HOME/keys`, or copy it
        error: the box would see HOME/keys/a of this host at /a3s/skills/a: it was HOME/skills/a before
          = help: the box or its new version may have changed that; if you mean it, run the box anew with it
        ");
    }

    /// Another program has replaced the directory with a link to the directory of another skill of the user.
    #[test]
    fn a_directory_of_skills_is_the_same_one_when_the_box_starts_again() {
        let scene = Scene::new().with_notes();
        scene.skill("keys/notes");
        scene.skill("skills/a");
        let again = scene.repeated(&[scene.notes("keys/notes"), scene.skills("skills")]);
        assert_eq!(scene.seen(&again).unwrap().len(), 2);
        scene.link("skills", "keys");
        let mut errors = scene.seen(&again).unwrap_err();
        scene.skill("keys/b");
        errors += &scene.seen(&again).unwrap_err();
        insta::assert_snapshot!(errors, @"
        error: the box would see the skills in HOME/keys of this host: they were in HOME/skills before
          = help: the box or its new version may have changed that; if you mean it, run the box anew with it
        error: the box would see HOME/keys/b of this host at /a3s/skills/b: the box did not have that before
          = help: the box or its new version may have changed that; if you mean it, run the box anew with it
        ");
    }

    #[test]
    fn a_skill_that_is_given_decides_between_two_of_its_name() {
        let scene = Scene::new().with_notes();
        for path in ["skills/notes", "other/notes", "keys/notes"] {
            scene.skill(path);
        }
        let words = [scene.skills("skills"), scene.skills("other"), scene.notes("keys/notes")];
        let seen = scene.seen(&words).unwrap();
        let hosts: Vec<_> = seen.iter().map(|it| it.host.clone()).collect();
        assert_eq!(hosts, [scene.home.join("keys/notes")]);
        assert!(scene.seen(&words[..2]).unwrap_err().contains("the skill notes is given twice"));
    }

    #[test]
    fn a_box_gets_no_skills_from_a_directory_to_which_it_may_write() {
        let scene = Scene::new();
        scene.skill("project/skills/a");
        scene.skill("skills/b");
        for path in ["skills/b/tools", "skills/none"] {
            fs::create_dir(scene.home.join(path)).unwrap();
        }
        symlink("../skills", scene.home.join("project/link")).unwrap();
        let share = |path: &str, rest: &str| {
            format!("--share={}:/w{rest}", scene.home.join(path).display())
        };
        let with = |path: &str, share: String| scene.seen(&[scene.skills(path), share]);
        assert!(with("project/skills", share("project", "")).is_ok());
        assert!(with("skills", share("project", ":rw")).is_ok());
        let errors = [
            with("project/skills", share("project", ":rw")),
            with("project/link", share("project", ":rw")),
            with("skills", share("skills/b", ":rw")),
            with("skills", share("skills/b/tools", ":rw")),
            with("skills", share("skills/none", ":rw")),
        ];
        insta::assert_snapshot!(errors.map(Result::unwrap_err).concat(), @"
        error: a box that may write to HOME/project must not get skills from HOME/project/skills: it could change them for its next start
          = help: move the skills to where the box may not write, build them into the box (`skills dir=…`), or copy them into the running box: `boxlaunch skills NAME load DIR`
        error: a box that may write to HOME/project must not get skills from HOME/project/link: it could change them for its next start
          = help: move the skills to where the box may not write, build them into the box (`skills dir=…`), or copy them into the running box: `boxlaunch skills NAME load DIR`
        error: a box that may write to HOME/skills/b must not get skills from HOME/skills: it could change them for its next start
          = help: move the skills to where the box may not write, build them into the box (`skills dir=…`), or copy them into the running box: `boxlaunch skills NAME load DIR`
        error: a box that may write to HOME/skills/b/tools must not get skills from HOME/skills: it could change them for its next start
          = help: move the skills to where the box may not write, build them into the box (`skills dir=…`), or copy them into the running box: `boxlaunch skills NAME load DIR`
        error: a box that may write to HOME/skills/none must not get skills from HOME/skills: it could change them for its next start
          = help: move the skills to where the box may not write, build them into the box (`skills dir=…`), or copy them into the running box: `boxlaunch skills NAME load DIR`
        ");
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
