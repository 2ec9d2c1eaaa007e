//! Checks that a component's root has the programs that the box runs in it, and what starts them.
//!
//! A program is looked up as init does: one with a slash from the working directory on, any other in
//! the directories of `PATH`. What is below a mount exists only when the box runs, and is not looked
//! for: a share, a scratch disk, the skills, and the kernel's own directories.

use std::collections::BTreeSet;

use box_image::plan::SKILLS_PATH;
use box_image::rules::{KERNEL_DIRECTORIES, program_paths, search_path};
use box_image::{ComponentName, ComponentPlan, Health, RunPlan};
use box_tree::{Content, Follow, InodeId, ReadContent, Step, Tree, Walk};
use boxfile_spec::{Boxfile, Platform, Span, nearest};

use super::{ComponentRoot, ComposeError};
use crate::binary::{Program, inspect_head};

/// How often a program is started by another: Linux refuses more (`exec_binprm`).
const MAX_INTERPRETERS: usize = 5;
/// The bytes of a program that are read: headers, and the first line of a script.
const HEAD_MAX: u64 = 64 << 10;
/// The directories, and the names in each, among which the program is looked for that was probably meant.
/// An image may name a directory any number of times, and fill it with any number of names.
const NEAR_DIRECTORIES: usize = 16;
const NEAR_NAMES: usize = 8192;

/// Checks the programs of the components that have a root: their own, if they are started, and the
/// health check. Returns a [`ComposeError::NoSuchProgram`] for each that is missing.
///
/// # Errors
/// [`ComposeError::Unreadable`] where a program cannot be read.
pub fn check_programs(
    root: &ComponentRoot<'_>,
    boxfile: &Boxfile,
    plan: &RunPlan,
    platform: Platform,
    read: &mut dyn ReadContent,
) -> Result<Vec<ComposeError>, ComposeError> {
    let mut missing = Vec::new();
    let mut keep = |error| match error {
        ComposeError::NoSuchProgram { .. } => {
            missing.push(error);
            Ok(())
        }
        error => Err(error),
    };
    for component in root.components.iter().copied() {
        let (Some(own), Some(declared)) = (plan.component(component), boxfile.component(component))
        else {
            continue;
        };
        let mut finder = Finder { root: root.tree, component, own, plan, platform, read };
        let span = declared.entrypoint.as_ref().map(|it| it.span);
        let is_started = component == ComponentName::Agent || own.autostart || span.is_some();
        if let Some(program) = own.argv.first().filter(|_| is_started) {
            let span = span.unwrap_or_else(|| boxfile.root_span(component));
            let checked = finder.check(&format!("the {}", component.name()), program, span);
            checked.or_else(&mut keep)?;
        }
        if let Some(Health::Exec { argv }) = &own.health
            && let Some(program) = argv.first()
        {
            let span = boxfile.agent.health.as_ref().and_then(boxfile_spec::Health::span);
            let checked = finder.check("the health check", program, span.unwrap_or_default());
            checked.or_else(&mut keep)?;
        }
    }
    Ok(missing)
}

/// Where a path leads.
enum Place {
    /// To an entry.
    Entry(InodeId),
    /// Into something that is mounted when the box runs.
    Mounted,
    /// Nowhere.
    Nowhere,
}

/// Looks for the programs of one component.
struct Finder<'a> {
    root: &'a Tree,
    component: ComponentName,
    own: &'a ComponentPlan,
    plan: &'a RunPlan,
    platform: Platform,
    read: &'a mut dyn ReadContent,
}

/// Why a program cannot be executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// It lacks the permission.
    NotExecutable,
    /// Something else is in its place.
    NotAFile,
    /// Nothing is.
    Missing,
}

