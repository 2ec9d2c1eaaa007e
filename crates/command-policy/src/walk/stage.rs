//! What a command is for the commands after it in a pipeline.

use crate::call::Call;
use crate::path::Path;
use crate::shell::{self, Command, Kind, RedirectKind, Script, Word};

use super::cost;
use super::unwrap::{Inner, SHELLS, inner_commands, reads_program};

/// Programs that download.
const DOWNLOADERS: [&str; 12] = [
    "curl", "wget", "wget2", "fetch", "aria2c", "lynx", "w3m", "links", "http", "https", "xh",
    "axel",
];
/// Programs that decode or turn text.
const DECODERS: [&str; 7] = ["base64", "base32", "basenc", "xxd", "uudecode", "rev", "openssl"];
/// Programs that connect to a host.
const CONNECTORS: [&str; 8] =
    ["nc", "ncat", "netcat", "nc.traditional", "nc.openbsd", "telnet", "socat", "openssl"];
/// Programs that delete or change the files among their arguments.
const DELETERS: [&str; 9] =
    ["rm", "shred", "unlink", "rmdir", "truncate", "mv", "chmod", "chown", "srm"];
/// The maximum depth of commands that are looked at.
const MAX_DEPTH: usize = 16;

/// Where a program of a command runs.
#[derive(Debug, Clone, Copy)]
struct Around {
    /// Whether its standard input is a file or a text of the line.
    has_input: bool,
    /// Whether `xargs` starts it.
    is_xargs: bool,
}

/// What a command does in a pipeline.
#[derive(Debug, Default)]
pub(super) struct Stage {
    /// It downloads, or decodes text.
    pub(super) is_source: bool,
    /// It connects to a host.
    pub(super) connects: bool,
    /// A shell or another interpreter in it reads its program from the standard input, which is no file.
    pub(super) reads_program: bool,
    /// A shell or another interpreter in it reads its program from the standard input, also if that is a file.
    pub(super) takes_program: bool,
    /// An interpreter reads its program from what it prints or reads: it is in a `>(…)` or a `$(…)` of it.
    pub(super) feeds_program: bool,
    /// A shell is in it.
    pub(super) has_shell: bool,
    /// `xargs` starts a shell in it.
    pub(super) has_xargs_shell: bool,
    /// `xargs` deletes in it.
    pub(super) deletes: bool,
    /// It prints paths of the system's directories.
    pub(super) prints_root: bool,
    pub(super) is_history: bool,
    /// The text that it prints, if it only does that.
    pub(super) text: Option<String>,
    /// The work of looking at it, as the walk counts it.
    pub(super) work: usize,
    /// How much work may be done. What is beyond it is not looked at.
    limit: usize,
}

impl Stage {
    /// Looks at a command. `limit` is how much work may be done.
    pub(super) fn of(command: &Command, limit: usize) -> Self {
        let mut stage = Self { limit, ..Self::default() };
        stage.add(command, 0);
        if !matches!(command.kind, Kind::Simple(_)) {
            stage.text = None;
        }
        stage
    }

    /// Returns what scripts do together.
    pub(super) fn of_scripts(scripts: &[Script], limit: usize) -> Self {
        let mut stage = Self { limit, ..Self::default() };
        scripts.iter().for_each(|it| stage.add_script(it, 0));
        stage
    }

    fn add_script(&mut self, script: &Script, depth: usize) {
        let commands = script.pipelines.iter().flat_map(|it| &it.commands);
        commands.for_each(|it| self.add(it, depth));
    }

    fn add(&mut self, command: &Command, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        // A shell whose standard input is a file does not read the pipe.
        let reads = |it: &RedirectKind| matches!(it, RedirectKind::Read | RedirectKind::Text);
        let is_input = |it: &Word| Path::of(&it.text, None).is_input();
        let has_input = command.redirects.iter().any(|it| reads(&it.kind) && !is_input(&it.target));
        let targets = command.redirects.iter().map(|it| &it.target);
        targets.for_each(|it| self.add_substitutions(it, depth));
        match &command.kind {
            Kind::Simple(simple) => {
                simple.words.iter().for_each(|it| self.add_substitutions(it, depth));
                self.add_words(&simple.words, Around { has_input, is_xargs: false }, depth);
            }
            Kind::Group(script) | Kind::Subshell(script) | Kind::Function(_, script) => {
                self.add_script(script, depth + 1);
            }
        }
    }

    /// Notes an interpreter in the commands of a word, which reads what the command prints or reads.
    fn add_substitutions(&mut self, word: &Word, depth: usize) {
        if word.scripts.is_empty() || depth >= MAX_DEPTH || self.work > self.limit {
            return;
        }
        let mut inner = Self { limit: self.limit, work: self.work, ..Self::default() };
        word.scripts.iter().for_each(|it| inner.add_script(it, depth + 1));
        self.work = inner.work;
        self.feeds_program |= inner.reads_program || inner.feeds_program;
    }

    fn add_words(&mut self, words: &[Word], around: Around, depth: usize) {
        self.work += cost(words);
        let is_over = depth > MAX_DEPTH || self.work > self.limit;
        let Some(call) = Call::of(words, None).filter(|_| !is_over) else {
            return;
        };
        self.note(call);
        self.has_xargs_shell |= around.is_xargs && call.is(&SHELLS);
        self.deletes |= around.is_xargs && call.is(&DELETERS);
        self.takes_program |= reads_program(call);
        self.reads_program |= !around.has_input && reads_program(call);
        let is_xargs = around.is_xargs || call.is(&["xargs", "gxargs", "parallel"]);
        let around = Around { is_xargs, ..around };
        for inner in inner_commands(call) {
            if let Some(words) = inner.words() {
                self.add_words(words, around, depth + 1);
            } else if let Inner::Line(line) = &inner {
                self.work += 1 + line.text.len() / 256;
                if self.work <= self.limit
                    && let Ok(script) = shell::parse(&line.text)
                {
                    self.add_script(&script, depth + 1);
                }
            }
        }
    }

    fn note(&mut self, call: Call<'_>) {
        let is_tls = call.name == "openssl" && call.verb() == "s_client";
        let encodes = call.name == "openssl" && !["enc", "base64"].contains(&call.verb());
        self.is_source |= call.is(&DOWNLOADERS) || (call.is(&DECODERS) && !encodes);
        self.connects |= call.is(&CONNECTORS) && (call.name != "openssl" || is_tls);
        self.has_shell |= call.is(&SHELLS);
        self.is_history |= call.is(&["history", "fc"]);
        let is_root = |it: &Word| Path::of(&it.text, None).is_root_like();
        self.prints_root |=
            call.is(&["echo", "printf", "find", "ls"]) && call.operands().any(is_root);
        if call.is(&["echo", "printf"]) {
            self.text = printed(call);
        }
    }
}

/// Returns the text that `echo` or `printf` prints. `None` if a part of it is unknown, or is written with escapes.
fn printed(call: Call<'_>) -> Option<String> {
    let is_flag = |it: &&Word| {
        it.text.strip_prefix('-').is_some_and(|it| it.chars().all(|it| "neE".contains(it)))
    };
    let words: Vec<&Word> = call.args.iter().skip_while(is_flag).collect();
    let is_known = words.iter().all(|it| !it.is_unknown && !it.text.contains(['\\', '%']));
    let texts: Vec<&str> = words.iter().map(|it| it.text.as_str()).collect();
    is_known.then(|| texts.join(" "))
}
