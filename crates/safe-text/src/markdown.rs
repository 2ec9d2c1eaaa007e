//! Foreign text in a Markdown document.

use super::visible;

/// The length limit of a foreign text in a document, in characters.
const MAX_LEN: usize = 200;

/// Formats foreign text as code for one line of a Markdown document: a paragraph, a list item or the cell of a table.
///
/// No text has an effect on the document around it, in [CommonMark](https://spec.commonmark.org/0.31.2/) and in [GitHub's
/// Markdown](https://github.github.com/gfm/):
///
/// - The text is in [code spans](https://spec.commonmark.org/0.31.2/#code-spans), in which neither Markdown nor HTML nor a
///   character reference has a meaning. GitHub and GitLab make no mention (`@user`), issue (`#1`), commit or link of code.
/// - A backtick ends a code span, and `|` a cell. Both are written between two code spans, as `&#96;` and `&#124;`. A [character
///   reference](https://spec.commonmark.org/0.31.2/#entity-and-numeric-character-references) is never part of Markdown's syntax.
/// - Characters that [`visible`] replaces become U+FFFD, so there is no line end.
/// - A text is cut after 200 characters. `…` after the code shows it.
/// - An empty text is `*empty*`, because there is no empty code span.
///
/// # Examples
///
/// ```
/// assert_eq!(safe_text::markdown_code("@user <b>"), "`@user <b>`");
/// assert_eq!(safe_text::markdown_code("a`b|c"), "`a`&#96;`b`&#124;`c`");
/// ```
pub fn markdown_code(text: &str) -> String {
    if text.is_empty() {
        return "*empty*".to_owned();
    }
    let (mut code, mut span) = (String::new(), String::new());
    for c in text.chars().take(MAX_LEN).map(visible) {
        let reference = match c {
            '`' => "&#96;",
            '|' => "&#124;",
            c => {
                span.push(c);
                continue;
            }
        };
        close(&mut span, &mut code);
        code += reference;
    }
    close(&mut span, &mut code);
    let is_cut = text.chars().nth(MAX_LEN).is_some();
    code + if is_cut { "…" } else { "" }
}

/// Appends a code span. A reader removes one space from both ends if both have one, unless the span has nothing else.
fn close(span: &mut String, code: &mut String) {
    let is_stripped = span.starts_with(' ') && span.ends_with(' ') && span.trim() != "";
    let pad = if is_stripped { " " } else { "" };
    if !span.is_empty() {
        *code += &format!("`{pad}{span}{pad}`");
    }
    span.clear();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::shown;

    /// Reads the text back by the rules of CommonMark for code spans and references. `None` if there is anything else.
    fn read(mut code: &str) -> Option<String> {
        let mut text = String::new();
        while !code.is_empty() {
            if let Some(rest) = code.strip_prefix("&#96;") {
                (text, code) = (text + "`", rest);
            } else if let Some(rest) = code.strip_prefix("&#124;") {
                (text, code) = (text + "|", rest);
            } else {
                let (span, rest) = code.strip_prefix('`')?.split_once('`')?;
                let inner = span.strip_prefix(' ').and_then(|it| it.strip_suffix(' '));
                text += inner.filter(|_| span.trim() != "").unwrap_or(span);
                // Two adjacent backticks would be one delimiter of another length.
                (!span.is_empty() && !rest.starts_with('`')).then_some(())?;
                code = rest;
            }
        }
        Some(text)
    }

    fn hostile() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "`",
            "``",
            "|",
            "\\",
            "\n",
            " ",
            "<b>",
            "-->",
            "@user",
            "&#96;",
            "[a](http://b)",
            "x",
            "é",
            "\u{1b}",
            "\u{202e}",
            "$",
            "*",
            "#1",
        ]);
        let pieces = prop::collection::vec(piece, 1..12).prop_map(|it| it.concat());
        prop_oneof![pieces, ".{1,40}"]
    }

    proptest! {
        #[test]
        fn a_reader_sees_the_text_and_nothing_else(text in hostile()) {
            let code = markdown_code(&text);
            prop_assert_eq!(read(&code), Some(shown(&text)), "{}", code);
            prop_assert!(!code.contains(['|', '\n', '\r']), "{}", code);
        }
    }

    #[test]
    fn spaces_stay_and_long_texts_are_cut() {
        for (text, code) in
            [(" ", "` `"), (" a ", "`  a  `"), (" a", "` a`"), ("", "*empty*"), ("\\", "`\\`")]
        {
            assert_eq!(markdown_code(text), code);
        }
        let long = "é".repeat(200);
        assert_eq!(markdown_code(&long), format!("`{long}`"));
        assert_eq!(markdown_code(&(long.clone() + "|")), format!("`{long}`…"));
    }
}
