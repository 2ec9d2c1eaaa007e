//! What a tool runs: `script`, `backend`, or one of the older `bin` and `url`.

use std::collections::BTreeMap;

use super::fields::{Field, Fields};
use super::manifest::{Backend, Program};
use super::value;
use super::yaml::{Data, Node};
use crate::diagnostic::quote;
use crate::{Diagnostic, NotSha256, Sha256, Spanned};

const METHODS: [(&str, &str); 7] = [
    ("GET", "GET"),
    ("POST", "POST"),
    ("PUT", "PUT"),
    ("PATCH", "PATCH"),
    ("DELETE", "DELETE"),
    ("HEAD", "HEAD"),
    ("OPTIONS", "OPTIONS"),
];
const DEFAULT_TIMEOUT_MS: u64 = 30_000;
const MOST_TIMEOUT_MS: u64 = 3_600_000;
const NOTHING: &str = "write `script: tools/hello.sh` with a file of the skill";

/// The values of `backend`'s `type`.
#[derive(Clone, Copy)]
enum Kind {
    Binary,
    Http,
    Script,
}

const KINDS: [(&str, Kind); 3] =
    [("binary", Kind::Binary), ("http", Kind::Http), ("script", Kind::Script)];

/// Reads what a tool runs; that it is said twice or not at all is an error.
pub(super) fn read(tool: &mut Fields<'_>) -> Option<Backend> {
    let present: Vec<Field<'_>> = ["script", "backend", "bin", "url"]
        .into_iter()
        .filter_map(|name| tool.take(name))
        .collect();
    if let [first, second, ..] = present.as_slice() {
        tool.report.error(both(*first, *second));
        return None;
    }
    let Some(field) = present.first() else {
        let named = ["script", "backend", "bin", "url"].iter().any(|name| tool.has(name));
        if !named {
            let error = Diagnostic::new("a tool has nothing to run", tool.span(), "this tool");
            tool.report.error(error.with_help(NOTHING));
        }
        return None;
    };
    match field.name {
        "script" => {
            let path = tool.report.check(value::path(field.value, field.name))?;
            Some(Backend::Script { path })
        }
        "backend" => backend(field.value, tool),
        _ => Some(Backend::Binary { program: program(tool, "bin")?, args_template: None }),
    }
}

fn both(first: Field<'_>, second: Field<'_>) -> Diagnostic {
    let message = format!("a tool has both `{}` and `{}`", first.name, second.name);
    Diagnostic::new(message, second.key, "the one")
        .with_label(first.key, "the other")
        .with_help("keep what the tool is to run, and remove the other")
}

fn backend(node: &Node, tool: &Fields<'_>) -> Option<Backend> {
    let mut fields = Fields::new("a backend", node, tool.report)?;
    let kind =
        fields.require("type", "write `type: binary`, `http` or `script`", |node, key| {
            value::word(node, key, &KINDS)
        })?;
    let backend = match kind {
        Kind::Binary => binary(&mut fields),
        Kind::Http => http(&mut fields),
        Kind::Script => inline(&mut fields),
    };
    fields.finish();
    backend
}

fn binary(fields: &mut Fields<'_>) -> Option<Backend> {
    let args_template = fields.read("args_template", value::text);
    Some(Backend::Binary { program: program(fields, "path")?, args_template })
}

fn http(fields: &mut Fields<'_>) -> Option<Backend> {
    let method = fields.read("method", |node, key| value::word(node, key, &METHODS));
    let headers = fields.read("headers", headers).unwrap_or_default();
    let body_template = fields.read("body_template", value::text);
    let timeout_ms =
        fields.read("timeout_ms", |node, key| value::positive(node, key, MOST_TIMEOUT_MS));
    Some(Backend::Http {
        url: fields.require("url", "write `url: https://…`", url)?.value,
        method: method.unwrap_or("POST").to_owned(),
        headers,
        body_template,
        timeout_ms: timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS),
    })
}

fn headers(node: &Node, key: &str) -> Result<BTreeMap<String, String>, Diagnostic> {
    let Data::Map(entries) = &node.data else {
        return Err(value::mismatch(node, key, "a mapping of names to texts"));
    };
    let header = |name: &String, node| Ok((name.clone(), value::text(node, key)?));
    entries.iter().map(|entry| header(&entry.key.value, &entry.value)).collect()
}

fn inline(fields: &mut Fields<'_>) -> Option<Backend> {
    let interpreter_args = fields.items("interpreter_args", value::text);
    let interpreter =
        fields.require("interpreter", "write `interpreter: bash`", value::filled_text);
    let script =
        fields.require("script", "write `script: |` and the script below it", value::filled_text);
    Some(Backend::Inline { interpreter: interpreter?, interpreter_args, script: script? })
}

/// Reads where a program is: `path_key`, or `url` with `sha256`.
fn program(fields: &mut Fields<'_>, path_key: &'static str) -> Option<Program> {
    match (fields.take(path_key), fields.take("url")) {
        (Some(path), Some(url)) => {
            fields.report.error(both(path, url));
            None
        }
        (Some(path), None) => fields.report.check(local(path)),
        (None, Some(url)) => download(fields, url),
        (None, None) => {
            if !fields.has(path_key) && !fields.has("url") {
                let error = Diagnostic::new("a program is not named", fields.span(), "no `path`");
                fields
                    .report
                    .error(error.with_help("write `path: bin/NAME` with a file of the skill"));
            }
            None
        }
    }
}

/// Reads a path: an absolute one names a program of the agent's image.
fn local(path: Field<'_>) -> Result<Program, Diagnostic> {
    let text = value::text(path.value, path.name)?;
    if text.starts_with('/') && !crate::rules::climbs(&text) && !text.contains(char::is_control) {
        return Ok(Program::Image(Spanned { value: text, span: path.value.span }));
    }
    value::path(path.value, path.name).map(Program::File)
}

fn download(fields: &mut Fields<'_>, from: Field<'_>) -> Option<Program> {
    let url = fields.report.check(url(from.value, from.name));
    if !fields.has("sha256") {
        let message = "a program that is downloaded needs a checksum";
        let error = Diagnostic::new(message, from.value.span, "may serve another program tomorrow");
        fields.report.error(error.with_help(
            "write `sha256:` with the file's 64 digits beside `url`, or put the file into the skill \
             and write `path: bin/NAME`",
        ));
    }
    let sha256 = fields.read("sha256", sha256)?;
    Some(Program::Download { url: url?, sha256 })
}

fn url(node: &Node, key: &str) -> Result<Spanned<String>, Diagnostic> {
    let value = value::text(node, key)?;
    let host = value.strip_prefix("https://").or_else(|| value.strip_prefix("http://"));
    let blank = |c: char| c.is_whitespace() || c.is_control();
    match host {
        Some(host) if !host.is_empty() && !host.starts_with('/') && !host.contains(blank) => {
            Ok(Spanned { value, span: node.span })
        }
        _ => {
            Err(Diagnostic::new(format!("{} is not a URL", quote(&value)), node.span, "not a URL")
                .with_help(format!("write `{key}: https://…`, without blanks")))
        }
    }
}

fn sha256(node: &Node, key: &str) -> Result<Sha256, Diagnostic> {
    let text = match &node.data {
        // A sum can happen to have no letter.
        Data::Number(digits) => digits.clone(),
        _ => value::text(node, key)?,
    };
    text.parse().map_err(|error: NotSha256| {
        let label = format!("{} characters", text.chars().count());
        Diagnostic::new(error.to_string(), node.span, label)
            .with_help("the output of `sha256sum` begins with them")
    })
}
