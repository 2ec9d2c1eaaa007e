//! Checks the keys of a `SKILL.md`, and extracts the parts that the builder uses.

use box_contract::rules::{MAX_SKILL_AUTHOR, MAX_SKILL_VERSION};

use super::keys::{Backend, Data, Frontmatter, Mapping, Tool, Value};
use super::{Parsed, about, frontmatter};
use box_contract::rules;
use diagnostics::Sink;
use diagnostics::in_quotes;
use diagnostics::names::name_error;
use diagnostics::suggest::{builtin_tool, did_you_mean, nearest};
use diagnostics::{Diagnostic, Severity, Span, Spanned, Syntax};
use safe_text::quote;

/// The keys of the frontmatter in all three schemas and in the specification (<https://agentskills.io/specification>).
const KEYS: &str = "name description version author tags kind lane system_prompt requires tools \
     allowed-tools disable-model-invocation license compatibility metadata";
/// Keys of other agents that resemble one of [`KEYS`] but are no misspellings of it.
const OTHER_KEYS: [&str; 6] = ["tool", "type", "target", "triggers", "title", "model"];
/// The keys of a tool in all three schemas.
const TOOL_KEYS: &str = "name description script backend bin url sha256 parameters";
/// Keys that declare the program of a tool. The builder uses the first three.
const RUNNABLE: [&str; 4] = ["script", "backend", "bin", "url"];
/// The types of backends. Only the first one runs a program of the skill.
const BACKENDS: [&str; 3] = ["binary", "http", "script"];
/// The parts of a skill's definition that the builder uses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SkillManifest {
    /// The span of the skill's name.
    pub name: Span,
    /// The skill's purpose, and when an agent should use it. `description`, `version` and `author` are single lines
    /// without control characters.
    pub description: String,
    /// The skill's version, verbatim.
    pub version: Option<String>,
    /// The skill's author.
    pub author: Option<String>,
    /// The built-in tools that the skill requires, by their canonical names.
    pub requires: Vec<Spanned<&'static str>>,
    /// The files that the skill must contain, beginning with the prompt. A file that the definition names twice occurs
    /// twice.
    pub files: Vec<SkillFile>,
}

/// A file that a definition requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// The path within the skill, without `.`, `..` and repeated slashes.
    pub path: String,
    /// The span of the path in the definition.
    pub span: Span,
    /// Whether the file is a tool's script or program.
    pub executable: bool,
}

/// Checks the keys of a skill in a directory with the name `directory`. `text` is the content of the `SKILL.md`.
pub(super) fn check(text: &str, frontmatter: &Value<Frontmatter>, directory: &str) -> Parsed {
    let checker = Checker { text, errors: Sink::default(), warnings: Sink::default() };
    let manifest = checker.skill(frontmatter, directory);
    let mut warnings = checker.warnings.into_found();
    warnings.sort_by_key(Diagnostic::span);
    Parsed { manifest, errors: checker.errors.into_found(), warnings }
}

/// Checks values, and collects errors and warnings.
pub(super) struct Checker<'t> {
    pub(super) text: &'t str,
    pub(super) errors: Sink,
    pub(super) warnings: Sink,
}

