//! `cargo xtask cycles`: files that import each other in a circle.

use std::path::Path;
use std::process::ExitCode;

use testkit::{KitError, Result, Workspace};

use super::Outcome;
use crate::say;
use crate::source::{Crate, circles, imports, packages};

/// The largest circle that the code may have, in files.
const LARGEST: usize = 3;

/// Files of one crate that import each other.
struct Circle {
    package: String,
    /// Each file with those of the circle that it imports.
    files: Vec<(String, Vec<String>)>,
}

pub(crate) fn run() -> Outcome {
    let circles = find(&Workspace::find())?;
    for circle in &circles {
        say::result(&shown(circle));
    }
    say::note(&format!("{} circles; the largest may have {LARGEST} files", circles.len()));
    Ok(if too_large(&circles).is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Checks that no circle is too large.
///
/// # Errors
/// One is; the error has its files and their imports.
pub(super) fn check(workspace: &Workspace) -> Result<()> {
    let circles = find(workspace)?;
    let found = too_large(&circles);
    if found.is_empty() {
        return Ok(());
    }
    let why = format!(
        "{} import cycles have more than {LARGEST} files (cargo xtask cycles lists all):\n{}",
        found.len(),
        found.join("\n")
    );
    Err(KitError::malformed("the structure of the code", why))
}

fn too_large(circles: &[Circle]) -> Vec<String> {
    circles.iter().filter(|circle| circle.files.len() > LARGEST).map(shown).collect()
}

/// Returns all circles of the repository, the largest first.
fn find(workspace: &Workspace) -> Result<Vec<Circle>> {
    let mut found = Vec::new();
    for package in packages(workspace)? {
        for root in package.roots() {
            found.extend(of_crate(workspace, &package.name, root)?);
        }
    }
    found.sort_by_key(|circle| std::cmp::Reverse(circle.files.len()));
    Ok(found)
}

fn of_crate(workspace: &Workspace, package: &str, root: &Path) -> Result<Vec<Circle>> {
    let found = Crate::read(root)?;
    let edges = imports(&found);
    let name = |file: usize| {
        let path = &found.files[file].path;
        path.strip_prefix(workspace.path("")).unwrap_or(path).display().to_string()
    };
    let circle = |members: Vec<usize>| {
        let imported = |file: usize| {
            let inside = edges[file].iter().filter(|other| members.contains(other));
            inside.map(|other| name(*other)).collect()
        };
        let files = members.iter().map(|file| (name(*file), imported(*file))).collect();
        Circle { package: package.to_owned(), files }
    };
    Ok(circles(&edges).into_iter().map(circle).collect())
}

fn shown(circle: &Circle) -> String {
    let mut text = format!("{}: {} files\n", circle.package, circle.files.len());
    for (file, imported) in &circle.files {
        text += &format!("  {file} imports {}\n", imported.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circle(files: usize) -> Circle {
        let file = |at: usize| (format!("{at}.rs"), vec![format!("{}.rs", (at + 1) % files)]);
        Circle { package: "a".to_owned(), files: (0..files).map(file).collect() }
    }

    #[test]
    fn circles_of_more_than_three_files_are_too_large() {
        assert_eq!(too_large(&[circle(3), circle(2)]), [""; 0]);
        let shown = "a: 4 files\n  0.rs imports 1.rs\n  1.rs imports 2.rs\n  \
                     2.rs imports 3.rs\n  3.rs imports 0.rs\n";
        assert_eq!(too_large(&[circle(4), circle(3)]), [shown]);
    }
}
