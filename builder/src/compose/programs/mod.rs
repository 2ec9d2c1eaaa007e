//! Checks that a component's root has the programs that the box runs in it, and the interpreters and dynamic linkers
//! that start them.
//!
//! A program is looked up as init does: a name with a slash relative to the working directory, any other name in the
//! directories of `PATH`. Paths below a mount exist only when the box runs, and are not checked: a share, a scratch
//! disk, the skills, and the kernel's directories.

use std::collections::BTreeSet;

use box_contract::Platform;
use box_contract::plan::SKILLS_PATH;
use box_contract::rules::{KERNEL_DIRECTORIES, program_paths, search_path};
use box_contract::{ComponentName, ComponentPlan, Health, RunPlan};
use box_tree::{Content, Follow, InodeId, ReadContent, Step, Tree, Walk};
use boxfile_spec::Boxfile;
use diagnostics::Span;
use diagnostics::suggest::nearest;

use super::{CLibrary, ComponentRoot, ComposeError, Unrunnable};
use crate::binary::{Program, ProgramError, inspect_head};

/// The maximum depth of interpreters: Linux refuses more (`exec_binprm`).
const MAX_INTERPRETERS: usize = 5;
/// The number of bytes of a program that are read: headers, and the first line of a script.
const MAX_HEAD: u64 = 64 << 10;
/// The maximum number of directories, and of names in each, that are searched for the program that was probably
/// meant. An image may name a directory any number of times, and fill it with any number of names.
const NEAR_DIRECTORIES: usize = 16;
const NEAR_NAMES: usize = 8192;

/// Checks the programs of the components that use `root`: the component's program, if the box starts it, and the
/// program of the health check; for the agent also those of its MCP servers and hooks. Returns a
/// [`ComposeError::NoSuchProgram`] for each missing program.
///
/// # Errors
/// [`ComposeError::Unreadable`] if a program cannot be read.
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
        let configured = configured(boxfile).filter(|_| component == ComponentName::Agent);
        for (what, program, span) in configured {
            finder.check(&what, program, span).or_else(&mut keep)?;
        }
    }
    Ok(missing)
}

/// Returns the programs that the agent starts by its configuration, each with its purpose and its span.
fn configured(boxfile: &Boxfile) -> impl Iterator<Item = (String, &str, Span)> {
    let servers = boxfile
        .mcp
        .iter()
        .map(|it| (format!("the MCP server `{}`", it.value.name), it.value.argv.first(), it.span));
    let hooks = boxfile.hooks.iter().map(|it| {
        (format!("the hook `{}`", it.value.event.name()), it.value.argv.first(), it.span)
    });
    servers.chain(hooks).filter_map(|(what, program, span)| Some((what, program?.as_str(), span)))
}

/// The target of a path.
enum PathEnd {
    /// An entry.
    Entry(InodeId),
    /// A path that is mounted when the box runs.
    Mounted,
    /// No entry.
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

impl Finder<'_> {
    /// Checks that a program and the programs that start it exist and can be executed.
    fn check(&mut self, what: &str, program: &str, span: Span) -> Result<(), ComposeError> {
        let mut pending = vec![(format!("{what} runs {program:?}"), program.to_owned())];
        for _ in 0..MAX_INTERPRETERS {
            let Some((who, wanted)) = pending.pop() else { break };
            let found = match self.find(&wanted) {
                Ok(Some(content)) => self.interpreters(content)?,
                Ok(None) => continue,
                Err(reason) => Err((reason, self.end_of_message(&wanted, reason))),
            };
            for it in found.map_err(|reason| self.missing(&wanted, &who, reason, span))? {
                pending.push((format!("{wanted:?} is run by {it:?}"), it));
            }
        }
        Ok(())
    }

    fn missing(
        &self,
        wanted: &str,
        who: &str,
        (reason, message): (Unrunnable, String),
        span: Span,
    ) -> ComposeError {
        let message = format!("{who}, {message}");
        let is_there = matches!(
            reason,
            Unrunnable::OtherMachine | Unrunnable::NotAProgram | Unrunnable::LfsPointer
        );
        let reason = match (reason, library(wanted)) {
            (Unrunnable::Missing, Some(library)) => Unrunnable::NoLoader(library),
            (reason, _) => reason,
        };
        ComposeError::NoSuchProgram {
            component: self.component.name(),
            message,
            near: (!is_there).then(|| self.near(wanted)).flatten(),
            words: quoted_words(wanted),
            reason,
            span,
        }
    }

    /// Returns a program's content. `None` if it is below a mount.
    ///
    /// # Errors
    /// The reason why the program cannot be executed.
    fn find(&self, program: &str) -> Result<Option<Content>, Unrunnable> {
        let mut reason = Unrunnable::Missing;
        for path in self.candidates(program) {
            match self.follow(path.as_bytes()) {
                PathEnd::Mounted => return Ok(None),
                PathEnd::Nowhere => {}
                PathEnd::Entry(id) => {
                    let inode = self.root.inode(id);
                    match inode.content() {
                        Some(content) if inode.meta.mode & 0o111 != 0 => return Ok(Some(*content)),
                        Some(_) => reason = Unrunnable::NotExecutable,
                        None => reason = Unrunnable::NotAFile,
                    }
                }
            }
        }
        Err(reason)
    }

    fn end_of_message(&self, program: &str, reason: Unrunnable) -> String {
        match reason {
            Unrunnable::NotExecutable => "which is not executable".to_owned(),
            Unrunnable::NotAFile => "which is not a file".to_owned(),
            _ if program.contains('/') => {
                format!("which is not in the image of `{}`", self.component.name())
            }
            _ => {
                format!("which is in no directory of its PATH: {}", search_path(&self.own.env))
            }
        }
    }

