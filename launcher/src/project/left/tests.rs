use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::PathBuf;
use std::time::Duration;

use super::*;

/// A project with a repository and a submodule.
struct Scene(tempfile::TempDir);

impl Scene {
    fn new() -> Self {
        let scene = Self(tempfile::tempdir().unwrap());
        for path in [".git/HEAD", ".git/config", "src/main.c", "Makefile", "node_modules/a/b.js"] {
            scene.write(path, path);
        }
        scene.write("lib/.git", "gitdir: ../.git/modules/lib");
        scene.write(".git/modules/lib/config", "[core]");
        scene
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    fn look(&self, since: Option<SystemTime>) -> Look {
        look(self.0.path(), None, since).unwrap()
    }

    /// Returns what is new since `known`, as text.
    fn new_since(&self, known: &Found) -> String {
        let Found { repositories, operations } = self.look(None).found.without(known);
        let all: Vec<_> = repositories.into_keys().chain(operations.into_keys()).collect();
        all.join(", ")
    }
}

#[test]
fn a_repository_that_was_made_or_changed_is_named() {
    let scene = Scene::new();
    let known = scene.look(None).found;
    assert_eq!(known.repositories.keys().collect::<Vec<_>>(), [".", ".git/modules/lib", "lib"]);
    scene.write("src/main.c", "changed");
    scene.write(".git/logs/HEAD", "changed");
    assert_eq!(scene.new_since(&known), "", "what git does not start");
    scene.write(".git/modules/lib/config", "[core]\n\tfsmonitor = touch /tmp/x");
    assert_eq!(scene.new_since(&known), ".git/modules/lib, lib");
    scene.write(".git/modules/lib/config", "[core]");
    scene.write(".git/modules/lib/hooks/post-checkout", "touch /tmp/x");
    assert_eq!(scene.new_since(&known), ".git/modules/lib, lib");
    fs::remove_dir_all(scene.at(".git/modules/lib/hooks")).unwrap();
    scene.write("lib/.git", "gitdir: ../own");
    assert_eq!(scene.new_since(&known), "lib");
    scene.write("lib/.git", "gitdir: ../.git/modules/lib");
    assert_eq!(scene.new_since(&known), "");
    // A project that had none, and in which the box has made one.
    let none = Found { repositories: BTreeMap::new(), ..known };
    assert_eq!(scene.new_since(&none), "., .git/modules/lib, lib");
}

/// What a hostile box could try so that its repository is not found.
#[test]
fn no_repository_hides() {
    let scene = Scene::new();
    let known = scene.look(None).found;
    scene.write("node_modules/.cache/x/.git/config", "");
    scene.write("bare/HEAD", "");
    scene.write("bare/objects/x", "");
    scene.write("bare/refs/x", "");
    scene.write("split/HEAD", "");
    scene.write("split/commondir", "../elsewhere");
    scene.write("case/.GIT/config", "");
    scene.write("two\nlines\u{1b}[2J/.git", "gitdir: x");
    scene.write("-v/.git/config", "");
    fs::create_dir_all(scene.at("linked")).unwrap();
    symlink("/tmp", scene.at("linked/.git")).unwrap();
    symlink("/", scene.at("all")).unwrap();
    let deep = "d/".repeat(120);
    scene.write(&format!("{deep}.git/config"), "");
    let found = scene.new_since(&known);
    insta::assert_snapshot!(found.replace(&"d/".repeat(119), "DEEP/").replace(", ", "\n"), @r"
    $'two\012lines\033\1332J'
    ./-v
    bare
    case
    DEEP/d
    linked
    node_modules/.cache/x
    split
    ");
    assert!(scene.look(None).is_whole);
}

/// The index of the project may have any path for a submodule, and git starts programs there.
#[test]
fn no_repository_hides_in_that_of_the_project() {
    let scene = Scene::new();
    let known = scene.look(None).found;
    scene.write(".git/info/e/.git/config", "x");
    scene.write(".git/objects/ab/.git/config", "x");
    scene.write(".git/modules/new/hooks/post-checkout", "x");
    scene.write(".git/worktrees/w/commondir", "../../../evil");
    scene.write(".git/refs/heads/config", "a branch");
    scene.write(".git/logs/refs/heads/hooks/x", "a branch");
    scene.write(".git/refs/r/HEAD", "x");
    scene.write(".git/refs/r/commondir", "x");
    insta::assert_snapshot!(scene.new_since(&known).replace(", ", "\n"), @"
    .git/info/e
    .git/modules/new
    .git/objects/ab
    .git/refs/r
    .git/worktrees/w
    ");
}

/// What decides may be in another directory, or in a large file.
#[test]
fn a_known_repository_does_not_change_silently() {
    let scene = Scene::new();
    scene.write("sub/.git/HEAD", "x");
    scene.write("sub/.git/commondir", "../../store");
    scene.write("store/config", "x");
    scene.write("lib/.git", "gitdir: ../.git/modules/lib");
    fs::create_dir_all(scene.at("linked")).unwrap();
    symlink("../own", scene.at("linked/.git")).unwrap();
    scene.write("own/config", "x");
    scene.write(".git/modules/lib/hooks/h", &"x".repeat(2 << 20));
    let known = scene.look(None).found;
    assert_eq!(scene.new_since(&known), "");
    scene.write("store/config", "y");
    scene.write("own/config", "y");
    scene.write(".git/modules/lib/hooks/h", &("x".repeat(2 << 20) + "y"));
    assert_eq!(scene.new_since(&known), ".git/modules/lib, lib, linked, sub");
}

#[test]
fn an_operation_in_progress_is_named() {
    let scene = Scene::new();
    scene.write(".git/sequencer/todo", "pick");
    let known = scene.look(None).found;
    for path in [
        ".git/rebase-merge/git-rebase-todo",
        ".git/modules/refs/MERGE_HEAD",
        "lib/CHERRY_PICK_HEAD",
        ".git/refs/heads/BISECT_START",
        ".git/logs/refs/heads/MERGE_HEAD",
    ] {
        scene.write(path, "x");
    }
    scene.write(".git/MERGE_RR", "");
    assert_eq!(scene.new_since(&known), ".git/modules/refs: a merge, .git: a rebase");
    let known = scene.look(None).found;
    // The user has begun a rebase, and the box changes what its next step does.
    scene.write(".git/rebase-merge/git-rebase-todo", "exec x");
    scene.write(".git/sequencer/todo", "revert");
    let changed = ".git: a cherry-pick or a revert, .git: a rebase";
    assert_eq!(scene.new_since(&known), changed);
    let other = tempfile::tempdir().unwrap();
    let outside = scene.at(".git").canonicalize().unwrap();
    let look = look(other.path(), Some(&outside), None).unwrap();
    let outside = outside.display().to_string();
    let found = look.found.operations.keys().chain(look.found.repositories.keys());
    let found: Vec<_> = found.map(|it| it.replace(&outside, "OUTSIDE")).collect();
    assert_eq!(
        found,
        [
            "OUTSIDE/modules/refs: a merge",
            "OUTSIDE: a cherry-pick or a revert",
            "OUTSIDE: a rebase",
            "OUTSIDE/modules/lib",
        ]
    );
}

#[test]
fn a_forged_index_is_named() {
    let scene = Scene::new();
    scene.write(".git/refs/heads/index", "a branch");
    assert!(scene.look(None).is_whole);
    let entry = format!("{}\x04../x\0\0\0\0\0\0", "\0".repeat(61));
    scene.write(".git/index", &format!("DIRC\0\0\0\x02\0\0\0\x01{entry}{}", "\0".repeat(20)));
    scene.write(".git/modules/lib/index", "DIRC");
    let look = scene.look(None);
    assert_eq!(look.indexes.into_keys().collect::<Vec<_>>(), [".git/index"]);
    assert!(!look.is_whole, "of the other, nothing is known");
}

#[test]
fn files_that_programs_run_are_named_if_they_have_changed() {
    let scene = Scene::new();
    let changed_at = |path: &str| {
        let found = fs::symlink_metadata(scene.at(path)).unwrap();
        let since =
            Duration::new(found.ctime().cast_unsigned(), found.ctime_nsec().try_into().unwrap());
        SystemTime::UNIX_EPOCH + since
    };
    // The clock of a file system has steps of some milliseconds.
    let before = changed_at("node_modules/a/b.js");
    while changed_at("Makefile").max(changed_at("src/main.c")) <= before {
        scene.write("src/main.c", "again");
    }
    let since = Some(changed_at("src/main.c"));
    let names = |since| scene.look(since).changed.into_keys().collect::<Vec<_>>();
    assert_eq!(names(since), [""; 0]);
    for path in ["node_modules/a/b.js", "node_modules/c/node_modules/d/e.js", "src/main.c"] {
        scene.write(path, "changed");
    }
    for path in ["sub/package.json", ".vscode/tasks.json", "rules.mk", "Makefile.txt"] {
        scene.write(path, "changed");
    }
    symlink("evil", scene.at(".husky")).unwrap();
    assert_eq!(names(since), [".husky", ".vscode", "node_modules", "rules.mk", "sub/package.json"]);
    assert_eq!(names(None), [""; 0]);
}

#[test]
fn a_look_that_is_too_long_is_not_whole() {
    let scene = Scene::new();
    let look = |most| {
        let mut walk = Walk::of(scene.0.path(), Path::new(""), None).unwrap().at_most(most);
        walk.project();
        walk.look.is_whole
    };
    assert!(look(100) && !look(5));
}

#[test]
fn what_a_user_makes_while_the_environment_has_ended_is_known() {
    let state = tempfile::tempdir().unwrap();
    let scene = Scene::new();
    let now = || scene.look(None).found;
    let seen = Seen { known: now(), ..Seen::default() };
    scene.write("box/.git/config", "x");
    assert_eq!(scene.new_since(&seen.clone().begun(&now(), 1, 9).known), "box");
    let seen = Seen { at_end: Some(AtEnd { run_ms: 1, found: now() }), ..seen };
    scene.write("mine/.git/config", "x");
    seen.write(state.path(), "page").unwrap();
    let seen = Seen::read(state.path(), "page").unwrap();
    // Another run has begun meanwhile, so its box may have made it.
    assert_eq!(scene.new_since(&seen.clone().begun(&now(), 2, 9).known), "box, mine");
    let seen = seen.begun(&now(), 1, 9);
    assert_eq!(scene.new_since(&seen.known), "box");
    assert_eq!((&seen.at_end, seen.since(5)), (&None, 9));
    assert_eq!(Seen::default().since(5), 5, "an environment of an earlier version");
    Seen::remove(state.path(), "page");
    assert_eq!(Seen::read(state.path(), "page"), None);
}

#[test]
fn the_page_has_the_list() {
    let page = include_str!("../../../../docs/files.md");
    for (programs, names) in code::FILES {
        let names: Vec<_> = names.iter().map(|it| format!("`{it}`")).collect();
        let row = format!("| {programs} | {} |", names.join(", "));
        assert!(page.contains(&row), "docs/files.md lacks: {row}");
    }
    let ends = code::ENDS.map(|it| format!("`*{it}`")).join(", ");
    let directories = code::DIRECTORIES.map(|it| format!("`{it}/`")).join(", ");
    for row in
        [format!("| names that end in | {ends} |"), format!("| directories | {directories} |")]
    {
        assert!(page.contains(&row), "docs/files.md lacks: {row}");
    }
}
