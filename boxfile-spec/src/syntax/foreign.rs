//! Recognizes a Boxfile that is written in KDL but has the file name of TOML, or the reverse.

use super::allowance::Allowance;
use super::{kdl, toml};
use crate::schema;
use diagnostics::cursor::lines;
use diagnostics::{Diagnostic, Sink, Source, Span, Syntax};

/// Returns the error of a Boxfile that is not written in the syntax of its file name.
pub(super) fn other_syntax(source: &Source) -> Option<Diagnostic> {
    match source.syntax {
        Syntax::Kdl => {
            let help = "give it a name that ends with `.toml`: `Boxfile.toml`";
            first_line_of_toml(&source.text).map(|line| wrong_syntax("KDL", "TOML", line, help))
        }
        Syntax::Toml => {
            let help = "give it a name that does not end with `.toml`: `Boxfile`, or `Boxfile.kdl`";
            is_kdl(&source.text).then(|| wrong_syntax("TOML", "KDL", Span::default(), help))
        }
    }
}

/// Returns `true` if a text that is not TOML is a Boxfile in KDL.
fn is_kdl(source: &str) -> bool {
    let mut lines = source.lines().map(str::trim_start);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('/')).unwrap_or_default();
    let word = first.split(|c: char| c.is_whitespace() || c == '{').next().unwrap_or_default();
    let (sink, mut allowance) = (Sink::default(), Allowance::default());
    schema::find(schema::TOP, word).is_some()
        && !kdl::read(source, &mut allowance, &sink).nodes.is_empty()
        && sink.into_found().is_empty()
}

/// Returns the first line of a text that is not KDL, if the text is a Boxfile in TOML.
fn first_line_of_toml(source: &str) -> Option<Span> {
    let mut lines = lines(source).map(|(at, line)| (at, line.trim_end()));
    let (at, line) = lines.find(|(_, line)| !line.is_empty() && !line.starts_with('#'))?;
    let name = line.trim_start_matches('[').trim_start();
    let end = name.find(|c: char| c.is_whitespace() || ".=]".contains(c));
    schema::find(schema::TOP, &name[..end.unwrap_or(name.len())])?;
    // No declaration of KDL begins with a bracket.
    let sure = line.starts_with('[') || toml::is_valid(source);
    sure.then(|| Span::at(at, line.len()))
}

fn wrong_syntax(named: &str, written: &str, place: Span, help: &str) -> Diagnostic {
    let message = format!("the file's name says {named}, but it is written in {written}");
    Diagnostic::new(message, place, format!("{written} from here on")).with_help(help)
}
