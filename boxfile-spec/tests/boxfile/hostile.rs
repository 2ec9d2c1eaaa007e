//! Tests that hostile input causes no panic, no overflow and no hang.

use boxfile_spec::{Document, MAX_ADDED, MAX_DECLARED, MAX_SOURCE, parse};
use diagnostics::{Source, Sources};
use proptest::prelude::*;
use proptest::sample::select;
use testkit::hostile::replace_each;

use crate::{read, shown};

const VALID: &str = r#"box "hello"
agent {
    image "oci:images/agent:v1"
    entrypoint "/agent/bin/agent"
    env RUST_LOG="info"
    health "http" path="/health"
    namespaces net=#false hostname="agent-host"
    limits memory="64MiB" pids=32 cpu-weight=100
}
business { image "oci:images/business"; }
skill "greet" path="skills/greet"
vm cpus=1 memory="2GiB"
budget total="700ms" kernel="400ms"
"#;

/// Pieces that a hostile file could repeat up to the greatest length of a file.
pub(crate) const PIECES: [&str; 46] = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "a ]\n",
    "a{",
    "a {}",
    "a {} b",
    "/*",
    "*",
    "/* */",
    "/-",
    "/-a ",
    "a /-{ ",
    "a /-b ",
    "\"",
    "\"\"\"",
    "\"\"\"\n",
    "#",
    "#\"",
    "##\"\"\"\n",
    "\\",
    "\\ ",
    "\\\n",
    "=",
    "a=",
    "a = ",
    ";",
    "\n",
    "\r",
    "\u{2028}",
    "a",
    "1",
    "1.",
    "0x",
    "-",
    ".",
    "(a)",
    "a\"",
    "é",
    "漢 ",
    "\u{0}",
    "agent {\n",
    "env A=\"\"\n",
    "box b;",
];

/// Parses a text, and renders its first errors.
fn run(source: &str) {
    if let Err(diagnostics) = parse(source) {
        assert!(!diagnostics.as_slice().is_empty());
        let sources = Sources::single(Source::new("Boxfile", source));
        let spans: Vec<_> = diagnostics.as_slice().iter().map(|one| one.span()).collect();
        assert!(spans.is_sorted());
        for diagnostic in diagnostics.as_slice().iter().take(50) {
            assert!(diagnostic.labels().iter().all(|label| label.span.end() <= source.len()));
            let shown = diagnostic.render(&sources);
            assert!(shown.starts_with("error: "));
            assert!(shown.split('\n').all(|line| safe_text::shown(line) == line), "{shown:?}");
            let (line, column) = sources.location(diagnostic.span());
            assert!(line > 0 && column > 0);
        }
    }
}

/// Calls `run` on a stack that is too small for 2000 nested calls of a parser.
fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(run);
    thread.expect("a thread").join().expect("no panic");
}

#[test]
fn no_repeated_piece_overflows_the_stack_or_hangs() {
    on_a_small_stack(|| {
        for piece in PIECES {
            for prefix in ["", "a ", "agent { env ", "\"\"\"\n"] {
                run(&format!("{prefix}{}", piece.repeat(2000)));
            }
        }
    });
}

#[test]
fn a_comment_of_nothing_but_stars_is_a_comment() {
    let source = format!("/*{}*/ {VALID}", "*".repeat(MAX_SOURCE - VALID.len() - 5));
    assert_eq!(parse(&source).unwrap().name, "hello");
}

#[test]
fn nested_slashdash_blocks_take_no_exponential_time() {
    let nested = |depth| format!("a {}{}", "/-{ a ".repeat(depth), "}".repeat(depth));
    assert!(parse(&format!("{VALID}/-{}", nested(60))).is_ok());
}

#[test]
fn blocks_may_be_nested_64_deep_and_no_deeper() {
    let nested = |depth| format!("{}{}", "a {".repeat(depth), "}".repeat(depth));
    let messages = |depth| parse(&nested(depth)).unwrap_err().to_string();
    assert!(!messages(64).contains("deep"));
    assert_eq!(messages(65), "blocks are nested more than 64 deep in one another");
    assert_eq!(messages(10_000), "blocks are nested more than 64 deep in one another");
}

#[test]
fn more_than_a_mebibyte_is_not_read() {
    let error = |length| parse(&" ".repeat(length)).unwrap_err().to_string();
    assert!(error(MAX_SOURCE).starts_with("the file does not declare `box`"));
    assert_eq!(error(MAX_SOURCE + 1), "the file has more than 1048576 bytes");
}

/// Returns `line` for each number below `count`.
fn numbered(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect()
}

