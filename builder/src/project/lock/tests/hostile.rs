//! Hostile text: no panic, no stack overflow, no hang.

use proptest::prelude::*;
use proptest::sample::select;
use testkit::hostile::replace_each;

use super::*;

/// Pieces that a hostile file could repeat without end.
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

/// Parses a text, and renders its errors.
fn run(text: &str) {
    if let Err(errors) = Lock::parse(text) {
        for label in errors.as_slice().iter().flat_map(diagnostics::Diagnostic::labels) {
            assert!(label.span.end() <= text.len());
        }
        let sources = diagnostics::Sources::single(diagnostics::Source::new("Boxfile.lock", text));
        assert!(errors.render(&sources).starts_with("error: "));
    }
}

/// Parses texts on a small stack, which recursion that depends on the text would overflow.
fn run_on_a_small_stack(texts: Vec<String>) {
    let thread = std::thread::Builder::new().stack_size(512 << 10);
    thread.spawn(move || texts.iter().for_each(|text| run(text))).unwrap().join().unwrap();
}

#[test]
fn as_much_of_anything_as_fits() {
    run_on_a_small_stack(PIECES.map(|piece| piece.repeat(50_000)).to_vec());
    let heads = ["version = 2\nepoch = 1\n[[entry]]\n", "a = "];
    let pieces = ["a.", "[", "{a=", "[{a.b=", "\"\"\"", "'''", "]", "[1,", "a = 1\n", "\\u"];
    let texts =
        heads.iter().flat_map(|head| pieces.map(|one| head.to_string() + &one.repeat(500_000)));
    run_on_a_small_stack(texts.collect());
}

/// The `toml` crate limits brackets to 80, and also the names of a dotted key, but not their product.
#[test]
fn as_deep_as_the_toml_crate_itself_would_allow() {
    let dotted = "a.".repeat(79) + "a";
    let table = format!("[{dotted}]\n{}", format!("{dotted} = {{ ").repeat(79));
    let brackets = "a = ".to_owned() + &"[{a = ".repeat(40);
    run_on_a_small_stack(vec![table.clone(), table.replace("{ ", "[{ "), brackets]);
}

/// Locks of the maximum size without a valid entry: many brackets, tables and keys are an error within seconds.
#[test]
fn noise_of_the_greatest_length() {
    let head = "version = 2\nepoch = 1\n";
    for piece in ["[", "[[entry]]\n", "a = 1\n"] {
        let most = (crate::project::lock::MAX_TEXT - head.len()) / piece.len();
        run(&format!("{head}{}", piece.repeat(most)));
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
        run(&format!("version = 2\nepoch = 1\n[[entry]]\n{}", pieces.concat()));
    }

    /// Any sequence of opening and closing pieces, followed by text that nests too deeply.
    #[test]
    fn deep_nesting_after_any_pieces(pieces in proptest::collection::vec(select(&PIECES[..]), 0..12)) {
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
        run(&replace_each(&example().write(), &[(start, length, pieces.concat())]));
    }
}
