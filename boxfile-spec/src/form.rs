//! Writes declarations and properties in KDL or TOML, for the help of messages.

use diagnostics::{Syntax, in_quotes};

use crate::schema;

/// Writes a property: `port=80`; in TOML `port = 80`. A `value` that is a text must already be in
/// quotes.
pub(crate) fn prop(syntax: Syntax, name: &str, value: &str) -> String {
    match syntax {
        Syntax::Kdl => format!("{name}={value}"),
        Syntax::Toml => format!("{name} = {value}"),
    }
}

/// Returns the help to write a property with a text, for example ``write `total="5s"` ``.
pub(crate) fn write_text(syntax: Syntax, name: &str, text: &str) -> String {
    format!("write `{}`", with_text(syntax, name, text))
}

/// Writes a property with a text, or the declaration whose argument is the text: `disk "20GiB"`.
pub(crate) fn with_text(syntax: Syntax, name: &str, text: &str) -> String {
    let is_argument = name == schema::DISK.name;
    let written = if is_argument { declaration } else { prop };
    written(syntax, name, &in_quotes(syntax, text))
}

/// Writes a declaration with one argument: `name "value"`; in TOML `name = "value"`.
pub(crate) fn declaration(syntax: Syntax, name: &str, value: &str) -> String {
    match syntax {
        Syntax::Kdl => format!("{name} {value}"),
        Syntax::Toml => format!("{name} = {value}"),
    }
}

/// Writes a declaration that has only properties: `budget total="5s"`; in TOML
/// `budget = { total = "5s" }`.
pub(crate) fn with_props(syntax: Syntax, name: &str, props: &str) -> String {
    match syntax {
        Syntax::Kdl => format!("{name} {props}"),
        Syntax::Toml => format!("{name} = {{ {props} }}"),
    }
}

/// Writes a declaration with the value true and a property: `autostart #true restart="always"`; in TOML
/// `autostart = { value = true, restart = "always" }`.
pub(crate) fn switched_on(syntax: Syntax, name: &str, prop: &str) -> String {
    match syntax {
        Syntax::Kdl => format!("{name} {} {prop}", truth(syntax, true)),
        Syntax::Toml => format!("{name} = {{ value = {}, {prop} }}", truth(syntax, true)),
    }
}

/// Writes a block with one declaration in it: `agent { port 80 }`; in TOML `agent = { port = 80 }`.
pub(crate) fn with_child(syntax: Syntax, name: &str, child: &str, value: &str) -> String {
    let child = declaration(syntax, child, value);
    match syntax {
        Syntax::Kdl => format!("{name} {{ {child} }}"),
        Syntax::Toml => format!("{name} = {{ {child} }}"),
    }
}

/// Writes a declaration that has only a key: `skill "greet"`; in TOML `[skill.greet]`.
pub(crate) fn keyed(syntax: Syntax, name: &str, key: &str) -> String {
    match syntax {
        Syntax::Kdl => format!("{name} \"{key}\""),
        Syntax::Toml => format!("[{name}.{key}]"),
    }
}

/// Names a block: `agent { … }`; in TOML `[agent]`.
pub(crate) fn block(syntax: Syntax, name: &str) -> String {
    match syntax {
        Syntax::Kdl => format!("{name} {{ … }}"),
        Syntax::Toml => format!("[{name}]"),
    }
}

/// Writes a truth value: `#true`; in TOML `true`.
pub(crate) const fn truth(syntax: Syntax, value: bool) -> &'static str {
    match (syntax, value) {
        (Syntax::Kdl, true) => "#true",
        (Syntax::Kdl, false) => "#false",
        (Syntax::Toml, true) => "true",
        (Syntax::Toml, false) => "false",
    }
}

/// Joins a verb and an example: ``add `port 80` ``. An example of several lines already begins with
/// a line feed.
pub(crate) fn imperative(verb: &str, usage: &str) -> String {
    if usage.starts_with('\n') { format!("{verb}{usage}") } else { format!("{verb} {usage}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnostics::Source;
    use safe_text::visible;

    #[test]
    fn quoted_strings_round_trip() {
        let text = "a \" \\ \u{1b}[2J \u{202e} \n\t é";
        for (name, syntax) in [("Boxfile", Syntax::Kdl), ("Boxfile.toml", Syntax::Toml)] {
            let quoted = in_quotes(syntax, text);
            assert!(quoted.chars().all(|c| visible(c) == c), "{quoted}");
            let file = match syntax {
                Syntax::Kdl => format!("box b\nagent {{ image oci:i; args {quoted}; }}"),
                Syntax::Toml => {
                    format!("box = \"b\"\nagent = {{ image = \"oci:i\", args = [{quoted}] }}")
                }
            };
            let read = crate::read(Source::new(name, file), None, |_| Err(String::new()));
            let args = read.into_result().unwrap().agent.component.args;
            assert_eq!(args, Some(vec![text.to_owned()]));
        }
    }
}
