//! Targets for Boxfiles.

use std::hint::black_box;

use boxfile_spec::{Document, read};
use diagnostics::{Severity, Source, Syntax};
use safe_text::shown;

/// Separates the Boxfile in an input from the base that it may extend: U+001C, "file separator".
const SEPARATOR: char = '\u{1c}';

/// Parses a Boxfile with its base, without a profile and with each of its profiles, and checks the invariants
/// that hold for every text. Bytes that are not UTF-8 are skipped.
pub fn boxfile(bytes: &[u8], syntax: Syntax) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (main, base) = text.split_once(SEPARATOR).unwrap_or((text, ""));
    let document = document(main, base, syntax, None);
    check(&document);
    for profile in &document.profiles {
        check(&self::document(main, base, syntax, Some(profile)));
    }
}

fn document(main: &str, base: &str, syntax: Syntax, profile: Option<&str>) -> Document {
    let source = Source { name: "Boxfile".to_owned(), syntax, text: main.to_owned() };
    read(source, profile, |path| match path {
        "none" => Err("there is no such file".to_owned()),
        // The suffix of the path selects the syntax of the base, so each syntax can extend the other.
        path => Ok(Source::new(path, base)),
    })
}

fn check(document: &Document) {
    assert!(document.found.is_sorted_by_key(|one| one.span()));
    for one in &document.found {
        for label in one.labels() {
            let text = &document.sources.of(label.span).text;
            assert!(label.span.end() <= text.len(), "a place outside of the text: {one:?}");
            assert!(text.is_char_boundary(label.span.offset), "half a character: {one:?}");
        }
    }
    for one in document.found.iter().take(20) {
        assert!(!one.message().is_empty());
        let text = one.render(&document.sources);
        assert!(text.split('\n').all(|line| shown(line) == line), "not safe to print: {text:?}");
    }
    let wrong = document.found.iter().any(|one| one.severity() == Severity::Error);
    match &document.boxfile {
        None => assert!(wrong, "neither a model nor an error"),
        Some(boxfile) => {
            assert!(!wrong, "a model in spite of errors");
            black_box(boxfile.canonical());
        }
    }
}
