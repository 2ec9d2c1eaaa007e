//! The text of programs in other languages, such as `python -c TEXT`. It is not parsed: words in it tell what it does.

use crate::rules::Found;

/// Words of programs that connect to a host.
const CONNECTS: [&str; 9] = [
    "socket",
    "Socket",
    "fsockopen",
    "TCPSocket",
    "/inet/tcp",
    "/dev/tcp",
    "net.connect",
    "createConnection",
    "require('net')",
];
/// Words of programs that run other programs.
const RUNS: [&str; 15] = [
    "exec",
    "dup2",
    "subprocess",
    "popen",
    "Popen",
    "system",
    "spawn",
    "pty.",
    "/bin/sh",
    "/bin/bash",
    "child_process",
    "qx",
    "%x",
    "`",
    "shell_exec",
];
/// Words of programs that delete directories.
const DELETES: [&str; 8] =
    ["rmtree", "rm_rf", "rm_r", "rmSync", "rmdirSync", "remove_dir_all", "remove_tree", "fs.rm"];
/// Words of programs that download.
const DOWNLOADS: [&str; 8] = [
    "urlopen",
    "requests.get",
    "urlretrieve",
    "http.get",
    "https.get",
    "fetch(",
    "LWP",
    "open-uri",
];
/// Words of programs that run text.
const EVALUATES: [&str; 5] = ["exec(", "eval(", "eval ", "system(", "compile("];

/// What a program does: the built-in rule.
pub(super) type Deed = (&'static str, Found);

/// Returns the rules that match the text of a program, apart from the commands in it.
pub(super) fn deeds(text: &str, is_root: impl Fn(&str) -> bool) -> Vec<Deed> {
    let has = |words: &[&str]| words.iter().any(|it| text.contains(it));
    let literals = literals(text);
    let forks = text.contains("fork") && (text.contains("while") || text.contains("for("));
    let deletes = has(&DELETES) && literals.iter().any(|it| is_root(it));
    let decodes = text.contains("b64decode") || text.contains("decode64") || text.contains("atob(");
    let all = [
        (has(&CONNECTS) && has(&RUNS), "reverse-shell"),
        (has(&DOWNLOADS) && has(&EVALUATES), "pipe-to-shell"),
        (forks, "fork-bomb"),
        (deletes, "recursive-delete-root"),
        (decodes && has(&EVALUATES), "eval-exec"),
    ];
    all.into_iter().filter(|it| it.0).map(|(_, rule)| (rule, Found::Yes)).collect()
}

/// Returns the texts in quotes that can be commands, if the program runs other programs. One of them is the list of all of them.
pub(super) fn commands(text: &str) -> Vec<String> {
    /// The maximum number of texts that are read.
    const MAX: usize = 64;
    if !RUNS.iter().any(|it| text.contains(it)) {
        return Vec::new();
    }
    let mut all = literals(text);
    all.truncate(MAX);
    let lists: Vec<String> = (0..all.len().min(8)).map(|from| all[from..].join(" ")).collect();
    all.extend(lists);
    all
}

/// Returns the texts in quotes.
fn literals(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let (mut open, mut inner) = (None, String::new());
    let mut chars = text.chars();
    while let Some(next) = chars.next() {
        if open == Some(next) {
            open = None;
            all.push(std::mem::take(&mut inner));
        } else if open.is_some() {
            inner.extend(if next == '\\' { chars.next() } else { Some(next) });
        } else if "'\"`".contains(next) {
            open = Some(next);
        }
    }
    all
}
