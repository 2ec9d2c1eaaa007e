//! Typed extraction: turns one KDL value into the type that a declaration wants.

use std::fmt::Display;
use std::ops::RangeInclusive;

use kdl::KdlValue;

use crate::diagnostic::quote;
use crate::syntax::Value;
use crate::{Diagnostic, units};

/// Reads a text; it may not contain NUL, which neither paths nor argv nor environments can hold.
pub(crate) fn text<'v>(value: &'v Value, name: &str) -> Result<&'v str, Diagnostic> {
    let KdlValue::String(text) = &value.kdl else {
        return Err(mismatch(value, name, "a text").with_help(quoted_form(&value.kdl)));
    };
    if text.contains('\0') {
        let message = format!("the text of `{name}` contains a NUL character");
        let error = Diagnostic::new(message, value.span, "no program can receive this");
        return Err(error.with_help("remove the `\\u{0}`"));
    }
    Ok(text)
}

/// Reads a text that has at least one character.
pub(crate) fn filled_text<'v>(value: &'v Value, name: &str) -> Result<&'v str, Diagnostic> {
    let text = text(value, name)?;
    if text.is_empty() {
        let message = format!("the text of `{name}` is empty");
        let error = Diagnostic::new(message, value.span, "nothing between the quotes");
        return Err(error.with_help("write a path or name between the quotes"));
    }
    Ok(text)
}

/// Reads a whole number within a range.
pub(crate) fn integer<T>(
    value: &Value,
    name: &str,
    range: RangeInclusive<T>,
) -> Result<T, Diagnostic>
where
    T: TryFrom<i128> + PartialOrd + Display,
{
    let KdlValue::Integer(number) = value.kdl else {
        let error = mismatch(value, name, "a whole number");
        return Err(match number_in_quotes(&value.kdl) {
            Some(number) => error.with_help(format!("write it without quotes: {number}")),
            None => error,
        });
    };
    T::try_from(number).ok().filter(|number| range.contains(number)).ok_or_else(|| {
        let (least, most) = (range.start(), range.end());
        let message = format!("`{name}` is out of range");
        Diagnostic::new(message, value.span, format!("must be from {least} to {most}"))
    })
}

/// Reads `#true` or `#false`.
pub(crate) fn boolean(value: &Value, name: &str) -> Result<bool, Diagnostic> {
    let form = format!("write `{name}=#true` or `{name}=#false`");
    value.kdl.as_bool().ok_or_else(|| mismatch(value, name, "a truth value").with_help(form))
}

/// Reads a size in bytes.
pub(crate) fn size(value: &Value, name: &str) -> Result<u64, Diagnostic> {
    let text = match &value.kdl {
        KdlValue::String(text) => text,
        KdlValue::Integer(number) => {
            let help =
                format!("write `{name}=\"{number}MiB\"`, or `{name}=\"{number}B\"` for bytes");
            return Err(unitless(value, name).with_help(help));
        }
        _ => return Err(mismatch(value, name, "a size").with_help(units::SIZE_FORM)),
    };
    units::size(text).ok_or_else(|| {
        let message = format!("{} is not a size", quote(text));
        let help = match units::intended_size(text) {
            Some(intended) => format!("write `{name}=\"{intended}\"`"),
            None => units::SIZE_FORM.to_owned(),
        };
        Diagnostic::new(message, value.span, format!("`{name}` takes a size")).with_help(help)
    })
}

/// Reads a duration in milliseconds.
pub(crate) fn duration(value: &Value, name: &str) -> Result<u64, Diagnostic> {
    let text = match &value.kdl {
        KdlValue::String(text) => text,
        KdlValue::Integer(number) => {
            let help = format!("write `{name}=\"{number}ms\"`, or `{name}=\"{number}s\"`");
            return Err(unitless(value, name).with_help(help));
        }
        _ => return Err(mismatch(value, name, "a duration").with_help(units::DURATION_FORM)),
    };
    units::duration(text).ok_or_else(|| {
        let message = format!("{} is not a duration", quote(text));
        Diagnostic::new(message, value.span, format!("`{name}` takes a duration"))
            .with_help(units::DURATION_FORM)
    })
}

/// Names a value for a message.
pub(crate) fn describe(value: &KdlValue) -> String {
    match value {
        KdlValue::String(text) => format!("the text {}", quote(text)),
        KdlValue::Integer(_) | KdlValue::Float(_) => format!("the number {value}"),
        KdlValue::Bool(_) | KdlValue::Null => format!("`{value}`"),
    }
}

fn mismatch(value: &Value, name: &str, wanted: &str) -> Diagnostic {
    let message = format!("`{name}` takes {wanted}, not {}", describe(&value.kdl));
    Diagnostic::new(message, value.span, format!("expected {wanted}"))
}

fn unitless(value: &Value, name: &str) -> Diagnostic {
    let message = format!("`{name}` has no unit");
    Diagnostic::new(message, value.span, "a bare number")
}

fn quoted_form(value: &KdlValue) -> String {
    match value {
        KdlValue::Bool(truth) => format!("write it in quotes: \"{truth}\""),
        KdlValue::Null => "leave it out where there is nothing to say".to_owned(),
        other => format!("write it in quotes: \"{other}\""),
    }
}

fn number_in_quotes(value: &KdlValue) -> Option<i128> {
    value.as_string()?.parse().ok()
}
