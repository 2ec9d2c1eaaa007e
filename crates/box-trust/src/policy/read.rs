//! Reads a policy in TOML.

use std::ops::Range;

use diagnostics::edited::text_faults;
use diagnostics::{Diagnostic, Diagnostics, Sink, Span};
use safe_text::quote;
use serde::Deserialize;
use toml::Spanned;

use super::pattern::Pattern;
use super::{Answer, Condition, Field, MAX_POLICY_BYTES, Policy, Rule};
use crate::{PublicKey, TrustError};

/// The help for an error that has no other help.
const EXAMPLE: &str = "docs/trust.md has an example";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    default: Option<Spanned<Answer>>,
    local: Option<Spanned<Answer>>,
    file: Option<Spanned<Answer>>,
    #[serde(default)]
    rule: Vec<Spanned<Table>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Table {
    r#match: Spanned<String>,
    keys: Option<Spanned<Vec<Spanned<String>>>>,
    provenance: Option<Spanned<bool>>,
    refuse_older: Option<Spanned<bool>>,
    decision: Option<Spanned<Answer>>,
    #[serde(default)]
    digest_only: bool,
}

/// Returns the text of the file with a public key, or a message of why it cannot be read.
type ReadKey<'r> = &'r mut dyn FnMut(&str) -> Result<Vec<u8>, String>;

impl Policy {
    /// Parses a policy. `read_key` gets the path of a key as the policy has it, and returns the content of its file. A relative
    /// path is relative to the policy's directory.
    ///
    /// # Errors
    /// The text is not TOML, has an unknown field or contradicts itself, or a key cannot be read.
    pub fn parse(
        text: &str,
        read_key: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>,
    ) -> Result<Self, Diagnostics> {
        Diagnostic::check_length(text, MAX_POLICY_BYTES, EXAMPLE)?;
        Diagnostics::new(text_faults(text)).map_or(Ok(()), Err)?;
        let file: File = toml::from_str(text).map_err(|error| malformed(&error))?;
        let sink = Sink::default();
        let read = |table| sink.attempt(|| rule(table, read_key, &sink));
        let mut rules: Vec<_> = file.rule.into_iter().filter_map(read).collect();
        check_unique(&rules, &sink);
        rules.iter_mut().for_each(|it| it.1.line = line(text, it.0.offset));
        let field = |written: Option<Spanned<Answer>>, default| {
            let field = |it: Spanned<Answer>| Field {
                line: Some(line(text, it.span().start)),
                answer: it.into_inner(),
            };
            written.map_or(default, field)
        };
        let unwritten = |answer| Field { answer, line: None };
        let default = field(file.default, unwritten(Answer::Refuse));
        let policy = Self {
            default,
            local: field(file.local, unwritten(Answer::Allow)),
            file: field(file.file, default),
            rules: sorted(rules),
        };
        Diagnostics::new(sink.into_found()).map_or(Ok(policy), Err)
    }
}

/// Returns the rules without their spans, the most specific first.
fn sorted(rules: Vec<(Span, Rule)>) -> Vec<Rule> {
    let mut rules: Vec<Rule> = rules.into_iter().map(|it| it.1).collect();
    rules.sort_by_key(|rule| rule.pattern.order());
    rules
}

/// Returns the line of an offset in bytes, beginning with 1.
fn line(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|it| *it == b'\n').count() + 1
}

