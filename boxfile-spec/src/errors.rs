//! The errors in the syntax of a Boxfile, KDL or TOML.

use diagnostics::ErrorTable;

/// Each row is an error.
pub(crate) const SYNTAX: ErrorTable = ErrorTable::new(include_str!("syntax/errors.md"));

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_has_a_name_of_its_own_and_three_texts() {
        for table in [SYNTAX] {
            let mut names = BTreeSet::new();
            for row in table.page().lines().filter(|line| line.starts_with("| ")) {
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
        let call = regex::Regex::new(r#"(SYNTAX)\s*\.(?:at|about)\(\s*"([\w-]+)""#).unwrap();
        let tables = [("SYNTAX", SYNTAX)];
        let names = |table: &ErrorTable| -> Vec<&str> {
            let rows = table.page().lines().filter_map(|line| line.strip_prefix("| "));
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
}
