//! Text that nobody would write by accident: no panic, no stack overflow, no hang.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::lock::nesting;

/// What a file might consist of to no end.
const PIECES: [&str; 44] = [
    "[",
    "]",
    "[[",
    "]]",
    "[[entry]]\n",
    "{",
    "}",
    "{a=",
    "[{a.b=",
    "a.",
    ".",
    "=",
    ",",
    "a=",
    "a = 1\n",
    "a.b = 1\n",
    "a",
    "1",
    "1.",
    "-",
    "0x",
    "+",
    "inf",
    "true",
    "1979-05-27T",
    "\"",
    "\"\"\"",
    "'",
    "'''",
    "\\",
    "\\\"",
    "\\u",
    "\n",
    "\r",
    "\r\n",
    " ",
    "\t",
    "#",
    "\u{0}",
    "é",
    "漢",
    "\u{feff}",
    "layers = [\n",
    "size = ",
];

/// Parses a text, and shows every error of it.
fn run(text: &str) {
    let salvaged = Lock::salvage(text);
    if let Ok(lock) = Lock::parse(text) {
        assert_eq!(salvaged.lock, Some(lock));
        assert_eq!(salvaged.dropped, Vec::<String>::new());
    }
    if let Err(errors) = Lock::parse(text) {
        assert!((1..=100).contains(&errors.as_slice().len()));
        let spans: Vec<_> = errors.iter().map(|error| error.span()).collect();
        assert!(spans.is_sorted());
        for error in errors.iter().take(20) {
            assert!(error.labels().iter().all(|label| label.span.end() <= text.len()));
            assert!(
                error
                    .render(&crate::Sources::single(crate::Source::new("Boxfile.lock", text)))
                    .starts_with("error: ")
            );
        }
    }
}

/// Runs on a small stack: recursion that depends on the text overflows it.
fn run_on_a_small_stack(texts: Vec<String>) {
    let thread = std::thread::Builder::new().stack_size(512 << 10);
    thread.spawn(move || texts.iter().for_each(|text| run(text))).unwrap().join().unwrap();
}

#[test]
fn as_much_of_anything_as_fits() {
    run_on_a_small_stack(PIECES.map(|piece| piece.repeat(50_000)).to_vec());
    let heads = ["version = 1\nepoch = 1\n[[entry]]\n", "a = "];
    let pieces = ["a.", "[", "{a=", "[{a.b=", "\"\"\"", "'''", "]", "[1,", "a = 1\n", "\\u"];
    let texts =
        heads.iter().flat_map(|head| pieces.map(|one| head.to_string() + &one.repeat(500_000)));
    run_on_a_small_stack(texts.collect());
}

#[test]
fn as_deep_as_the_toml_crate_itself_would_allow() {
    let dotted = "a.".repeat(79) + "a";
    let table = format!("[{dotted}]\n{}", format!("{dotted} = {{ ").repeat(79));
    run_on_a_small_stack(vec![table.clone(), table.replace("{ ", "[{ ")]);
    assert!(nesting::excess(&table).is_some());
}

#[test]
fn what_texts_and_comments_hold_is_not_nesting() {
    let deep = "[.{".repeat(100);
    for text in [
        format!("a = \"{deep}\""),
        format!("a = '{deep}'"),
        format!("a = \"\\\"{deep}\\\\\""),
        format!("a = \"\"\"\n\"{deep}\\\"\"\"{deep}\"\"\"\"\""),
        format!("a = '''\n'{deep}\n''{deep}'''''"),
        format!("# {deep}"),
        "[a]".repeat(64),
    ] {
        assert_eq!(nesting::excess(&text), None, "{text}");
    }
}

#[test]
fn nesting_is_found_behind_whatever_ends_a_text() {
    for start in [
        "",
        r#""""#,
        "''",
        r#""\"""#,
        r#""\\""#,
        r"'\'",
        r#""""""""#,
        r#""""""""""#,
        r#""""\"""""#,
        "''''''",
        "''''''''",
        r"'''\'''",
        "a\"",
        "a'",
        "\"\n",
        "\"\\\n",
        "'\n",
        "# \"\n",
        "# \"\r",
        "\u{feff}\"\"",
        "\u{feff}\"\\\"\"",
    ] {
        let text = format!("{start}{}", ".".repeat(65));
        assert_eq!(nesting::excess(&text), Some(text.len() - 1), "{text:?}");
    }
}

proptest! {
    #[test]
    fn any_text(text in "\\PC{0,200}") {
        run(&text);
    }

    #[test]
    fn any_pieces(pieces in proptest::collection::vec(select(&PIECES[..]), 0..60)) {
        run(&pieces.concat());
        run(&format!("version = 1\nepoch = 1\n[[entry]]\n{}", pieces.concat()));
    }

    /// Texts that are opened and closed in any way, and behind them what must not be reached.
    #[test]
    fn nesting_behind_any_pieces(pieces in proptest::collection::vec(select(&PIECES[..]), 0..12)) {
        let dotted = "a.".repeat(70) + "a = {";
        let text = format!("{}{}", pieces.concat(), dotted.repeat(70));
        run_on_a_small_stack(vec![format!("{text}\n"), format!("\n{text}")]);
    }

    #[test]
    fn any_change_of_a_valid_lock(
        start in 0usize..4000,
        length in 0usize..40,
        pieces in proptest::collection::vec(select(&PIECES[..]), 0..4),
    ) {
        let text = example().write();
        let start = text.floor_char_boundary(start.min(text.len()));
        let end = text.floor_char_boundary((start + length).min(text.len()));
        run(&format!("{}{}{}", &text[..start], pieces.concat(), &text[end..]));
    }
}
