#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod dotenv;
pub mod files;
pub mod skill;
pub mod skill_md;

/// The file names of a Boxfile, in the order of the search.
pub const BOXFILES: [&str; 3] = ["Boxfile", "Boxfile.kdl", "Boxfile.toml"];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use testkit::error_table::check;

    #[test]
    fn error_names_and_table_rows_match() {
        let code = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let tables = [("dotenv", crate::dotenv::ERRORS), ("skill_md", crate::skill_md::ERRORS)];
        for (module, table) in tables {
            let calls = check(table.page(), &code.join(module), "ERRORS");
            assert!(calls > 2, "{module}: {calls} calls");
        }
    }
}
