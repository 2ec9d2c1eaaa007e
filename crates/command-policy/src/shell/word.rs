//! Words: quotes, escapes and expansions.

use super::parser::{End, Parser};
use super::variables::Value;
use super::{Unreadable, Word, ansi, braces};

/// The words that one word of the text expands to.
#[derive(Debug, Default)]
pub(super) struct Fields {
    done: Vec<Word>,
    word: Word,
    has_word: bool,
    has_braces: bool,
    /// Whether the word is not split.
    is_whole: bool,
    /// Whether `$IFS` splits it.
    pub(super) has_ifs: bool,
}

impl Fields {
    /// Creates a word that is not split.
    pub(super) fn whole() -> Self {
        Self { is_whole: true, ..Self::default() }
    }

    fn push(&mut self, char: char) {
        self.word.text.push(char);
        self.word.known.push(char);
        self.has_word = true;
    }

    fn push_text(&mut self, text: &str) {
        text.chars().for_each(|it| self.push(it));
        self.has_word = true;
    }

    /// Adds text that the shell splits, because it is not quoted.
    fn push_unquoted(&mut self, text: &str) {
        for char in text.chars() {
            match char {
                ' ' | '\t' | '\n' => self.split(),
                _ => self.push_glob(char),
            }
        }
    }

    /// Like [`Self::push_unquoted`], for text that the word has only perhaps.
    fn push_perhaps(&mut self, text: &str) {
        for char in text.chars() {
            match char {
                ' ' | '\t' | '\n' => self.split(),
                _ => {
                    self.push_glob(char);
                    self.word.is_unknown = true;
                }
            }
        }
    }

    fn push_glob(&mut self, char: char) {
        self.word.has_glob |= matches!(char, '*' | '?' | '[');
        self.push(char);
    }

    fn push_brace(&mut self, char: char) {
        self.has_braces = true;
        self.push(char);
    }

    /// Adds text for what is unknown.
    fn push_unknown(&mut self, text: &str) {
        self.word.text.push_str(text);
        self.word.is_unknown = true;
        self.has_word = true;
    }

    fn split(&mut self) {
        if self.is_whole {
            self.push(' ');
        } else if self.has_word {
            self.done.push(std::mem::take(&mut self.word));
            self.has_word = false;
        }
    }

    /// Returns the words.
    pub(super) fn finish(mut self) -> Result<Vec<Word>, Unreadable> {
        if self.has_word || !self.word.scripts.is_empty() {
            self.done.push(self.word);
        }
        if !self.has_braces {
            return Ok(self.done);
        }
        let mut all = Vec::new();
        for word in self.done {
            if self.is_whole {
                let (text, known) = (braces::plain(&word.text), braces::plain(&word.known));
                all.push(Word { text, known, ..word });
            } else {
                all.extend(expanded(word)?);
            }
        }
        Ok(all)
    }
}

/// Returns the words of a word with braces. The first of them has the commands in it.
fn expanded(word: Word) -> Result<Vec<Word>, Unreadable> {
    let texts = braces::expand(&word.text)?;
    let known = braces::expand(&word.known)?;
    let is_alike = texts.len() == known.len();
    let mut scripts = Some(word.scripts);
    let words = texts.into_iter().enumerate().map(|(at, text)| Word {
        known: if is_alike { known[at].clone() } else { text.clone() },
        text,
        is_unknown: word.is_unknown,
        // A sequence can become `*`.
        has_glob: word.has_glob || word.text.contains(".."),
        scripts: scripts.take().unwrap_or_default(),
    });
    Ok(words.collect())
}

impl Parser {
    /// Reads a word with all expansions.
    pub(super) fn fields(&mut self) -> Result<Fields, Unreadable> {
        let mut fields = Fields::default();
        let start = self.at;
        self.word(&mut fields)?;
        if self.at == start {
            return Err(Unreadable("a character in it is misplaced"));
        }
        Ok(fields)
    }

    /// Reads the whole text as in double quotes.
    pub(super) fn quoted_text(&mut self) -> Result<Word, Unreadable> {
        let mut fields = Fields::whole();
        self.quoted(&mut fields, None)?;
        Ok(fields.finish()?.into_iter().next().unwrap_or_default())
    }

    pub(super) fn word(&mut self, fields: &mut Fields) -> Result<(), Unreadable> {
        while let Some(next) = self.peek() {
            match next {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' => break,
                '<' | '>' if self.peek_at(1) == Some('(') => self.process(fields)?,
                '<' | '>' => break,
                _ => self.part(fields, next)?,
            }
        }
        Ok(())
    }

