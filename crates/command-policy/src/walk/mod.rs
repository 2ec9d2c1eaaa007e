//! Goes through all commands of a command, and finds the strictest decision.

mod code;
mod git;
mod stage;
mod targets;
mod unwrap;
mod variables;
mod wrappers;

pub(crate) use unwrap::inner_commands;

use std::collections::BTreeMap;

use crate::call::Call;
use crate::classify::{Circumstances, OwnRules};
use crate::path::Path;
use crate::rules::{Found, How, Matcher, RULES, Relaxed, Rule, named};
use crate::shell::{
    self, Command, Kind, MAX_LENGTH, Pipeline, Redirect, RedirectKind, Script, Simple, Unreadable,
    Word,
};
use crate::{Decision, Ruling};

use stage::Stage;
use unwrap::{Inner, SHELLS, reads_program};
use variables::{is_deciding, sets_deciding};

/// The maximum depth of commands inside commands, over all shells that are started.
const MAX_DEPTH: usize = 64;
/// The maximum number of simple commands, of groups of eight words, and of texts of 256 bytes. Words of a command inside a command
/// count again, because they are read again.
const MAX_WORK: usize = 20_000;

/// Returns how much of [`MAX_WORK`] reading a program with its arguments is.
fn cost(words: &[Word]) -> usize {
    let bytes: usize = words.iter().map(|it| it.text.len()).sum();
    1 + words.len() / 8 + bytes / 256
}

/// The decision on one command.
#[derive(Debug)]
pub(crate) struct Walk<'r> {
    own: &'r OwnRules,
    is_development: bool,
    /// The directory of the next command, if it is known.
    directory: Option<Path>,
    /// The directories after the functions that change it.
    functions: BTreeMap<String, Option<Path>>,
    /// Whether a variable may have changed which programs run, so that no pattern of the Boxfile allows them.
    is_changed: bool,
    depth: usize,
    work: usize,
}

impl<'r> Walk<'r> {
    /// Creates the decision on one command that starts in these circumstances.
    pub(crate) fn new(own: &'r OwnRules, is_development: bool, around: &Circumstances<'_>) -> Self {
        Self {
            own,
            is_development,
            directory: around.directory.map(|it| Path::of(it, None)),
            functions: BTreeMap::new(),
            is_changed: around.variables.iter().any(|it| is_deciding(it)),
            depth: 0,
            work: 0,
        }
    }

    /// Returns the decision on the circumstances themselves.
    pub(crate) fn started(&self, around: &Circumstances<'_>) -> Ruling {
        let deciding = around.variables.iter().find(|it| is_deciding(it));
        match deciding {
            _ if !around.is_of_agent => Ruling::no_rule(),
            _ if around.has_user => asks("su-privilege", "it runs as another user".to_owned()),
            Some(name) => {
                asks("unknown-program", format!("the variable {name} decides which program runs"))
            }
            None => Ruling::no_rule(),
        }
    }

    /// Returns the decision on a program and its arguments.
    pub(crate) fn argv(&mut self, words: &[Word]) -> Ruling {
        if words.iter().map(|it| it.text.len() + 1).sum::<usize>() > MAX_LENGTH {
            return unreadable("it is too long");
        }
        let ruling = self.words(words, None, false);
        ruling.or_stricter(self.limit())
    }

    /// Returns the decision on a line for a shell.
    pub(crate) fn line(&mut self, line: &str) -> Ruling {
        self.work += 1 + line.len() / 256;
        if self.is_over() {
            return unreadable("it is too long");
        }
        // A shell reads and runs one line after the other, so what is forbidden before an error stays so.
        if line.len() > MAX_LENGTH {
            let begun = &line[..line.floor_char_boundary(MAX_LENGTH)];
            let lines = begun.rsplit_once('\n').map_or("", |(lines, _)| lines);
            return unreadable("it is too long").or_stricter(self.line(lines));
        }
        let (script, outcome) = shell::read(line);
        let ruling = self.script(&script);
        let ruling = match outcome {
            Ok(()) => ruling,
            Err(Unreadable(reason)) => unreadable(reason).or_stricter(ruling),
        };
        ruling.or_stricter(self.limit())
    }

    /// Returns the decision on what was not read because it is too much.
    fn limit(&self) -> Ruling {
        if self.is_over() { unreadable("it is too long") } else { Ruling::no_rule() }
    }

    const fn is_over(&self) -> bool {
        self.depth > MAX_DEPTH || self.work > MAX_WORK
    }

