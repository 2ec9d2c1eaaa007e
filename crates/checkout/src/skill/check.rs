//! Checks a skill's definition, and the skill's files against it.

use std::path::Path;

use crate::skill_md::{self, Parsed, SkillFile, SkillManifest};
use box_contract::SkillPlan;
use box_contract::plan::SKILL_DEFINITION;
use box_tree::{InodeId, MAX_DETOURS, Tree, entries, path};
use diagnostics::{Diagnostic, MAX_KEPT, Source, Span, Spanned};

use super::{NO_DEFINITION, Skill, SkillError};

/// The maximum number of links that have a warning each. One further warning has the number of all other links.
const MAX_LINKS: usize = 20;

/// The errors and warnings of a skill, with spans in its definition.
#[derive(Debug)]
pub struct Findings {
    /// The definition's text.
    pub source: Source,
    /// The errors, at most [`MAX_KEPT`]. A skill with errors must not be used.
    pub errors: Vec<Diagnostic>,
    /// The warnings, at most [`MAX_KEPT`].
    pub warnings: Vec<Diagnostic>,
}

impl Skill {
    /// Checks the definition, and makes the files executable that it declares as programs.
    ///
    /// `name` is the skill's name, and `directory` its path for messages. `tools` are the built-in tools that the agent
    /// may see. `None` means all tools.
    ///
    /// # Errors
    /// Returns [`SkillError`] if the definition is not valid text. Faults in the text are part of the findings.
    pub fn check(
        &mut self,
        name: &str,
        directory: &Path,
        tools: Option<&[String]>,
    ) -> Result<Findings, SkillError> {
        let path = directory.join(SKILL_DEFINITION);
        let bytes = self
            .definition()
            .ok_or_else(|| SkillError::Unusable(directory.to_owned(), NO_DEFINITION))?;
        let text = host_fs::read::text(&path, bytes.clone())?;
        let Parsed { manifest, mut errors, mut warnings } = skill_md::parse(&text, name);
        self.about = about(&manifest);
        keep(&mut errors, unavailable(&manifest.requires, tools));
        let mut left = MAX_DETOURS;
        let odd = self.check_files(&manifest.files, &mut left, &mut errors);
        keep(&mut warnings, self.link_warnings(&mut left, manifest.name));
        keep(&mut warnings, odd.into_iter().map(|file| not_executable(file, directory)));
        let source = Source::new(path.display().to_string(), text);
        Ok(Findings { source, errors, warnings })
    }

    /// Checks that the skill contains the files of its definition, until `errors` is full. Makes programs executable,
    /// and returns the files whose permissions it changed. `left` is the remaining number of path names that may be
    /// walked while links are followed.
    fn check_files<'m>(
        &mut self,
        files: &'m [SkillFile],
        left: &mut usize,
        errors: &mut Vec<Diagnostic>,
    ) -> Vec<&'m SkillFile> {
        let mut odd = Vec::new();
        for file in files {
            match self.file(&file.path, left) {
                _ if errors.len() >= MAX_KEPT => break,
                End::At(id) if file.executable && self.make_executable(id) => odd.push(file),
                End::At(_) => {}
                End::Nowhere => errors.push(lacking(file)),
                End::Unknown => {
                    errors.push(unfollowed(file));
                    break;
                }
            }
        }
        odd
    }

    /// Makes a file executable. Returns `true` if it was not executable before.
    fn make_executable(&mut self, id: InodeId) -> bool {
        let mode = &mut self.files.tree.inode_mut(id).meta.mode;
        let is_odd = *mode & 0o111 == 0;
        if is_odd {
            *mode |= 0o111;
        }
        is_odd
    }

    /// Returns warnings about stray links, with the span of the skill's name. `left` is as in [`Self::check_files`].
    fn link_warnings(&self, left: &mut usize, name: Span) -> Vec<Diagnostic> {
        let mut links = self.stray_links(left);
        let mut warnings: Vec<Diagnostic> =
            links.by_ref().take(MAX_LINKS).map(|link| link.warning(name)).collect();
        let further = match links.count() {
            _ if *left == 0 => {
                Some("the links lead through too many names to follow all of them".to_owned())
            }
            0 => None,
            more => Some(format!("more links lead to nothing in the skill: {more}")),
        };
        warnings.extend(further.map(|it| Diagnostic::warning(it, name, "in this skill")));
        warnings
    }

    /// Finds the links whose targets are not in the skill, until `left` is used up.
    fn stray_links<'s>(&'s self, left: &'s mut usize) -> impl Iterator<Item = StrayLink<'s>> {
        let tree = &self.files.tree;
        let links = entries(tree).filter_map(|(path, id)| Some((path, tree.inode(id).target()?)));
        links.filter_map(move |(path, target)| {
            let is_outside = climbs_out(&path, target);
            let is_stray = is_outside || matches!(follow(tree, &path, left), End::Nowhere);
            is_stray.then_some(StrayLink { path, target, is_outside })
        })
    }

    /// Finds the file at a path, following links. Returns [`End::Nowhere`] if the first link in the path leads out of
    /// the skill. Links after the first one are followed without this check.
    fn file(&self, file: &str, left: &mut usize) -> End {
        let tree = &self.files.tree;
        if let Some((link, target)) = first_link(tree, file.as_bytes()) {
            match follow(tree, &link, left) {
                End::At(_) if !climbs_out(&link, target) => {}
                End::At(_) => return End::Nowhere,
                end => return end,
            }
        }
        match follow(tree, file.as_bytes(), left) {
            End::At(id) if tree.inode(id).content().is_none() => End::Nowhere,
            end => end,
        }
    }
}

