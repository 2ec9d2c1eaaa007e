//! Secrets in a `.env` file, which is checked in and baked as the Boxfile is.

use box_image::rules::is_variable;
use box_image::secrets::looks_secret;
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
             `{name}`{whose}; if it is not a secret, write it there as `plain-env`"
        );
        let error = Diagnostic::new(message, value.span, "it would be in every box");
        Some(error.with_help(help))
    };
    let own = boxfile.component(component).map(|it| &it.env);
    let judged = |name: &str| own.is_some_and(|env| env.contains_key(name));
    variables.iter().filter(|(name, _)| !judged(name)).filter_map(error).collect()
}

/// Hides the values of a text of variables, so that no message shows one; every place stays where it
/// was.
pub fn masked(text: &str) -> String {
    let hidden = |part: &str| -> String {
        part.chars()
            .map(|c| if c == '\r' { "\r".to_owned() } else { "*".repeat(c.len_utf8()) })
            .collect()
    };
    let line = |line: &str| match line.split_once('=') {
        _ if line.trim_start().starts_with('#') => hidden(line),
        Some((name, value)) if is_variable(name.trim_start_matches("export").trim()) => {
            format!("{name}={}", hidden(value))
        }
        Some((name, value)) => format!("{}={}", hidden(name), hidden(value)),
        None => hidden(line),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_of_a_file_is_shown_and_every_place_stays() {
        let text = "# a = b\nNAME=sécret \"x\r\nrest of it\nA B=c\n";
        let hidden = masked(text);
        assert_eq!(hidden.len(), text.len());
        assert_eq!(hidden, "*******\nNAME=**********\r\n**********\n***=*\n");
    }
}
