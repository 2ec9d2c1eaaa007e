//! The language as its users see it: whole files in, models or rendered diagnostics out.
//!
//! `wrong` has the files that are refused, and the texts that say so; `right` those that are read,
//! and the models that they give; `hostile` and `linear` what nobody would write by accident.

use boxfile_spec::{Document, Reach};
use diagnostics::Source;

mod both;
mod hostile;
mod linear;
mod right;
mod wrong;

/// Reads several files, of which the first is the main one; the others are found by their paths. The checkout is the
/// smallest directory that holds them all.
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

/// Shows what a user reads of some files.
fn shown(document: &Document) -> String {
    let shown = document.found.iter().map(|one| one.render(&document.sources));
    shown.collect::<Vec<_>>().join("\n\n")
}

/// Parses a Boxfile that must be wrong, and shows what a user reads.
fn errors(source: &str) -> String {
    let document = read(&[("Boxfile", source)], None);
    assert!(document.boxfile.is_none(), "the file is wrong");
    shown(&document)
}

/// As [`errors`], for lines inside of an otherwise valid `agent { … }`.
fn agent_errors(lines: &str) -> String {
    errors(&format!("box \"b\"\nagent {{\nimage \"oci:i\"\n{lines}\n}}\n"))
}

/// As [`errors`], for lines after a valid box and agent.
fn file_errors(lines: &str) -> String {
    errors(&format!("box \"b\"\nagent {{ image \"oci:i\"; }}\n{lines}\n"))
}
