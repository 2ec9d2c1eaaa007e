//! Compares a page with a table of errors with the code that uses its rows.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

/// Checks that each row of a page has a unique name and three texts, that the table has each name that a call uses, and that
/// the code below `directory` has each name of the table. `constant` is the table's name in the code. Tests are ignored.
/// Returns the number of calls that name a row.
///
/// If the table lacked a name, programs would show the name as the message. A name that a call gets from a variable is a
/// literal elsewhere in the code, so its row is not taken for unused.
///
/// # Panics
/// If one of the checks fails.
pub fn check(page: &str, directory: &Path, constant: &str) -> usize {
    let names = names(page);
    let code = code(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let called = called(&code, constant);
    for name in &called {
        assert!(names.contains(name), "{constant} has no {name:?}");
    }
    for name in &names {
        assert!(code.contains(&format!("\"{name}\"")), "nothing names {name:?}");
    }
    called.len()
}

/// Returns the names of the table's rows, without its head.
fn names(page: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.trim_matches(['|', ' ']).split(" | ").collect();
        assert!(cells.len() == 4 && cells.iter().all(|cell| !cell.is_empty()), "{row}");
        assert!(names.insert(cells[0]), "{row}");
    }
    assert!(names.remove("name") && names.remove("---"), "the table has a head");
    names
}

/// Returns the names in calls such as `SYNTAX.at("name", …)` and `SYNTAX.about("name", …)`, with repetitions.
fn called<'c>(code: &'c str, constant: &str) -> Vec<&'c str> {
    let call = |rest: &'c str| {
        let rest = rest.trim_start();
        let arguments = rest.strip_prefix(".at(").or_else(|| rest.strip_prefix(".about("))?;
        Some(arguments.trim_start().strip_prefix('"')?.split_once('"')?.0)
    };
    code.split(constant).skip(1).filter_map(call).collect()
}

/// Returns the code below a directory without its tests.
fn code(directory: &Path) -> io::Result<String> {
    let mut code = String::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.file_stem().is_some_and(|name| name == "tests") {
            continue;
        }
        if path.is_dir() {
            code += &self::code(&path)?;
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(path)?;
            code += text.split("\nmod tests {").next().unwrap_or_default();
        }
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str =
        "| name | message | label | help |\n| --- | --- | --- | --- |\n| a | b | c | d |\n";

    fn is_refused(page: &str, code: &str) -> bool {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("lib.rs"), code).unwrap();
        std::panic::catch_unwind(|| check(page, directory.path(), "TABLE")).is_err()
    }

    #[test]
    fn what_only_one_side_has_is_refused() {
        assert!(!is_refused(PAGE, "TABLE\n    .at(\n\"a\", span)"));
        assert!(is_refused(PAGE, "TABLE.about(\"b\", span); \"a\""), "no row");
        assert!(is_refused(PAGE, "TABLE.at(name, span)"), "no call");
        assert!(is_refused(&format!("{PAGE}| a | b | c | d |\n"), "\"a\""), "twice");
        assert!(is_refused(&format!("{PAGE}| e | b | c |\n"), "\"a\" \"e\""), "no help");
    }
}
