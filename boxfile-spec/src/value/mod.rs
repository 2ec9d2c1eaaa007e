//! Reads a value of each [`Kind`], and explains wrong ones.

mod path;
mod peer;
mod service;

use box_contract::SkillMode;
use box_contract::rules::{
    McpUrl, RequestRule, check_user, host_and_port, is_credential_header, is_credential_prefix,
    is_grpc_service, is_label, is_request_path,
};
use box_digest::Digest;
use serde::de::value::{Error as Unknown, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};

use crate::errors::DECLARATION_ERRORS;
use crate::schema::Kind;
use crate::syntax::tree::{Data, Value};
use crate::{form, rules, units};
use diagnostics::suggest::{builtin_tool, nearest};
use diagnostics::{Diagnostic, Spanned, Syntax};
use safe_text::secrets::leaks;
use safe_text::{quote, shown};

/// A type of the model that can be read from a [`Value`].
///
/// The type decides what is kept of a value: `reader.value::<Spanned<String>>("path")` keeps the span of a path,
/// `reader.value::<String>("path")` drops it, and an [`Option`] may be left out. The kind, which is in the schema,
/// decides which values are valid.
pub(crate) trait Read: Sized {
    /// Reads a value of a kind. Messages call the value `name`.
    fn read(value: &Value, name: &str, kind: Kind) -> Result<Self, Diagnostic>;

    /// Returns the substitute for a missing or wrong value; `None` if the value is required.
    fn absent() -> Option<Self> {
        None
    }
}