    fn script(&mut self, script: &Script) -> Ruling {
        self.depth += 1;
        let mut ruling = Ruling::no_rule();
        if self.is_over() {
            ruling = unreadable("its commands are nested too deeply");
        } else {
            for pipeline in &script.pipelines {
                ruling = ruling.or_stricter(self.pipeline(pipeline));
            }
        }
        self.depth -= 1;
        ruling
    }

    /// Returns the decision on commands that run in a shell of their own.
    fn subshell(&mut self, script: &Script) -> Ruling {
        let (directory, is_changed) = (self.directory.clone(), self.is_changed);
        let ruling = self.script(script);
        self.directory = directory;
        self.is_changed = is_changed;
        ruling
    }

    /// Looks at a command as a part of a pipeline.
    fn stage(&mut self, command: &Command) -> Stage {
        let stage = Stage::of(command, MAX_WORK.saturating_sub(self.work));
        self.work += stage.work;
        stage
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Ruling {
        let mut ruling = Ruling::no_rule();
        for command in &pipeline.commands {
            ruling = ruling.or_stricter(self.command(command));
        }
        if pipeline.commands.len() > 1 {
            ruling = ruling.or_stricter(self.piped(&pipeline.commands));
        }
        if pipeline.is_background {
            ruling = ruling.or_stricter(self.structural("background-process", Found::Yes));
        }
        ruling
    }

    /// Returns the decision on what commands do only together.
    fn piped(&mut self, commands: &[Command]) -> Ruling {
        let stages: Vec<Stage> = commands.iter().map(|it| self.stage(it)).collect();
        let mut ruling = self.structural("reverse-shell", connected(&stages));
        // What the stages before this one do together.
        let (mut has_source, mut has_history, mut prints_root) = (false, false, false);
        let mut text: Option<&str> = None;
        for (at, stage) in stages.iter().enumerate() {
            let is_fed = stage.reads_program || stage.has_xargs_shell;
            if at > 0 && is_fed && has_source {
                ruling = ruling.or_stricter(self.structural("pipe-to-shell", Found::Yes));
            } else if at > 0 && is_fed && has_history {
                ruling = ruling.or_stricter(self.structural("history-exec", Found::Yes));
            } else if at > 0 && stage.reads_program {
                let fed = text.map_or_else(unknown_program, |it| self.text(it, &commands[at]));
                ruling = ruling.or_stricter(fed);
            }
            if stage.feeds_program && at > 0 {
                let fed = if has_source { "pipe-to-shell" } else { "unknown-program" };
                ruling = ruling.or_stricter(self.structural(fed, Found::Yes));
            }
            if stage.deletes && prints_root {
                ruling = ruling.or_stricter(self.structural("destructive-xargs", Found::Yes));
            }
            has_source |= stage.is_source;
            has_history |= stage.is_history;
            prints_root |= stage.prints_root;
            text = stage.text.as_deref().filter(|_| at == 0);
        }
        ruling
    }

    /// Returns the decision on a text that an interpreter reads.
    fn text(&mut self, text: &str, reader: &Command) -> Ruling {
        let line = self.line(text);
        if self.stage(reader).has_shell { line } else { self.code(text) }
    }

    fn command(&mut self, command: &Command) -> Ruling {
        let mut ruling = Ruling::no_rule();
        for redirect in &command.redirects {
            ruling = ruling.or_stricter(self.redirect(redirect));
        }
        if substitutes(command) {
            ruling = ruling.or_stricter(self.substituted(command));
        }
        let inner = match &command.kind {
            Kind::Simple(simple) => self.simple(simple, &command.redirects),
            Kind::Group(script) => self.script(script),
            Kind::Subshell(script) => self.subshell(script),
            Kind::Function(name, script) => self.function(name, script),
        };
        // The redirections come second: a rule of the command says more.
        inner.or_stricter(ruling)
    }

    /// Returns the decision on what an interpreter reads from commands in the words and redirections of a command, or from what is
    /// unknown.
    fn substituted(&mut self, command: &Command) -> Ruling {
        let stage = self.stage(command);
        let mut ruling = Ruling::no_rule();
        if stage.feeds_program {
            let rule = if stage.is_source { "pipe-to-shell" } else { "unknown-program" };
            ruling = self.structural(rule, Found::Yes);
        }
        let inputs = command.redirects.iter().filter(|_| stage.takes_program);
        for input in inputs.filter(|it| is_open_input(it)) {
            ruling = ruling.or_stricter(self.from(&input.target)).or_stricter(unknown_program());
        }
        ruling
    }

    fn function(&mut self, name: &str, script: &Script) -> Ruling {
        let directory = self.directory.clone();
        let ruling = self.script(script);
        let after = std::mem::replace(&mut self.directory, directory);
        if after != self.directory {
            self.functions.insert(name.to_owned(), after);
        }
        if multiplies(name, script, 0) {
            return ruling.or_stricter(self.structural("fork-bomb", Found::Yes));
        }
        ruling
    }

    fn redirect(&mut self, redirect: &Redirect) -> Ruling {
        let ruling = self.scripts(std::slice::from_ref(&redirect.target));
        let path = Path::of(&redirect.target.text, self.directory.as_ref());
        let other = match redirect.kind {
            RedirectKind::Text | RedirectKind::Duplicate => return ruling,
            _ if path.is_connection() => self.structural("reverse-shell", Found::Yes),
            RedirectKind::Read if path.is_credential() => {
                self.structural("credential-access", Found::Yes)
            }
            RedirectKind::Read => return ruling,
            RedirectKind::Write => self.target(&path, How::Direct, false),
        };
        ruling.or_stricter(other)
    }

    /// Returns the decision on the commands in words.
    fn scripts(&mut self, words: &[Word]) -> Ruling {
        let mut ruling = Ruling::no_rule();
        for script in words.iter().flat_map(|it| &it.scripts) {
            ruling = ruling.or_stricter(self.subshell(script));
        }
        ruling
    }

    fn simple(&mut self, simple: &Simple, redirects: &[Redirect]) -> Ruling {
        /// Commands of the shell that set variables for the commands after them.
        const DECLARERS: [&str; 5] = ["export", "declare", "local", "readonly", "typeset"];
        let text = redirects.iter().rfind(|it| it.kind == RedirectKind::Text);
        let is_changed = self.is_changed;
        let first = simple.words.first();
        let stays = first.is_none_or(|it| DECLARERS.contains(&it.text.as_str()));
        // What the Boxfile allows is the program that it names, and not another one.
        let changes = simple.assigned.iter().any(|it| is_deciding(it))
            || (stays && simple.words.iter().any(|it| sets_deciding(&it.text)));
        self.is_changed |= changes;
        let mut ruling = self.words(&simple.words, text.map(|it| &it.target), false);
        self.is_changed = is_changed || (changes && stays);
        if simple.has_ifs {
            ruling = ruling.or_stricter(self.structural("ifs-bypass", Found::Yes));
        }
        ruling.or_stricter(self.scripts(&simple.values)).or_stricter(self.scripts(&simple.words))
    }

    /// Returns the decision on a program and its arguments. `input` is the text that it reads. `is_allowed` means that a pattern of the
    /// Boxfile allows the command around it.
    fn words(&mut self, words: &[Word], input: Option<&Word>, is_allowed: bool) -> Ruling {
        let directory = self.directory.clone();
        let Some(call) = Call::of(words, directory.as_ref()) else {
            return Ruling::no_rule();
        };
        self.work += cost(words);
        self.depth += 1;
        if self.is_over() {
            self.depth -= 1;
            return unreadable("its commands are nested too deeply");
        }
        let own = self.own.of(words, call.name, !self.is_changed);
        let is_allowed = is_allowed || own.as_ref().is_some_and(|it| it.decision == Decision::Run);
        let mut ruling = own.unwrap_or_else(Ruling::no_rule);
        ruling = ruling.or_stricter(self.built_in(call, is_allowed));
        if !is_literal(call.program) {
            ruling = ruling.or_stricter(unknown_program());
        }
        let is_changed = self.is_changed;
        self.is_changed |= call.is(&["env", "genv", "sudo", "doas"])
            && call.args.iter().any(|it| it.text.split_whitespace().any(sets_deciding));
        for inner in inner_commands(call) {
            ruling = ruling.or_stricter(self.inner(inner, input, is_allowed));
        }
        self.is_changed = is_changed;
        if let Some(input) = input.filter(|_| reads_program(call)) {
            ruling = ruling.or_stricter(self.input(call, input));
        }
        self.depth -= 1;
        if call.is(&["cd", "pushd", "popd"]) {
            self.directory = entered(call);
        } else if let Some(after) = self.functions.get(call.name) {
            self.directory.clone_from(after);
        }
        ruling
    }

    fn inner(&mut self, inner: Inner<'_>, input: Option<&Word>, is_allowed: bool) -> Ruling {
        match inner {
            Inner::Words(words) => self.words(&words, input, is_allowed),
            Inner::In(directory, words) => {
                let outer = self.directory.replace(directory);
                let ruling = self.words(&words, input, is_allowed);
                self.directory = outer;
                ruling
            }
            Inner::Line(line) => {
                let ruling = self.line(&line.text);
                ruling.or_stricter(self.from(&line))
            }
            Inner::File(word) if word.scripts.is_empty() => Ruling::no_rule(),
            Inner::File(word) => self.from(word),
            Inner::Code(text) => self.code(&text),
            Inner::Unlisted if is_allowed => Ruling::no_rule(),
            Inner::Unknown | Inner::Unlisted => unknown_program(),
        }
    }

    /// Returns the decision on running the output of the commands in a word, or what is unknown in it.
    fn from(&mut self, word: &Word) -> Ruling {
        let stage = Stage::of_scripts(&word.scripts, MAX_WORK.saturating_sub(self.work));
        self.work += stage.work;
        if stage.is_source {
            self.structural("pipe-to-shell", Found::Yes)
        } else if stage.connects {
            self.structural("reverse-shell", Found::Yes)
        } else if word.is_unknown {
            unknown_program()
        } else {
            Ruling::no_rule()
        }
    }

    /// Returns the decision on a here-document or a here-string of an interpreter.
    fn input(&mut self, call: Call<'_>, input: &Word) -> Ruling {
        if call.is(&SHELLS) || call.is(&["source", ".", "parallel"]) {
            let ruling = self.line(&input.text);
            return ruling.or_stricter(self.from(input));
        }
        self.code(&input.text)
    }

    /// Returns the decision on a program in another language.
    fn code(&mut self, text: &str) -> Ruling {
        self.work += 1 + text.len() / 256;
        let directory = self.directory.clone();
        let is_root = |it: &str| Path::of(it, directory.as_ref()).is_root_like();
        let mut ruling = Ruling::no_rule();
        for (rule, found) in code::deeds(text, is_root) {
            ruling = ruling.or_stricter(self.structural(rule, found));
        }
        for line in code::commands(text) {
            // Most texts in quotes are no commands, so that only what is forbidden counts.
            let inner = self.line(&line);
            if inner.decision == Decision::Forbid {
                ruling = ruling.or_stricter(inner);
            }
            self.directory.clone_from(&directory);
        }
        ruling.or_stricter(self.limit())
    }

    /// Returns the decision of the built-in rules on a call.
    fn built_in(&self, call: Call<'_>, is_allowed: bool) -> Ruling {
        let mut ruling = Ruling::no_rule();
        for rule in &RULES {
            let found = rule.find(call);
            ruling = ruling.or_stricter(self.ruling(rule, found, is_allowed, Some(call)));
        }
        for (path, how) in targets::targets(call) {
            ruling = ruling.or_stricter(self.target(&path, how, is_allowed));
        }
        let unknown_disk = |it: &Word| it.is_unknown && it.known == "of=";
        if call.name == "dd" && call.args.iter().any(unknown_disk) {
            ruling = ruling.or_stricter(self.structural("disk-wipe", Found::Perhaps));
        }
        ruling
    }

    /// Returns the decision on writing a file.
    fn target(&self, path: &Path, how: How, is_allowed: bool) -> Ruling {
        let mut ruling = Ruling::no_rule();
        for rule in &RULES {
            if let Matcher::Target(matches) = rule.matcher {
                let found = matches(path, how);
                ruling = ruling.or_stricter(self.ruling(rule, found, is_allowed, None));
            }
        }
        ruling
    }

    /// Returns the decision of a rule about more than one command or none.
    fn structural(&self, name: &str, found: Found) -> Ruling {
        named(name).map_or_else(unknown_program, |it| self.ruling(it, found, false, None))
    }

    fn ruling(
        &self,
        rule: &Rule,
        found: Found,
        is_allowed: bool,
        call: Option<Call<'_>>,
    ) -> Ruling {
        let is_relaxed = self.is_development
            && match rule.relaxed {
                Relaxed::No => false,
                Relaxed::Yes => true,
                Relaxed::Reading => {
                    call.is_some_and(|it| ["fetch", "pull", "clone"].contains(&it.verb()))
                }
            };
        let decision = match (rule.decision, found) {
            (_, Found::No) => return Ruling::no_rule(),
            (Decision::Ask, _) if is_relaxed => Decision::Run,
            (Decision::Forbid, Found::Perhaps) => Decision::Ask,
            (decision, _) => decision,
        };
        if decision == Decision::Ask && is_allowed {
            return Ruling::no_rule();
        }
        let perhaps = if found == Found::Perhaps { "perhaps " } else { "" };
        let reason = format!("{perhaps}{}", rule.reason);
        Ruling { decision, rule: Some(rule.name.to_owned()), reason }
    }
}

/// Returns whether the program is the same whatever the shell knows when it runs.
fn is_literal(program: &Word) -> bool {
    let text = program.text.as_str();
    let is_empty = text.is_empty() || text.ends_with('/') || text.contains("{}");
    !program.is_unknown && (!program.has_glob || text == "[") && !is_empty
}

fn unknown_program() -> Ruling {
    let rule = named("unknown-program");
    let reason = rule.map_or("the program is known only when it runs", |it| it.reason);
    Ruling {
        decision: Decision::Ask,
        rule: Some("unknown-program".to_owned()),
        reason: reason.to_owned(),
    }
}

fn unreadable(reason: &str) -> Ruling {
    Ruling {
        decision: Decision::Ask,
        rule: Some("unreadable-command".to_owned()),
        reason: format!("it cannot be read: {reason}"),
    }
}

/// Creates the decision of a built-in rule with a reason of its own.
fn asks(rule: &str, reason: String) -> Ruling {
    Ruling { decision: Decision::Ask, rule: Some(rule.to_owned()), reason }
}

/// Returns the directory after `cd`. `None` if it was unknown before.
fn entered(call: Call<'_>) -> Option<Path> {
    if call.name == "popd" {
        return Some(Path::chosen());
    }
    let Some(word) = call.operands().next() else {
        return Some(call.path("~"));
    };
    let in_home = word.text.strip_prefix("$HOME");
    let in_home = in_home.filter(|it| it.is_empty() || it.starts_with('/'));
    let text = in_home.unwrap_or(&word.text);
    let is_unknown =
        word.is_unknown && (text.contains(['$', '`']) || text.len() == word.text.len());
    if is_unknown || word.text == "-" {
        return Some(Path::chosen());
    }
    let is_absolute = word.text.starts_with(['/', '~', '$']);
    (is_absolute || call.directory.is_some()).then(|| call.path(&word.text))
}

/// Returns whether a shell in a pipeline gets its commands from a connection, or perhaps does.
fn connected(stages: &[Stage]) -> Found {
    let connects = |it: &Stage| it.connects;
    let is_shell = |it: &Stage| it.has_shell && it.takes_program;
    if !stages.iter().any(connects) {
        return Found::No;
    }
    let is_other = |(at, shell): (usize, &Stage)| {
        let mut others = stages.iter().enumerate().filter(|it| it.0 != at);
        shell.has_shell && others.any(|it| it.1.connects)
    };
    if stages.iter().any(is_shell) {
        Found::Yes
    } else if stages.iter().enumerate().any(is_other) {
        Found::Perhaps
    } else {
        Found::No
    }
}

/// Returns whether a command has commands in its words or redirections, or an input that is unknown.
fn substitutes(command: &Command) -> bool {
    let has = |it: &Word| !it.scripts.is_empty();
    let in_words = match &command.kind {
        Kind::Simple(simple) => simple.words.iter().any(has),
        _ => false,
    };
    let redirects = || command.redirects.iter();
    in_words || redirects().any(|it| has(&it.target)) || redirects().any(is_open_input)
}

/// Returns whether a redirection can be an input that the line does not show: the output of commands, an unknown file, or a descriptor
/// that was opened elsewhere.
fn is_open_input(redirect: &Redirect) -> bool {
    let target = &redirect.target;
    let is_other = || target.text.parse::<u32>().is_ok_and(|it| it > 2);
    match redirect.kind {
        RedirectKind::Read => target.is_unknown || !target.scripts.is_empty(),
        RedirectKind::Duplicate => target.is_unknown || is_other(),
        RedirectKind::Write | RedirectKind::Text => false,
    }
}

/// Returns whether a function starts itself more than once at the same time.
fn multiplies(name: &str, script: &Script, depth: usize) -> bool {
    script.pipelines.iter().any(|pipeline| {
        let calls = pipeline.commands.iter().filter(|it| is_call(name, it)).count();
        let inner = |it: &Command| match &it.kind {
            Kind::Group(script) | Kind::Subshell(script) if depth < MAX_DEPTH => {
                multiplies(name, script, depth + 1)
            }
            _ => false,
        };
        calls > 1 || (calls > 0 && pipeline.is_background) || pipeline.commands.iter().any(inner)
    })
}

fn is_call(name: &str, command: &Command) -> bool {
    match &command.kind {
        Kind::Simple(simple) => simple.words.first().is_some_and(|it| it.text == name),
        _ => false,
    }
}
