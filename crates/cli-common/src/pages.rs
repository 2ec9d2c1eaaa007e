//! The pages of the documentation that help names, such as `docs/trust.md`: an installation has them below `share/doc/boxbuild`.

use std::borrow::Cow;
use std::path::Path;

/// The beginning of a page's name in help.
const PAGES: &str = "docs/";
/// What help begins with.
const HELP: &str = "= help: ";

/// Replaces the names of pages in the help of messages by their paths, if the directory `documents` has them. In other lines, such
/// a name can be one of the user's files.
pub fn located<'t>(text: &'t str, documents: &Path) -> Cow<'t, str> {
    if !text.contains(PAGES) || !documents.is_dir() {
        return text.into();
    }
    let line = |line: &'t str| match line.trim_start().starts_with(HELP) {
        true => in_line(line, documents).into(),
        false => Cow::from(line),
    };
    text.split_inclusive('\n').map(line).collect::<String>().into()
}

fn in_line(line: &str, documents: &Path) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let mut done = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(is_name) {
        let (before, from) = rest.split_at(at);
        let (word, after) = from.split_at(from.find(|c| !is_name(c)).unwrap_or(from.len()));
        done += before;
        done += &word_in(word, documents);
        rest = after;
    }
    done + rest
}

/// Returns the path of the page that a word names, or else the word.
fn word_in<'t>(word: &'t str, documents: &Path) -> Cow<'t, str> {
    let name = word.trim_end_matches('.');
    let path = documents.join(name);
    if !name.starts_with(PAGES) || !path.is_file() {
        return word.into();
    }
    format!("{}{}", path.display(), &word[name.len()..]).into()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn help_names_the_page_that_is_installed() {
        let root = tempfile::tempdir().unwrap();
        let text = "error: docs/trust.md is no box\n  = help: docs/trust.md has an example; docs/running.md, ./docs/trust.md.\n";
        assert_eq!(located(text, root.path()), text);
        fs::create_dir(root.path().join("docs")).unwrap();
        fs::write(root.path().join("docs/trust.md"), "").unwrap();
        let page = root.path().join("docs/trust.md");
        let expected = text.replace("help: docs/trust.md", &format!("help: {}", page.display()));
        assert_eq!(located(text, root.path()), expected);
        assert_eq!(
            located("  = help: see docs/trust.md.", root.path()),
            format!("  = help: see {}.", page.display())
        );
    }
}