impl<T: Read> Read for Option<T> {
    fn read(value: &Value, name: &str, kind: Kind) -> Result<Self, Diagnostic> {
        T::read(value, name, kind).map(Some)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl<T: Read> Read for Spanned<T> {
    fn read(value: &Value, name: &str, kind: Kind) -> Result<Self, Diagnostic> {
        Ok(Self { value: T::read(value, name, kind)?, span: value.span })
    }
}

impl Read for String {
    fn read(value: &Value, name: &str, kind: Kind) -> Result<Self, Diagnostic> {
        match kind {
            Kind::Text => text(value, name).map(str::to_owned),
            Kind::NonEmptyText => filled_text(value, name).map(str::to_owned),
            Kind::Json => json(value, name),
            Kind::OneOf(words) => word(value, name, words).map(str::to_owned),
            Kind::Path | Kind::Kernel => path::outside(value, name),
            Kind::BakedPath => path::baked(value, name),
            Kind::LaunchPath => path::of_launch(value, name),
            Kind::FilePlace => path::of_file(value, name),
            Kind::WorkDir => path::to_work_in(value, name),
            Kind::GuestPath => path::in_guest(value, name),
            Kind::MountPoint => {
                path::free(value, name, "nothing can be mounted at", "/a3s/workspace")
            }
            Kind::SecretPath => {
                path::free(value, name, "no secret can be at", "/run/secrets/api-key")
            }
            Kind::SocketUrl => url(value, name, &["wss", "ws"]),
            Kind::ServiceUrl => service::url(value, name),
            Kind::McpUrl => {
                let url = url(value, name, &["https", "http"])?;
                fitting(value, &url, |it| McpUrl::parse(it).is_some(), "url")
            }
            Kind::Header => {
                let lower = text(value, name)?.to_ascii_lowercase();
                fitting(value, &lower, is_credential_header, "header")
            }
            Kind::HeaderPrefix => {
                fitting(value, text(value, name)?, is_credential_prefix, "header-prefix")
            }
            Kind::Request => {
                fitting(value, text(value, name)?, |it| RequestRule::parse(it).is_some(), "request")
            }
            Kind::PathOrUrl if is_url(value) => url(value, name, &["http", "https"]),
            Kind::PathOrUrl => path::outside(value, name),
            Kind::Peer => peer::read(value, name),
            Kind::Name => plain_name(value, name),
            Kind::Variable => variable(value, name),
            Kind::Tool => tool(value, name),
            Kind::HttpPath => http_path(value, name),
            Kind::GrpcService => {
                fitting(value, text(value, name)?, is_grpc_service, "grpc-service")
            }
            Kind::User => user(value, text(value, name)?),
            Kind::Hostname => fitting(value, text(value, name)?, is_label, "host-name"),
            Kind::Glob => fitting(value, filled_text(value, name)?, rules::is_glob, "pattern"),
            _ => Err(mismatch(value, name, "a value")),
        }
    }
}

impl Read for bool {
    fn read(value: &Value, name: &str, _: Kind) -> Result<Self, Diagnostic> {
        truth(value, name)
    }
}

impl Read for Digest {
    fn read(value: &Value, name: &str, _: Kind) -> Result<Self, Diagnostic> {
        sha256(value, name)
    }
}

impl Read for u64 {
    fn read(value: &Value, name: &str, kind: Kind) -> Result<Self, Diagnostic> {
        match kind {
            Kind::Integer { least, most } => integer(value, name, least, most),
            Kind::Size { least, most } => size_within(value, name, least, most),
            Kind::Duration => some_duration(value, name),
            Kind::Seconds => whole_seconds(value, name),
            Kind::Mode => mode(value, name),
            _ => Err(mismatch(value, name, "a value")),
        }
    }
}

/// Implements [`Read`] for integers smaller than `u64`. The bounds of their kinds must fit the type.
macro_rules! smaller_numbers {
    ($($number:ty),*) => { $(
        impl Read for $number {
            fn read(value: &Value, name: &str, kind: Kind) -> Result<Self, Diagnostic> {
                let number = u64::read(value, name, kind)?;
                Self::try_from(number).map_err(|_| mismatch(value, name, "a smaller number"))
            }
        }
    )* };
}

smaller_numbers!(u8, u16, u32);

/// Implements [`Read`] for enums whose serde names are the words of a [`Kind::OneOf`].
macro_rules! choices {
    ($($choice:ty),*) => { $(
        impl Read for $choice {
            fn read(value: &Value, name: &str, kind: Kind) -> Result<Self, Diagnostic> {
                choice(value, name, kind)
            }
        }
    )* };
}

choices!(box_contract::Access, box_contract::AgentKind, box_contract::Layout);
choices!(box_contract::ComponentName, box_contract::HookEvent);
choices!(box_contract::NetworkMode, box_contract::Platform, box_contract::Restart);
choices!(box_contract::SandboxFallback, box_contract::SandboxPreset, box_contract::Scope);
choices!(box_contract::SystemDirectories, crate::ConflictPolicy);

/// Reads the words of a Boxfile, `bake` and `mount`. The serde names are the words of a plan; they differ, and must not
/// change because digests cover them.
impl Read for SkillMode {
    fn read(value: &Value, name: &str, kind: Kind) -> Result<Self, Diagnostic> {
        let word = String::read(value, name, kind)?;
        let named = Self::ALL.into_iter().find(|mode| mode.name() == word);
        named.ok_or_else(|| mismatch(value, name, "a value"))
    }
}

/// Reads the user of a component: `USER` or `USER:GROUP`.
fn user(value: &Value, text: &str) -> Result<String, Diagnostic> {
    let Err(help) = check_user(text) else { return Ok(text.to_owned()) };
    let message = format!("{} is not a user", quote(text));
    Err(Diagnostic::new(message, value.span, "not a user").with_help(help))
}

/// Returns `text` if it fits a rule, or the declaration error with the name `error`.
pub(crate) fn fitting(
    value: &Value,
    text: &str,
    fits: impl Fn(&str) -> bool,
    error: &str,
) -> Result<String, Diagnostic> {
    if fits(text) { Ok(text.to_owned()) } else { Err(unfit(value, text, error)) }
}

/// Returns the declaration error with the name `error`, which quotes `text`.
pub(crate) fn unfit(value: &Value, text: &str, error: &str) -> Diagnostic {
    DECLARATION_ERRORS.about(error, &quote(text), value.span)
}

/// Reads a text without NUL, which paths, argv and environments cannot contain.
pub(crate) fn text<'v>(value: &'v Value, name: &str) -> Result<&'v str, Diagnostic> {
    let Data::Text(text) = &value.data else {
        return Err(mismatch(value, name, "a string").with_help(quoted_form(value)));
    };
    if text.contains('\0') {
        let error = DECLARATION_ERRORS.about("nul", name, value.span);
        let escape = if value.syntax == Syntax::Kdl { "\\u{0}" } else { "\\u0000" };
        return Err(error.with_help(format!("remove the `{escape}`")));
    }
    Ok(text)
}

