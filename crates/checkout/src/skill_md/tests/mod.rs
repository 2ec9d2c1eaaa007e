//! Compares whole files with their manifests or rendered diagnostics.

mod about;
mod hostile;
mod keys;
mod schemas;
mod yaml;

use super::{SkillManifest, parse};
use diagnostics::{Diagnostic, Source, Sources};

/// Returns a file whose frontmatter has the lines `yaml` and the required keys that these lines lack.
fn complete(yaml: &str) -> String {
    let has = |key: &str| yaml.lines().any(|line| line.starts_with(key));
    let lines = [("name:", "name: greet\n"), ("description:", "description: Greets.\n")];
    let lacking: String =
        lines.iter().filter(|(key, _)| !has(key)).map(|(_, line)| *line).collect();
    format!("---\n{yaml}\n{lacking}---\n# Body\n")
}

/// Parses a valid `SKILL.md` of the directory `greet`.
fn manifest(source: &str) -> SkillManifest {
    let parsed = parse(source, "greet");
    assert_eq!(parsed.warnings, []);
    assert_eq!(shown(&parsed.errors, source), "");
    parsed.manifest
}

fn shown(found: &[Diagnostic], source: &str) -> String {
    let sources = Sources::single(Source::new("SKILL.md", source));
    let shown: Vec<String> = found.iter().map(|one| one.render(&sources)).collect();
    shown.join("\n\n")
}

/// Parses a file that must be invalid, and returns its rendered errors.
fn file_errors(source: &str) -> String {
    let errors = parse(source, "greet").errors;
    assert!(!errors.is_empty());
    shown(&errors, source)
}

/// Like [`file_errors`], for the lines of the frontmatter. Errors about missing keys are omitted.
fn errors(yaml: &str) -> String {
    let source = format!("---\n{yaml}\n---\n# Body\n");
    let mut errors = parse(&source, "greet").errors;
    errors.retain(|error| !error.message().starts_with("the frontmatter has no `"));
    assert!(!errors.is_empty());
    shown(&errors, &source)
}

/// Like [`errors`], for the lines of the tool `hello`.
fn tool_errors(lines: &str) -> String {
    errors(&format!("name: greet\ntools:\n  - name: hello\n{lines}"))
}

/// Returns the rendered warnings of a file that [`complete`] makes valid.
fn warnings(yaml: &str) -> String {
    let source = complete(yaml);
    let parsed = parse(&source, "greet");
    assert_eq!(parsed.errors, []);
    shown(&parsed.warnings, &source)
}
