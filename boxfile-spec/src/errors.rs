//! The errors in the syntax of a Boxfile, KDL or TOML.

use diagnostics::ErrorTable;

/// Each row is an error.
pub(crate) const SYNTAX: ErrorTable = ErrorTable::new(include_str!("syntax/errors.md"));

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn error_names_and_table_rows_match() {
        let code = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let calls = testkit::error_table::check(SYNTAX.page(), &code, "SYNTAX");
        assert!(calls > 20, "{calls} calls");
    }
}