/// The result of following a path of a skill.
enum End {
    At(InodeId),
    Nowhere,
    /// The path walks over more names than are left.
    Unknown,
}

/// Follows a path in a skill. Subtracts the number of names that it walks over, including the names in link targets,
/// from `left`.
fn follow(tree: &Tree, path: &[u8], left: &mut usize) -> End {
    *left = left.saturating_sub(path::names(path).count());
    if *left == 0 {
        return End::Unknown;
    }
    match tree.lookup_in(Tree::ROOT, path, left) {
        Some(id) => End::At(id),
        None if *left > 0 => End::Nowhere,
        None => End::Unknown,
    }
}

/// Returns the path and the target of the first link in a path.
fn first_link<'t>(tree: &'t Tree, file: &[u8]) -> Option<(Vec<u8>, &'t [u8])> {
    let (mut here, mut walked) = (Tree::ROOT, Vec::new());
    for name in path::names(file) {
        here = tree.child(here, name)?;
        walked.push(b'/');
        walked.extend_from_slice(name);
        if let Some(target) = tree.inode(here).target() {
            return Some((walked, target));
        }
    }
    None
}

/// Adds findings until `found` has [`MAX_KEPT`].
fn keep(found: &mut Vec<Diagnostic>, further: impl IntoIterator<Item = Diagnostic>) {
    let left = MAX_KEPT.saturating_sub(found.len());
    found.extend(further.into_iter().take(left));
}

/// A symbolic link whose target is not in its skill.
struct StrayLink<'s> {
    /// The link's path in the skill, such as `/tools/run`.
    path: Vec<u8>,
    target: &'s [u8],
    /// Whether the target is outside the skill. If not, the target is missing.
    is_outside: bool,
}

impl StrayLink<'_> {
    /// Returns the warning about the link, with the span of the skill's name.
    fn warning(&self, name: Span) -> Diagnostic {
        let path = self.path.strip_prefix(b"/").unwrap_or(&self.path);
        let [path, target] = [path, self.target].map(String::from_utf8_lossy);
        let (message, help) = match self.is_outside {
            true => (
                format!("the link `{path}` leads out of the skill, to `{target}`"),
                "copy what it leads to into the skill: in the box, it leads to whatever is at that \
                 path there",
            ),
            false => (
                format!("the link `{path}` leads to `{target}`, which the skill does not have"),
                "correct the link, or remove it",
            ),
        };
        Diagnostic::warning(message, name, "in this skill").with_help(help)
    }
}

/// Returns whether a link's target is absolute or climbs above the skill's root. Other links in the target are not
/// followed, because each is checked separately.
fn climbs_out(link: &[u8], target: &[u8]) -> bool {
    if target.starts_with(b"/") {
        return true;
    }
    let mut depth = path::names(link).count().checked_sub(1);
    for name in path::names(target) {
        depth = match name {
            b".." => depth.and_then(|depth| depth.checked_sub(1)),
            _ => depth.map(|depth| depth + 1),
        };
    }
    depth.is_none()
}

