//! The commands of the rules that ask.

use crate::call::Call;
use crate::path::Path;
use crate::shell::Word;

use super::{Found, How};

/// Programs that print their arguments, or look at names alone.
const ONLY_NAMES: [&str; 9] = ["echo", "printf", "test", "[", "ls", "mkdir", "git", "true", ":"];

pub(super) fn settings(path: &Path, _how: How) -> Found {
    path.is_settings().into()
}

pub(super) fn credential(call: Call<'_>) -> Found {
    if call.is(&ONLY_NAMES) {
        return Found::No;
    }
    let is_credential = |it: &str| call.path(it).is_credential();
    let names = |it: &Word| {
        let value = it.text.split_once('=').map(|it| it.1.trim_start_matches('@'));
        is_credential(it.text.trim_start_matches('@')) || value.is_some_and(is_credential)
    };
    call.args.iter().any(names).into()
}

/// `npm install --global` and its like, and pip without `--user`.
pub(super) fn global_install(call: Call<'_>) -> Found {
    let is_global = match call.name {
        "npm" | "pnpm" | "bun" => is_addition(call) && call.has("g", &["global", "location"]),
        "yarn" => call.verb() == "global",
        "pip" | "pipx" => call.verb() == "install" && !is_local_pip(call),
        _ => false,
    };
    is_global.into()
}

fn is_addition(call: Call<'_>) -> bool {
    ["install", "i", "add"].contains(&call.verb())
}

fn is_local_pip(call: Call<'_>) -> bool {
    let is_in_venv = call.program.text.contains("venv") || call.program.text.contains("/env/bin/");
    is_in_venv || call.has("t", &["user", "target", "prefix", "root"])
}

pub(super) fn package_install(call: Call<'_>) -> Found {
    let installs = match call.name {
        "npm" | "pnpm" | "bun" => is_addition(call),
        "yarn" | "poetry" | "uv" | "pdm" | "composer" | "conda" | "mamba" => {
            ["add", "install", "require", "tool"].contains(&call.verb()) && !is_bare(call)
        }
        "pip" => call.verb() == "install",
        "cargo" | "gem" | "bundle" => ["install", "add"].contains(&call.verb()),
        "go" => ["install", "get"].contains(&call.verb()),
        _ => false,
    };
    installs.into()
}

/// The commands that publish a package for others.
pub(super) fn publishes(call: Call<'_>) -> Found {
    let verbs: &[&str] = match call.name {
        "npm" | "pnpm" | "yarn" | "bun" => &["publish", "unpublish", "deprecate"],
        "cargo" => &["publish", "yank"],
        "poetry" | "uv" | "pdm" | "hatch" | "flit" => &["publish"],
        "gem" => &["push", "yank"],
        "twine" => &["upload"],
        _ => &[],
    };
    // `yarn npm publish` is the command of newer versions.
    let inner = call.subcommand().filter(|it| call.name == "yarn" && it.name == "npm");
    (verbs.contains(&call.verb()) || inner.is_some_and(|it| verbs.contains(&it.verb()))).into()
}

/// `yarn install` without a package installs what the project has.
fn is_bare(call: Call<'_>) -> bool {
    call.verb() == "install" && call.operands().count() == 1
}

/// Docker's commands that change something, apart from those that build.
pub(super) fn docker_container(call: Call<'_>) -> Found {
    const READS: [&str; 17] = [
        "", "ps", "images", "logs", "inspect", "version", "info", "top", "stats", "port", "events",
        "history", "diff", "search", "compose", "build", "buildx",
    ];
    (call.is(&["docker", "podman", "nerdctl"]) && !READS.contains(&call.verb())).into()
}

pub(super) fn docker_compose(call: Call<'_>) -> Found {
    const READS: [&str; 9] = ["", "ps", "logs", "config", "version", "images", "top", "ls", "port"];
    let verb = match call.name {
        "docker-compose" | "podman-compose" => call.verb(),
        "docker" | "podman" | "nerdctl" if call.verb() == "compose" => {
            call.subcommand().and_then(Call::subcommand).map_or("", |it| it.name)
        }
        _ => "",
    };
    (!READS.contains(&verb)).into()
}

pub(super) fn kubernetes(call: Call<'_>) -> Found {
    const READS: [&str; 15] = [
        "",
        "get",
        "describe",
        "logs",
        "version",
        "explain",
        "api-resources",
        "api-versions",
        "cluster-info",
        "top",
        "diff",
        "list",
        "status",
        "show",
        "template",
    ];
    (call.is(&["kubectl", "helm", "oc", "minikube", "kind"]) && !READS.contains(&call.verb()))
        .into()
}

