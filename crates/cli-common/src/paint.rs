//! Colours for errors and warnings on a terminal, the same as in rustc and cargo.
//!
//! They are added as the last step, to a text that is complete and safe to print, so that a quoted
//! text can neither set nor end a colour. The form of a line shows its role: message, gutter,
//! underline, or help.

use std::borrow::Cow;

use anstyle::{AnsiColor, Style};

const ERROR: Style = AnsiColor::BrightRed.on_default().bold();
const WARNING: Style = AnsiColor::BrightYellow.on_default().bold();
const NOTE: Style = AnsiColor::BrightGreen.on_default().bold();
const GUTTER: Style = AnsiColor::BrightBlue.on_default().bold();
const BOLD: Style = Style::new().bold();

/// The words that begin a message, with their colours.
const HEADS: [(&str, Style); 3] = [("error", ERROR), ("warning", WARNING), ("note", NOTE)];

/// Adds colours to the lines of errors, warnings and notes. Other lines stay as they are.
pub fn paint(text: &str) -> String {
    let mut severity = ERROR;
    let mut lines = Vec::new();
    for line in text.split('\n') {
        if let Some((word, style, rest)) = head(line) {
            severity = style;
            lines.push(Cow::Owned(painted_head(word, style, rest)));
        } else {
            lines.push(painted_line(line, severity));
        }
    }
    lines.join("\n")
}

/// Splits the first line of a message into its first word, the word's colour, and the rest.
fn head(line: &str) -> Option<(&'static str, Style, &str)> {
    HEADS.into_iter().find_map(|(word, style)| {
        let rest = line.strip_prefix(word)?.strip_prefix(": ")?;
        Some((word, style, rest))
    })
}

fn painted_head(word: &str, style: Style, rest: &str) -> String {
    if style == NOTE {
        return format!("{}: {rest}", styled(style, word));
    }
    format!("{}{}", styled(style, word), styled(BOLD, &format!(": {rest}")))
}

/// Paints a line below the head. `severity` is the colour of its message.
fn painted_line(line: &str, severity: Style) -> Cow<'_, str> {
    let body = line.trim_start_matches([' ', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    let margin = &line[..line.len() - body.len()];
    if line == "..." {
        return styled(GUTTER, line).into();
    }
    // A line without a margin is no part of a snippet.
    if !margin.starts_with(' ') {
        return line.into();
    }
    if let Some(help) = body.strip_prefix("= help:") {
        return format!("{margin}{} {}{help}", styled(GUTTER, "="), styled(BOLD, "help:")).into();
    }
    if let Some(place) = body.strip_prefix("-->").or_else(|| body.strip_prefix(":::")) {
        return format!("{}{place}", styled(GUTTER, &line[..margin.len() + 3])).into();
    }
    let Some(source) = body.strip_prefix('|') else { return line.into() };
    let gutter = styled(GUTTER, &line[..=margin.len()]);
    let has_number = margin.trim() != "";
    format!("{gutter}{}", if has_number { source.into() } else { painted_mark(source, severity) })
        .into()
}

/// Paints an underline with its label. `^` marks the primary span, `-` another one.
fn painted_mark(line: &str, severity: Style) -> Cow<'_, str> {
    let mark = line.trim_start();
    let style = match mark.chars().next() {
        Some('^') => severity,
        Some('-') => GUTTER,
        _ => return line.into(),
    };
    format!("{}{}", &line[..line.len() - mark.len()], styled(style, mark)).into()
}

fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replaces styles by words, so that they are legible.
    fn shown(text: &str) -> String {
        let named = [
            (ERROR, "<error>"),
            (WARNING, "<warning>"),
            (NOTE, "<note>"),
            (GUTTER, "<gutter>"),
            (BOLD, "<bold>"),
        ];
        let text = named.iter().fold(paint(text), |text, (style, name)| {
            text.replace(&style.render().to_string(), name)
        });
        text.replace(&BOLD.render_reset().to_string(), "</>")
    }

    #[test]
    fn a_diagnostic_has_colours() {
        let text = "error: unknown declaration `agnet`\n  --> Boxfile:3:1\n   |\n 3 | agnet {\n   \
                    | ^^^^^ no such declaration\n...\n 12 | x\n   | - here\n   |\n   = help: did \
                    you mean `agent`?\n     or not";
        insta::assert_snapshot!(shown(text), @"
        <error>error</><bold>: unknown declaration `agnet`</>
        <gutter>  --></> Boxfile:3:1
        <gutter>   |</>
        <gutter> 3 |</> agnet {
        <gutter>   |</> <error>^^^^^ no such declaration</>
        <gutter>...</>
        <gutter> 12 |</> x
        <gutter>   |</> <gutter>- here</>
        <gutter>   |</>
           <gutter>=</> <bold>help:</> did you mean `agent`?
             or not
        ");
    }

    #[test]
    fn warnings_notes_and_other_lines() {
        let text = "warning: odd\n   | ^ this\nnote: using ../Boxfile\nbuilt: x.box | error: y";
        insta::assert_snapshot!(shown(text), @"
        <warning>warning</><bold>: odd</>
        <gutter>   |</> <warning>^ this</>
        <note>note</>: using ../Boxfile
        built: x.box | error: y
        ");
    }

    #[test]
    fn a_source_line_cannot_pretend_to_be_a_message() {
        let text = "error: m\n 1 | error: forged ^^^";
        let painted = shown(text);
        assert!(painted.ends_with("</> error: forged ^^^"), "{painted}");
    }

    #[test]
    fn nothing_but_colours_is_added() {
        let text = "error: a\n  --> b:1:1\n   |\n 1 | c\n   | ^ d\n   = help: e\n\nplain";
        let mut painted = paint(text);
        while let Some(start) = painted.find('\u{1b}') {
            let end = start + painted[start..].find('m').unwrap();
            painted.replace_range(start..=end, "");
        }
        assert_eq!(painted, text);
    }
}
