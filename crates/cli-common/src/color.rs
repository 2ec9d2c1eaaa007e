//! The option `--color`: when messages have colours, and which terminals can clear a line.

use std::ffi::OsString;

use clap::{ColorChoice, ValueEnum as _};

/// The variables that `--color=auto` follows, for a program's manual.
pub const VARIABLES: (&str, &str) =
    ("NO_COLOR, CLICOLOR_FORCE", "Whether messages have colours, unless `--color` says so.");

/// The text that moves to the start of the line and erases the line, on a terminal that is not [dumb](is_dumb).
pub const CLEAR_LINE: &str = "\r\x1b[K";

/// Returns whether the terminal type in `TERM` supports neither colours nor [`CLEAR_LINE`].
pub fn is_dumb(terminal: Option<OsString>) -> bool {
    terminal.is_some_and(|it| it == "dumb")
}

/// The option `--color`, of every command.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Global options")]
pub struct ColorOption {
    /// Colour messages: auto, always or never. auto follows NO_COLOR and CLICOLOR_FORCE
    #[arg(
        long,
        value_name = "WHEN",
        global = true,
        default_value = "auto",
        hide_possible_values = true
    )]
    color: ColorChoice,
}

impl ColorOption {
    /// Returns whether messages have colours. `--color=auto` depends on whether the messages are written to a terminal,
    /// and on variables that cargo also follows: <https://no-color.org>, <https://bixense.com/clicolors>.
    pub fn has_colour(
        self,
        to_terminal: bool,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> bool {
        let set = |name| variable(name).filter(|value| !value.is_empty());
        let forced = set("CLICOLOR_FORCE").is_some_and(|value| value != "0");
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto if set("NO_COLOR").is_some() => false,
            ColorChoice::Auto => forced || (to_terminal && !is_dumb(set("TERM"))),
        }
    }
}

/// Returns the `--color` of a command line that is not parsed yet, for its help and its usage errors.
pub fn color_of(args: impl IntoIterator<Item = String>) -> ColorChoice {
    let mut args = args.into_iter().take_while(|arg| arg != "--");
    let named = args.by_ref().find_map(|arg| match arg.strip_prefix("--color") {
        Some("") => Some(None),
        Some(rest) => rest.strip_prefix('=').map(|value| Some(value.to_owned())),
        None => None,
    });
    let value = named.and_then(|value| value.or_else(|| args.next()));
    value.and_then(|value| ColorChoice::from_str(&value, false).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_overrides_the_variables_and_these_the_terminal() {
        let has = |color, to_terminal, set: &[(&str, &str)]| {
            let find = |name: &str| set.iter().find(|it| it.0 == name).map(|it| it.1.into());
            ColorOption { color }.has_colour(to_terminal, find)
        };
        let (always, never, auto) = (ColorChoice::Always, ColorChoice::Never, ColorChoice::Auto);
        assert!(has(always, false, &[("NO_COLOR", "1")]));
        assert!(!has(never, true, &[("CLICOLOR_FORCE", "1")]));
        assert!(has(auto, true, &[]) && !has(auto, false, &[]));
        assert!(has(auto, false, &[("CLICOLOR_FORCE", "1"), ("TERM", "dumb")]));
        for set in [("TERM", "dumb"), ("NO_COLOR", "1")] {
            assert!(!has(auto, true, &[set]), "{set:?}");
        }
        assert!(has(auto, true, &[("NO_COLOR", "")]), "set to nothing");
        for set in [("CLICOLOR_FORCE", "0"), ("CLICOLOR_FORCE", "")] {
            assert!(!has(auto, false, &[set]), "{set:?}");
        }
    }

    #[test]
    fn a_dumb_terminal_is_known_by_its_type() {
        assert!(is_dumb(Some("dumb".into())));
        assert!(!is_dumb(Some("xterm-256color".into())) && !is_dumb(None));
    }

    #[test]
    fn the_colour_is_found_before_the_command_line_is_read() {
        let of = |line: &str| color_of(line.split(' ').map(str::to_owned));
        assert_eq!(of("boxbuild --color never --help"), ColorChoice::Never);
        assert_eq!(of("boxbuild check --color=always"), ColorChoice::Always);
        for auto in
            ["boxbuild", "boxbuild --color", "boxbuild --color=x", "boxbuild -- --color=always"]
        {
            assert_eq!(of(auto), ColorChoice::Auto, "{auto}");
        }
    }
}
