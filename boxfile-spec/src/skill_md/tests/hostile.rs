//! Input that nobody would write by accident: no panic, no overflow, no hang.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::skill_md::parse;

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

/// Parses a text, and shows the first errors and warnings of it.
fn run(source: &str) {
    let parsed = parse(source, "greet");
    let errors = parsed.manifest.err().map(|errors| errors.as_slice().to_vec()).unwrap_or_default();
    assert!(errors.is_sorted_by_key(|error| error.span()));
    for one in errors.iter().take(3).chain(parsed.warnings.iter().take(3)) {
        assert!(one.labels().iter().all(|label| label.span.end() <= source.len()));
        assert!(one.labels().iter().all(|label| source.is_char_boundary(label.span.offset)));
        assert!(
            one.render(&crate::Sources::single(crate::Source::new("SKILL.md", source)))
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
    // A stack that holds no 4000 calls of a parser.
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(run_all);
    thread.expect("a thread").join().expect("no panic");
}

#[test]
fn a_mebibyte_of_brackets_or_keys_is_read() {
    for piece in ["[", "[]: ", "{a: ", "- ", "a: b\n", "\"a\": [1, 2]\n", "&a ", "k: [a, b]\n"] {
        let yaml = piece.repeat((1 << 20) / piece.len() - 8);
        run(&format!("---\n{yaml}\n---\n"));
        run(&format!("---\nmetadata: [{yaml}\n---\n"));
    }
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
        changes in proptest::collection::vec((any::<Index>(), 0usize..12, fragments()), 1..4),
    ) {
        let mut source = VALID.to_owned();
        for (index, length, inserted) in changes {
            let start = source.floor_char_boundary(index.index(source.len() + 1));
            let end = source.floor_char_boundary((start + length).min(source.len()));
            source.replace_range(start..end.max(start), &inserted);
        }
        run(&source);
    }

    #[test]
    fn a_quoted_text_is_read_back(text in "[^\\x00-\\x1f\\x7f\u{80}-\u{a0}\u{feff}\u{fffe}\u{ffff}]{1,40}") {
        let quoted = text.replace('\'', "''");
        let source = format!("---\nname: greet\ndescription: '{quoted}'\n---\n");
        let parsed = parse(&source, "greet");
        let manifest = parsed.manifest.map_err(|errors| errors.render(&crate::Sources::single(crate::Source::new("SKILL.md", source.as_str()))));
        prop_assert_eq!(manifest.map(|manifest| manifest.description), Ok(Some(text)));
    }
}
