//! Whole files in, manifests or rendered diagnostics out.

mod hostile;
mod keys;
mod schemas;
mod yaml;

use super::{SkillManifest, parse};

/// Parses a file that must be valid and is in the directory `greet`.
fn manifest(source: &str) -> SkillManifest {
    let parsed = parse(source, "greet");
    assert_eq!(parsed.warnings, []);
    parsed.manifest.unwrap_or_else(|errors| {
        panic!("{}", errors.render(&crate::Sources::single(crate::Source::new("SKILL.md", source))))
    })
}

/// Parses a file that must be invalid, and shows what a user reads.
fn file_errors(source: &str) -> String {
    let errors = parse(source, "greet").manifest.expect_err("the file is invalid");
    errors.render(&crate::Sources::single(crate::Source::new("SKILL.md", source)))
}

/// As [`file_errors`], for the lines of the frontmatter.
fn errors(yaml: &str) -> String {
    file_errors(&format!("---\n{yaml}\n---\n# Body\n"))
}

/// As [`errors`], for the lines of a tool with a name.
fn tool_errors(lines: &str) -> String {
    errors(&format!("name: greet\ntools:\n  - name: hello\n{lines}"))
}

/// Shows the warnings of a file that must be valid.
fn warnings(yaml: &str) -> String {
    let source = format!("---\n{yaml}\n---\n# Body\n");
    let parsed = parse(&source, "greet");
    assert!(parsed.manifest.is_ok());
    let shown = parsed.warnings.iter().map(|one| {
        one.render(&crate::Sources::single(crate::Source::new("SKILL.md", source.as_str())))
    });
    let shown: Vec<String> = shown.collect();
    shown.join("\n\n")
}
