//! Finds secrets in a `.env` file, which is committed and baked into the box like the Boxfile.

use std::collections::HashSet;

use box_contract::ComponentName;
use safe_text::secrets::{PASSED, looks_secret};

use super::Variables;
use diagnostics::MAX_KEPT;
use diagnostics::names::plain_secret;
use diagnostics::{Diagnostic, Spanned};

/// Returns errors for the variables that would put a secret into the box, in order, at most [`MAX_KEPT`]. `declared`
/// contains the names of the component's secrets. A variable for which `is_judged` returns true is skipped, because the
/// Boxfile's value takes precedence.
pub fn secrets(
    variables: &Variables,
    component: ComponentName,
    declared: &HashSet<&str>,
    is_judged: impl Fn(&str) -> bool,
) -> Vec<Diagnostic> {
    let mut listed: Vec<_> = variables.iter().filter(|(name, _)| !is_judged(name)).collect();
    listed.sort_unstable_by_key(|(_, value)| value.span);
    let found = listed.into_iter().filter_map(|(name, value)| {
        let message = fault(name, &value.value, declared.contains(name.as_str()))?;
        Some(error(message, name, value, component))
    });
    found.take(MAX_KEPT).collect()
}

/// Returns the fault of a variable that would put a secret into the box.
fn fault(name: &str, value: &str, is_declared: bool) -> Option<String> {
    if is_declared {
        return Some(format!("`{name}` is declared as a secret, and has a value here"));
    }
    looks_secret(name, value).then(|| plain_secret(name))
}

fn error(
    message: String,
    name: &str,
    value: &Spanned<String>,
    component: ComponentName,
) -> Diagnostic {
    let whose = match component {
        ComponentName::Agent => "",
        ComponentName::Business => " with `component` \"business\"",
    };
    let help = format!(
        "take it out of this file, and declare it by name alone in the Boxfile, as the secret \
         `{name}`{whose} ({PASSED}); if it is not a secret, write it there as `plain-env`"
    );
    Diagnostic::new(message, value.span, "it would be in every box").with_help(help)
}