impl Checker<'_> {
    fn skill(&self, frontmatter: &Value<Frontmatter>, directory: &str) -> SkillManifest {
        let mut skill = SkillManifest { name: frontmatter::start(self.text), ..Default::default() };
        let without_keys = Mapping::default();
        let mapping = match frontmatter.data {
            Data::Absent => &without_keys,
            _ => match self.mapping("the frontmatter", frontmatter) {
                Some(mapping) => mapping,
                None => return skill,
            },
        };
        self.report_unknown("the frontmatter", mapping, KEYS);
        let keys = &mapping.value;
        let help = format!("write `name: {directory}`, the name of the skill's directory");
        if let Some(name) = self.required("name", &keys.name, &help) {
            skill.name = name.span;
            self.errors.check(check_name(name, directory));
        }
        let help = "write `description: …`: what the skill does, and when an agent should use it";
        let description = self.required("description", &keys.description, help);
        let description = description.and_then(|it| self.errors.check(about::description(it)));
        skill.description = description.unwrap_or_default();
        skill.version = self.recorded("`version`", &keys.version, MAX_SKILL_VERSION);
        skill.author = self.recorded("`author`", &keys.author, MAX_SKILL_AUTHOR);
        skill.files.extend(self.file("`system_prompt`", &keys.system_prompt, false));
        for name in self.list("`requires`", &keys.requires) {
            let name = self.text("an item of `requires`", name);
            skill.requires.extend(name.and_then(|name| self.errors.attempt(|| builtin(name))));
        }
        for tool in self.list("`tools`", &keys.tools) {
            self.tool(tool, &mut skill.files);
        }
        skill
    }

    /// Adds the skill's files that a tool runs. An absolute path is not added, because it refers to the agent's image.
    fn tool(&self, tool: &Value<Tool>, files: &mut Vec<SkillFile>) {
        let Some(mapping) = self.mapping("a tool", tool) else { return };
        self.report_unknown("a tool", mapping, TOOL_KEYS);
        self.check_runs_one(mapping);
        let tool = &mapping.value;
        files.extend(self.file("`script`", &tool.script, true));
        let absolute = |it: &Value| matches!(&it.data, Data::Text(text) if text.starts_with('/'));
        for (key, path) in [("`bin`", Some(&tool.bin)), ("`path`", self.program(&tool.backend))] {
            let path = path.filter(|path| !absolute(path));
            files.extend(path.and_then(|path| self.file(key, path, true)));
        }
    }

    /// Returns the path of a backend's program, if the backend's type is `binary`. Backends of other types are the
    /// agent's concern.
    fn program<'v>(&self, backend: &'v Value<Backend>) -> Option<&'v Value> {
        let keys = &self.mapping("`backend`", backend)?.value;
        let (kind, place) = match &keys.kind.data {
            Data::Text(kind) => (kind.as_str(), keys.kind.place),
            Data::Absent | Data::Null => ("", backend.place),
            _ => (self.written(&keys.kind), keys.kind.place),
        };
        if !BACKENDS.contains(&kind) {
            let message = match kind {
                "" => "`backend` has no `type`".to_owned(),
                _ => format!("unknown `type` {}", quote(kind)),
            };
            let all = || format!("write one of {}", BACKENDS.join(", "));
            let help = nearest(kind, &BACKENDS).map_or_else(all, did_you_mean);
            let warning = Diagnostic::warning(message, place, "the backend's keys are not read");
            self.warnings.report(warning.with_help(help));
        }
        Some(&keys.path).filter(|_| kind == BACKENDS[0])
    }

    /// Checks that a tool does not declare two programs. If the second one is a `url`, this is only a warning, because
    /// the builder does not use URLs.
    fn check_runs_one(&self, tool: &Mapping<Tool>) {
        let named = |name: &&str| tool.keys.iter().find(|key| key.value == *name);
        let mut keys = RUNNABLE.iter().filter_map(named);
        let (Some(first), Some(second)) = (keys.next(), keys.next()) else { return };
        let message = format!("a tool has both `{}` and `{}`", first.value, second.value);
        let error = Diagnostic::new(message, second.span, "one of them")
            .with_label(first.span, "the other")
            .with_help("keep what the tool is to run, and remove the other");
        match second.value.as_str() {
            "url" => self.warnings.report(error.into_warning()),
            _ => self.errors.report(error),
        }
    }

    /// Warns of keys that are probably misspelt keys of `owner`. Other unknown keys may belong to agents that
    /// `boxbuild` does not know.
    pub(super) fn report_unknown<T>(&self, owner: &str, mapping: &Mapping<T>, known: &str) {
        let known: Vec<&str> = known.split(' ').collect();
        for key in mapping.keys.iter().filter(|key| !known.contains(&key.value.as_str())) {
            if self.warnings.is_full() {
                return;
            }
            let meant = nearest(&key.value, &known).filter(|_| !OTHER_KEYS.contains(&&*key.value));
            let (message, help) = match (key.value.as_str(), meant) {
                ("", _) => {
                    let all = format!("the keys here are {}", known.join(", "));
                    (format!("a key of {owner} is not a string"), all)
                }
                (text, Some(meant)) => {
                    (format!("{owner} has no key {}", quote(text)), did_you_mean(meant))
                }
                (_, None) => continue,
            };
            let warning = Diagnostic::warning(message, key.span, "nothing reads this");
            self.warnings.report(warning.with_help(help));
        }
    }

    /// Returns the text of a value in the source. For a list or mapping, returns only its beginning.
    fn written<T>(&self, value: &Value<T>) -> &str {
        self.text.get(value.place.offset..value.place.end()).unwrap_or_default()
    }

    /// Returns the text of a required key.
    pub(super) fn required<'v>(
        &self,
        key: &str,
        value: &'v Value,
        help: &str,
    ) -> Option<Spanned<&'v str>> {
        let (message, place, label) = match &value.data {
            Data::Absent => {
                let message = format!("the frontmatter has no `{key}`");
                (message, frontmatter::start(self.text), "begins here")
            }
            Data::Null => (format!("`{key}` has no value"), value.place, "expected a string"),
            _ => return self.text(&format!("`{key}`"), value),
        };
        self.errors.report(Diagnostic::new(message, place, label).with_help(help));
        None
    }

    pub(super) fn text<'v, T>(&self, what: &str, value: &'v Value<T>) -> Option<Spanned<&'v str>> {
        let help = match &value.data {
            Data::Text(text) => return Some(Spanned { value: text, span: value.place }),
            Data::Other => {
                format!("put it in quotes: {}", in_quotes(Syntax::Toml, self.written(value)))
            }
            _ => "put a string that begins with a bracket or brace in quotes".to_owned(),
        };
        self.wrong(what, "a string", value, &help)
    }

    /// Returns the text of a recorded key, if the key has one. A list or mapping is only a warning, because an agent
    /// may understand it.
    pub(super) fn recorded(&self, key: &str, value: &Value, most: usize) -> Option<String> {
        let text = match &value.data {
            Data::Absent | Data::Null => return None,
            Data::Text(text) => Some(text.as_str()),
            Data::Other => Some(self.written(value)),
            Data::List(_) | Data::Mapping(_) => None,
        };
        let found = about::recorded(key, text, value.place, most);
        let is_warning = |it: &Diagnostic| it.severity() == Severity::Warning;
        let is_harmless = found.as_ref().is_err_and(is_warning);
        if is_harmless { self.warnings.check(found) } else { self.errors.check(found) }
    }

    fn list<'v, T>(&self, what: &str, value: &'v Value<T>) -> &'v [Value<T>] {
        let help = "write it as `[bash, read]`, or begin each item with `- ` on a line of its own";
        match &value.data {
            Data::List(items) => items,
            _ => self.wrong(what, "a list", value, help).unwrap_or_default(),
        }
    }

    pub(super) fn mapping<'v, T>(&self, what: &str, value: &'v Value<T>) -> Option<&'v Mapping<T>> {
        let help = "write `key: value` lines; a tool is `- name: hello` and below it `script: tools/hello.sh`";
        match &value.data {
            Data::Mapping(mapping) => Some(mapping),
            _ => self.wrong(what, "a mapping", value, help),
        }
    }

    /// Reports a value whose kind differs from the expected one, unless the key is absent.
    pub(super) fn wrong<T, R>(
        &self,
        what: &str,
        kind: &str,
        value: &Value<T>,
        help: &str,
    ) -> Option<R> {
        let (there, help) = match &value.data {
            Data::Absent => return None,
            Data::Null => ("but it has no value", "write a value, or leave it out"),
            Data::List(_) => ("not a list", help),
            Data::Mapping(_) => ("not a mapping", help),
            Data::Text(_) | Data::Other => (&*format!("not {}", quote(self.written(value))), help),
        };
        let message = format!("{what} must be {kind}, {there}");
        let error = Diagnostic::new(message, value.place, format!("expected {kind}"));
        self.errors.report(error.with_help(help));
        None
    }

    fn file(&self, key: &str, path: &Value, executable: bool) -> Option<SkillFile> {
        self.errors.check(file(self.text(key, path)?, key, executable))
    }
}

