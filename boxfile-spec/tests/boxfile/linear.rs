//! Tests that reading takes time in proportion to the length of the text.
//!
//! Times are compared with one another and never with a clock. Reading one text may take at most four times as long as
//! reading an eighth of it eight times. A quadratic parser takes eight times as long. Both measurements read the same
//! number of bytes, so that a busy machine slows down both. Of several attempts, the shortest time of each measurement
//! is compared.

use std::hint::black_box;
use std::time::{Duration, Instant};

use boxfile_spec::parse;
use diagnostics::Source;

use crate::hostile::PIECES;

/// The length of the shorter text in bytes.
const LENGTH: usize = 5 << 10;
const TIMES: usize = 8;
const MOST: u32 = 4;
const ATTEMPTS: usize = 10;

/// Checks that `read` takes linear time. `text` returns a text of about `length` bytes.
fn assert_linear(what: &str, text: impl Fn(usize) -> String, read: impl Fn(&str)) {
    let [short, long] = [text(LENGTH), text(LENGTH * TIMES)];
    let [mut many, mut one] = [Duration::MAX; 2];
    for _ in 0..ATTEMPTS {
        many = many.min(time(|| (0..TIMES).for_each(|_| read(&short))));
        one = one.min(time(|| read(&long)));
        if one <= many * MOST {
            return;
        }
    }
    panic!("not linear: {what}: {one:?} for one text, {many:?} for {TIMES} parts of it");
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn read_alone(text: &str) {
    black_box(parse(text).is_ok());
}

fn read_toml(text: &str) {
    let load = |_: &str| Err("no such file".to_owned());
    let document = boxfile_spec::read(Source::new("Boxfile.toml", text), None, load);
    black_box(document.boxfile.is_some());
}

/// Repeats a line up to `length` bytes. Each `#` in the line is replaced by the number of the repetition.
fn lines(line: &str, length: usize) -> String {
    (0..length / line.len()).map(|index| line.replace('#', &index.to_string())).collect()
}

#[test]
fn anything_repeated_is_read_in_linear_time() {
    for piece in PIECES {
        assert_linear(piece, |length| piece.repeat(length / piece.len()), read_alone);
    }
}

#[test]
fn anything_repeated_in_toml_is_read_in_linear_time() {
    for piece in [
        "[",
        "]",
        "[[",
        "{",
        "}",
        ",",
        ".",
        "=",
        "\"",
        "\"\"\"",
        "'''\n",
        "\\",
        "#\n",
        "\r",
        "\u{0}",
        "a.",
        "a=[",
        "a={",
        "a={a=",
        "a=[1,",
        "a=[\n",
        "a={\n",
        "[a.b]\n",
        "[a\n",
        "[[a]]\n",
        "a.b=1\n",
        "a#=1\n",
        "[a#]\n",
        "[[a#]]\n",
        "[a]\nb#.c=x\n",
        "a b\n",
        "a:\n",
        "a {\n",
        "é",
        "skill.s#.path=\"p\"\n",
        "#true ",
        "a=1 2 3\n",
        "a = x ",
    ] {
        for prefix in ["", "a = [", "a = {"] {
            let text = |length| format!("{prefix}{}", lines(piece, length));
            assert_linear(&format!("{prefix}{piece}"), text, read_toml);
        }
    }
}

#[test]
fn every_repeatable_declaration_is_read_in_linear_time() {
    for line in [
        "skill s# path=\"p\"\n",
        "skill s path=\"p#\"\n",
        "share s# guest=\"/p/#\"\n",
        "share s# guest=\"/p\"\n",
        "scratch s# guest=\"/#/x\" size=\"1MiB\"\n",
        "conflict \"/p#\" policy=drop\n",
        "secret S#\n",
        "vm cpus=#\n",
        "unknown# x=1\n",
        "profile p# { vm cpus=1; }\n",
        "agent { env A#=\"1\"; }\n",
    ] {
        assert_linear(line, |length| lines(line, length), read_alone);
    }
}

#[test]
fn every_long_list_is_read_in_linear_time() {
    for (head, item, tail) in [
        ("agent { args", " \"a#\"", "; }"),
        ("agent { env", " A#=\"1\"", "; }"),
        ("agent { limits", " pids=#", "; }"),
        ("agent { limits", " p#=1", "; }"),
        ("agent {", " env A#=\"1\"\n", "}"),
        ("agent {", " env A=\"#\"\n", "}"),
        ("agent {", " file \"f#\" to=\"/p#\"\n", "}"),
        ("agent {", " file \"f#\" to=\"/p\"\n", "}"),
        ("scratch s guest=\"/p\" size=\"1MiB\"\nagent {", " file \"f#\" to=\"/p/#/\"\n", "}"),
        ("agent { tools", " \"bash#\"", "; }"),
        ("network filtered { allow", " \"a#.example\"", "; }"),
        ("network filtered {", " allow \"a.example\" port=#\n", "}"),
        ("sandbox ci { writable \"/x\"; deny-write", " \"/p#\"", "; }"),
        ("task t type=a description=b input=\"[0", ",#", "]\""),
        ("platform", " \"linux/amd64\"", ""),
        ("a {} ", "b", ""),
    ] {
        let text = |length| format!("box b\n{head}{}{tail}\n", lines(item, length));
        assert_linear(head, text, read_alone);
    }
}

#[test]
fn many_writable_paths_under_many_denied_ones_are_found_in_linear_time() {
    let text = |length| {
        let [writable, denied] = [" \"/p#/x\"", " \"/p#\""].map(|path| lines(path, length / 2));
        format!("sandbox ci {{\nwritable{writable}\ndeny-write{denied}\n}}\n")
    };
    assert_linear("sandbox", text, read_alone);
}

#[test]
fn files_and_profiles_merge_in_linear_time() {
    for line in [
        "skill s# path=\"p\"\n",
        "agent { env A#=\"1\"; }\n",
        "conflict \"/p#\" policy=drop\n",
        "unknown# x=1\n",
    ] {
        assert_linear(
            line,
            |length| lines(line, length / 2),
            |text| {
                let main = format!("extends base\n{text}profile p {{\n{text}}}\n");
                let load = |_: &str| Ok(Source::new("base", text));
                let document = boxfile_spec::read(Source::new("Boxfile", main), Some("p"), load);
                black_box(document.boxfile.is_some());
            },
        );
    }
}
