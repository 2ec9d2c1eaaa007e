//! Scripts, pipelines, commands and redirections.

use std::collections::HashMap;

use super::variables::{Variables, hides_command, runs_command};
use super::word::Fields;
use super::{
    Command, Kind, MAX_DEPTH, MAX_LENGTH, Pipeline, Redirect, RedirectKind, Script, Simple,
};
use super::{Unreadable, Word};

/// Programs that set variables, or run text that can set them.
const SETTERS: [&str; 10] =
    ["read", "mapfile", "readarray", "getopts", "printf", "unset", "let", "eval", "source", "."];
/// Programs whose arguments are assignments.
const DECLARERS: [&str; 6] = ["export", "declare", "local", "readonly", "typeset", "alias"];
/// Variables whose values shells expand when they print them.
const PROMPTS: [&str; 6] = ["PS0", "PS1", "PS2", "PS3", "PS4", "PROMPT_COMMAND"];
/// The maximum number of characters that are read more than once, such as those of here-documents.
const MAX_COPIED: usize = 8 * MAX_LENGTH;
/// Words that only end or continue a compound command.
const MISPLACED: [&str; 8] = ["}", "fi", "done", "esac", "then", "do", "else", "elif"];

/// Reads a command line.
///
/// # Errors
/// The line cannot be read.
pub(crate) fn parse(line: &str) -> Result<Script, Unreadable> {
    let (script, outcome) = read(line);
    outcome.map(|()| script)
}

/// Reads a command line as far as it can be read. A shell runs the lines before an error.
pub(crate) fn read(line: &str) -> (Script, Result<(), Unreadable>) {
    let mut script = Script::default();
    let mut parser = Parser::new(line.chars().collect(), Variables::default());
    let mut outcome = parser.whole(&mut script);
    if !parser.variables.is_empty() {
        // A loop or a function uses values that the text sets later.
        script = Script::default();
        parser = Parser::new(line.chars().collect(), parser.variables.again());
        outcome = parser.whole(&mut script);
    }
    if parser.variables.is_doubtful() {
        script.pipelines.push(unknown());
    }
    (script, outcome)
}

/// Returns a command that is known only when it runs.
fn unknown() -> Pipeline {
    let word = Word { text: "$".to_owned(), is_unknown: true, ..Word::default() };
    let simple = Simple { words: vec![word], ..Simple::default() };
    let command = Command { kind: Kind::Simple(simple), redirects: Vec::new() };
    Pipeline { commands: vec![command], is_background: false }
}

/// Returns the text without the newlines that a backslash continues, and their numbers before the characters that follow them.
fn continued(chars: &[char]) -> (Vec<char>, HashMap<usize, usize>) {
    let (mut kept, mut joins) = (Vec::with_capacity(chars.len()), HashMap::new());
    let mut at = 0;
    while let Some(next) = chars.get(at).copied() {
        at += 1;
        if next != '\\' {
            kept.push(next);
            continue;
        }
        match chars.get(at).copied() {
            Some('\n') => *joins.entry(kept.len()).or_insert(0) += 1,
            other => kept.extend([Some(next), other].into_iter().flatten()),
        }
        at += 1;
    }
    (kept, joins)
}