fn about(manifest: &SkillManifest) -> SkillPlan {
    let SkillManifest { description, version, author, .. } = manifest;
    SkillPlan {
        description: Some(description.clone()).filter(|it| !it.is_empty()),
        version: version.clone(),
        author: author.clone(),
        ..SkillPlan::default()
    }
}

fn lacking(file: &SkillFile) -> Diagnostic {
    let message = format!("the skill has no file `{}`", file.path);
    Diagnostic::new(message, file.span, "named here")
        .with_help("add it to the skill's directory, or correct the path, which is relative to it")
}

fn unfollowed(file: &SkillFile) -> Diagnostic {
    let message = format!("the links to `{}` lead through too many names", file.path);
    Diagnostic::new(message, file.span, "named here, and no further file is looked for")
        .with_help("name each file by a path without links, or remove links from the skill")
}

fn not_executable(file: &SkillFile, directory: &Path) -> Diagnostic {
    let message = format!("`{}` is not executable", file.path);
    let place = directory.join(&file.path);
    let help = format!(
        "run `chmod +x {}`; a build and `boxlaunch skills load` make it executable in the box",
        place.display()
    );
    Diagnostic::warning(message, file.span, "a tool runs it").with_help(help)
}

/// Returns errors for the required tools that the agent may not see.
fn unavailable(
    requires: &[Spanned<&'static str>],
    tools: Option<&[String]>,
) -> impl Iterator<Item = Diagnostic> {
    let is_hidden = move |tool: &&Spanned<&'static str>| {
        tools.is_some_and(|tools| !tools.iter().any(|it| it == tool.value))
    };
    requires.iter().filter(is_hidden).map(|tool| {
        let name = tool.value;
        let message = format!("the skill requires `{name}`, which the agent may not see");
        let help = format!("add \"{name}\" to the agent's `tools`, or remove it here");
        Diagnostic::new(message, tool.span, "required here").with_help(help)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use diagnostics::Sources;
    use insta::assert_snapshot;

    use super::*;
    use crate::files::MemoryBudget;

    const DEFINED: &str = "---
name: greet
description: Greets.
requires: [bash]
tools:
  - script: tools/run.sh
  - script: tools/missing.sh
  - script: shared/run.sh
---
";

    /// Returns a directory that contains a skill with `definition` as its `SKILL.md`, and the script `tools/run.sh`.
    fn skill(definition: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("tools")).unwrap();
        fs::write(directory.path().join("tools/run.sh"), "#!/bin/sh\n").unwrap();
        fs::write(directory.path().join(SKILL_DEFINITION), definition).unwrap();
        directory
    }

    /// Checks the skill in a directory. Returns the rendered findings, and the changed skill.
    fn checked(directory: &Path, tools: Option<&[String]>) -> (String, Skill) {
        let mut together = MemoryBudget::default();
        let mut skill = crate::skill::read(&directory.into(), directory, &mut together).unwrap();
        let findings = skill.check("greet", Path::new("skills/greet"), tools).unwrap();
        let sources = Sources::single(findings.source);
        let all = findings.errors.iter().chain(&findings.warnings);
        let shown: Vec<String> = all.map(|it| it.render(&sources)).collect();
        (shown.join("\n\n"), skill)
    }

    #[test]
    fn everything_is_found_in_one_go() {
        let directory = skill(DEFINED);
        symlink("../../shared", directory.path().join("shared")).unwrap();
        symlink("none", directory.path().join("tools/dead")).unwrap();
        symlink("../tools/./run.sh", directory.path().join("tools/alive")).unwrap();
        symlink("..", directory.path().join("tools/up")).unwrap();
        symlink("/usr/bin/jq", directory.path().join("jq")).unwrap();
        let (shown, _) = checked(directory.path(), Some(&["grep".to_owned()]));
        assert_snapshot!(shown, @r#"
        error: the skill requires `bash`, which the agent may not see
          --> skills/greet/SKILL.md:4:12
           |
         4 | requires: [bash]
           |            ^^^^ required here
           |
           = help: add "bash" to the agent's `tools`, or remove it here

        error: the skill has no file `tools/missing.sh`
          --> skills/greet/SKILL.md:7:13
           |
         7 |   - script: tools/missing.sh
           |             ^^^^^^^^^^^^^^^^ named here
           |
           = help: add it to the skill's directory, or correct the path, which is relative to it

        error: the skill has no file `shared/run.sh`
          --> skills/greet/SKILL.md:8:13
           |
         8 |   - script: shared/run.sh
           |             ^^^^^^^^^^^^^ named here
           |
           = help: add it to the skill's directory, or correct the path, which is relative to it

        warning: the link `jq` leads out of the skill, to `/usr/bin/jq`
          --> skills/greet/SKILL.md:2:7
           |
         2 | name: greet
           |       ^^^^^ in this skill
           |
           = help: copy what it leads to into the skill: in the box, it leads to whatever is at that path there

        warning: the link `shared` leads out of the skill, to `../../shared`
          --> skills/greet/SKILL.md:2:7
           |
         2 | name: greet
           |       ^^^^^ in this skill
           |
           = help: copy what it leads to into the skill: in the box, it leads to whatever is at that path there

        warning: the link `tools/dead` leads to `none`, which the skill does not have
          --> skills/greet/SKILL.md:2:7
           |
         2 | name: greet
           |       ^^^^^ in this skill
           |
           = help: correct the link, or remove it

        warning: `tools/run.sh` is not executable
          --> skills/greet/SKILL.md:6:13
           |
         6 |   - script: tools/run.sh
           |             ^^^^^^^^^^^^ a tool runs it
           |
           = help: run `chmod +x skills/greet/tools/run.sh`; a build and `boxlaunch skills load` make it executable in the box
        "#);
    }

    #[test]
    fn of_very_many_stray_links_some_are_named_and_the_others_counted() {
        let directory = skill(
            "---\nname: greet\ndescription: Greets.\ntools:\n  - script: z/run.sh\n  - script: y/run.sh\n---\n",
        );
        for number in 0..MAX_LINKS + 5 {
            symlink("none", directory.path().join(format!("link{number:03}"))).unwrap();
        }
        symlink("tools", directory.path().join("y")).unwrap();
        symlink("../tools", directory.path().join("z")).unwrap();
        let (shown, _) = checked(directory.path(), None);
        assert!(shown.contains("the link `link019` leads to `none`"), "{shown}");
        assert!(!shown.contains("link020"), "{shown}");
        assert!(shown.contains("warning: more links lead to nothing in the skill: 6\n"), "{shown}");
        assert!(shown.contains("error: the skill has no file `z/run.sh`\n"), "{shown}");
        assert!(!shown.contains("the skill has no file `y/run.sh`"), "{shown}");
    }

    #[test]
    fn links_that_lead_through_very_many_names_are_not_all_followed() {
        let directory = skill("---\nname: greet\ndescription: Greets.\n---\n");
        symlink("tools/../".repeat(400), directory.path().join("a")).unwrap();
        for number in 0..100 {
            symlink("a", directory.path().join(format!("b{number}"))).unwrap();
        }
        symlink("none", directory.path().join("c")).unwrap();
        let skill = crate::skill::read(
            &directory.path().into(),
            directory.path(),
            &mut MemoryBudget::default(),
        );
        let (skill, mut left) = (skill.unwrap(), 100 * 800);
        assert_eq!(skill.stray_links(&mut left).count(), 0);
        assert_eq!(left, 0);
        left = MAX_DETOURS;
        assert_eq!(skill.stray_links(&mut left).count(), 1);
        let messages: Vec<_> = [0, MAX_DETOURS]
            .into_iter()
            .map(|mut left| skill.link_warnings(&mut left, Span::default()))
            .collect();
        assert_eq!(messages[0].len(), 1);
        assert!(messages[0][0].message().contains("too many names"));
        assert!(messages[1][0].message().contains("`c`"));
    }

    #[test]
    fn the_files_of_a_definition_are_found_through_so_many_names_and_no_more() {
        let directory = skill("---\nname: greet\ndescription: Greets.\n---\n");
        symlink("tools/../".repeat(400) + "tools", directory.path().join("a")).unwrap();
        let mut skill = crate::skill::read(
            &directory.path().into(),
            directory.path(),
            &mut MemoryBudget::default(),
        )
        .unwrap();
        let file = |path: &str| SkillFile {
            path: path.to_owned(),
            span: Span::default(),
            executable: true,
        };
        let files = vec![file("a/run.sh"); 5];
        let mut messages = |mut left: usize| {
            let mut errors = Vec::new();
            skill.check_files(&files, &mut left, &mut errors);
            (errors.iter().map(|it| it.message().to_owned()).collect::<Vec<_>>(), left)
        };
        let (found, left) = messages(MAX_DETOURS);
        // For each file, the target of the link `a` is walked twice: 801 names, with the path of the link (1 name) and
        // with the path of the file (2 names).
        assert_eq!((found.len(), MAX_DETOURS - left), (0, 5 * (801 + 1 + 801 + 2)));
        let (found, left) = messages(2 * (801 + 1 + 801 + 2));
        assert_eq!(
            (found, left),
            (vec!["the links to `a/run.sh` lead through too many names".to_owned()], 0)
        );
    }

    #[test]
    fn of_very_many_errors_and_warnings_the_first_are_kept() {
        let tools = |name: &str| format!("  - script: {name}\n").repeat(MAX_KEPT + 500);
        let definition =
            |tools: String| format!("---\nname: greet\ndescription: Greets.\ntools:\n{tools}---\n");
        let directory = skill(&definition(tools("none")));
        let check = || {
            let mut skill = crate::skill::read(
                &directory.path().into(),
                directory.path(),
                &mut MemoryBudget::default(),
            )
            .unwrap();
            let findings = skill.check("greet", directory.path(), None).unwrap();
            (findings.errors.len(), findings.warnings.len())
        };
        assert_eq!(check(), (MAX_KEPT, 0));
        for number in 0..MAX_KEPT + 1 {
            fs::write(directory.path().join(number.to_string()), "").unwrap();
        }
        let tools: String = (0..MAX_KEPT + 1).map(|it| format!("  - script: '{it}'\n")).collect();
        fs::write(directory.path().join(SKILL_DEFINITION), definition(tools)).unwrap();
        assert_eq!(check(), (0, MAX_KEPT));
        let requires = "bash, ".repeat(MAX_KEPT + 1);
        let text = format!("---\nname: greet\ndescription: Greets.\nrequires: [{requires}]\n---\n");
        fs::write(directory.path().join(SKILL_DEFINITION), text).unwrap();
        let mut skill = crate::skill::read(
            &directory.path().into(),
            directory.path(),
            &mut MemoryBudget::default(),
        )
        .unwrap();
        let findings = skill.check("greet", directory.path(), Some(&[])).unwrap();
        assert_eq!(findings.errors.len(), MAX_KEPT);
    }

    #[test]
    fn a_tool_is_executable_in_the_box() {
        let definition = DEFINED.replace("tools/missing.sh", "tools/run.sh");
        let directory = skill(&definition.replace("shared/run.sh", "./tools/run.sh"));
        let script = directory.path().join("tools/run.sh");
        let [plain, executable] = [0o644, 0o755].map(|mode| {
            fs::set_permissions(&script, fs::Permissions::from_mode(mode)).unwrap();
            checked(directory.path(), None)
        });
        assert_snapshot!(plain.0, @"
        warning: `tools/run.sh` is not executable
          --> skills/greet/SKILL.md:6:13
           |
         6 |   - script: tools/run.sh
           |             ^^^^^^^^^^^^ a tool runs it
           |
           = help: run `chmod +x skills/greet/tools/run.sh`; a build and `boxlaunch skills load` make it executable in the box
        ");
        assert_eq!(executable.0, "");
        assert_eq!(plain.1.files.tree.digest(), executable.1.files.tree.digest());
    }

    #[test]
    fn the_example_of_the_documentation_is_right() {
        let page = include_str!("../../../../docs/skills.md");
        let example = page.split("```markdown\n").nth(1).unwrap().split("```\n").next().unwrap();
        let directory =
            Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/hello/skills/greet"));
        assert_eq!(example, fs::read_to_string(directory.join(SKILL_DEFINITION)).unwrap());
        let (found, skill) = checked(directory, Some(&["bash".to_owned()]));
        assert_eq!(found, "");
        let plan = skill.plan("greet".to_owned());
        assert_eq!((plan.name.as_str(), plan.version.as_deref()), ("greet", Some("1.0.0")));
        assert_eq!(plan.author.as_deref(), Some("The boxbuild project"));
        assert!(plan.description.as_ref().unwrap().starts_with("Greets somebody by name. Use it"));
        assert!(plan.is_sound());
    }
}
