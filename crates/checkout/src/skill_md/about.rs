//! Checks the texts about a skill that a box records: description, version and author.

use box_contract::rules::MAX_SKILL_DESCRIPTION;

use diagnostics::{Diagnostic, Span, Spanned};

/// Returns a description as one line.
///
/// # Errors
/// Fails if the description is empty, too long, or contains control characters.
pub(super) fn description(description: Spanned<&str>) -> Result<String, Diagnostic> {
    let (message, help) = match description.value.chars().count() {
        _ if description.value.trim().is_empty() => (
            "the description is empty".to_owned(),
            "write what the skill does, and when an agent should use it",
        ),
        0..=MAX_SKILL_DESCRIPTION => {
            return line("the description", description.value, description.span);
        }
        count => (
            format!(
                "the description has {count} characters, which is more than {MAX_SKILL_DESCRIPTION}"
            ),
            "shorten it, and move the details below the frontmatter",
        ),
    };
    Err(Diagnostic::new(message, description.span, "an agent picks skills by it").with_help(help))
}

/// Returns the text of a key that a box records, with at most `most` characters.
///
/// # Errors
/// Returns an error if the text contains control characters. Returns a warning if the value is not recorded, because it
/// is empty, too long, a list or a mapping.
pub(super) fn recorded(
    key: &str,
    text: Option<&str>,
    span: Span,
    most: usize,
) -> Result<String, Diagnostic> {
    let (message, help) = match text.map(|text| (text, text.chars().count())) {
        Some((text, _)) if text.trim().is_empty() => {
            (format!("{key} is empty"), "write it, or leave the key out".to_owned())
        }
        Some((text, count)) if count <= most => return line(key, text, span),
        Some((_, count)) => (
            format!("{key} has {count} characters, which is more than {most}"),
            "shorten it".to_owned(),
        ),
        None => {
            (format!("{key} is not a text"), format!("write one, of at most {most} characters"))
        }
    };
    Err(Diagnostic::warning(message, span, "the box does not record this").with_help(help))
}

/// Joins a text into one line.
pub(super) fn line(what: &str, text: &str, span: Span) -> Result<String, Diagnostic> {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.contains(char::is_control) {
        let message = format!("{what} has a control character");
        let error = Diagnostic::new(message, span, "this is more than text");
        return Err(error.with_help("remove it: on a terminal, it could hide what is there"));
    }
    Ok(line)
}
