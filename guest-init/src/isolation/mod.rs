//! The generated part of `docs/security.md`: the tables of capabilities and system calls.

use box_contract::capabilities::{CAPABILITIES, Capability, Grant};

use crate::component::seccomp::calls::{Docker, Row, Verdict};
use crate::component::seccomp::table::CALLS;

/// The text, with a placeholder such as `@CALLS@` for each table.
const PROSE: &str = include_str!("prose.md");

/// Returns the part of `docs/security.md` that lists the rights of a program in a box, as Markdown.
///
/// `docs/security.md` ends with this text, and `cargo xtask docs` updates it. The first line is a comment that marks
/// where the part begins.
///
/// # Examples
///
/// ```
/// let part = box_init::isolation::section();
/// assert!(part.starts_with("<!-- Generated from here to the end"));
/// ```
pub fn section() -> String {
    let tables =
        [("@CAPABILITIES@", capabilities()), ("@CALLS@", calls()), ("@ALLOWED@", allowed())];
    tables.iter().fold(PROSE.to_owned(), |text, (mark, table)| text.replace(mark, table))
}

/// Returns whether a row gets a line in the table. A call that is allowed here and by Docker, and has no note, is only
/// listed after the table.
const fn is_special(row: &Row) -> bool {
    !matches!((row.verdict, row.docker), (Verdict::Allowed, Docker::Allows))
        || !row.reason.is_empty()
}

/// Returns a Markdown table.
fn table(head: &str, lines: impl Iterator<Item = String>) -> String {
    let rule = "|---".repeat(head.matches('|').count() - 1) + "|";
    [head.to_owned(), rule].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

fn capabilities() -> String {
    let line = |capability: &Capability| {
        let grant = match capability.grant {
            Grant::Always => "yes",
            Grant::Asked => "if added",
            Grant::Never => "never",
        };
        let docker = if capability.by_docker { "yes" } else { "no" };
        format!("| `{}` | {grant} | {docker} | {} |", capability.name, capability.about)
    };
    table("| capability | root has it | Docker | what it does |", CAPABILITIES.iter().map(line))
}

fn calls() -> String {
    let head = "| number | call | in a box | Docker | why |";
    table(head, CALLS.iter().filter(|row| is_special(row)).flat_map(lines))
}

/// Returns one line of the table for each call of a row.
fn lines(row: &Row) -> impl Iterator<Item = String> {
    (row.first..).zip(row.names.split(' ')).map(|(number, name)| {
        let (verdict, docker) = (verdict(row.verdict), docker(row.docker));
        format!("| {number} | `{name}` | {verdict} | {docker} | {} |", row.reason)
    })
}

const fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allowed => "allowed",
        Verdict::Refused => "`EPERM`",
        Verdict::Absent => "`ENOSYS`",
        Verdict::ByFamily => "some, else `EAFNOSUPPORT`",
        Verdict::ByCloneFlags | Verdict::ByPersonality | Verdict::ByRequest => "some, else `EPERM`",
    }
}

fn docker(docker: Docker) -> String {
    match docker {
        Docker::Allows => "allowed".to_owned(),
        Docker::Refuses => "refused".to_owned(),
        Docker::Restricts => "some".to_owned(),
        Docker::Needs(capability) => format!("`{capability}`"),
    }
}

fn allowed() -> String {
    let names = CALLS.iter().filter(|row| !is_special(row)).flat_map(|row| row.names.split(' '));
    let mut names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    names.sort();
    names.join(" ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_checked_in_page_ends_with_the_tables() {
        let checked_in = include_str!("../../../docs/security.md");
        assert!(
            checked_in.ends_with(&super::section()),
            "docs/security.md does not end with the tables: run `cargo xtask docs`"
        );
    }
}
