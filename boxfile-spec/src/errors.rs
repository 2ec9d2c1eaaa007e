//! The errors of a Boxfile. Each one is a fixed text with at most one variable part.

use diagnostics::ErrorTable;

/// One row for each error in the syntax of KDL or TOML.
pub(crate) const SYNTAX_ERRORS: ErrorTable = ErrorTable::new(include_str!("syntax/errors.md"));

/// One row for each error in a declaration.
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