    /// Returns the absolute paths at which a program is looked up.
    fn candidates(&self, program: &str) -> Vec<String> {
        let absolute = |path: String| match path.starts_with('/') {
            true => path,
            false => format!("{}/{path}", self.own.workdir),
        };
        let paths = program_paths(program, search_path(&self.own.env));
        paths.into_iter().map(absolute).collect()
    }

    /// Follows a path with its symbolic links, like a process in the component.
    fn follow(&self, path: &[u8]) -> PathEnd {
        let mut walk = Walk::new(self.root, Tree::ROOT, path, Follow::All);
        loop {
            // A mount point need not be in the image.
            if self.is_mounted(&walk.path_ahead()) {
                return PathEnd::Mounted;
            }
            match walk.step() {
                Ok(Step::Taken) => {}
                Ok(Step::End) => return PathEnd::Entry(walk.here()),
                Ok(Step::Missing) | Err(_) => return PathEnd::Nowhere,
            }
        }
    }

    /// Returns whether the box mounts something at a path or above it.
    fn is_mounted(&self, path: &[u8]) -> bool {
        let sees = |scope: box_contract::Scope| scope.includes(self.component);
        let shares = self.plan.shares.iter().filter(|it| sees(it.scope)).map(|it| &*it.guest);
        let disks = self.plan.scratch.iter().filter(|it| sees(it.scope)).map(|it| &*it.guest);
        let own = KERNEL_DIRECTORIES.into_iter().chain([SKILLS_PATH]);
        shares.chain(disks).chain(own).any(|mount| {
            let rest = path.strip_prefix(mount.as_bytes());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        })
    }

    /// Returns the programs that start a program: its dynamic linker, or a script's interpreter and, if that is
    /// `env`, also the program that `env` starts. Otherwise returns why Linux does not start it.
    fn interpreters(
        &mut self,
        content: Content,
    ) -> Result<Result<Vec<String>, (Unrunnable, String)>, ComposeError> {
        let head = self.read.read_head(content, MAX_HEAD).map_err(|source| {
            ComposeError::Unreadable { component: self.component.name(), file: "a program", source }
        })?;
        let is_whole = content.size <= MAX_HEAD;
        let interpreter = match inspect_head(&head, self.platform) {
            Ok(Program::By(interpreter)) => interpreter,
            Ok(Program::Static) => return Ok(Ok(Vec::new())),
            Err(error) => return Ok(unrunnable(&error, is_whole).map_or(Ok(Vec::new()), Err)),
        };
        let by_env = by_env(&head, &interpreter);
        Ok(Ok(String::from_utf8(interpreter).into_iter().chain(by_env).collect()))
    }

    /// Returns the program that was probably meant: the same name elsewhere, or a similar name.
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
                let PathEnd::Entry(id) = self.follow(directory.as_bytes()) else { return None };
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

/// Returns why Linux does not start a file with this error. `None` if that is not certain: for a file of an unknown
/// kind, for an ELF file of which more is needed than was read, and for a failed read.
fn unrunnable(error: &ProgramError, is_whole: bool) -> Option<(Unrunnable, String)> {
    let reason = match error {
        ProgramError::WrongMachine { .. } => Unrunnable::OtherMachine,
        ProgramError::Script(_) | ProgramError::Foreign(_) => Unrunnable::NotAProgram,
        ProgramError::LfsPointer => Unrunnable::LfsPointer,
        ProgramError::Elf(_) if is_whole => Unrunnable::NotAProgram,
        ProgramError::Elf(_) | ProgramError::NotAProgram(_) | ProgramError::Read(_) => return None,
    };
    Some((reason, format!("which Linux does not start: {error}")))
}

/// Returns the C library whose dynamic linker has this path.
fn library(path: &str) -> Option<CLibrary> {
    match path.rsplit('/').next()? {
        name if name.starts_with("ld-musl") => Some(CLibrary::Musl),
        name if name.starts_with("ld-linux") => Some(CLibrary::Gnu),
        _ => None,
    }
}

/// Returns the program that `env` starts, if `env` is the interpreter of `script` and its first line names a program.
/// For example, `#!/usr/bin/env python3` starts `python3`.
fn by_env(script: &[u8], interpreter: &[u8]) -> Option<String> {
    let line = script.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_whitespace().skip(1);
    let program = words.find(|word| *word != "-S").filter(|_| interpreter.ends_with(b"/env"))?;
    (!program.starts_with('-') && !program.contains('=')).then(|| program.to_owned())
}

/// Returns the words of a command line that was written as one string, each in quotes. A command line with shell
/// syntax becomes `/bin/sh -c` with the whole line.
fn quoted_words(line: &str) -> Option<String> {
    let mut words = safe_text::words(line)?;
    if words.iter().any(|word| is_of_shell(word)) {
        words = ["/bin/sh", "-c", line].map(str::to_owned).to_vec();
    }
    let quoted = |word: &String| diagnostics::in_quotes(diagnostics::Syntax::Kdl, word);
    Some(words.iter().map(quoted).collect::<Vec<_>>().join(" "))
}

/// Returns whether a word joins or redirects commands, such as `&&`, `2>&1` or `cd;`.
fn is_of_shell(word: &str) -> bool {
    let signs = ['&', '|', ';', '<', '>'];
    word.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(signs)
        || word.ends_with([';', '&'])
}

#[cfg(test)]
mod tests;
