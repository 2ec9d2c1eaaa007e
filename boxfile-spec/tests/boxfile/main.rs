//! Tests the language from its users' view: each test compares whole files with their models or their rendered
//! diagnostics.
//!
//! `wrong` has files that are refused, with their messages. `right` has files that are accepted, with their models.
//! `hostile` and `linear` have files that nobody would write by accident.

use boxfile_spec::{Document, Reach};
use diagnostics::Source;

mod both;
mod hostile;
mod linear;
mod right;
mod wrong;

/// Reads several files. The first one is the main file, and the others are its base files, found by their paths. The
/// checkout is the smallest directory that contains all of them.
fn read(files: &[(&str, &str)], profile: Option<&str>) -> Document {
    let (name, text) = files[0];
    let up = |(path, _): &(&str, &str)| path.split('/').take_while(|part| *part == "..").count();
    let reach = Reach { up: files.iter().map(up).max(), reason: String::new() };
    boxfile_spec::read_within(Source::new(name, text), profile, &reach, |path| {
        let found = files[1..].iter().find(|(name, _)| *name == path);
        let (name, text) = found.ok_or("there is no such file")?;
        Ok(Source::new(*name, *text))
    })
}

/// Returns the rendered diagnostics of a document.
fn shown(document: &Document) -> String {
    let shown = document.found.iter().map(|one| one.render(&document.sources));
    shown.collect::<Vec<_>>().join("\n\n")
}

/// Parses a Boxfile that must be invalid, and returns its rendered errors.
fn errors(source: &str) -> String {
    let document = read(&[("Boxfile", source)], None);
    assert!(document.boxfile.is_none(), "the file is wrong");
    shown(&document)
}

/// As [`errors`], for lines inside an otherwise valid `agent { … }`.
fn agent_errors(lines: &str) -> String {
    errors(&format!("box \"b\"\nagent {{\nimage \"oci:i\"\n{lines}\n}}\n"))
}

/// As [`errors`], for lines after a valid box and agent.
fn file_errors(lines: &str) -> String {
    errors(&format!("box \"b\"\nagent {{ image \"oci:i\"; }}\n{lines}\n"))
}
