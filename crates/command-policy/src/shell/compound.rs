//! Compound commands: `if`, `for`, `case`, functions, `[[`.

use super::parser::{End, Parser};
use super::{Command, Kind, Pipeline, Script, Simple, Unreadable, Word};

impl Parser {
    /// Reads a compound command. `None` if a simple command is next.
    pub(super) fn compound(&mut self) -> Result<Option<Kind>, Unreadable> {
        Ok(Some(if self.starts("((") {
            self.at += 1;
            Kind::Subshell(self.double()?)
        } else if self.eat("(") {
            Kind::Subshell(self.script(End::Parenthesis)?)
        } else if self.keyword("{") {
            Kind::Group(self.script(End::Word("}", &[]))?)
        } else if self.keyword("if") {
            Kind::Group(self.script(End::Word("fi", &["then", "elif", "else"]))?)
        } else if self.keyword("while") || self.keyword("until") {
            Kind::Group(self.script(End::Word("done", &["do"]))?)
        } else if self.keyword("for") || self.keyword("select") {
            Kind::Group(self.for_loop()?)
        } else if self.keyword("repeat") {
            Kind::Group(self.repeat()?)
        } else if self.keyword("case") {
            Kind::Group(self.case()?)
        } else if self.keyword("function") {
            self.function()?
        } else if self.keyword("[[") {
            Kind::Group(self.test()?)
        } else {
            return Ok(None);
        }))
    }

    /// Reads `((`, after its first parenthesis. It is arithmetic in some shells, and two subshells in others. A `<<` in it is a
    /// here-document only in the latter.
    pub(super) fn double(&mut self) -> Result<Script, Unreadable> {
        self.variables.note_arithmetic();
        self.open_arithmetic += 1;
        let script = self.substituted()?;
        self.open_arithmetic -= 1;
        Ok(script)
    }

    /// Reads the number of `repeat` and its command.
    fn repeat(&mut self) -> Result<Script, Unreadable> {
        self.enter()?;
        self.blank();
        let values = vec![self.value()?];
        self.separators();
        let body = if self.keyword("do") {
            self.script(End::Word("done", &[]))?
        } else {
            let command = self.command()?;
            Script { pipelines: vec![Pipeline { commands: vec![command], is_background: false }] }
        };
        self.depth -= 1;
        Ok(after_values(values, body))
    }

    fn for_loop(&mut self) -> Result<Script, Unreadable> {
        self.blank();
        let values =
            if self.starts("((") { vec![self.arithmetic_header()?] } else { self.loop_words()? };
        self.separators();
        let end = if self.keyword("{") { End::Word("}", &[]) } else { End::Word("done", &["do"]) };
        let body = self.script(end)?;
        Ok(after_values(values, body))
    }

    /// Reads the variable of a loop and its words.
    fn loop_words(&mut self) -> Result<Vec<Word>, Unreadable> {
        let name = self.value()?.text;
        if name == "IFS" {
            self.variables.assign_ifs();
        }
        self.lines();
        let mut values = Vec::new();
        if !self.keyword("in") {
            self.variables.assign(&name, None);
            return Ok(values);
        }
        loop {
            self.blank();
            if matches!(self.peek(), None | Some('\n' | ';')) {
                break;
            }
            let start = self.at;
            values.extend(self.fields()?.finish()?);
            if self.at == start {
                return Err(Unreadable("the words of a loop in it are malformed"));
            }
        }
        for value in &values {
            let is_open = value.is_unknown || value.has_glob;
            self.variables.assign(&name, Some(value.text.as_str()).filter(|_| !is_open));
            if value.has_glob {
                self.variables.assign(&name, Some(&value.text));
            }
        }
        Ok(values)
    }

    /// Reads `((…))`, with the commands in it.
    fn arithmetic_header(&mut self) -> Result<Word, Unreadable> {
        self.variables.note_arithmetic();
        let inner = self.arithmetic(2, "'\"\\`").ok_or(Unreadable("a `((` in it is not closed"))?;
        self.nested(inner, Self::quoted_text)
    }

