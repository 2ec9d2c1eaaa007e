//! Typed extraction: turns one value into the type that a declaration wants.

use box_contract::rules::{host_and_port, is_normalized};
use box_digest::Digest;
use serde::de::value::{Error as Unknown, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};

use crate::schema::Kind;
use crate::syntax::tree::{Data, Value};
use crate::{form, units};
use diagnostics::suggest::nearest;
use diagnostics::{Diagnostic, Spanned, Syntax};
use diagnostics::{invisible, named_invisible};
use safe_text::{quote, shown};

/// Reads a text; it may not contain NUL, which neither paths nor argv nor environments can hold.
pub(crate) fn text<'v>(value: &'v Value, name: &str) -> Result<&'v str, Diagnostic> {
    let Data::Text(text) = &value.data else {
        return Err(mismatch(value, name, "a string").with_help(quoted_form(value)));
    };
    if text.contains('\0') {
        let message = format!("`{name}` contains a NUL character");
        let error = Diagnostic::new(message, value.span, "no program can receive this");
        let escape = if value.syntax == Syntax::Kdl { "\\u{0}" } else { "\\u0000" };
        return Err(error.with_help(format!("remove the `{escape}`")));
    }
    Ok(text)
}

/// Reads a text that has at least one character.
pub(crate) fn filled_text<'v>(value: &'v Value, name: &str) -> Result<&'v str, Diagnostic> {
    let text = text(value, name)?;
    if text.is_empty() {
        let message = format!("`{name}` is empty");
        let error = Diagnostic::new(message, value.span, "nothing between the quotes");
        return Err(error.with_help("write something between the quotes"));
    }
    Ok(text)
}

/// Reads a whole number within the range of its kind.
pub(crate) fn integer(value: &Value, name: &str, kind: Kind) -> Result<u64, Diagnostic> {
    let Data::Integer(number) = value.data else {
        let error = mismatch(value, name, "a whole number");
        return Err(match number_in_quotes(&value.data) {
            Some(number) => error.with_help(format!("write it without quotes: {number}")),
            None => error,
        });
    };
    let Kind::Integer { least, most } = kind else {
        return Err(mismatch(value, name, "a value"));
    };
    u64::try_from(number).ok().filter(|number| (least..=most).contains(number)).ok_or_else(|| {
        let message = format!("`{name}` is out of range");
        Diagnostic::new(message, value.span, format!("must be from {least} to {most}"))
    })
}

/// Reads true or false.
pub(crate) fn truth(value: &Value, name: &str) -> Result<bool, Diagnostic> {
    let Data::Truth(truth) = value.data else {
        let [yes, no] = [true, false].map(|it| form::truth(value.syntax, it));
        let help = format!("write `{yes}` or `{no}`, without quotes");
        return Err(mismatch(value, name, "a boolean").with_help(help));
    };
    Ok(truth)
}

/// Reads one of the words of its kind, which are how serde names the values of the type.
pub(crate) fn choice<T: DeserializeOwned>(
    value: &Value,
    name: &str,
    kind: Kind,
) -> Result<T, Diagnostic> {
    let text = text(value, name)?;
    let Kind::OneOf(words) = kind else { return Err(mismatch(value, name, "a value")) };
    if words.contains(&text) {
        let word: StrDeserializer<'_, Unknown> = text.into_deserializer();
        return T::deserialize(word).map_err(|error| mismatch(value, name, &error.to_string()));
    }
    let message = format!("`{name}` cannot be {}", quote(text));
    let begun = || words.iter().find(|word| text.len() > 1 && word.starts_with(text)).copied();
    let help = match nearest(text, words).or_else(begun) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => format!("write one of \"{}\"", words.join("\", \"")),
    };
    Err(Diagnostic::new(message, value.span, "no such choice").with_help(help))
}

/// Reads a size in bytes within the range of its kind.
pub(crate) fn size_within(value: &Value, name: &str, kind: Kind) -> Result<u64, Diagnostic> {
    let bytes = size(value, name)?;
    let Kind::Size { least, most } = kind else {
        return Err(mismatch(value, name, "a value"));
    };
    let (relation, bound) = if bytes < least {
        ("less", least)
    } else if bytes > most {
        ("more", most)
    } else {
        return Ok(bytes);
    };
    let [size, bound, least, most] = [bytes, bound, least, most].map(units::show_size);
    let message = format!("`{name}` is {size}, which is {relation} than is allowed");
    Err(Diagnostic::new(message, value.span, format!("must be from {least} to {most}"))
        .with_help(form::write_text(value.syntax, name, &bound)))
}