impl Finder<'_> {
    /// Checks that a program is there and can be executed, and what starts it as well.
    fn check(&mut self, what: &str, program: &str, span: Span) -> Result<(), ComposeError> {
        let mut pending = vec![(format!("{what} runs {program:?}"), program.to_owned())];
        for _ in 0..MAX_INTERPRETERS {
            let Some((who, wanted)) = pending.pop() else { break };
            let content =
                self.find(&wanted).map_err(|reason| self.missing(&wanted, &who, reason, span))?;
            for it in content.map(|it| self.interpreters(it)).transpose()?.unwrap_or_default() {
                pending.push((format!("{wanted:?} is run by {it:?}"), it));
            }
        }
        Ok(())
    }

    fn missing(&self, wanted: &str, who: &str, reason: Reason, span: Span) -> ComposeError {
        ComposeError::NoSuchProgram {
            component: self.component.name(),
            message: format!("{who}, {}", self.end_of_message(wanted, reason)),
            near: self.near(wanted),
            words: quoted_words(wanted),
            lacks_permission: reason == Reason::NotExecutable,
            span,
        }
    }

    /// Finds a program's content, which is unknown where something is mounted.
    ///
    /// # Errors
    /// Why it cannot be executed.
    fn find(&self, program: &str) -> Result<Option<Content>, Reason> {
        let mut reason = Reason::Missing;
        for path in self.candidates(program) {
            match self.follow(path.as_bytes()) {
                Place::Mounted => return Ok(None),
                Place::Nowhere => {}
                Place::Entry(id) => {
                    let inode = self.root.inode(id);
                    match inode.content() {
                        Some(content) if inode.meta.mode & 0o111 != 0 => return Ok(Some(*content)),
                        Some(_) => reason = Reason::NotExecutable,
                        None => reason = Reason::NotAFile,
                    }
                }
            }
        }
        Err(reason)
    }

    fn end_of_message(&self, program: &str, reason: Reason) -> String {
        match reason {
            Reason::NotExecutable => "which is not executable".to_owned(),
            Reason::NotAFile => "which is not a file".to_owned(),
            Reason::Missing if program.contains('/') => {
                format!("which is not in the image of `{}`", self.component.name())
            }
            Reason::Missing => {
                format!("which is in no directory of its PATH: {}", search_path(&self.own.env))
            }
        }
    }

    /// Returns the absolute paths at which a program is looked for.
    fn candidates(&self, program: &str) -> Vec<String> {
        let absolute = |path: String| match path.starts_with('/') {
            true => path,
            false => format!("{}/{path}", self.own.workdir),
        };
        let paths = program_paths(program, search_path(&self.own.env));
        paths.into_iter().map(absolute).collect()
    }

    /// Follows a path and the symbolic links on it, as a process in the component does.
    fn follow(&self, path: &[u8]) -> Place {
        let mut walk = Walk::new(self.root, Tree::ROOT, path, Follow::All);
        loop {
            // A mount point need not be in the image.
            if self.is_mounted(&walk.path_ahead()) {
                return Place::Mounted;
            }
            match walk.step() {
                Ok(Step::Taken) => {}
                Ok(Step::End) => return Place::Entry(walk.here()),
                Ok(Step::Missing) | Err(_) => return Place::Nowhere,
            }
        }
    }

    /// Returns whether something is mounted at a path or above it when the box runs.
    fn is_mounted(&self, path: &[u8]) -> bool {
        let sees = |scope: box_image::Scope| scope.includes(self.component);
        let shares = self.plan.shares.iter().filter(|it| sees(it.scope)).map(|it| &*it.guest);
        let disks = self.plan.scratch.iter().filter(|it| sees(it.scope)).map(|it| &*it.guest);
        let own = KERNEL_DIRECTORIES.into_iter().chain([SKILLS_PATH]);
        shares.chain(disks).chain(own).any(|mount| {
            let rest = path.strip_prefix(mount.as_bytes());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        })
    }

    /// Returns the programs that start a program: its dynamic linker, or the interpreter of a script
    /// and, where that is `env`, also the program that `env` starts.
    fn interpreters(&mut self, content: Content) -> Result<Vec<String>, ComposeError> {
        let head = self.read.read_head(content, HEAD_MAX).map_err(|source| {
            ComposeError::Unreadable { component: self.component.name(), file: "a program", source }
        })?;
        // A file that is not a program is not checked.
        let Ok(Program::By(interpreter)) = inspect_head(&head, self.platform) else {
            return Ok(Vec::new());
        };
        let by_env = by_env(&head, &interpreter);
        Ok(String::from_utf8(interpreter).into_iter().chain(by_env).collect())
    }

    /// Returns the program that was probably meant: of the same name elsewhere, or of a similar one.
    fn near(&self, program: &str) -> Option<String> {
        let name = program.rsplit('/').next().unwrap_or_default();
        let is_program = |path: &str| path != program && matches!(self.find(path), Ok(Some(_)));
        let (directories, is_path) = match program.rsplit_once('/') {
            Some((directory, _)) => (vec![directory], true),
            None => (search_path(&self.own.env).split(':').collect(), false),
        };
        let mut seen = BTreeSet::new();
        let directories: Vec<&str> =
            directories.into_iter().filter(|it| seen.insert(*it)).take(NEAR_DIRECTORIES).collect();
        let elsewhere = self.candidates(name).into_iter().find(|path| is_program(path));
        elsewhere.filter(|_| is_path).or_else(|| {
            directories.iter().find_map(|directory| {
                let Place::Entry(id) = self.follow(directory.as_bytes()) else { return None };
                let names = self.root.inode(id).names()?.keys();
                let names = names.take(NEAR_NAMES).filter_map(|it| std::str::from_utf8(it).ok());
                let names: Vec<&str> =
                    names.filter(|it| is_program(&format!("{directory}/{it}"))).collect();
                let near = nearest(name, &names)?;
                Some(if is_path { format!("{directory}/{near}") } else { near.to_owned() })
            })
        })
    }
}

