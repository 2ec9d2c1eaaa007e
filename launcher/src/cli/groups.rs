//! `boxlaunch --help`: the commands in groups.

use clap::Command;

/// The groups of the commands, in the order in which a box is used.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Start boxes", &["run", "start", "restart", "update"]),
    ("The environment of a project", &["up", "down", "reset", "snapshot"]),
    (
        "Work in a running box",
        &[
            "exec",
            "shell",
            "attach",
            "cp",
            "ls",
            "task",
            "agent",
            "mcp",
            "skills",
            "network",
            "approvals",
            "approve",
            "deny",
            "health",
        ],
    ),
    ("Look at boxes", &["ps", "logs", "stats", "events", "port", "inspect", "check-command"]),
    ("End boxes", &["stop", "kill", "wait", "rm"]),
    ("Boxes in the store", &["images", "pull", "load", "save", "verify", "rmi", "prune"]),
    ("This host", &["volume", "doctor", "metrics", "completions", "man", "help"]),
];

/// Lists the commands of the program in groups in its help.
pub(super) fn grouped(command: Command) -> Command {
    let groups = text(&command);
    command.help_template(format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{}{{options}}{{after-help}}",
        heading(&Command::new("options"), "Options")
    ))
}

/// Returns the groups with their commands.
fn text(command: &Command) -> String {
    let mut command = command.clone();
    // Adds the command `help`.
    command.build();
    let widest = command.get_subcommands().map(|it| it.get_name().len()).max().unwrap_or_default();
    let literal = command.get_styles().get_literal();
    let line = |name: &&str| {
        let about = command.find_subcommand(name)?.get_about()?.to_string();
        Some(format!("  {literal}{name}{literal:#}{:1$}  {about}\n", "", widest - name.len()))
    };
    let group = |(title, names): &(&str, &[&str])| {
        heading(&command, title) + &names.iter().filter_map(line).collect::<String>() + "\n"
    };
    GROUPS.iter().map(group).collect()
}

fn heading(command: &Command, title: &str) -> String {
    let header = command.get_styles().get_header();
    format!("{header}{title}:{header:#}\n")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use crate::cli::Cli;

    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let mut command = Cli::command();
        command.build();
        let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
        let mut all: Vec<_> = shown.map(|it| it.get_name().to_owned()).collect();
        let mut listed: Vec<_> =
            GROUPS.iter().flat_map(|it| it.1).map(ToString::to_string).collect();
        all.sort();
        listed.sort();
        assert_eq!(listed, all);
    }

    #[test]
    fn the_help_begins_with_what_starts_a_box() {
        let help = grouped(Cli::command()).render_help().to_string();
        let (head, rest) = help.split_once("Start boxes:\n").unwrap();
        insta::assert_snapshot!(head, @"
        Runs boxes: bootable images for AI agents, built by boxbuild

        Usage: boxlaunch [OPTIONS] <COMMAND>
        ");
        assert!(rest.starts_with("  run            Boots a box"), "{rest}");
        assert!(rest.contains("\n\nOptions:\n  -q, --quiet"), "{rest}");
        assert!(rest.contains("\n\nExit codes:\n"), "{rest}");
        assert!(!rest.contains('{'), "{rest}");
    }
}
