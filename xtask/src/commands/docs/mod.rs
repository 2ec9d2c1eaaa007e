//! `cargo xtask docs`: generates the documents that `boxbuild schema` prints, and the tables of box-init's isolation.
//!
//! xtask runs these programs instead of depending on their crates, because it is compiled before everything else and should
//! have few dependencies.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use testbed::{KitError, Result, Workspace, program, promises};
use tool_output::say;

use super::Outcome;

#[cfg(test)]
mod consent;
#[cfg(test)]
mod links;

const SPECIFICATION: &str = "SPECIFICATION.md";

/// Which documents are written.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only copy what the last runs of `cargo xtask test --landing` and of the benchmarks have measured into SPECIFICATION.md.
    #[arg(long)]
    measured: bool,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let workspace = Workspace::find();
    if options.measured {
        return copy_measured(&workspace).map(|()| ExitCode::SUCCESS);
    }
    write(&workspace, "docs/boxfile.md", &["boxbuild", "--", "schema", "--reference"])?;
    write(&workspace, "docs/boxfile.schema.json", &["boxbuild", "--", "schema"])?;
    write(&workspace, "docs/security.md", &["box-init", "--example", "isolation"])?;
    Ok(ExitCode::SUCCESS)
}

/// Copies the measured values into SPECIFICATION.md.
fn copy_measured(workspace: &Workspace) -> Result<()> {
    let read = |path: &Path| fs::read_to_string(path).map_err(KitError::file("read", path));
    let path = workspace.path(SPECIFICATION);
    let noted = read(&workspace.target(promises::MEASURED_FILE))?;
    let page = promises::with_measured(&read(&path)?, &noted, |seconds| {
        let mut date = Command::new("date");
        let text = program::run(date.args(["--utc", &format!("--date=@{seconds}"), "+%F"]))?;
        Result::Ok(String::from_utf8_lossy(&text).trim().to_owned())
    })?;
    fs::write(&path, page).map_err(KitError::file("write", &path))
}

/// Writes a program's output to a document. If the output begins with a comment, it replaces the document from that comment on.
/// Otherwise it replaces the whole document.
fn write(workspace: &Workspace, name: &str, program_and_arguments: &[&str]) -> Result<()> {
    let mut writer = workspace.cargo();
    writer.args(["run", "--quiet", "--package"]).args(program_and_arguments);
    let printed = say::step(name, || program::run(&mut writer))?;
    let text = String::from_utf8(printed).map_err(|error| KitError::malformed(name, error))?;
    let path = workspace.path(name);
    let old = fs::read_to_string(&path).map_err(KitError::file("read", &path))?;
    let kept = by_hand(&old, &text).ok_or_else(|| {
        KitError::malformed(name, "it lacks the line with which the generated part begins")
    })?;
    fs::write(&path, kept.to_owned() + &text).map_err(KitError::file("write", &path))
}

/// Returns the handwritten text of a document, before the comment with which `generated` begins. Returns an empty text if
/// `generated` begins with no comment, and `None` if the document does not have the comment.
fn by_hand<'a>(document: &'a str, generated: &str) -> Option<&'a str> {
    let mark = generated.lines().next().filter(|line| line.starts_with("<!--"));
    mark.map_or(Some(""), |mark| document.split_once(mark).map(|(before, _)| before))
}

#[cfg(test)]
mod tests {
    use super::by_hand;

    #[test]
    fn only_a_part_that_begins_with_a_comment_leaves_something() {
        let page = "# Title\n<!-- mark -->\nold\n";
        assert_eq!(by_hand(page, "<!-- mark -->\nnew\n"), Some("# Title\n"));
        assert_eq!(by_hand(page, "<!-- other -->\nnew\n"), None);
        assert_eq!(by_hand(page, "# Title\nnew\n"), Some(""));
    }
}