pub(super) fn system_packages(call: Call<'_>) -> Found {
    const VERBS: [&str; 24] = [
        "install",
        "remove",
        "purge",
        "upgrade",
        "dist-upgrade",
        "full-upgrade",
        "update",
        "autoremove",
        "add",
        "del",
        "reinstall",
        "erase",
        "in",
        "rm",
        "up",
        "dup",
        "tap",
        "uninstall",
        "refresh",
        "build-dep",
        "downgrade",
        "groupinstall",
        "clean",
        "autoclean",
    ];
    const PROGRAMS: [&str; 12] = [
        "apt", "apt-get", "aptitude", "yum", "dnf", "microdnf", "apk", "zypper", "brew", "snap",
        "flatpak", "port",
    ];
    let changes = call.is(&PROGRAMS) && call.operands().any(|it| VERBS.contains(&it.text.as_str()));
    let arch =
        call.is(&["pacman", "yay", "paru"]) && call.has("SRU", &["sync", "remove", "upgrade"]);
    let files = match call.name {
        "dpkg" => call.has("irP", &["install", "remove", "purge"]),
        "rpm" => call.has_before("q", "iUeF", &["install", "upgrade", "erase"]),
        _ => false,
    };
    (changes || arch || files || call.name == "nix-env").into()
}

pub(super) fn process_kill(call: Call<'_>) -> Found {
    let only_asks =
        call.args.first().is_some_and(|it| ["-0", "-l", "-L"].contains(&it.text.as_str()));
    (call.is(&["pkill", "killall"]) || (call.name == "kill" && !only_asks)).into()
}

pub(super) fn download(call: Call<'_>) -> Found {
    let discards = call.args.windows(2).any(|it| {
        ["-o", "-O", "--output", "-qO"].contains(&it[0].known.as_str())
            && ["-", "/dev/null"].contains(&it[1].text.as_str())
    });
    let saves = match call.name {
        "wget" | "wget2" => {
            let prints = call.options().any(|it| it.ends_with("O-")) || call.has("", &["spider"]);
            !prints && !call.has("V", &["version", "help"])
        }
        "curl" => {
            let longs = ["output", "remote-name", "remote-name-all", "output-dir"];
            call.has_before("XHdFuAebTm", "oOJ", &longs)
        }
        "aria2c" | "axel" => true,
        _ => false,
    };
    (saves && !discards).into()
}

pub(super) fn service(call: Call<'_>) -> Found {
    const READS: [&str; 10] = [
        "",
        "status",
        "show",
        "cat",
        "is-active",
        "is-enabled",
        "is-failed",
        "list-units",
        "list-unit-files",
        "list-timers",
    ];
    let manages = match call.name {
        "systemctl" => !READS.contains(&call.verb()),
        "service" => call.args.get(1).is_some_and(|it| it.text != "status"),
        "rc-service" | "rc-update" | "initctl" | "launchctl" | "supervisorctl" | "chkconfig"
        | "update-rc.d" => true,
        _ => false,
    };
    manages.into()
}

pub(super) fn crontab(call: Call<'_>) -> Found {
    let edits = call.name == "crontab" && !call.has("l", &[]);
    (edits || call.is(&["at", "batch"])).into()
}

pub(super) fn mount(call: Call<'_>) -> Found {
    let mounts = call.is(&["mount", "umount"]) && !call.args.is_empty();
    let enters = ["nsenter", "chroot", "unshare", "pivot_root", "runc", "crictl", "ctr"];
    (mounts || call.is(&enters)).into()
}

/// The commands of git that delete what is not committed.
pub(super) fn git_drop(call: Call<'_>) -> Found {
    let Some(inner) = call.subcommand().filter(|_| call.name == "git") else {
        return Found::No;
    };
    let has_word = |words: &[&str]| inner.args.iter().any(|it| words.contains(&it.text.as_str()));
    let drops = match inner.name {
        "stash" => ["drop", "clear"].contains(&inner.verb()),
        "clean" => inner.has("f", &["force"]) && !inner.has("n", &["dry-run"]),
        "checkout" => has_word(&["--", ".", "-f", "--force"]),
        "restore" => !inner.has("", &["staged"]),
        "branch" | "tag" => inner.has("Dd", &["delete"]),
        "reflog" => ["expire", "delete"].contains(&inner.verb()),
        "update-ref" | "filter-branch" | "filter-repo" => true,
        _ => false,
    };
    drops.into()
}

pub(super) fn eval(call: Call<'_>) -> Found {
    (call.name == "eval").into()
}

pub(super) fn in_place(call: Call<'_>) -> Found {
    let edits = call.is(&["sed", "gsed"]) && call.has_before("ef", "i", &["in-place"]);
    (edits || edits_in_place(call)).into()
}

/// Returns whether perl or ruby edits files (`-i`).
pub(crate) fn edits_in_place(call: Call<'_>) -> bool {
    call.is(&["perl", "ruby"]) && call.has_before("MmIeErVx", "i", &[])
}

pub(super) fn background(call: Call<'_>) -> Found {
    call.is(&["nohup", "disown", "setsid", "daemonize"]).into()
}
