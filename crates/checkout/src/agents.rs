//! Agent definitions: the files `NAME.md` of a directory of a checkout.

use std::path::{Path, PathBuf};

use box_contract::AgentDefinitionPlan;
use box_contract::plan::AGENT_SUFFIX;
use box_contract::rules::{MAX_AGENTS, NAME_FORM, is_name};
use box_tree::{InodeId, Tree};
use diagnostics::Source;
use host_fs::FileError;

use crate::files::Files;
use crate::skill::Findings;
use crate::skill_md::{ParsedAgent, parse_agent};

/// An agent definition, and what is wrong with it.
#[derive(Debug)]
pub struct Definition {
    /// The recorded values of the definition. They are complete if there are no errors.
    pub plan: AgentDefinitionPlan,
    /// The errors and warnings.
    pub findings: Findings,
}

/// Why agent definitions cannot be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum AgentsError {
    /// The path is not a directory.
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// The directory has no definition.
    #[error("{} has no agent definition, which is a file NAME.md", .0.display())]
    Empty(PathBuf),
    /// The directory has too many definitions.
    #[error("{} has more than {MAX_AGENTS} agent definitions", .0.display())]
    TooMany(PathBuf),
    /// A definition is a directory or a symbolic link.
    #[error("{} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// The name of a file is not a valid name of an agent.
    #[error("the file {} cannot name an agent: {NAME_FORM}", .0.display())]
    Name(PathBuf),
    /// A definition is not text.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Checks the definitions among the files of a directory, sorted by name. `directory` is its path for messages. Faults in
/// the text of a definition are part of its findings.
///
/// # Errors
/// [`AgentsError`].
pub fn definitions(files: &Files, directory: &Path) -> Result<Vec<Definition>, AgentsError> {
    let names = files.tree.inode(Tree::ROOT).names().into_iter().flatten();
    let named = names.filter_map(|(name, id)| {
        let stem = name.strip_suffix(AGENT_SUFFIX.as_bytes())?;
        Some((String::from_utf8_lossy(stem).into_owned(), *id))
    });
    let mut all = Vec::new();
    for (name, id) in named {
        if all.len() == MAX_AGENTS {
            return Err(AgentsError::TooMany(directory.to_owned()));
        }
        all.push(definition(files, directory, name, id)?);
    }
    if all.is_empty() {
        return Err(AgentsError::Empty(directory.to_owned()));
    }
    all.sort_by(|one: &Definition, other| one.plan.name.cmp(&other.plan.name));
    Ok(all)
}