    /// Reads one part of an unquoted word.
    fn part(&mut self, fields: &mut Fields, next: char) -> Result<(), Unreadable> {
        match next {
            '\'' => self.single(fields)?,
            '"' => {
                self.at += 1;
                fields.has_word = true;
                self.quoted(fields, Some('"'))?;
            }
            '$' => self.dollar(fields, false)?,
            '`' => self.backticks(fields)?,
            '\\' => {
                fields.push(self.peek_at(1).unwrap_or('\\'));
                self.at = (self.at + 2).min(self.chars.len());
            }
            _ => {
                match next {
                    '{' => fields.push_brace(braces::OPEN),
                    ',' => fields.push_brace(braces::COMMA),
                    '}' => fields.push_brace(braces::CLOSE),
                    _ => fields.push_glob(next),
                }
                self.at += 1;
            }
        }
        Ok(())
    }

    fn single(&mut self, fields: &mut Fields) -> Result<(), Unreadable> {
        self.at += 1;
        fields.has_word = true;
        while let Some(next) = self.peek() {
            fields.push_text(&self.joined());
            self.at += 1;
            if next == '\'' {
                return Ok(());
            }
            fields.push(next);
        }
        Err(Unreadable("a quote in it is not closed"))
    }

    /// Reads text as in double quotes, up to `end` or, without it, the end of the text.
    fn quoted(&mut self, fields: &mut Fields, end: Option<char>) -> Result<(), Unreadable> {
        while let Some(next) = self.peek() {
            match next {
                _ if Some(next) == end => {
                    self.at += 1;
                    return Ok(());
                }
                '\\' => self.quoted_escape(fields),
                '$' => self.dollar(fields, true)?,
                '`' => self.backticks(fields)?,
                _ => {
                    fields.push(next);
                    self.at += 1;
                }
            }
        }
        if end.is_some() { Err(Unreadable("a quote in it is not closed")) } else { Ok(()) }
    }

    fn quoted_escape(&mut self, fields: &mut Fields) {
        self.at += 1;
        match self.peek() {
            Some(next @ ('$' | '`' | '"' | '\\')) => {
                fields.push(next);
                self.at += 1;
            }
            _ => fields.push('\\'),
        }
    }

    /// Reads `$'…'`, after its `$`.
    fn ansi(&mut self, fields: &mut Fields) -> Result<(), Unreadable> {
        self.at += 1;
        fields.has_word = true;
        let (start, mut text) = (self.at, String::new());
        while let Some(next) = self.peek() {
            self.at += 1;
            match next {
                '\'' if self.is_joined(start, self.at - 1) => {
                    return Err(Unreadable("a quote in it has a backslash before a newline"));
                }
                '\'' => {
                    // The number 0 ends the text.
                    let before = text.split('\0').next().unwrap_or_default();
                    fields.word.is_unknown |= before.len() < text.len();
                    fields.push_text(before);
                    return Ok(());
                }
                '\\' => match ansi::escape(self.chars.get(self.at..).unwrap_or_default()) {
                    Some((char, used)) => {
                        text.push(char);
                        self.at += used;
                    }
                    None => text.push('\\'),
                },
                _ => text.push(next),
            }
        }
        Err(Unreadable("a quote in it is not closed"))
    }

    /// Reads `<(…)` or `>(…)`.
    fn process(&mut self, fields: &mut Fields) -> Result<(), Unreadable> {
        self.at += 2;
        let script = self.substituted()?;
        fields.word.scripts.push(script);
        fields.push_unknown("<()");
        Ok(())
    }

    fn backticks(&mut self, fields: &mut Fields) -> Result<(), Unreadable> {
        self.at += 1;
        let (mut inner, start) = (Vec::new(), self.at);
        loop {
            let Some(next) = self.peek() else {
                return Err(Unreadable("a backtick in it is not closed"));
            };
            self.at += 1;
            match (next, self.peek()) {
                ('`', _) => break,
                ('\\', Some(escaped @ ('`' | '\\' | '$'))) => {
                    inner.push(escaped);
                    self.at += 1;
                }
                _ => inner.push(next),
            }
        }
        // Shells disagree about such a newline.
        if self.is_joined(start, self.at - 1) && inner.iter().any(|it| "'#<".contains(*it)) {
            return Err(Unreadable("a backtick in it has a backslash before a newline"));
        }
        let script = self.nested(inner, |it| it.script(End::Input))?;
        fields.word.scripts.push(script);
        fields.push_unknown("$()");
        Ok(())
    }