/// Reads a duration in milliseconds other than 0.
pub(crate) fn some_duration(value: &Value, name: &str) -> Result<u64, Diagnostic> {
    match duration(value, name)? {
        0 => {
            let least = form::write_text(value.syntax, name, "1ms");
            let message = format!("`{name}` must be at least 1ms");
            Err(Diagnostic::new(message, value.span, "no time at all")
                .with_help(format!("{least} or more, or leave `{name}` out")))
        }
        ms => Ok(ms),
    }
}

/// Reads a size in bytes.
pub(crate) fn size(value: &Value, name: &str) -> Result<u64, Diagnostic> {
    let text = match &value.data {
        Data::Text(text) => text,
        Data::Integer(number) => {
            let readings = [&*format!("{number}MiB"), &format!("{number}B")];
            return Err(unitless(value, name, readings, " for bytes"));
        }
        _ => return Err(mismatch(value, name, "a size").with_help(units::SIZE_FORM)),
    };
    units::size(text).ok_or_else(|| {
        let message = format!("{} is not a size", quote(text));
        let help = match units::intended_size(text) {
            Some(intended) => form::write_text(value.syntax, name, &intended),
            None => units::SIZE_FORM.to_owned(),
        };
        Diagnostic::new(message, value.span, format!("`{name}` takes a size")).with_help(help)
    })
}

