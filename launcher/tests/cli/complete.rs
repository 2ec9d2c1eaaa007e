//! Completions in a real bash, which loads the script of `boxlaunch completions bash`.

use std::fs;
use std::path::Path;
use std::process::Command;

use testkit::test_box::config;

use crate::metrics::Host;
use crate::prune::TestStore;
use crate::{boxlaunch, ended, piped};

/// Defines `complete_line WORD…`, which prints what bash offers for the last word.
const BASH: &str = r#"
eval "$(boxlaunch completions bash)"
complete_line() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9 COMPREPLY=()
    "$(complete -p boxlaunch | sed 's/.* -F \([^ ]*\) .*/\1/')" boxlaunch "${@: -1}" "${*: -2:1}" 2>/dev/null
    printf '%s\n' "${COMPREPLY[@]}"
}
complete_line boxlaunch "$@"
"#;

/// A host with started boxes, and a store with boxes.
struct Shell {
    host: Host,
    store: TestStore,
    directory: tempfile::TempDir,
}

impl Shell {
    fn new() -> Self {
        let store = TestStore::new();
        store.add(&["built", "other"], &config());
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("build.tar"), "").unwrap();
        Self { host: Host::new(), store, directory }
    }

    /// Returns what bash offers for the last of the words, separated by spaces.
    fn offers(&self, words: &[&str]) -> String {
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", BASH, "bash"]).args(words).current_dir(self.directory.path());
        let programs = Path::new(env!("CARGO_BIN_EXE_boxlaunch")).parent().unwrap();
        bash.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
        bash.env("BOXLAUNCH_STATE", self.host.state.path())
            .env("BOXBUILD_STORE", self.store.root());
        let done = ended(piped(bash));
        assert_eq!((done.code, &*done.stderr), (Some(0), ""));
        done.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

#[test]
fn bash_completes_commands_options_and_names() {
    let shell = Shell::new();
    let offers = |line: &str| shell.offers(&line.split(' ').collect::<Vec<_>>());
    assert_eq!(offers("ps --al"), "--all --all-users");
    assert!(offers("r").starts_with("run "), "{}", offers("r"));
    for command in ["stop", "exec", "logs -f", "agent health"] {
        assert_eq!(offers(&format!("{command} t")), "two", "{command}");
    }
    assert_eq!(offers("exec e"), "", "it has ended");
    assert_eq!(offers("rm e"), "ended");
    assert_eq!(offers("stop one t"), "two");
    assert_eq!(offers("cp o"), "one:");
    assert_eq!(offers("inspect o"), "one other");
    assert_eq!(offers("run b"), "built build.tar");
    assert_eq!(offers("rmi o"), "other");
    assert_eq!(offers("exec --component "), "agent business");
    assert_eq!(offers("exec --in b"), "business", "the former name of the option");
}

#[test]
fn a_variable_of_the_shell_alone_completes_nothing() {
    let mut command = boxlaunch(&["ps", "--json"]);
    let state = tempfile::tempdir().unwrap();
    command.env("BOXLAUNCH_COMPLETE", "bash").env("BOXLAUNCH_STATE", state.path());
    assert_eq!(ended(command).stdout, "{\"boxes\":[]}\n");
}
