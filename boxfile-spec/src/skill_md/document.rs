//! The keys of the frontmatter.

use super::fields::Fields;
use super::manifest::{SkillKind, SkillManifest};
use super::report::Report;
use super::yaml::Node;
use super::{allowed, tool, value};
use crate::diagnostic::quote;
use crate::{Diagnostic, Span, Spanned, rules, tools};

const KINDS: [(&str, SkillKind); 3] = [
    ("instruction", SkillKind::Instruction),
    ("persona", SkillKind::Persona),
    ("tool", SkillKind::Tool),
];
/// Keys for people and registries.
const NOT_READ: [&str; 3] = ["license", "compatibility", "metadata"];

/// Reads the frontmatter; what has an error is reported and left out of the result.
pub(super) fn read(
    root: &Node,
    directory: &str,
    body_offset: usize,
    report: &Report,
) -> Option<SkillManifest> {
    let mut fields = Fields::new("the frontmatter", root, report)?;
    let manifest = SkillManifest {
        name: name(&mut fields, directory),
        description: fields.read("description", value::text),
        version: fields.read("version", value::filled_text),
        author: fields.read("author", value::filled_text),
        tags: fields.items("tags", value::filled_text),
        kind: fields.read("kind", |node, key| value::word(node, key, &KINDS)).unwrap_or_default(),
        lane: fields.read("lane", value::filled_text),
        system_prompt: fields.read("system_prompt", value::path),
        requires: fields.items("requires", builtin),
        tools: tool::read(&mut fields),
        allowed_tools: fields.take("allowed-tools").map(|field| allowed::read(field, report)),
        disable_model_invocation: fields
            .read("disable-model-invocation", value::boolean)
            .unwrap_or_default(),
        body_offset,
    };
    fields.ignore(&NOT_READ);
    fields.finish();
    Some(manifest)
}

/// Reads the name, which is the directory's.
fn name(fields: &mut Fields<'_>, directory: &str) -> Spanned<String> {
    let first_line = Span::between(0, "---".len());
    let Some(name) = fields.read("name", spanned_name) else {
        return Spanned { value: directory.to_owned(), span: first_line };
    };
    if name.value != directory {
        let message = format!(
            "the skill's name {} differs from its directory's, {}",
            quote(&name.value),
            quote(directory)
        );
        let error = Diagnostic::new(message, name.span, "not the directory's name");
        let help = format!("write `name: {directory}`, or rename the directory");
        fields.report.error(error.with_help(help));
    }
    name
}

fn spanned_name(node: &Node, key: &str) -> Result<Spanned<String>, Diagnostic> {
    let value = value::text(node, key)?;
    if rules::is_name(&value) {
        return Ok(Spanned { value, span: node.span });
    }
    let message = format!("{} is not a valid name", quote(&value));
    let error = Diagnostic::new(message, node.span, "not a name");
    Err(error.with_help(match rules::intended_name(&value) {
        Some(intended) => format!("{}; write `{key}: {intended}`", rules::NAME_FORM),
        None => rules::NAME_FORM.to_owned(),
    }))
}

fn builtin(node: &Node, key: &str) -> Result<Spanned<&'static str>, Diagnostic> {
    let name = value::text(node, key)?;
    let value = tools::canonical(&name).map_err(|help| {
        let message = format!("{} is not a built-in tool", quote(&name));
        Diagnostic::new(message, node.span, "no agent has this").with_help(help)
    })?;
    Ok(Spanned { value, span: node.span })
}
