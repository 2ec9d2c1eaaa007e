//! The subcommands beside `build`, `lock` and `update`, and what all have in common.

mod check;
mod files;
mod format;
mod generated;
mod init;

/// Every subcommand.
const COMMANDS: [&str; 12] = [
    "init",
    "check",
    "build",
    "lock",
    "update",
    "ls",
    "diff",
    "inspect",
    "fmt",
    "schema",
    "completions",
    "man",
];
