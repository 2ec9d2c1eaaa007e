//! `SKILL.md`: the definition of a skill, read from its frontmatter.
//!
//! The file begins with a line that is exactly `---`, then YAML, then again a line that is exactly
//! `---`, and then Markdown for the agent, of which nothing is read here. Of the YAML, only the
//! keys that a box is built from are read; three generations of agents write further ones, and what
//! those mean is the agents' affair:
//!
//! ```text
//! name: greet                             # default: the directory's name, from which it may not differ
//! system_prompt: prompts/system.md        # a file of the skill
//! requires: [bash, read_file]             # built-in tools of the agent
//! tools:
//!   - script: tools/hello.sh              # a file of the skill that is run
//!   - bin: bin/hello                      # the same; an absolute path names a program of the agent's image
//!   - backend: { type: binary, path: bin/hello }      # as `bin`; `type` may also be `http` or `script`
//! ```
//!
//! Whatever else is odd is a warning: a key that no generation knows, in the frontmatter and in its
//! tools, or an unknown `type`.
//!
//! The texts come from strangers: there are at most 1 MiB of them, collections are nested at most 16
//! deep, and anchors, aliases and merge keys are refused, so that reading takes time and memory in
//! proportion to the length. Tags other than YAML's own are refused, as nothing here gives them a
//! meaning.

mod explain;
mod frontmatter;
mod keys;
mod manifest;
#[cfg(test)]
mod tests;

use crate::{Diagnostic, Diagnostics};

pub use manifest::{SkillFile, SkillManifest};

/// The greatest length of a `SKILL.md` in bytes: 1 MiB.
pub const MAX_SKILL_MD: usize = 1 << 20;

/// The result of reading a `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// The definition, or the errors in it.
    pub manifest: Result<SkillManifest, Diagnostics>,
    /// Harmless oddities, such as unknown keys, sorted by position.
    pub warnings: Vec<Diagnostic>,
}

/// Reads the text of a `SKILL.md`.
///
/// `directory_name` is the name of the directory that contains the file, which is the skill's.
///
/// # Errors
/// [`Parsed::manifest`] has the errors, sorted by position: the first one if the frontmatter is
/// not YAML, else all.
pub fn parse(text: &str, directory_name: &str) -> Parsed {
    match read(text) {
        Ok(frontmatter) => manifest::check(text, &frontmatter, directory_name),
        Err(error) => Parsed { manifest: Err(error.into()), warnings: Vec::new() },
    }
}

fn read(text: &str) -> Result<keys::Value<keys::Frontmatter>, Diagnostic> {
    let help = "move what an agent need not read at once into further files of the skill";
    Diagnostic::check_length(text, MAX_SKILL_MD, help)?;
    keys::read(&text[..frontmatter::end(text)?])
}
