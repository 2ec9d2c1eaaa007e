//! Hostile input causes no panic, no overflow and no hang.

use proptest::prelude::*;
use proptest::sample::select;
use testkit::hostile::replace_each;

use super::complete;
use crate::skill_md::{MAX_FRONTMATTER, MAX_SKILL_MD, parse};
use diagnostics::MAX_KEPT;

const VALID: &str = "---
name: greet
description: >-
  Says: hello
version: \"1.0\"
tags: [a, 'b']
requires: [bash]
allowed-tools: Bash(gh:*), read
tools:
  - name: hello
    script: tools/hello.sh
    parameters:
      - {name: who, type: string, required: true}
  - name: é
    backend:
      type: http
      url: https://example.org
      headers: {a: b}
    parameters:
      type: object
      properties:
        x: {type: integer}
---
# Body
";

const PIECES: [&str; 44] = [
    "---\n",
    "--- ",
    "...\n",
    "- ",
    "-",
    "? ",
    ": ",
    ":",
    "a",
    "a: ",
    "name: ",
    "tools:\n",
    "\n",
    "\n  ",
    "\n    ",
    "\t",
    " ",
    "[",
    "]",
    "{",
    "}",
    ",",
    "\"",
    "'",
    "|\n",
    "|2",
    ">",
    "#",
    " #",
    "&a ",
    "*a",
    "!t ",
    "!!str ",
    "<<: ",
    "%YAML 1.2\n",
    "\\",
    "\\x41",
    "é",
    "\u{feff}",
    "\r",
    "\r\n",
    "\0",
    "1",
    "]:1",
];

/// Parses a text, and renders its first errors and warnings.
fn run(source: &str) {
    let parsed = parse(source, "greet");
    let errors = parsed.errors;
    assert!(errors.is_sorted_by_key(|error| error.span()));
    for one in errors.iter().take(3).chain(parsed.warnings.iter().take(3)) {
        assert!(one.labels().iter().all(|label| label.span.end() <= source.len()));
        assert!(one.labels().iter().all(|label| source.is_char_boundary(label.span.offset)));
        assert!(
            one.render(&diagnostics::Sources::single(diagnostics::Source::new("SKILL.md", source)))
                .contains(": ")
        );
    }
}

#[test]
fn no_repeated_piece_overflows_the_stack_or_hangs() {
    let run_all = || {
        for piece in PIECES {
            for prefix in ["", "a: ", "tools:\n  - ", "a: [", "a: |\n "] {
                run(&format!("---\n{prefix}{}\n---\n", piece.repeat(4000)));
            }
        }
    };
    // Half of a thread's default stack: enough for 16 nested collections, and not for 4000.
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(run_all);
    thread.expect("a thread").join().expect("no panic");
}

/// Returns texts that would cost a careless parser time, memory or stack. Each one has a part of its expected error
/// message.
fn bombs() -> Vec<(String, &'static str)> {
    let doubled = (1..60).map(|i| format!("a{i}: &a{i} [*a{0}, *a{0}]\n", i - 1));
    let spaces = |depth: usize| format!("{}a:\n", " ".repeat(depth));
    let whole = |piece: &str| piece.repeat(MAX_FRONTMATTER / piece.len() - 32);
    vec![
        (
            format!("a0: &a0 [x]\n{}", doubled.collect::<String>()),
            "anchors, aliases and merge keys are not supported",
        ),
        (format!("a: {}1{}", "[".repeat(10_000), "]".repeat(10_000)), "more than 16 deep"),
        (format!("a:\n  {}x", "- ".repeat(10_000)), "more than 16 deep"),
        ((0..300).map(spaces).collect(), "more than 16 deep"),
        (whole("["), "more than 16 deep"),
        (whole("{a: "), "more than 16 deep"),
        (whole("- "), "more than 16 deep"),
        (whole("? "), "more than 16 deep"),
        (whole("&a "), "anchors, aliases and merge keys are not supported"),
        (whole("a: b\n"), "`a` is given twice"),
        (format!("requires: [{}]", whole("x,")), "is not a built-in tool"),
    ]
}

