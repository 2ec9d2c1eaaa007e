//! Reads a page of the documentation: its commands, and the output that it shows for them.

use crate::scenario::Step;

/// A command of the page.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) command: String,
    /// The lines of the command's output that the page shows. Other lines may be printed in between.
    pub(crate) output: Vec<String>,
}

/// Returns the lines of all code blocks of a language, such as `kdl`.
pub(crate) fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}");
    let mut lines = page.lines();
    let mut found = Vec::new();
    while lines.any(|line| line == fence) {
        found.extend(lines.by_ref().take_while(|line| *line != "```"));
    }
    found
}

/// Returns the commands in the `console` blocks of a page. `$ ` begins a command, `> ` continues it, and other lines are its
/// output.
pub(crate) fn commands(page: &str) -> Vec<Shown> {
    let mut found: Vec<Shown> = Vec::new();
    for line in blocks(page, "console") {
        if let Some(command) = line.strip_prefix("$ ") {
            found.push(Shown { command: command.to_owned(), output: Vec::new() });
        } else if let Some(more) = line.strip_prefix('>') {
            let more = more.strip_prefix(' ').unwrap_or(more);
            let command = &mut found.last_mut().unwrap().command;
            *command = format!("{command}\n{more}");
        } else {
            found.last_mut().unwrap().output.push(line.to_owned());
        }
    }
    found
}

/// Returns the commands of a page as one script for the virtual host. The script runs in the new directory `/tmp/page`, runs
/// `before` first, and prints `----` between two commands.
pub(crate) fn script(page: &str, before: &str) -> String {
    let commands: Vec<_> = commands(page).into_iter().map(|it| it.command).collect();
    format!("mkdir /tmp/page; cd /tmp/page\n{before}\n{}", commands.join("\necho ----\n"))
}

/// Checks that the script of a page has printed the output that the page shows. A command for which the page shows no
/// output must print none.
pub(crate) fn assert_page(page: &str, step: &Step) {
    let shown = commands(page);
    let parts: Vec<_> = step.stdout.split("----\n").collect();
    assert_eq!(parts.len(), shown.len(), "{step:?}");
    assert!(parts.len() > 1, "a page without commands");
    for (shown, output) in shown.iter().zip(parts) {
        assert!(
            !shown.output.is_empty() || output.is_empty(),
            "{}\nprints {output}",
            shown.command
        );
        assert_shown(shown, output);
    }
}

/// Checks that `output` contains the lines that the page shows, in this order. A `…` at a line's end matches any text;
/// `sha256:…` matches a digest.
pub(crate) fn assert_shown(shown: &Shown, output: &str) {
    let mut lines = output.lines();
    for expected in &shown.output {
        let found = lines.any(|line| match expected.as_str() {
            "sha256:…" => line.parse::<box_digest::Digest>().is_ok(),
            text => text.strip_suffix('…').map_or(line == text, |start| line.starts_with(start)),
        });
        assert!(found, "{}\nprints no line {expected:?}:\n{output}", shown.command);
    }
}
