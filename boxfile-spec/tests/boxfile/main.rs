//! The language as its users see it: whole files in, models or rendered diagnostics out.

mod conflicts;
mod example;
mod hostile;
mod structure;
mod values;

/// Parses a Boxfile that must be wrong, and shows what a user reads.
fn errors(source: &str) -> String {
    let diagnostics = boxfile_spec::parse(source).expect_err("the file is wrong");
    diagnostics.render("Boxfile", source)
}

/// As [`errors`], for lines inside of an otherwise valid `agent { … }`.
fn agent_errors(lines: &str) -> String {
    errors(&format!("box \"b\"\nagent {{\nimage \"oci:i\"\n{lines}\n}}\n"))
}

/// As [`errors`], for lines behind a valid box and agent.
fn file_errors(lines: &str) -> String {
    errors(&format!("box \"b\"\nagent {{ image \"oci:i\"; }}\n{lines}\n"))
}
