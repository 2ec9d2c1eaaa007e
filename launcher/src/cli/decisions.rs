//! Tests which options of a command can be combined. A command line is refused if one of its options has no effect, because the
//! caller expects an effect. The table of `run` is in `run/modes.rs`.

use std::collections::BTreeSet;

use clap::{CommandFactory as _, Parser as _};

use super::{Cli, Command};

/// An option: its id, the words that set it, and the options of the same command that it conflicts with.
type Decision = (&'static str, &'static [&'static str], &'static [&'static str]);

/// A command: its words, the words after its options, and its options.
type Row = (&'static str, &'static [&'static str], &'static [Decision]);

const JSON: Decision = ("json", &["--json"], &[]);
const STORE: Decision = ("store", &["--store", "s"], &[]);
const IN_AGENT: Decision = ("component", &["--component", "agent"], &[]);
const USER: Decision = ("user", &["-u", "app"], &[]);
const TIMEOUT: Decision = ("timeout", &["--timeout", "5"], &[]);
const SESSION: Decision = ("session", &["--session", "s"], &[]);
const EVENTS: Decision = ("events", &["--events"], &["json"]);
const OUTPUT: Decision = ("output", &["--output", "d"], &[]);

const DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

/// Each command with each option. A new option needs an entry here, with its conflicts.
const ROWS: &[Row] = &[
    (
        "ps",
        &[],
        &[
            ("all", &["--all"], &["all_users"]),
            ("all_users", &["--all-users"], &["all", "names", "filters"]),
            ("filters", &["--filter", "name=x"], &["all_users"]),
            ("names", &["-n"], &["json", "all_users"]),
            ("json", &["--json"], &["names"]),
        ],
    ),
    (
        "exec",
        &["x", "true"],
        &[
            ("json", &["--json"], &["raw", "tty", "detach", "as_detached"]),
            ("raw", &["--raw"], &["json", "max_output", "detach", "as_detached"]),
            ("detach", &["-d"], &["json", "raw", "interactive", "tty", "max_output"]),
            (
                "as_detached",
                &["-d", "--as-detached"],
                &["json", "raw", "interactive", "tty", "max_output"],
            ),
            IN_AGENT,
            ("env", &["-e", "A=1"], &[]),
            ("env_files", &["--env-file", "f"], &[]),
            ("interactive", &["-i"], &["detach", "as_detached"]),
            ("tty", &["-i", "-t"], &["json", "max_output", "detach", "as_detached"]),
            ("workdir", &["-w", "/tmp"], &[]),
            USER,
            TIMEOUT,
            (
                "max_output",
                &["--json", "--max-output", "7"],
                &["raw", "tty", "detach", "as_detached"],
            ),
        ],
    ),
    ("shell", &["x"], &[IN_AGENT, USER]),
    ("attach", &["x"], &[("raw", &["--raw"], &[])]),
    (
        "logs",
        &["x"],
        &[
            ("follow", &["-f"], &[]),
            ("since", &["--since", "1h"], &[]),
            ("tail", &["-n", "3"], &["all"]),
            ("timestamps", &["-t"], &["all", "json"]),
            ("component", &["--component", "business"], &["all"]),
            // `--all` prints JSON in any case, so the combination with `--json` is accepted.
            ("all", &["--task"], &["component", "raw", "tail", "timestamps"]),
            ("json", &["--json"], &["raw", "timestamps"]),
            ("raw", &["--raw"], &["all", "json"]),
        ],
    ),
    ("cp", &["a", "x:b"], &[IN_AGENT, USER, JSON]),
    ("ls", &["x:b"], &[IN_AGENT, USER, JSON]),
    ("mcp", &["x"], &[]),
    ("health", &["x"], &[("component", &["--component", "business"], &[]), TIMEOUT, JSON]),
    ("skills", &["x"], &[JSON]),
    ("skills x ls", &[], &[JSON]),
    ("skills x load", &["d"], &[JSON]),
    ("skills x unload", &["s"], &[JSON]),
    ("network", &["x"], &[JSON]),
    ("network x show", &[], &[JSON]),
    ("network x allow", &["a.example.com"], &[JSON]),
    ("network x deny", &["a.example.com"], &[JSON]),
    ("network x reload", &["x.box"], &[JSON, STORE]),
    ("approvals", &["x"], &[("follow", &["--follow"], &[]), JSON]),
    ("approve", &["x"], &[("always", &["--always"], &[]), JSON]),
    ("deny", &["x"], &[JSON]),
    (
        "task",
        &["x"],
        &[
            ("result", &["--result"], &["json"]),
            ("raw", &["--result", "--raw"], &["json"]),
            ("json", &["--json"], &["result", "raw"]),
        ],
    ),
    ("agent health", &["x"], &[TIMEOUT, JSON]),
    ("agent capabilities", &["x"], &[TIMEOUT, JSON]),
    ("agent skills", &["x"], &[TIMEOUT, JSON, SESSION]),
    (
        "agent generate",
        &["x", "p"],
        &[TIMEOUT, ("json", &["--json"], &["events"]), EVENTS, SESSION],
    ),
    ("agent session create", &["x"], &[TIMEOUT, JSON, SESSION]),
    ("agent session list", &["x"], &[TIMEOUT, JSON]),
    (
        "agent session send",
        &["x", "s", "p"],
        &[TIMEOUT, ("json", &["--json"], &["events"]), EVENTS],
    ),
    ("agent session events", &["x", "s"], &[TIMEOUT, JSON]),
    (
        "agent session confirm",
        &["x", "s", "t"],
        &[TIMEOUT, JSON, ("deny", &["--deny"], &[]), ("reason", &["--reason", "r"], &[])],
    ),
    (
        "agent session cancel",
        &["x", "s"],
        &[TIMEOUT, JSON, ("operation", &["--operation", "o"], &[])],
    ),
    ("agent session close", &["x", "s"], &[TIMEOUT, JSON]),
    // `--no-stream` is a hidden option for users of docker. `stats` never streams.
    ("stats", &["x"], &[("no_stream", &["--no-stream"], &[]), JSON]),
    ("metrics", &[], &[("all_users", &["--all-users"], &[])]),
    ("port", &["x"], &[JSON, ("publish", &["-p", "1:1"], &[])]),
    ("events", &[], &[("since", &["--since", "1h"], &[]), JSON]),
    (
        "update",
        &["x", "x.box"],
        &[
            ("expect", &["--expect", DIGEST], &[]),
            ("pull", &["--pull", "never"], &[]),
            ("registry_config", &["--registry-config", "r"], &[]),
            ("drain", &["--drain", "3"], &[]),
            ("retry", &["--retry"], &[]),
            ("accept", &["--accept"], &[]),
            ("next", &["--next"], &["json"]),
            ("json", &["--json"], &["next"]),
            STORE,
        ],
    ),
    ("stop", &["x"], &[("grace", &["-t", "3"], &[]), JSON]),
    ("start", &["x"], &[JSON, STORE]),
    ("restart", &["x"], &[("grace", &["--grace", "3"], &[]), JSON, STORE]),
    (
        "kill",
        &["x"],
        &[("signal", &["--signal", "HUP"], &["nine"]), ("nine", &["-9"], &["signal"]), JSON],
    ),
    ("wait", &["x"], &[JSON]),
    ("rm", &["x"], &[("force", &["--force"], &[]), ("all_data", &["--all-data"], &[]), JSON]),
    (
        "up",
        &[],
        &[
            ("subject", &["--box", "b"], &[]),
            ("from", &["--from", "s"], &["disk"]),
            ("accept", &["--accept"], &[]),
            ("forget", &["--forget"], &[]),
            ("writable_git", &["--writable-git"], &[]),
            ("registry_config", &["--registry-config", "r"], &[]),
            ("idle", &["--idle", "9"], &[]),
            ("cpus", &["--cpus", "1"], &[]),
            ("memory", &["--memory", "1GiB"], &[]),
            ("disk", &["--disk", "1GiB"], &["from"]),
            ("env", &["-e", "A=b"], &[]),
            ("env_files", &["--env-file", "f"], &[]),
            ("secrets", &["--secret", "K"], &[]),
            ("ssh_agent", &["--ssh-agent"], &[]),
            ("shares", &["-v", "./a:/a"], &[]),
            ("skills", &["--skill", "s=d"], &[]),
            ("skill_dirs", &["--skills", "d"], &[]),
            ("volumes", &["--volume", "v:/v"], &[]),
            ("network", &["--network", "none"], &[]),
            ("network_local", &["--network-local", "127.0.0.1"], &[]),
            ("proxy", &["--proxy", "env"], &[]),
            ("published", &["-p", "1:1"], &[]),
            JSON,
            STORE,
        ],
    ),
    ("down", &[], &[("grace", &["-t", "3"], &[]), JSON]),
    ("reset", &["x"], &[("grace", &["-t", "3"], &[]), JSON, STORE]),
    ("snapshot create", &["x"], &[JSON, STORE]),
    ("snapshot ls", &[], &[JSON]),
    ("snapshot rm", &["s"], &[JSON]),
    ("volume create", &["v"], &[("size", &["--size", "1GiB"], &[]), JSON]),
    ("volume ls", &[], &[JSON]),
    ("volume inspect", &["v"], &[JSON]),
    ("volume rm", &["v"], &[JSON]),
    (
        "verify",
        &["x.box"],
        &[
            ("keys", &["--key=k.pub"], &[]),
            // Alone, `--bundle` is refused: it needs a key.
            ("bundles", &["--key=k.pub", "--bundle=b.json"], &[]),
            JSON,
            STORE,
        ],
    ),
    ("inspect", &["x.box"], &[JSON, STORE]),
    ("check-command", &["x.box", "--", "ls"], &[JSON, STORE]),
    ("images", &[], &[("all", &["--all"], &[]), ("sizes", &["--sizes"], &[]), JSON, STORE]),
    (
        "pull",
        &["ghcr.io/a:1"],
        &[
            ("expect", &["--expect", DIGEST], &[]),
            ("dry_run", &["--dry-run"], &[]),
            ("for_start", &["--for-start"], &[]),
            ("aside", &["--aside"], &[]),
            ("registry_config", &["--registry-config", "r"], &[]),
            JSON,
            STORE,
        ],
    ),
    ("rmi", &["hello"], &[("force", &["--force"], &[]), JSON, STORE]),
    (
        "prune",
        &[],
        &[
            ("max_size", &["--max-size", "5G"], &[]),
            ("older_than", &["--older-than", "7d"], &[]),
            ("dry_run", &["--dry-run"], &[]),
            JSON,
            STORE,
        ],
    ),
    ("save", &["x"], &[OUTPUT, JSON, STORE]),
    ("load", &["x.tar"], &[("replace", &["--replace"], &[]), JSON, STORE]),
    ("doctor", &[], &[JSON]),
    ("completions", &["bash"], &[]),
    ("man", &[], &[OUTPUT]),
];

/// The options of every command, which control how it prints.
const GLOBAL: [&str; 2] = ["quiet", "color"];

/// The commands whose `--all` replaces the names. [`all_boxes_are_meant_instead_of_names`] tests it.
const ALL_OR_NAMES: [&str; 2] = ["stop", "rm"];

/// Lists the subcommands of `command`, each as its words and the ids of its options. The list includes commands whose subcommand
/// is optional, such as `skills`. The words of their subcommands contain the name of a box, as in `skills x load`.
fn commands(command: &clap::Command, words: &str) -> Vec<(String, BTreeSet<String>)> {
    let below = || command.get_subcommands().filter(|it| !["help", "run"].contains(&it.get_name()));
    let mut all = Vec::new();
    if !command.is_subcommand_required_set() || below().next().is_none() {
        let options = command.get_arguments().filter(|it| !it.is_positional());
        let ids = options.map(|it| it.get_id().to_string());
        let ids =
            ids.filter(|it| !GLOBAL.contains(&&**it) && !["help", "version"].contains(&&**it));
        let ids = ids.filter(|it| it != "all" || !ALL_OR_NAMES.contains(&words));
        all.push((words.to_owned(), ids.collect()));
    }
    let name = if command.get_positionals().next().is_some() { " x" } else { "" };
    for each in below() {
        let words = format!("{words}{name} {}", each.get_name());
        all.extend(commands(each, words.trim_start()));
    }
    all
}

/// Parses a command line and returns its debug form, or `None` if it is refused. An option that several decisions share, such as
/// `--json`, is passed once.
fn read(row: &Row, options: &[&Decision]) -> Option<String> {
    let mut given: Vec<&str> = Vec::new();
    for word in options.iter().flat_map(|it| it.1) {
        if !(word.starts_with('-') && given.contains(word)) {
            given.push(word);
        }
    }
    let words = ["boxlaunch"].into_iter().chain(row.0.split(' ')).chain(given);
    let read = Cli::try_parse_from(words.chain(row.1.iter().copied())).ok()?.command;
    assert!(!matches!(read, Command::Run(_)));
    Some(format!("{read:?}"))
}

#[test]
fn every_option_of_every_command_has_an_effect_or_is_refused() {
    let mut whole = Cli::command();
    whole.build();
    let mut found = commands(&whole, "");
    found.retain(|(words, _)| !words.is_empty());
    let of_row = |(words, _, options): &Row| {
        ((*words).to_owned(), options.iter().map(|it| it.0.to_owned()).collect())
    };
    let mut decided: Vec<(String, BTreeSet<String>)> = ROWS.iter().map(of_row).collect();
    found.sort();
    decided.sort();
    assert_eq!(found, decided, "decide what a new option is refused with");
    for row in ROWS {
        let without = read(row, &[]).unwrap_or_else(|| panic!("{} is refused", row.0));
        for one in row.2 {
            let alone = read(row, &[one]).unwrap_or_else(|| panic!("{} {}", row.0, one.0));
            assert_ne!(alone, without, "{} {} has no effect", row.0, one.0);
            for other in row.2.iter().filter(|it| it.0 != one.0) {
                let both = read(row, &[one, other]);
                let is_refused = one.2.contains(&other.0);
                assert_eq!(both.is_none(), is_refused, "{} {} {}: {both:?}", row.0, one.0, other.0);
            }
        }
    }
}

#[test]
fn all_boxes_are_meant_instead_of_names() {
    for command in ALL_OR_NAMES {
        let is_read = |words: &[&str]| {
            let words = ["boxlaunch", command].into_iter().chain(words.iter().copied());
            Cli::try_parse_from(words).is_ok()
        };
        assert!(is_read(&["--all"]) && is_read(&["x"]), "{command}");
        assert!(!is_read(&["--all", "x"]), "{command}");
        assert!(is_read(&[]), "{command}: the environment of the current directory");
    }
}