    /// Reads what follows a `$`.
    fn dollar(&mut self, fields: &mut Fields, is_quoted: bool) -> Result<(), Unreadable> {
        self.at += 1;
        match self.peek() {
            Some('(') => self.substitution(fields)?,
            Some('{') => self.parameter(fields, is_quoted)?,
            Some('\'') if !is_quoted => self.ansi(fields)?,
            Some('"') if !is_quoted => {
                self.at += 1;
                fields.has_word = true;
                self.quoted(fields, Some('"'))?;
            }
            Some(_) => {
                let name = self.name();
                if name.is_empty() {
                    fields.push('$');
                } else {
                    self.variable(fields, &name, is_quoted)?;
                }
            }
            None => fields.push('$'),
        }
        Ok(())
    }

    /// Reads the name of a variable, or a special one such as `@`. Empty if there is none.
    fn name(&mut self) -> String {
        let start = self.at;
        let is_name = |it: char| it == '_' || it.is_ascii_alphanumeric();
        match self.peek() {
            Some(first) if first.is_ascii_digit() || "@*#?$!-".contains(first) => self.at += 1,
            _ => {
                while self.peek().is_some_and(is_name) {
                    self.at += 1;
                }
            }
        }
        self.chars[start..self.at].iter().collect()
    }

    /// Reads `$(…)` or `$((…))`, after the `$`.
    fn substitution(&mut self, fields: &mut Fields) -> Result<(), Unreadable> {
        if self.starts("((")
            && let Some(inner) = self.arithmetic(2, "';\n\"\\`")
        {
            self.variables.note_arithmetic();
            if inner.windows(3).any(|it| *it == ['I', 'F', 'S']) {
                self.variables.assign_ifs();
            }
            let word = self.nested(inner, Self::quoted_text)?;
            fields.word.scripts.extend(word.scripts);
            fields.push_unknown("$()");
            return Ok(());
        }
        self.at += 1;
        let script = if self.starts("(") { self.double()? } else { self.substituted()? };
        fields.word.scripts.push(script);
        fields.push_unknown("$()");
        Ok(())
    }

    /// Skips `skipped` parentheses that are next, and the text up to those that close them. Returns the text, or `None`, without
    /// skipping anything, if they are not closed together: then they are no arithmetic.
    /// No arithmetic has a character of `stops`.
    pub(super) fn arithmetic(&mut self, skipped: usize, stops: &str) -> Option<Vec<char>> {
        let start = self.at + skipped;
        let (mut at, mut open, mut braces) = (start, 0_usize, 0_usize);
        while let Some(next) = self.chars.get(at).copied() {
            match next {
                // A parenthesis in `${…}` can be text.
                '(' | ')' if braces > 0 => return None,
                '{' => braces += 1,
                '}' => braces = braces.saturating_sub(1),
                '(' => open += 1,
                ')' if open > 0 => open -= 1,
                ')' => {
                    let is_closed = self.chars.get(at + 1) == Some(&')');
                    let inner = is_closed.then(|| self.chars[start..at].to_vec())?;
                    self.at = at + 2;
                    return Some(inner);
                }
                _ if stops.contains(next) => return None,
                _ => (),
            }
            at += 1;
        }
        None
    }

    /// Reads `${…}`, after the `$`.
    fn parameter(&mut self, fields: &mut Fields, is_quoted: bool) -> Result<(), Unreadable> {
        self.enter()?;
        self.at += 1;
        let is_special =
            matches!(self.peek(), Some('!' | '#')) && self.peek_at(1).is_some_and(|it| it != '}');
        self.at += usize::from(is_special);
        let name = self.name();
        let elements = self.subscript();
        let operator = self.operator();
        let rest = self.up_to_brace(fields, is_quoted)?;
        self.depth -= 1;
        let operator = operator.filter(|_| !is_special);
        match elements {
            None => self.replaced(fields, &name, operator, &rest, is_quoted),
            Some(true) if operator == Some('}') => self.elements(fields, &name),
            Some(_) => {
                let is_rest = matches!(operator, Some('-' | '=' | '+'));
                fields.push_perhaps(if is_rest { rest.as_str() } else { "" });
                fields.push_unknown(&format!("${name}"));
                Ok(())
            }
        }
    }

