//! `SKILL.md`: the definition of a skill, parsed from its frontmatter.
//!
//! The file begins with a line that is exactly `---`. YAML follows, then another line that is exactly `---`, and then
//! Markdown for the agent, which is not parsed. Only the keys that the builder uses and the required keys of the
//! [Agent Skills specification](https://agentskills.io/specification) are parsed. Agents use three schemas with further
//! keys, which only the agents interpret:
//!
//! ```text
//! name: greet                             # required: the directory's name
//! description: Greets somebody by name.   # required
//! version: 1.0.0                          # recorded in the box, as `author` is
//! system_prompt: prompts/system.md        # a file of the skill
//! requires: [bash, read_file]             # built-in tools of the agent
//! tools:
//!   - script: tools/hello.sh              # a file of the skill that is run
//!   - bin: bin/hello                      # the same; an absolute path names a program of the agent's image
//!   - backend: { type: binary, path: bin/hello }      # as `bin`; `type` may also be `http` or `script`
//! ```
//!
//! A byte order mark may precede the first line. Keys that are probably misspelt, and an unknown `type`, are warnings.
//!
//! The text is untrusted, and has at most 1 MiB. The frontmatter has at most 64 KiB, because parsing 1 MiB of YAML
//! takes many seconds. Collections are nested at most 16 deep. Anchors, aliases and merge keys are refused, so that
//! time and memory are proportional to the length. Tags other than YAML's standard tags are refused, because they have
//! no meaning here.

mod about;
mod agent;
mod explain;
mod frontmatter;
mod keys;
mod manifest;
#[cfg(test)]
mod tests;

use safe_text::hidden;

use diagnostics::ErrorTable;
use diagnostics::MAX_KEPT;
use diagnostics::edited::{hidden_characters, unmerged};
use diagnostics::named_invisible;
use diagnostics::{Diagnostic, Span};

pub use agent::ParsedAgent;
pub use manifest::{SkillFile, SkillManifest};

/// The syntax errors of a `SKILL.md`.
pub(crate) const ERRORS: ErrorTable = ErrorTable::new(include_str!("errors.md"));

/// The maximum length of a `SKILL.md` in bytes: 1 MiB.
pub const MAX_SKILL_MD: usize = 1 << 20;

/// The maximum number of bytes before the line that ends the frontmatter: 64 KiB.
pub const MAX_FRONTMATTER: usize = 1 << 16;

/// The result of parsing a `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parsed {
    /// The valid parts of the definition. It is complete if there are no errors.
    pub manifest: SkillManifest,
    /// The errors, sorted by position, at most [`MAX_KEPT`]. Malformed YAML and duplicate keys are reported only once.
    pub errors: Vec<Diagnostic>,
    /// Warnings, for example about keys that are probably misspelt, sorted by position.
    pub warnings: Vec<Diagnostic>,
}

/// Parses the text of a `SKILL.md`.
///
/// `directory_name` is the name of the directory that contains the file. It must equal the skill's name.
///
/// # Examples
/// ```
/// let text = "---\nname: greet\ndescription: Greets a person.\n---\n# Greet\n";
/// let parsed = checkout::skill_md::parse(text, "greet");
/// assert!(parsed.errors.is_empty());
/// assert_eq!(parsed.manifest.description, "Greets a person.");
/// ```
pub fn parse(text: &str, directory_name: &str) -> Parsed {
    let (frontmatter, error) = read(text);
    let mut parsed = frontmatter
        .map(|frontmatter| manifest::check(text, &frontmatter, directory_name))
        .unwrap_or_default();
    parsed.errors.extend(error);
    complete(text, &mut parsed.errors, &mut parsed.warnings);
    parsed
}

/// Parses the text of an agent definition, which has the form of a `SKILL.md` with other keys.
///
/// `file_name` is the name of the file without `.md`. It must equal the agent's name.
///
/// # Examples
/// ```
/// let text = "---\nname: reviewer\ndescription: Reviews a change.\ntools: Read, Grep\n---\nReview it.\n";
/// let parsed = checkout::skill_md::parse_agent(text, "reviewer");
/// assert!(parsed.errors.is_empty());
/// assert_eq!(parsed.plan.tools, ["Read", "Grep"]);
/// ```
pub fn parse_agent(text: &str, file_name: &str) -> ParsedAgent {
    let (frontmatter, error) = read(text);
    let mut parsed = frontmatter
        .map(|frontmatter| agent::check(text, &frontmatter, file_name))
        .unwrap_or_default();
    parsed.errors.extend(error);
    complete(text, &mut parsed.errors, &mut parsed.warnings);
    parsed
}

/// Adds the findings about hidden characters, and sorts the errors.
fn complete(text: &str, errors: &mut Vec<Diagnostic>, warnings: &mut Vec<Diagnostic>) {
    if text.len() <= MAX_SKILL_MD {
        add_hidden(text, errors, warnings);
    }
    errors.sort_by_key(Diagnostic::span);
    errors.truncate(MAX_KEPT);
}

/// Parses the frontmatter as far as possible, and returns the first error.
fn read(text: &str) -> (Option<keys::Value<keys::Frontmatter>>, Option<Diagnostic>) {
    let help = "move what an agent need not read at once into further files of the skill";
    let checked = Diagnostic::check_length(text, MAX_SKILL_MD, help);
    match checked.and_then(|()| frontmatter::end(text)).and_then(|end| within(text, end)) {
        Ok(end) => {
            let (frontmatter, error) = keys::read(&text[..end]);
            let unmerged = error.is_some().then(|| unmerged(&text[..end])).flatten();
            (frontmatter, unmerged.or(error))
        }
        Err(error) => (None, Some(error)),
    }
}

/// Checks the length of the frontmatter, and returns its end.
fn within(text: &str, end: usize) -> Result<usize, Diagnostic> {
    if end <= MAX_FRONTMATTER {
        return Ok(end);
    }
    let error = ERRORS.about("long", &MAX_FRONTMATTER.to_string(), frontmatter::start(text));
    Err(error.with_label(Span { offset: end, ..frontmatter::start(text) }, "ends here"))
}

/// Adds the findings about hidden characters. In the frontmatter, each one is an error. Below the frontmatter, which
/// only agents read, the first one is a warning.
fn add_hidden(text: &str, known: &mut Vec<Diagnostic>, warnings: &mut Vec<Diagnostic>) {
    let end = frontmatter::end(text).unwrap_or(text.len());
    let mut errors = hidden_characters(text, None);
    errors.retain(|it| it.span().offset < end);
    if let Some((at, c)) = hidden(&text[end..]).next() {
        let message = format!("the text has {}", named_invisible(c));
        let place = Span::at(end + at, c.len_utf8());
        let warning = Diagnostic::warning(message, place, "an agent reads this");
        warnings.push(warning.with_help("remove it, unless agents are meant to read it"));
    }
    let covered = |error: &Diagnostic| {
        let at = error.span().offset;
        known.iter().any(|other| (other.span().offset..=other.span().end()).contains(&at))
    };
    let errors: Vec<_> = errors.into_iter().filter(|error| !covered(error)).collect();
    known.extend(errors);
}
