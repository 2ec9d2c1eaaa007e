//! Checks a skill's definition, and the files of the skill against it.

use std::path::Path;

use box_image::SkillPlan;
use box_tree::{MAX_DETOURS, Tree, entries, path};
use boxfile_spec::skill_md::{self, Parsed, SkillFile, SkillManifest};
use boxfile_spec::{Diagnostic, Source, Span, Spanned};

use crate::{DEFINITION, NO_DEFINITION, Skill, SkillError};

/// How many links are named in warnings, so that a skill of many thousands stays readable.
const MOST_LINKS: usize = 20;

/// The findings about a skill, each with its place in the definition.
#[derive(Debug)]
pub struct Findings {
    /// The definition.
    pub source: Source,
    /// Everything that is wrong. A skill with errors is not to be used.
    pub errors: Vec<Diagnostic>,
    /// Everything that is only worth a look.
    pub warnings: Vec<Diagnostic>,
}

impl Skill {
    /// Checks the definition, and makes the files executable that it says are run.
    ///
    /// `name` is the name of the skill, and `directory` where it was read. `tools` are the built-in
    /// tools that the agent may see, or `None` if all are visible.
    ///
    /// # Errors
    /// [`SkillError`] where the definition is not a text. What is wrong with the text is in the
    /// findings.
    pub fn check(
        &mut self,
        name: &str,
        directory: &Path,
        tools: Option<&[String]>,
    ) -> Result<Findings, SkillError> {
        let path = directory.join(DEFINITION);
        let bytes = self
            .definition()
            .ok_or_else(|| SkillError::Unusable(directory.to_owned(), NO_DEFINITION))?;
        let text = host_fs::read::text(&path, bytes.clone())?;
        let Parsed { manifest, mut errors, mut warnings } = skill_md::parse(&text, name);
        self.about = about(&manifest);
        errors.extend(unavailable(&manifest.requires, tools));
        warnings.extend(self.link_warnings(MAX_DETOURS, manifest.name));
        for file in &manifest.files {
            if self.leads_astray(&file.path) {
                errors.push(lacking(file));
            } else {
                self.check_file(file, directory, &mut errors, &mut warnings);
            }
        }
        let source = Source::new(path.display().to_string(), text);
        Ok(Findings { source, errors, warnings })
    }

    /// Checks that the skill has a file, which is made executable if it is run.
    fn check_file(
        &mut self,
        file: &SkillFile,
        directory: &Path,
        errors: &mut Vec<Diagnostic>,
        warnings: &mut Vec<Diagnostic>,
    ) {
        let Some(id) = self.file(&file.path) else { return errors.push(lacking(file)) };
        let mode = &mut self.files.tree.inode_mut(id).meta.mode;
        if file.executable && *mode & 0o111 == 0 {
            let message = format!("`{}` is not executable in the checkout", file.path);
            let place = directory.join(&file.path);
            let help =
                format!("run `chmod +x {}`; in the box it is made executable", place.display());
            let warning = Diagnostic::warning(message, file.span, "a tool runs it");
            warnings.push(warning.with_help(help));
            *mode |= 0o111;
        }
    }

    /// Returns warnings about the links that lead to nothing in the skill, at the place where the skill is named. They may lead
    /// through so many names as are `left`.
    fn link_warnings(&self, mut left: usize, name: Span) -> Vec<Diagnostic> {
        let mut links = self.stray_links(&mut left);
        let mut warnings: Vec<Diagnostic> =
            links.by_ref().take(MOST_LINKS).map(|link| link.warning(name)).collect();
        let further = match links.count() {
            _ if left == 0 => {
                Some("the links lead through too many names to follow all of them".to_owned())
            }
            0 => None,
            more => Some(format!("more links lead to nothing in the skill: {more}")),
        };
        warnings.extend(further.map(|it| Diagnostic::warning(it, name, "in this skill")));
        warnings
    }

    /// Finds the links that lead to nothing in the skill, until they have led through so many names as are `left`.
    fn stray_links<'s>(&'s self, left: &'s mut usize) -> impl Iterator<Item = StrayLink<'s>> {
        let tree = &self.files.tree;
        let links = entries(tree).filter_map(|(path, id)| Some((path, tree.inode(id).target()?)));
        links.filter_map(move |(path, target)| {
            let is_outside = climbs_out(&path, target);
            let is_stray = is_outside || leads_nowhere(tree, &path, left);
            is_stray.then_some(StrayLink { path, target, is_outside })
        })
    }

    /// Returns whether a path leads through a link that leads to nothing in the skill. What comes after a link that leads
    /// somewhere is not on this path.
    fn leads_astray(&self, file: &str) -> bool {
        let tree = &self.files.tree;
        let (mut here, mut walked) = (Tree::ROOT, Vec::new());
        for name in path::names(file.as_bytes()) {
            let Some(child) = tree.child(here, name) else { return false };
            (here, walked) = (child, path::join(&walked, name));
            if let Some(target) = tree.inode(here).target() {
                return climbs_out(&walked, target) || tree.lookup(&walked).is_none();
            }
        }
        false
    }
}