/// Checks that the only error is about the last occurrence of `last`: it is beyond the limit of declarations.
fn assert_one_too_many(document: &Document, last: &str) {
    assert!(document.boxfile.is_none());
    let [error] = document.found.as_slice() else { panic!("{}", shown(document)) };
    let message = format!(
        "a Boxfile has at most {MAX_DECLARED} declarations, arguments and properties, with all that \
         it extends"
    );
    assert_eq!(error.message(), message);
    let source = document.sources.of(error.span());
    assert_eq!(Some(error.span().offset), source.text.rfind(last));
    assert_eq!(error.span().len, last.len());
}

#[test]
fn a_file_declares_so_much_and_no_more() {
    let [x, y] = [" x", "'y',"].map(|it| move |count: usize| it.repeat(count));
    let kdl = format!("box b\nagent {{ image \"oci:i\"\nargs{}\n}}\n", x(MAX_DECLARED - 6));
    let toml = format!("box='b'\n[agent]\nimage='oci:i'\nargs=[{}]\n", y(MAX_DECLARED - 4));
    for (name, text) in [("Boxfile", kdl), ("Boxfile.toml", toml)] {
        assert_eq!(read(&[(name, &text)], None).found, [], "{name}");
    }
    // After the limit, reading ends: the end of a block and required declarations are not reported as missing.
    let half = MAX_DECLARED / 2;
    for (name, last, text) in [
        ("Boxfile", "x", format!("agent {{ args{}", x(MAX_DECLARED - 1))),
        (
            "Boxfile",
            "A24999=x",
            format!("agent {{\n{}", numbered(half, |it| format!("env A{it}=x\n"))),
        ),
        (
            "Boxfile",
            "env",
            format!("agent {{ args x y\n{}", numbered(half - 1, |it| format!("env A{it}=x\n"))),
        ),
        ("Boxfile.toml", "'y'", format!("[agent]\nargs=[{}", y(MAX_DECLARED - 1))),
        ("Boxfile.toml", "[", format!("args=[{}", "[],".repeat(MAX_DECLARED))),
        (
            "Boxfile.toml",
            "A49999",
            format!(
                "[agent.env]\n{}",
                numbered(MAX_DECLARED - 1, |it| format!("A{}=''\n", it + 1))
            ),
        ),
    ] {
        assert_one_too_many(&read(&[(name, &text)], None), last);
    }
}

#[test]
fn what_is_declared_is_counted_over_all_files() {
    let text = |extends: &str, count: usize| {
        format!("extends {extends}\nagent {{\nargs{}\n}}\n", " x".repeat(count))
    };
    let main = text("a", MAX_DECLARED / 2);
    let base = text("b", MAX_DECLARED / 2 - 7);
    let mut asked = Vec::new();
    let document = boxfile_spec::read(Source::new("Boxfile", main), None, |path| {
        asked.push(path.to_owned());
        Ok(Source::new(path, &*base))
    });
    assert_one_too_many(&document, "x");
    assert_eq!(document.found[0].span().source, 1);
    assert_eq!(asked, ["a"], "no base is read that could declare nothing");
}

#[test]
fn the_directories_of_bases_add_so_many_bytes_to_paths_and_no_more() {
    let deep = ["d".repeat(255).as_str(); 16].join("/");
    let each = deep.len() + 1;
    // The path of `two`, the base that `one` extends, is rewritten, too.
    let most = MAX_ADDED / each - 1;
    let skills =
        |count: usize, tag: &str| numbered(count, |it| format!("skill {tag}{it} path=p\n"));
    let main = format!("box b\nextends \"{deep}/one\"\nagent {{ image \"oci:i\"; }}\n");
    let document = |first: usize, second: usize| {
        let (one, two) = (format!("extends two\n{}", skills(first, "a")), skills(second, "b"));
        let paths = ["one", "two"].map(|it| format!("{deep}/{it}"));
        read(&[("Boxfile", &main), (&paths[0], &one), (&paths[1], &two)], None)
    };
    let fits = document(most - 1, 1);
    assert!(fits.boxfile.is_some(), "{:.2000}", shown(&fits));
    let fits = fits.boxfile.unwrap();
    let bytes: usize = fits.skills.iter().map(|it| it.path.value.len()).sum();
    assert_eq!((fits.skills.len(), bytes), (most, most * (each + 1)));
    for (first, second, source, name) in [(most - 1, 2, 1, "two"), (most + 2, 0, 0, "one")] {
        let document = document(first, second);
        let [error] = document.found.as_slice() else { panic!("{}", shown(&document)) };
        assert!(
            error.message().starts_with("the directories of bases add more than 1048576 bytes")
        );
        let place = document.sources.of(error.span()).text[error.span().offset..].to_owned();
        assert_eq!(error.span().source, source);
        assert!(place.trim_start_matches('"').split(['"', '\n']).next().unwrap().ends_with(name));
        assert!(document.boxfile.is_none());
    }
}

