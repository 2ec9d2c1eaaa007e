//! Tests of the subcommands other than `build`, `lock` and `update`, and of what all subcommands share.

mod annotations;
mod canary;
mod check;
mod check_images;
mod consent;
mod files;
mod format;
mod generated;
mod global;
mod init;
mod setup;

/// Every subcommand.
const COMMANDS: [&str; 29] = [
    "budget",
    "init",
    "check",
    "build",
    "plan",
    "lock",
    "update",
    "fetch",
    "push",
    "pull",
    "gc",
    "save",
    "load",
    "sign",
    "attest",
    "keygen",
    "verify",
    "ls",
    "cat",
    "diff",
    "why",
    "export",
    "inspect",
    "report",
    "fmt",
    "setup",
    "schema",
    "completions",
    "man",
];