/// Returns whether a link leads to nothing, and takes the names that it leads through from those that are left. Of one that
/// is not followed to its end, nothing is known.
fn leads_nowhere(tree: &Tree, link: &[u8], left: &mut usize) -> bool {
    if *left == 0 {
        return false;
    }
    let found = tree.lookup_in(Tree::ROOT, link, left);
    found.is_none() && *left > 0
}

/// A symbolic link that leads to nothing in its skill.
struct StrayLink<'s> {
    /// Its absolute path, of which the skill is the root.
    path: Vec<u8>,
    target: &'s [u8],
    /// Whether it leads out of the skill, and not only to what is missing there.
    is_outside: bool,
}

impl StrayLink<'_> {
    /// Returns the warning about the link, at the place where the skill is named.
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

/// Returns whether a link at a path leads above the root, or is absolute. The links on its way are
/// not followed: each is looked at by itself.
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

/// Returns the errors of tools that a skill requires and the agent may not see.
fn unavailable(requires: &[Spanned<&'static str>], tools: Option<&[String]>) -> Vec<Diagnostic> {
    let Some(tools) = tools else { return Vec::new() };
    let hidden = |tool: &&Spanned<&'static str>| !tools.iter().any(|it| it == tool.value);
    let error = |tool: &Spanned<&'static str>| {
        let name = tool.value;
        let message = format!("the skill requires `{name}`, which the agent may not see");
        let help = format!("add \"{name}\" to the agent's `tools`, or remove it here");
        Diagnostic::new(message, tool.span, "required here").with_help(help)
    };
    requires.iter().filter(hidden).map(error).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use boxfile_spec::Sources;
    use insta::assert_snapshot;

    use super::*;
    use crate::Together;

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

    /// A directory with a skill that has this definition.
    fn skill(definition: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("tools")).unwrap();
        fs::write(directory.path().join("tools/run.sh"), "#!/bin/sh\n").unwrap();
        fs::write(directory.path().join(DEFINITION), definition).unwrap();
        directory
    }

    /// Checks the skill in a directory; shows the findings, and the skill as it is afterwards.
    fn checked(directory: &Path, tools: Option<&[String]>) -> (String, Skill) {
        let mut together = Together::default();
        let mut skill = crate::read(&directory.into(), directory, &mut together).unwrap();
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

        warning: `tools/run.sh` is not executable in the checkout
          --> skills/greet/SKILL.md:6:13
           |
         6 |   - script: tools/run.sh
           |             ^^^^^^^^^^^^ a tool runs it
           |
           = help: run `chmod +x skills/greet/tools/run.sh`; in the box it is made executable
        "#);
    }

    #[test]
    fn of_very_many_stray_links_some_are_named_and_the_others_counted() {
        let directory = skill(
            "---\nname: greet\ndescription: Greets.\ntools:\n  - script: z/run.sh\n  - script: y/run.sh\n---\n",
        );
        for number in 0..MOST_LINKS + 5 {
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
        let skill =
            crate::read(&directory.path().into(), directory.path(), &mut Together::default());
        let (skill, mut left) = (skill.unwrap(), 100 * 800);
        assert_eq!(skill.stray_links(&mut left).count(), 0);
        assert_eq!(left, 0);
        left = MAX_DETOURS;
        assert_eq!(skill.stray_links(&mut left).count(), 1);
        let messages: Vec<_> = [0, MAX_DETOURS]
            .into_iter()
            .map(|left| skill.link_warnings(left, Span::default()))
            .collect();
        assert_eq!(messages[0].len(), 1);
        assert!(messages[0][0].message().contains("too many names"));
        assert!(messages[1][0].message().contains("`c`"));
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
        warning: `tools/run.sh` is not executable in the checkout
          --> skills/greet/SKILL.md:6:13
           |
         6 |   - script: tools/run.sh
           |             ^^^^^^^^^^^^ a tool runs it
           |
           = help: run `chmod +x skills/greet/tools/run.sh`; in the box it is made executable
        ");
        assert_eq!(executable.0, "");
        assert_eq!(plain.1.files.tree.digest(), executable.1.files.tree.digest());
    }

    #[test]
    fn the_example_of_the_documentation_is_right() {
        let page = include_str!("../../../docs/skills.md");
        let example = page.split("```markdown\n").nth(1).unwrap().split("```\n").next().unwrap();
        let directory =
            Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/hello/skills/greet"));
        assert_eq!(example, fs::read_to_string(directory.join(DEFINITION)).unwrap());
        let (found, skill) = checked(directory, Some(&["bash".to_owned()]));
        assert_eq!(found, "");
        let plan = skill.plan("greet".to_owned());
        assert_eq!((plan.name.as_str(), plan.version.as_deref()), ("greet", Some("1.0.0")));
        assert_eq!(plan.author.as_deref(), Some("The boxbuild project"));
        assert!(plan.description.as_ref().unwrap().starts_with("Greets somebody by name. Use it"));
        assert!(plan.is_sound());
    }
}