#[test]
fn a_box_has_so_many_skills_and_no_more() {
    let text = |count| {
        let skills = numbered(count, |it| format!("skill s{it} path=p\n"));
        format!("box b\nagent {{ image \"oci:i\"; }}\n{skills}")
    };
    assert_eq!(parse(&text(1000)).unwrap().skills.len(), 1000);
    assert_eq!(parse(&text(1001)).unwrap_err().to_string(), "a box has at most 1000 skills");
}

#[test]
fn only_the_first_of_many_errors_are_kept() {
    let text = "x\n".repeat(3000);
    let errors = parse(&text).unwrap_err();
    // The errors about missing declarations do not fit any more.
    assert_eq!(errors.as_slice().len(), 1000);
}

#[test]
fn every_file_and_every_profile_has_its_share_of_the_errors() {
    let wrong = "skill 1 2 3\n".repeat(600);
    let profile = |name: usize| format!("profile p{name} {{\n{wrong}}}\n");
    let profiles: String = (0..20).map(profile).collect();
    let document =
        read(&[("Boxfile", &format!("{wrong}extends base\n{profiles}")), ("base", &wrong)], None);
    assert!(document.boxfile.is_none());
    assert!((1000..=20_000).contains(&document.found.len()), "{}", document.found.len());
    assert!(document.found.is_sorted_by_key(|one| one.span()));
}

/// Tokens of the language. Random sequences of them reach more of the parser than random characters.
fn fragments() -> impl Strategy<Value = String> {
    let fragment = select(vec![
        "box",
        "agent",
        "business",
        "image",
        "env",
        "limits",
        "memory=",
        "\"64MiB\"",
        "\"oci:a\"",
        "{",
        "}",
        "\n",
        ";",
        " ",
        "/-",
        "/*",
        "*/",
        "//",
        "\\",
        "\"",
        "\"\"\"",
        "#\"",
        "\"#",
        "#true",
        "true",
        "=",
        "(",
        ")",
        "1",
        "-1.5",
        "0x",
        "A=\"b\"",
        "extends \"base\"\n",
        "profile p {",
        "profile q {",
        "skill a path=",
        "share a guest=\"/x\"",
        "network",
        "\"filtered\" {",
        "allow",
        "conflict \"/x\" policy=",
        "path=",
        "health",
        "\"http\"",
        "\u{1b}",
        "é",
        "\r\n",
    ]);
    proptest::collection::vec(fragment, 0..60).prop_map(|fragments| fragments.concat())
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(source in "(\\PC|[\\s\\x00-\\x1f{}\"#/\\\\=-]){0,200}") {
        run(&source);
    }

    #[test]
    fn no_sequence_of_fragments_makes_the_parser_panic(source in fragments()) {
        run(&source);
    }

    #[test]
    fn no_files_and_profiles_make_the_parser_panic(
        main in fragments(),
        base in fragments(),
        profile in select(vec![None, Some("p"), Some("q"), Some("")]),
    ) {
        let main = format!("{VALID}extends \"base\"\n{main}");
        let document = read(&[("Boxfile", &main), ("base", &base)], profile);
        prop_assert!(document.found.is_sorted_by_key(|one| one.span()));
        let right = document.found.is_empty() && document.unknown_profile.is_none();
        prop_assert_eq!(document.boxfile.is_some(), right);
        shown(&document);
    }

    #[test]
    fn no_change_of_a_valid_file_makes_the_parser_panic(
        changes in proptest::collection::vec((any::<usize>(), 0usize..12, fragments()), 1..4),
    ) {
        run(&replace_each(VALID, &changes));
    }

    #[test]
    fn slashdash_and_blanks_change_nothing(blanks in proptest::collection::vec(
        select(vec![" ", "\t", "/* { \" */", "\\\n", "\\ // }\r\n", " /-x ", " /-\"y\" ", " /- k=\"{\" "]), 14,
    )) {
        let mut blanks = blanks.into_iter();
        let source: String = VALID
            .lines()
            .map(|line| match line.rsplit_once(' ') {
                Some((start, end)) if !line.contains('{') =>
                    format!("{start} {} {end}\n", blanks.next().unwrap_or(" ")),
                _ => format!("{line}\n"),
            })
            .collect();
        let plain = parse(VALID).unwrap();
        let sources = Sources::single(Source::new("Boxfile", source.as_str()));
        let changed = parse(&source).map_err(|error| error.render(&sources));
        prop_assert_eq!(changed.as_ref().map(|one| &one.agent.component.env), Ok(&plain.agent.component.env));
        prop_assert_eq!(changed.as_ref().map(|one| &one.agent.component.limits), Ok(&plain.agent.component.limits));
        prop_assert_eq!(changed.as_ref().map(|one| (&one.vm, &one.budget)), Ok((&plain.vm, &plain.budget)));
    }
}