/// Reads a duration in milliseconds.
pub(crate) fn duration(value: &Value, name: &str) -> Result<u64, Diagnostic> {
    let text = match &value.data {
        Data::Text(text) => text,
        Data::Integer(number) => {
            let readings = [&*format!("{number}ms"), &format!("{number}s")];
            return Err(unitless(value, name, readings, ""));
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
pub(crate) fn describe(value: &Value) -> String {
    match &value.data {
        Data::Text(text) => format!("the string {}", quote(text)),
        Data::Integer(number) => format!("the number {number}"),
        Data::Float(number) => format!("the number {number}"),
        Data::Truth(truth) => format!("`{}`", form::truth(value.syntax, *truth)),
        Data::Null => "`#null`".to_owned(),
        Data::Other(what) => (*what).to_owned(),
    }
}

/// The error that a value is of a wrong type.
pub(crate) fn mismatch(value: &Value, name: &str, wanted: &str) -> Diagnostic {
    let message = format!("`{name}` takes {wanted}, not {}", describe(value));
    Diagnostic::new(message, value.span, format!("expected {wanted}"))
}

fn unitless(value: &Value, name: &str, readings: [&str; 2], note: &str) -> Diagnostic {
    let [one, other] = readings.map(|text| form::prop(value.syntax, name, &format!("\"{text}\"")));
    Diagnostic::new(format!("`{name}` has no unit"), value.span, "a bare number")
        .with_help(format!("write `{one}`, or `{other}`{note}"))
}

fn quoted_form(value: &Value) -> String {
    match &value.data {
        Data::Truth(truth) => format!("write it in quotes: \"{truth}\""),
        Data::Integer(number) => format!("write it in quotes: \"{number}\""),
        Data::Float(number) => format!("write it in quotes: \"{number}\""),
        Data::Null => "leave it out".to_owned(),
        Data::Other(_) | Data::Text(_) => "write one string in quotes".to_owned(),
    }
}

fn number_in_quotes(value: &Data) -> Option<i128> {
    let Data::Text(text) = value else { return None };
    text.parse().ok()
}

/// Reads a text as one that the model keeps.
pub(crate) fn owned_text(value: &Value, name: &str) -> Result<String, Diagnostic> {
    text(value, name).map(str::to_owned)
}

/// Reads a text that has at least one character, with its place.
pub(crate) fn spanned_text(value: &Value, name: &str) -> Result<Spanned<String>, Diagnostic> {
    Ok(Spanned { value: filled_text(value, name)?.to_owned(), span: value.span })
}

/// Reads a path that names something outside of the guest, or a reference with such a path in it.
/// It is written to locks and messages, and so must be what it looks like.
pub(crate) fn path(value: &Value, name: &str) -> Result<Spanned<String>, Diagnostic> {
    let path = spanned_text(value, name)?;
    let Some(c) = invisible(&path.value) else { return Ok(path) };
    let message = format!("`{name}` contains {}", named_invisible(c));
    Err(Diagnostic::new(message, value.span, "not what it looks like")
        .with_help("remove the character; if the file has it in its name, rename the file"))
}

/// Reads an absolute path.
pub(crate) fn absolute(value: &Value, name: &str) -> Result<Spanned<String>, Diagnostic> {
    let path = filled_text(value, name)?;
    if path.starts_with('/') {
        return Ok(Spanned { value: path.to_owned(), span: value.span });
    }
    let message = format!("`{name}` takes an absolute path, not {}", quote(path));
    let help = if path.starts_with('~') {
        "`~` is not expanded here: write the whole path, from `/` on".to_owned()
    } else {
        format!("write \"/{}\"", shown(path.trim_start_matches("./")))
    };
    Err(Diagnostic::new(message, value.span, "a relative path").with_help(help))
}

/// Reads a path at which the guest gets to see something: absolute, not the root, and without
/// empty parts, `.` and `..`.
pub(crate) fn guest_path(value: &Value, name: &str) -> Result<Spanned<String>, Diagnostic> {
    let path = absolute(value, name)?;
    if is_normalized(&path.value) {
        return Ok(path);
    }
    let message = format!("{} is not a plain path", quote(&path.value));
    Err(Diagnostic::new(message, value.span, "not a plain path")
        .with_help("name a place below `/`, without `.`, `..`, `//` and a slash at its end"))
}

/// Reads 64 hexadecimal digits.
pub(crate) fn sha256(value: &Value, name: &str) -> Result<Digest, Diagnostic> {
    let text = text(value, name)?;
    Digest::from_hex(text).ok_or_else(|| {
        let intended = text.trim().trim_start_matches("sha256:").to_ascii_lowercase();
        let help = match Digest::from_hex(&intended) {
            Some(_) => form::write_text(value.syntax, name, &intended),
            None => "the output of `sha256sum` begins with them".to_owned(),
        };
        let label = format!("{} characters", text.chars().count());
        let message = "a sha256 has 64 hexadecimal digits, in lower case";
        Diagnostic::new(message, value.span, label).with_help(help)
    })
}

/// Whether a value is meant as a URL, and not as a path.
pub(crate) fn is_url(value: &Value) -> bool {
    matches!(&value.data, Data::Text(text) if text.contains("://"))
}

/// Reads a URL of one of some schemes: it has a host, and neither a user nor white space.
pub(crate) fn url(
    value: &Value,
    name: &str,
    schemes: &[&str],
) -> Result<Spanned<String>, Diagnostic> {
    let url = filled_text(value, name)?;
    let error = |message: String, label: &str| Diagnostic::new(message, value.span, label);
    let Some((scheme, rest)) = url.split_once("://") else {
        let message = format!("{} is not a URL", quote(url));
        let help = format!("write \"{}://{}\"", schemes[0], shown(url));
        return Err(error(message, "without a scheme").with_help(help));
    };
    if !schemes.contains(&scheme) {
        let names = schemes.iter().map(|scheme| format!("`{scheme}://`")).collect::<Vec<_>>();
        let message = format!("{} is not a URL that can be used", quote(url));
        return Err(error(message, "another kind of URL")
            .with_help(format!("it begins with {}", names.join(" or "))));
    }
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        return Err(error("the URL has a user in it".to_owned(), "it would be checked in")
            .with_help(
                "remove what is in front of the `@`: credentials do not belong in a Boxfile",
            ));
    }
    let odd = |c: char| c.is_whitespace() || c.is_control() || !c.is_ascii() || c == '\\';
    if host_and_port(host).is_none() || url.chars().any(odd) {
        let message = format!("{} is not a URL", quote(url));
        return Err(error(message, "not a URL").with_help(
            "it has a host, perhaps a port up to 65535, and neither spaces nor backslashes nor \
             characters beyond ASCII: \"https://example.com:8443/agent\"",
        ));
    }
    Ok(Spanned { value: url.to_owned(), span: value.span })
}