/// Reads a text that has at least one character.
pub(crate) fn filled_text<'v>(value: &'v Value, name: &str) -> Result<&'v str, Diagnostic> {
    let text = text(value, name)?;
    if text.is_empty() {
        return Err(DECLARATION_ERRORS.about("no-text", name, value.span));
    }
    Ok(text)
}

/// Reads a whole number from `least` to `most`.
fn integer(value: &Value, name: &str, least: u64, most: u64) -> Result<u64, Diagnostic> {
    let Data::Integer(number) = value.data else {
        let error = mismatch(value, name, "a whole number");
        return Err(match number_in_quotes(&value.data) {
            Some(number) => error.with_help(format!("write it without quotes: {number}")),
            None => error,
        });
    };
    u64::try_from(number).ok().filter(|number| (least..=most).contains(number)).ok_or_else(|| {
        let message = format!("`{name}` is out of range");
        Diagnostic::new(message, value.span, format!("must be from {least} to {most}"))
    })
}

/// Reads a truth value.
fn truth(value: &Value, name: &str) -> Result<bool, Diagnostic> {
    let Data::Truth(truth) = value.data else {
        let [yes, no] = [true, false].map(|it| form::truth(value.syntax, it));
        let help = format!("write `{yes}` or `{no}`, without quotes");
        return Err(mismatch(value, name, "a boolean").with_help(help));
    };
    Ok(truth)
}

/// Reads one of the words of `kind`, which are the serde names of the variants of `T`.
fn choice<T: DeserializeOwned>(value: &Value, name: &str, kind: Kind) -> Result<T, Diagnostic> {
    let word = String::read(value, name, kind)?;
    let word: StrDeserializer<'_, Unknown> = word.as_str().into_deserializer();
    T::deserialize(word).map_err(|error| mismatch(value, name, &error.to_string()))
}

/// Reads one of `words`.
fn word<'v>(value: &'v Value, name: &str, words: &[&str]) -> Result<&'v str, Diagnostic> {
    let text = text(value, name)?;
    if words.contains(&text) {
        return Ok(text);
    }
    let message = format!("`{name}` cannot be {}", quote(text));
    let begun = || words.iter().find(|word| text.len() > 1 && word.starts_with(text)).copied();
    let help = match nearest(text, words).or_else(begun) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => format!("write one of \"{}\"", words.join("\", \"")),
    };
    Err(Diagnostic::new(message, value.span, "no such choice").with_help(help))
}

/// Reads a size in bytes from `least` to `most`.
fn size_within(value: &Value, name: &str, least: u64, most: u64) -> Result<u64, Diagnostic> {
    let bytes = size(value, name)?;
    let (relation, bound) = if bytes < least {
        ("less", least)
    } else if bytes > most {
        ("more", most)
    } else {
        return Ok(bytes);
    };
    let [size, bound, least, most] = [bytes, bound, least, most].map(units::show_size);
    let message = format!("`{name}` is {size}, which is {relation} than {bound}");
    Err(Diagnostic::new(message, value.span, format!("must be from {least} to {most}"))
        .with_help(form::write_text(value.syntax, name, &bound)))
}

/// Checks that a size is a whole number of MiB.
pub(crate) fn check_whole(value: &Value, name: &str, bytes: u64) -> Result<u64, Diagnostic> {
    if bytes.is_multiple_of(units::MIB) {
        return Ok(bytes);
    }
    let next = units::show_size(bytes.next_multiple_of(units::MIB));
    let help = form::write_text(value.syntax, name, &next);
    Err(DECLARATION_ERRORS.about("mebibytes", name, value.span).with_help(help))
}

