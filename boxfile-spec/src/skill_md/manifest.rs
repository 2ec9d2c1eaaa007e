//! Checks the keys, and the result: what a valid `SKILL.md` means for a box.

use super::Parsed;
use super::keys::{BackendKind, Frontmatter, Mapping, Text, Tool, place};
use crate::diagnostic::quote;
use crate::sink::Sink;
use crate::suggest::{builtin_tool, did_you_mean, nearest};
use crate::{Diagnostic, Diagnostics, Span, Spanned, rules};

/// The keys of the frontmatter in any generation of agents.
const KEYS: [&str; 15] = [
    "name",
    "description",
    "version",
    "author",
    "tags",
    "kind",
    "lane",
    "system_prompt",
    "requires",
    "tools",
    "allowed-tools",
    "disable-model-invocation",
    "license",
    "compatibility",
    "metadata",
];
/// The keys of a tool in any generation of agents.
const TOOL_KEYS: [&str; 8] =
    ["name", "description", "script", "backend", "bin", "url", "sha256", "parameters"];
/// The keys that say what a tool runs.
const RUNNABLE: [&str; 4] = ["script", "backend", "bin", "url"];

/// The parts of a skill's definition that a box is built from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillManifest {
    /// The built-in tools that the skill needs, by their canonical names.
    pub requires: Vec<Spanned<&'static str>>,
    /// The files that the skill must have, the prompt first. One that is named twice is there
    /// twice.
    pub files: Vec<SkillFile>,
}

/// A file that a definition says the skill has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// Its path within the skill, without `.`, `..` and doubled slashes.
    pub path: String,
    /// Where it is named.
    pub span: Span,
    /// Whether it is run: a tool's script or program.
    pub executable: bool,
}

/// Checks the keys of a skill in the directory `directory`.
pub(super) fn check(mapping: &Mapping<Frontmatter>, directory: &str) -> Parsed {
    let (errors, warnings) = (Sink::default(), Sink::default());
    report_unknown("the frontmatter", &mapping.keys, &KEYS, &warnings);
    let keys = &mapping.value;
    if let Some(name) = &keys.name {
        errors.check(check_name(name, directory));
    }
    let names = keys.requires.iter().flatten();
    let requires = names.filter_map(|name| errors.attempt(|| builtin(name))).collect();
    let prompt = keys.system_prompt.iter();
    let mut files: Vec<SkillFile> =
        prompt.filter_map(|path| errors.attempt(|| file(path, "system_prompt", false))).collect();
    for tool in keys.tools.iter().flatten() {
        report_unknown("a tool", &tool.keys, &TOOL_KEYS, &warnings);
        errors.check(runs_one(&tool.keys));
        let programs = programs(&tool.value);
        files.extend(programs.filter_map(|(path, key)| errors.attempt(|| file(path, key, true))));
    }
    let mut warnings = warnings.into_found();
    warnings.sort_by_key(Diagnostic::span);
    let manifest = SkillManifest { requires, files };
    Parsed { manifest: Diagnostics::new(errors.into_found()).map_or(Ok(manifest), Err), warnings }
}

/// Warns of the keys that are not among the known ones of `owner`.
fn report_unknown(owner: &str, keys: &[Text], known: &[&str], sink: &Sink) {
    for key in keys.iter().filter(|key| !known.contains(&key.value.as_str())) {
        if sink.is_full() {
            return;
        }
        let message = match key.value.as_str() {
            "" => format!("a key of {owner} is not a text"),
            text => format!("{owner} has no key {}", quote(text)),
        };
        let warning = Diagnostic::warning(message, place(key), "nothing reads this");
        let all = || format!("the keys here are {}", known.join(", "));
        sink.report(warning.with_help(nearest(&key.value, known).map_or_else(all, did_you_mean)));
    }
}

fn check_name(name: &Text, directory: &str) -> Result<(), Diagnostic> {
    let value = name.value.as_str();
    if value == directory {
        return Ok(());
    }
    let error = if rules::is_name(value) {
        let message = format!(
            "the skill's name {} differs from its directory's, {}",
            quote(value),
            quote(directory)
        );
        Diagnostic::new(message, place(name), "not the directory's name")
            .with_help(format!("write `name: {directory}`, or rename the directory"))
    } else {
        let message = format!("{} is not a valid name", quote(value));
        Diagnostic::new(message, place(name), "not a name").with_help(
            match rules::intended_name(value) {
                Some(intended) => format!("{}; write `name: {intended}`", rules::NAME_FORM),
                None => rules::NAME_FORM.to_owned(),
            },
        )
    };
    Err(error)
}

fn builtin(name: &Text) -> Result<Spanned<&'static str>, Diagnostic> {
    let span = place(name);
    let value = builtin_tool(&name.value).map_err(|help| {
        let message = format!("{} is not a built-in tool", quote(&name.value));
        Diagnostic::new(message, span, "no agent has this").with_help(help)
    })?;
    Ok(Spanned { value, span })
}

/// Checks that a tool does not run two things.
fn runs_one(keys: &[Text]) -> Result<(), Diagnostic> {
    let mut runnable = keys.iter().filter(|key| RUNNABLE.contains(&key.value.as_str()));
    let (Some(first), Some(second)) = (runnable.next(), runnable.next()) else { return Ok(()) };
    let message = format!("a tool has both `{}` and `{}`", first.value, second.value);
    let error = Diagnostic::new(message, place(second), "the second")
        .with_label(place(first), "the first")
        .with_help("keep what the tool is to run, and remove the other");
    Err(error)
}

/// Returns the files of the skill that a tool runs, each with the key that names it.
fn programs(tool: &Tool) -> impl Iterator<Item = (&Text, &'static str)> {
    let in_skill = |path: &&Text| !path.value.starts_with('/');
    let binary = tool.backend.iter().filter(|backend| backend.kind == BackendKind::Binary);
    let path = binary.filter_map(|backend| backend.path.as_ref()).filter(in_skill);
    let script = tool.script.iter().map(|path| (path, "script"));
    let bin = tool.bin.iter().filter(in_skill).map(|path| (path, "bin"));
    script.chain(bin).chain(path.map(|path| (path, "path")))
}

/// Reads the path of a file of the skill.
///
/// Every `..` is refused, even one that would lead back: after a symbolic link it may not.
fn file(path: &Text, key: &str, executable: bool) -> Result<SkillFile, Diagnostic> {
    let text = path.value.as_str();
    let parts: Vec<&str> =
        text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let label = if text.contains(char::is_control) {
        "this is text, not a path"
    } else if text.starts_with('/') {
        "an absolute path"
    } else if rules::climbs(text) {
        "`..` leads out of it"
    } else if text.trim().is_empty() {
        "an empty text"
    } else if parts.is_empty() {
        "the directory itself"
    } else {
        return Ok(SkillFile { path: parts.join("/"), span: place(path), executable });
    };
    let message = format!("`{key}` must name a file inside of the skill's directory");
    let error = Diagnostic::new(message, place(path), label);
    Err(error.with_help("put the file there and name it from there, as in `tools/hello.sh`"))
}
