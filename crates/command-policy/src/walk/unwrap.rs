//! The commands inside commands: what `sudo`, `env`, `sh -c`, `xargs` and others run.

use std::borrow::Cow;

use crate::call::{Call, skip_options};
use crate::path::Path;
use crate::shell::Word;

use super::git::git;
use super::wrappers::{ENV, perf, placed, wrapped};

/// Programs that read a command line of POSIX.
pub(crate) const SHELLS: [&str; 13] = [
    "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh", "rbash", "yash",
    "pwsh",
];

/// A command that another one runs.
#[derive(Debug)]
pub(crate) enum Inner<'a> {
    /// A program with its arguments.
    Words(Cow<'a, [Word]>),
    /// A program with its arguments, which starts in this directory.
    In(Path, Cow<'a, [Word]>),
    /// A line for a shell.
    Line(Cow<'a, Word>),
    /// A file with commands.
    File(&'a Word),
    /// The text of a program in another language.
    Code(String),
    /// Commands that nobody has written yet.
    Unknown,
    /// An option or a subcommand that is not in the lists here, so that it is unknown which command runs. A pattern of the Boxfile can
    /// allow it.
    Unlisted,
}

impl Inner<'_> {
    /// Returns the program with its arguments, if it is one.
    pub(crate) fn words(&self) -> Option<&[Word]> {
        match self {
            Self::Words(words) | Self::In(_, words) => Some(words),
            Self::Line(_) | Self::File(_) | Self::Code(_) | Self::Unknown | Self::Unlisted => None,
        }
    }
}

/// Returns the commands that a command runs.
pub(crate) fn inner_commands(call: Call<'_>) -> Vec<Inner<'_>> {
    if call.is(&SHELLS) {
        return start_files(call).chain(shell(call)).collect();
    }
    match call.name {
        "env" | "genv" => env(call),
        "eval" | "watch" | "parallel" => joined(call),
        "ssh" => remote(call),
        "trap" => call.operands().take(1).map(|it| Inner::Line(Cow::Borrowed(it))).collect(),
        "alias" => call.operands().filter_map(alias).collect(),
        "source" | "." => call.operands().take(1).map(Inner::File).collect(),
        "find" | "gfind" | "bfs" => found(call.args),
        "fd" | "fdfind" => found_by_fd(call.args),
        "su" | "script" | "capsh" => line_option(call),
        "git" => git(call),
        "perf" => perf(call),
        "tar" | "gtar" | "bsdtar" => tar_action(call.args),
        "vim" | "vi" | "nvim" | "view" | "ex" => editor(call.args),
        "uv" | "poetry" | "pipenv" | "pdm" | "hatch" | "rye" | "bundle" | "pipx" => run_verb(call),
        "npm" | "pnpm" | "yarn" => package_verb(call),
        "cmd" => windows(call.args),
        "python" | "pypy" | "perl" | "ruby" | "node" | "php" | "lua" | "deno" | "bun" | "awk"
        | "gawk" | "mawk" => code(call),
        name if name.len() > 4 && name.starts_with("git-") => git_program(call),
        name if is_loader(name) => words(
            call.args,
            skip_options(call.args, "", &["--library-path", "--preload", "--argv0"]),
        ),
        _ => wrapped(call),
    }
}

fn is_loader(name: &str) -> bool {
    ["ld-linux", "ld-musl", "ld.so", "ld64.so"].iter().any(|it| name.starts_with(it))
}

pub(super) fn words(args: &[Word], from: usize) -> Vec<Inner<'_>> {
    let inner = args.get(from..).filter(|it| !it.is_empty());
    inner.map(|it| Inner::Words(Cow::Borrowed(it))).into_iter().collect()
}

pub(super) fn is_assignment(text: &str) -> bool {
    let is_name =
        |it: &str| !it.is_empty() && it.chars().all(|it| it == '_' || it.is_ascii_alphanumeric());
    text.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// `/usr/lib/git-core/git-push` is `git push`.
fn git_program(call: Call<'_>) -> Vec<Inner<'_>> {
    let subcommand = call.name.strip_prefix("git-").unwrap_or(call.name);
    let mut all = vec![Word::literal("git"), Word::literal(subcommand)];
    all.extend_from_slice(call.args);
    vec![Inner::Words(Cow::Owned(all))]
}

/// Returns the files that a shell reads before its commands.
fn start_files(call: Call<'_>) -> impl Iterator<Item = Inner<'_>> {
    let is_option = |it: &Word| ["--rcfile", "--init-file"].contains(&it.known.as_str());
    let pairs = call.args.windows(2).filter(move |it| is_option(&it[0]));
    pairs.map(|it| Inner::File(&it[1]))
}

/// Returns the number of words after a cluster of a shell's options that are values of them, and whether a line follows.
fn cluster(shell: Call<'_>, text: &str) -> (usize, bool) {
    /// Shells whose option `-o` can have its value in the same word.
    const ATTACHES: [&str; 6] = ["zsh", "ksh", "mksh", "yash", "csh", "tcsh"];
    let letters = text.get(1..).unwrap_or_default();
    let has_line = |it: &str| text.starts_with('-') && it.contains('c');
    match letters.split_once('o').filter(|_| shell.is(&ATTACHES)) {
        Some((before, value)) => (usize::from(value.is_empty()), has_line(before)),
        None => (letters.matches(['o', 'O']).count(), has_line(letters)),
    }
}

/// Reads `sh [OPTIONS] -c LINE`, `sh [OPTIONS] FILE` and the line of PowerShell.
fn shell(call: Call<'_>) -> Option<Inner<'_>> {
    let (mut at, mut has_line) = (0, false);
    while let Some(arg) = call.args.get(at) {
        let text = arg.known.as_str();
        if let Some(line) = text.strip_prefix("--command=") {
            return Some(Inner::Line(Cow::Owned(Word { text: line.to_owned(), ..arg.clone() })));
        }
        if text.len() < 2 || !text.starts_with(['-', '+']) {
            break;
        }
        at += 1;
        if text == "--" {
            break;
        }
        if text.starts_with("--") {
            has_line |= text == "--command";
            at += usize::from(["--rcfile", "--init-file"].contains(&text));
        } else {
            let (values, is_followed) = cluster(call, text);
            has_line |= is_followed;
            at += values;
        }
    }
    let Some(first) = call.args.get(at) else {
        return has_line.then_some(Inner::Unknown);
    };
    Some(if has_line { Inner::Line(Cow::Borrowed(first)) } else { Inner::File(first) })
}

fn env(call: Call<'_>) -> Vec<Inner<'_>> {
    let is_more = |it: &str| is_assignment(it) || it == "-";
    let (count, is_known) = ENV.options(call.args, is_more);
    let (options, inner) = call.args.split_at(count);
    let variables = inner.iter().take_while(|it| is_assignment(&it.known)).count();
    let directory = ENV.value(options, 'C', "chdir");
    let mut all = placed(call, directory.as_deref(), &inner[variables..]);
    let split = (0..count).find_map(|at| Some((at, split_string(call.args, at)?)));
    if let Some((at, (text, used))) = split {
        all.extend(split_words(&text, call.args.get(at + used..).unwrap_or_default()));
    }
    all.extend((!is_known).then_some(Inner::Unlisted));
    all
}

/// Returns the commands of `env -S TEXT WORDS`.
fn split_words(split: &str, rest: &[Word]) -> Vec<Inner<'static>> {
    let texts = split.split_whitespace().map(|it| it.replace(['"', '\''], ""));
    let mut all: Vec<Word> = texts.map(|it| Word::literal(&it)).collect();
    all.extend_from_slice(rest);
    // Options and variables can precede the program.
    let words: Vec<Word> = std::iter::once(Word::literal("env")).chain(all).collect();
    // The quotes of the text can hide words, so that it is also read as a line.
    let line = Inner::Line(Cow::Owned(Word::literal(split)));
    vec![Inner::Words(Cow::Owned(words)), line]
}

/// Returns the text of `env -S`, and the number of words of the option.
fn split_string(args: &[Word], at: usize) -> Option<(String, usize)> {
    let text = args.get(at)?.known.as_str();
    let next = || args.get(at + 1).map(|it| (it.text.clone(), 2));
    if let Some(long) = text.strip_prefix("--s") {
        return match long.split_once('=') {
            Some((_, value)) => Some((value.to_owned(), 1)),
            None => next(),
        };
    }
    let (before, value) = text.strip_prefix('-')?.split_once('S')?;
    let is_cluster = before.chars().all(|it| "iv0".contains(it));
    match value {
        _ if !is_cluster => None,
        "" => next(),
        value => Some((value.to_owned(), 1)),
    }
}

/// The arguments are one line.
fn joined(call: Call<'_>) -> Vec<Inner<'_>> {
    let at = match call.name {
        "watch" => skip_options(call.args, "n", &["--interval"]),
        "parallel" => skip_options(call.args, "jIaNn", &["--jobs", "--arg-file"]),
        _ => skip_options(call.args, "", &[]),
    };
    let rest = call.args.get(at..).unwrap_or_default();
    // What parallel adds to its command.
    let is_separator = |it: &&Word| [":::", "::::"].contains(&it.text.as_str());
    let words: Vec<Word> = rest.iter().filter(|it| !is_separator(it)).cloned().collect();
    join(&words).into_iter().collect()
}

/// Returns the words as one line. `None` if there are none.
pub(super) fn join(words: &[Word]) -> Option<Inner<'static>> {
    let text = |of: fn(&Word) -> &str| words.iter().map(of).collect::<Vec<_>>().join(" ");
    let whole = Word {
        text: text(|it| it.text.as_str()),
        known: text(|it| it.known.as_str()),
        is_unknown: words.iter().any(|it| it.is_unknown),
        has_glob: false,
        scripts: words.iter().flat_map(|it| it.scripts.clone()).collect(),
    };
    (!words.is_empty()).then_some(Inner::Line(Cow::Owned(whole)))
}

fn remote(call: Call<'_>) -> Vec<Inner<'_>> {
    let at = skip_options(call.args, "bcDEeFIiJLlmOopQRSWw", &[]) + 1;
    join(call.args.get(at..).unwrap_or_default()).into_iter().collect()
}

/// Reads the value of `NAME=VALUE` as a line.
fn alias(word: &Word) -> Option<Inner<'_>> {
    let (_, value) = word.text.split_once('=')?;
    Some(Inner::Line(Cow::Owned(Word::literal(value))))
}

/// Reads the commands after `-exec` and its like, each up to its end. What is in such a command is read when that command is.
fn found(args: &[Word]) -> Vec<Inner<'_>> {
    const EXECUTES: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        at += 1;
        if EXECUTES.contains(&arg.known.as_str()) {
            let (length, is_clear) = executed(&args[at..]);
            all.extend(words(&args[at..at + length], 0));
            all.extend((!is_clear).then_some(Inner::Unknown));
            at += length;
        }
    }
    all
}

/// Returns the number of words before the end of a command of `find`, and whether all programs of this name agree on it: `+` is an end
/// for some of them only after `{}`.
fn executed(args: &[Word]) -> (usize, bool) {
    let mut is_clear = true;
    for (at, arg) in args.iter().enumerate() {
        let is_last = at > 0 && args[at - 1].text == "{}";
        match arg.text.as_str() {
            ";" => return (at, is_clear),
            "+" if is_last => return (at, is_clear),
            "+" => is_clear = false,
            _ => (),
        }
    }
    (args.len(), is_clear)
}

/// Reads the commands after `-x`, `-X` and the long options of `fd`. The program can be in the same word.
fn found_by_fd(args: &[Word]) -> Vec<Inner<'_>> {
    let Some((at, program)) =
        args.iter().enumerate().find_map(|(at, it)| Some((at, executes(it)?)))
    else {
        return Vec::new();
    };
    let rest = &args[at + 1..];
    if program.is_empty() {
        return words(rest, 0);
    }
    let mut all = vec![Word::literal(program)];
    all.extend_from_slice(rest);
    vec![Inner::Words(Cow::Owned(all))]
}

/// Returns the program in an option of `fd` that executes one. It is empty if it is in the next word.
fn executes(option: &Word) -> Option<&str> {
    if let Some(long) = option.known.strip_prefix("--") {
        let (name, program) = long.split_once('=').unwrap_or((long, ""));
        return ["exec", "exec-batch"].contains(&name).then_some(program);
    }
    let letters = option.known.strip_prefix('-')?;
    let at = letters.find(['x', 'X'])?;
    Some(letters[at + 1..].trim_start_matches('='))
}

/// Reads the line of `-c LINE`.
pub(super) fn line_option(call: Call<'_>) -> Vec<Inner<'_>> {
    let mut all = Vec::new();
    for (at, arg) in call.args.iter().enumerate() {
        let text = arg.known.as_str();
        if let Some(line) = text.strip_prefix("--command=") {
            all.push(Inner::Line(Cow::Owned(Word { text: line.to_owned(), ..arg.clone() })));
        }
        let short = text.strip_prefix('-').filter(|it| !it.starts_with('-'));
        let attached = short.and_then(|it| it.split_once('c')).map(|it| it.1);
        if let Some(line) = attached.filter(|it| !it.is_empty()) {
            all.push(Inner::Line(Cow::Owned(Word { text: line.to_owned(), ..arg.clone() })));
        }
        if short.is_some_and(|it| it.ends_with('c')) || text == "--command" {
            all.extend(call.args.get(at + 1).map(|it| Inner::Line(Cow::Borrowed(it))));
        }
    }
    all
}

fn tar_action(args: &[Word]) -> Vec<Inner<'_>> {
    let line = |it: &Word| {
        let value = it.text.strip_prefix("--checkpoint-action=").unwrap_or(&it.text);
        let other = ["--to-command=", "--use-compress-program="];
        let other = other.iter().find_map(|option| it.text.strip_prefix(option));
        let line = value.strip_prefix("exec=").or(other)?;
        Some(Inner::Line(Cow::Owned(Word::literal(line))))
    };
    args.iter().filter_map(line).collect()
}

/// Reads `-c '!LINE'` and `+'!LINE'` of vim.
fn editor(args: &[Word]) -> Vec<Inner<'_>> {
    let lines =
        args.iter().filter_map(|it| it.text.trim_start_matches(['+', ':']).strip_prefix('!'));
    lines.map(|it| Inner::Line(Cow::Owned(Word::literal(it)))).collect()
}

/// Reads `uv run CMD` and its like.
fn run_verb(call: Call<'_>) -> Vec<Inner<'_>> {
    match call.subcommand() {
        Some(inner) if inner.is(&["run", "exec"]) => {
            words(inner.args, skip_options(inner.args, "p", &["--with", "--python"]))
        }
        Some(inner) if inner.name == "pip" => {
            let at = call.args.len() - inner.args.len() - 1;
            words(call.args, at)
        }
        _ => Vec::new(),
    }
}

/// Reads `npm exec CMD` and its like.
fn package_verb(call: Call<'_>) -> Vec<Inner<'_>> {
    let Some(inner) = call.subcommand().filter(|it| it.is(&["exec", "x", "dlx"])) else {
        return Vec::new();
    };
    let at = skip_options(inner.args, "pc", &["--package", "--call"]);
    let line = |it: &[Word]| {
        let is_line = ["-c", "--call"].contains(&it[0].known.as_str());
        is_line.then(|| Inner::Line(Cow::Owned(it[1].clone())))
    };
    let same = inner.args.iter().filter_map(|it| it.text.strip_prefix("--call="));
    let mut all = words(inner.args, at);
    all.extend(inner.args.windows(2).filter_map(line));
    all.extend(same.map(|it| Inner::Line(Cow::Owned(Word::literal(it)))));
    all
}

/// Reads `cmd /c CMD`.
fn windows(args: &[Word]) -> Vec<Inner<'_>> {
    let switch = args.iter().position(|it| it.text.eq_ignore_ascii_case("/c"));
    switch.map(|it| words(args, it + 1)).unwrap_or_default()
}

/// Reads the text of a program of an interpreter, or `python -m MODULE`.
fn code(call: Call<'_>) -> Vec<Inner<'_>> {
    if call.is(&["python", "pypy"])
        && let Some(at) = call.args.iter().position(|it| it.known == "-m")
    {
        return words(call.args, at + 1);
    }
    let is_awk = call.is(&["awk", "gawk", "mawk"]);
    if !is_awk && !has_code(call) {
        let file = call.operands().next().filter(|it| !it.scripts.is_empty());
        return file.map(Inner::File).into_iter().collect();
    }
    let texts: Vec<&str> = call.args.iter().map(|it| it.text.as_str()).collect();
    vec![Inner::Code(texts.join("\n"))]
}

/// Returns whether the text of the program is an argument.
pub(crate) fn has_code(call: Call<'_>) -> bool {
    match call.name {
        "python" | "pypy" => call.has_before("mWX", "c", &[]),
        "perl" => call.has_before("MmI", "eE", &[]),
        "php" => call.has_before("d", "rBRE", &["run"]),
        "deno" | "bun" => call.verb() == "eval" || call.has("e", &["eval"]),
        _ => call.has_before("rI", "ep", &["eval", "print"]),
    }
}

/// Returns whether a file is the standard input.
fn is_input(call: Call<'_>, file: &Word) -> bool {
    file.text == "-" || call.path(&file.text).is_input()
}

/// Returns whether an interpreter reads its program from the standard input.
pub(crate) fn reads_program(call: Call<'_>) -> bool {
    if call.is(&SHELLS) {
        let reads = call.options().any(|it| !it.starts_with("--") && it.contains('s'));
        return match shell(call) {
            None => !call.has("", &["version", "help"]),
            Some(Inner::File(file)) => reads || is_input(call, file),
            Some(_) => false,
        };
    }
    match call.name {
        "source" | "." => call.operands().next().is_some_and(|it| is_input(call, it)),
        "python" | "pypy" | "perl" | "ruby" | "node" | "php" | "lua" => {
            let is_other = has_code(call)
                || call.has("mV", &["version", "help", "check"])
                || call.args.iter().any(|it| it.known == "-v");
            let first = call.args.iter().find(|it| it.known == "-" || !it.known.starts_with('-'));
            !is_other && first.is_none_or(|it| is_input(call, it))
        }
        "parallel" => call.operands().next().is_none(),
        _ => false,
    }
}
