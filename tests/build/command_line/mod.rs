//! The subcommands beside `build`, `lock` and `update`, and what all have in common.

mod check;
mod files;
mod format;
mod generated;
mod init;

/// Every subcommand.
const COMMANDS: [&str; 15] = [
    "init",
    "check",
    "build",
    "plan",
    "lock",
    "update",
    "ls",
    "cat",
    "diff",
    "export",
    "inspect",
    "fmt",
    "schema",
    "completions",
    "man",
];