    fn case(&mut self) -> Result<Script, Unreadable> {
        self.blank();
        let mut values = vec![self.value()?];
        self.lines();
        if !self.keyword("in") {
            return Err(Unreadable("a `case` in it has no `in`"));
        }
        let mut whole = Script::default();
        loop {
            self.separators();
            if self.keyword("esac") {
                return Ok(after_values(values, whole));
            }
            values.extend(self.patterns()?);
            whole.pipelines.extend(self.script(End::Case)?.pipelines);
        }
    }

    /// Reads the patterns of a branch of `case`, up to the `)` after them.
    fn patterns(&mut self) -> Result<Vec<Word>, Unreadable> {
        let mut patterns = Vec::new();
        self.eat("(");
        loop {
            self.blank();
            let start = self.at;
            patterns.push(self.value()?);
            self.blank();
            if self.eat(")") {
                return Ok(patterns);
            }
            if !self.eat("|") || self.at == start {
                return Err(Unreadable("a pattern of a `case` in it is malformed"));
            }
        }
    }

    fn function(&mut self) -> Result<Kind, Unreadable> {
        self.blank();
        let name = self.value()?.text;
        self.blank();
        if self.eat("(") {
            self.blank();
            self.eat(")");
        }
        self.body(name)
    }

    /// Reads the body of a function.
    pub(super) fn body(&mut self, name: String) -> Result<Kind, Unreadable> {
        self.enter()?;
        self.lines();
        let command = self.command()?;
        self.depth -= 1;
        let pipeline = Pipeline { commands: vec![command], is_background: false };
        Ok(Kind::Function(name, Script { pipelines: vec![pipeline] }))
    }

    /// Reads the test of `[[`, up to `]]`. A shell without `[[` runs what follows `&&`, `||`, `;` and `|` in it, so that these are
    /// commands if they begin with a literal word.
    fn test(&mut self) -> Result<Script, Unreadable> {
        self.variables.note_arithmetic();
        let (mut values, mut script) = (Vec::new(), Script::default());
        let mut later: Option<Simple> = None;
        loop {
            self.lines();
            if self.keyword("]]") {
                break;
            }
            let Some(next) = self.peek() else {
                return Err(Unreadable("a `[[` in it is not closed"));
            };
            let is_process = matches!(next, '<' | '>') && self.peek_at(1) == Some('(');
            if "&|;".contains(next) {
                self.at += 1;
                script.pipelines.extend(later.replace(Simple::default()).and_then(command));
            } else if "()<>".contains(next) && !is_process {
                self.at += 1;
            } else {
                let words = self.fields()?.finish()?;
                words.iter().for_each(|it| self.variables.note_text(&it.known));
                match &mut later {
                    Some(simple) => simple.words.extend(words),
                    None => values.extend(words),
                }
            }
        }
        script.pipelines.extend(later.and_then(command));
        Ok(after_values(values, script))
    }
}

/// Returns a command of what follows an operator in `[[`. If it begins with no literal word, only the commands inside its words count.
fn command(simple: Simple) -> Option<Pipeline> {
    let first = simple.words.first()?;
    let is_command = !first.is_unknown && !first.text.starts_with(['-', '!']);
    let simple =
        if is_command { simple } else { Simple { values: simple.words, ..Simple::default() } };
    Some(of(simple))
}

fn of(simple: Simple) -> Pipeline {
    let command = Command { kind: Kind::Simple(simple), redirects: Vec::new() };
    Pipeline { commands: vec![command], is_background: false }
}

/// Returns the script with the words that are expanded before it.
fn after_values(values: Vec<Word>, mut script: Script) -> Script {
    if !values.is_empty() {
        script.pipelines.insert(0, of(Simple { values, ..Simple::default() }));
    }
    script
}