fn check_name(name: Spanned<&str>, directory: &str) -> Result<(), Diagnostic> {
    let Spanned { value, span } = name;
    if value == directory {
        return Ok(());
    }
    let error = if rules::is_name(value) {
        let message = format!(
            "the skill's name {} differs from its directory's, {}",
            quote(value),
            quote(directory)
        );
        Diagnostic::new(message, span, "not the directory's name")
            .with_help(format!("write `name: {directory}`, or rename the directory"))
    } else {
        name_error(value, span, |intended| format!("`name: {intended}`"))
    };
    Err(error)
}

fn builtin(name: Spanned<&str>) -> Result<Spanned<&'static str>, Diagnostic> {
    let value = builtin_tool(name.value).map_err(|help| {
        let message = format!("{} is not a built-in tool", quote(name.value));
        Diagnostic::new(message, name.span, "no agent has this").with_help(help)
    })?;
    Ok(Spanned { value, span: name.span })
}

/// Parses the path of a file of the skill.
///
/// `..` is always refused: even in a path such as `a/../b`, it leads out of the skill if `a` is a symbolic link.
fn file(path: Spanned<&str>, key: &str, executable: bool) -> Result<SkillFile, Diagnostic> {
    let Spanned { value: text, span } = path;
    let parts: Vec<&str> =
        text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let label = if text.contains(char::is_control) {
        "this is text, not a path"
    } else if text.starts_with('/') {
        "an absolute path"
    } else if rules::climbs(text) {
        "`..` leads out of it"
    } else if text.trim().is_empty() {
        "an empty string"
    } else if parts.is_empty() {
        "the directory itself"
    } else {
        return Ok(SkillFile { path: parts.join("/"), span, executable });
    };
    let message = format!("{key} must name a file inside of the skill's directory");
    let error = Diagnostic::new(message, span, label);
    Err(error.with_help("put the file there and name it from there, as in `tools/hello.sh`"))
}