/// Returns the program that `env` starts, where that is the interpreter of a script and its first
/// line names one: `#!/usr/bin/env python3`.
fn by_env(script: &[u8], interpreter: &[u8]) -> Option<String> {
    let line = script.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_whitespace().skip(1);
    let program = words.find(|word| *word != "-S").filter(|_| interpreter.ends_with(b"/env"))?;
    (!program.starts_with('-') && !program.contains('=')).then(|| program.to_owned())
}

/// Returns the words of a command line that was written as one text, each in quotes.
fn quoted_words(line: &str) -> Option<String> {
    let quoted = |word: &String| boxfile_spec::in_quotes(boxfile_spec::Syntax::Kdl, word);
    Some(box_image::text::words(line)?.iter().map(quoted).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::{self, Read, Write};

    use box_image::Layout;
    use box_tree::{Inode, Leaf, Meta};
    use boxfile_spec::parse;

    use super::*;

    struct Texts(BTreeMap<Content, &'static str>);

    impl ReadContent for Texts {
        fn copy_head(
            &mut self,
            content: Content,
            limit: u64,
            out: &mut dyn Write,
        ) -> io::Result<()> {
            io::copy(&mut self.0[&content].as_bytes().take(limit), out).map(drop)
        }
    }

    /// An image with a shell, scripts, and a file that is neither.
    fn image() -> (Tree, Texts) {
        let (mut tree, mut texts) = (Tree::default(), BTreeMap::new());
        for (directory, name, mode, text) in [
            ("bin", "bash", 0o755, "a shell"),
            ("bin", "env", 0o755, "env"),
            ("app", "run", 0o755, "#!/bin/bash -e\n"),
            ("app", "py", 0o755, "#!/usr/bin/python3\n"),
            ("app", "env-py", 0o755, "#!/bin/env -S python3\n"),
            ("app", "notes", 0o644, "to do"),
        ] {
            let directory = tree.ensure_directory(Tree::ROOT, directory.as_bytes());
            let content = Content::of(text.as_bytes());
            let meta = Meta::root_owned(mode);
            let file = tree.add(Inode::leaf(meta, Leaf::File(content)));
            tree.link(directory, name.as_bytes(), file);
            texts.insert(content, text);
        }
        let mut link = |directory: &[u8], name: &[u8], target: &[u8]| {
            let leaf = Leaf::Symlink(target.to_vec());
            let link = tree.add(Inode::leaf(Meta::root_owned(0o777), leaf));
            let directory = tree.ensure_directory(Tree::ROOT, directory);
            tree.link(directory, name, link);
        };
        link(b"bin", b"sh", b"bash");
        link(b"bin", b"loop", b"loop");
        link(b"app", b"shared", b"../srv/tool");
        (tree, Texts(texts))
    }

    /// Checks a box whose agent has these lines, and returns the error with what is near.
    fn checked(lines: &str) -> Option<(String, Option<String>, Option<String>)> {
        let (tree, mut texts) = image();
        let text = format!(
            "box b\nagent {{\n image \"oci:i\"\n workdir \"/app\"\n {lines}\n}}\nshare s host=\".\" \
             guest=\"/srv\"\n"
        );
        let boxfile = parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let plan = plan(&boxfile);
        let components = vec![ComponentName::Agent];
        let root = ComponentRoot { components, name: "agent", tree: &tree };
        let missing = check_programs(&root, &boxfile, &plan, Platform::BUILT, &mut texts).unwrap();
        missing.into_iter().next().map(|error| match error {
            ComposeError::NoSuchProgram { message, near, words, .. } => (message, near, words),
            error => panic!("{error}"),
        })
    }

    fn plan(boxfile: &Boxfile) -> RunPlan {
        let image = super::super::FlatImage {
            component: ComponentName::Agent,
            process: oci_image::Config::default(),
            tree: Tree::default(),
        };
        let dir = tempfile::tempdir().unwrap();
        let store = box_cache::Store::open(dir.path()).unwrap();
        let contents = crate::pack::ContentMap::default();
        assert_eq!(boxfile.layout, Layout::Split);
        let mut packs = contents.reader(&store);
        super::super::plan_of(boxfile, &BTreeMap::new(), Vec::new(), &[image], &mut packs).unwrap()
    }

    #[test]
    fn what_the_image_has_is_found() {
        for lines in [
            "entrypoint \"/bin/bash\"",
            "entrypoint \"sh\"",
            "entrypoint \"./run\"",
            "entrypoint \"/app/run\"; health exec \"../bin/sh\" \"-c\" \"true\"",
            "entrypoint \"mine\"; env PATH=\"/nowhere:/srv\"",
            "entrypoint \"/srv/any\"",
            "entrypoint \"/app/shared\"",
            "entrypoint \"/a3s/skills/greet/run\"",
        ] {
            assert_eq!(checked(lines), None, "{lines}");
        }
    }

    #[test]
    fn what_the_image_lacks_is_an_error() {
        let of_agent = "which is not in the image of `agent`";
        for (lines, message, near) in [
            (
                "entrypoint \"/bin/bahs\"",
                format!("the agent runs \"/bin/bahs\", {of_agent}"),
                Some("/bin/bash"),
            ),
            (
                "entrypoint \"/usr/bin/bash\"",
                format!("the agent runs \"/usr/bin/bash\", {of_agent}"),
                Some("/bin/bash"),
            ),
            (
                "entrypoint \"bahs\"; env PATH=\"/bin\"",
                "the agent runs \"bahs\", which is in no directory of its PATH: /bin".to_owned(),
                Some("bash"),
            ),
            (
                "entrypoint \"run\"; env PATH=\".:/bin\"",
                "the agent runs \"run\", which is in no directory of its PATH: .:/bin".to_owned(),
                None,
            ),
            (
                "entrypoint \"/app/notes\"",
                "the agent runs \"/app/notes\", which is not executable".to_owned(),
                None,
            ),
            (
                "entrypoint \"/app\"",
                "the agent runs \"/app\", which is not a file".to_owned(),
                None,
            ),
            // The `/run` of init is not that of a component.
            ("entrypoint \"/run/any\"", format!("the agent runs \"/run/any\", {of_agent}"), None),
            ("entrypoint \"/bin/loop\"", format!("the agent runs \"/bin/loop\", {of_agent}"), None),
            (
                "entrypoint \"/app/py\"",
                format!("\"/app/py\" is run by \"/usr/bin/python3\", {of_agent}"),
                None,
            ),
            (
                "entrypoint \"/app/env-py\"; env PATH=\"/bin\"",
                "\"/app/env-py\" is run by \"python3\", which is in no directory of its PATH: /bin"
                    .to_owned(),
                None,
            ),
            (
                "entrypoint sh; health exec \"/nope\"",
                format!("the health check runs \"/nope\", {of_agent}"),
                None,
            ),
        ] {
            let (found, suggested, words) = checked(lines).unwrap_or_else(|| panic!("{lines}"));
            assert_eq!((found, suggested.as_deref(), words), (message, near, None), "{lines}");
        }
    }

    #[test]
    fn a_command_line_in_one_text_is_split() {
        let (.., words) = checked("entrypoint \"/bin/sh -c 'sleep 9'\"").unwrap();
        assert_eq!(words.as_deref(), Some("\"/bin/sh\" \"-c\" \"sleep 9\""));
    }
}