/// The end of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The end of the text.
    Input,
    /// `)`.
    Parenthesis,
    /// A word, such as `fi`, with words that separate commands inside, such as `then`.
    Word(&'static str, &'static [&'static str]),
    /// `;;` or `esac`.
    Case,
}

/// A reader of a text.
#[derive(Debug)]
pub(super) struct Parser {
    /// The text without the newlines that a backslash continues.
    pub(super) chars: Vec<char>,
    /// The numbers of those newlines before a character. In single quotes and their like, they are text.
    joins: HashMap<usize, usize>,
    pub(super) at: usize,
    pub(super) depth: usize,
    pub(super) variables: Variables,
    /// The newline before the next here-document, and the end of the document.
    here: Option<(usize, usize)>,
    /// The number of characters that were read more than once.
    copied: usize,
    /// The number of `((` that are open.
    pub(super) open_arithmetic: usize,
    /// Whether a here-document begins at another newline than the one that was found.
    is_lost: bool,
}

impl Parser {
    fn new(chars: Vec<char>, variables: Variables) -> Self {
        let (chars, joins) = continued(&chars);
        Self {
            chars,
            joins,
            at: 0,
            depth: 0,
            variables,
            here: None,
            copied: 0,
            open_arithmetic: 0,
            is_lost: false,
        }
    }

    /// Reads another text, in which the same variables are known.
    pub(super) fn nested<T>(
        &mut self,
        chars: Vec<char>,
        read: impl FnOnce(&mut Self) -> Result<T, Unreadable>,
    ) -> Result<T, Unreadable> {
        self.enter()?;
        self.copy(chars.len())?;
        let mut inner = Self::new(chars, std::mem::take(&mut self.variables));
        (inner.depth, inner.copied) = (self.depth, self.copied);
        let result = read(&mut inner).and_then(|it| inner.found(it));
        (self.variables, self.copied) = (inner.variables, inner.copied);
        self.depth -= 1;
        result
    }

    /// Reads the whole text.
    fn whole(&mut self, script: &mut Script) -> Result<(), Unreadable> {
        self.script_into(script, End::Input)?;
        self.found(())
    }

    /// Returns what was read, if each here-document was found where it is.
    fn found<T>(&self, read: T) -> Result<T, Unreadable> {
        let is_left = self.here.is_some_and(|it| it.0 < self.at);
        if self.is_lost || is_left {
            return Err(Unreadable("a here-document in it begins at an unexpected place"));
        }
        Ok(read)
    }

    /// Reads the commands of `$(…)` and its like, up to the `)`. Their here-documents end before it.
    pub(super) fn substituted(&mut self) -> Result<Script, Unreadable> {
        let outer = self.here.take();
        let script = self.script(End::Parenthesis)?;
        self.is_lost |= self.here.is_some() || outer.is_some_and(|it| it.0 < self.at);
        self.here = outer;
        Ok(script)
    }

    /// Returns the newlines before the next character, with their backslashes.
    pub(super) fn joined(&self) -> String {
        "\\\n".repeat(self.joins.get(&self.at).copied().unwrap_or(0))
    }

    /// Returns whether a newline that a backslash continues is between two characters.
    pub(super) fn is_joined(&self, from: usize, to: usize) -> bool {
        !self.joins.is_empty() && (from..=to).any(|it| self.joins.contains_key(&it))
    }

    pub(super) fn enter(&mut self) -> Result<(), Unreadable> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Unreadable("its commands are nested too deeply"));
        }
        Ok(())
    }

    /// Counts characters that are read once more. Without a limit, the time could grow with the square of the length.
    fn copy(&mut self, chars: usize) -> Result<(), Unreadable> {
        self.copied += chars;
        if self.copied > MAX_COPIED {
            return Err(Unreadable("its here-documents are too long together"));
        }
        Ok(())
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, offset: usize) -> Option<char> {
        self.chars.get(self.at + offset).copied()
    }

    pub(super) fn starts(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(offset, it)| self.peek_at(offset) == Some(it))
    }

    /// Skips `text` if it is next.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let is_next = self.starts(text);
        if is_next {
            self.at += text.chars().count();
        }
        is_next
    }

    /// Returns whether `word` is next, as a whole word.
    pub(super) fn is_keyword(&self, word: &str) -> bool {
        let after = self.peek_at(word.chars().count());
        let is_end = after.is_none_or(|it| " \t\n;&|()<>".contains(it));
        is_end && self.starts(word)
    }

    /// Skips `word` if it is next, as a whole word.
    pub(super) fn keyword(&mut self, word: &str) -> bool {
        self.is_keyword(word) && self.eat(word)
    }

    /// Skips spaces and a comment.
    pub(super) fn blank(&mut self) {
        while self.eat(" ") || self.eat("\t") {}
        if self.peek() != Some('#') {
            return;
        }
        self.at += 1;
        while !self.joins.contains_key(&self.at) {
            if self.peek().is_none_or(|it| it == '\n') {
                return;
            }
            self.at += 1;
        }
        // A backslash does not continue a comment: the newline after it ends the comment.
        self.at -= 1;
        self.chars[self.at] = '\n';
    }

    /// Skips blanks and newlines.
    pub(super) fn lines(&mut self) {
        self.blank();
        while self.peek() == Some('\n') {
            match self.here.take() {
                Some((newline, end)) if newline == self.at => self.at = end,
                other => {
                    self.is_lost |= other.is_some();
                    self.here = other;
                    self.at += 1;
                }
            }
            self.blank();
        }
    }

    /// Skips blanks, newlines and `;`, but not `;;`.
    pub(super) fn separators(&mut self) {
        self.lines();
        while self.peek() == Some(';') && !matches!(self.peek_at(1), Some(';' | '&')) {
            self.at += 1;
            self.lines();
        }
    }

    /// Reads commands up to `end`, which is skipped. `esac` is not skipped.
    pub(super) fn script(&mut self, end: End) -> Result<Script, Unreadable> {
        let mut script = Script::default();
        self.script_into(&mut script, end).map(|()| script)
    }

    /// Adds the pipelines to a script. After an error, it has those before the error.
    fn script_into(&mut self, script: &mut Script, end: End) -> Result<(), Unreadable> {
        self.enter()?;
        loop {
            self.separators();
            if self.ends(end)? {
                break;
            }
            if let End::Word(_, inner) = end
                && inner.iter().any(|it| self.keyword(it))
            {
                continue;
            }
            script.pipelines.push(self.pipeline()?);
        }
        self.depth -= 1;
        Ok(())
    }

    fn ends(&mut self, end: End) -> Result<bool, Unreadable> {
        let is_over = self.at >= self.chars.len();
        Ok(match end {
            End::Input => is_over,
            _ if is_over => return Err(Unreadable("a command in it is not closed")),
            End::Parenthesis => self.eat(")"),
            End::Word(word, _) => self.keyword(word),
            End::Case => {
                self.is_keyword("esac") || self.eat(";;&") || self.eat(";;") || self.eat(";&")
            }
        })
    }

    fn pipeline(&mut self) -> Result<Pipeline, Unreadable> {
        let mut pipeline = Pipeline::default();
        loop {
            self.lines();
            while self.keyword("!") || self.keyword("time") || self.keyword("coproc") {
                self.blank();
                while self.keyword("-p") || self.keyword("--") {
                    self.blank();
                }
            }
            pipeline.commands.push(self.command()?);
            self.blank();
            let is_pipe = !self.starts("||") && (self.eat("|&") || self.eat("|"));
            if !is_pipe {
                break;
            }
        }
        if !self.eat("&&") && !self.eat("||") {
            pipeline.is_background = self.eat("&");
        }
        Ok(pipeline)
    }

    pub(super) fn command(&mut self) -> Result<Command, Unreadable> {
        if MISPLACED.iter().any(|it| self.is_keyword(it)) {
            return Err(Unreadable("a word of a compound command in it has no beginning"));
        }
        let Some(kind) = self.compound()? else {
            return self.simple();
        };
        let mut redirects = Vec::new();
        self.blank();
        while self.is_redirect() {
            redirects.push(self.redirect()?);
            self.blank();
        }
        Ok(Command { kind, redirects })
    }

    fn simple(&mut self) -> Result<Command, Unreadable> {
        let (mut simple, mut redirects) = (Simple::default(), Vec::new());
        let start = self.at;
        loop {
            self.blank();
            if self.is_redirect() {
                redirects.push(self.redirect()?);
                continue;
            }
            match self.peek() {
                None | Some('\n' | ';' | '&' | '|' | ')') => break,
                Some('(') => return self.defined(&simple),
                Some(_) if self.is_assignment(&simple) => self.assignment(&mut simple)?,
                Some(_) => {
                    self.check_subscript()?;
                    let fields = self.fields()?;
                    simple.has_ifs |= fields.has_ifs;
                    simple.words.extend(fields.finish()?.into_iter().map(with_path));
                }
            }
        }
        if self.at == start {
            return Err(Unreadable("a command in it is missing"));
        }
        let sets = |it: &Word| SETTERS.contains(&it.text.as_str());
        if simple.words.first().is_some_and(sets) {
            self.variables.forget();
        }
        self.note(&simple, &redirects);
        Ok(Command { kind: Kind::Simple(simple), redirects })
    }

    /// Notes what a command can do with variables.
    fn note(&mut self, simple: &Simple, redirects: &[Redirect]) {
        let name = simple.words.first().map_or("", |it| it.text.as_str());
        let is_ifs = simple.assigned.iter().any(|it| it == "IFS");
        if is_ifs && !["read", "mapfile", "readarray"].contains(&name) {
            self.variables.assign_ifs();
        }
        let is_declared = DECLARERS.contains(&name);
        let reads_names = is_declared || SETTERS.contains(&name) || ["test", "["].contains(&name);
        let is_number = |it: &Word| it.text.starts_with('-') && it.text.contains('i');
        if name == "let" || (is_declared && simple.words.iter().any(is_number)) {
            self.variables.note_arithmetic();
        }
        let texts = redirects.iter().filter(|it| it.kind == RedirectKind::Text && reads_names);
        for word in simple.words.iter().chain(&simple.values).chain(texts.map(|it| &it.target)) {
            self.variables.note_text(&word.known);
            if reads_names && hides_command(&word.known) {
                self.variables.doubt();
            }
        }
    }

    /// Reads the definition of a function, after its name.
    fn defined(&mut self, simple: &Simple) -> Result<Command, Unreadable> {
        let [name] = simple.words.as_slice() else {
            return Err(Unreadable("a `(` in it is misplaced"));
        };
        self.at += 1;
        self.blank();
        if !self.eat(")") {
            return Err(Unreadable("a `(` in it is misplaced"));
        }
        let kind = self.body(name.text.clone())?;
        Ok(Command { kind, redirects: Vec::new() })
    }

    /// Returns whether an assignment is next, in a command that begins with `simple`.
    fn is_assignment(&self, simple: &Simple) -> bool {
        let is_first = simple.words.is_empty();
        let declares = |it: &Word| DECLARERS.contains(&it.text.as_str());
        (is_first || simple.words.first().is_some_and(declares)) && self.assigned().is_some()
    }

    /// Returns the number of characters of a name that is next, and of the name with the `=` after it.
    fn assigned(&self) -> Option<(usize, usize)> {
        let is_name = |it: char, at: usize| {
            it == '_' || it.is_ascii_alphabetic() || (at > 0 && it.is_ascii_digit())
        };
        let mut name = 0;
        while self.peek_at(name).is_some_and(|it| is_name(it, name)) {
            name += 1;
        }
        let mut end = name;
        if name > 0 && self.peek_at(end) == Some('[') {
            while self.peek_at(end).is_some_and(|it| !"]\n\t ;&|$`<>()'\"\\".contains(it)) {
                end += 1;
            }
            end += usize::from(self.peek_at(end) == Some(']'));
        }
        end += usize::from(self.peek_at(end) == Some('+'));
        (name > 0 && self.peek_at(end) == Some('=')).then_some((name, end + 1))
    }

    /// Refuses a word that begins like an element of an array, such as `a[1 << 2]=3`: shells disagree about its end.
    fn check_subscript(&self) -> Result<(), Unreadable> {
        let is_name = |it: char| it == '_' || it.is_ascii_alphanumeric();
        let mut at = self.at;
        while self.chars.get(at).is_some_and(|it| is_name(*it)) {
            at += 1;
        }
        if at == self.at || self.chars.get(at) != Some(&'[') {
            return Ok(());
        }
        let mut open = 0_usize;
        for next in self.chars.get(at..).unwrap_or_default() {
            match next {
                '[' => open += 1,
                ']' if open <= 1 => break,
                ']' => open -= 1,
                _ if "\n\t ;&|<>()'\"\\`".contains(*next) => {
                    return Err(Unreadable("the number of an element in it is not closed"));
                }
                _ => (),
            }
        }
        Ok(())
    }

    fn assignment(&mut self, simple: &mut Simple) -> Result<(), Unreadable> {
        let Some((length, skipped)) = self.assigned() else {
            return Ok(());
        };
        let name: String = self.chars[self.at..self.at + length].iter().collect();
        let is_added = self.chars[self.at..self.at + skipped].contains(&'+');
        let is_element = self.chars[self.at..self.at + skipped].contains(&'[');
        self.at += skipped;
        let is_array = self.eat("(");
        let value = if is_array { self.array()? } else { self.value()? };
        if is_element {
            self.variables.note_arithmetic();
        }
        if is_element || is_array {
            self.variables.assign_array(&name);
        }
        if PROMPTS.contains(&name.as_str()) && runs_command(&value.text) {
            self.variables.doubt();
        }
        let text = Some(value.text.as_str()).filter(|_| !value.is_unknown && !is_added);
        self.variables.assign(&name, text);
        // An alias is classified with its name, as an argument.
        if !simple.words.is_empty() {
            simple.words.push(Word::literal(&format!("{name}={}", value.text)));
        }
        simple.assigned.push(name);
        simple.values.push(value);
        Ok(())
    }

    /// Reads a word that is not split.
    pub(super) fn value(&mut self) -> Result<Word, Unreadable> {
        let mut fields = Fields::whole();
        self.word(&mut fields)?;
        Ok(fields.finish()?.into_iter().next().unwrap_or_default())
    }

    /// Reads the words of an array, up to its `)`, as one word.
    fn array(&mut self) -> Result<Word, Unreadable> {
        let mut whole = Word::default();
        loop {
            self.lines();
            if self.eat(")") {
                return Ok(whole);
            }
            let start = self.at;
            let word = self.value()?;
            if self.at == start {
                return Err(Unreadable("an array in it is not closed"));
            }
            let space = if whole.text.is_empty() { "" } else { " " };
            whole.text += &format!("{space}{}", word.text);
            whole.is_unknown |= word.is_unknown;
            whole.scripts.extend(word.scripts);
        }
    }

    /// Returns the number of digits before a redirection that is next.
    fn digits(&self) -> usize {
        let mut digits = 0;
        while self.peek_at(digits).is_some_and(|it| it.is_ascii_digit()) {
            digits += 1;
        }
        digits
    }

    pub(super) fn is_redirect(&self) -> bool {
        let digits = self.digits();
        let operator = (self.peek_at(digits), self.peek_at(digits + 1));
        match operator {
            (Some('<' | '>'), Some('(')) => false,
            (Some('<' | '>'), _) => true,
            (Some('&'), Some('>')) => digits == 0,
            _ => false,
        }
    }

    pub(super) fn redirect(&mut self) -> Result<Redirect, Unreadable> {
        self.at += self.digits();
        if self.eat("<<<") {
            self.blank();
            return Ok(Redirect { kind: RedirectKind::Text, target: self.value()? });
        }
        if self.eat("<<") {
            let target = self.here_document()?;
            return Ok(Redirect { kind: RedirectKind::Text, target });
        }
        let all = ["&>>", "&>", ">>", ">|", ">&", "<>", "<&", ">", "<"];
        let operator = all.into_iter().find(|it| self.eat(it)).unwrap_or_default();
        self.blank();
        let start = self.at;
        let target = self.value()?;
        if self.at == start {
            return Err(Unreadable("a redirection in it has no file"));
        }
        if target.text.contains('{') && target.text.contains("..") {
            self.variables.doubt();
        }
        let is_descriptor = target.text.chars().all(|it| it.is_ascii_digit() || it == '-');
        let kind = match operator {
            ">&" | "<&" if is_descriptor => RedirectKind::Duplicate,
            "<" | "<&" => RedirectKind::Read,
            _ => RedirectKind::Write,
        };
        Ok(Redirect { kind, target })
    }

    /// Reads the delimiter and the text of a here-document, after its `<<`. The text is skipped later, at the newline before it.
    fn here_document(&mut self) -> Result<Word, Unreadable> {
        if self.open_arithmetic > 0 {
            return Err(Unreadable("a `<<` in it is a shift or a here-document"));
        }
        let strips_tabs = self.eat("-");
        self.blank();
        let (delimiter, is_quoted) = self.delimiter()?;
        let known = self.here.filter(|it| it.0 >= self.at);
        let newline = known.map_or_else(|| self.line_end(self.at), |it| it.0);
        let start = known.map_or(newline + 1, |it| it.1);
        let mut at = start.min(self.chars.len());
        let mut text = Vec::new();
        while at < self.chars.len() {
            let end = self.line_end(at);
            let line = self.line(at, end, is_quoted);
            at = (end + 1).min(self.chars.len());
            let without_tabs = |it: &str| it.trim_start_matches('\t').to_owned();
            let lines = line.split('\n');
            let lines: Vec<String> = lines
                .map(|it| if strips_tabs { without_tabs(it) } else { it.to_owned() })
                .collect();
            if lines.last().is_some_and(|it| *it == delimiter) {
                let before = lines.len() - 1;
                text.extend(lines[..before].iter().flat_map(|it| it.chars().chain(['\n'])));
                break;
            }
            text.extend(lines.iter().flat_map(|it| it.chars().chain(['\n'])));
        }
        self.here = Some((newline, at));
        self.copy(text.len())?;
        if is_quoted {
            return Ok(Word::literal(&text.into_iter().collect::<String>()));
        }
        self.nested(text, Self::quoted_text)
    }

    /// Returns the characters of a line. The text of a quoted here-document has the newlines that a backslash precedes.
    fn line(&self, from: usize, to: usize, is_quoted: bool) -> String {
        let mut line = String::new();
        for at in from..=to {
            let joins = self.joins.get(&at).filter(|_| is_quoted);
            line += &"\\\n".repeat(joins.copied().unwrap_or(0));
            line.extend(self.chars.get(at).filter(|_| at < to));
        }
        line
    }

    fn line_end(&self, from: usize) -> usize {
        let rest = self.chars.get(from..).unwrap_or_default();
        rest.iter().position(|it| *it == '\n').map_or(self.chars.len(), |it| from + it)
    }

    /// Reads the delimiter of a here-document. Returns also whether a part of it is quoted.
    fn delimiter(&mut self) -> Result<(String, bool), Unreadable> {
        let (mut text, mut quote, mut is_quoted) = (String::new(), None, false);
        let start = self.at;
        while let Some(next) = self.peek() {
            match next {
                _ if Some(next) == quote => quote = None,
                '\n' => break,
                '$' | '`' if quote != Some('\'') => {
                    return Err(Unreadable("the end of a here-document in it is unknown"));
                }
                '\\' if quote == Some('"') => {
                    return Err(Unreadable("the end of a here-document in it is unknown"));
                }
                _ if quote.is_some() => text.push(next),
                '\'' | '"' => {
                    quote = Some(next);
                    is_quoted = true;
                }
                '\\' => {
                    is_quoted = true;
                    self.at += 1;
                    text.extend(self.peek());
                }
                ' ' | '\t' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                _ => text.push(next),
            }
            self.at += 1;
        }
        let is_joined = is_quoted && self.is_joined(start + 1, self.at.saturating_sub(1));
        let is_multiline = is_quoted && text.contains('\\');
        self.at = self.at.min(self.chars.len());
        if self.at == start || quote.is_some() || is_joined || is_multiline {
            return Err(Unreadable("a here-document in it has no end"));
        }
        Ok((text, is_quoted))
    }
}

/// Returns a word of a command. A shell can replace `=NAME` by the path of a program.
fn with_path(word: Word) -> Word {
    let name = word.text.strip_prefix('=').and_then(|it| it.chars().next());
    let is_path = name.is_some_and(|it| it == '/' || it == '_' || it.is_alphanumeric());
    let is_unknown = word.is_unknown || is_path;
    Word { is_unknown, ..word }
}
