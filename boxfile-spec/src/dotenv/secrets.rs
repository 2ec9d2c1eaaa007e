//! Secrets in a `.env` file, which is checked in and baked as the Boxfile is.

use box_image::secrets::{PASSED, looks_secret};
use box_image::{ComponentName, SecretPlan};

use super::Variables;
use crate::rules::plain_secret;
use crate::{Boxfile, Diagnostic, Spanned};

/// Returns the errors of variables that would put a secret into the box. What the Boxfile itself
/// says of a variable counts, and was judged there.
pub fn secrets(
    variables: &Variables,
    component: ComponentName,
    boxfile: &Boxfile,
) -> Vec<Diagnostic> {
    let gets = |secret: &SecretPlan| secret.scope.includes(component);
    let declared = |name: &str| boxfile.secrets.iter().any(|it| it.name == name && gets(it));
    let error = |(name, value): (&String, &Spanned<String>)| {
        let message = if declared(name) {
            format!("`{name}` is declared as a secret, and has a value here")
        } else if looks_secret(name, &value.value) {
            plain_secret(name)
        } else {
            return None;
        };
        let whose = match component {
            ComponentName::Agent => "",
            ComponentName::Business => " with `component` \"business\"",
        };
        let help = format!(
            "take it out of this file, and declare it by name alone in the Boxfile, as the secret \
             `{name}`{whose} ({PASSED}); if it is not a secret, write it there as `plain-env`"
        );
        let error = Diagnostic::new(message, value.span, "it would be in every box");
        Some(error.with_help(help))
    };
    let own = boxfile.component(component).map(|it| &it.env);
    let judged = |name: &str| own.is_some_and(|env| env.contains_key(name));
    variables.iter().filter(|(name, _)| !judged(name)).filter_map(error).collect()
}
