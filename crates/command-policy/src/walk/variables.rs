//! The variables that decide which program runs, or what a program does.

/// Variables that make a program run another one, or that choose its settings.
const DECIDING: [&str; 42] = [
    "PATH",
    "IFS",
    "ENV",
    "BASH_ENV",
    "BASHOPTS",
    "SHELLOPTS",
    "SHELL",
    "PROMPT_COMMAND",
    "PS4",
    "CDPATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "MANPAGER",
    "LESSOPEN",
    "BROWSER",
    "SUDO_ASKPASS",
    "SSH_ASKPASS",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONBREAKPOINT",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PERL5OPT",
    "PERL5LIB",
    "PERL5DB",
    "RUBYOPT",
    "RUBYLIB",
    "GEM_PATH",
    "JAVA_TOOL_OPTIONS",
    "RUSTC",
    "RUSTDOC",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "CARGO_HOME",
    "MAKEFLAGS",
    "GOFLAGS",
    "GLIBC_TUNABLES",
    "TAR_OPTIONS",
];
/// The beginnings of the names of such variables.
const BEGINNINGS: [&str; 4] = ["LD_", "GIT_", "BASH_FUNC_", "npm_config_"];
/// Variables of git that only change names, times and what it prints.
const OF_COMMITS: [&str; 5] =
    ["GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_TERMINAL_PROMPT", "GIT_TRACE", "GIT_OPTIONAL_LOCKS"];

/// Returns whether a variable decides which program runs, or what a program does.
pub(super) fn is_deciding(name: &str) -> bool {
    let begins = |all: &[&str]| all.iter().any(|it| name.starts_with(it));
    DECIDING.contains(&name) || (begins(&BEGINNINGS) && !begins(&OF_COMMITS))
}

/// Returns whether a text sets such a variable: `NAME=VALUE`.
pub(super) fn sets_deciding(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| is_deciding(name))
}