fn definition(
    files: &Files,
    directory: &Path,
    name: String,
    id: InodeId,
) -> Result<Definition, AgentsError> {
    let path = directory.join(format!("{name}{AGENT_SUFFIX}"));
    if !is_name(&name) {
        return Err(AgentsError::Name(path));
    }
    let data = files.tree.inode(id).content().and_then(|it| files.data.get(it));
    let Some(data) = data else { return Err(AgentsError::NotAFile(path)) };
    let text = host_fs::read::text(&path, data.clone())?;
    let ParsedAgent { plan, errors, warnings } = parse_agent(&text, &name);
    let source = Source::new(path.display().to_string(), text);
    Ok(Definition { plan, findings: Findings { source, errors, warnings } })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use diagnostics::Sources;
    use insta::assert_snapshot;

    use super::*;
    use crate::files::MemoryBudget;

    const REVIEWER: &str = "---\nname: reviewer\ndescription: Reviews\n  a change.\ntools: [Read, Grep]\nmodel: opus\n---\nReview it.\n";

    /// Returns the definitions in a directory with these files.
    fn read(files: &[(&str, &str)]) -> Result<Vec<Definition>, AgentsError> {
        let checkout = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(checkout.path().join(name), text).unwrap();
        }
        symlink("reviewer.md", checkout.path().join("link.md.txt")).unwrap();
        let bounds = checkout.path().into();
        let files = crate::files::directory(&bounds, checkout.path(), &mut MemoryBudget::default());
        definitions(&files.unwrap(), Path::new("agents"))
    }

    /// Returns the rendered findings in a definition with this text.
    fn findings(text: &str) -> String {
        let findings = read(&[("reviewer.md", text)]).unwrap().remove(0).findings;
        let sources = Sources::single(findings.source);
        let all = findings.errors.iter().chain(&findings.warnings);
        all.map(|it| it.render(&sources)).collect::<Vec<_>>().join("\n\n")
    }

    #[test]
    fn a_definition_is_recorded() {
        let other = "---\nname: a-tester\ndescription: Tests.\ntools: Bash(cargo test:*), mcp__git__log\n---\n";
        let all = read(&[("reviewer.md", REVIEWER), ("a-tester.md", other), ("notes.txt", "x")]);
        let all = all.unwrap();
        assert!(all.iter().all(|it| it.findings.errors.is_empty()));
        assert!(all.iter().all(|it| it.findings.warnings.is_empty()));
        let plans: Vec<_> = all.into_iter().map(|it| it.plan).collect();
        assert!(plans.iter().all(AgentDefinitionPlan::is_sound));
        let [tester, reviewer] = plans.as_slice() else { panic!("{plans:?}") };
        assert_eq!((&*tester.name, &tester.model), ("a-tester", &None));
        assert_eq!(tester.tools, ["Bash(cargo test:*)", "mcp__git__log"]);
        assert_eq!(
            (&*reviewer.description, reviewer.model.as_deref()),
            ("Reviews a change.", Some("opus"))
        );
        assert_eq!(reviewer.tools, ["Read", "Grep"]);
    }

    #[test]
    fn a_directory_has_definitions_that_are_files() {
        let error = |files: &[(&str, &str)]| read(files).unwrap_err().to_string();
        assert_eq!(
            error(&[("notes.txt", "")]),
            "agents has no agent definition, which is a file NAME.md"
        );
        let name =
            "the file agents/My Agent.md cannot name an agent: a name has lower-case letters";
        assert!(error(&[("My Agent.md", "")]).starts_with(name));
        let names: Vec<String> = (0..=MAX_AGENTS).map(|it| format!("a{it}.md")).collect();
        let many: Vec<(&str, &str)> = names.iter().map(|it| (it.as_str(), REVIEWER)).collect();
        assert_eq!(error(&many), "agents has more than 64 agent definitions");
        let checkout = tempfile::tempdir().unwrap();
        fs::write(checkout.path().join("text"), REVIEWER).unwrap();
        symlink("text", checkout.path().join("reviewer.md")).unwrap();
        let bounds = checkout.path().into();
        let files = crate::files::directory(&bounds, checkout.path(), &mut MemoryBudget::default());
        let error = definitions(&files.unwrap(), Path::new("agents")).unwrap_err();
        assert_eq!(error.to_string(), "agents/reviewer.md is not a regular file");
        let error = read(&[("reviewer.md", "a")]).unwrap().remove(0).findings.errors;
        assert_eq!(error[0].message(), "the file does not begin with the line `---`");
    }

    #[test]
    fn what_is_wrong_with_a_definition_is_found_in_one_go() {
        assert_snapshot!(findings("---\nname: tester\ntools: [Wirte, 1]\ndescripton: x\n---\n"), @r#"
        error: the frontmatter has no `description`
          --> agents/reviewer.md:1:1
           |
         1 | ---
           | ^^^ begins here
           |
           = help: write `description: …`: what the agent does, and when to use it

        error: the agent's name `tester` differs from its file's, `reviewer`
          --> agents/reviewer.md:2:7
           |
         2 | name: tester
           |       ^^^^^^ not the file's name
           |
           = help: write `name: reviewer`, or rename the file to `tester.md`

        error: an item of `tools` must be a string, not `1`
          --> agents/reviewer.md:3:16
           |
         3 | tools: [Wirte, 1]
           |                ^ expected a string
           |
           = help: put it in quotes: "1"

        warning: `Wirte` is probably not the name of a tool
          --> agents/reviewer.md:3:9
           |
         3 | tools: [Wirte, 1]
           |         ^^^^^ agents may not have this
           |
           = help: did you mean `write`?

        warning: the frontmatter has no key `descripton`
          --> agents/reviewer.md:4:1
           |
         4 | descripton: x
           | ^^^^^^^^^^ nothing reads this
           |
           = help: did you mean `description`?
        "#);
        let long = "x".repeat(4097);
        for (text, message) in [
            ("description: ' '", "the description is empty".to_owned()),
            (
                &*format!("description: {long}"),
                "the description has 4097 characters, which is more than 4096".to_owned(),
            ),
            ("description: \"a\\x1b[2J\"", "the description has a control character".to_owned()),
            ("description: x\ntools: {a: b}", "`tools` must be a list, not a mapping".to_owned()),
            ("description: x\nname: Reviewer", String::new()),
        ] {
            let name = if text.contains("name:") { "" } else { "name: reviewer\n" };
            let found = findings(&format!("---\n{name}{text}\n---\n"));
            assert!(found.starts_with(&format!("error: {message}")), "{found}");
        }
    }
}
