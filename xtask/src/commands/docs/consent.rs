//! Tests that every test that docs/consent.md names exists, and that ever fewer of its rows have no test.

use std::fs;
use std::path::Path;

use testbed::Workspace;

/// How often the column `test` has `none`. The number only falls: write the test of a new row.
const WITHOUT_TEST: usize = 1;

/// Returns the cells of the column `test`, the last one of each row.
fn cells(page: &str) -> impl Iterator<Item = &str> {
    let rows = page.lines().filter(|line| line.starts_with("| ") && line.ends_with(" |"));
    let last = rows.filter_map(|row| row.trim_end_matches(" |").rsplit(" | ").next());
    // The header of a table, and the table that describes the columns.
    last.filter(|it| *it != "test" && !it.contains("`none` if"))
}

/// Returns the faults of a cell: files that do not exist, and tests that their file does not have.
fn faults(workspace: &Workspace, cell: &str) -> Vec<String> {
    let (mut found, mut file) = (Vec::new(), None);
    for word in cell.split('`').skip(1).step_by(2) {
        if word.contains('/') {
            file = Some(word);
            if !workspace.path(word).exists() {
                found.push(format!("{word} does not exist"));
            }
        } else if let Some(file) = file
            && is_name(word)
            && !has_test(&workspace.path(file), word)
        {
            found.push(format!("{file} has no test {word}"));
        }
    }
    found
}

/// Returns whether a word is the name of a test, and not a command.
fn is_name(word: &str) -> bool {
    word.contains('_')
        && word.bytes().all(|it| it.is_ascii_lowercase() || b"_0123456789".contains(&it))
}

/// Returns whether a file, or a file of a directory, has a function with this name.
fn has_test(path: &Path, name: &str) -> bool {
    match fs::read_dir(path) {
        Ok(entries) => entries.flatten().any(|it| has_test(&it.path(), name)),
        Err(_) => fs::read_to_string(path).is_ok_and(|it| it.contains(&format!("fn {name}("))),
    }
}

#[test]
fn ever_fewer_rows_of_consent_have_no_test() {
    let page = fs::read_to_string(Workspace::find().path("docs/consent.md")).unwrap();
    let is_none = |word: &&str| word.trim_matches(|it: char| !it.is_alphanumeric()) == "none";
    let count = cells(&page).flat_map(str::split_whitespace).filter(is_none).count();
    assert!(cells(&page).count() > 100);
    assert_eq!(count, WITHOUT_TEST, "if it has fallen, write the new number here");
}

#[test]
fn every_test_that_consent_names_exists() {
    let workspace = Workspace::find();
    let page = fs::read_to_string(workspace.path("docs/consent.md")).unwrap();
    let all: Vec<_> = cells(&page).flat_map(|it| faults(&workspace, it)).collect();
    assert!(all.is_empty(), "{}", all.join("\n"));
}
