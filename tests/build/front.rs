//! Tests of `box`, which starts boxbuild or boxlaunch.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use testbed::{Artefacts, Workspace};

/// A directory of programs, as an installation has it.
struct Installed {
    directory: tempfile::TempDir,
}

impl Installed {
    fn new() -> Self {
        let found = Artefacts::build(&Workspace::find()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        // `box` finds the programs beside its file, so it must not be a link.
        fs::copy(&found.front, directory.path().join("box")).unwrap();
        for (name, program) in [("boxbuild", &found.boxbuild), ("boxlaunch", &found.boxlaunch)] {
            symlink(program, directory.path().join(name)).unwrap();
        }
        Self { directory }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Runs a program with an empty `PATH`.
    fn run(&self, program: &str, words: &[&str]) -> Output {
        self.command(program, words).output().unwrap()
    }

    fn command(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new(self.path().join(program));
        command.args(words).env("PATH", "").current_dir(self.path());
        command
    }

    fn text(&self, program: &str, words: &[&str]) -> String {
        let output = self.run(program, words);
        assert!(output.status.success(), "{program} {words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Returns the commands that a help lists.
fn commands(help: &str) -> Vec<&str> {
    let list = help.split("Options:").next().unwrap();
    let lines = list.lines().filter_map(|it| it.strip_prefix("  "));
    lines.filter_map(|it| it.split_whitespace().next()).collect()
}

#[test]
fn every_command_of_both_programs_is_one_of_box() {
    let installed = Installed::new();
    let helps = ["boxbuild", "boxlaunch"].map(|it| (it, installed.text(it, &["--help"])));
    let [builds, runs] = helps.each_ref().map(|it| commands(&it.1));
    let help = installed.text("box", &["--help"]);
    let listed = commands(&help);
    for (program, help) in &helps {
        for command in commands(help).into_iter().filter(|it| *it != "update" && *it != "help") {
            assert_eq!(listed.iter().filter(|it| **it == command).count(), 1, "{command}");
            let own = installed.text("box", &[command, "--help"]);
            let is_shared = builds.contains(&command) && runs.contains(&command);
            let is_same = own == installed.text(program, &[command, "--help"]);
            assert!(is_shared || is_same, "{program} {command}");
        }
    }
    // What does the same as `gc` is a command of boxlaunch, which it names instead.
    for command in builds.iter().filter(|it| !runs.contains(it) && **it != "gc") {
        let output = installed.run("boxlaunch", &[command]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(&format!("boxbuild {command}")), "{text}");
    }
    assert!(!listed.contains(&"update"), "{help}");
    assert_eq!(installed.text("box", &["help"]), help);
    assert_eq!(installed.text("box", &["help", "ls"]), installed.text("boxbuild", &["help", "ls"]));
    let first = |program: &str, name: &str| installed.text(program, &["help", name]);
    assert_eq!(first("box", "verify"), first("boxbuild", "verify"));
    assert_eq!(first("box", "inspect"), first("boxlaunch", "inspect"));
}

#[test]
fn box_is_the_other_program_with_its_exit_code_and_streams() {
    let installed = Installed::new();
    for words in [&["build", "--nonsense"][..], &["run"], &["nonsense"], &["schema"], &["ps", "-q"]]
    {
        let program =
            if words[0] == "build" || words[0] == "schema" { "boxbuild" } else { "boxlaunch" };
        let (own, other) = (installed.run("box", words), installed.run(program, words));
        assert_eq!((own.status, &own.stdout), (other.status, &other.stdout), "{words:?}");
        assert_eq!(own.stderr, other.stderr, "{words:?}");
    }
    let refused = installed.run("box", &["update", "hello"]);
    insta::assert_snapshot!(
        String::from_utf8(refused.stderr).unwrap(),
        @"error: both programs have the command `update`: `boxbuild update` writes new digests into Boxfile.lock, and `boxlaunch update` replaces the box of a run"
    );
    assert_eq!(refused.status.code(), Some(2));
    fs::remove_file(installed.path().join("boxbuild")).unwrap();
    let missing = installed.run("box", &["build"]);
    insta::assert_snapshot!(String::from_utf8(missing.stderr).unwrap(), @r"
    error: there is no boxbuild beside box or in PATH
      help: install boxbuild
    ");
    assert_eq!(missing.status.code(), Some(1));
    assert!(installed.text("box", &["--help"]).contains("\n  run "), "a host without boxbuild");
}

#[test]
fn a_shell_completes_the_commands_of_both_and_the_options_of_one() {
    let installed = Installed::new();
    let script = installed.text("box", &["completions", "bash"]);
    assert!(script.contains("BOX_COMPLETE=\"bash\"") && !script.contains("boxlaunch"), "{script}");
    let offered = |words: &[&str]| {
        let mut command = installed.command("box", &[&["--", "box"], words].concat());
        command.env("BOX_COMPLETE", "bash").env("_CLAP_IFS", "\n");
        let index = words.len().to_string();
        let output = command.env("_CLAP_COMPLETE_INDEX", index).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let first = offered(&["r"]);
    let all: Vec<&str> = first.lines().collect();
    assert_eq!(all, ["report", "run", "reset", "rmi", "restart", "rm"]);
    assert_eq!(offered(&["run", "--mem"]).trim(), "--memory");
    assert_eq!(offered(&["build", "--cache-f"]).trim(), "--cache-from");
    assert_eq!(offered(&["update", "--"]), "");
}
