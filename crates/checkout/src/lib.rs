#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

use std::path::Path;

pub mod agents;
pub mod dotenv;
pub mod files;
pub mod skill;
pub mod skill_md;

/// The file names of a Boxfile, in the order of the search.
pub const BOXFILES: [&str; 3] = ["Boxfile", "Boxfile.kdl", "Boxfile.toml"];

/// Returns whether a file has the name of a Boxfile, for example `Boxfile.toml` or `ci.Boxfile`. A lock has not.
pub fn is_boxfile_name(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let is_named = name == "Boxfile" || name.starts_with("Boxfile.") || name.ends_with(".Boxfile");
    is_named && !name.ends_with(".lock")
}

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
