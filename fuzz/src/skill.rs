//! The target for the definitions of skills and agents.

use checkout::skill_md::{parse, parse_agent};
use diagnostics::{Diagnostic, MAX_KEPT, Source, Sources};
use safe_text::shown;

/// The name that the directory and the file have.
const NAME: &str = "greet";

/// Parses the bytes as a `SKILL.md` and as an agent's definition. Bytes that are not UTF-8 are skipped.
pub fn skill_md(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let skill = parse(text, NAME);
    check(text, &skill.errors);
    check(text, &skill.warnings);
    let manifest = &skill.manifest;
    let lines = [&manifest.version, &manifest.author].into_iter().flatten();
    for line in lines.chain([&manifest.description]) {
        assert!(!line.contains(char::is_control), "more than a line: {line:?}");
    }
    for file in &manifest.files {
        let is_name = |part: &str| !matches!(part, "" | "." | "..");
        assert!(file.path.split('/').all(is_name), "a path out of the skill: {:?}", file.path);
    }
    if skill.errors.is_empty() {
        assert!(!manifest.description.is_empty());
        let name = manifest.name;
        assert!(text[name.offset..name.end()].contains(NAME), "another name");
    }
    let agent = parse_agent(text, NAME);
    check(text, &agent.errors);
    check(text, &agent.warnings);
    assert!(!agent.errors.is_empty() || agent.plan.name == NAME);
}

/// Every finding has a span of the text, and is safe to print.
fn check(text: &str, found: &[Diagnostic]) {
    assert!(found.len() <= MAX_KEPT);
    assert!(found.is_sorted_by_key(Diagnostic::span));
    let sources = Sources::single(Source::new("SKILL.md", text));
    for one in found {
        for label in one.labels() {
            assert!(label.span.end() <= text.len(), "a place outside of the text: {one:?}");
            assert!(text.is_char_boundary(label.span.offset), "half a character: {one:?}");
        }
    }
    for one in found.iter().take(20) {
        let text = one.render(&sources);
        assert!(text.split('\n').all(|line| shown(line) == line), "not safe to print: {text:?}");
    }
}
