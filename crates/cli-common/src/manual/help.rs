//! Splits the help that follows a command's options into its parts.

use clap::Command;

/// The paragraphs of the help after the options.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Help {
    /// The lines of the examples, without their indentation.
    pub(crate) examples: Vec<String>,
    /// All other lines, without the exit codes, which have a separate section.
    pub(crate) notes: Vec<String>,
}

impl Help {
    /// Splits the help of a command.
    pub(crate) fn of(command: &Command) -> Self {
        let help = command.get_after_long_help().or_else(|| command.get_after_help());
        help.map_or_else(Self::default, |text| Self::parse(&text.to_string()))
    }

    fn parse(text: &str) -> Self {
        let mut help = Self::default();
        for paragraph in text.split("\n\n") {
            let (head, rest) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
            match head {
                "Example:" | "Examples:" => help.examples.extend(rest.lines().map(outdented)),
                "Exit codes:" => {}
                _ => {
                    let between = (!help.notes.is_empty()).then(String::new);
                    help.notes.extend(between.into_iter().chain(paragraph.lines().map(outdented)));
                }
            }
        }
        help
    }
}

/// Removes the two spaces by which the help indents a line.
fn outdented(line: &str) -> String {
    line.strip_prefix("  ").unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_help_has_examples_and_notes() {
        let text = "Exit codes:\n  0   done\n\nExamples:\n  a b\n    c\n\nOne\n  two.\n\nThree.";
        let help = Help::parse(text);
        assert_eq!(help.examples, ["a b", "  c"]);
        assert_eq!(help.notes, ["One", "two.", "", "Three."]);
        assert_eq!(Help::of(&Command::new("x")), Help::default());
    }
}