    /// Skips `[…]` in `${…}`. `None` if there is none, and otherwise whether all elements are meant.
    fn subscript(&mut self) -> Option<bool> {
        if self.eat("[@]") || self.eat("[*]") {
            return Some(true);
        }
        if self.peek() != Some('[') {
            return None;
        }
        self.variables.note_arithmetic();
        while self.peek().is_some_and(|it| !"]}\n$`'\"\\".contains(it)) {
            self.at += 1;
        }
        self.eat("]");
        Some(false)
    }

    /// Adds the elements of an array.
    fn elements(&mut self, fields: &mut Fields, name: &str) -> Result<(), Unreadable> {
        let all = match self.variables.elements(name)? {
            Some(Value::One(text)) => vec![text],
            Some(Value::Some(all)) => all,
            None => {
                fields.push_unknown(&format!("${name}"));
                return Ok(());
            }
        };
        for (at, text) in all.iter().enumerate() {
            if at > 0 {
                fields.split();
            }
            fields.push_perhaps(text);
        }
        Ok(())
    }

    /// Skips the operator in `${…}`. `None` if it is one whose result is unknown.
    fn operator(&mut self) -> Option<char> {
        let has_colon = self.eat(":");
        let operator = self.peek()?;
        if has_colon && !"-=+?".contains(operator) {
            self.variables.note_arithmetic();
        }
        if self.starts("@P") {
            self.variables.doubt();
        }
        if "-=+?".contains(operator) {
            self.at += 1;
        }
        "-=+?}".contains(operator).then_some(operator)
    }

    /// Reads the rest of `${…}`, and skips its `}`.
    fn up_to_brace(&mut self, fields: &mut Fields, is_quoted: bool) -> Result<String, Unreadable> {
        let mut inner = Fields::whole();
        while let Some(next) = self.peek() {
            if is_quoted && next == '\'' {
                return Err(Unreadable("a quote in it is text in some shells only"));
            }
            if next == '}' {
                self.at += 1;
                fields.word.scripts.append(&mut inner.word.scripts);
                return Ok(braces::plain(&inner.word.text));
            }
            if is_quoted && next == '$' {
                self.dollar(&mut inner, true)?;
            } else {
                self.part(&mut inner, next)?;
            }
        }
        Err(Unreadable("a `${` in it is not closed"))
    }

    /// Adds the value of `${NAME OPERATOR REST}`. `operator` is `}` without an operator, and `None` if the result is unknown.
    fn replaced(
        &mut self,
        fields: &mut Fields,
        name: &str,
        operator: Option<char>,
        rest: &str,
        is_quoted: bool,
    ) -> Result<(), Unreadable> {
        let is_known = name == "HOME" || self.variables.get(name)?.is_some();
        match operator {
            _ if name == "IFS" => self.variable(fields, name, is_quoted),
            Some('}') => self.variable(fields, name, is_quoted),
            Some('-' | '=' | '?') if is_known => self.variable(fields, name, is_quoted),
            Some('-' | '=' | '+') => {
                fields.word.is_unknown = true;
                if is_quoted {
                    fields.push_text(rest);
                } else {
                    fields.push_unquoted(rest);
                }
                fields.word.is_unknown = true;
                Ok(())
            }
            // It is not empty: otherwise, the shell ends.
            Some('?') => {
                fields.push_text(&format!("${name}"));
                fields.word.is_unknown = true;
                Ok(())
            }
            _ => {
                fields.push_unknown(&format!("${name}"));
                Ok(())
            }
        }
    }

    /// Adds the value of a variable.
    fn variable(
        &mut self,
        fields: &mut Fields,
        name: &str,
        is_quoted: bool,
    ) -> Result<(), Unreadable> {
        match name {
            "HOME" => fields.push_text("$HOME"),
            "IFS" if is_quoted => fields.push(' '),
            "IFS" => {
                fields.has_ifs |= !fields.is_whole;
                fields.split();
            }
            _ => {
                let value = self.variables.get(name)?;
                let is_split = !is_quoted && !fields.is_whole && value.is_some();
                if is_split && self.variables.has_ifs() {
                    self.variables.doubt();
                }
                match value {
                    Some(Value::One(text)) if is_quoted => fields.push_text(&text),
                    Some(Value::One(text)) => fields.push_unquoted(&text),
                    Some(Value::Some(all)) => {
                        for (at, text) in all.iter().enumerate() {
                            if at > 0 {
                                fields.split();
                            }
                            fields.push_perhaps(text);
                            fields.word.is_unknown = true;
                        }
                    }
                    None => fields.push_unknown(&format!("${name}")),
                }
            }
        }
        Ok(())
    }
}
