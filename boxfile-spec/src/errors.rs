//! The errors in a Boxfile whose words are the same each time, but for one part.

use diagnostics::ErrorTable;

/// Each row is an error in the syntax, KDL or TOML.
pub(crate) const SYNTAX_ERRORS: ErrorTable = ErrorTable::new(include_str!("syntax/errors.md"));

/// Each row is an error in what is declared.
pub(crate) const DECLARATION_ERRORS: ErrorTable = ErrorTable::new(include_str!("parse/errors.md"));

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn error_names_and_table_rows_match() {
        let code = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        for (table, name) in
            [(SYNTAX_ERRORS, "SYNTAX_ERRORS"), (DECLARATION_ERRORS, "DECLARATION_ERRORS")]
        {
            let calls = testkit::error_table::check(table.page(), &code, name);
            assert!(calls > 20, "{calls} calls of {name}");
        }
    }
}
