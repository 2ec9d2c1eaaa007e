//! `cargo xtask words`: words in comments and documents that a reader has to translate.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use testkit::{KitError, Result, Workspace};

use super::Outcome;
use crate::say;

/// The most places that comments and documents may have together.
const MOST: usize = 25;

/// Phrases that have a plainer one: `behind` for after, `anew` for again, `goes on` for continues.
const PHRASES: [&str; 7] =
    ["told of", "tells whether", "is none", "anew", "counts first", "goes on", "behind"];

/// First words of a doc comment that make a fragment of it, where a sentence says what the item does.
const OPENERS: [&str; 2] = ["What", "Who"];

/// Where one of the phrases is right.
const RIGHT: [&str; 2] = ["behind a proxy", "leaves nothing behind"];

/// A line with such words.
#[derive(Debug)]
struct Place {
    file: PathBuf,
    line: usize,
    text: String,
}

pub(crate) fn run() -> Outcome {
    let places = find(&Workspace::find())?;
    for place in &places {
        say::result(&format!("{}:{}: {}", place.file.display(), place.line, place.text));
    }
    say::note(&format!("{} lines; there may be {MOST}", places.len()));
    Ok(if places.len() <= MOST { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Checks that there are not too many.
///
/// # Errors
/// There are; or a file cannot be read.
pub(super) fn check(workspace: &Workspace) -> Result<()> {
    let count = find(workspace)?.len();
    if count <= MOST {
        return Ok(());
    }
    let why = format!("{count} lines, of {MOST}, have words that `cargo xtask words` lists");
    Err(KitError::malformed("the prose of comments and documents", why))
}

fn find(workspace: &Workspace) -> Result<Vec<Place>> {
    let root = workspace.path("");
    let mut files = Vec::new();
    list(&root, &mut files)?;
    files.sort();
    let mut places = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).map_err(KitError::file("read", &path))?;
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        let file = path.strip_prefix(&root).unwrap_or(&path).to_owned();
        for (number, text) in text.lines().enumerate() {
            let prose = if is_rust { comment(text) } else { Some(text) };
            if prose.is_some_and(is_odd) {
                let (file, text) = (file.clone(), text.trim().to_owned());
                places.push(Place { file, line: number + 1, text });
            }
        }
    }
    Ok(places)
}

/// Lists the Rust files and documents below a directory, but for hidden ones and the build output.
fn list(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory).map_err(KitError::file("list", directory))? {
        let path = entry.map_err(KitError::file("list", directory))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            list(&path, files)?;
        } else if name.ends_with(".rs") || name.ends_with(".md") {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns the comment of a line of Rust.
fn comment(line: &str) -> Option<&str> {
    line.find("//").map(|start| &line[start..])
}

fn is_odd(prose: &str) -> bool {
    let doc = ["///", "//!"].into_iter().find_map(|mark| prose.strip_prefix(mark));
    let opener = doc.and_then(|doc| doc.split_whitespace().next());
    let mut lower = prose.to_lowercase();
    RIGHT.iter().for_each(|right| lower = lower.replace(right, ""));
    opener.is_some_and(|opener| OPENERS.contains(&opener))
        || PHRASES.iter().any(|phrase| has(&lower, phrase))
}

/// Returns whether a phrase is in a text as whole words.
fn has(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase).any(|(at, _)| {
        let is_letter = |c: char| c.is_alphanumeric() || c == '_';
        let (before, after) = (&text[..at], &text[at + phrase.len()..]);
        !before.ends_with(is_letter) && !after.starts_with(is_letter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_words_are_found_in_comments() {
        for odd in [
            "/// What it is.",
            "// it is none",
            "//! Who asks",
            "/// Tells whether it is",
            "// anew:",
        ] {
            assert!(is_odd(odd), "{odd}");
        }
        for plain in
            ["/// Somewhat", "// Whatever it is", "// renewed", "// a server behind a proxy"]
        {
            assert!(!is_odd(plain), "{plain}");
        }
        assert_eq!(comment("let behind = 1;"), None);
        assert_eq!(comment("let a = 1; // one"), Some("// one"));
    }
}
