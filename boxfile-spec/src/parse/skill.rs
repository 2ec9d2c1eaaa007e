//! `skill "NAME" path="…"`, any number of times.

use std::collections::BTreeMap;

use crate::diagnostic::quote;
use crate::parse::document::box_or_skill_name;
use crate::parse::reader::Reader;
use crate::sink::Sink;
use crate::syntax::{Node, Value};
use crate::{Diagnostic, Skill, Span, Spanned, rules, value};

/// Reads all skills, and sorts them by name.
pub(super) fn read(nodes: &[&Node], sink: &Sink) -> Vec<Skill> {
    let mut places: BTreeMap<String, Span> = BTreeMap::new();
    let mut skills = Vec::new();
    for node in nodes {
        let mut reader = Reader::new(node, "`skill \"greet\" path=\"skills/greet\"`", sink);
        let given = reader.arg("a name");
        let name = reader.read(given, "skill", box_or_skill_name);
        let path = reader.prop("path");
        let path = reader.read(path, "path", inside_path);
        reader.finish();
        if let (Some(name), Some(given)) = (&name, given) {
            match places.get(name) {
                Some(first) => sink.report(second_skill(name, given.span, *first)),
                None => drop(places.insert(name.clone(), given.span)),
            }
        }
        skills.extend(name.zip(path).map(|(name, path)| Skill { name, path }));
    }
    skills.sort_by(|one: &Skill, other| one.name.cmp(&other.name));
    skills
}

fn second_skill(name: &str, span: Span, first: Span) -> Diagnostic {
    let message = format!("two skills have the name {}", quote(name));
    Diagnostic::new(message, span, "the second")
        .with_label(first, "the first")
        .with_help("give one of them another name")
}

/// Reads a path that stays inside of the Boxfile's directory.
///
/// Every `..` is refused, even one that would lead back: behind a symbolic link it may not.
fn inside_path(value: &Value, name: &str) -> Result<Spanned<String>, Diagnostic> {
    let path = value::filled_text(value, name)?;
    let label = if path.starts_with('/') {
        "an absolute path"
    } else if rules::climbs(path) {
        "`..` leads out of it"
    } else {
        return Ok(Spanned { value: path.to_owned(), span: value.span });
    };
    let message = "a skill must lie inside the Boxfile's directory";
    Err(Diagnostic::new(message, value.span, label)
        .with_help("copy the skill to the Boxfile and name it from there: `path=\"skills/greet\"`"))
}
