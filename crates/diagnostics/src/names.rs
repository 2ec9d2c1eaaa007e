//! The errors of malformed names, with suggestions.

use box_contract::rules::{MAX_NAME, NAME_FORM, VARIABLE_FORM, is_name, is_variable};
use safe_text::quote;
use safe_text::secrets::looks_secret;

use crate::{Diagnostic, Span};

/// Returns the error for a text that is not a name. `write` formats the suggested name for the help.
pub fn name_error(text: &str, span: Span, write: impl Fn(&str) -> String) -> Diagnostic {
    // In lower case, a key would no longer be recognized as a secret and masked.
    let intended = intended_name(text).filter(|_| !looks_secret("", text));
    let help = intended.map_or_else(
        || NAME_FORM.to_owned(),
        |intended| format!("{NAME_FORM}; write {}", write(&intended)),
    );
    let message = format!("{} is not a valid name", quote(text));
    Diagnostic::new(message, span, "not a name").with_help(help)
}

/// Returns a similar valid name: `My Agent` → `my-agent`.
pub fn intended_name(text: &str) -> Option<String> {
    let mapped: String = text
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .take(MAX_NAME)
        .collect();
    let name = mapped.trim_matches('-').to_owned();
    is_name(&name).then_some(name)
}

/// Checks that the text at a span is a valid name of an environment variable.
pub fn check_variable(name: &str, span: Span) -> Result<(), Diagnostic> {
    if is_variable(name) {
        return Ok(());
    }
    let message = format!("{} cannot name an environment variable", quote(name));
    let error = Diagnostic::new(message, span, "not a variable's name");
    Err(error.with_help(format!("a variable's name {VARIABLE_FORM}")))
}

/// Returns the message about a variable or option whose value [`looks_secret`].
pub fn plain_secret(name: &str) -> String {
    format!("{} looks like a secret written as a plain value", quote(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intended_names_are_names() {
        assert_eq!(intended_name("My Agent_2!").as_deref(), Some("my-agent-2"));
        assert_eq!(intended_name("--"), None);
        assert!(intended_name(&format!("{}-{}", "x".repeat(63), "y")).is_some());
    }
}