/// Reads a rule, with the span of its pattern. Reports the errors of its keys to `sink`.
fn rule(
    table: Spanned<Table>,
    read_key: ReadKey<'_>,
    sink: &Sink,
) -> Result<(Span, Rule), Diagnostic> {
    let all = table.span();
    let Table { r#match, keys, provenance, refuse_older, decision, digest_only } =
        table.into_inner();
    let place = span(&r#match.span());
    let pattern = Pattern::parse(r#match.get_ref()).map_err(|fault| {
        let message = format!("{} is not a repository: {fault}", quote(r#match.get_ref()));
        Diagnostic::new(message, place, "").with_help(EXAMPLE)
    })?;
    let is_set = |it: &Option<Spanned<bool>>| it.as_ref().is_some_and(|it| *it.get_ref());
    let condition = match (keys, decision) {
        (Some(paths), None) => {
            check_keys(&paths)?;
            let key = |path| sink.attempt(|| key(path, read_key));
            let keys = paths.get_ref().iter().filter_map(key).collect();
            let (provenance, refuse_older) = (is_set(&provenance), is_set(&refuse_older));
            Condition::Signed { keys, provenance, refuse_older }
        }
        (None, Some(answer)) => {
            check_unsigned("provenance", provenance.as_ref())?;
            check_unsigned("refuse-older", refuse_older.as_ref())?;
            Condition::Always(answer.into_inner())
        }
        (None, None) => {
            let help =
                "write `keys = [\"key.pub\"]`, `decision = \"allow\"` or `decision = \"refuse\"`";
            let message = "the rule has no `keys`";
            return Err(Diagnostic::new(message, span(&all), "").with_help(help));
        }
        (Some(keys), Some(decision)) => {
            let message = "the rule has both `keys` and `decision`";
            let error = Diagnostic::new(message, span(&decision.span()), "decides without keys");
            let error = error.with_label(span(&keys.span()), "decides by keys");
            return Err(error.with_help("remove one of them"));
        }
    };
    // The caller knows the text, and sets the line.
    Ok((place, Rule { pattern, line: 0, digest_only, condition }))
}

fn check_keys(paths: &Spanned<Vec<Spanned<String>>>) -> Result<(), Diagnostic> {
    if !paths.get_ref().is_empty() {
        return Ok(());
    }
    let help = "name a key, or write `decision = \"allow\"` or `decision = \"refuse\"`";
    Err(Diagnostic::new("`keys` is empty", span(&paths.span()), "").with_help(help))
}

/// Refuses a field of a rule without keys that asks for something signed.
fn check_unsigned(field: &str, value: Option<&Spanned<bool>>) -> Result<(), Diagnostic> {
    let Some(place) = value.filter(|it| *it.get_ref()).map(Spanned::span) else {
        return Ok(());
    };
    let message = format!("`{field}` needs `keys`, by which it is signed");
    Err(Diagnostic::new(message, span(&place), "").with_help(EXAMPLE))
}

/// Reads the public key at a path.
fn key(path: &Spanned<String>, read_key: ReadKey<'_>) -> Result<PublicKey, Diagnostic> {
    let error = |reason: String, help: String| {
        let message = format!("the key {} cannot be used: {reason}", quote(path.get_ref()));
        Diagnostic::new(message, span(&path.span()), "").with_help(help)
    };
    let text = read_key(path.get_ref()).map_err(|reason| error(reason, EXAMPLE.to_owned()))?;
    PublicKey::from_pem(&text).map_err(|fault: TrustError| {
        let help = fault.help(None).unwrap_or_else(|| EXAMPLE.to_owned());
        error(fault.to_string(), help)
    })
}

/// Reports each pattern that an earlier rule has, too.
fn check_unique(rules: &[(Span, Rule)], sink: &Sink) {
    for (at, (place, rule)) in rules.iter().enumerate() {
        let earlier = rules[..at].iter().find(|it| it.1.pattern == rule.pattern);
        if let Some((first, _)) = earlier {
            sink.report(Diagnostic::twice(&rule.pattern.to_string(), *first, *place));
        }
    }
}

fn malformed(error: &toml::de::Error) -> Diagnostic {
    let message = error.message().replace("a sequence", "a list, such as [\"key.pub\"]");
    let message = message.replace("a boolean", "true or false");
    let place = error.span().unwrap_or_default();
    // `[rule]` is a table, and rules are an array of tables.
    let is_table = error.message().starts_with("invalid type: map");
    let help = if is_table { "write `[[rule]]`, with two brackets" } else { EXAMPLE };
    Diagnostic::new(message, span(&place), "").with_help(help)
}

fn span(place: &Range<usize>) -> Span {
    Span::at(place.start, place.len())
}
