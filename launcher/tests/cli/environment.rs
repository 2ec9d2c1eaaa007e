//! `boxlaunch up` and other commands that refuse something about an environment, before any VM.

use std::fs;
use std::path::PathBuf;

use box_contract::NetworkMode;
use boxlaunch::boxes::{Boxes, Entry, Record, State};
use boxlaunch::project::name_of;
use tempfile::TempDir;
use testkit::test_box::{TestBox, config};

use crate::{boxlaunch, record, refused};

/// The home directory of a user, with the projects `page` and `bare`, and a box.
struct Home {
    _directory: TempDir,
    path: PathBuf,
    made: TestBox,
}

impl Home {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        for name in ["page/sub", "bare"] {
            fs::create_dir_all(path.join(name)).unwrap();
        }
        Self { _directory: directory, path, made: TestBox::new(&config()) }
    }

    /// Begins the record of a box with the name of the environment of `page`. It is that environment if `is_project`.
    fn entry(&self, is_project: bool) -> Entry {
        let (page, name) = (self.page(), name_of(&self.page()));
        let record = Record { project: is_project.then_some(page), ..record(&self.made) };
        Boxes::new(&self.path.join("state")).create(Some(&name), record).unwrap()
    }

    fn page(&self) -> PathBuf {
        self.path.join("page")
    }

    /// Returns the error of a command in a directory, which ends with `code`. The box is `BOX`, and paths and names do not depend on
    /// the home directory.
    fn error(&self, directory: &str, code: i32, words: &str) -> String {
        let made = self.made.path().to_str().unwrap();
        let words: Vec<_> =
            words.split(' ').map(|it| if it == "BOX" { made } else { it }).collect();
        let mut command = boxlaunch(&words);
        command.env("BOXLAUNCH_STATE", self.path.join("state")).env("HOME", &self.path);
        command.current_dir(self.path.join(directory));
        let text = refused(command, code).replace(&name_of(&self.page()), "page-NNNN");
        text.replace(self.path.to_str().unwrap(), "HOME")
    }
}

#[test]
fn a_name_belongs_to_one_box_and_a_directory_to_one_project() {
    let home = Home::new();
    let mut entry = home.entry(false);
    entry.update(|it| it.state = State::Running).unwrap();
    let of_running = home.error("page", 1, "up -q --box BOX");
    entry.end(Some(0), None).unwrap();
    assert_eq!(home.error("page", 1, "up -q --box BOX"), of_running);
    insta::assert_snapshot!(of_running, @"
    error: the name page-NNNN of this project's environment belongs to another box
      = help: rename the directory of one of the projects, or remove that box: `boxlaunch rm`
    ");
    let home = Home::new();
    home.entry(true).end(Some(0), None).unwrap();
    insta::assert_snapshot!(home.error("page", 2, "up -q sub --box BOX"), @"
    error: HOME/page/sub overlaps with HOME/page, the project of the environment page-NNNN
      = help: use that one: `boxlaunch up HOME/page`; or remove it: `boxlaunch rm --all-data page-NNNN`
    ");
}

#[test]
fn what_is_no_project_is_said() {
    let home = Home::new();
    let open = home.path.join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    fs::write(home.path.join("bare/.git"), "gitdir: ../key").unwrap();
    fs::write(home.path.join("key"), "key").unwrap();
    let output = [
        home.error(".", 1, "exec . true"),
        home.error(".", 2, "up --box BOX"),
        home.error("/", 2, "up --box BOX"),
        home.error(".", 2, "up --box BOX open"),
        home.error(".", 2, "up -q --box BOX bare"),
    ];
    insta::assert_snapshot!(output.concat(), @"
    error: HOME is in no project that has an environment
      = help: `boxlaunch up` starts one; or name a box: `boxlaunch ps -a` lists them
    error: HOME is no project: it is your home directory
      = help: change to a directory of one project, or name it: `boxlaunch up DIR`
    error: / is no project: it is the root directory
      = help: change to a directory of one project, or name it: `boxlaunch up DIR`
    error: HOME/open is no place for a project: everybody can write to HOME/open
      = help: move the project to where only you can write, for example below your home directory
    error: cannot use HOME/key/commondir: Not a directory (os error 20)
      = help: --writable-git starts it without that repository
    ");
}

#[test]
fn options_are_taken_once_and_a_box_that_asks_for_more_is_not_started() {
    let mut filtered = config();
    filtered.plan.network.mode = NetworkMode::Filtered;
    filtered.plan.network.allow = serde_json::from_str(r#"[{"peer":"a.test.example"}]"#).unwrap();
    let (home, filtered) = (Home::new(), TestBox::new(&filtered));
    home.entry(true).end(Some(0), None).unwrap();
    let other = format!("up -q --box {}", filtered.path().display());
    let output = [home.error("page", 2, "up -q -m 300m"), home.error("page", 2, &other)];
    insta::assert_snapshot!(output.concat(), @"
    error: page-NNNN has the options of its first start
      = help: leave them out, except -p, which adds a port; or add --forget, which starts it with those of this command line alone
    error: the box of page-NNNN has changed, and asks for more than before:
      network: none: nothing → filtered: the hosts that are allowed
      network allow: - → a.test.example, ports 80 and 443
      = help: `boxlaunch up --accept` permits that
    ");
}

#[test]
fn what_runs_keeps_the_box_and_the_options_of_its_start() {
    let home = Home::new();
    let mut entry = home.entry(true);
    entry.update(|it| it.state = State::Running).unwrap();
    let update = format!("update {} BOX", name_of(&home.page()));
    let refused = [(2, "up -q -m 300m"), (2, "up --forget"), (1, &update)];
    insta::assert_snapshot!(refused.map(|(code, it)| home.error("page", code, it)).concat(), @"
    error: page-NNNN runs with the box and the options of its start
      = help: a port can be added while it runs: `boxlaunch up -p`; for other options: `boxlaunch down`, then `boxlaunch up --forget` with all options
    error: page-NNNN runs with the box and the options of its start
      = help: stop it first: `boxlaunch down`, then `boxlaunch up` with these words
    error: the run of page-NNNN cannot be repeated: it is the environment of a project
      = help: stop it, and start it with another box: `boxlaunch down`, then `boxlaunch up --box BOX`
    ");
}