/// The parser stops at the first error, which is at the start of each text, and does not parse the text after it.
#[test]
fn a_bomb_is_an_error_at_once() {
    for (yaml, words) in bombs() {
        let source = format!("---\n{yaml}\n---\n");
        let errors = parse(&source, "greet").errors;
        let first = errors.iter().find(|error| error.message().contains(words)).expect(words);
        assert!(first.span().offset < 2000, "{words}: at {}", first.span().offset);
        assert!(errors.len() <= 1000, "{words}");
    }
}

#[test]
fn a_frontmatter_as_long_as_it_may_be_is_read() {
    let keys = |count: usize| (0..count).map(|i| format!("{i}: [a]\n")).collect::<String>();
    let parsed = parse(&complete(&keys(6000)), "greet");
    assert_eq!(parsed.errors, []);
    assert_eq!(parsed.warnings.len(), MAX_KEPT - 1);
    let tools = "  - {script: a, x: y}\n".repeat(2900);
    let parsed = parse(&format!("---\ntools:\n{tools}---\n"), "greet");
    assert_eq!(parsed.manifest.files.len(), 2900);
}

#[test]
fn a_longer_frontmatter_is_not_read() {
    let text = |length: usize| {
        let keys = "---\nname: greet\ndescription: A.\n# ";
        let comment = "x".repeat(length - keys.len() - 1);
        let start = format!("{keys}{comment}\n---\n");
        let body = "y".repeat(MAX_SKILL_MD - start.len());
        start + &body
    };
    assert_eq!(parse(&text(MAX_FRONTMATTER), "greet").errors, []);
    let long = text(MAX_FRONTMATTER + 1);
    let errors = parse(&long, "greet").errors;
    let [error] = errors.as_slice() else { panic!("{errors:?}") };
    assert_eq!(error.message(), "the frontmatter has more than 65536 bytes");
    let shown =
        error.render(&diagnostics::Sources::single(diagnostics::Source::new("SKILL.md", &*long)));
    assert!(shown.contains("\n 1 | ---\n   | ^^^ begins here\n"), "{shown}");
    assert!(shown.contains("\n 5 | ---\n   | --- ends here\n"), "{shown}");
    assert!(shown.contains("= help: move what an agent need not know"), "{shown}");
}

#[test]
fn of_errors_and_hidden_characters_the_first_are_kept() {
    let requires = "  - nothing\n".repeat(700);
    let hidden = "# \u{200b}\n".repeat(700);
    let errors = parse(&complete(&format!("requires:\n{requires}{hidden}")), "greet").errors;
    assert_eq!(errors.len(), MAX_KEPT);
    assert!(errors.is_sorted_by_key(|error| error.span()));
}

fn fragments() -> impl Strategy<Value = String> {
    proptest::collection::vec(select(PIECES.to_vec()), 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "(\\PC|[\\s\\x00-\\x1f{}\\[\\]\"'#:&*!|>-]){0,200}") {
        run(&text);
        run(&format!("---\n{text}\n---\n"));
    }

    #[test]
    fn no_sequence_of_fragments_makes_the_reader_panic(text in fragments()) {
        run(&format!("---\n{text}\n---\n"));
    }

    #[test]
    fn no_change_of_a_valid_file_makes_the_reader_panic(
        changes in proptest::collection::vec((any::<usize>(), 0usize..12, fragments()), 1..4),
    ) {
        run(&replace_each(VALID, &changes));
    }

    #[test]
    fn a_quoted_text_is_read_back(text in "[^\\x00-\\x1f\\x7f\u{80}-\u{a0}\u{feff}\u{fffe}\u{ffff}]{1,40}") {
        prop_assume!(safe_text::hidden(&text).next().is_none());
        let quoted = text.replace('\'', "''");
        let source = complete(&format!("name: '{quoted}'"));
        prop_assert_eq!(parse(&source, &text).errors, []);
    }
}
