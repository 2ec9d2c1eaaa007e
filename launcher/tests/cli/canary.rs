//! Puts a secret wherever a user may put one on a command line by mistake. No message must repeat it.

use std::fs;

use testkit::test_box::config;

use crate::{Scene, boxlaunch, ended};

/// A value that looks like a token, and a value that could be any word.
const CANARIES: [&str; 2] = ["ghp_canary0123456789abcdefghij", "canary"];

/// Wrong command lines. `*` is replaced by the secret, and `BOX` by the path of a box.
const LINES: [&str; 17] = [
    "run BOX --secret *",
    "run BOX --secret API_KEY=*",
    "run BOX --secret =*",
    "run BOX --secret API_KEY=value:*",
    "run BOX --secret API-KEY=*",
    "run BOX --secret id=API_KEY,src=*",
    "run BOX --json --secret API_KEY=*",
    "run BOX -e =*",
    "run BOX -e agent/=*",
    "run BOX --env==*",
    "run BOX --json -e =*",
    "run BOX -e TOKEN=*",
    "run BOX --json --env business/TOKEN=*",
    "exec nobody -e =* true",
    "exec nobody -e agent/TOKEN=* true",
    "exec --json nobody -e TOKEN=* true",
    "run --emulated BOX -e =*",
];
/// Wrong command lines, as in [`LINES`]. Here boxlaunch can recognise a secret only if it looks like one.
const WORDS: [&str; 4] =
    ["run BOX *", "run BOX --token=*", "run BOX --memory *", "run BOX --jail=*"];
/// Wrong contents of the file of `--env-file`. `*` is replaced by the secret.
const FILES: [&str; 8] = [
    "*\n",
    "API TOKEN=*\n",
    "export *\n",
    "TOKEN=\"*\n",
    "TOKEN='x' *\n",
    "TOKEN=\"\\q*\"\n",
    "TOKEN=*\nTOKEN=*\n",
    "TOKEN=*\n",
];

/// Runs a command line, and panics if its output contains the secret.
#[track_caller]
fn check(scene: &Scene, line: &str, canary: &str) {
    let place = scene.made.path().to_str().unwrap();
    let words: Vec<String> =
        line.split(' ').map(|it| it.replace("BOX", place).replace('*', canary)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut command = boxlaunch(&words);
    command.env("BOXLAUNCH_STATE", scene.state.path());
    let output = ended(command);
    assert_ne!(output.code, Some(0), "{line}: {output:?}");
    assert!(!output.stderr.is_empty() || !output.stdout.is_empty(), "{line} ends without a word");
    let shown = [output.stdout, output.stderr].concat();
    assert!(!shown.contains("canary"), "{line} shows the secret:\n{shown}");
}

#[test]
fn no_message_repeats_a_secret_of_the_command_line() {
    let scene = Scene::new(&config());
    for line in LINES {
        CANARIES.iter().for_each(|canary| check(&scene, line, canary));
    }
    WORDS.iter().for_each(|line| check(&scene, line, CANARIES[0]));
}

#[test]
fn no_message_repeats_a_value_of_a_file_of_variables() {
    let scene = Scene::new(&config());
    let file = scene.state.path().join("variables");
    for text in FILES {
        for canary in CANARIES {
            fs::write(&file, text.replace('*', canary)).unwrap();
            for line in
                ["run BOX --env-file", "run --json BOX --env-file", "exec nobody true --env-file"]
            {
                check(&scene, &format!("{line} {}", file.display()), canary);
            }
        }
    }
}
