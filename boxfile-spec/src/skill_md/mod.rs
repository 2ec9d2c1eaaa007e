//! `SKILL.md`: the definition of a skill, read from its frontmatter.
//!
//! The file begins with a line that is exactly `---`, then YAML, then again a line that is exactly
//! `---`, and then Markdown for the agent, of which nothing is read here. Three generations of
//! agents write different keys; all of them are read into one type:
//!
//! ```text
//! name: greet                    # default: the directory's name, from which it may not differ
//! description: Greets people.
//! version: 1.0.0
//! author: Somebody
//! tags: [people, words]
//! license, compatibility, metadata        # for people and registries: not read
//! kind: instruction              # or persona, tool
//! lane: skill
//! system_prompt: prompts/system.md        # a file of the skill
//! requires: [bash, read_file]    # built-in tools of the agent
//! allowed-tools: Bash(gh:*), read(*)      # or a list of such texts
//! disable-model-invocation: false
//! tools:
//!   - name: hello
//!     description: Says hello.
//!     script: tools/hello.sh     # or `backend`, or one of the older `bin` and `url`
//!     parameters:                # or a JSON Schema whose type is object
//!       - name: who
//!         type: string
//!         required: true
//!   - name: jq
//!     backend: { type: binary, path: /usr/bin/jq, args_template: "${filter}" }
//!   - name: fetched
//!     backend: { type: binary, url: "https://…", sha256: … }
//!   - name: count
//!     backend: { type: script, interpreter: bash, script: wc, interpreter_args: [-e] }
//!   - name: ask
//!     backend: { type: http, url: "https://…", method: POST, headers: {}, timeout_ms: 30000 }
//! ```
//!
//! The YAML is a subset: one document, no anchors, aliases, tags or merge keys, collections at
//! most 16 deep in one another. The texts come from strangers, so reading takes time and memory
//! in proportion to their length: the YAML scanner nests at most 255 brackets, and what it reports
//! is left off at the 17th level.

mod allowed;
mod backend;
mod document;
mod explain;
mod fields;
mod frontmatter;
mod manifest;
mod parameters;
mod report;
mod scalar;
#[cfg(test)]
mod tests;
mod tool;
mod value;
mod yaml;

use crate::{Diagnostic, Diagnostics, Span};

pub use manifest::{
    AllowedTool, Backend, Parameter, ParameterType, Program, SkillFile, SkillKind, SkillManifest,
    Tool,
};
use report::Report;

/// The greatest length of a `SKILL.md` in bytes: 1 MiB.
pub const MAX_SKILL_MD: usize = 1 << 20;

/// What was read from a `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// The definition, or everything that is wrong with it.
    pub manifest: Result<SkillManifest, Diagnostics>,
    /// What is odd but does no harm: keys that nothing reads. Sorted by position.
    pub warnings: Vec<Diagnostic>,
}

/// Reads the text of a `SKILL.md`.
///
/// `directory_name` is the name of the directory that the file lies in, which is the skill's.
///
/// # Errors
/// [`Parsed::manifest`] holds all errors, sorted by position. Where the frontmatter is no YAML that
/// can be read, only those that say so.
pub fn parse(text: &str, directory_name: &str) -> Parsed {
    let report = Report::default();
    let manifest = read(text, directory_name, &report);
    let (errors, warnings) = report.into_parts();
    let manifest = match (manifest, Diagnostics::new(errors)) {
        (Some(manifest), None) => Ok(manifest),
        (_, Some(errors)) => Err(errors),
        (None, None) => Err(unexplained().into()),
    };
    Parsed { manifest, warnings }
}

fn read(text: &str, directory_name: &str, report: &Report) -> Option<SkillManifest> {
    if text.len() > MAX_SKILL_MD {
        report.error(too_long(text.len()));
        return None;
    }
    let frontmatter = report.check(frontmatter::find(text))?;
    let root = yaml::read(&text[frontmatter.yaml.clone()], frontmatter.yaml.start, report)?;
    document::read(&root, directory_name, frontmatter.body, report)
}

fn too_long(length: usize) -> Diagnostic {
    let message = format!("the file has {length} bytes, which is more than {MAX_SKILL_MD}");
    Diagnostic::new(message, Span::default(), "not read")
        .with_help("move what an agent need not read at once into further files of the skill")
}

/// Stands for an error that was found and not reported: a defect of this crate, not of the file.
fn unexplained() -> Diagnostic {
    let message = "the file cannot be read, and the reason is unknown";
    Diagnostic::new(message, Span::default(), "").with_help("report this as a defect of boxbuild")
}