/// Reads a duration in milliseconds. The duration must not be 0.
fn some_duration(value: &Value, name: &str) -> Result<u64, Diagnostic> {
    match duration(value, name)? {
        0 => {
            let least = form::write_text(value.syntax, name, "1ms");
            Err(DECLARATION_ERRORS
                .about("no-time", name, value.span)
                .with_help(format!("{least} or more, or leave `{name}` out")))
        }
        ms => Ok(ms),
    }
}

/// Reads a duration of whole seconds. The duration must not be 0.
fn whole_seconds(value: &Value, name: &str) -> Result<u64, Diagnostic> {
    let ms = some_duration(value, name)?;
    if ms.is_multiple_of(1000) {
        return Ok(ms / 1000);
    }
    let help = form::write_text(value.syntax, name, &format!("{}s", ms.div_ceil(1000)));
    Err(DECLARATION_ERRORS.about("seconds", &help, value.span))
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
fn duration(value: &Value, name: &str) -> Result<u64, Diagnostic> {
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

/// Describes a value for a message: `the number 5`.
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

/// Returns the error of a value of a wrong type.
pub(crate) fn mismatch(value: &Value, name: &str, wanted: &str) -> Diagnostic {
    let message = format!("`{name}` takes {wanted}, not {}", describe(value));
    Diagnostic::new(message, value.span, format!("expected {wanted}"))
}

fn unitless(value: &Value, name: &str, readings: [&str; 2], note: &str) -> Diagnostic {
    let [one, other] = readings.map(|text| form::with_text(value.syntax, name, text));
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

/// Reads 64 lower-case hexadecimal digits.
fn sha256(value: &Value, name: &str) -> Result<Digest, Diagnostic> {
    let text = text(value, name)?;
    Digest::from_hex(text).ok_or_else(|| {
        let length = text.chars().count().to_string();
        let error = DECLARATION_ERRORS.about("sha256", &length, value.span);
        let intended = text.trim().trim_start_matches("sha256:").to_ascii_lowercase();
        match Digest::from_hex(&intended) {
            Some(_) => error.with_help(form::write_text(value.syntax, name, &intended)),
            None => error,
        }
    })
}

/// Returns whether a value is meant as a URL and not as a path: it contains `://`.
pub(crate) fn is_url(value: &Value) -> bool {
    matches!(&value.data, Data::Text(text) if text.contains("://"))
}

/// Reads a URL with one of `schemes`. It must have a host, and must not contain a user or white space.
fn url(value: &Value, name: &str, schemes: &[&str]) -> Result<String, Diagnostic> {
    let url = filled_text(value, name)?;
    let Some((scheme, rest)) = url.split_once("://") else {
        let help = format!("write \"{}://{}\"", schemes[0], shown(url));
        return Err(unfit(value, url, "url-scheme").with_help(help));
    };
    if !schemes.contains(&scheme) {
        let names = schemes.iter().map(|scheme| format!("`{scheme}://`")).collect::<Vec<_>>();
        let help = format!("it begins with {}", names.join(" or "));
        return Err(unfit(value, url, "url-kind").with_help(help));
    }
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        return Err(DECLARATION_ERRORS.at("url-user", value.span));
    }
    let odd = |c: char| c.is_whitespace() || c.is_control() || !c.is_ascii() || c == '\\';
    fitting(value, url, |_| host_and_port(host).is_some() && !url.chars().any(odd), "url")
}

/// Reads a text that is JSON.
fn json(value: &Value, name: &str) -> Result<String, Diagnostic> {
    let text = text(value, name)?;
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(DECLARATION_ERRORS.about(
            "json",
            &format!("`{name}` is not JSON: {error}"),
            value.span,
        )),
    }
}

/// Reads the name of a box, a skill, a share and so on.
fn plain_name(value: &Value, name: &str) -> Result<String, Diagnostic> {
    let text = text(value, name)?;
    if rules::is_name(text) {
        return Ok(text.to_owned());
    }
    Err(rules::name_error(text, value.span, |intended| format!("\"{intended}\"")))
}

/// Reads the name of a secret, which follows the rule of a variable's name.
fn variable(value: &Value, name: &str) -> Result<String, Diagnostic> {
    let name = fitting(value, text(value, name)?, rules::is_variable, "secret-name");
    name.map_err(|error| error.with_help(intended_variable(value)))
}

/// Returns the help with the variable's name that was probably meant.
fn intended_variable(value: &Value) -> String {
    let text = if let Data::Text(text) = &value.data { text.as_str() } else { "" };
    let mapped = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    let intended = mapped.collect::<String>().to_ascii_uppercase();
    // A value in place of a name must not be repeated.
    if !leaks(None, text).is_empty() {
        return "write the name of an environment variable, such as \"API_KEY\"".to_owned();
    }
    match rules::is_variable(&intended) {
        true => format!("write the name of an environment variable: \"{intended}\""),
        false => format!("a secret's name {}", rules::VARIABLE_FORM),
    }
}

fn tool(value: &Value, name: &str) -> Result<String, Diagnostic> {
    let text = text(value, name)?;
    let tool = builtin_tool(text).map(str::to_owned);
    tool.map_err(|help| unfit(value, text, "tool").with_help(help))
}

/// Reads the path of an HTTP request.
fn http_path(value: &Value, name: &str) -> Result<String, Diagnostic> {
    let path = text(value, name)?;
    fitting(value, path, is_request_path, "http-path").map_err(|error| {
        let Some(path) = rules::intended_http_path(path) else { return error };
        let encoded = if path.contains('%') { "percent-encode it: " } else { "" };
        error.with_help(format!("{encoded}{}", form::write_text(value.syntax, name, &path)))
    })
}

/// Reads permissions: three octal digits, with an optional 0 in front.
fn mode(value: &Value, name: &str) -> Result<u64, Diagnostic> {
    let example = form::write_text(value.syntax, name, "0644");
    let text = text(value, name).map_err(|error| error.with_help(&example))?;
    let digits = text.strip_prefix('0').filter(|rest| rest.len() == 3).unwrap_or(text);
    let is_octal = digits.len() == 3 && digits.bytes().all(|it| matches!(it, b'0'..=b'7'));
    let mode = is_octal.then(|| u64::from_str_radix(digits, 8).ok()).flatten();
    let help = "three octal digits for owner, group and others; set-uid, set-gid and sticky have no effect in a box";
    mode.ok_or_else(|| unfit(value, text, "mode").with_help(format!("{example}: {help}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        let data = Data::Text(text.to_owned());
        Value { data, span: diagnostics::Span::default(), syntax: Syntax::Kdl }
    }

    #[test]
    fn a_mode_has_three_octal_digits() {
        for (good, expected) in [("644", 0o644), ("0644", 0o644), ("0000", 0), ("777", 0o777)] {
            assert_eq!(mode(&text(good), "mode").ok(), Some(expected), "{good}");
        }
        for bad in ["", "0", "44", "04", "0888", "4755", "04755", "00644", "+644", "rw-"] {
            assert!(mode(&text(bad), "mode").is_err(), "{bad}");
        }
    }

    #[test]
    fn a_place_is_plain_but_for_the_slash_at_its_end() {
        for good in ["/", "/a", "/a/", "/a/b/"] {
            assert!(path::of_file(&text(good), "to").is_ok(), "{good}");
        }
        for bad in ["", "a", "//", "/a//", "/./a", "/a/..", "/a/../"] {
            assert!(path::of_file(&text(bad), "to").is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_baked_has_a_name() {
        for bad in [".", "..", "../..", "/"] {
            assert!(path::baked(&text(bad), "file").is_err(), "{bad}");
        }
        assert!(path::baked(&text("..a/.b"), "file").is_ok());
    }
}
