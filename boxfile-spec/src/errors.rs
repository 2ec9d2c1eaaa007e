//! Error messages that are kept as rows of Markdown tables.

use crate::{Diagnostic, Span};

/// The errors in the syntax of a Boxfile, KDL or TOML.
pub(crate) const SYNTAX: ErrorTable = ErrorTable(include_str!("syntax/errors.md"));
/// The errors in the syntax of a `SKILL.md`.
pub(crate) const SKILL_MD: ErrorTable = ErrorTable(include_str!("skill_md/errors.md"));
/// The errors in a file of environment variables.
pub(crate) const DOTENV: ErrorTable = ErrorTable(include_str!("dotenv/errors.md"));

/// A table in Markdown. Each row has an error's name, message, label and help; in the texts, `{}`
/// stands for the subject of the error.
pub(crate) struct ErrorTable(&'static str);

impl ErrorTable {
    /// Returns the error with this name.
    pub(crate) fn at(&self, name: &str, span: Span) -> Diagnostic {
        self.about(name, "", span)
    }

    /// Returns the error with this name, about a subject.
    pub(crate) fn about(&self, name: &str, subject: &str, span: Span) -> Diagnostic {
        let row =
            |line: &'static str| line.strip_prefix("| ")?.strip_prefix(name)?.strip_prefix(" | ");
        let row = self.0.lines().find_map(row);
        debug_assert!(row.is_some(), "no error is named `{name}`");
        let cells = row.unwrap_or(name).trim_end_matches(" |").split(" | ");
        let mut cells = cells.map(|cell| cell.replace("{}", subject));
        let mut next = || cells.next().unwrap_or_default();
        Diagnostic::new(next(), span, next()).with_help(next())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_has_a_name_of_its_own_and_three_texts() {
        for table in [SYNTAX, SKILL_MD, DOTENV] {
            let mut names = BTreeSet::new();
            for row in table.0.lines().filter(|line| line.starts_with("| ")) {
                let cells: Vec<&str> = row.trim_matches(['|', ' ']).split(" | ").collect();
                assert!(cells.len() == 4 && cells.iter().all(|cell| !cell.is_empty()), "{row}");
                assert!(names.insert(cells[0]), "{row}");
            }
        }
    }

    /// Returns the code of this crate without its tests.
    fn code(directory: &std::path::Path) -> String {
        let mut code = String::new();
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.file_stem().is_some_and(|name| name == "tests") {
                continue;
            }
            if path.is_dir() {
                code += &self::code(&path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let text = std::fs::read_to_string(path).unwrap();
                code += text.split("\nmod tests {").next().unwrap();
            }
        }
        code
    }

    /// A name that no table has would be shown as the message. Names that are in a variable are
    /// literals elsewhere, so that the reverse holds for all.
    #[test]
    fn error_names_and_table_rows_match() {
        let code = code(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
        let call = regex::Regex::new(r#"(SYNTAX|SKILL_MD|DOTENV)\s*\.(?:at|about)\(\s*"([\w-]+)""#)
            .unwrap();
        let tables = [("SYNTAX", SYNTAX), ("SKILL_MD", SKILL_MD), ("DOTENV", DOTENV)];
        let names = |table: &ErrorTable| -> Vec<&str> {
            let rows = table.0.lines().filter_map(|line| line.strip_prefix("| "));
            rows.skip(2).filter_map(|row| row.split(" | ").next()).collect()
        };
        let mut calls = 0;
        for found in call.captures_iter(&code) {
            let (_, table) = tables.iter().find(|(name, _)| *name == &found[1]).unwrap();
            assert!(names(table).contains(&&found[2]), "{} has no {:?}", &found[1], &found[2]);
            calls += 1;
        }
        assert!(calls > 20, "{calls} calls");
        for name in tables.iter().flat_map(|(_, table)| names(table)) {
            assert!(code.contains(&format!("\"{name}\"")), "nothing names {name:?}");
        }
    }

    #[test]
    fn an_error_has_the_words_of_its_row() {
        let table = ErrorTable(
            "| name | message | label | help |\n| ab | no {} | {} | b |\n| a | x | y | z |\n",
        );
        let error = table.about("ab", "{}", Span::at(1, 2));
        let expected = Diagnostic::new("no {}", Span::at(1, 2), "{}").with_help("b");
        assert_eq!(error, expected);
        assert_eq!(table.at("a", Span::default()).message(), "x");
    }
}
