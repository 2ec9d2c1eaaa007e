//! `SKILL.md`: the definition of a skill, read from its frontmatter.
//!
//! The file begins with a line that is exactly `---`, then YAML, then again a line that is exactly
//! `---`, and then Markdown for the agent, of which nothing is read here. Of the YAML, only the
//! keys that a box is built from are read, and those that Agent Skills' format requires
//! (<https://agentskills.io/specification>); three generations of agents write further ones, and what
//! those mean is the agents' affair:
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
//! A byte order mark may precede the first line. Whatever else is odd is a warning: a key that no
//! generation knows, in the frontmatter and in its tools, or an unknown `type`.
//!
//! The texts come from strangers: there are at most 1 MiB of them, of which the frontmatter has at most 64 KiB, as a
//! mebibyte of YAML takes many seconds to read; collections are nested at most 16 deep, and anchors, aliases and
//! merge keys are refused, so that reading takes time and memory in proportion to the length. Tags other than YAML's own are refused, as nothing here gives them a
//! meaning.

mod about;
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

pub use manifest::{SkillFile, SkillManifest};

/// The errors in the syntax of a `SKILL.md`.
pub(crate) const ERRORS: ErrorTable = ErrorTable::new(include_str!("errors.md"));

/// The greatest length of a `SKILL.md` in bytes: 1 MiB.
pub const MAX_SKILL_MD: usize = 1 << 20;

/// The greatest length in bytes of what is before the line that ends the frontmatter: 64 KiB.
pub const MAX_FRONTMATTER: usize = 1 << 16;

/// The result of reading a `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parsed {
    /// The definition, as far as it could be read; without errors, all of it.
    pub manifest: SkillManifest,
    /// Everything that is wrong with it, sorted by position, or the first [`MAX_KEPT`] errors. Of text that
    /// is not YAML, and of keys that are given twice, only the first such error.
    pub errors: Vec<Diagnostic>,
    /// Harmless oddities, such as unknown keys, sorted by position.
    pub warnings: Vec<Diagnostic>,
}

/// Reads the text of a `SKILL.md`.
///
/// `directory_name` is the name of the directory that contains the file, which is the skill's.
pub fn parse(text: &str, directory_name: &str) -> Parsed {
    let (frontmatter, error) = read(text);
    let mut parsed = frontmatter
        .map(|frontmatter| manifest::check(text, &frontmatter, directory_name))
        .unwrap_or_default();
    parsed.errors.extend(error);
    if text.len() <= MAX_SKILL_MD {
        add_hidden(text, &mut parsed);
    }
    parsed.errors.sort_by_key(Diagnostic::span);
    parsed.errors.truncate(MAX_KEPT);
    parsed
}

/// Reads the frontmatter, as far as that is possible, and returns what prevents it.
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

/// Checks that the frontmatter is not too long to be read; returns its end.
fn within(text: &str, end: usize) -> Result<usize, Diagnostic> {
    if end <= MAX_FRONTMATTER {
        return Ok(end);
    }
    let error = ERRORS.about("long", &MAX_FRONTMATTER.to_string(), frontmatter::start(text));
    Err(error.with_label(Span { offset: end, ..frontmatter::start(text) }, "ends here"))
}

/// Adds the characters that hide something: in the frontmatter they are errors, and below it, where only agents read, the
/// first is worth a look.
fn add_hidden(text: &str, parsed: &mut Parsed) {
    let end = frontmatter::end(text).unwrap_or(text.len());
    let mut errors = hidden_characters(text, None);
    errors.retain(|it| it.span().offset < end);
    if let Some((at, c)) = hidden(&text[end..]).next() {
        let message = format!("the text has {}", named_invisible(c));
        let place = Span::at(end + at, c.len_utf8());
        let warning = Diagnostic::warning(message, place, "an agent reads this");
        parsed.warnings.push(warning.with_help("remove it, unless agents are meant to read it"));
    }
    let covered = |it: &Diagnostic| {
        let at = it.span().offset;
        parsed.errors.iter().any(|other| (other.span().offset..=other.span().end()).contains(&at))
    };
    let errors: Vec<_> = errors.into_iter().filter(|it| !covered(it)).collect();
    parsed.errors.extend(errors);
}
