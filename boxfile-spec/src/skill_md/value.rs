//! Typed extraction: turns a node into the type that a key wants.

use super::yaml::{Data, Node};
use crate::diagnostic::quote;
use crate::suggest::nearest;
use crate::{Diagnostic, Spanned, rules};

/// Reads a text without NUL, which neither paths nor argv nor environments can hold.
pub(super) fn text(node: &Node, name: &str) -> Result<String, Diagnostic> {
    let Data::Text(text) = &node.data else {
        return Err(mismatch(node, name, "a text"));
    };
    if text.contains('\0') {
        let message = format!("the text of `{name}` contains a NUL character");
        let error = Diagnostic::new(message, node.span, "no program can receive this");
        return Err(error.with_help("remove the `\\0`"));
    }
    Ok(text.clone())
}

/// Reads a text that is not blank.
pub(super) fn filled_text(node: &Node, name: &str) -> Result<String, Diagnostic> {
    let text = text(node, name)?;
    if text.trim().is_empty() {
        let message = format!("the text of `{name}` is empty");
        return Err(Diagnostic::new(message, node.span, "nothing between the quotes")
            .with_help("write a text, or leave the key out"));
    }
    Ok(text)
}

/// Reads `true` or `false`.
pub(super) fn boolean(node: &Node, name: &str) -> Result<bool, Diagnostic> {
    match node.data {
        Data::Bool(truth) => Ok(truth),
        _ => Err(mismatch(node, name, "`true` or `false`")
            .with_help(format!("write `{name}: true` or `{name}: false`"))),
    }
}

/// Reads a whole number from 1 to `most`.
pub(super) fn positive(node: &Node, name: &str, most: u64) -> Result<u64, Diagnostic> {
    let Data::Number(number) = &node.data else {
        return Err(mismatch(node, name, "a whole number"));
    };
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.parse().ok().filter(|number| digits && (1..=most).contains(number));
    number.ok_or_else(|| {
        let message = format!("`{name}` is out of range");
        Diagnostic::new(message, node.span, format!("must be a whole number from 1 to {most}"))
            .with_help("write it in digits, without quotes")
    })
}

/// Returns the items of a list.
pub(super) fn list<'n>(node: &'n Node, name: &str) -> Result<&'n [Node], Diagnostic> {
    let Data::List(items) = &node.data else {
        let error = mismatch(node, name, "a list");
        return Err(match &node.data {
            Data::Text(text) if text.len() < 40 && !text.contains('\n') => {
                error.with_help(format!("write `{name}: [{}]`", text.trim()))
            }
            _ => error.with_help("begin each item with `- ` on a line of its own"),
        });
    };
    Ok(items)
}

/// Reads one of a few words.
pub(super) fn word<T: Copy>(node: &Node, name: &str, words: &[(&str, T)]) -> Result<T, Diagnostic> {
    let text = text(node, name)?;
    if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*meaning);
    }
    let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let message = format!("{} is no `{name}`", quote(&text));
    let help = match nearest(&text, &all) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("write one of {}", all.join(", ")),
    };
    Err(Diagnostic::new(message, node.span, format!("not a known `{name}`")).with_help(help))
}

/// Reads the path of a file of the skill, without `.` parts and doubled slashes.
///
/// Every `..` is refused, even one that would lead back: behind a symbolic link it may not.
pub(super) fn path(node: &Node, name: &str) -> Result<Spanned<String>, Diagnostic> {
    let path = filled_text(node, name)?;
    let label = if path.contains(char::is_control) {
        "this is text, not a path"
    } else if path.starts_with('/') {
        "an absolute path"
    } else if rules::climbs(&path) {
        "`..` leads out of it"
    } else {
        let parts: Vec<&str> =
            path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if !parts.is_empty() {
            return Ok(Spanned { value: parts.join("/"), span: node.span });
        }
        "the directory itself"
    };
    let message = format!("`{name}` must name a file inside of the skill's directory");
    let help = "put the file there and name it from there, as in `tools/hello.sh`";
    Err(Diagnostic::new(message, node.span, label).with_help(help))
}

/// The error that a value is of the wrong kind, with the text to write where that is plain.
pub(super) fn mismatch(node: &Node, name: &str, wanted: &str) -> Diagnostic {
    let found = match &node.data {
        Data::Null => "nothing".to_owned(),
        Data::Bool(truth) => format!("the truth value `{truth}`"),
        Data::Number(number) => format!("the number {}", quote(number)),
        Data::Text(text) => format!("the text {}", quote(text)),
        Data::List(_) => "a list".to_owned(),
        Data::Map(_) => "a mapping".to_owned(),
    };
    let message = format!("`{name}` takes {wanted}, not {found}");
    let error = Diagnostic::new(message, node.span, format!("expected {wanted}"));
    match &node.data {
        Data::Number(number) if wanted == "a text" && number.len() < 40 => {
            error.with_help(format!("put it in quotes: \"{number}\""))
        }
        Data::Bool(truth) if wanted == "a text" => {
            error.with_help(format!("put it in quotes: \"{truth}\""))
        }
        Data::List(_) | Data::Map(_) if wanted == "a text" => {
            error.with_help("put a text that begins with a bracket or brace in quotes")
        }
        _ => error,
    }
}
